"""Judged drafts written out as records.

What a record says is decided by its observations, the policy and the present. What fits no record is quarantined with
its reason (`flaw_of`). `JudgementContext` says at what time, under which policy, with which reviews, in which run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import ValidationError

from ctxsteward.envelope import Counter
from ctxsteward.schemas import InputError, MetaRecommendation
from ctxsteward.schemas.profile import instant
from ctxsteward.schemas.publish import validate
from ctxsteward.schemas.recommendation import Review

from ..admission import AdmissionPolicy
from ..reconcile.draft import Draft, wilson_lower95

MAX_FLAW_CHARS = 300


class LedgerIdentity(NamedTuple):
    """What all records of a ledger share."""

    tenant: str
    agent: str


def recommendation(draft: Draft, frame: LedgerIdentity, as_of: JudgementContext, tokens: int = 0) -> MetaRecommendation:
    """Return the record; raise pydantic's `ValidationError` if the draft fits none."""
    record = MetaRecommendation(**_fields(draft, frame, as_of, tokens) | {"run": PLAIN.run})
    # The run is the caller's and no fault of the draft: where records are used, the published schema judges it.
    return record.model_copy(update={"run": as_of.run})


def flaw_of(draft: Draft, frame: LedgerIdentity) -> str | None:
    """Why a draft fits no record, by the published schema where that has a word for it; None where it fits."""
    try:
        recommendation(draft, frame, PLAIN)
    except ValidationError as error:
        fields = _fields(draft, frame, PLAIN, 0)
        try:
            validate("meta_recommendation", {"schema_version": 1, "revision": 1, "locked": False, **fields})
        except InputError as told:
            return str(told)[:MAX_FLAW_CHARS]
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        return f"meta_recommendation: at $.{where}: {first['msg']}"[:MAX_FLAW_CHARS]
    return None


def line(draft: Draft, text: str | None = None) -> str:
    """About what it costs to show it: id, text (its own, or other words) and one source, as a profile renders them."""
    first = draft.evidence[0]
    return f"  {draft.id}: {text or draft.said['text']} [{first['session']}{first['ref']}]\n"


def _fields(draft: Draft, frame: LedgerIdentity, as_of: JudgementContext, tokens: int) -> dict[str, Any]:
    standing, review = draft.standing, draft.review
    said = dict(draft.said) | ({"text": review.text} if review is not None and review.text is not None else {})
    backing = draft.backing
    voices = max(1, backing.principals)
    return {
        "id": draft.id,
        "kind": draft.kind,
        "scope": {
            "tenant": frame.tenant,
            "agent": frame.agent,
            "user": None,
            "project": None,
            "session": None,
            "tool": said.pop("tool"),
        },
        **said,
        "evidence": draft.evidence,
        "support": {
            "events": backing.events,
            "sessions": backing.sessions,
            "principals": backing.principals,
            "contradicts": standing.contradicts,
            "first": draft.first,
            "last": draft.last,
        },
        "confidence": {
            "score": round(draft.score * voices / (voices + standing.contradicts), 6),
            "lower95": round(wilson_lower95(voices, standing.contradicts), 6),
            "method": "wilson95/principals",
        },
        "validity": {
            "valid_from": draft.first,
            "valid_to": standing.replaced_at,
            "recorded_at": as_of.now,
            "half_life_days": as_of.policy.half_life(draft.kind),
        },
        "status": standing.status,
        "reasons": tuple(sorted(standing.reasons)),
        "supersedes": tuple(sorted(standing.supersedes)),
        "superseded_by": standing.superseded_by,
        "conflicts": standing.conflicts,
        "run": as_of.run,
        "tokens": tokens,
        "review": review,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgementContext:
    """At what time, under which policy, with which reviews records are judged."""

    now: str | None = None
    """ISO 8601; None: nothing fades."""
    policy: AdmissionPolicy = field(default_factory=AdmissionPolicy)
    reviews: Mapping[str, Review] = field(default_factory=dict)
    """By the id of a record, or one it once had."""
    counter: Counter | None = None
    """Counts the line of each record; None: nothing is counted."""
    run: str = "none"
    """That writes them."""

    @property
    def now_seconds(self) -> float | None:
        return None if self.now is None else instant(self.now)


PLAIN = JudgementContext()
"""At no time, under the default policy, with no review."""
