"""``ctxsteward report``: what compactions kept and lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..options import common
from ..output import print_document, table_console

if TYPE_CHECKING:
    from ctxsteward.envelope import Store
    from ctxsteward.schemas import CompressionReport


@click.command(short_help="Show what compactions kept and lost.")
@click.argument("name", metavar="ADDRESS|SESSION")
@click.option(
    "--losses",
    type=click.IntRange(min=0),
    default=40,
    show_default=True,
    metavar="N",
    help="List at most so many.",
)
@common
def report(name: str, losses: int, as_json: bool, store: str, tenant: str) -> None:
    """Show the compression report at ADDRESS, the reports behind an envelope's ADDRESS, or all of a SESSION.

    An address is 64 hex digits; anything else is a session id.
    """
    from ..stored import open_stored

    with open_stored(store) as opened:
        reports = _reports(opened, name, tenant)
    if as_json:
        print_document("compression_report", [one.model_dump(mode="json") for one in reports])
    else:
        _print_tables(name, reports, losses)


def _reports(store: Store, name: str, tenant: str) -> list[CompressionReport]:
    from ctxsteward.schemas import InputError, ReferenceNotFound

    from ..stored import is_address, stored_session

    name = store.address(name, tenant=tenant)
    if not is_address(name):
        session = stored_session(store, name, tenant)
        return [*(event.report for event in session.reports()), *session.meta_reports()]
    try:
        return [store.report(name, tenant=tenant)]
    except ReferenceNotFound:
        pass
    try:
        manifest = store.manifest(name, tenant=tenant)
    except ReferenceNotFound:
        raise InputError(f"{store.uri}: {name} is no compaction and no envelope of tenant {tenant!r}; "
                         "take one from a build or a replay") from None  # fmt: skip
    session = store.at(tenant, manifest["session"], manifest["position"])
    made = session.reports()[: session.state.compactions]
    return [*(event.report for event in made), *session.meta_reports()]


def _print_tables(name: str, reports: list[CompressionReport], losses: int) -> None:
    from .. import tables

    console = table_console()
    if not reports:
        console.print(tables.shown(f"{name}: no compactions"))
        return
    console.print(tables.reports_table(reports))
    left = losses
    for one in reports:
        if left > 0 and one.losses:
            console.print(f"report {one.id}", soft_wrap=True)
            console.print(tables.losses_table(one, left))
        left -= len(one.losses)
    if left < 0 < losses:
        console.print(f"{-left:,} more losses; --losses {losses - left} lists all, --json too")
