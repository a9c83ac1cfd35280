"""``ctxsteward steward propose``: stages and judges a change of the version in force, and puts it before people.

It comes into force by ``promote``. The author proves by a token who they are, as a reviewer does: nobody reviews a
change of their own. Where a night's candidate becomes an entry, the proposer writes the entry's text: a version holds
operators' words, and users' words stay in the vault.

Raises `InputError`, `Refused`, and what the store raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import click
from pydantic import ValidationError
from rich.console import Console

from ctxsteward.schemas import InputError, ProfileDocument, ProfileEntry
from ctxsteward.steward.night import draft_store
from ctxsteward.steward.release import Promotion, fits_slice, judge, stage
from ctxsteward.store import Profile, Proposal, Version, by_people, of_entry, of_file, resolver

from ..terminal import BLOCKED, STEWARD, need, print_result, read_profile, tables
from .context import StewardContext
from .records import ProfileOptions, about_a_profile, as_actor, records_at, token, whose
from .review import check_people
from .versions import changes

MAX_NOTE_CHARS = 500
SPENT = ("superseded", "rejected", "expired")
"""Statuses of records that no change may be made of."""


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
    with _kept_or_not(place, asked.dry_run) as at:
        head = at.versions.newest()
        proposal = _of_record(at, asked, head) if asked.record is not None else _of_file(at, asked, head)
        why = f"from record {asked.record}; {note}".rstrip("; ") if asked.record is not None else note
        return _staged(at, proposal, head, who, why) | {"dry_run": asked.dry_run}


def show(console: Console, found: Mapping[str, Any]) -> None:
    for finding in found["findings"]:
        console.print(tables.shown(f"finding: {finding['text']}"), soft_wrap=True)
    if found["outcome"] == "unchanged":
        line = f"version {found['parent']} of {found['profile']} says that already; nothing was staged"
    elif found["outcome"] == "blocked":
        line = f"in the way: {found['why']}"
    else:
        verb = "would be staged" if found["dry_run"] else "staged"
        people = f"{found['people']} must approve" if found["people"] > 1 else "1 other person must approve"
        line = f"{verb} as request {found['request']} after version {found['parent']}: drift {found['level']}, {people}"
    console.print(tables.shown(line, style="bold"), soft_wrap=True)
    for change in found["changes"]:
        console.print(tables.shown(f"  {change}"), soft_wrap=True)
    for drift in found["drift"]:
        console.print(
            tables.shown(f"  {drift['level']} {drift['key'] or drift['block'] or '-'}: {drift['text']}"),
            soft_wrap=True,
        )
    if found["outcome"] == "staged" and not found["dry_run"]:
        console.print(tables.shown(f"next: `ctxsteward steward review {found['request']} --approve`"), soft_wrap=True)


# -- inside -------------------------------------------------------------------------------------------------------


@contextmanager
def _kept_or_not(place: StewardContext, dry_run: bool) -> Iterator[StewardContext]:
    """The place itself; for a dry run the same over a draft of the store, which is thrown away."""
    if not dry_run:
        yield place
        return
    with draft_store(place.store, place.tenant) as draft:
        yield replace(place, store=draft)


def _of_file(place: StewardContext, asked: ProposalOptions, head: Version) -> Proposal:
    proposed_profile = asked.file
    if proposed_profile is None:
        raise InputError("say what to propose: a profile file, or --record ID with --to BLOCK.KEY and --text")
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
    if not record.scope.is_shared:
        raise InputError(f"--record {record.id}: it is for {whose(record)} alone; a profile is for everybody")
    block, _, key = (asked.to or "").partition(".")
    if not key:
        raise InputError(f"--record {record.id}: say which entry it becomes, such as --to surface.length")
    if not asked.text:
        raise InputError(f"--record {record.id} says “{record.text}”; write the entry in your own words: --text TEXT")
    old = next((one for one in getattr(head.profile, block, ()) if one.id == key), None)
    try:
        entry = ProfileEntry.model_validate((old.model_dump() if old else {}) | {"id": key, "text": asked.text})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = "--to" if first["loc"][:1] == ("id",) else "--text"
        raise InputError(f"{option} {str(first['input'])[:80]}: {first['msg']}; correct it") from error
    return of_entry(head.profile, block, entry)


def _staged(place: StewardContext, proposal: Proposal, head: Version, who: str, why: str) -> dict[str, Any]:
    settings, when = place.settings(), place.here.when
    document, parent = proposal.document, head.number
    drift, gate = judge(
        place.store, place.profile, document, parent=parent, when=when, limits=settings.drift, gate=settings.gate,
        tenant=place.tenant,
    )  # fmt: skip
    promotion = stage(
        place.store, place.profile, document, drift, gate, place.approvals, who, why, when, tenant=place.tenant,
        parent=parent,
    )  # fmt: skip
    request = promotion.request
    return {
        "outcome": _outcome(promotion), "profile": place.profile, "parent": parent, "author": who,
        "request": request.id if request else None, "state": request.state if request else None,
        "people": promotion.people, "level": drift.level, "touched": list(drift.touched),
        "touches_locked": drift.touches_locked, "obstacle": promotion.obstacle, "why": promotion.why,
        "changes": list(changes(head.profile, document)),
        "drift": [row.model_dump(mode="json") for row in drift.findings if row.level != "INFO"],
        "gate": {"passed": gate.passed, "failed": list(gate.failed)},
        "findings": [row.model_dump(mode="json") for row in proposal.findings],
    }  # fmt: skip


def _outcome(found: Promotion) -> str:
    if found.kind == "unchanged":
        return "unchanged"
    waits = found.request is not None and found.request.state in ("waiting", "approved")
    return "staged" if waits else "blocked"


@click.command()
@click.argument("file", type=click.Path(), metavar="[FILE]", required=False)
@click.option("--record", metavar="ID", help="Instead of a file: make an entry out of this candidate of a night.")
@click.option("--to", metavar="BLOCK.KEY", help="The entry that it becomes, such as surface.length.")
@click.option("--text", metavar="TEXT", help="The entry's words: the operator's own, not the user's.")
@click.option("--vouch", "vouched", multiple=True, metavar="ID", help="Keep this record of the file's meta though its "
              "sources cannot be resolved; repeatable.")  # fmt: skip
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
        raise click.UsageError(
            "say what to propose: a profile file, or --record ID with --to BLOCK.KEY and --text", ctx
        )
    asked = ProposalOptions(
        file=read_profile(file), record=record, to=to, text=text, vouched=vouched, note=note, dry_run=dry_run
    )
    with where._replace(profile_name=target_profile(asked, where.profile_name)).open() as place:
        result = proposed(place, asked, author(place, actor, token, dry_run=dry_run))
    print_result(result, show, as_json=as_json)
    if result["outcome"] == "blocked":
        ctx.exit(BLOCKED)
