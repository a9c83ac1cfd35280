"""``ctxsteward steward run``: one night."""

from __future__ import annotations

from pathlib import Path

import click

from ..options import common
from ..output import print_json, table_console
from ..steward_options import actors_option, profile_name
from ..telemetry_options import telemetry


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
    from .. import steward_report, tables
    from ..options import read_profile
    from ..steward_progress import night_bar
    from ..steward_running import Asked, ready
    from ..steward_running import run as run_night
    from ..steward_settings import read_settings

    given = ctx.get_parameter_source("store") is not click.core.ParameterSource.DEFAULT
    file = read_settings(settings)
    if html is not None and not Path(html).parent.is_dir():
        raise click.UsageError(f"--html {html}: no such folder", ctx)
    asked = Asked(
        store=store if given else file.get("store", store), tenant=_tenant(ctx, file, tenant), transcripts=transcripts,
        profile_name=profile_name, profile=read_profile(profile), who=who, actors=actors, file=file, options=options,
    )  # fmt: skip
    with ready(asked) as night:
        with night_bar(shown=not as_json) as tell:
            report, seen = run_night(night, tell)
        if html is not None:
            from ..steward_page import write_page

            write_page(html, night.place, report)
        if as_json:
            told = [finding.model_dump(mode="json") for finding in night.findings]
            print_json(steward_report.document(report, seen, night.place) | {"findings": told})
        else:
            for finding in night.findings:
                table_console().print(tables.shown(f"finding: {finding.text}"), soft_wrap=True)
            steward_report.show(table_console(), report, seen, night.place, is_shipped=night.is_shipped)
    ctx.exit(steward_report.exit_code(report))


def _tenant(ctx: click.Context, file: dict[str, object], tenant: str) -> str:
    given = ctx.get_parameter_source("tenant") is not click.core.ParameterSource.DEFAULT
    return tenant if given else str(file.get("tenant", tenant))
