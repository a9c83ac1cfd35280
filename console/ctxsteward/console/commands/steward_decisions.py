"""``ctxsteward steward propose``, ``review``, ``promote``, ``rollback``: what people decide."""

from __future__ import annotations

import click

from ..options import (
    actors_option,
    as_actor,
    common,
    complete_versions,
    complete_waiting,
    profile_name,
    read_profile,
    token,
)
from ..output import print_json, table_console

BLOCKED, ROLLED_BACK = 3, 4


@click.command(short_help="Stage a change of what is in force, for people to approve.")
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
@actors_option
@profile_name
@common
@click.pass_context
def propose(
    ctx: click.Context, file: str | None, record: str | None, to: str | None, text: str | None,
    vouched: tuple[str, ...], note: str, dry_run: bool, actor: str | None, token: str | None, actors: str | None,
    profile_name: str | None, as_json: bool, store: str, tenant: str,
) -> None:  # fmt: skip
    """Stage the profile in FILE, or one entry made of a candidate: drift report, evals, then people are asked.

    What nights have learned is carried over; a file that says what is in force stages nothing. One other person must
    approve, two where a locked entry is touched; then `steward promote` brings it into force. Exit code 3: something
    is in the way, and is named.
    """
    from ..steward import proposal as steward_proposing
    from ..steward.context import open_context

    if file is None and record is None:
        raise click.UsageError(
            "say what to propose: a profile file, or --record ID with --to BLOCK.KEY and --text", ctx
        )
    asked = steward_proposing.ProposalOptions(
        file=read_profile(file), record=record, to=to, text=text, vouched=vouched, note=note, dry_run=dry_run
    )
    with open_context(store, tenant, steward_proposing.target_profile(asked, profile_name), actors) as place:
        who = steward_proposing.author(place, actor, token, dry_run=dry_run)
        found = steward_proposing.proposed(place, asked, who)
    if as_json:
        print_json(found)
    else:
        steward_proposing.show(table_console(), found)
    if found["outcome"] == "blocked":
        ctx.exit(BLOCKED)


@click.command(short_help="What waits for people; approve or reject it.")
@click.argument("id", required=False, shell_complete=complete_waiting)
@click.option("--approve", "verdict", flag_value="approve", help="Agree.")
@click.option("--reject", "verdict", flag_value="reject", help="Refuse.")
@click.option("--note", default="", metavar="TEXT", help="Why; kept in plain.")
@click.option("--all", "every", is_flag=True, help="List every record that is held back, too.")
@as_actor
@token
@actors_option
@profile_name
@common
@click.pass_context
def review(
    ctx: click.Context, id: str | None, verdict: str | None, note: str, every: bool, actor: str | None,
    token: str | None, actors: str | None, profile_name: str | None, as_json: bool, store: str, tenant: str,
) -> None:  # fmt: skip
    """List what waits for people, show the request or record ID, or answer it.

    A request is a challenger that needs people; an approval is signed over all of it. A record may be approved, too: it
    is then used in the operator's name, which needs a version of its own. Exit code 3 where something waits.
    """
    from ..steward import review as steward_review
    from ..steward.context import open_context, read_token

    if verdict is not None and id is None:
        raise click.UsageError("say what: the id of a request or of a record", ctx)
    if verdict is None and (note or actor):
        raise click.UsageError("--as and --note go with --approve or --reject", ctx)
    with open_context(store, tenant, profile_name, actors) as place:
        if verdict is not None and id is not None:
            steward_review.check_people(place)
            secret = read_token(token)
            told = steward_review.answer(place, id, verdict, secret, who=actor, note=note)
            print_json(told) if as_json else click.echo(steward_review.answer_text(told))
            return
        if id is not None:
            steward_review.show_one(table_console(), place, id, as_json=as_json)
            return
        found = steward_review.waiting(place, every=every)
    if as_json:
        print_json(found)
    else:
        steward_review.show_waiting(table_console(), found)
    if found["requests"]:
        ctx.exit(BLOCKED)


@click.command(short_help="Bring an approved request or record into force.")
@click.argument("id", shell_complete=complete_waiting)
@click.option("--canary", "share", type=float, metavar="SHARE", help="For this share of the sessions first.")
@as_actor
@token
@actors_option
@profile_name
@common
@click.pass_context
def promote(
    ctx: click.Context, id: str, share: float | None, actor: str | None, token: str | None, actors: str | None,
    profile_name: str | None, as_json: bool, store: str, tenant: str,
) -> None:  # fmt: skip
    """Commit the request ID, or a version with the record ID in it, if everybody who must has agreed.

    It is an operator's. Drift report and evals are made again. Exit code 3: something is in the way, and is named.
    """
    from ..steward import promotion as steward_promoting
    from ..steward.context import open_context

    with open_context(store, tenant, profile_name, actors) as place:
        who = steward_promoting.operator(place, actor, token)
        found = steward_promoting.promoted(place, id, who, share)
    if as_json:
        print_json(found)
    else:
        steward_promoting.show(table_console(), found)
    if found["obstacle"] is not None:
        ctx.exit(BLOCKED)


@click.command(short_help="Bring an earlier version back.")
@click.argument("version", type=click.IntRange(1), metavar="V", shell_complete=complete_versions)
@click.option("--note", default="by hand", show_default=True, metavar="TEXT", help="Why; kept in plain.")
@click.option("--move-sessions", is_flag=True, help="Move open sessions to it that keep a version it takes back.")
@as_actor
@token
@actors_option
@profile_name
@common
@click.pass_context
def rollback(
    ctx: click.Context, version: int, note: str, move_sessions: bool, actor: str | None, token: str | None,
    actors: str | None, profile_name: str | None, as_json: bool, store: str, tenant: str,
) -> None:  # fmt: skip
    """Commit the content of version V again, as a new version; records that were erased since stay away.

    It is an operator's. What it takes back returns by a person's will alone. A session that is open keeps the version
    it began with: those that keep what is taken back are named. Exit code 4; where V is what is in force, nothing is
    written, and it is 0.
    """
    from ..steward import promotion as steward_promoting
    from ..steward.context import open_context

    with open_context(store, tenant, profile_name, actors) as place:
        who = steward_promoting.operator(place, actor, token)
        found = steward_promoting.rolled_back(place, version, who, note, moves=move_sessions)
    if as_json:
        print_json(found)
    else:
        steward_promoting.show_rollback(table_console(), found)
    if found["written"]:
        ctx.exit(ROLLED_BACK)
