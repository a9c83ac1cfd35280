"""Changes of the version in force between nights, under the lease of the profile's writers.

A rejected record is removed at once if that needs no other person; while a night holds the lease, the next night
removes it. A change is staged for approval, and an approved change is committed; both are judged again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from ctxsteward.schemas import Erased, InputError
from ctxsteward.schemas.profile import ProfileDocument
from ctxsteward.schemas.profile_changes import DriftReport
from ctxsteward.steward import promote as commit_challenger
from ctxsteward.steward.gate.port import GateReport
from ctxsteward.steward.night.run import CommitContext
from ctxsteward.steward.release.approvals import ApprovalRequest, people_needed
from ctxsteward.steward.release.assignment import started
from ctxsteward.steward.release.decision import Decisions
from ctxsteward.steward.release.drafts import DraftedChange
from ctxsteward.steward.release.promotion import judge, stage
from ctxsteward.store.crypto.keyring import address_of
from ctxsteward.store.profiles.proposal import Proposal, of_entry
from ctxsteward.store.profiles.versions import Lease, Version, WriterLease

from .context import StewardContext
from .records import records_at
from .versions import changes

LEASE_SECONDS = 300.0
LATER = "the next night"
"""When an answer takes effect that could not at once."""


@contextmanager
def leased(place: StewardContext) -> Iterator[Lease | None]:
    """The lease of the profile's writers; None where a night has it."""
    lease = WriterLease(place.store, place.profile, place.tenant, owner=place.here.owner, clock=place.here.clock)
    holder = lease.holder()
    taken = lease.take(LEASE_SECONDS, force=holder is not None and place.here.abandoned(holder.owner))
    try:
        yield taken
    finally:
        if taken is not None:
            lease.release()


def writing_by_hand(place: StewardContext, date: str, id: str, who: str, lease: Lease) -> CommitContext:
    """In whose name, and under which run, the deciding half of a night writes by day."""
    key = place.store.keys.address_key(place.tenant)
    named = re.sub(r"[^a-z0-9_.-]", "-", who.lower())
    address = address_of(key, place.tenant, "by hand", f"{place.profile} {place.head} {id}".encode())
    return CommitContext(
        who=place.settings().who,
        when=place.here.when,
        epoch=lease.epoch,
        run=f"h{date}-{address[:12]}-{named}"[:64],
        commit_id=address[:32],
        done=False,
    )


def take_effect(place: StewardContext, id: str, who: str) -> bool:
    """Show a rejected record no more; whether that is done.

    False: a night is under way, or the version without the record may not come into force yet.
    """
    with leased(place) as lease:
        if lease is None:
            return False
        with records_at(place) as records:
            record = records.find(id)
            if record.status == "rejected" and _is_shown(place, record.id):
                deciding = Decisions(place.settings(canary_share=None), place.store, records.ledger)
                writing = writing_by_hand(place, records.date, record.id, who, lease)
                admitted = deciding.admit(records.date, writing.run)
                deciding.decide(admitted, deciding.fit(admitted, writing), writing)
            return record.status != "rejected" or not _is_shown(place, record.id)


def _is_shown(place: StewardContext, id: str) -> bool:
    """Whether the version in force has this record."""
    head = place.versions.head()
    return head is not None and any(entry.id == id for entry in head.profile.meta)


def judged(place: StewardContext, challenger: ProfileDocument, parent: int) -> tuple[DriftReport, GateReport]:
    """Compare a challenger with the version it was made from: drift report and evals."""
    settings = place.settings()
    return judge(
        place.store,
        place.profile,
        challenger,
        parent=parent,
        when=place.here.when,
        limits=settings.drift,
        gate=settings.gate,
        tenant=place.tenant,
    )


def effect_of(place: StewardContext, profile: ProfileDocument, change: DraftedChange) -> str:
    """Return a line about drift and replayed cases of a drafted entry."""
    drift, gate = judged(place, of_entry(profile, change.block, change.entry).document, place.head)
    moved = (
        f"{each.guard.replace('_', ' ')} {each.champion:.2f} → {each.challenger:.2f}"
        for each in gate.results
        if each.champion != each.challenger and each.champion is not None and each.challenger is not None
    )
    fallen = f"; these guards fall: {', '.join(gate.failed)}" if gate.failed else ""
    people = max(1, people_needed(drift))
    replayed = f"The frozen cases, replayed before and after: {', '.join(moved) or 'no figure changes'}{fallen}."
    return f"{replayed} Drift {drift.level}; {people} {'person' if people == 1 else 'people'} must approve."


