"""Promotion: the only way for a challenger to come into force.

    committed   the challenger is now a version of the profile, with addresses of its reports beside it
    blocked     a guard fell, people have not agreed, or the champion has changed
    unchanged   the challenger has the text in force

`stage` is the first half: it judges the challenger and asks people. A text that a person wrote (persona, policies,
rails, surface, a record of their own) waits for another person; a harvested record waits if its drift requires it.

Promotion verifies everything: it makes the drift report again from the two documents, checks that the gate report is
about them, checks signatures, asks a person about changes that a rollback took back, and commits by compare-and-swap
under the epoch of the writer's lease. The commit's id is an HMAC of the content and its parent, so the same promotion
twice is one version. The version's evidence is stored beside it (`kept_promotion`):

    {"schema_version": 1, "level", "touched": [key], "drift": {"blob", "key"}, "gate": {…}, "patch": {…},
     "approvals": [{"who", "when", "link"}], "canary"?: {"share", "champion"}, "taken_back": {change: when}}

The blobs (drift report, gate report, RFC 6902 patch and its inverse) are in the vault. They refer to meta records by
address, so no word of a forgotten person is left in them.

Raises what `ProfileVersions.commit` and `Vault` raise.
Source: the state design (committing governed state); RFC 6902.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ctxsteward.envelope import Store
from ctxsteward.schemas.profile import BLOCKS, MetaRecord, ProfileDocument, instant
from ctxsteward.schemas.profile_changes import DriftLimits, DriftReport
from ctxsteward.schemas.publish import validate
from ctxsteward.store.crypto.keyring import address_of
from ctxsteward.store.profiles.proposal import by_people, same_text
from ctxsteward.store.profiles.text import Profile
from ctxsteward.store.profiles.version_codec import canonical, record_subject
from ctxsteward.store.profiles.versions import ProfileVersions, Version

from ..admission import DAY_SECONDS
from ..drift.report import CumulativeBase, difference, keyed, report, without_text
from ..gate.port import GateReport
from ..gate.settings import GateSettings, configured
from .approvals import Approval, ApprovalRequest, Approvals, people_needed
from .rollbacks import STATED, RolledBackChanges, content, taken_back


def kept_promotion(
    store: Store,
    versions: ProfileVersions,
    champion: ProfileDocument | None,
    challenger: ProfileDocument,
    drift: DriftReport,
    gate: GateReport,
    agreed: tuple[Approval, ...],
    canary: Mapping[str, Any] | None,
    commit_id: str,
) -> dict[str, Any]:
    """Store reports and patch of a promotion in the vault, and return the fields to write beside the version."""
    vault, key, profile = store.vault(versions.tenant), store.keys.address_key(versions.tenant), versions.name
    subject = f"\x00promotion\x00{profile}\x00{commit_id}"

    def address(record: MetaRecord) -> str:  # under which a version refers to it (`version_codec.MetaRecordVault`)
        data = canonical(record.model_dump(mode="json"))
        return address_of(key, record_subject(profile, record), "record", data)

    def referred(document: ProfileDocument) -> dict[str, Any]:
        named = Profile.from_document(document.model_copy(update={"name": profile}))
        return keyed(named, lambda record: {"key": vault.subject_address(record_subject(profile, record))}, address)

    old, new = referred(champion or ProfileDocument(name=profile)), referred(challenger)
    ids = {record.id: address(record) for record in (*(champion.meta if champion else ()), *challenger.meta)}
    kept = {
        "drift": without_text(drift, lambda id: ids.get(id, "")).model_dump(mode="json"),
        "gate": gate.document(),
        "patch": {"patch": list(difference(old, new)), "inverse": list(difference(new, old))},
    }
    validate("drift_report", kept["drift"], f"{profile}: commit {commit_id}")
    rests_on: dict[str, Any] = {"schema_version": 1, "level": drift.level, "touched": list(drift.touched)}
    for name, value in kept.items():
        blob = vault.put(subject, name, canonical(value))
        rests_on[name] = {"blob": blob, "key": vault.subject_address(subject)}
    rests_on["approvals"] = [{"who": each.who, "when": each.when, "link": each.link} for each in agreed]
    return rests_on | ({"canary": dict(canary)} if canary else {})


Outcome = Literal["committed", "blocked", "unchanged"]
Obstacle = Literal["gate_failed", "needs_approval", "rejected", "stale_parent", "other_drift", "other_gate"]

MAX_LOOK_BACK = 64
"""Versions to search for the one that was in force when the window began."""
SINCE = "approved"
"""Key beside a version that nobody approved: number of the last version before it that a person approved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """Result of promoting or staging a challenger."""

    kind: Outcome
    version: Version | None
    """Version in force, or None."""
    obstacle: Obstacle | None = None
    why: str = ""
    """Obstacle in words, and what to do."""
    people: int = 0
    """Number of people who must approve."""
    approvals: tuple[Approval, ...] = ()
    request: ApprovalRequest | None = None
    """Open request to people."""


def assess(
    versions: ProfileVersions, challenger: ProfileDocument, *, parent: int, when: str, limits: DriftLimits | None = None
) -> DriftReport:
    """Return the drift report of a challenger of version `parent` (0: none), with the cumulative comparison."""
    limits = limits or DriftLimits()
    if parent == 0:
        return report(None, challenger, limits)
    champion = versions.at(parent).profile
    return report(champion, challenger, limits, base_of(versions, parent, when=when, limits=limits))


