"""``ctxsteward report``, ``resolve``, ``mcp``: what compactions kept and lost, originals by reference, and as tools."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec

import click

from ctxsteward.envelope import Store
from ctxsteward.envelope.compaction import text_of
from ctxsteward.schemas import CompressionReport, InputError, ReferenceNotFound

from ..terminal import (
    common,
    is_address,
    open_stored,
    print_document,
    print_json,
    stored_session,
    table_console,
    tables,
    telemetry,
    visible,
)


@click.command()
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

    with open_stored(store) as opened:
        reports = _reports(opened, name, tenant)
    if as_json:
        print_document("compression_report", [compaction.model_dump(mode="json") for compaction in reports])
    else:
        _print_tables(name, reports, losses)


def _reports(store: Store, name: str, tenant: str) -> list[CompressionReport]:
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
    compactions = session.reports()[: session.state.compactions]
    return [*(event.report for event in compactions), *session.meta_reports()]


def _print_tables(name: str, reports: list[CompressionReport], losses: int) -> None:
    console = table_console()
    if not reports:
        console.print(tables.shown(f"{name}: no compactions"))
        return
    console.print(tables.reports_table(reports))
    left = losses
    for compaction in reports:
        if left > 0 and compaction.losses:
            console.print(f"report {compaction.id}", soft_wrap=True)
            console.print(tables.losses_table(compaction, left))
        left -= len(compaction.losses)
    if left < 0 < losses:
        console.print(f"{-left:,} more losses; --losses {losses - left} lists all, --json too")


@click.command()
@click.argument("ref")
@click.option("--session", "session_id", required=True, metavar="ID", help="Session that the reference belongs to.")
@click.option("--offset", type=click.IntRange(min=0), default=0, metavar="N", help="First character to show.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many characters; default: all.")
@click.option("--grep", metavar="TEXT", help="Only lines that contain this text, in any case.")
@common
def resolve(
    ref: str,
    session_id: str,
    offset: int,
    limit: int | None,
    grep: str | None,
    as_json: bool,
    store: str,
    tenant: str,
) -> None:
    """Show the original that REF names.

    §128 or 128 is the 128th message, §128.2 the second tool result in it, tool:3 the third tool output of the
    session.

    --json prints the message exactly as it was appended. Otherwise control characters are written out, and
    --offset, --limit and --grep choose a part.
    """

    with open_stored(store) as opened:
        message = stored_session(opened, session_id, tenant).resolve(ref)
    if as_json:
        print_json(message.wire)
        return
    text = text_of(message)
    if grep:
        text = "\n".join(line for line in text.split("\n") if grep.lower() in line.lower())
    stop = len(text) if limit is None else offset + limit
    click.echo(f"{ref} {message.role}")
    click.echo(visible(text[offset:stop], keep="\n\t"))
    if stop < len(text):
        click.echo(f"[{len(text) - stop:,} more characters; --offset {stop}]")


@click.command()
@click.option("--session", "session_id", required=True, metavar="ID", help="Session that the tools read.")
@telemetry
@common
def mcp(session_id: str, as_json: bool, store: str, tenant: str) -> None:
    """Serve search_context and resolve_reference of one session to an MCP client, over stdin and stdout.

    Nothing is written, and no other session can be read. --json changes nothing: the protocol is JSON.
    """

    if find_spec("mcp") is None:
        raise click.ClickException("mcp: the `mcp` package is missing; pip install 'ctxsteward[mcp]'")
    with open_stored(store) as opened:
        session = stored_session(opened, session_id, tenant)

        from ..mcp_server import serve

        serve(session, version("ctxsteward"))
