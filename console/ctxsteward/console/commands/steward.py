"""``ctxsteward steward run``: one night.

``ctxsteward steward status``, ``log``, ``diff``, ``why``, ``drift``: reading only.

``ctxsteward steward quarantine``, ``doctor``, ``forget``, ``actors``: what keeps nights healthy.

``ctxsteward steward``: nights over transcripts, and what becomes of what they find.

The verbs lie in `steward_run`, `steward_look` (reading only), `steward_people` (proposing, approving, promoting,
rolling back) and `steward_care` (quarantine, doctor, forget, actors).
"""

from __future__ import annotations

from pathlib import Path

import click

from ..failures import FOUND, one_line
from ..options import actors_option, common, complete_records, complete_versions, profile_name, telemetry
from ..output import print_json, progress, table_console
from .steward_decisions import promote, propose, review, rollback


@click.command(short_help="Run one night over whatever transcripts are due.")
@click.option("--transcripts", multiple=True, metavar="PATH|URI", help="A folder, a file, s3://BUCKET/PREFIX or store.")
@click.option("--since", metavar="TIME", help="Leave out what changed before (ISO 8601).")
@click.option("--until", metavar="TIME", help="Leave what changed then or later to a later night.")
@click.option("--full", is_flag=True, default=None, help="Read everything anew.")
@click.option("--dry-run", is_flag=True, default=None, help="Decide, and keep nothing.")
@click.option("--runner", type=click.Choice(["threads", "dask"]), help="Who runs batches; default: threads.")
@click.option("--workers", type=int, metavar="N", help="Threads, or processes of a local Dask cluster; default: 2.")
@click.option("--dask-address", metavar="ADDRESS", help="Scheduler of a Dask cluster that is there already.")
@click.option("--night", metavar="DATE", help="Its date, by which records age; default: today.")
@click.option("--canary", "canary_share", type=float, metavar="SHARE", help="Give a new version to this share first.")
@click.option(
    "--profile", type=click.Path(), metavar="FILE",
    help="Profile (YAML): makes the first version; else it must be what is in force (see `steward propose`).",
)  # fmt: skip
@click.option("--settings", type=click.Path(), metavar="FILE", help="Settings (YAML); default: CTXSTEWARD_SETTINGS.")
@click.option("--html", type=click.Path(), metavar="FILE", help="Write the report as a page of its own, too.")
@click.option("--as", "who", metavar="NAME", help="Author of a first version; default: your login name.")
@actors_option
@profile_name
@common
@click.pass_context
@telemetry
def run(
    ctx: click.Context, /, transcripts: tuple[str, ...], profile: str | None, settings: str | None, html: str | None,
    who: str | None, actors: str | None, profile_name: str | None, as_json: bool, store: str, tenant: str,
    **options: object,
) -> None:  # fmt: skip
    """Run one night: read what is due, harvest, reconcile, check, commit, and say what changed and why.

    Without --transcripts it goes on with what the last night read, or with the store's own closed sessions; on a new
    store it runs on shipped transcripts. Exit codes: 1 a batch failed, or nothing could be read; 3 a person must look,
    or another night is under way; 4 a canary was rolled back.
    """
    from .. import tables
    from ..options import read_profile
    from ..steward import report as steward_report
    from ..steward.night import NightOptions, night_bar, ready
    from ..steward.night import run as run_night
    from ..steward.settings import read_settings

    given = ctx.get_parameter_source("store") is not click.core.ParameterSource.DEFAULT
    file = read_settings(settings)
    if html is not None and not Path(html).parent.is_dir():
        raise click.UsageError(f"--html {html}: no such folder", ctx)
    asked = NightOptions(
        store=store if given else file.get("store", store), tenant=_tenant(ctx, file, tenant), transcripts=transcripts,
        profile_name=profile_name, profile=read_profile(profile), who=who, actors=actors, file=file, options=options,
    )  # fmt: skip
    with ready(asked) as night:
        with night_bar(shown=not as_json) as tell:
            report, seen = run_night(night, tell)
        if html is not None:
            from ..steward.page import write_page

            write_page(html, night.place, report)
        if as_json:
            told = [finding.model_dump(mode="json") for finding in night.findings]
            print_json(steward_report.night_document(report, seen, night.place) | {"findings": told})
        else:
            for finding in night.findings:
                table_console().print(tables.shown(f"finding: {finding.text}"), soft_wrap=True)
            steward_report.show_night(table_console(), report, seen, night.place, is_shipped=night.is_shipped)
    ctx.exit(steward_report.exit_code(report))


