"""Rows of the index as JSON: claims, observations and how records stand; and what is read out of them: drafts.

What a row's columns say is not said again in its text. Of a draft no text is kept: what it weighs are columns, what it
quotes are observations, so it is drawn again where it is read. All of it can be derived again from artifacts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from ctxsteward.store import canonical

from ..admission import AdmissionVerdict, RecordStanding
from ..artifacts import EvidenceSpan, observation_fields, observation_of
from ..reconcile import (
    Claim,
    ClaimAudience,
    ClaimFeatures,
    Draft,
    DraftSummary,
    IndexedObservation,
    ObservationBrief,
    ObservationOrigin,
    draw_draft,
    summarize_draft,
)
from .database import LedgerDatabase

_PLAIN = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def claim_row(claim: Claim) -> str:
    """What the columns of a claim leave out, as text."""
    fields, wording = _CLAIM_VALUES(claim), claim.wording
    if wording is None:
        return _PLAIN.encode([*fields])
    sets = [_row_of(sorted(found)) for found in _SET_VALUES(wording)]
    frame = 0 if wording.frame == wording.tokens else _row_of(wording.frame)
    return _PLAIN.encode([*fields, int(wording.negative), _row_of(wording.tokens), frame, *sets])


def claim_of(id: str, audience: str, row: str) -> Claim:
    """The inverse of `claim_row`; `id` and `audience` are columns."""
    told = json.loads(row)
    fields, told = told[: len(_CLAIM)], told[len(_CLAIM) :]
    wording = None
    if told:
        negative, tokens, frame, *sets = told
        found = {name: frozenset(_words_of(words)) for name, words in zip(_SETS, sets, strict=True)}
        words = tuple(_words_of(tokens))
        wording = ClaimFeatures(
            tokens=words, frame=words if frame == 0 else tuple(_words_of(frame)), negative=bool(negative), **found
        )
    named = dict(zip(_CLAIM, fields, strict=True))
    return Claim(id=id, **named, audience=ClaimAudience(*json.loads(audience)), wording=wording)


def _row_of(words: Sequence[str]) -> str | Sequence[str]:
    """Words in one text where that can be taken apart again."""
    text = "|".join(words)
    return text if words and text.count("|") == len(words) - 1 else words


def _words_of(row: str | Sequence[str]) -> Sequence[str]:
    return row.split("|") if isinstance(row, str) else row


_SETS = ("content", "values", "names", "openers", "limits", "contrasts")
_SET_VALUES = attrgetter(*_SETS)
_CLAIM = tuple(name for name in Claim.__slots__ if name not in ("id", "audience", "wording"))
_CLAIM_VALUES = attrgetter(*_CLAIM)


def seen_row(seen: IndexedObservation) -> str:
    """What the columns of an observation's brief leave out, as text."""
    observation, brief = seen.observation, seen.brief
    rest = {name: value for name, value in observation_fields(observation).items() if name not in _NOT_REST}
    slot = observation.slot
    spans = [
        [span.ref, span.start, span.stop, span.address, span.role, span.trust, span.relation]
        if (span.principal, span.ts) == (brief.principal, brief.ts)
        else [span.ref, span.start, span.stop, span.address, span.role, span.trust, span.relation, span[6], span[7]]
        for span in seen.spans
    ]
    of_spans = tuple(_place_of(span) for span in seen.spans) == observation.places
    places, ts = None if of_spans else observation.places, 1 if observation.ts == brief.ts else observation.ts
    of_slot = [slot.subject, slot.attribute]
    return _PLAIN.encode([rest, of_slot, seen.origin.project, spans, places, ts, sorted(seen.shown)])


def seen_of(brief: ObservationBrief, row: str) -> IndexedObservation:
    """The inverse of `seen_row`."""
    rest, (subject, attribute), project, told, places, ts, shown = json.loads(row)
    spans = tuple(
        EvidenceSpan._make((*first, *(own or (brief.principal, brief.ts)), relation))
        for *first, relation, own in ((*row[:7], row[7:]) for row in told)
    )
    slot = [subject, attribute, "one" if brief.is_single else "many"]
    named = {name: getattr(brief, name) for name in _IN_COLUMNS} | {"ts": brief.ts if ts == 1 else ts}
    found = [_place_of(span) for span in spans] if places is None else places
    return IndexedObservation(
        id=brief.id, observation=observation_of({**rest, **named, "slot": slot, "places": found}),
        origin=ObservationOrigin(brief.source, brief.session, project), spans=spans, shown=frozenset(shown),
    )  # fmt: skip


