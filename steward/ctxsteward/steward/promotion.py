"""Promotion: a challenger comes into force, or it is said what is in the way.

    committed   it is a version of the profile now, with addresses of what it rests on beside it
    blocked     something is in the way: a failed guard, people who have not agreed, a champion that has moved on
    unchanged   it says what is in force

Nothing is taken on trust: the drift report is made again from the two documents, the gate report must be about them,
signatures are checked, what was rolled back returns by a person's will alone, and the commit is a compare-and-swap
under the epoch of the writer's lease. The commit's id is an HMAC of the content and its parent, so the same promotion
twice is one version.

What stands beside the version, so that whoever reads it sees what it rests on: `promotion_form`.

Raises what `ProfileVersions.commit` raises. Source: the state design (committing governed state).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from ctxsteward.envelope.keys import address_of
from ctxsteward.envelope.slices import canonical
from ctxsteward.envelope.store import Store
from ctxsteward.envelope.versions import ProfileVersions, Told, Version
from ctxsteward.schemas.drift import DriftLimits, DriftReport
from ctxsteward.schemas.profile import ProfileDocument

from .approvals import Approval, Approvals, Request, people_needed
from .drift import Base, report
from .gate.port import GateReport
from .promotion_form import Form
from .taken_back import STATED, content, taken_back

Outcome = Literal["committed", "blocked", "unchanged"]
Obstacle = Literal["gate_failed", "needs_approval", "rejected", "stale_parent", "other_drift", "other_gate"]

MAX_LOOK_BACK = 64
"""Versions that are looked through for the last one a person approved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """What became of a challenger."""

    kind: Outcome
    version: Version | None
    """In force now; None: there is none."""
    obstacle: Obstacle | None = None
    why: str = ""
    """What is in the way, and what to do."""
    people: int = 0
    """How many must approve."""
    approvals: tuple[Approval, ...] = ()
    request: Request | None = None
    """Where people are asked."""


def assess(
    versions: ProfileVersions, challenger: ProfileDocument, *, parent: int, when: str, limits: DriftLimits | None = None
) -> DriftReport:
    """The drift report of a challenger of version `parent` (0: of none), with the cumulative comparison."""
    limits = limits or DriftLimits()
    if parent == 0:
        return report(None, challenger, limits)
    champion = versions.at(parent).profile
    return report(champion, challenger, limits, base_of(versions, parent, when=when, limits=limits))


def base_of(versions: ProfileVersions, parent: int, *, when: str, limits: DriftLimits) -> Base | None:
    """The last version up to `parent` that a person approved, or the one in force when the window began.

    None where that is `parent` itself: there is nothing to add up.
    """
    start = max(1, parent - MAX_LOOK_BACK)
    told = [each for each in versions.told(start) if each.entry.version <= parent]
    begins = _moment(when) - timedelta(days=limits.window_nights)
    approved = {each.entry.version for each in told if _by_a_person(each, told)}
    number = start
    for each in reversed(told):
        if each.entry.version in approved or _moment(each.entry.when) <= begins:
            number = each.entry.version
            break
    if number == parent:
        return None
    return Base(number, versions.at(number).profile, parent + 1 - number)