def _tenant(ctx: click.Context, file: dict[str, object], tenant: str) -> str:
    given = ctx.get_parameter_source("tenant") is not click.core.ParameterSource.DEFAULT
    return tenant if given else str(file.get("tenant", tenant))


@click.command(short_help="What is in force, the last nights, who is at it now.")
@click.option("--limit", type=click.IntRange(0, 366), default=7, show_default=True, help="Nights to show.")
@click.option("--html", type=click.Path(), metavar="FILE", help="Write it as a page of its own, with plots.")
@actors_option
@profile_name
@common
def status(
    limit: int, html: str | None, actors: str | None, profile_name: str | None, as_json: bool, store: str, tenant: str
) -> None:
    """Say how the steward of a profile stands."""
    from ..steward import report as steward_status
    from ..steward.context import open_context

    with open_context(store, tenant, profile_name, actors) as place:
        found = steward_status.status_document(place, limit)
        if html is not None:
            from ..steward.page import write_page

            write_page(html, place, None)
    if as_json:
        print_json(found)
    else:
        steward_status.show_status(table_console(), found)


@click.command(short_help="Who committed which version, when and why.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the newest.")
@click.option("--nights", is_flag=True, help="Nights instead of versions.")
@click.option("--markdown", is_flag=True, help="Print the profile's CHANGELOG.md.")
@profile_name
@common
def log(
    limit: int | None, nights: bool, markdown: bool, profile_name: str | None, as_json: bool, store: str, tenant: str
) -> None:
    """List the versions of a profile, newest first, with what each rested on; or its nights."""
    from ..steward import versions as steward_log
    from ..steward.context import open_context

    if markdown and (nights or as_json):
        raise click.UsageError("--markdown goes with neither --nights nor --json")
    with open_context(store, tenant, profile_name) as place:
        if markdown:
            from ctxsteward.steward.release.changelog import changelog_text

            click.echo(changelog_text(place.versions), nl=False)
            return
        rows = steward_log.night_rows(place, limit) if nights else steward_log.changelog_rows(place, limit)
    if as_json:
        print_json(rows)
    elif nights:
        steward_log.show_nights(table_console(), rows)
    else:
        steward_log.show_versions(table_console(), rows)


@click.command(short_help="What changed between two versions.")
@click.argument("before", type=click.IntRange(1), metavar="A", shell_complete=complete_versions)
@click.argument("after", type=click.IntRange(1), metavar="B", shell_complete=complete_versions)
@profile_name
@common
def diff(before: int, after: int, profile_name: str | None, as_json: bool, store: str, tenant: str) -> None:
    """Compare versions A and B key by key, with the patch (RFC 6902) and its inverse."""
    from ..steward import versions as steward_compared
    from ..steward.context import open_context

    with open_context(store, tenant, profile_name) as place:
        found = steward_compared.compare_versions(place, before, after)
    if as_json:
        print_json(found.document())
    else:
        steward_compared.show_comparison(table_console(), found)


