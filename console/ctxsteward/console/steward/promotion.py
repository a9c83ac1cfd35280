"""``ctxsteward steward promote`` and ``rollback``: by hand, under the lease of the profile's writers.

Nothing is taken on trust: the drift report is made again, the frozen cases are replayed again, signatures are checked
where the commit is (`ctxsteward.steward.release.promotion`). Where a promotion is
refused, the result names the `obstacle` by a code and says why in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console

from ctxsteward.schemas import InputError
from ctxsteward.steward.night import CommitContext
from ctxsteward.steward.release import (
    ApprovalRequest,
    DecisionStage,
    judge,
    keeping,
    move,
    promote as commit_challenger,
    rollback as commit_rollback,
    started,
)
from ctxsteward.store import Lease, WriterLease, address_of

from ..terminal import BLOCKED, ROLLED_BACK, STEWARD, need, print_result, tables
from .context import StewardContext
from .records import ProfileOptions, about_a_profile, as_actor, complete_versions, complete_waiting, records_at, token
from .review import find_request
from .versions import changes

LEASE_SECONDS = 300.0
MAX_SESSIONS_SHOWN = 10


def operator(place: StewardContext, actor: str | None, token: str | None) -> str:
    """Who operates: proved by a token where people are configured, else the name of --as."""
    if place.actors_path is None:
        if actor is None:
            raise InputError("say who you are: --as NAME (nobody is configured, so no token is asked for)")
        return actor
    return place.owner(actor, token, "operator")


def promoted(place: StewardContext, id: str, who: str, share: float | None) -> dict[str, Any]:
    """Commit a request, or stage a record and commit that; the outcome as JSON."""
    need(STEWARD, "promote")
    request = find_request(place, id)
    if share is not None and not 0 < share <= 1:
        raise InputError(f"--canary {share}: write a share over 0 and up to 1, such as 0.1")
    with _leased(place) as lease:
        if lease is None:
            return _told(id, place, "busy", "a night is under way; try again when it has ended")
        if request is not None:
            return _request_promoted(place, request, who, share, lease)
        return _record_promoted(place, id, who, share, lease)


def rolled_back(place: StewardContext, version: int, who: str, note: str, *, moves: bool = False) -> dict[str, Any]:
    """Commit the content of an earlier version again.

    The outcome lists the open sessions that keep a version taken back or, with `moves`, could not be moved.
    """
    before = place.head
    place.versions.at(version)
    with _leased(place) as lease:
        if lease is None:
            raise InputError("a night is under way; roll back when it has ended")
        landed = commit_rollback(
            place.store, place.profile, version, who=who, why=" ".join(note.split()) or "by hand", when=place.here.when,
            tenant=place.tenant, epoch=lease.epoch,
        )  # fmt: skip
    taken = range(version + 1, landed.number)
    kept = keeping(place.store, place.profile, taken, tenant=place.tenant, now_seconds=place.here.clock())
    left = move(place.store, place.profile, kept.sessions, tenant=place.tenant) if moves else kept.sessions
    return {
        "version": landed.number, "restores": version, "written": landed.number != before, "who": who,
        "moved": len(kept.sessions) - len(left), "open_sessions": [session._asdict() for session in left],
        "unknown_sessions": kept.unknown,
    }  # fmt: skip


def show_rollback(console: Console, found: Mapping[str, Any]) -> None:
    restored, kept = found["restores"], found["open_sessions"]
    if found["written"]:
        console.print(f"version {found['version']} is in force; it says what version {restored} said", soft_wrap=True)
    else:
        console.print(f"version {restored} says what is in force; nothing was written", soft_wrap=True)
    if found["moved"]:
        console.print(f"{found['moved']:,} open sessions were moved to it", soft_wrap=True)
    if kept:
        some = ", ".join(
            f"{session['session']} (version {session['version']})" for session in kept[:MAX_SESSIONS_SHOWN]
        )
        more = len(kept) - MAX_SESSIONS_SHOWN
        some += f" and {more:,} more (--json lists all)" if more > 0 else ""
        line = f"it does not reach {len(kept):,} open sessions, which keep the version they began with: {some}"
        console.print(tables.shown(f"{line}; --move-sessions moves them"), soft_wrap=True)
    unassigned = found["unknown_sessions"]
    if unassigned:
        console.print(f"of {unassigned:,} sessions it is not known which version they keep", soft_wrap=True)


def show(console: Console, found: Mapping[str, Any]) -> None:
    if found["obstacle"] is None:
        line = f"version {found['version']} is in force" + (" for some sessions" if found["canary"] else "")
        console.print(tables.shown(line if found["written"] else f"nothing to commit: {found['why']}", style="bold"))
    else:
        console.print(tables.shown(f"in the way: {found['why']}", style="bold"), soft_wrap=True)
    for line in found["changes"]:
        console.print(tables.shown(f"  {line}"), soft_wrap=True)
    if found["request"]:
        console.print(tables.shown(f"see `ctxsteward steward review {found['request']}`"))


# -- inside -------------------------------------------------------------------------------------------------------


def _request_promoted(
    place: StewardContext, request: ApprovalRequest, who: str, share: float | None, lease: Lease
) -> dict[str, Any]:

    when = place.here.when
    challenger = place.approvals.challenger(request)
    champion = place.versions.at(request.parent).profile if request.parent else None
    settings = place.settings()
    drift, gate = judge(
        place.store, place.profile, challenger, parent=request.parent, when=when, limits=settings.drift,
        gate=settings.gate, tenant=place.tenant,
    )  # fmt: skip
    canary = started(share, request.parent) if share and request.parent else None
    why = f"request {request.id}, promoted by {who}" + (f": {request.note}" if request.note else "")
    landed = commit_challenger(
        place.store, place.profile, challenger, drift, gate, place.approvals, request.author, why, when,
        tenant=place.tenant, parent=request.parent, epoch=lease.epoch, canary=canary,
    )  # fmt: skip
    lines = list(changes(champion, challenger))
    if landed.kind == "blocked":
        return _told(request.id, place, landed.obstacle or "blocked", landed.why, request=request.id, changes=lines)
    written = landed.kind == "committed"
    return _told(request.id, place, None, landed.why, written=written, canary=canary, changes=lines)


def _record_promoted(place: StewardContext, id: str, who: str, share: float | None, lease: Lease) -> dict[str, Any]:
    """The deciding half of a night, over records as they are now."""
    with records_at(place) as records:
        record = records.find(id)
        review = place.record_reviews.standing(records.by_id.get, place.people_for).get(record.id)
        if record.status != "active" and (review is None or review.state != "approved"):
            agreed, people = len(place.record_reviews.approvers(record)), place.people_for(record)
            first = "a reviewer approves it first" if people == 1 else f"{agreed} of {people} have approved it"
            why = f"record {record.id} is a {record.status}; {first}"
            return _told(record.id, place, "needs_approval", why)
        if not record.scope.is_shared:
            why = f"record {record.id} is for one person, project or session; only records for everybody are promoted"
            return _told(record.id, place, "not_shared", why)
        deciding = DecisionStage(place.settings(canary_share=share), place.store, records.ledger)
        writing = _writing(place, records.date, record.id, who, lease)
        fitted = deciding.fit(deciding.admit(records.date, writing.run), writing)
        if record.id not in {entry.id for entry in fitted}:
            if deciding.keeps_out(record.id):
                why = f"a rollback took record {record.id} back; a reviewer approves it anew first"
                return _told(record.id, place, "needs_approval", why)
            why = f"record {record.id} is worth less than those that fill the slice, or may not stand in it"
            return _told(record.id, place, "no_room", why)
        challenger = deciding.stage(fitted, writing)
        if challenger is None:
            return _told(record.id, place, None, f"record {record.id} stands in version {place.head} already")
        verdicts = deciding.drift(challenger, writing), deciding.gate(challenger)
        landed = deciding.promote(challenger, *verdicts, writing)
    if not landed.is_new:
        waits = place.approvals.pending(when=place.here.when, head=place.head)
        *lines, why = landed.changes or ("it was refused",)
        return _told(
            record.id, place, landed.outcome, why, request=waits[-1].id if waits else None, changes=list(lines)
        )
    canary = {"share": share} if landed.outcome == "canary" else None
    return _told(record.id, place, None, "", written=True, canary=canary, changes=list(landed.changes))


def _writing(place: StewardContext, date: str, id: str, who: str, lease: Lease) -> CommitContext:
    key = place.store.keys.address_key(place.tenant)
    named = re.sub(r"[^a-z0-9_.-]", "-", who.lower())
    address = address_of(key, place.tenant, "by hand", f"{place.profile} {place.head} {id}".encode())
    return CommitContext(
        who=place.settings().who, when=place.here.when, epoch=lease.epoch, run=f"h{date}-{address[:12]}-{named}"[:64],
        commit_id=address[:32], done=False,
    )  # fmt: skip


@contextmanager
def _leased(place: StewardContext) -> Iterator[Lease | None]:
    """The lease of the profile's writers; None where a night has it."""
    lease = WriterLease(place.store, place.profile, place.tenant, owner=place.here.owner, clock=place.here.clock)
    holder = lease.holder()
    taken = lease.take(LEASE_SECONDS, force=holder is not None and place.here.abandoned(holder.owner))
    try:
        yield taken
    finally:
        if taken is not None:
            lease.release()


