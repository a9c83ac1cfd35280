"""The drafts of an index, made again where their components have changed.

A component is drafted from all of its observations, so its draft is a function of them. The components that have
changed since the last time are listed in `dirty`. One that was shown to sessions under some name, in whichever scope,
changes with the components that share observations with it. `said.idle` tells which observations lend their draft
nothing. At 100,000 observations, 7,000 of them in one component, a night with 1 % new costs the ledger 4.7 s of CPU;
with aggregates that grew beside the drafts it was 3.7 s.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..kinds import KINDS
from ..reconcile.claims import OWN, Claim, ClaimAudience
from ..reconcile.draft import Draft, DraftSummary, QuotedIds, draw_draft, phrases, quoting, summarize_draft, words
from ..reconcile.observed import IndexedObservation, ObservationBrief
from ..reconcile.support import VoiceCounts, counted, supporting, voices
from .database import LedgerDatabase
from .records import LedgerIdentity, audience_of, flaw_of
from .rows import brief_of, draft_row, seen_of
from .status import RecordStatuses

MAX_SEEN_IN_MEMORY = 2_000
VOICES_TO_BE_SEEN = 2
"""A wide claim of fewer is not shown beside its author's own."""
COMPONENTS_AT_ONCE = 400

_COLUMNS = (
    "component", "id", "rivals", "wide", "hidden", "digest", "kind", "width", "strict", "scored", "said", "recovered",
    "helped", "trigger", "action", "from_tool", "last", "shelf", "counter", "tokens", "malformed", "body",
)  # fmt: skip
_INSERT = f"INSERT INTO drafts ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_NO_SUPPORT = (None, "", 0, 1)
_MODULUS = 1 << 256

_ANY_SHOWN = "SELECT 1 FROM seen INDEXED BY seen_by_shown WHERE shown LIMIT 1"
_ECHOES = (
    "SELECT DISTINCT k.component FROM dirty d CROSS JOIN claims c ON c.component = d.component "
    "CROSS JOIN said s ON s.claim = c.id CROSS JOIN said t ON t.seen = s.seen CROSS JOIN claims k ON k.id = t.claim "
    "WHERE k.component <> d.component "
    "AND EXISTS (SELECT 1 FROM claims m CROSS JOIN said u ON u.claim = m.id "
    "CROSS JOIN seen n INDEXED BY seen_by_shown ON n.id = u.seen AND n.shown WHERE m.component = k.component)"
)
"""What a session was shown in one scope lends nothing in another either."""
_NAMED = (
    "SELECT DISTINCT k.component FROM shown x CROSS JOIN said t ON t.seen = x.seen "
    "CROSS JOIN claims k ON k.id = t.claim WHERE x.name IN (…)"
)
Row = tuple[object, ...]


class _ClaimRow(NamedTuple):
    claim: str
    seen: str
    brief: str
    shown: int
    idle: int

    @property
    def member(self) -> tuple[str, ObservationBrief]:
        return (self.claim, brief_of(self.brief))


class _SupportSummary(NamedTuple):
    """What the observations that support a draft come to."""

    found: DraftSummary
    counts: VoiceCounts
    quoted: QuotedIds
    audience: ClaimAudience


class _WeighedComponent(NamedTuple):
    """A component, before what it quotes is read."""

    label: str
    claims: set[str]
    total: int
    lends: _SupportSummary | None
    """None: nothing supports it."""


