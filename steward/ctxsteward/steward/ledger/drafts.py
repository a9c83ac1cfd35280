"""The drafts of an index, made again where their components have changed, and what is kept of large ones.

    dirty    components that have changed; `whole`: otherwise than by observations that were added
    newly    what was added to components of which something is kept

A component with few observations is drafted from all of them. From `MANY` on, one more observation costs one more: the
draft is made of what is kept of it (`AggregateTable`) and what is new, and is the same, byte for byte. Where
observations left, or came from another component, it is drafted from all again. Kept are:

    gathered    first and last, greatest, those that evidence may be chosen from; counts and the sum of all
    voices      places, sessions, principals: each once, as a hash, with how it was heard
    phrases     texts, in the order in which they are worth showing

Nothing is kept of what was shown to sessions under names that may change. `said.idle` tells which observations lend
their draft nothing. Without this a night with 1 % new costs 3.5 % of the full one, over the bench's bar of 3 %.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..kinds import KINDS
from ..reconcile.claims import OWN, Claim, ClaimAudience
from ..reconcile.draft import (
    Draft,
    DraftSummary,
    PhraseCount,
    Phrases,
    QuotedIds,
    QuotedWords,
    draw_draft,
    join_phrases,
    join_summaries,
    phrases,
    quoting,
    rank,
    summarize_draft,
    words,
)
from ..reconcile.indexed_observation import IndexedObservation, ObservationBrief
from ..reconcile.support import Voice, VoiceCounts, counted, supporting, voices
from .database import LedgerDatabase
from .records import LedgerIdentity, audience_of, flaw_of, line
from .rows import brief_of, brief_row, draft_of, draft_row, gathered_of, gathered_row, seen_of
from .status import RecordStatuses

MANY = 16
"""Observations from which on it is worth it."""
_TABLES = ("gathered", "voices", "phrases")


class Aggregate(NamedTuple):
    """Of one component."""

    found: DraftSummary
    counts: VoiceCounts
    quoted: QuotedIds
    total: int
    """Sum of all its pairs of claim and observation."""


class AggregateTable:
    """Gathered drafts in a `LedgerDatabase`; call inside one of its transactions."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._db = database

    def among(self, components: Iterable[str]) -> set[str]:
        """Those of which something is kept."""
        return {row[0] for row in self._db.among("SELECT component FROM gathered WHERE component IN (…)", components)}

    def of(self, components: Iterable[str]) -> dict[str, Aggregate]:
        """What is kept of them, by component."""
        rows = self._db.among("SELECT component, body FROM gathered WHERE component IN (…)", components)
        return {component: _kept(body) for component, body in rows}

    def drop(self, components: Collection[str]) -> None:
        """Keep nothing of these."""
        kept = [(component,) for component in sorted(self.among(components))]
        for table in _TABLES:
            self._db.many(f"DELETE FROM {table} WHERE component = ?", kept)

    def keep(self, component: str, kept: Aggregate) -> None:
        """Keep this; voices and phrases are added for themselves."""
        found, counts, quoted, total = kept
        body = json.dumps([gathered_row(found), counts, quoted, f"{total:x}"], ensure_ascii=False)
        self._db.run("INSERT OR REPLACE INTO gathered VALUES (?, ?)", component, body)

    def hear(self, component: str, voices: Mapping[Voice, int]) -> VoiceCounts:
        """Add voices; what they add to the counts."""
        heard = {_hash(voice): bits for voice, bits in voices.items()}
        rows = self._those("SELECT voice, heard FROM voices WHERE component = ? AND voice IN (…)", component, [*heard])
        before: dict[bytes, int] = dict(rows)
        more = {voice: bits & ~before.get(voice, 0) for voice, bits in heard.items()}
        self._db.many(
            "INSERT OR REPLACE INTO voices VALUES (?, ?, ?)",
            [(component, voice, bits | before.get(voice, 0)) for voice, bits in more.items() if bits],
        )
        return counted({(voice,): bits for voice, bits in more.items()})

    def phrase(self, component: str, phrases: Phrases) -> ObservationBrief:
        """Add phrases; the best of all."""
        query = "SELECT text, times, brief FROM phrases WHERE component = ? AND text IN (…)"
        rows = self._those(query, component, [*phrases])
        before = {text: PhraseCount(times, brief_of(brief)) for text, times, brief in rows}
        now = {
            text: join_phrases(before[text], phrase) if text in before else phrase for text, phrase in phrases.items()
        }
        self._db.many(
            "INSERT OR REPLACE INTO phrases VALUES (?, ?, ?, ?, ?, ?)",
            [(component, text, times, rank(best), best.score, brief_row(best)) for text, (times, best) in now.items()],
        )
        query = "SELECT brief FROM phrases WHERE component = ? ORDER BY rank, times DESC, score DESC, text LIMIT 1"
        return brief_of(self._db.rows(query, component)[0][0])

    def _those(self, query: str, component: str, keys: Sequence[object], size: int = 400) -> list[Any]:
        found: list[Any] = []
        for start in range(0, len(keys), size):
            page = keys[start : start + size]
            found += self._db.rows(query.replace("(…)", f"({', '.join('?' * len(page))})"), component, *page)
        return found


