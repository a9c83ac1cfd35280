"""``ctxsteward steward propose``, ``promote`` and ``rollback``: changes of a profile by hand.

``propose`` stages and judges a change of the version in force, and asks people to approve it. The author is identified
by a token, because nobody may review their own change.

``promote`` and ``rollback`` work under the lease of the profile's writers. The drift report is made again, the frozen
cases are replayed again, and the commit checks signatures (`ctxsteward.steward.release.promotion`). If a promotion is
refused, the result has a code (`obstacle`) and a reason.

Raises `InputError`, `Refused`, and what the store raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import click
from rich.console import Console

from ctxsteward.schemas import InputError
from ctxsteward.schemas.profile import ProfileDocument
from ctxsteward.steward import rollback as commit_rollback
from ctxsteward.steward.night.environment import draft_store
from ctxsteward.steward.release.assignment import keeping, move
from ctxsteward.steward.release.decision import Decisions
from ctxsteward.steward.release.slice import fits_slice
from ctxsteward.store.profiles.pointers import resolver
from ctxsteward.store.profiles.proposal import Proposal, by_people, of_file
from ctxsteward.store.profiles.text import Profile
from ctxsteward.store.profiles.versions import Lease, Version

from ..terminal import tables
from ..terminal.failures import BLOCKED, ROLLED_BACK, STEWARD, need
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
from .taking_effect import leased, promotion_outcome, request_promoted, staged, writing_by_hand

MAX_SESSIONS_SHOWN = 10
MAX_NOTE_CHARS = 500


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
            return promotion_outcome(id, place, "busy", "a night is under way; try again when it has ended")
        if request is not None:
            return request_promoted(place, request, who, share, lease)
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


def _record_promoted(place: StewardContext, id: str, who: str, share: float | None, lease: Lease) -> dict[str, Any]:
    """The deciding half of a night, over records as they are now."""
    with records_at(place) as records:
        record = records.find(id)
        review = place.record_reviews.standing(records.by_id.get, place.people_for).get(record.id)
        if record.status != "active" and (review is None or review.state != "approved"):
            agreed, people = len(place.record_reviews.approvers(record)), place.people_for(record)
            first = "a reviewer approves it first" if people == 1 else f"{agreed} of {people} have approved it"
            why = f"record {record.id} is {record.status}, not active; {first}"
            return promotion_outcome(record.id, place, "needs_approval", why)
        deciding = Decisions(place.settings(canary_share=share), place.store, records.ledger)
        writing = writing_by_hand(place, records.date, record.id, who, lease)
        admitted = deciding.admit(records.date, writing.run)
        fitted = deciding.fit(admitted, writing)
        if record.id not in {entry.id for entry in fitted}:
            if deciding.keeps_out(record.id):
                why = f"a rollback took record {record.id} back; a reviewer approves it anew first"
                return promotion_outcome(record.id, place, "needs_approval", why)
            why = f"record {record.id} is worth less than those that fill the slice, or may not stand in it"
            return promotion_outcome(record.id, place, "no_room", why)
        landed = deciding.decide(admitted, fitted, writing)
    if landed.drift is None:
        return promotion_outcome(record.id, place, None, f"record {record.id} stands in version {place.head} already")
    if not landed.has_landed:
        waits = place.pending()
        *lines, why = landed.changes or ("it was refused",)
        request = waits[-1].id if waits else None
        return promotion_outcome(record.id, place, landed.outcome, why, request=request, changes=list(lines))
    canary = {"share": share} if landed.outcome == "canary" else None
    return promotion_outcome(record.id, place, None, "", written=True, canary=canary, changes=list(landed.changes))


@click.command()
@click.argument("id", shell_complete=complete_waiting)
@click.option("--canary", "share", type=float, metavar="SHARE", help="Share of sessions that get it first.")
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
    """Commit the request ID, or a version with the record ID in it, once everybody required has agreed.

    Only an operator may do this. Drift report and evals run again. Exit code 3: something blocks it, and is named.
    """
    with where.open() as place:
        result = promoted(place, id, operator(place, actor, token), share)
    print_result(result, show, as_json=as_json)
    if result["obstacle"] is not None:
        ctx.exit(BLOCKED)


@click.command()
@click.argument("version", type=click.IntRange(1), metavar="V", shell_complete=complete_versions)
@click.option("--note", default="by hand", show_default=True, metavar="TEXT", help="Reason; stored unencrypted.")
@click.option("--move-sessions", is_flag=True, help="Also move open sessions that still use a rolled-back version.")
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
    """Commit the content of version V again as a new version; records erased since then stay erased.

    Only an operator may do this. What is rolled back returns only if a person asks for it. Open sessions keep the
    version they began with; the output names those that keep a rolled-back version. Exit code 4; if V is already in
    force, nothing is written and the exit code is 0.
    """
    with where.open() as place:
        result = rolled_back(place, version, operator(place, actor, token), note, moves=move_sessions)
    print_result(result, show_rollback, as_json=as_json)
    if result["written"]:
        ctx.exit(ROLLED_BACK)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalOptions:
    """The options of the command line."""

    file: Profile
    vouched: Sequence[str] = ()
    note: str = ""
    dry_run: bool = False


def target_profile(asked: ProposalOptions, profile_name: str | None) -> str | None:
    """The profile to change: the one that the file names, else the one of --profile-name."""
    unnamed = ProfileDocument().name
    if asked.file.name == unnamed:
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
    """Stage the change, and return the outcome as JSON: the obstacle, or how many people must approve."""
    need(STEWARD, "propose")
    note = " ".join(asked.note.split())
    if len(note) > MAX_NOTE_CHARS:
        raise InputError(f"--note: {len(note):,} characters; write at most {MAX_NOTE_CHARS}")
    with ExitStack() as stack:
        at = place
        if asked.dry_run:  # over a draft of the store, which is thrown away
            at = replace(place, store=stack.enter_context(draft_store(place.store, place.tenant)))
        head = at.versions.newest()
        return staged(at, _of_file(at, asked, head), head, who, note) | {"dry_run": asked.dry_run}


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
    if not by_people(asked.file):
        return of_file(asked.file, head.profile, lambda pointer: False, asked.vouched)
    with records_at(place, keep=not asked.dry_run) as records:
        resolves = resolver(place.store, place.tenant, records.ledger.cites)
        return of_file(asked.file, head.profile, resolves, asked.vouched, fits_slice)


@click.command()
@click.argument("file", type=click.Path())
@click.option(
    "--vouch",
    "vouched",
    multiple=True,
    metavar="ID",
    help="Keep this record although its sources cannot be resolved; repeatable.",
)
@click.option("--note", default="", metavar="TEXT", help="Reason; stored unencrypted.")
@click.option("--dry-run", is_flag=True, help="Check the proposal, but store nothing; needs no token.")
@as_actor
@token
@about_a_profile()
@click.pass_context
def propose(
    ctx: click.Context,
    file: str,
    vouched: tuple[str, ...],
    note: str,
    dry_run: bool,
    actor: str | None,
    token: str | None,
    where: ProfileOptions,
    as_json: bool,
) -> None:
    """Stage the profile in FILE (`steward show` prints one): run drift check and evals, then ask people.

    Records learned by nights are kept. A file equal to the profile in force stages nothing. One other person must
    approve, two if a locked entry changes; then `steward promote` puts it into force. Exit code 3: something blocks
    it, and is named.
    """
    asked = ProposalOptions(file=Profile.load(file), vouched=vouched, note=note, dry_run=dry_run)
    with where._replace(profile_name=target_profile(asked, where.profile_name)).open() as place:
        result = proposed(place, asked, author(place, actor, token, dry_run=dry_run))
    print_result(result, show_proposal, as_json=as_json)
    if result["outcome"] == "blocked":
        ctx.exit(BLOCKED)
