"""Admission: decide whether a record may be used, by its kind, support, age and reviews, and give a reason.

The ledger judges every draft here; a night passes the policy of its settings. These gates make a record active:

    claims of people  k independent principals say it, or a person approves it. A claim about the world (not a wish
                      about the agent) also needs a declared field of a tool's answer, or a rule in force, that says it.
                      If the profile has locked lines, a claim of people waits for a person
    tool fix          it worked in three runs that succeeded, for three principals or tasks, and it repairs a malformed
                      call (`is_repair`) without adding an undeclared argument; else a person decides. A fix that was
                      done in more failed than successful runs is demoted
    environment       tools said it in runs of three tasks, and a person approves it
    policy, persona   a person approves it
    other text        text of tools or of the assistant, and claims that an internal tool denied in the same transcript,
                      need a person

A `candidate` is not used, a `vetted` record waits for a person, an `active` record is used. Reasons are codes. A
record's worth halves once a half-life since it was last confirmed; below `EXPIRE_BELOW` the record expires. A record
without a date does not fade. `AdmissionPolicy` has all thresholds:

    admission:
      independent_principals: 3
      half_life_days: {preference: 180, correction: 365}

Contests are settled last (`settle_contests`). In a slot with one value, the newest active record supersedes older ones.
A record that a person approved yields only to another approved record, and a record that is not active supersedes
nothing, so nobody can knock out what others agreed on. Records that contradict each other both become candidates,
unless a person approved one. Times are Unix seconds; everything is pure.

Source: the state design (trust; gates by kind; k independent principals); half-lives are set by hand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from math import inf, log2
from types import MappingProxyType
from typing import Annotated, ClassVar, NamedTuple, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr

from ctxsteward.language.operators import sentences_of
from ctxsteward.schemas.profile import ProfileDocument
from ctxsteward.schemas.recommendation import MetaRecommendation, RecommendationKind, Review, Status

from .drift.rules import Rule, against, own_text, restates, rules_of
from .harvest.people.claims import is_form_alone
from .harvest.tools.templates import is_figure, is_hintable, is_repair
from .observations.observation import KINDS
from .reconcile.draft import ClaimSupport, Draft, FixAdvice, RecordStanding

DAY_SECONDS = 86_400.0


def worth(last_seconds: float, now_seconds: float | None, half_life_days: float | None) -> float:
    """Return 1 for a record confirmed just now, and half as much for each half-life since.

    >>> worth(0, 30 * DAY_SECONDS, 30), worth(0, None, 30), worth(0, 1e9, None)
    (0.5, 1.0, 1.0)
    """
    if now_seconds is None or half_life_days is None or last_seconds == -inf:
        return 1.0
    age_days = max(0.0, now_seconds - last_seconds) / DAY_SECONDS
    return float(0.5 ** (age_days / half_life_days))


EXPIRE_BELOW = 0.25
"""Worth, of 1 when last confirmed, below which a record expires."""
ToolName = Annotated[StrictStr, Field(min_length=1, max_length=200)]
"""Name of a tool, of an argument, or of a field of its answers."""
Days = Annotated[float, Field(gt=0, allow_inf_nan=False)]
DEFAULT_HALF_LIFE_DAYS = {kind: spec.half_life_days for kind, spec in KINDS.items()}


class AdmissionPolicy(BaseModel):
    """Thresholds of admission, and half-lives."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    independent_principals: Annotated[StrictInt, Field(ge=2, le=1_000)] = 3
    """k: how many people must say the same before others see it."""
    recoveries: Annotated[StrictInt, Field(ge=2, le=1_000)] = 3
    """How many times a fix must have worked in runs that succeeded, and for how many independent principals or
    tasks."""
    reading_tools: Annotated[tuple[ToolName, ...], Field(max_length=1_000)] = ()
    """Tools that the operator declares as changing nothing: a fix of their calls needs no person, unless it adds an
    undeclared argument."""
    tool_arguments: Annotated[dict[ToolName, tuple[ToolName, ...]], Field(max_length=1_000)] = Field(
        default_factory=dict
    )
    """Arguments that the schemas of tools declare: advice to give an undeclared argument waits for a person."""
    unrelated_slots: Annotated[tuple[ToolName, ...], Field(max_length=100)] = ()
    """Slots of wishes about the form of answers, such as ``emoji``. A person has compared them with the locked lines
    and found none of the lines about them, so a wish about nothing else does not wait for a person."""
    half_life_days: Annotated[
        dict[RecommendationKind, Days | None], AfterValidator(lambda given: {**DEFAULT_HALF_LIFE_DAYS, **given})
    ] = Field(default_factory=lambda: dict(DEFAULT_HALF_LIFE_DAYS))
    """By kind, for kinds that are not named the default; None: records of the kind do not fade."""
    rules: tuple[Rule, ...] = ()
    """Lines that no record may contradict; a night takes them from the profile in force (`under`)."""

    def under(self, profile: ProfileDocument | None) -> Self:
        """Return this policy with the rules of a profile."""
        return self.model_copy(update={"rules": rules_of(profile)})


