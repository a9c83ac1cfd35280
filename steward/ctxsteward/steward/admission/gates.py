"""Gates: how far a draft has come by what stands behind it; pure, by kind and scope.

    own scope      a strict cue, or a fact by its cue score, of a person suffices; other cues, and a wish that scores
                   like a fact, need company
    wider scopes   k independent principals, or a person who approves
    tool_fix       the fix worked twice, whoever saw it
    policy, persona   a person, always: at best vetted
    text of tools and of the assistant    never by itself

candidate: held, not used. vetted: fit for use, waits for a person. active: used. Reasons are codes. A review can lift
a record only by approval; `contest` weighs rivals afterwards.

Source: the state design (trust).
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from ctxsteward.schemas.recommendation import RecommendationKind, Review, Status

from ..drift.rules import against, reads_as_rule
from ..reconcile.claims import OWN, Width
from ..reconcile.draft import Draft
from ..reconcile.support import Backing
from .decay import faded_before
from .policy import AdmissionPolicy

NEEDS_PERSON = frozenset(("policy", "persona"))


class Verdict(NamedTuple):
    """How far a draft has come, and why."""

    status: Status
    reasons: tuple[str, ...]


def judged(
    draft: Draft, policy: AdmissionPolicy, now_seconds: float | None = None, review: Review | None = None
) -> Verdict:
    """Judge a draft by itself: its support, its age, what people said of it."""
    said = by_person(review)
    if said is not None:
        return said
    if -inf < draft.moment.seconds < last_confirmed(draft.kind, draft.audience.width, policy, now_seconds):
        return Verdict("expired", ("faded",))
    found = by_support(draft.kind, draft.audience.width, draft.backing, policy)
    return under_rules(found, draft.said["text"], draft.audience.width, policy) if policy.rules else found


def under_rules(verdict: Verdict, text: str, width: Width, policy: AdmissionPolicy) -> Verdict:
    """What the rules in force make of a verdict: what gainsays one is set aside, what touches a locked one waits.

    What is for its author alone is asked of locked lines only, and waits only where it reads as a rule itself.
    """
    if verdict.status not in ("active", "vetted"):
        return verdict
    found = against(policy.rules if width not in OWN else [rule for rule in policy.rules if rule.locked], text)
    if found is None:
        return verdict
    if found.how == "gainsays":
        return Verdict("quarantined", ("gainsays_locked" if found.rule.locked else "gainsays_rule",))
    if width in OWN and not reads_as_rule(text):
        return verdict
    return Verdict("vetted", ("touches_locked",))


def by_person(review: Review | None) -> Verdict | None:
    """What a person decided, whatever stands behind it and however old it is; None: nobody did."""
    if review is not None and review.state == "rejected":
        return Verdict("rejected", ("rejected_by_person",))
    if review is not None and review.state == "approved" and review.who:
        return Verdict("active", ("approved",))
    return None


def last_confirmed(kind: RecommendationKind, width: Width, policy: AdmissionPolicy, now_seconds: float | None) -> float:
    """When a record of this kind must have been confirmed not to have expired; Unix time."""
    half_life_days = policy.half_life(kind, session=width == "session")
    return faded_before(now_seconds, half_life_days, policy.expire_below)


def is_approved(verdict: Verdict) -> bool:
    """Whether a person lifted it."""
    return "approved" in verdict.reasons


def by_support(kind: RecommendationKind, width: Width, backing: Backing, policy: AdmissionPolicy) -> Verdict:
    """How far what stands behind it carries a claim of this kind, for this audience."""
    if kind == "tool_fix":
        if backing.recovered >= policy.recoveries:
            return Verdict("active", ("recovered_twice",))
        return Verdict("candidate", ("needs_recovery",))
    if backing.from_tool:
        return Verdict("candidate", ("tool_text",))
    if not backing.said:
        return Verdict("candidate", ("not_said_by_a_person",))
    if kind in NEEDS_PERSON:
        return Verdict("vetted", ("needs_person",))
    if width in OWN:
        return _own(kind, backing, policy)
    if backing.said >= policy.independent_principals:
        return Verdict("active", ("independent_principals",))
    return Verdict("candidate", ("needs_principals",))


def _own(kind: RecommendationKind, backing: Backing, policy: AdmissionPolicy) -> Verdict:
    if backing.strict >= policy.strict_support:
        return Verdict("active", ("strict_cue",))
    if kind == "fact" and backing.scored >= policy.scored_support:
        return Verdict("active", ("scored_fact",))
    if backing.said >= policy.broad_support:
        return Verdict("active", ("repeated",))
    return Verdict("candidate", ("needs_support",))
