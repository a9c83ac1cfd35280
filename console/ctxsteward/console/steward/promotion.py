"""``ctxsteward steward propose``, ``promote`` and ``rollback``: changes of a profile by hand.

``propose`` stages and judges a change of the version in force, and puts it before people. The author proves by a token
who they are, as a reviewer does: nobody reviews a change of their own. Where a night's candidate becomes an entry, the
proposer writes the entry's text: a version holds operators' words, and users' words stay in the vault.

``promote`` and ``rollback`` work under the lease of the profile's writers. Nothing is taken on trust: the drift report
is made again, the frozen cases are replayed again, signatures are checked where the commit is
(`ctxsteward.steward.release.promotion`). Where a promotion is refused, the result names the `obstacle` by a code and
says why in words.

Raises `InputError`, `Refused`, and what the store raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import click
from pydantic import ValidationError
from rich.console import Console

from ctxsteward.schemas import InputError
from ctxsteward.schemas.profile import ProfileDocument, ProfileEntry
from ctxsteward.schemas.profile_changes import DriftReport
from ctxsteward.steward import promote as commit_challenger, rollback as commit_rollback
from ctxsteward.steward.gate.port import GateReport
from ctxsteward.steward.night.environment import draft_store
from ctxsteward.steward.release.approvals import ApprovalRequest
from ctxsteward.steward.release.assignment import keeping, move, started
from ctxsteward.steward.release.decision import Decisions
from ctxsteward.steward.release.promotion import judge, stage
from ctxsteward.steward.release.slice import fits_slice
from ctxsteward.store.profiles.pointers import resolver
from ctxsteward.store.profiles.proposal import Proposal, by_people, of_entry, of_file
from ctxsteward.store.profiles.text import Profile
from ctxsteward.store.profiles.versions import Lease, Version

from ..terminal import tables
from ..terminal.failures import BLOCKED, ROLLED_BACK, STEWARD, need
from ..terminal.options import read_profile
from ..terminal.output import print_result
from ..terminal.tables import say
from .context import StewardContext
from .records import (
    ProfileOptions,
    about_a_profile,
    as_actor,
    complete_versions,
    complete_waiting,
    records_at,
    token,
)
from .review import check_people, find_request
from .taking_effect import leased, writing_by_hand
from .versions import changes

MAX_SESSIONS_SHOWN = 10
MAX_NOTE_CHARS = 500
SPENT = ("superseded", "rejected", "expired")
"""Statuses of records that no change may be made of."""
NOTHING_ASKED = "say what to propose: a profile file, or --record ID with --to BLOCK.KEY and --text"


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
    with leased(place) as lease:
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
    with leased(place) as lease:
        if lease is None:
            raise InputError("a night is under way; roll back when it has ended")
        landed = commit_rollback(
            place.store,
            place.profile,
            version,
            who=who,
            why=" ".join(note.split()) or "by hand",
            when=place.here.when,
            tenant=place.tenant,
            epoch=lease.epoch,
        )
    taken = range(version + 1, landed.number)
    kept = keeping(place.store, place.profile, taken, tenant=place.tenant, now_seconds=place.here.clock())
    left = move(place.store, place.profile, kept.sessions, tenant=place.tenant) if moves else kept.sessions
    return {
        "version": landed.number,
        "restores": version,
        "written": landed.number != before,
        "who": who,
        "moved": len(kept.sessions) - len(left),
        "open_sessions": [session._asdict() for session in left],
        "unknown_sessions": kept.unknown,
    }


def show_rollback(console: Console, outcome: Mapping[str, Any]) -> None:
    restored, kept = outcome["restores"], outcome["open_sessions"]
    if outcome["written"]:
        say(console, f"version {outcome['version']} is in force; it says what version {restored} said")
    else:
        say(console, f"version {restored} says what is in force; nothing was written")
    if outcome["moved"]:
        say(console, f"{outcome['moved']:,} open sessions were moved to it")
    if kept:
        named = (f"{session['session']} (version {session['version']})" for session in kept[:MAX_SESSIONS_SHOWN])
        some = ", ".join(named)
        more = len(kept) - MAX_SESSIONS_SHOWN
        some += f" and {more:,} more (--json lists all)" if more > 0 else ""
        line = f"it does not reach {len(kept):,} open sessions, which keep the version they began with: {some}"
        say(console, f"{line}; --move-sessions moves them")
    unassigned = outcome["unknown_sessions"]
    if unassigned:
        say(console, f"of {unassigned:,} sessions it is not known which version they keep")


def show(console: Console, outcome: Mapping[str, Any]) -> None:
    if outcome["obstacle"] is None:
        line = f"version {outcome['version']} is in force" + (" for some sessions" if outcome["canary"] else "")
        console.print(
            tables.shown(line if outcome["written"] else f"nothing to commit: {outcome['why']}", style="bold")
        )
    else:
        say(console, f"in the way: {outcome['why']}", "bold")
    for line in outcome["changes"]:
        say(console, f"  {line}")
    if outcome["request"]:
        console.print(tables.shown(f"see `ctxsteward steward review {outcome['request']}`"))


def _request_promoted(
    place: StewardContext, request: ApprovalRequest, who: str, share: float | None, lease: Lease
) -> dict[str, Any]:
    when = place.here.when
    challenger = place.approvals.challenger(request)
    champion = place.versions.at(request.parent).profile if request.parent else None
    drift, gate = _judged(place, challenger, request.parent)
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
        return _told(request.id, place, landed.obstacle or "blocked", landed.why, request=request.id, changes=lines)
    written = landed.kind == "committed"
    return _told(request.id, place, None, landed.why, written=written, canary=canary, changes=lines)


def _judged(place: StewardContext, challenger: ProfileDocument, parent: int) -> tuple[DriftReport, GateReport]:
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
        deciding = Decisions(place.settings(canary_share=share), place.store, records.ledger)
        writing = writing_by_hand(place, records.date, record.id, who, lease)
        admitted = deciding.admit(records.date, writing.run)
        fitted = deciding.fit(admitted, writing)
        if record.id not in {entry.id for entry in fitted}:
            if deciding.keeps_out(record.id):
                why = f"a rollback took record {record.id} back; a reviewer approves it anew first"
                return _told(record.id, place, "needs_approval", why)
            why = f"record {record.id} is worth less than those that fill the slice, or may not stand in it"
            return _told(record.id, place, "no_room", why)
        challenger = deciding.stage(fitted, writing)
        if challenger is None:
            return _told(record.id, place, None, f"record {record.id} stands in version {place.head} already")
        drift = deciding.drift(challenger, writing)
        gate = deciding.gate(challenger, drift, admitted)
        landed = deciding.promote(challenger, drift, gate, admitted, fitted, writing)
    if not landed.is_new:
        waits = place.pending()
        *lines, why = landed.changes or ("it was refused",)
        request = waits[-1].id if waits else None
        return _told(record.id, place, landed.outcome, why, request=request, changes=list(lines))
    canary = {"share": share} if landed.outcome == "canary" else None
    return _told(record.id, place, None, "", written=True, canary=canary, changes=list(landed.changes))


def _told(
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalOptions:
    """What the command line asks for."""

    file: Profile | None = None
    record: str | None = None
    """A candidate's id."""
    to: str | None = None
    """``BLOCK.KEY`` of the entry that is made of it."""
    text: str | None = None
    """Its words."""
    vouched: Sequence[str] = ()
    note: str = ""
    dry_run: bool = False