@click.command(short_help="How far the profile has drifted, with the patch.")
@click.argument("before", type=click.IntRange(1), metavar="[A]", required=False, shell_complete=complete_versions)
@click.argument("after", type=click.IntRange(1), metavar="[B]", required=False, shell_complete=complete_versions)
@actors_option
@profile_name
@common
@click.pass_context
def drift(
    ctx: click.Context, before: int | None, after: int | None, actors: str | None, profile_name: str | None,
    as_json: bool, store: str, tenant: str,
) -> None:  # fmt: skip
    """Report the drift from version A to B; without them, of what waits for people, else of the last commit.

    Exit code 1: a finding is a WARN or a BLOCK.
    """
    from ..steward import versions as steward_compared
    from ..steward.context import open_context

    if (before is None) != (after is None):
        raise click.UsageError("give both versions, or none", ctx)
    with open_context(store, tenant, profile_name, actors) as place:
        if before is not None and after is not None:
            found = steward_compared.compare_versions(place, before, after)
        else:
            found = steward_compared.compare_newest(place)
    if as_json:
        print_json(found.document())
    else:
        steward_compared.show_comparison(table_console(), found)
    if found.report.level != "INFO":
        ctx.exit(FOUND)


@click.command(short_help="The spans that a record rests on, quoted.")
@click.argument("id", shell_complete=complete_records)
@actors_option
@profile_name
@common
@click.pass_context
def why(
    ctx: click.Context, id: str, actors: str | None, profile_name: str | None, as_json: bool, store: str, tenant: str
) -> None:
    """Say why the record ID is what it is: its gate, its support, and each span it rests on, word by word.

    ID may be the first digits of an id, or an id that the record once had. Exit code 1: a span is gone, or is not what
    its address says.
    """
    from ..steward import review as steward_why
    from ..steward.context import open_context
    from ..steward.records import records_at

    with open_context(store, tenant, profile_name, actors) as place, records_at(place) as records:
        record = records.find(id)
        spans = records.spans(record)
        shown = steward_why.version_showing(place, record)
    if as_json:
        print_json(steward_why.record_document(record, spans, shown))
    else:
        steward_why.show_record(table_console(), record, spans, shown)
    if not all(span.verified for span in spans):
        ctx.exit(FOUND)


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
    from ..steward import quarantine as steward_quarantine
    from ..steward.context import open_context

    with (
        open_context(store, tenant, profile_name) as place,
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
    from ..steward import doctor as steward_doctor

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
    from ..steward import records as steward_forgetting
    from ..steward.context import open_context

    if session is None and principal is None:
        raise click.UsageError("say whom: --session, --principal, or both")
    with open_context(store, tenant, profile_name) as place:
        done = steward_forgetting.forget_harvested(place, session, principal, who, why)
    print_json(done) if as_json else click.echo(one_line(steward_forgetting.erasure_text(done)))


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
    from ..steward import context as steward_actors

    if name is None:
        if roles or token_file:
            raise click.UsageError("--role and --token-file go with --add", ctx)
        people = steward_actors.list_actors(actors, store)
        print_json(people) if as_json else steward_actors.show_actors(table_console(), people)
        return
    if not roles:
        raise click.UsageError("say what they may do: --role reviewer, --role operator, or both", ctx)
    target = steward_actors.actors_file(actors, store)
    if token_file is not None:
        steward_actors.check_token_file(Path(token_file))
    token = steward_actors.add_actor(target, name, roles)
    if token_file is not None:
        steward_actors.write_token_file(Path(token_file), token)
    told = {"file": str(target), "name": name, "roles": list(roles), "token": None if token_file else token}
    if as_json:
        print_json(told)
        return
    click.echo(f"{name} is {' and '.join(roles)} in {target}")
    where = f"in {token_file}" if token_file else f"(shown this once): {token}"
    click.echo(f"their token {where}")


@click.group(short_help="Harvest insights from transcripts, through gates.")
def steward() -> None:
    """Read transcripts at night, and change what is governed only through gates.

    Exit codes: 0 fine; 1 the check found something; 2 bad usage or input; 3 blocked, a person must look (or another
    night is under way); 4 rolled back.
    """


for _verb in (
    run,
    status,
    log,
    diff,
    why,
    propose,
    review,
    promote,
    rollback,
    quarantine,
    drift,
    doctor,
    forget,
    actors,
):
    steward.add_command(_verb)