class AdmittedRecords(NamedTuple):
    """The active records, and counts of all records."""

    active: tuple[MetaRecommendation, ...]
    """Sorted by id."""
    digest: str
    """Digest of the content of all records, without dates."""
    now: str = ""
    """Time at which ages were measured, ISO 8601; empty: nothing fades."""
    reviews: Mapping[str, Review] = MappingProxyType({})
    """Decisions of people by record id."""
    statuses: Mapping[str, int] = MappingProxyType({})
    """Number of records by status."""
    refused: int = 0
    """Drafts that the schema of records refused."""


FOR_PEOPLE = frozenset(
    (
        "needs_person",
        "alike",
        "needs_principals",
        "needs_confirmation",
        "fails_more",
        "needs_outcome",
        "needs_recovery",
        "needs_tasks",
        "denied",
        "conflict",
        "beside_locked",
        "edited",
    )
)
"""Reasons that the decision of a person removes."""
WAITING: tuple[Status, ...] = ("candidate", "vetted", "quarantined")
"""Statuses of records that are not used yet and may be reworded."""
HINT = "hint"
"""Reason of a record that is shown only right after the error it is about."""


def is_asked(record: MetaRecommendation) -> bool:
    """Whether a person can decide about a record that waits."""
    return record.status in WAITING and not FOR_PEOPLE.isdisjoint(record.reasons)


def is_hint(record: MetaRecommendation) -> bool:
    """Whether a record is shown only right after the error it is about."""
    return record.status in WAITING and HINT in record.reasons


UNCONFIRMED = RecordStanding("candidate", ("needs_confirmation",))
"""Standing of a claim about the world that enough people make and nothing else confirms."""


def admission_verdict(
    draft: Draft, policy: AdmissionPolicy, now_seconds: float | None = None, review: Review | None = None
) -> RecordStanding:
    """Judge a draft by its support, its age and its review, without regard to other drafts."""
    reviewed = by_person(review)
    if reviewed is not None:
        return reviewed
    if -inf < draft.moment.seconds < last_confirmed(draft.kind, policy, now_seconds):
        return RecordStanding("expired", ("faded",))
    return under_rules(by_support(draft.kind, draft.backing, policy, draft.advice), draft, policy)


def under_rules(verdict: RecordStanding, draft: Draft, policy: AdmissionPolicy) -> RecordStanding:
    """Adjust a verdict to the rules in force.

    A record that plainly contradicts a rule is quarantined. A claim about the world that many people make is active if
    a rule says it word for word. If lines are locked, any other claim waits for a person.
    """
    if not policy.rules or (verdict.status not in ("active", "vetted") and verdict != UNCONFIRMED):
        return verdict
    text = draft.said["text"]
    locked = [rule for rule in policy.rules if rule.locked]
    conflict = against(policy.rules, text)
    if conflict is not None:
        return RecordStanding("quarantined", ("gainsays_locked" if conflict.locked else "gainsays_rule",))
    if verdict == UNCONFIRMED:
        said = any(restates(rule.text, text) for rule in policy.rules)
        return RecordStanding("active", ("governed",)) if said else verdict
    if verdict.status != "active" or not locked or KINDS[draft.kind].is_template:
        return verdict
    if any(restates(rule.text, text) for rule in locked):
        return verdict
    if draft.said["slot"]["attribute"] in policy.unrelated_slots and is_wish_about_form(draft):
        return verdict
    return RecordStanding("vetted", ("beside_locked",))


def is_wish_about_form(draft: Draft) -> bool:
    """Whether a claim is only about how answers are to be written."""
    text = " ".join(sentences_of(own_text(draft.said["text"])))
    return is_form_alone(draft.said["slot"]["attribute"], text, has_amount=draft.said["unit"] is not None)


def by_person(review: Review | None) -> RecordStanding | None:
    """Return the standing that a person decided, which no support or age changes, or None."""
    if review is not None and review.state == "rejected":
        return RecordStanding("rejected", ("rejected_by_person",))
    if review is not None and review.state == "approved" and review.who:
        return RecordStanding("active", ("approved",))
    if review is not None and review.state == "awaiting" and review.text is not None:
        return RecordStanding("vetted", ("edited",))
    return None


def last_confirmed(kind: RecommendationKind, policy: AdmissionPolicy, now_seconds: float | None) -> float:
    """Return the Unix time since which a record of this kind must have been confirmed, or -inf if it never expires.

    >>> last_confirmed("tool_fix", AdmissionPolicy(), 200 * DAY_SECONDS) / DAY_SECONDS
    20.0
    """
    half_life_days = policy.half_life_days[kind]
    if now_seconds is None or half_life_days is None:
        return -inf
    return now_seconds - half_life_days * log2(1 / EXPIRE_BELOW) * DAY_SECONDS


