"""Rows of the index as JSON: claims, observations, drafts and how they stand. All of it can be derived again."""

from __future__ import annotations

import json
from operator import attrgetter

from ctxsteward.store import canonical

from ..admission import AdmissionVerdict, RecordStanding
from ..artifacts import EvidenceSpan, observation_fields, observation_of
from ..reconcile import (
    Claim,
    ClaimAudience,
    ClaimFeatures,
    ClaimSupport,
    Draft,
    IndexedObservation,
    ObservationOrigin,
    ObservationTime,
    span_fields,
)

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
