"""Write judged drafts as records.

A record depends on its observations, the policy and the time. A draft that the schema of records refuses is left out
with a reason (`flaw_of`). `JudgementContext` has the time, the policy, the reviews and the run.
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
    """Tenant and agent, which all records of a ledger share."""

    tenant: str
    agent: str


def recommendation(draft: Draft, frame: LedgerIdentity, as_of: JudgementContext, tokens: int = 0) -> MetaRecommendation:
    """Return the record of a draft; raise pydantic's `ValidationError` if the schema refuses it."""
    record = MetaRecommendation(**_fields(draft, frame, as_of, tokens) | {"run": PLAIN.run})
    # A bad run name is the caller's fault, not the draft's: the published schema judges it where records are used.
    return record.model_copy(update={"run": as_of.run})


def flaw_of(draft: Draft, frame: LedgerIdentity) -> str | None:
    """Return why the schema of records refuses a draft, in the words of the published schema if possible, or None."""
    try:
        recommendation(draft, frame, PLAIN)
    except ValidationError as error:
        fields = _fields(draft, frame, PLAIN, 0)
        try:
            validate("meta_recommendation", {"schema_version": 1, "revision": 1, "locked": False, **fields})
        except InputError as refusal:
            return str(refusal)[:MAX_FLAW_CHARS]
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        return f"meta_recommendation: at $.{where}: {first['msg']}"[:MAX_FLAW_CHARS]
    return None


def line(draft: Draft, text: str | None = None) -> str:
    """Return the draft's line in a profile, to count tokens: id, text (its own, or `text`) and one source."""
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
            "half_life_days": as_of.policy.half_life_days[draft.kind],
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
    """The time, policy and reviews by which records are judged."""

    now: str | None = None
    """ISO 8601 time; None for records that do not fade."""
    policy: AdmissionPolicy = field(default_factory=AdmissionPolicy)
    reviews: Mapping[str, Review] = field(default_factory=dict)
    """Reviews by the present or an earlier id of a record."""
    counter: Counter | None = None
    """Counter of the tokens of each record's line; with None, records have no tokens."""
    run: str = "none"
    """Run that writes the records."""

    @property
    def now_seconds(self) -> float | None:
        return None if self.now is None else instant(self.now)


PLAIN = JudgementContext()
"""No time, the default policy, no reviews."""
