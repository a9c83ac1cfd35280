"""Rows of the index as JSON: claims, observations, drafts and how they stand. All of it can be derived again."""

from __future__ import annotations

import json
from operator import attrgetter
from typing import Any

from ctxsteward.store.profiles.meta_records import canonical

from ..admission import AdmissionVerdict, RecordStanding
from ..artifacts.artifact import EvidenceSpan, observation_fields, observation_of
from ..reconcile.claims import Claim, ClaimAudience, ObservationOrigin
from ..reconcile.draft import Draft, DraftSummary, span_fields
from ..reconcile.features import ClaimFeatures
from ..reconcile.indexed_observation import IndexedObservation, ObservationBrief, ObservationTime
from ..reconcile.support import ClaimSupport

_PLAIN = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def claim_row(claim: Claim) -> str:
    """A claim as text."""
    fields, wording = _CLAIM_VALUES(claim), claim.wording
    sets = [sorted(found) for found in _SET_VALUES(wording)] if wording else []
    words = [wording.tokens, None if wording.frame == wording.tokens else wording.frame] if wording else []
    return _PLAIN.encode([fields, claim.audience, wording and wording.negative, words, sets])


def claim_of(row: str) -> Claim:
    """The inverse of `claim_row`."""
    fields, audience, negative, words, sets = json.loads(row)
    wording = None
    if negative is not None:
        tokens, frame = words
        found = dict(zip(_SETS, map(frozenset, sets), strict=True))
        wording = ClaimFeatures(
            tokens=tuple(tokens), frame=tuple(tokens if frame is None else frame), negative=negative, **found
        )
    named = dict(zip(_CLAIM, fields, strict=True))
    return Claim(**named, audience=ClaimAudience(*audience), wording=wording)


_SETS = ("content", "values", "names", "openers", "limits", "contrasts")
_SET_VALUES = attrgetter(*_SETS)
_CLAIM = tuple(name for name in Claim.__slots__ if name not in ("audience", "wording"))
_CLAIM_VALUES = attrgetter(*_CLAIM)


def seen_row(seen: IndexedObservation) -> str:
    """An observation as text."""
    told = seen.told or canonical(observation_fields(seen.observation)).decode()
    return f'["{seen.id}",{told},{_PLAIN.encode([seen.origin, seen.spans, sorted(seen.shown)])[1:]}'


def seen_of(row: str) -> IndexedObservation:
    """The inverse of `seen_row`."""
    id_, observation, origin, spans, shown = json.loads(row)
    return IndexedObservation(
        id=id_, observation=observation_of(observation), origin=ObservationOrigin(*origin),
        spans=tuple(EvidenceSpan(*span) for span in spans), shown=frozenset(shown),
    )  # fmt: skip


def brief_row(brief: ObservationBrief) -> str:
    """What a draft weighs of an observation, as text."""
    return _PLAIN.encode(_brief_fields(brief))


def brief_of(row: str) -> ObservationBrief:
    """The inverse of `brief_row`."""
    return _brief(json.loads(row))


def _brief_fields(brief: ObservationBrief) -> list[Any]:
    """As JSON values; a time that was not told is null."""
    id_, seconds, *rest, shown = brief
    return [id_, None if seconds == float("-inf") else seconds, *rest, sorted(shown)]


def _brief(fields: list[Any]) -> ObservationBrief:
    id_, seconds, *rest, shown = fields
    return ObservationBrief._make((id_, float("-inf") if seconds is None else seconds, *rest, frozenset(shown)))


def gathered_row(found: DraftSummary) -> list[Any]:
    """What was gathered of a draft's observations, as JSON values; each observation once."""
    seen: dict[str, tuple[int, ObservationBrief]] = {}

    def at(one: ObservationBrief | None) -> int | None:
        return None if one is None else seen.setdefault(one.id, (len(seen), one))[0]

    told = [at(one) for one in found.told or ()]
    places = [at(found.first), at(found.last), at(found.single), told, [at(one) for one in found.choosable]]
    rows = [_brief_fields(one) for _, one in seen.values()]
    return [found.claim, found.score, found.sensitivity, found.is_from_tool, places, rows]


def gathered_of(fields: list[Any]) -> DraftSummary:
    """The inverse of `gathered_row`."""
    claim, score, sensitivity, is_from_tool, (first, last, single, told, choosable), rows = fields
    seen = [_brief(row) for row in rows]
    return DraftSummary(
        claim=claim, first=seen[first], last=seen[last], told=(seen[told[0]], seen[told[1]]) if told else None,
        single=None if single is None else seen[single], score=score, sensitivity=sensitivity,
        is_from_tool=is_from_tool, choosable=tuple(seen[at] for at in choosable),
    )  # fmt: skip


def draft_row(draft: Draft) -> str:
    """A draft as text; a time that was not told is null."""
    seconds, *rest = draft.moment
    moment = [None if seconds == float("-inf") else seconds, *rest]
    evidence = [tuple(one.values()) for one in draft.evidence]
    return _PLAIN.encode([_DRAFT_VALUES(draft), _BACKING_VALUES(draft.backing), moment, evidence])


def draft_of(row: str) -> Draft:
    """The inverse of `draft_row`."""
    fields, backing, (seconds, ordinal, *rest), evidence = json.loads(row)
    named = dict(zip(_DRAFT, fields, strict=True))
    moment = ObservationTime(float("-inf") if seconds is None else seconds, tuple(ordinal), *rest)
    return Draft(
        **{**named, "names": tuple(named["names"]), "audience": ClaimAudience(*named["audience"])},
        backing=ClaimSupport(**dict(zip(_BACKING, backing, strict=True))),
        moment=moment,
        evidence=tuple(span_fields(*one) for one in evidence),
    )


_BACKING = ClaimSupport.__slots__
_BACKING_VALUES = attrgetter(*_BACKING)
_DRAFT = tuple(name for name in Draft.__slots__ if name not in ("backing", "moment", "evidence"))
_DRAFT_VALUES = attrgetter(*_DRAFT)


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