def request_promoted(
    place: StewardContext, request: ApprovalRequest, who: str, share: float | None, lease: Lease
) -> dict[str, Any]:
    """Commit the challenger of a request, and return the outcome as JSON."""
    when = place.here.when
    challenger = place.approvals.challenger(request)
    champion = place.versions.at(request.parent).profile if request.parent else None
    drift, gate = judged(place, challenger, request.parent)
    canary = started(share, request.parent) if share and request.parent else None
    why = f"request {request.id}, promoted by {who}" + (f": {request.note}" if request.note else "")
    landed = commit_challenger(
        place.store,
        place.profile,
        challenger,
        drift,
        gate,
        place.approvals,
        request.author,
        why,
        when,
        tenant=place.tenant,
        parent=request.parent,
        epoch=lease.epoch,
        canary=canary,
    )
    lines = list(changes(champion, challenger))
    if landed.kind == "blocked":
        return promotion_outcome(
            request.id, place, landed.obstacle or "blocked", landed.why, request=request.id, changes=lines
        )
    written = landed.kind == "committed"
    return promotion_outcome(request.id, place, None, landed.why, written=written, canary=canary, changes=lines)


def staged(place: StewardContext, proposal: Proposal, head: Version, who: str, why: str) -> dict[str, Any]:
    """Put a change before people; the outcome as JSON."""
    document, parent = proposal.document, head.number
    drift, gate = judged(place, document, parent)
    promotion = stage(
        place.store,
        place.profile,
        document,
        drift,
        gate,
        place.approvals,
        who,
        why,
        place.here.when,
        tenant=place.tenant,
        parent=parent,
    )
    request = promotion.request
    waits = request is not None and request.state in ("waiting", "approved")
    return {
        "outcome": "unchanged" if promotion.kind == "unchanged" else "staged" if waits else "blocked",
        "profile": place.profile,
        "parent": parent,
        "author": who,
        "request": request.id if request else None,
        "state": request.state if request else None,
        "people": promotion.people,
        "level": drift.level,
        "touched": list(drift.touched),
        "touches_locked": drift.touches_locked,
        "obstacle": promotion.obstacle,
        "why": promotion.why,
        "changes": list(changes(head.profile, document)),
        "drift": [row.model_dump(mode="json") for row in drift.findings if row.level != "INFO"],
        "gate": {"passed": gate.passed, "failed": list(gate.failed)},
        "findings": [row.model_dump(mode="json") for row in proposal.findings],
    }


def accept_draft(
    place: StewardContext, record: str, change: DraftedChange, who: str, secret: str, note: str
) -> dict[str, Any]:
    """Stage and approve the drafted change of a record, and return the outcome as JSON.

    It is staged in the steward's name, on top of accepted drafts that wait. It comes into force at once if nobody else
    must approve it, and the person who accepts it is also an operator.
    """
    author, head, when = place.settings().who, place.versions.newest(), place.here.when
    document: ProfileDocument = head.profile
    for earlier in place.requests():
        if (earlier.state, earlier.author, earlier.parent) == ("approved", author, head.number):
            with suppress(Erased):
                document = place.approvals.challenger(earlier)
    if change.block == "meta":
        raise InputError(f"record {record}: a line is taken out by a rejection; --reject {record}")
    why = f"from record {record}; {note}".rstrip("; ")
    outcome = staged(place, of_entry(document, change.block, change.entry), head, author, why)
    if outcome["request"] is None:
        raise InputError(f"record {record}: {outcome['why'] or 'the version in force says so already'}")
    request = place.approvals.find(outcome["request"], when=when, head=head.number)
    place.approvals.answer(
        request.id, "approve", secret, when=when, head=head.number, who=who, challenger=request.challenger, note=note
    )
    after = place.approvals.find(request.id, when=when, head=head.number)
    landed = None
    if after.state == "approved" and "operator" in place.actors.named(who).roles:
        with leased(place) as lease:
            landed = request_promoted(place, after, who, None, lease) if lease is not None else None
    return {
        "request": request.id,
        "state": after.state,
        "approved": sum(each.verdict == "approve" for each in after.verdicts),
        "people": after.people,
        "in_effect": landed is not None and landed["written"],
    }


def promotion_outcome(
    id: str,
    place: StewardContext,
    obstacle: str | None,
    why: str,
    *,
    written: bool = False,
    request: str | None = None,
    canary: Mapping[str, Any] | None = None,
    changes: list[str] | None = None,
) -> dict[str, Any]:
    return {
        "id": id,
        "version": place.head or None,
        "written": written,
        "obstacle": obstacle,
        "why": why,
        "request": request,
        "canary": dict(canary) if canary else None,
        "changes": changes or [],
    }
