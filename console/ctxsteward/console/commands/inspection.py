"""``ctxsteward report``, ``resolve``, ``mcp``, ``audit`` and ``schema``. Only ``report --undo`` changes a session.

They show what compactions kept and lost; originals by reference, also as tools of an MCP server; how a sent request
differs from its envelope, the cause first; and the published JSON Schemas."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from itertools import chain, islice

import click

from ctxsteward.envelope import PROVIDERS, Envelope, Session, Store, rebuild
from ctxsteward.envelope.audit import audit as compare
from ctxsteward.envelope.audit.requests import not_governed
from ctxsteward.envelope.history.tool_groups import text_of
from ctxsteward.envelope.transcripts.strict_json import MAX_VALUE_BYTES, memory_input, open_input
from ctxsteward.schemas import CompressionReport, ContextError, InputError, Loss, ReferenceNotFound
from ctxsteward.schemas.errors import InvalidTranscript, shown_uri
from ctxsteward.schemas.publish import names, schema as published
from ctxsteward.store.journal.port import SessionKey

from ..terminal import tables
from ..terminal.failures import FOUND, visible
from ..terminal.options import (
    DEFAULT_MODEL,
    budget_option,
    common,
    completer,
    json_option,
    read_builder,
    read_provider,
    store_option,
    telemetry,
    tenant_option,
)
from ..terminal.output import print_document, print_json, table_console
from ..terminal.stores import envelope_address, is_address, open_stored, stored_session
from ..terminal.tables import say

SHORT_CHARS = 30
"""A lost text of at most so many characters is shown with as many around it."""
LEGEND = (
    "pre, post: the section's tokens before and after. kept: originals that are cited or stay whole. losses: what is "
    "no longer shown; a question may bring it back. The newest compaction is last."
)


@click.command(epilog=LEGEND)
@click.argument("name", metavar="ADDRESS|SESSION")
@click.option(
    "--losses",
    type=click.IntRange(min=0),
    default=40,
    show_default=True,
    metavar="N",
    help="Most losses to list.",
)
@click.option("--undo", is_flag=True, help="Undo the SESSION's newest compaction: show its messages again.")
@click.option(
    "--model", default=DEFAULT_MODEL, show_default=True, metavar="NAME", help="With --undo: model whose budgets apply."
)
@budget_option("With --undo: a field of Budgets, such as dynamic_tokens=9000; repeatable.")
@common
def report(
    name: str,
    losses: int,
    undo: bool,
    model: str,
    budgets: tuple[str, ...],
    as_json: bool,
    store: str,
    tenant: str,
) -> None:
    """Show the compression report at ADDRESS, the reports behind an envelope's ADDRESS, or all reports of a SESSION.

    An address has 64 hex digits; anything else is a session id. --undo shows the messages of the session's newest
    compaction again in the next envelopes, if they fit the budget; its report is the last one in the list.
    """

    with open_stored(store, tenant) as opened:
        if undo:
            stored_session(opened, name, tenant)  # raises if it does not exist, before it is opened for writing
            read_builder(model, budgets).show_again(opened.session(name, tenant=tenant))
        reports, session = _reports(opened, name, tenant)
        if as_json:
            print_document("compression_report", [compaction.model_dump(mode="json") for compaction in reports])
        else:
            _print_reports(name, reports, session, losses)


def _print_reports(name: str, reports: Sequence[CompressionReport], session: Session | None, losses: int) -> None:
    console = table_console()
    if not reports:
        console.print(tables.shown(f"{name}: no compactions"))
        return
    console.print(tables.reports_table(reports))
    say(console, LEGEND)
    left = losses
    for compaction in reports:
        if left > 0 and compaction.losses:
            say(console, f"report {compaction.id}")
            console.print(tables.losses_table(compaction, left, lambda loss: _in_context(session, loss)))
        left -= len(compaction.losses)
    if left < 0 < losses:
        console.print(f"{-left:,} more losses; --losses {losses - left} lists all, --json too")


def _in_context(session: Session | None, loss: Loss) -> str:
    """Return the lost text; after a short one, where its session is known, its place in the original."""
    text = " ".join(loss.text.split())
    if session is None or loss.span is None or len(text) > SHORT_CHARS:
        return text
    try:
        original = text_of(session.resolve(loss.ref))
    except ContextError:  # erased since
        return text
    start, stop = max(0, loss.span[0] - SHORT_CHARS), loss.span[1] + SHORT_CHARS
    before, after = original[start : loss.span[0]], original[loss.span[1] : stop]
    if start > 0:
        before = "… " + before.split(" ", 1)[-1]
    if stop < len(original):
        after = after.rsplit(" ", 1)[0] + " …"
    return f"{text}: {' '.join(f'{before}{loss.text}{after}'.split())}"


def _reports(store: Store, name: str, tenant: str) -> tuple[list[CompressionReport], Session | None]:
    """Return the reports, and their session where the name says it."""
    name = store.address(name, tenant=tenant)
    if not is_address(name):
        session = stored_session(store, name, tenant)
        return [event.report for event in session.reports()], session
    try:
        return [store.report(name, tenant=tenant)], None
    except ReferenceNotFound:
        pass
    try:
        manifest = store.manifest(name, tenant=tenant)
    except ReferenceNotFound:
        raise InputError(
            f"{store.uri}: {name} is no compaction and no envelope of tenant {tenant!r}; "
            "take one from a build or a replay"
        ) from None
    session = store.at(tenant, manifest["session"], manifest["position"])
    compactions = session.compactions()[: session.state.compactions]
    return [*(event.report for event in compactions), *session.meta_reports()], session


@click.command()
@click.argument("ref")
@click.option("--session", "session_id", required=True, metavar="ID", help="Session of the reference.")
@click.option("--offset", type=click.IntRange(min=0), default=0, metavar="N", help="First character to show.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Most characters to show; default: all.")
@click.option("--grep", metavar="TEXT", help="Only lines that contain this text; case is ignored.")
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
    """Show the original behind the reference REF.

    §128 or 128 is the 128th message, §128.2 the second tool result in it, tool:3 the third tool output of the
    session.

    --json prints the message exactly as it was appended. Without it, control characters are escaped, and --offset,
    --limit and --grep select a part.
    """

    with open_stored(store, tenant) as opened:
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
@click.option(
    "--session", "ids", required=True, multiple=True, metavar="ID", help="Session that the tools read; repeatable."
)
@telemetry
@store_option
@tenant_option
def mcp(ids: tuple[str, ...], store: str, tenant: str) -> None:
    """Serve search_context and resolve_reference of these sessions to an MCP client over stdin and stdout.

    Nothing is written, and other sessions cannot be read. With several sessions, each call names its session. --json
    has no effect: the protocol is JSON.
    """

    if find_spec("mcp") is None:
        raise click.ClickException("mcp: the `mcp` package is missing; pip install 'ctxsteward[mcp]'")
    with open_stored(store, tenant) as opened:
        sessions = {id: stored_session(opened, id, tenant) for id in ids}

        from ..mcp_server import serve

        serve(sessions, version("ctxsteward"))


STDIN = "-"
MAX_KNOWN = 48
"""Most envelopes that are rebuilt for comparison: so many of the session, and the newest of so many other sessions."""


@click.command()
@click.option("--expected", required=True, metavar="ADDRESS", help="The envelope that was built for this call.")
@click.option(
    "--sent", required=True, metavar="FILE", type=click.Path(allow_dash=True), help="The request as sent; - for stdin."
)
@click.option(
    "--provider",
    metavar="NAME",
    shell_complete=completer(PROVIDERS),
    help="Provider of the request; default: taken from the file or its shape.",
)
@common
def audit(expected: str, sent: str, provider: str | None, as_json: bool, store: str, tenant: str) -> None:
    """Rebuild an envelope from the store and compare it with the request that was sent.

    FILE holds the request's arguments as JSON, or {"payload": …, "provider": …, "seal": …}. Findings name section,
    reference and place, and quote nothing; the first finding names the cause. Exit code 1: there are findings.
    """

    read_provider(provider)
    request = _read(sent)
    with open_stored(store, tenant) as opened:
        envelope = _expected(opened, expected, tenant, store)
        known = _known(opened, envelope)
        findings = compare(envelope, request, provider=provider, keys=opened.keys, known=known)
    free = not_governed(request, provider=provider)
    left = f"not governed by the envelope, not compared: {', '.join(free)}" if free else ""
    if as_json:
        print_document("finding", [finding.model_dump(mode="json") for finding in findings])
        if left:
            click.echo(left, err=True)
    else:
        console = table_console()
        if findings:
            rows = ((each.kind, each.ref or "", each.field or "", each.text) for each in findings)
            console.print(tables.grid("class", "ref", "place", "what", rows=rows))
        else:
            console.print(f"sent as built: {tables.short(envelope.address)}, {envelope.tokens:,} tokens")
        if left:
            say(console, left)
    if findings:
        raise click.exceptions.Exit(FOUND)


def _read(path: str) -> object:
    """Return the one JSON object of the file; raise `InvalidTranscript` or `InputTooLarge`."""
    if path == STDIN:
        source = memory_input(sys.stdin.buffer.read(MAX_VALUE_BYTES + 1), "stdin")
    else:
        source = open_input(path)
    value = source.document()
    if not isinstance(value, dict):
        found = "a list" if isinstance(value, list) else type(value).__name__
        hint = 'expected one request: its arguments, or {"payload": …, "provider": …, "seal": …}'
        raise InvalidTranscript(source.source, "", f"found {found}", hint)
    return value


def _expected(store: Store, text: str, tenant: str, uri: str) -> Envelope:
    """Return the envelope with this address; raise `InputError` if it is missing or rebuilds under another address."""
    address = envelope_address(store, "--expected", text, tenant)
    try:
        envelope = rebuild(store, address, tenant=tenant)
    except ReferenceNotFound:
        raise InputError(
            f"--expected {address}: no such envelope of tenant {tenant!r} in {shown_uri(uri)}; take one from a build"
        ) from None
    if envelope.address != address:
        raise InputError(
            f"--expected {address}: the log no longer holds what it was laid out from, so nothing can be compared with "
            "it; restore the store from a backup"
        )
    return envelope


def _known(store: Store, envelope: Envelope) -> Iterator[Envelope]:
    """Yield other envelopes that the sent request may come from; each is read only when the comparison needs it.

    Those of this session come first, newest first; then the newest of each other session, of all tenants.
    """
    own = SessionKey(envelope.tenant, envelope.session)
    tenants = store.journal.tenants()
    others = (SessionKey(tenant, id) for tenant in tenants for id in store.journal.sessions(tenant))
    newest = ((key, 1) for key in islice((key for key in others if key != own), MAX_KNOWN))
    for key, most in chain([(own, MAX_KNOWN)], newest):
        for manifest in store.journal.manifests(key)[: -most - 1 : -1]:
            if manifest.address != envelope.address:
                with suppress(ContextError):
                    yield rebuild(store, manifest.address, tenant=key.tenant)


@click.command()
@click.argument("name", required=False, shell_complete=completer(names))
@json_option
def schema(name: str | None, as_json: bool) -> None:
    """Print the JSON Schema NAME, or the names of all schemas."""
    if name is None:
        if as_json:
            print_json(list(names()))
        else:
            click.echo("\n".join(names()))
    elif name in names():
        print_json(published(name), indent=None if as_json else 2)
    else:
        raise InputError(f"schema {name}: no such schema; one of: {', '.join(names())}")
