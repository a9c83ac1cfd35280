"""The index: observations of live artifacts with the claim that each makes, and what one tool's errors tell of others.

Of two readings of a source the newer one's artifacts are live. What stands here depends on the set of artifacts alone.
A claim is read from the words of the observation with the least id, so it is the same in whatever order they came.

What one tool's errors taught is told of other tools, in derived observations (`harvest.tools.errors.sibling_fixes`):
wherever the same code came up at a leaf of the same name, or where tools were seen to take one. A derived observation
lies where its recovery does, rests on the same spans, and leaves with it. All are derived anew where anything changed.

On the airline runs of tau-bench, records of unseen tasks foresee 84 % of the errors with these observations, and 36 %
with a tool's own alone. To foresee is not to advise rightly: `python -m benchmarks.advice` measures that.

Call inside a transaction of the database.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ctxsteward.store.crypto.keyring import AddressKey, address_of
from ctxsteward.store.profiles.version_codec import canonical

from ..artifacts.artifact import Artifact, ArtifactRank, observation_fields
from ..artifacts.storage import possible_speakers
from ..harvest.tools.calls import leaf_name
from ..harvest.tools.errors import FailureGroup, FailurePlace, expected, sibling_fixes, troubles_of
from ..reconcile.claims import Claim, IndexedObservation, ObservationBrief, claim_of, seen_in
from ..reconcile.sketches import bands
from .database import LedgerDatabase, claim_row, observations, seen_row
from .records import LedgerIdentity

_OF_TOOLS = "SELECT id, artifact FROM seen WHERE id > ? AND kind = 'tool_fix' ORDER BY id LIMIT 500"
_INSERT = f"INSERT INTO seen VALUES ({', '.join('?' * (len(ObservationBrief._fields) + 4))})"
_CLAIM = (
    "INSERT INTO claims VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE "
    "SET seen = excluded.seen, bands = excluded.bands, body = excluded.body WHERE excluded.seen < seen"
)
_STALE = "derived are stale"


class ObservationIndex:
    """Observations in a `LedgerDatabase`."""

    def __init__(self, database: LedgerDatabase, key: AddressKey, frame: LedgerIdentity) -> None:
        self._db, self._key, self._frame = database, key, frame

    def add(self, artifacts: Iterable[tuple[str, Artifact]]) -> int:
        """Take in artifacts by address; how many observations are new. One that is known changes nothing."""
        fresh: list[tuple[str, IndexedObservation]] = []
        for address, artifact in artifacts:
            if self._is_known(address) or self._is_erased(artifact):
                continue
            self._db.note(_STALE, 1)
            if self._enter(address, artifact):
                fresh += [(address, seen) for seen in seen_in(artifact, self._key)]
        live = {
            row[0]
            for row in self._db.among(
                "SELECT address FROM artifacts WHERE live AND address IN (…)", {a for a, _ in fresh}
            )
        }
        return self._see([(address, seen) for address, seen in fresh if address in live], is_derived=False)

    def drop(self, addresses: Collection[str]) -> int:
        """Take artifacts out; how many observations went with them."""
        gone = self._leave(addresses)
        self._db.many("DELETE FROM artifacts WHERE address = ?", [(address,) for address in addresses])
        return gone

    def derive(self) -> None:
        """Derive observations anew where artifacts came or left."""
        if self._db.noted(_STALE) != "1":
            return
        self._take_back([row[0] for row in self._db.rows("SELECT id FROM seen WHERE is_derived")])
        troubles: dict[FailureGroup, set[FailurePlace]] = defaultdict(set)
        for _, seen in self._of_tools():
            for group, place in troubles_of(seen.observation):
                troubles[group].add(place)
        codes = {group.code for group in troubles}
        for (takes,) in self._db.rows("SELECT DISTINCT takes FROM artifacts WHERE live AND takes <> ''"):
            for tool, paths in json.loads(takes):
                for path in paths:
                    for code in codes:
                        group = FailureGroup(code, leaf_name(path))
                        if group in troubles:
                            troubles[group].add(expected(code, tool, path))
        derived = [
            (
                address,
                replace(seen, id=self._derived_id(seen.id, canonical(observation_fields(told))), observation=told),
            )
            for address, seen in self._of_tools()
            for told in sibling_fixes(seen.observation, troubles)
        ]
        self._see(derived, is_derived=True)
        self._db.note(_STALE, 0)

    # -- inside -------------------------------------------------------------------------------------------------

    def _is_known(self, address: str) -> bool:
        return bool(self._db.rows("SELECT 1 FROM artifacts WHERE address = ?", address))

    def _is_erased(self, artifact: Artifact) -> bool:
        rows = self._db.rows("SELECT principal FROM erased WHERE session = ?", artifact.session)
        gone = {row[0] for row in rows}
        return "" in gone or not gone.isdisjoint(possible_speakers(artifact.session, artifact.principals))

    def _enter(self, address: str, artifact: Artifact) -> bool:
        """Note an artifact; whether it is of the newest reading of its source, whose elders then leave."""
        elders = self._db.rows(
            "SELECT address, transcript, rank, live FROM artifacts WHERE session = ? AND source = ?",
            artifact.session,
            artifact.source,
        )
        rank = artifact.rank
        live = all(_rank(row[2]) <= rank for row in elders)
        if live and (leaving := [row[0] for row in elders if row[3] and row[1] != artifact.transcript]):
            self._leave(leaving)
            self._db.many("UPDATE artifacts SET live = 0 WHERE address = ?", [(one,) for one in leaving])
        self._db.run(
            "INSERT INTO artifacts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            address,
            artifact.source,
            artifact.session,
            artifact.transcript,
            json.dumps(rank),
            live,
            json.dumps(artifact.principals),
            artifact.refused,
            json.dumps(artifact.takes) if artifact.takes else "",
        )
        return live

    def _see(self, fresh: Sequence[tuple[str, IndexedObservation]], *, is_derived: bool) -> int:
        """Enter observations with their claims; how many are new."""
        known = {
            row[0] for row in self._db.among("SELECT id FROM seen WHERE id IN (…)", {seen.id for _, seen in fresh})
        }
        new = {seen.id: (address, seen) for address, seen in fresh if seen.id not in known}
        made = self._claim({id_: seen for id_, (_, seen) in new.items()})
        self._db.many(
            _INSERT,
            [
                (*seen.brief, bytes.fromhex(address), made[id_].id, is_derived, seen_row(seen))
                for id_, (address, seen) in new.items()
            ],
        )
        names = [(name, id_) for id_, (_, seen) in new.items() for name in sorted(seen.shown)]
        self._db.many("INSERT INTO shown VALUES (?, ?)", names)
        return len(new)

    def _leave(self, addresses: Collection[str]) -> int:
        """Take the observations of these artifacts out; how many of them were harvested."""
        rows = self._db.among("SELECT id, is_derived FROM seen WHERE artifact IN (…)", map(bytes.fromhex, addresses))
        self._take_back([id_ for id_, _ in rows])
        self._db.note(_STALE, 1)
        return sum(not is_derived for _, is_derived in rows)

    def _take_back(self, seen: Sequence[str]) -> None:
        claims = self._db.among("SELECT id FROM claims WHERE seen IN (…)", seen)
        for statement in ("shown WHERE seen", "seen WHERE id", "claims WHERE seen"):
            self._db.many(f"DELETE FROM {statement} = ?", [(one,) for one in seen])
        others = self._db.among(
            "SELECT claim, min(id) FROM seen WHERE claim IN (…) GROUP BY claim", [row[0] for row in claims]
        )
        self._claim(observations(self._db, [id_ for _, id_ in others]))

    def _claim(self, seen: Mapping[str, IndexedObservation]) -> dict[str, Claim]:
        """Enter the claims that observations make; by observation."""
        made = {id_: claim_of(one.observation, self._key, self._frame.agent) for id_, one in seen.items()}
        sketched = zip(made.items(), bands(list(made.values())), strict=True)
        rows = [(claim.id, id_, json.dumps(own), claim_row(claim)) for (id_, claim), own in sketched]
        self._db.many(_CLAIM, rows)
        return made

    def _of_tools(self) -> Iterator[tuple[str, IndexedObservation]]:
        """Observations of tool errors with the addresses of their artifacts, a page at a time."""
        last = ""
        while page := dict(self._db.rows(_OF_TOOLS, last)):
            found = observations(self._db, page)
            yield from ((page[id_].hex(), found[id_]) for id_ in sorted(found))
            last = max(page)

    def _derived_id(self, recovery: str, told: bytes) -> str:
        return address_of(self._key, "", "derived", f'["{recovery}",{told.decode()}]'.encode())[:32]


def _rank(text: str) -> ArtifactRank:
    revision, extractor, messages, transcript = json.loads(text)
    return ArtifactRank(revision, tuple(extractor), messages, transcript)
