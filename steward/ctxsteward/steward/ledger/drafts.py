"""The drafts of an index, made again where their components have changed (`dirty`).

A component is drafted from all of its observations, so a draft depends on the set alone, whatever came in which order.
What is weighed of an observation are columns of its row; of the few that a draft quotes the whole (`body`) is read.
`said.idle` tells which observations lend their draft nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ..observations.observation import KINDS
from ..reconcile.claims import IndexedObservation, ObservationBrief, is_paraphrase
from ..reconcile.draft import Draft, supporting
from .database import LedgerDatabase, claim_of, component_rows, observations
from .records import LedgerIdentity, audience_of, flaw_of
from .status import RecordStatuses

MAX_SEEN_IN_MEMORY = 2_000
VOICES_TO_BE_SEEN = 2
"""A wide claim of fewer is not shown beside its author's own."""
COMPONENTS_AT_ONCE = 400

_COLUMNS = (
    "component",
    "id",
    "rivals",
    "wide",
    "hidden",
    "digest",
    "kind",
    "width",
    "strict",
    "scored",
    "said",
    "votes",
    "confirmed",
    "denied",
    "recovered",
    "helped",
    "obeyed_succeeded",
    "obeyed_failed",
    "tasks",
    "asked",
    "chance",
    "trigger",
    "action",
    "from_tool",
    "last",
    "shelf",
    "malformed",
)
_INSERT = f"INSERT INTO drafts ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_MODULUS = 1 << 256

_ANY_SHOWN = "SELECT 1 FROM seen INDEXED BY seen_by_shown WHERE is_shown LIMIT 1"
_BESIDE_DIRTY = (
    "SELECT DISTINCT k.component FROM dirty d CROSS JOIN claims c ON c.component = d.component "
    "CROSS JOIN said s ON s.claim = c.id CROSS JOIN said t ON t.seen = s.seen CROSS JOIN claims k ON k.id = t.claim "
    "WHERE k.component <> d.component "
    "AND EXISTS (SELECT 1 FROM claims m CROSS JOIN said u ON u.claim = m.id "
    "CROSS JOIN seen n INDEXED BY seen_by_shown ON n.id = u.seen AND n.is_shown WHERE m.component = k.component)"
)
"""What a session was shown in one scope lends nothing in another either."""
_NAMED = (
    "SELECT DISTINCT k.component FROM shown x CROSS JOIN said t ON t.seen = x.seen "
    "CROSS JOIN claims k ON k.id = t.claim WHERE x.name IN (…)"
)
_ECHOES = (
    "SELECT DISTINCT x.seen FROM claims c CROSS JOIN said s ON s.claim = c.id CROSS JOIN said t ON t.seen = s.seen "
    "CROSS JOIN claims k ON k.id = t.claim CROSS JOIN claims m ON m.component = k.component "
    "CROSS JOIN shown x ON x.name = m.id "
    "WHERE c.component = ?"
)
"""Observations of sessions that were shown what a component says, in whichever scope."""
_SHOWN_BESIDE = (
    "SELECT DISTINCT m.id, m.audience, m.body FROM claims c CROSS JOIN said s ON s.claim = c.id "
    "CROSS JOIN shown x ON x.seen = s.seen CROSS JOIN claims m ON m.id = x.name "
    "WHERE c.component = ? AND m.component <> c.component"
)
_SHOWN_NAME = "SELECT seen FROM shown WHERE name = ?"

Row = tuple[object, ...]
_ClaimRow = tuple[str, ObservationBrief, int]
"""A claim, one of its observations, and whether that was idle."""