def _place_of(span: EvidenceSpan) -> tuple[str, int, int, str]:
    return (span.ref, span.start, span.stop, span.relation)


_IN_COLUMNS = ("kind", "text", "strength", "score", "principal", "sensitivity", "extractor")
_NOT_REST = frozenset((*_IN_COLUMNS, "slot", "places", "ts"))
BRIEF = ", ".join(f"n.{name}" for name in ObservationBrief._fields)
"""Columns of `seen`."""


def observations(database: LedgerDatabase, ids: Iterable[str]) -> dict[str, IndexedObservation]:
    """Observations, whole, by id."""
    rows = database.among(f"SELECT {BRIEF}, n.body FROM seen n WHERE n.id IN (…)", ids)
    briefs = ((ObservationBrief._make(row[:-1]), row[-1]) for row in rows)
    return {brief.id: seen_of(brief, body) for brief, body in briefs}


def number_of(claim: str) -> int:
    """A claim's id, 16 hex digits, as SQLite keeps it in eight bytes."""
    return int(claim, 16) - (1 << 63)


def claim_id_of(number: int) -> str:
    """The inverse of `number_of`."""
    return f"{number + (1 << 63):016x}"


class ComponentRows(NamedTuple):
    """What a component is made of."""

    members: list[tuple[str, ObservationBrief, int]]
    """A claim, one of its observations, and whether that is idle."""
    audience: ClaimAudience
    group: str

    def summary(self, lending: Sequence[tuple[str, ObservationBrief]]) -> DraftSummary | None:
        return summarize_draft(lending, own=self.audience.width == "user")

    def draft(self, found: DraftSummary, seen: Mapping[str, IndexedObservation]) -> Draft:
        return draw_draft(found, seen, {claim for claim, _, _ in self.members}, self.audience, self.group)


def component_rows(database: LedgerDatabase, labels: Collection[str]) -> dict[str, ComponentRows]:
    """What components are made of, by label in order."""
    found: dict[str, list[tuple[str, ObservationBrief, int]]] = defaultdict(list)
    for row in database.among(
        f"SELECT c.component, c.id, s.idle, {BRIEF} FROM claims c JOIN said s ON s.claim = c.id "
        "JOIN seen n ON n.id = s.seen WHERE c.component IN (…)", labels
    ):  # fmt: skip
        found[row[0]].append((row[1], ObservationBrief._make(row[3:]), row[2]))
    frames = {
        component: (ClaimAudience(*json.loads(audience)), group)
        for component, audience, group in database.among(
            "SELECT component, min(audience), coalesce(min(nullif(rivals, '')), '') FROM claims "
            "WHERE component IN (…) GROUP BY component", labels
        )
    }  # fmt: skip
    return {label: ComponentRows(rows, *frames[label]) for label, rows in sorted(found.items())}


def drafts_of(database: LedgerDatabase, labels: Collection[str]) -> dict[str, Draft]:
    """The drafts of components, by label; none of one that makes none. They are drawn again, not kept."""
    rows = component_rows(database, labels)
    weighed = {
        label: found
        for label, one in rows.items()
        if (lending := [(claim, brief) for claim, brief, idle in one.members if not idle])
        and (found := one.summary(lending)) is not None
    }
    quoted = observations(database, {id_ for one in weighed.values() for id_ in one.quoted})
    return {label: rows[label].draft(found, quoted) for label, found in weighed.items()}


def standing_row(standing: RecordStanding) -> str:
    """How a record stands, as text; what is nothing is left out."""
    verdict = standing.verdict
    fields = {name: value for name in _STANDING if (value := getattr(standing, name))}
    return canonical([verdict.status, verdict.reasons, fields]).decode()


def standing_of(row: str) -> RecordStanding:
    """The inverse of `standing_row`."""
    status, reasons, fields = json.loads(row)
    for name in ("supersedes", "conflicts"):
        fields[name] = tuple(fields.get(name, ()))
    return RecordStanding(verdict=AdmissionVerdict(status, tuple(reasons)), **fields)


_STANDING = tuple(name for name in RecordStanding.__slots__ if name != "verdict")