def judge(
    store: Store,
    profile_name: str,
    challenger: ProfileDocument,
    *,
    parent: int,
    when: str,
    limits: DriftLimits,
    gate: GateSettings,
    tenant: str = "default",
) -> tuple[DriftReport, GateReport]:
    """Return drift report and gate report of a challenger of version `parent` (0: none)."""
    versions = store.profiles(profile_name, tenant=tenant)
    drift = assess(versions, challenger, parent=parent, when=when, limits=limits)
    replay = replace(configured(gate), reviewed=frozenset(drift.touched))
    return drift, replay(versions.at(parent).profile if parent else None, challenger)


def base_of(versions: ProfileVersions, parent: int, *, when: str, limits: DriftLimits) -> CumulativeBase | None:
    """Return the version that cumulative drift is measured from, or None if that is `parent` itself.

    It is the last version up to `parent` that a person approved. If the version in force when the window began is
    later, and has the same persona, policies, rails and surface, it is that one.
    """
    approved = _approved(versions, parent)
    number, profile = approved, versions.at(approved).profile
    begins = instant(when) - limits.window_nights * DAY_SECONDS
    start = max(approved + 1, parent - MAX_LOOK_BACK)
    changes = versions.told(start) if start <= parent else ()
    known = [entry for entry in changes if entry.version <= parent]
    later = max((entry.version for entry in known if instant(entry.when) <= begins), default=0)
    if later:
        since = versions.at(later).profile
        if all(getattr(since, block) == getattr(profile, block) for block in BLOCKS):
            number, profile = later, since
    if number == parent:
        return None
    return CumulativeBase(number, profile, parent + 1 - number)


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
    """Commit a challenger of version `parent` (default: the drift report's champion), or say what blocks it.

    `who` is its author, whose own approval does not count. `approvals` is the log of requests and verdicts; with None,
    only a challenger that needs no approval is committed. `canary` is made by `assignment.started`; None: all sessions.
    """
    versions = store.profiles(profile_name, tenant=tenant)
    after = (drift.champion or 0) if parent is None else parent
    chosen = commit_id or commit_id_of(store, profile_name, challenger, parent=after, tenant=tenant)
    head = versions.head()
    if head is not None and head.number == after + 1 and head.commit_id == chosen:
        return Promotion(kind="committed", version=head)
    ended = _judged(versions, head, challenger, drift, gate, after, when)
    if ended is not None:
        return ended
    taken = taken_back(store, versions, after)
    people = _people(head, challenger, drift, taken)
    agreed: tuple[Approval, ...] = ()
    if people:
        if approvals is None:
            return _blocked(
                head, "needs_approval", f"{people} must approve, and nobody is configured to", people=people
            )
        agreed = approvals.valid(approvals.address(challenger, after, who), author=who, when=when)
        refusers = [each.who for each in agreed if each.verdict == "reject"]
        if refusers:
            why_not = f"{', '.join(refusers)} rejected it"
            return _blocked(head, "rejected", why_not, people=people, approvals=agreed)
        if len(agreed) < people:
            request = approvals.request(challenger, drift, parent=after, author=who, when=when, people=people)
            return _lacking(head, request, people, agreed)
        approvals.enrol()  # the commit asks the store for reviewers; earlier versions took verdicts without enrolling
    champion = head.profile if head else None
    rests_on = kept_promotion(store, versions, champion, challenger, drift, gate, agreed, canary, chosen)
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
    """Judge a challenger of version `parent` and ask people to approve it, without bringing it into force.

    `who` is its author; at least one other person must agree to any change. The result is blocked by `needs_approval`
    with the request (even if everybody has agreed: `promote` commits it), blocked by another obstacle, or unchanged.
    """
    versions = store.profiles(profile_name, tenant=tenant)
    head = versions.head()
    ended = _judged(versions, head, challenger, drift, gate, parent, when)
    if ended is not None:
        return ended
    people = max(1, _people(head, challenger, drift, taken_back(store, versions, parent)))
    said = approvals.valid(approvals.address(challenger, parent, who), author=who, when=when)
    request = approvals.request(challenger, drift, parent=parent, author=who, when=when, people=people, note=why)
    return _lacking(head, request, people, said)


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
    """Restore the content of version `to` as a new version, unless it is in force.

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
    """Return the id of a promotion, an HMAC of the challenger and its parent."""
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
    parent: int,
    when: str,
) -> Promotion | None:
    """Return the result for a challenger that fails a check or changes nothing, or None to continue."""
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


def _people(head: Version | None, challenger: ProfileDocument, drift: DriftReport, taken: RolledBackChanges) -> int:
    """Return how many people must agree: at least one for a change that people wrote, or that a rollback took back."""
    champion = head.profile if head else ProfileDocument()
    written = by_people(champion) != by_people(challenger)
    return max(people_needed(drift), int(taken.brings(champion, challenger) or written))


def _lacking(head: Version | None, request: ApprovalRequest, people: int, said: tuple[Approval, ...]) -> Promotion:
    """Return the result for a challenger whose request is open."""
    agreed = sum(each.verdict == "approve" for each in said)
    if request.state == "approved":
        why = f"request {request.id} has been approved; `promote` brings it into force"
    elif request.state != "waiting":
        why = f"request {request.id} is {request.state}"
    else:
        why = f"{people - agreed} of {people} must still approve request {request.id}"
    return _blocked(head, "needs_approval", why, people=people, approvals=said, request=request)


def _approved(versions: ProfileVersions, number: int) -> int:
    """Return the last version up to this one that a person began, approved, or restored from such a version."""
    while number > 1:
        change = origin = next(iter(versions.told(number)))
        while origin.restores is not None:
            origin = next(iter(versions.told(origin.restores)))
        if origin.version == 1 or (origin.promotion or {}).get("approvals"):
            return number
        since = (change.promotion or {}).get(SINCE)
        number = since if isinstance(since, int) and 0 < since < number else number - 1
    return number