def _kept(body: str) -> Aggregate:
    found, counts, (spoken, holder, chosen), total = json.loads(body)
    return Aggregate(gathered_of(found), VoiceCounts(*counts), QuotedIds(spoken, holder, tuple(chosen)), int(total, 16))


def _hash(voice: Voice) -> bytes:
    return hashlib.blake2b(json.dumps(voice).encode(), digest_size=16).digest()


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
    "WHERE d.whole AND k.component <> d.component AND k.component NOT IN (SELECT component FROM gathered) "
    "AND EXISTS (SELECT 1 FROM claims m CROSS JOIN said u ON u.claim = m.id "
    "CROSS JOIN seen n INDEXED BY seen_by_shown ON n.id = u.seen AND n.shown WHERE m.component = k.component)"
)
"""What a session was shown in one scope lends nothing in another either; kept is nothing of what was shown."""
_NAMED = (
    "SELECT DISTINCT k.component FROM shown x CROSS JOIN said t ON t.seen = x.seen "
    "CROSS JOIN claims k ON k.id = t.claim WHERE x.name IN (…)"
)
_SHOWN_ANEW = (
    "SELECT DISTINCT c.component FROM newly y CROSS JOIN seen n INDEXED BY seen_by_shown ON n.id = y.seen AND n.shown "
    "CROSS JOIN claims c ON c.id = y.claim CROSS JOIN drafts d ON d.component = c.component "
    f"WHERE d.kind NOT IN ({', '.join(repr(kind) for kind in sorted(KINDS) if KINDS[kind].is_template)})"
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


class _PriorDraft(NamedTuple):
    """A draft that is there, and how many tokens its line takes."""

    draft: Draft
    counter: str | None
    tokens: int


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

    def __init__(
        self, database: LedgerDatabase, frame: LedgerIdentity, claims: Callable[[str], Claim], many: int = MANY
    ) -> None:
        """`claims` gives a claim by its id; of drafts with `many` observations is kept what one more needs."""
        self._db, self._frame, self._claims, self._many = database, frame, claims, many
        self._standings = RecordStatuses(database)
        self._gatherings = AggregateTable(database)
        self._fresh: dict[str, IndexedObservation] = {}
        """Observations that just came, for the drafts they are about to make."""

    def soil(self, labels: Iterable[str], *, is_whole: bool = True) -> None:
        """Components have changed; not `is_whole`: by observations alone that came, which `came` is told."""
        rows = [(label, is_whole) for label in labels]
        self._db.many(f"INSERT OR {'REPLACE' if is_whole else 'IGNORE'} INTO dirty VALUES (?, ?)", rows)

    def came(self, new: Iterable[IndexedObservation], said: Sequence[tuple[str, str]]) -> None:
        """Observations came, and which claims they make."""
        for seen in new:
            if len(self._fresh) < MAX_SEEN_IN_MEMORY:
                self._fresh[seen.id] = seen
        query = "SELECT c.id FROM claims c JOIN gathered g ON g.component = c.component WHERE c.id IN (…)"
        kept = {row[0] for row in self._db.among(query, sorted({claim for claim, _ in said}))}
        self._db.many("INSERT OR IGNORE INTO newly VALUES (?, ?)", [pair for pair in said if pair[0] in kept])

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
        more, whole = self._due()
        due = sorted((*more, *whole))
        if not due:
            return 0
        self._standings.leave(due)
        self._drop(whole)  # first: an id may move from one component to another
        for page in _pages(more):
            rows, fell_back = self._continued(page)
            self._drop(page)
            self._insert(rows)
            whole += fell_back
        for page in _pages(sorted(whole)):
            self._gatherings.drop(page)
            self._insert(list(self._drafted(page)))
        self._db.run("DELETE FROM dirty")
        self._db.run("DELETE FROM newly")
        self._fresh.clear()
        return len(due)

    def _due(self) -> tuple[list[str], list[str]]:
        """Components that only grew and of which something is kept, and the others that have changed."""
        self._db.run("UPDATE dirty SET whole = 1 WHERE NOT whole AND component NOT IN (SELECT component FROM gathered)")
        self.soil([row[0] for row in self._db.rows(_SHOWN_ANEW)])
        if self._db.rows(_ANY_SHOWN):
            self.soil([row[0] for row in self._db.rows(_ECHOES)])
        rows = self._db.rows("SELECT component, whole FROM dirty ORDER BY component")
        return [label for label, whole in rows if not whole], [label for label, whole in rows if whole]

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
        found, own, seen = summarize_draft(lending), audience.width in OWN, [one for _, one in lending]
        heard, said = voices(seen, own=own), phrases(seen)
        counts = counted(heard)
        quoted = quoting(found, min(said.values(), key=lambda phrase: phrase.worth).best)
        if len(rows) >= self._many and (KINDS[found.first.kind].is_template or not is_shown):
            self._gatherings.keep(label, Aggregate(found, counts, quoted, total))
            self._gatherings.hear(label, heard)
            self._gatherings.phrase(label, said)
        return _WeighedComponent(label, claims, total, _SupportSummary(found, counts, quoted, audience))

    def _drawn(self, one: _WeighedComponent, quoted: Mapping[str, IndexedObservation]) -> Row:
        digest = _digest(one.label, one.total)
        if one.lends is None:
            return (one.label, *_NO_SUPPORT, digest, *(None,) * 12, None, 0, None, None)
        lends = one.lends
        group = min(filter(None, (self._claims(id_).group for id_ in one.claims)), default="")
        made = draw_draft(lends.found, lends.counts, words(lends.quoted, quoted), one.claims, lends.audience, group)
        return self._row(one.label, made, digest, None)

    def _names(self, label: str) -> set[str]:
        """Ids under which what this component says may have been shown, in whichever scope."""
        rows = self._db.rows(
            "SELECT DISTINCT m.id FROM claims c JOIN said s ON s.claim = c.id JOIN said t ON t.seen = s.seen "
            "JOIN claims k ON k.id = t.claim JOIN claims m ON m.component = k.component WHERE c.component = ?", label
        )  # fmt: skip
        return {row[0] for row in rows}

    # -- from what is kept and what is new ----------------------------------------------------------------------

    def _continued(self, labels: Sequence[str]) -> tuple[list[Row], list[str]]:
        """Drafts of these; and those that have to be made from all observations."""
        new = self._db.among(
            "SELECT c.component, y.claim, y.seen, n.brief, n.shown, 0 FROM claims c "
            "CROSS JOIN newly y ON y.claim = c.id CROSS JOIN seen n ON n.id = y.seen WHERE c.component IN (…)", labels
        )  # fmt: skip
        found: dict[str, list[_ClaimRow]] = defaultdict(list)
        for component, *row in new:
            found[component].append(_ClaimRow(*row))
        kept = self._gatherings.of(labels)
        drafts = self._db.among("SELECT component, body, counter, tokens FROM drafts WHERE component IN (…)", labels)
        before = {label: _PriorDraft(draft_of(body), counter, tokens) for label, body, counter, tokens in drafts}
        rows = {label: self._continue(label, kept[label], before[label], found[label]) for label in labels}
        return [row for row in rows.values() if row], [label for label, row in rows.items() if row is None]

    def _continue(self, label: str, kept: Aggregate, before: _PriorDraft, rows: Sequence[_ClaimRow]) -> Row | None:
        old = before.draft
        members, claims = [row.member for row in rows], {*old.names, *(row.claim for row in rows)}
        lending = supporting(members, claims)
        if not KINDS[old.kind].is_template and lending and lending[0][1].is_said != kept.found.first.is_said:
            if not kept.found.first.is_said:
                return None  # a person says now what no person had said
            lending = []
        self._note_idle(rows, lending)
        group = min(filter(None, (old.group, *(self._claims(row.claim).group for row in rows))), default="")
        total = (kept.total + _total(rows)) % _MODULUS
        found, counts, quoted = kept.found, kept.counts, kept.quoted
        if lending:
            seen = [one for _, one in lending]
            found = join_summaries(found, summarize_draft(lending))
            heard = self._gatherings.hear(label, voices(seen, own=old.audience.width in OWN))
            counts = VoiceCounts(*map(sum, zip(counts, heard, strict=True)))
            quoted = quoting(found, self._gatherings.phrase(label, phrases(seen)))
        self._gatherings.keep(label, Aggregate(found, counts, quoted, total))
        is_same = quoted == kept.quoted
        told = QuotedWords(old.said, old.evidence, old.answers) if is_same else words(quoted, self._seen(quoted.ids))
        made = draw_draft(found, counts, told, claims, old.audience, group)
        return self._row(label, made, _digest(label, total), before)

    # -- inside -------------------------------------------------------------------------------------------------

    def _note_idle(self, rows: Sequence[_ClaimRow], lending: Sequence[tuple[str, ObservationBrief]]) -> None:
        if len(rows) == len(lending) and not any(row.idle for row in rows):
            return
        busy = {(claim, one.id) for claim, one in lending}
        changed = [(row.claim, row.seen) for row in rows if bool(row.idle) == ((row.claim, row.seen) in busy)]
        self._db.many("UPDATE said SET idle = NOT idle WHERE claim = ? AND seen = ?", changed)

    def _row(self, label: str, made: Draft, digest: bytes, before: _PriorDraft | None) -> Row:
        wide, backing, seconds = made.audience.width not in OWN, made.backing, made.moment.seconds
        audience = audience_of(made)
        same = before is not None and line(before.draft) == line(made)
        return (
            label, made.id, made.group, wide, wide and _is_hidden(made), digest, made.kind, made.audience.width,
            backing.strict, backing.scored, backing.said, backing.recovered, backing.helped, *made.advice,
            backing.from_tool,
            None if seconds == float("-inf") else seconds, None if audience is None else json.dumps(audience),
            before.counter if before and same else None, before.tokens if before and same else 0,
            flaw_of(made, self._frame), draft_row(made),
        )  # fmt: skip

    def _seen(self, ids: Collection[str]) -> dict[str, IndexedObservation]:
        found = {id_: self._fresh[id_] for id_ in ids if id_ in self._fresh}
        rows = self._db.among("SELECT id, body FROM seen WHERE id IN (…)", [id_ for id_ in ids if id_ not in found])
        return found | {id_: seen_of(body) for id_, body in rows}


def _pages(labels: Sequence[str]) -> Iterator[Sequence[str]]:
    return (labels[start : start + COMPONENTS_AT_ONCE] for start in range(0, len(labels), COMPONENTS_AT_ONCE))


def _total(rows: Iterable[_ClaimRow]) -> int:
    """Sum of these pairs of claim and observation: of all of a component, it tells two sets apart."""
    return sum(int.from_bytes(hashlib.sha256(f"{row.claim} {row.seen}".encode()).digest(), "big") for row in rows)


def _digest(label: str, total: int) -> bytes:
    return hashlib.sha256(f"{label} {total % _MODULUS:x}".encode()).digest()


def _is_hidden(made: Draft) -> bool:
    """Whether it only repeats what stands in its one author's own scope."""
    return KINDS[made.kind].is_personal and made.backing.said < VOICES_TO_BE_SEEN
