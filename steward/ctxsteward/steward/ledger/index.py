"""The index: observations of live artifacts, their claims, and which claims are one, kept up to date in place.

A component is a connected set of claims under `claims.relation`, labelled by its least id. Adding an observation
touches the components of its claims; taking one away cuts its component anew. So what stands here depends on the set of
artifacts alone, and costs what has changed.

    artifact → seen (observations) → said → claims → component → draft
                 ↳ derived observations (`transferred_fixes`), when drafts are made anew
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from ctxsteward.store import AddressKey

from ..artifacts import Artifact, ArtifactRank
from ..reconcile import (
    Claim,
    DisjointSets,
    IndexedObservation,
    ObservationBrief,
    bands,
    claims_of,
    components,
    relation,
    seen_in,
)
from .database import LedgerDatabase, claim_id_of, claim_of, claim_row, number_of, seen_row
from .drafts import DraftIndex
from .records import LedgerIdentity
from .status import RecordStatuses
from .transferred_fixes import TransferredFixes

MAX_CLAIMS_IN_MEMORY = 2_000


class ObservationIndex:
    """Components of claims in a `LedgerDatabase`; call inside one of its transactions."""

    def __init__(self, database: LedgerDatabase, key: AddressKey, frame: LedgerIdentity) -> None:
        self._db, self._key, self._frame = database, key, frame
        self._telling = TransferredFixes(database, key)
        self._standings = RecordStatuses(database)
        self._drafts = DraftIndex(database, frame)
        self._claims: dict[str, Claim] = {}

    # -- adding -------------------------------------------------------------------------------------------------

    def add(self, artifacts: Iterable[tuple[str, Artifact]]) -> int:
        """Take in artifacts by address; how many observations are new. One that is known changes nothing."""
        fresh: list[tuple[str, IndexedObservation]] = []
        for address, artifact in artifacts:
            if self._is_known(address) or self._is_erased(artifact):
                continue
            if self._enter(address, artifact):
                fresh += [(address, seen) for seen in seen_in(artifact, self._key)]
        live = {
            row[0]
            for row in self._db.among(
                "SELECT address FROM artifacts WHERE live AND address IN (…)", {a for a, _ in fresh}
            )
        }
        return self._see([(address, seen) for address, seen in fresh if address in live])

    def _is_known(self, address: str) -> bool:
        return bool(self._db.rows("SELECT 1 FROM artifacts WHERE address = ?", address))

    def _is_erased(self, artifact: Artifact) -> bool:
        rows = self._db.rows("SELECT principal FROM erased WHERE session = ?", artifact.session)
        gone = {row[0] for row in rows}
        return "" in gone or not gone.isdisjoint(artifact.principals)

    def _enter(self, address: str, artifact: Artifact) -> bool:
        """Note an artifact; whether it is of the newest reading of its source, whose elders then leave."""
        elders = self._db.rows(
            "SELECT address, transcript, rank, live FROM artifacts WHERE session = ? AND source = ?",
            artifact.session, artifact.source,
        )  # fmt: skip
        rank = artifact.rank
        live = all(_rank(row[2]) <= rank for row in elders)
        if live and (leaving := [row[0] for row in elders if row[3] and row[1] != artifact.transcript]):
            self._leave(leaving)
            self._db.many("UPDATE artifacts SET live = 0 WHERE address = ?", [(one,) for one in leaving])
        self._db.run(
            "INSERT INTO artifacts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", address, artifact.source, artifact.session,
            artifact.transcript, json.dumps(rank), live, json.dumps(artifact.principals), artifact.refused,
            json.dumps(artifact.takes) if artifact.takes else "",
        )  # fmt: skip
        if live:
            self._telling.took(artifact.takes)
        return live

    def _see(self, fresh: Sequence[tuple[str, IndexedObservation]]) -> int:
        known = {
            row[0] for row in self._db.among("SELECT id FROM seen WHERE id IN (…)", {seen.id for _, seen in fresh})
        }
        new = {seen.id: (address, seen) for address, seen in fresh if seen.id not in known}
        self._telling.came(seen for _, seen in new.values())
        self._claim_anew(list(new.values()))
        self._db.add_to("observations", len(new))
        return len(new)

    def _claim_anew(self, new: Sequence[tuple[str, IndexedObservation]]) -> None:
        """Enter observations with their claims."""
        found: dict[str, Claim] = {}
        said: list[tuple[str, str]] = []
        for _, seen in new:
            for claim in claims_of(seen.observation, seen.origin, self._key, self._frame.agent):
                found[claim.id] = claim
                said.append((claim.id, seen.id))
        self._db.many(
            f"INSERT INTO seen VALUES ({', '.join('?' * (len(ObservationBrief._fields) + 2))})",
            [(*seen.brief, bytes.fromhex(address), seen_row(seen)) for address, seen in new],
        )
        names = [(name, seen.id) for _, seen in new for name in sorted(seen.shown)]
        self._db.many("INSERT INTO shown VALUES (?, ?)", names)
        self._db.many("INSERT OR IGNORE INTO said (claim, seen) VALUES (?, ?)", said)
        self._join(found)
        self._drafts.came(seen for _, seen in new)

    def _join(self, found: dict[str, Claim]) -> None:
        """Enter claims, and make one of what is one."""
        standing = dict(self._db.among("SELECT id, component FROM claims WHERE id IN (…)", found))
        new = [claim for id_, claim in sorted(found.items()) if id_ not in standing]
        self._db.many(
            "INSERT INTO claims VALUES (?, ?, ?, ?, ?)",
            [(claim.id, claim.id, json.dumps(claim.audience), claim.group, claim_row(claim)) for claim in new],
        )
        self._remember(new)
        sketched = bands(new)
        near = self._near(new, sketched)
        self._db.many(
            "INSERT OR IGNORE INTO bands VALUES (?, ?)",
            sorted((band, number_of(claim.id)) for claim, own in zip(new, sketched, strict=True) for band in own),
        )
        union = self._compared(new, near)
        own = {claim.id for claim in new}
        moved = {label: union.find(label) for label in union.members if union.find(label) != label}
        self._db.many("UPDATE claims SET component = ?2 WHERE component = ?1", moved.items())
        self._drafts.soil({*standing.values(), *own, *moved, *moved.values()})
        self._drafts.named(sorted(own))

    def _compared(self, new: Sequence[Claim], near: Mapping[str, set[str]]) -> DisjointSets:
        """Compare new claims with whatever shares a band; components by label, joined."""
        union = DisjointSets()
        labels = dict(
            self._db.among(
                "SELECT id, component FROM claims WHERE id IN (…)", {o for ids in near.values() for o in ids}
            )
        )
        opposed: set[tuple[str, str]] = set()
        for claim in new:
            for other in sorted(near[claim.id]):
                if union.find(labels[other]) == union.find(claim.id):
                    continue  # of one polarity, as all of a component are
                match relation(claim, self._claim(other)):
                    case "same":
                        union.join(labels[other], claim.id)
                    case "opposes":
                        opposed |= {(claim.id, other), (other, claim.id)}
        self._db.many("INSERT OR IGNORE INTO opposed VALUES (?, ?)", opposed)
        return union

    def _near(self, new: Sequence[Claim], sketched: Sequence[tuple[int, ...]]) -> dict[str, set[str]]:
        """Which others share a band with each of these claims, before these are entered; of one without, nothing."""
        buckets: dict[int, list[str]] = defaultdict(list)
        for claim, own in zip(new, sketched, strict=True):
            for band in own:
                buckets[band].append(claim.id)
        for band, number in self._db.among("SELECT band, claim FROM bands WHERE band IN (…)", sorted(buckets)):
            buckets[band].append(claim_id_of(number))
        near: dict[str, set[str]] = {claim.id: set() for claim in new}
        for ids in buckets.values():
            if len(ids) > 1:
                for id_ in near.keys() & ids:
                    near[id_].update(ids)
        for id_, others in near.items():
            others.discard(id_)
        return near

    # -- taking away --------------------------------------------------------------------------------------------

    def drop(self, addresses: Collection[str]) -> int:
        """Take artifacts out; how many observations went with them."""
        gone = self._leave(addresses)
        self._db.many("DELETE FROM artifacts WHERE address = ?", [(address,) for address in addresses])
        return gone

    def _leave(self, addresses: Collection[str]) -> int:
        """Take the observations of these artifacts out; their components are cut anew."""
        self._telling.untook(addresses)
        kept = map(bytes.fromhex, addresses)
        seen = [row[0] for row in self._db.among("SELECT id FROM seen WHERE artifact IN (…)", kept)]
        derived = self._db.among("SELECT count(*) FROM derived WHERE seen IN (…)", seen)
        self._telling.left(seen)
        self._take_back(seen)
        gone = len(seen) - sum(int(row[0]) for row in derived)
        self._db.add_to("observations", -gone)
        return gone

    def _take_back(self, seen: Sequence[str]) -> None:
        """Take out observations."""
        if not seen:
            return
        rows = self._db.among(
            "SELECT DISTINCT c.id, c.component FROM said s JOIN claims c ON c.id = s.claim WHERE s.seen IN (…)", seen
        )
        self._db.many("DELETE FROM said WHERE seen = ?", [(one,) for one in seen])
        for statement in ("shown WHERE seen", "seen WHERE id"):
            self._db.many(f"DELETE FROM {statement} = ?", [(one,) for one in seen])
        self._drafts.soil({component for _, component in rows})
        left = {
            row[0] for row in self._db.among("SELECT DISTINCT claim FROM said WHERE claim IN (…)", {c for c, _ in rows})
        }
        bare = sorted({claim for claim, _ in rows} - left)
        if bare:
            self._forget(bare, {component for claim, component in rows if claim in bare})

    def _tell(self) -> None:
        """Bring derived observations up to date."""
        coming, going = self._telling.change()
        self._take_back(going)
        if coming:
            self._claim_anew(coming)

    def _forget(self, bare: Sequence[str], labels: set[str]) -> None:
        """Drop claims that nobody makes any more, and cut their components."""
        claims = [self._claim(id_) for id_ in bare]
        self._standings.unbind(bare)
        pairs = [(band, number_of(claim.id)) for claim, own in zip(claims, bands(claims), strict=True) for band in own]
        self._db.many("DELETE FROM bands WHERE band = ? AND claim = ?", pairs)
        self._db.many("DELETE FROM opposed WHERE one = ?1 OR other = ?1", [(id_,) for id_ in bare])
        self._db.many("DELETE FROM claims WHERE id = ?", [(id_,) for id_ in bare])
        for id_ in bare:
            self._claims.pop(id_, None)
        for label in sorted(labels):
            members = [row[0] for row in self._db.rows("SELECT id FROM claims WHERE component = ?", label)]
            cut = self._cut(members)
            self._db.many("UPDATE claims SET component = ?2 WHERE id = ?1", cut.items())
            self._drafts.soil({label, *cut.values()})
        self._drafts.named(bare)

    def _cut(self, members: Sequence[str]) -> dict[str, str]:
        claims = [self._claim(id_) for id_ in members]
        buckets: dict[int, list[str]] = defaultdict(list)
        for claim, own in zip(claims, bands(claims), strict=True):
            for band in own:
                buckets[band].append(claim.id)
        return components(members, buckets, lambda one, other: relation(self._claim(one), self._claim(other)) == "same")

    # -- drafts -------------------------------------------------------------------------------------------------

    def refresh(self) -> int:
        """Draft anew what has changed; how many components that were."""
        self._tell()
        return self._drafts.refresh()

    def total(self) -> int:
        """Sum of the digests of all drafts, which tells two sets apart; refresh first."""
        return self._drafts.total()

    # -- inside -------------------------------------------------------------------------------------------------

    def forget_memory(self) -> None:
        """The tables were emptied."""
        self._claims.clear()
        self._drafts.forget_memory()

    def _claim(self, id_: str) -> Claim:
        found = self._claims.get(id_)
        if found is None:
            found = claim_of(id_, *self._db.rows("SELECT audience, body FROM claims WHERE id = ?", id_)[0])
            self._remember((found,))
        return found

    def _remember(self, claims: Iterable[Claim]) -> None:
        if len(self._claims) > MAX_CLAIMS_IN_MEMORY:
            self._claims.clear()
        self._claims.update((claim.id, claim) for claim in claims)


def _rank(text: str) -> ArtifactRank:
    revision, extractor, messages, transcript = json.loads(text)
    return ArtifactRank(revision, tuple(extractor), messages, transcript)