class DraftIndex:
    """Drafts in a `LedgerDatabase`; call inside one of its transactions."""

    def __init__(self, database: LedgerDatabase, frame: LedgerIdentity, claims: Callable[[str], Claim]) -> None:
        """`claims` gives a claim by its id."""
        self._db, self._frame, self._claims = database, frame, claims
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
        """Claims are new: what sessions were shown under these names may lend nothing any more."""
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
            self.soil([row[0] for row in self._db.rows(_ECHOES)])
        due = [row[0] for row in self._db.rows("SELECT component FROM dirty ORDER BY component")]
        if not due:
            return 0
        self._standings.leave(due)
        self._drop(due)  # first: an id may move from one component to another
        for start in range(0, len(due), COMPONENTS_AT_ONCE):
            self._insert(list(self._drafted(due[start : start + COMPONENTS_AT_ONCE])))
        self._db.run("DELETE FROM dirty")
        self._fresh.clear()
        return len(due)

    def _drop(self, labels: Sequence[str]) -> None:
        digests = self._db.among("SELECT digest FROM drafts WHERE component IN (…)", labels)
        self._db.many("DELETE FROM drafts WHERE component = ?", [(label,) for label in labels])
        self._add([row[0] for row in digests], -1)

    def _insert(self, rows: Sequence[Row]) -> None:
        self._db.many(_INSERT, rows)
        self._add([row[_COLUMNS.index("digest")] for row in rows], 1)

    def _add(self, digests: Sequence[object], times: int) -> None:
        """Count drafts that came (1) or left (-1)."""
        total = sum(int.from_bytes(one, "big") for one in digests if isinstance(one, bytes))
        self._db.note("digest", f"{(self.total() + times * total) % _MODULUS:064x}")
        self._db.add_to("components", times * len(digests))

    # -- from all observations ----------------------------------------------------------------------------------

    def _drafted(self, labels: Sequence[str]) -> Iterator[Row]:
        rows = self._db.among(
            "SELECT c.component, c.id, s.seen, n.brief, n.shown, s.idle FROM claims c JOIN said s ON s.claim = c.id "
            "JOIN seen n ON n.id = s.seen WHERE c.component IN (…)", labels
        )  # fmt: skip
        found: dict[str, list[_ClaimRow]] = defaultdict(list)
        for component, *row in rows:
            found[component].append(_ClaimRow(*row))
        weighed = [self._weighed(label, said) for label, said in sorted(found.items())]
        quoted = self._seen({id_ for one in weighed if one.lends for id_ in one.lends.quoted.ids})
        return (self._drawn(one, quoted) for one in weighed)

    def _weighed(self, label: str, rows: Sequence[_ClaimRow]) -> _WeighedComponent:
        is_shown = any(row.shown for row in rows)
        claims = {row.claim for row in rows}
        members = [row.member for row in rows]
        lending = supporting(members, claims | self._names(label) if is_shown else claims)
        self._note_idle(rows, lending)
        total = _total(rows)
        if not lending:
            return _WeighedComponent(label, claims, total, None)
        audience = self._claims(label).audience
        found, seen = summarize_draft(lending), [one for _, one in lending]
        counts = counted(voices(seen, own=audience.width in OWN))
        quoted = quoting(found, min(phrases(seen).values(), key=lambda phrase: phrase.worth).best)
        return _WeighedComponent(label, claims, total, _SupportSummary(found, counts, quoted, audience))

    def _drawn(self, one: _WeighedComponent, quoted: Mapping[str, IndexedObservation]) -> Row:
        digest = _digest(one.label, one.total)
        if one.lends is None:
            return (one.label, *_NO_SUPPORT, digest, *(None,) * 12, None, 0, None, None)
        lends = one.lends
        group = min(filter(None, (self._claims(id_).group for id_ in one.claims)), default="")
        made = draw_draft(lends.found, lends.counts, words(lends.quoted, quoted), one.claims, lends.audience, group)
        return self._row(one.label, made, digest)

    def _names(self, label: str) -> set[str]:
        """Ids under which what this component says may have been shown, in whichever scope."""
        rows = self._db.rows(
            "SELECT DISTINCT m.id FROM claims c JOIN said s ON s.claim = c.id JOIN said t ON t.seen = s.seen "
            "JOIN claims k ON k.id = t.claim JOIN claims m ON m.component = k.component WHERE c.component = ?", label
        )  # fmt: skip
        return {row[0] for row in rows}

    # -- inside -------------------------------------------------------------------------------------------------

    def _note_idle(self, rows: Sequence[_ClaimRow], lending: Sequence[tuple[str, ObservationBrief]]) -> None:
        if len(rows) == len(lending) and not any(row.idle for row in rows):
            return
        busy = {(claim, one.id) for claim, one in lending}
        changed = [(row.claim, row.seen) for row in rows if bool(row.idle) == ((row.claim, row.seen) in busy)]
        self._db.many("UPDATE said SET idle = NOT idle WHERE claim = ? AND seen = ?", changed)

    def _row(self, label: str, made: Draft, digest: bytes) -> Row:
        wide, backing, seconds = made.audience.width not in OWN, made.backing, made.moment.seconds
        audience = audience_of(made)
        return (
            label, made.id, made.group, wide, wide and _is_hidden(made), digest, made.kind, made.audience.width,
            backing.strict, backing.scored, backing.said, backing.recovered, backing.helped, *made.advice,
            backing.from_tool,
            None if seconds == float("-inf") else seconds, None if audience is None else json.dumps(audience),
            None, 0, flaw_of(made, self._frame), draft_row(made),
        )  # fmt: skip

    def _seen(self, ids: Collection[str]) -> dict[str, IndexedObservation]:
        found = {id_: self._fresh[id_] for id_ in ids if id_ in self._fresh}
        rows = self._db.among("SELECT id, body FROM seen WHERE id IN (…)", [id_ for id_ in ids if id_ not in found])
        return found | {id_: seen_of(body) for id_, body in rows}


def _total(rows: Iterable[_ClaimRow]) -> int:
    """Sum of these pairs of claim and observation: of all of a component, it tells two sets apart."""
    return sum(int.from_bytes(hashlib.sha256(f"{row.claim} {row.seen}".encode()).digest(), "big") for row in rows)


def _digest(label: str, total: int) -> bytes:
    return hashlib.sha256(f"{label} {total % _MODULUS:x}".encode()).digest()


def _is_hidden(made: Draft) -> bool:
    """Whether it only repeats what stands in its one author's own scope."""
    return KINDS[made.kind].is_personal and made.backing.said < VOICES_TO_BE_SEEN