def promote(
    store: Store,
    profile_name: str,
    challenger: ProfileDocument,
    drift: DriftReport,
    gate: GateReport,
    approvals: Approvals | None,
    who: str,
    why: str,
    when: str,
    *,
    tenant: str = "default",
    parent: int | None = None,
    epoch: int | None = None,
    commit_id: str | None = None,
    canary: Mapping[str, Any] | None = None,
) -> Promotion:
    """Commit a challenger of version `parent` (default: the one the drift report names), or say what is in the way.

    `who` is its author, whose own approval never counts. `approvals`: where people are asked and answer; None: nobody
    can, so that only what needs nobody is committed. `canary`: as `canary.started` gives it; None: for all sessions.
    """
    versions = store.profiles(profile_name, tenant=tenant)
    after = (drift.champion or 0) if parent is None else parent
    chosen = commit_id or commit_id_of(store, profile_name, challenger, parent=after, tenant=tenant)
    head = versions.head()
    if head is not None and head.number == after + 1 and head.commit_id == chosen:
        return Promotion(kind="committed", version=head)
    if head is not None and same_content(head.profile, challenger):
        return Promotion(kind="unchanged", version=head)
    if (head.number if head else 0) != after:
        now = head.number if head else 0
        return _blocked(head, "stale_parent", f"version {now} is in force, not {after}; stage it anew")
    if drift != assess(versions, challenger, parent=after, when=when, limits=drift.limits):
        return _blocked(head, "other_drift", "the drift report is of another challenger; make it anew")
    if not gate.is_of(head.profile if head else None, challenger):
        return _blocked(head, "other_gate", "the gate report is of another challenger; replay it anew")
    if not gate.passed:
        return _blocked(head, "gate_failed", f"guards fell: {', '.join(gate.failed)}")
    champion = head.profile if head else ProfileDocument()
    taken = taken_back(store, versions, after)
    people = max(people_needed(drift), int(taken.brings(champion, challenger)))
    agreed = _agreed(approvals, challenger, drift, people, parent=after, who=who, when=when)
    if isinstance(agreed, Promotion):
        return replace(agreed, version=head)
    form = Form(store, versions)
    rests_on = form.promotion(head.profile if head else None, challenger, drift, gate, agreed, canary, chosen)
    rests_on[STATED] = dict(sorted(taken.after(challenger).when.items()))
    landed = versions.commit(
        challenger, who=who, why=why, when=when, parent=after, epoch=epoch, commit_id=chosen, promotion=rests_on
    )
    return Promotion(kind="committed", version=landed, people=people, approvals=agreed)


def rollback(
    store: Store,
    profile_name: str,
    to: int,
    *,
    who: str,
    why: str,
    when: str,
    tenant: str = "default",
    epoch: int | None = None,
) -> Version:
    """Bring the content of version `to` back as a new version; where it is in force, nothing happens.

    A call repeated after an unknown outcome rolls back once.
    """
    versions = store.profiles(profile_name, tenant=tenant)
    parent = versions.newest().number
    data = canonical(["rollback", to, parent])
    chosen = address_of(store.keys.address_key(tenant), versions.folder, "rollback", data)
    return versions.rollback(to, who=who, why=why, when=when, parent=parent, epoch=epoch, commit_id=chosen)


def commit_id_of(
    store: Store, profile_name: str, challenger: ProfileDocument, *, parent: int, tenant: str = "default"
) -> str:
    """The id of a promotion: what is promoted, and after which version."""
    versions = store.profiles(profile_name, tenant=tenant)
    data = canonical([parent, content(challenger)])
    return address_of(store.keys.address_key(tenant), versions.folder, "promotion", data)


def same_content(one: ProfileDocument, other: ProfileDocument) -> bool:
    """Whether two documents say the same; their names and numbers are not looked at."""
    return content(one) == content(other)


def _blocked(head: Version | None, obstacle: Obstacle, why: str, **more: Any) -> Promotion:
    return Promotion(kind="blocked", version=head, obstacle=obstacle, why=why, **more)


def _agreed(
    approvals: Approvals | None,
    challenger: ProfileDocument,
    drift: DriftReport,
    people: int,
    *,
    parent: int,
    who: str,
    when: str,
) -> tuple[Approval, ...] | Promotion:
    """The approvals there are, where they suffice; else what is lacking, with people asked."""
    if people == 0:
        return ()
    if approvals is None:
        return _blocked(None, "needs_approval", f"{people} must approve, and nobody is configured to", people=people)
    address = approvals.address(challenger, parent, who)
    said = approvals.valid(address, author=who, when=when)
    refusers = [each.who for each in said if each.verdict == "reject"]
    if refusers:
        return _blocked(None, "rejected", f"{', '.join(refusers)} rejected it", people=people, approvals=said)
    if len(said) >= people:
        return said
    request = approvals.request(challenger, drift, parent=parent, author=who, when=when, people=people)
    lacking = f"{people - len(said)} of {people} must approve request {request.id} still"
    return _blocked(None, "needs_approval", lacking, people=people, approvals=said, request=request)


def _by_a_person(told: Told, others: list[Told]) -> bool:
    """Whether a person answers for what this version says: approved it, wrote it, or did so where it was restored."""
    if told.entry.restores is not None:
        restored = next((each for each in others if each.entry.version == told.entry.restores), None)
        return restored is not None and _by_a_person(restored, others)
    return told.promotion is None or bool(told.promotion.get("approvals"))


def _moment(when: str) -> datetime:
    moment = datetime.fromisoformat(when)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
