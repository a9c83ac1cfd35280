"""``ctxsteward steward quarantine``, ``doctor``, ``forget``, ``actors``: what keeps nights healthy."""

from __future__ import annotations

from pathlib import Path

import click

from ..failures import FOUND, one_line
from ..options import common
from ..output import print_json, progress, table_console
from ..steward_options import actors_option, profile_name

ROLES = ("reviewer", "operator")


@click.command(short_help="Transcripts and records that were refused, and why.")
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="Transcripts to read again.")
@profile_name
@common
@click.pass_context
def quarantine(
    ctx: click.Context, limit: int, profile_name: str | None, as_json: bool, store: str, tenant: str
) -> None:
    """List the transcripts that nights put into quarantine, read each again, and say what is wrong with it.

    One that reads now is harvested by the next night once it has changed, or by `run --full`. Exit code 1: something
    is in quarantine still.
    """
    from .. import steward_quarantine
    from ..steward_place import placed

    with (
        placed(store, tenant, profile_name) as place,
        progress("reading again", shown=not as_json) as tell,
    ):
        found = steward_quarantine.document(place, limit, tell)
    if as_json:
        print_json(found)
    else:
        steward_quarantine.show(table_console(), found)
    if found["standing"] or found["records"] or found["set_aside"]:
        ctx.exit(FOUND)


@click.command(short_help="Check configuration, keys, packages, Prefect, lease, ledger, spans.")
@click.option("--settings", type=click.Path(), metavar="FILE", help="Settings of the nights (YAML), checked too.")
@actors_option
@profile_name
@common
@click.pass_context
def doctor(
    ctx: click.Context, settings: str | None, actors: str | None, profile_name: str | None, as_json: bool, store: str,
    tenant: str,
) -> None:  # fmt: skip
    """Check everything that a night rests on, and say what to do about each thing that is wrong.

    Exit code 1: something is wrong.
    """
    from .. import steward_doctor

    with progress("checking", shown=not as_json) as tell:
        found = steward_doctor.checked(store, tenant, profile_name, actors, settings, tell)
    if as_json:
        print_json([one._asdict() for one in found])
    else:
        steward_doctor.show(table_console(), found)
    if any(one.state == "wrong" for one in found):
        ctx.exit(FOUND)


@click.command(short_help="Erase what was harvested from a session or a person.")
@click.option("--session", metavar="ID", help="This session.")
@click.option("--principal", metavar="NAME", help="This person, in all sessions (or in --session).")
@click.option("--who", required=True, metavar="NAME", help="Who orders it; kept in plain.")
@click.option("--why", required=True, metavar="TEXT", help="Why, such as a request's number; kept in plain.")
@profile_name
@common
def forget(
    session: str | None, principal: str | None, who: str, why: str, profile_name: str | None, as_json: bool,
    store: str, tenant: str,
) -> None:  # fmt: skip
    """Erase what was harvested from transcripts outside the store, for good, in every version.

    For the store's own sessions use `ctxsteward store forget`. A transcript that is marked as deleted where it lies is
    forgotten by the next night.
    """
    from .. import steward_forgetting
    from ..steward_place import placed

    if session is None and principal is None:
        raise click.UsageError("say whom: --session, --principal, or both")
    with placed(store, tenant, profile_name) as place:
        done = steward_forgetting.forgotten(place, session, principal, who, why)
    print_json(done) if as_json else click.echo(one_line(steward_forgetting.said(done)))


@click.command(short_help="Who may approve and operate; add somebody.")
@click.option("--add", "name", metavar="NAME", help="Give NAME roles and a new token; it is shown once, kept nowhere.")
@click.option("--role", "roles", multiple=True, type=click.Choice(ROLES), help="Of whoever is added; repeatable.")
@click.option("--token-file", type=click.Path(), metavar="FILE", help="Put the token there (mode 600), not on stdout.")
@actors_option
@common
@click.pass_context
def actors(
    ctx: click.Context, name: str | None, roles: tuple[str, ...], token_file: str | None, actors: str | None,
    as_json: bool, store: str, tenant: str,
) -> None:  # fmt: skip
    """List who may approve (reviewer) and who may promote and roll back (operator), or add somebody.

    They stand in a YAML file of names, roles and public keys.
    """
    from .. import steward_actors

    if name is None:
        if roles or token_file:
            raise click.UsageError("--role and --token-file go with --add", ctx)
        people = steward_actors.listed(actors, store)
        print_json(people) if as_json else steward_actors.show(table_console(), people)
        return
    if not roles:
        raise click.UsageError("say what they may do: --role reviewer, --role operator, or both", ctx)
    target = steward_actors.target(actors, store)
    if token_file is not None:
        steward_actors.check_free(Path(token_file))
    token = steward_actors.add(target, name, roles)
    if token_file is not None:
        steward_actors.keep_token(Path(token_file), token)
    told = {"file": str(target), "name": name, "roles": list(roles), "token": None if token_file else token}
    if as_json:
        print_json(told)
        return
    click.echo(f"{name} is {' and '.join(roles)} in {target}")
    where = f"in {token_file}" if token_file else f"(shown this once): {token}"
    click.echo(f"their token {where}")