def target_profile(asked: ProposalOptions, profile_name: str | None) -> str | None:
    """The profile to change: the one that the file names, else the one of --profile-name."""
    unnamed = ProfileDocument().name
    if asked.file is None or asked.file.name == unnamed:
        return profile_name
    if profile_name not in (None, asked.file.name):
        raise InputError(f"--profile-name {profile_name}: the file's profile is {asked.file.name!r}; leave one out")
    return asked.file.name


def author(place: StewardContext, actor: str | None, secret: str | None, *, dry_run: bool) -> str:
    """Whose change it is: proved by a token; for a dry run, the name of --as."""
    if dry_run:
        return actor or "nobody"
    check_people(place)
    return place.owner(actor, secret)


def proposed(place: StewardContext, asked: ProposalOptions, who: str) -> dict[str, Any]:
    """Stage the change; the outcome as JSON: what is in the way, or how many people must approve."""
    need(STEWARD, "propose")
    note = " ".join(asked.note.split())
    if len(note) > MAX_NOTE_CHARS:
        raise InputError(f"--note: {len(note):,} characters; write at most {MAX_NOTE_CHARS}")
    with ExitStack() as stack:
        at = place
        if asked.dry_run:  # over a draft of the store, which is thrown away
            at = replace(place, store=stack.enter_context(draft_store(place.store, place.tenant)))
        head = at.versions.newest()
        proposal = _of_record(at, asked, head) if asked.record is not None else _of_file(at, asked, head)
        why = f"from record {asked.record}; {note}".rstrip("; ") if asked.record is not None else note
        return _staged(at, proposal, head, who, why) | {"dry_run": asked.dry_run}


