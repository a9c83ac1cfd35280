"""``ctxsteward steward status``, ``log``, ``diff``, ``why``, ``drift``: reading only."""

from __future__ import annotations

import click

from ..failures import FOUND
from ..options import common
from ..output import print_json, table_console
from ..steward_options import actors_option, complete_records, complete_versions, profile_name


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
    from .. import steward_status
    from ..steward_place import placed

    with placed(store, tenant, profile_name, actors) as place:
        found = steward_status.document(place, limit)
        if html is not None:
            from ..steward_page import write_page

            write_page(html, place, None)
    if as_json:
        print_json(found)
    else:
        steward_status.show(table_console(), found)


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
    from .. import steward_log
    from ..steward_place import placed

    if markdown and (nights or as_json):
        raise click.UsageError("--markdown goes with neither --nights nor --json")
    with placed(store, tenant, profile_name) as place:
        if markdown:
            from ctxsteward.steward.changelog import changelog_text

            click.echo(changelog_text(place.versions), nl=False)
            return
        rows = steward_log.nights(place, limit) if nights else steward_log.versions(place, limit)
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
    from .. import steward_compared
    from ..steward_place import placed

    with placed(store, tenant, profile_name) as place:
        found = steward_compared.between(place, before, after)
    if as_json:
        print_json(found.document())
    else:
        steward_compared.show(table_console(), found)


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
    from .. import steward_compared
    from ..steward_place import placed

    if (before is None) != (after is None):
        raise click.UsageError("give both versions, or none", ctx)
    with placed(store, tenant, profile_name, actors) as place:
        if before is not None and after is not None:
            found = steward_compared.between(place, before, after)
        else:
            found = steward_compared.newest(place)
    if as_json:
        print_json(found.document())
    else:
        steward_compared.show(table_console(), found)
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
    from .. import steward_why
    from ..steward_place import placed
    from ..steward_records import records_at

    with placed(store, tenant, profile_name, actors) as place, records_at(place) as records:
        record = records.find(id)
        spans = records.spans(record)
        shown = steward_why.shown_in(place, record)
    if as_json:
        print_json(steward_why.document(record, spans, shown))
    else:
        steward_why.show(table_console(), record, spans, shown)
    if not all(span.verified for span in spans):
        ctx.exit(FOUND)
