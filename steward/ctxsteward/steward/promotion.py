"""Promotion: a challenger comes into force, or it is said what is in the way. There is no other way in.

    committed   it is a version of the profile now, with addresses of what it rests on beside it
    blocked     something is in the way: a failed guard, people who have not agreed, a champion that has moved on
    unchanged   it says what is in force

`stage` is the first half: it is judged, and people are asked. What a person has written (persona, policies, rails,
surface, a record of their own) waits for another person, whoever stages it; what a night has harvested does where its
drift says so.

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
from ctxsteward.envelope.proposal import by_people, same_text
from ctxsteward.envelope.slices import canonical
from ctxsteward.envelope.store import Store
from ctxsteward.envelope.versions import ProfileVersions, Told, Version
from ctxsteward.schemas.drift import DriftLimits, DriftReport
from ctxsteward.schemas.profile import BLOCKS, ProfileDocument

from .approvals import Approval, Approvals, Request, people_needed
from .drift import Base, report
from .gate.port import GateReport
from .promotion_form import Form
from .taken_back import STATED, TakenBack, content, taken_back

Outcome = Literal["committed", "blocked", "unchanged"]
Obstacle = Literal["gate_failed", "needs_approval", "rejected", "stale_parent", "other_drift", "other_gate"]

MAX_LOOK_BACK = 64
"""Versions that are looked through for the one in force when the window began."""
SINCE = "approved"
"""The key beside a version that nobody approved: the last one before it that somebody had."""


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
    """The last version up to `parent` that a person approved; the one in force when the window began, if it is later
    and says the same of persona, policies, rails and surface.

    None where that is `parent` itself: there is nothing to add up.
    """
    approved = _approved(versions, parent)
    number, profile = approved, versions.at(approved).profile
    begins = _moment(when) - timedelta(days=limits.window_nights)
    start = max(approved + 1, parent - MAX_LOOK_BACK)
    known = [told.entry for told in versions.told(start) if told.entry.version <= parent] if start <= parent else []
    later = max((entry.version for entry in known if _moment(entry.when) <= begins), default=0)
    if later:
        since = versions.at(later).profile
        if all(getattr(since, block) == getattr(profile, block) for block in BLOCKS):
            number, profile = later, since
    if number == parent:
        return None
    return Base(number, profile, parent + 1 - number)


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
    ended = _judged(versions, head, challenger, drift, gate, parent=after, when=when)
    if ended is not None:
        return ended
    taken = taken_back(store, versions, after)
    people = _people(head, challenger, drift, taken)
    agreed = _agreed(approvals, challenger, drift, people, parent=after, who=who, when=when)
    if isinstance(agreed, Promotion):
        return replace(agreed, version=head)
    form = Form(store, versions)
    rests_on = form.promotion(head.profile if head else None, challenger, drift, gate, agreed, canary, chosen)
    rests_on[STATED] = dict(sorted(taken.after(challenger).when.items()))
    if not agreed and after:
        rests_on[SINCE] = _approved(versions, after)
    landed = versions.commit(
        challenger, who=who, why=why, when=when, parent=after, epoch=epoch, commit_id=chosen, promotion=rests_on
    )
    return Promotion(kind="committed", version=landed, people=people, approvals=agreed)


def stage(
    store: Store,
    profile_name: str,
    challenger: ProfileDocument,
    drift: DriftReport,
    gate: GateReport,
    approvals: Approvals,
    who: str,
    why: str,
    when: str,
    *,
    tenant: str = "default",
    parent: int,
) -> Promotion:
    """Judge a challenger of version `parent` and put it before people; nothing comes into force here.

    `who` is its author: at least one other person must agree, whatever is changed. Blocked by `needs_approval`, with
    the request (where everybody has agreed already, `promote` commits it); by whatever else is in the way; unchanged.
    """
    versions = store.profiles(profile_name, tenant=tenant)
    head = versions.head()
    ended = _judged(versions, head, challenger, drift, gate, parent=parent, when=when)
    if ended is not None:
        return ended
    people = max(1, _people(head, challenger, drift, taken_back(store, versions, parent)))
    lacking = _lacking(approvals, challenger, drift, people, parent=parent, who=who, when=when, note=why)
    return replace(lacking, version=head)


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


def _blocked(head: Version | None, obstacle: Obstacle, why: str, **more: Any) -> Promotion:
    return Promotion(kind="blocked", version=head, obstacle=obstacle, why=why, **more)


def _judged(
    versions: ProfileVersions,
    head: Version | None,
    challenger: ProfileDocument,
    drift: DriftReport,
    gate: GateReport,
    *,
    parent: int,
    when: str,
) -> Promotion | None:
    """What ends it before anybody is asked; None: nothing."""
    now = head.number if head else 0
    if head is not None and same_text(head.profile, challenger):
        return Promotion(kind="unchanged", version=head)
    if now != parent:
        return _blocked(head, "stale_parent", f"version {now} is in force, not {parent}; stage it anew")
    if drift != assess(versions, challenger, parent=parent, when=when, limits=drift.limits):
        return _blocked(head, "other_drift", "the drift report is of another challenger; make it anew")
    if not gate.is_of(head.profile if head else None, challenger):
        return _blocked(head, "other_gate", "the gate report is of another challenger; replay it anew")
    if not gate.passed:
        return _blocked(head, "gate_failed", f"guards fell: {', '.join(gate.failed)}")
    return None


def _people(head: Version | None, challenger: ProfileDocument, drift: DriftReport, taken: TakenBack) -> int:
    """How many must agree: what people wrote themselves waits for another person, as what was taken back does."""
    champion = head.profile if head else ProfileDocument()
    written = by_people(champion) != by_people(challenger)
    return max(people_needed(drift), int(taken.brings(champion, challenger) or written))


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
    return _lacking(approvals, challenger, drift, people, parent=parent, who=who, when=when)


def _lacking(
    approvals: Approvals,
    challenger: ProfileDocument,
    drift: DriftReport,
    people: int,
    *,
    parent: int,
    who: str,
    when: str,
    note: str = "",
) -> Promotion:
    """Whose approval is lacking still, with people asked."""
    said = approvals.valid(approvals.address(challenger, parent, who), author=who, when=when)
    request = approvals.request(challenger, drift, parent=parent, author=who, when=when, people=people, note=note)
    agreed = sum(each.verdict == "approve" for each in said)
    if request.state == "approved":
        why = f"request {request.id} has been approved; `promote` brings it into force"
    elif request.state != "waiting":
        why = f"request {request.id} is {request.state}"
    else:
        why = f"{people - agreed} of {people} must approve request {request.id} still"
    return _blocked(None, "needs_approval", why, people=people, approvals=said, request=request)


def _approved(versions: ProfileVersions, number: int) -> int:
    """The last version up to this one that a person answers for: who made the chain, or approved it, or restored it."""
    while number > 1:
        told = next(iter(versions.told(number)))
        if _is_by_people(versions, told):
            return number
        since = (told.promotion or {}).get(SINCE)
        number = since if isinstance(since, int) and 0 < since < number else number - 1
    return number


def _is_by_people(versions: ProfileVersions, told: Told) -> bool:
    while told.entry.restores is not None:
        told = next(iter(versions.told(told.entry.restores)))
    return told.entry.version == 1 or bool((told.promotion or {}).get("approvals"))


def _moment(when: str) -> datetime:
    moment = datetime.fromisoformat(when)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
