"""Admission: whether a record may be used, judged by kind, support, age and reviews, always with a reason.

The ledger judges every draft here; a night passes the policy of its settings.

    what people say   k independent principals, or a person who approves; of what is claimed of the world, rather than
                   wished of the agent, a declared field of a tool's answer or a rule in force must say the same besides
    beside locks   where the profile has locked lines, what people say waits for a person
    tool fix       it worked in three runs that succeeded, for three principals or tasks, and mends a malformed call
                   (`is_repair`) without an argument that nobody declared; else a person decides. What was done in more
                   runs that failed is demoted
    environment    tools said it in runs of three tasks, and a person decides
    policy, persona   a person, always
    text of tools and of the assistant   never by itself
    what an internal tool denied in the same talk   never by itself

A `candidate` is held and not used, a `vetted` record is fit for use and waits for a person, an `active` one is used.
Reasons are codes. A record expires when its worth, halved once a half-life since it was last confirmed, is below
`expire_below`; a record without any date does not fade. All thresholds stand in `AdmissionPolicy`, and nowhere else:

    admission:
      independent_principals: 3
      half_life_days: {preference: 180, correction: 365}

Contests come last (`settle_contests`). Of a slot with one value the newest active record stands and supersedes the
older ones, but a record that a person approved yields only to another such record, and one that is not active
supersedes nothing: nobody can knock out what others agreed on. Records that say opposite things are both held as
candidates unless a person approved one. Times are Unix seconds; everything is pure.

Source: the state design (trust; gates by kind; k independent principals); hand-set half-lives.
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
from .reconcile.draft import ClaimSupport, Draft, FixAdvice

DAY_SECONDS = 86_400.0


def worth(last_seconds: float, now_seconds: float | None, half_life_days: float | None) -> float:
    """1 when confirmed just now, halved once each half-life.

    >>> worth(0, 30 * DAY_SECONDS, 30), worth(0, None, 30), worth(0, 1e9, None)
    (0.5, 1.0, 1.0)
    """
    if now_seconds is None or half_life_days is None or last_seconds == -inf:
        return 1.0
    age_days = max(0.0, now_seconds - last_seconds) / DAY_SECONDS
    return float(0.5 ** (age_days / half_life_days))


def faded_before(now_seconds: float | None, half_life_days: float | None, expire_below: float) -> float:
    """What was last confirmed before this moment is worth less than `expire_below`; -inf: nothing is.

    >>> faded_before(100 * DAY_SECONDS, 30, 0.25) / DAY_SECONDS
    40.0
    """
    if now_seconds is None or half_life_days is None or expire_below == 0:
        return -inf
    return now_seconds - half_life_days * log2(1 / expire_below) * DAY_SECONDS


ToolName = Annotated[StrictStr, Field(min_length=1, max_length=200)]
"""Name of a tool, of an argument, or of a field of its answers."""
Days = Annotated[float, Field(gt=0, allow_inf_nan=False)]
DEFAULT_HALF_LIFE_DAYS = {kind: spec.half_life_days for kind, spec in KINDS.items()}


def _complete(given: dict[RecommendationKind, float | None]) -> dict[RecommendationKind, float | None]:
    return {**DEFAULT_HALF_LIFE_DAYS, **given}


class AdmissionPolicy(BaseModel):
    """What it takes to be admitted, and how long that lasts."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    independent_principals: Annotated[StrictInt, Field(ge=2, le=1_000)] = 3
    """k: how many must say the same before it reaches others."""
    recoveries: Annotated[StrictInt, Field(ge=2, le=1_000)] = 3
    """How often a fix of a tool error must have worked in runs that succeeded, and for how many independent principals
    or tasks."""
    reading_tools: Annotated[tuple[ToolName, ...], Field(max_length=1_000)] = ()
    """Tools that change nothing, as the operator says: whatever fixes a call of theirs needs no person, but for an
    argument that is not declared."""
    tool_arguments: Annotated[dict[ToolName, tuple[ToolName, ...]], Field(max_length=1_000)] = Field(
        default_factory=dict
    )
    """Arguments that tools take, as their schemas declare them: advice to give another one waits for a person."""
    unrelated_slots: Annotated[tuple[ToolName, ...], Field(max_length=100)] = ()
    """Slots of wishes about the form of answers, such as ``emoji``, that a person has compared with the locked lines:
    none of them is about these. Such a wish that says nothing besides does not wait for a person."""
    half_life_days: Annotated[dict[RecommendationKind, Days | None], AfterValidator(_complete)] = Field(
        default_factory=lambda: dict(DEFAULT_HALF_LIFE_DAYS)
    )
    expire_below: Annotated[float, Field(ge=0, lt=1)] = 0.25
    """Worth, of 1 when last confirmed."""
    rules: tuple[Rule, ...] = ()
    """Lines that no record may gainsay; a night takes them from the profile in force (`under`)."""

    def under(self, profile: ProfileDocument | None) -> Self:
        """This policy with the rules of a profile."""
        return self.model_copy(update={"rules": rules_of(profile)})

    def half_life(self, kind: RecommendationKind) -> float | None:
        """In days; None: it does not fade."""
        return self.half_life_days[kind]


class RecordStanding(NamedTuple):
    """How far a draft has come, why, and which records contest it."""

    status: Status
    reasons: tuple[str, ...]
    supersedes: tuple[str, ...] = ()
    superseded_by: str | None = None
    replaced_at: str | None = None
    """When what supersedes it was first said."""
    conflicts: tuple[str, ...] = ()
    contradicts: int = 0
    """Independent voices that say the opposite."""