def is_approved(verdict: RecordStanding) -> bool:
    """Whether a record is active because a person approved it."""
    return "approved" in verdict.reasons


def by_support(
    kind: RecommendationKind, backing: ClaimSupport, policy: AdmissionPolicy, advice: FixAdvice = (None, None)
) -> RecordStanding:
    """Judge the support of a claim by the gate of its kind."""
    gate = KINDS[kind].gate
    if gate == "fix":
        return _fix(backing, policy, advice)
    if gate == "seen":
        enough = backing.tasks >= policy.independent_principals
        return RecordStanding("vetted", ("needs_person",)) if enough else RecordStanding("candidate", ("needs_tasks",))
    if backing.from_tool:
        return RecordStanding("candidate", ("tool_text",))
    if not backing.said:
        return RecordStanding("candidate", ("not_said_by_a_person",))
    if backing.denied > backing.confirmed and 2 * backing.denied >= backing.said:
        return RecordStanding("candidate", ("denied",))
    if gate == "person":
        return RecordStanding("vetted", ("needs_person",))
    if backing.alike and backing.said >= policy.independent_principals:
        return RecordStanding("vetted", ("alike",))
    if backing.said < policy.independent_principals:
        return RecordStanding("candidate", ("needs_principals",))
    if backing.votes >= policy.independent_principals:
        return RecordStanding("active", ("independent_principals",))
    return RecordStanding("active", ("confirmed",)) if backing.confirmed else UNCONFIRMED


def _fix(backing: ClaimSupport, policy: AdmissionPolicy, advice: FixAdvice) -> RecordStanding:
    trigger, action = advice
    if backing.obeyed_failed > backing.obeyed_succeeded:
        return RecordStanding("candidate", ("fails_more",))
    times = backing.obeyed_succeeded + backing.accepted
    mends = is_hintable(trigger, action, policy.reading_tools, policy.tool_arguments)
    hint = (HINT,) if mends and times > is_figure(action) else ()
    if not backing.recovered:
        return RecordStanding("candidate", ("needs_outcome", *hint))
    if backing.recovered < policy.recoveries:
        return RecordStanding("candidate", ("needs_recovery", *hint))
    if backing.helped < policy.recoveries:
        return RecordStanding("candidate", ("needs_principals", *hint))
    if is_repair(trigger, action, policy.reading_tools, policy.tool_arguments):
        return RecordStanding("active", ("fix_worked",))
    return RecordStanding("vetted", ("needs_person", *hint))


def settle_contests(
    drafts: Sequence[Draft], verdicts: Mapping[str, RecordStanding], opposed: Mapping[str, Collection[str]]
) -> dict[str, RecordStanding]:
    """Settle which drafts supersede or contradict others; all mappings are by id, and `opposed` is symmetric."""
    by_id = {draft.id: draft for draft in drafts}
    live = {
        id_
        for id_, draft in by_id.items()
        if verdicts[id_].status not in ("rejected", "expired", "quarantined") and draft.backing.said
    }
    conflicts = {id_: live.intersection(opposed.get(id_, ())) for id_ in live}
    now = dict(verdicts)
    for id_, others in conflicts.items():
        if others and not is_approved(verdicts[id_]):
            now[id_] = RecordStanding("candidate", tuple(sorted({*verdicts[id_].reasons, "conflict"})))
    newer_of, older_of = _chains(drafts, now)
    standing = {}
    for id_ in by_id:
        newer = newer_of.get(id_)
        verdict = RecordStanding("superseded", ("newer_value",)) if newer else now[id_]
        standing[id_] = verdict._replace(
            supersedes=tuple(sorted(older_of.get(id_, ()))),
            superseded_by=newer,
            replaced_at=by_id[newer].first if newer else None,
            conflicts=tuple(sorted(conflicts.get(id_, ()))),
            contradicts=sum(by_id[other].backing.said for other in conflicts.get(id_, ())),
        )
    return standing


def _chains(
    drafts: Sequence[Draft], verdicts: Mapping[str, RecordStanding]
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return, for each id, the newer id that supersedes it, and the older ids that it supersedes."""
    groups: dict[str, list[Draft]] = {}
    for draft in drafts:
        if draft.group and verdicts[draft.id].status == "active":
            groups.setdefault(draft.group, []).append(draft)
    newer_of: dict[str, str] = {}
    older_of: dict[str, list[str]] = {}
    for rivals in groups.values():
        line = sorted(rivals, key=lambda draft: (is_approved(verdicts[draft.id]), draft.moment, draft.id))
        for older, newer in pairwise(line):
            newer_of[older.id] = newer.id
            older_of.setdefault(newer.id, []).append(older.id)
    return newer_of, older_of


__all__ = ["AdmissionPolicy", "AdmittedRecords", "RecordStanding", "admission_verdict", "settle_contests"]