def _told(
    id: str, place: StewardContext, obstacle: str | None, why: str, *,
    written: bool = False, request: str | None = None,
    canary: Mapping[str, Any] | None = None, changes: list[str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    return {
        "id": id, "version": place.head or None, "written": written, "obstacle": obstacle, "why": why,
        "request": request, "canary": dict(canary) if canary else None, "changes": changes or [],
    }  # fmt: skip


@click.command()
@click.argument("id", shell_complete=complete_waiting)
@click.option("--canary", "share", type=float, metavar="SHARE", help="For this share of the sessions first.")
@as_actor
@token
@about_a_profile()
@click.pass_context
def promote(
    ctx: click.Context,
    id: str,
    share: float | None,
    actor: str | None,
    token: str | None,
    where: ProfileOptions,
    as_json: bool,
) -> None:
    """Commit the request ID, or a version with the record ID in it, if everybody who must has agreed.

    It is an operator's. Drift report and evals are made again. Exit code 3: something is in the way, and is named.
    """
    with where.open() as place:
        result = promoted(place, id, operator(place, actor, token), share)
    print_result(result, show, as_json=as_json)
    if result["obstacle"] is not None:
        ctx.exit(BLOCKED)


@click.command()
@click.argument("version", type=click.IntRange(1), metavar="V", shell_complete=complete_versions)
@click.option("--note", default="by hand", show_default=True, metavar="TEXT", help="Why; kept in plain.")
@click.option("--move-sessions", is_flag=True, help="Move open sessions to it that keep a version it takes back.")
@as_actor
@token
@about_a_profile()
@click.pass_context
def rollback(
    ctx: click.Context,
    version: int,
    note: str,
    move_sessions: bool,
    actor: str | None,
    token: str | None,
    where: ProfileOptions,
    as_json: bool,
) -> None:
    """Commit the content of version V again, as a new version; records that were erased since stay away.

    It is an operator's. What it takes back returns by a person's will alone. A session that is open keeps the version
    it began with: those that keep what is taken back are named. Exit code 4; where V is what is in force, nothing is
    written, and it is 0.
    """
    with where.open() as place:
        result = rolled_back(place, version, operator(place, actor, token), note, moves=move_sessions)
    print_result(result, show_rollback, as_json=as_json)
    if result["written"]:
        ctx.exit(ROLLED_BACK)