def show_proposal(console: Console, outcome: Mapping[str, Any]) -> None:
    for finding in outcome["findings"]:
        say(console, f"finding: {finding['text']}")
    if outcome["outcome"] == "unchanged":
        line = f"version {outcome['parent']} of {outcome['profile']} says that already; nothing was staged"
    elif outcome["outcome"] == "blocked":
        line = f"in the way: {outcome['why']}"
    else:
        verb = "would be staged" if outcome["dry_run"] else "staged"
        people = f"{outcome['people']} must approve" if outcome["people"] > 1 else "1 other person must approve"
        staged = f"{verb} as request {outcome['request']} after version {outcome['parent']}"
        line = f"{staged}: drift {outcome['level']}, {people}"
    say(console, line, "bold")
    for change in outcome["changes"]:
        say(console, f"  {change}")
    for drift in outcome["drift"]:
        line = f"  {drift['level']} {drift['key'] or drift['block'] or '-'}: {drift['text']}"
        say(console, line)
    if outcome["outcome"] == "staged" and not outcome["dry_run"]:
        say(console, f"next: `ctxsteward steward review {outcome['request']} --approve`")


def _of_file(place: StewardContext, asked: ProposalOptions, head: Version) -> Proposal:
    proposed_profile = asked.file
    if proposed_profile is None:
        raise InputError(NOTHING_ASKED)
    if asked.to is not None or asked.text is not None:
        raise InputError("--to and --text go with --record; change the file instead")
    if not by_people(proposed_profile):
        return of_file(proposed_profile, head.profile, lambda pointer: False, asked.vouched)
    with records_at(place, keep=not asked.dry_run) as records:
        resolves = resolver(place.store, place.tenant, records.ledger.cites)
        return of_file(proposed_profile, head.profile, resolves, asked.vouched, fits_slice)


def _of_record(place: StewardContext, asked: ProposalOptions, head: Version) -> Proposal:
    """An entry out of a candidate, in its proposer's words."""
    if asked.file is not None or asked.vouched:
        raise InputError("--record goes without a file and without --vouch; propose one of the two")
    with records_at(place, keep=not asked.dry_run) as records:
        record = records.find(asked.record or "")
    if record.status in SPENT:
        raise InputError(f"--record {record.id}: it is {record.status}; only what still stands can be proposed")
    block, _, key = (asked.to or "").partition(".")
    if not key:
        raise InputError(f"--record {record.id}: say which entry it becomes, such as --to surface.length")
    if not asked.text:
        raise InputError(f"--record {record.id} says “{record.text}”; write the entry in your own words: --text TEXT")
    old = next((existing for existing in getattr(head.profile, block, ()) if existing.id == key), None)
    try:
        entry = ProfileEntry.model_validate((old.model_dump() if old else {}) | {"id": key, "text": asked.text})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = "--to" if first["loc"][:1] == ("id",) else "--text"
        raise InputError(f"{option} {str(first['input'])[:80]}: {first['msg']}; correct it") from error
    return of_entry(head.profile, block, entry)


def _staged(place: StewardContext, proposal: Proposal, head: Version, who: str, why: str) -> dict[str, Any]:
    document, parent = proposal.document, head.number
    drift, gate = _judged(place, document, parent)
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


@click.command()
@click.argument("file", type=click.Path(), metavar="[FILE]", required=False)
@click.option("--record", metavar="ID", help="Instead of a file: make an entry out of this candidate of a night.")
@click.option("--to", metavar="BLOCK.KEY", help="The entry that it becomes, such as surface.length.")
@click.option("--text", metavar="TEXT", help="The entry's words: the operator's own, not the user's.")
@click.option(
    "--vouch",
    "vouched",
    multiple=True,
    metavar="ID",
    help="Keep this record of the file's meta though its sources cannot be resolved; repeatable.",
)
@click.option("--note", default="", metavar="TEXT", help="Why; kept in plain.")
@click.option("--dry-run", is_flag=True, help="Judge it, and keep nothing; asks for no token.")
@as_actor
@token
@about_a_profile()
@click.pass_context
def propose(
    ctx: click.Context,
    file: str | None,
    record: str | None,
    to: str | None,
    text: str | None,
    vouched: tuple[str, ...],
    note: str,
    dry_run: bool,
    actor: str | None,
    token: str | None,
    where: ProfileOptions,
    as_json: bool,
) -> None:
    """Stage the profile in FILE, or one entry made of a candidate: drift report, evals, then people are asked.

    What nights have learned is carried over; a file that says what is in force stages nothing. One other person must
    approve, two where a locked entry is touched; then `steward promote` brings it into force. Exit code 3: something
    is in the way, and is named.
    """
    if file is None and record is None:
        raise click.UsageError(NOTHING_ASKED, ctx)
    asked = ProposalOptions(
        file=read_profile(file), record=record, to=to, text=text, vouched=vouched, note=note, dry_run=dry_run
    )
    with where._replace(profile_name=target_profile(asked, where.profile_name)).open() as place:
        result = proposed(place, asked, author(place, actor, token, dry_run=dry_run))
    print_result(result, show_proposal, as_json=as_json)
    if result["outcome"] == "blocked":
        ctx.exit(BLOCKED)