class DraftIndex:
    """Drafts in a `LedgerDatabase`; call inside one of its transactions."""

    def __init__(self, database: LedgerDatabase, frame: LedgerIdentity) -> None:
        self._db, self._frame = database, frame
        self._standings = RecordStatuses(database)
        self._fresh: dict[str, IndexedObservation] = {}
        """Observations that just came, for the drafts they are about to make."""

    def soil(self, labels: Iterable[str]) -> None:
        """Components have changed."""
        self._db.many("INSERT OR IGNORE INTO dirty VALUES (?)", [(label,) for label in labels])

    def came(self, new: Iterable[IndexedObservation]) -> None:
        """Observations came."""
        for seen in new:
            if len(self._fresh) < MAX_SEEN_IN_MEMORY:
                self._fresh[seen.id] = seen

    def named(self, claims: Sequence[str]) -> None:
        """Claims came or went: what sessions were shown under these names lends nothing, or lends again."""
        self.soil([row[0] for row in self._db.among(_NAMED, claims)])

    def forget_memory(self) -> None:
        """The tables were emptied."""
        self._fresh.clear()

    def total(self) -> int:
        """Sum of the digests of all drafts, which tells two sets apart; refresh first."""
        return int(self._db.noted("digest") or "0", 16)

    def refresh(self) -> int:
        """Draft anew what has changed; how many components that were."""
        if self._db.rows(_ANY_SHOWN):
            self.soil([row[0] for row in self._db.rows(_BESIDE_DIRTY)])
        due = [row[0] for row in self._db.rows("SELECT component FROM dirty ORDER BY component")]
        self._standings.leave(due)
        self._drop(due)  # first: an id may move from one component to another
        for start in range(0, len(due), COMPONENTS_AT_ONCE):
            rows = list(self._drafted(due[start : start + COMPONENTS_AT_ONCE]))
            self._db.many(_INSERT, rows)
            self._add([row[_COLUMNS.index("digest")] for row in rows], 1)
        self._db.run("DELETE FROM dirty")
        self._fresh.clear()
        return len(due)

    def _drop(self, labels: Sequence[str]) -> None:
        digests = self._db.among("SELECT digest FROM drafts WHERE component IN (…)", labels)
        self._db.many("DELETE FROM drafts WHERE component = ?", [(label,) for label in labels])
        self._add([row[0] for row in digests], -1)

    def _add(self, digests: Sequence[object], times: int) -> None:
        """Count drafts that came (1) or left (-1)."""
        if digests:
            total = sum(int.from_bytes(one, "big") for one in digests if isinstance(one, bytes))
            self._db.note("digest", f"{(self.total() + times * total) % _MODULUS:064x}")
            self._db.add_to("components", times * len(digests))

    def _drafted(self, labels: Sequence[str]) -> Iterator[Row]:
        """The rows of components, those that they quote read at once."""
        found = component_rows(self._db, labels)
        lending = {
            label: self._lending(label, one.members, own=one.audience.width == "user") for label, one in found.items()
        }
        every = ((label, found[label].summary(members)) for label, members in lending.items() if members)
        weighed = {label: one for label, one in every if one is not None}
        quoted = self._seen({id_ for one in weighed.values() for id_ in one.quoted})
        for label, one in found.items():
            digest = _digest(label, one.members)
            if label in weighed:
                yield self._row(label, one.draft(weighed[label], quoted), digest)
            else:
                yield (label, None, "", 0, 1, digest, *(None,) * (len(_COLUMNS) - 6))

    def _lending(self, label: str, rows: Sequence[_ClaimRow], *, own: bool) -> list[tuple[str, ObservationBrief]]:
        """The observations that support a component; notes which are idle."""
        is_shown = any(one.is_shown for _, one, _ in rows)
        echoes = {row[0] for row in self._db.rows(_ECHOES, label)} if is_shown else set()
        if is_shown and not own:
            echoes |= self._paraphrases(label)
        lending = supporting([(claim, one) for claim, one, _ in rows], echoes)
        if len(rows) != len(lending) or any(idle for _, _, idle in rows):
            busy = {(claim, one.id) for claim, one in lending}
            changed = [(claim, one.id) for claim, one, idle in rows if bool(idle) == ((claim, one.id) in busy)]
            self._db.many("UPDATE said SET idle = NOT idle WHERE claim = ? AND seen = ?", changed)
        return lending

    def _paraphrases(self, label: str) -> set[str]:
        """Observations of sessions that were shown something like what a component for many says."""
        rows = self._db.rows("SELECT id, audience, body FROM claims WHERE component = ?", label)
        mine = [claim_of(*row) for row in rows]
        near = [
            row[0]
            for row in self._db.rows(_SHOWN_BESIDE, label)
            if any(is_paraphrase(claim_of(*row), claim) for claim in mine)
        ]
        return {seen for name in near for (seen,) in self._db.rows(_SHOWN_NAME, name)}

    def _row(self, label: str, made: Draft, digest: bytes) -> Row:
        wide, backing, seconds = made.audience.width != "user", made.backing, made.moment.seconds
        audience = audience_of(made)
        return (
            label,
            made.id,
            made.group,
            wide,
            wide and _is_hidden(made),
            digest,
            made.kind,
            made.audience.width,
            backing.strict,
            backing.scored,
            backing.said,
            backing.votes,
            backing.confirmed,
            backing.denied,
            backing.recovered,
            backing.helped,
            backing.obeyed_succeeded,
            backing.obeyed_failed,
            backing.tasks,
            backing.asked,
            backing.chance,
            *made.advice,
            backing.from_tool,
            None if seconds == float("-inf") else seconds,
            None if audience is None else json.dumps(audience),
            flaw_of(made, self._frame),
        )

    def _seen(self, ids: Collection[str]) -> Mapping[str, IndexedObservation]:
        fresh = {id_: self._fresh[id_] for id_ in ids if id_ in self._fresh}
        return fresh | observations(self._db, [id_ for id_ in ids if id_ not in fresh])


def _digest(label: str, rows: Iterable[_ClaimRow]) -> bytes:
    """Of all pairs of claim and observation of a component: it tells two sets apart."""
    pairs = (hashlib.sha256(f"{claim} {one.id}".encode()).digest() for claim, one, _ in rows)
    total = sum(int.from_bytes(pair, "big") for pair in pairs)
    return hashlib.sha256(f"{label} {total % _MODULUS:x}".encode()).digest()


def _is_hidden(made: Draft) -> bool:
    """Whether it only repeats what stands in its one author's own scope."""
    return KINDS[made.kind].is_personal and made.backing.said < VOICES_TO_BE_SEEN