class AdmittedRecords(NamedTuple):
    """All records after the gates of admission: those that are active, and what the others come to."""

    active: tuple[MetaRecommendation, ...]
    """By id."""
    digest: str
    """Digest of what all records say, without the time since when they say it."""
    now: str = ""
    """The moment by which records age, ISO 8601; empty: nothing fades."""
    reviews: Mapping[str, Review] = MappingProxyType({})
    """Decisions of people by record."""
    statuses: Mapping[str, int] = MappingProxyType({})
    """Records by status."""
    refused: int = 0
    """Would-be records that their schema refused."""


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
"""Reasons that a person can lift at once."""
WAITING: tuple[Status, ...] = ("candidate", "vetted", "quarantined")
"""Statuses of records that are held, and can be given other words."""
HINT = "hint"
"""Reason of a record that is shown right after the very error, and nowhere else."""


def is_asked(record: MetaRecommendation) -> bool:
    """Whether a record waits for something that a person can lift."""
    return record.status in WAITING and not FOR_PEOPLE.isdisjoint(record.reasons)


def is_hint(record: MetaRecommendation) -> bool:
    """Whether a record is shown after the very error that it is about, and nowhere else."""
    return record.status in WAITING and HINT in record.reasons


UNCONFIRMED = RecordStanding("candidate", ("needs_confirmation",))
"""Enough people claim it of the world, and nothing but their word says so."""


def admission_verdict(
    draft: Draft, policy: AdmissionPolicy, now_seconds: float | None = None, review: Review | None = None
) -> RecordStanding:
    """Judge a draft by itself: its support, its age, and its review."""
    reviewed = by_person(review)
    if reviewed is not None:
        return reviewed
    if -inf < draft.moment.seconds < last_confirmed(draft.kind, policy, now_seconds):
        return RecordStanding("expired", ("faded",))
    return under_rules(by_support(draft.kind, draft.backing, policy, draft.advice), draft, policy)


def under_rules(verdict: RecordStanding, draft: Draft, policy: AdmissionPolicy) -> RecordStanding:
    """A verdict by the rules in force: on what is fit for use, and on what waits for somebody to say the same.

    What plainly contradicts a rule is quarantined. What many claim of the world is active where a rule says it word for
    word. Where lines are locked, any other claim waits for a person.
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
    """Whether a claim says how answers are to be written and nothing besides."""
    text = " ".join(sentences_of(own_text(draft.said["text"])))
    return is_form_alone(draft.said["slot"]["attribute"], text, has_amount=draft.said["unit"] is not None)


def by_person(review: Review | None) -> RecordStanding | None:
    """What a person decided, whatever stands behind it and however old it is; None: nobody did."""
    if review is not None and review.state == "rejected":
        return RecordStanding("rejected", ("rejected_by_person",))
    if review is not None and review.state == "approved" and review.who:
        return RecordStanding("active", ("approved",))
    if review is not None and review.state == "awaiting" and review.text is not None:
        return RecordStanding("vetted", ("edited",))
    return None


def last_confirmed(kind: RecommendationKind, policy: AdmissionPolicy, now_seconds: float | None) -> float:
    """When a record of this kind must have been confirmed not to have expired; Unix time."""
    return faded_before(now_seconds, policy.half_life(kind), policy.expire_below)


def is_approved(verdict: RecordStanding) -> bool:
    """Whether a person's approval made it active."""
    return "approved" in verdict.reasons


def by_support(
    kind: RecommendationKind, backing: ClaimSupport, policy: AdmissionPolicy, advice: FixAdvice = (None, None)
) -> RecordStanding:
    """The verdict that the support of a claim earns, by its kind."""
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
    if backing.said >= policy.independent_principals:
        return _many(backing, policy)
    return RecordStanding("candidate", ("needs_principals",))


def _many(backing: ClaimSupport, policy: AdmissionPolicy) -> RecordStanding:
    """Of what enough people said."""
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
    """Weigh drafts that may contest each other; by id, as are the verdicts. `opposed` is symmetric."""
    by_id = {draft.id: draft for draft in drafts}
    conflicts = _conflicts(by_id, verdicts, opposed)
    now = {id_: _held(verdicts[id_]) if conflicts.get(id_) else verdicts[id_] for id_ in by_id}
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


def _held(verdict: RecordStanding) -> RecordStanding:
    """Demote a verdict to `candidate` because of a conflict, unless a person approved it."""
    if is_approved(verdict):
        return verdict
    return RecordStanding("candidate", tuple(sorted({*verdict.reasons, "conflict"})))


def _conflicts(
    by_id: Mapping[str, Draft], verdicts: Mapping[str, RecordStanding], opposed: Mapping[str, Collection[str]]
) -> dict[str, set[str]]:
    live = {
        id_
        for id_, draft in by_id.items()
        if verdicts[id_].status not in ("rejected", "expired", "quarantined") and draft.backing.said
    }
    return {id_: set(opposed.get(id_, ())) & live for id_ in live if set(opposed.get(id_, ())) & live}


def _chains(
    drafts: Sequence[Draft], verdicts: Mapping[str, RecordStanding]
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Of each id the newer one that takes its place, and the older ones whose place it takes."""
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
