"""``ctxsteward audit``: compares a request that was sent with the envelope that was built; names the cause first."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice

import click

from ctxsteward.envelope import PROVIDERS, Envelope, Store, rebuild
from ctxsteward.envelope.audit import audit as compare
from ctxsteward.envelope.transcripts import MAX_VALUE_BYTES, memory_input, open_input
from ctxsteward.schemas import ContextError, InputError, InvalidTranscript, ReferenceNotFound
from ctxsteward.store import SessionKey

from ..terminal import (
    FOUND,
    common,
    completer,
    envelope_address,
    open_stored,
    print_document,
    read_provider,
    table_console,
    tables,
)

STDIN = "-"
MAX_KNOWN = 48
"""So many earlier envelopes of the session, and newest ones of other sessions, are laid out again to be recognized."""


@click.command()
@click.option("--expected", required=True, metavar="ADDRESS", help="The envelope that was built for this call.")
@click.option(
    "--sent", required=True, metavar="FILE", type=click.Path(allow_dash=True), help="The request as sent; - for stdin."
)
@click.option(
    "--provider",
    metavar="NAME",
    shell_complete=completer(PROVIDERS),
    help="Whose request it is; default: what the file says, or its shape.",
)
@common
def audit(expected: str, sent: str, provider: str | None, as_json: bool, store: str, tenant: str) -> None:
    """Rebuild an envelope from the store and compare it with the request that was really sent.

    FILE holds the request's arguments as JSON, or {"payload": …, "provider": …, "seal": …}. Findings name section,
    reference and place, and quote nothing; the first one names the cause. Exit 1 if there is any.
    """

    read_provider(provider)
    request = _read(sent)
    with open_stored(store) as opened:
        envelope = _expected(opened, expected, tenant, store)
        known = _known(opened, envelope)
        findings = compare(envelope, request, provider=provider, keys=opened.keys, known=known)
    if as_json:
        print_document("finding", [finding.model_dump(mode="json") for finding in findings])
    else:
        console = table_console()
        if findings:
            table = tables.grid("class", "ref", "place", "what")
            for one in findings:
                table.add_row(one.kind, one.ref or "", tables.shown(one.field or ""), tables.shown(one.text))
            console.print(table)
        else:
            console.print(f"sent as built: {tables.short(envelope.address)}, {envelope.tokens:,} tokens")
    if findings:
        raise click.exceptions.Exit(FOUND)


def _read(path: str) -> object:
    """The one JSON value of the file; raises `InvalidTranscript`, `InputTooLarge`."""
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
    """The envelope with this address; raises `InputError` where there is none, or it is not what it was."""
    address = envelope_address(store, "--expected", text, tenant)
    try:
        envelope = rebuild(store, address, tenant=tenant)
    except ReferenceNotFound:
        raise InputError(
            f"--expected {address}: no such envelope of tenant {tenant!r} in {uri}; take one from a build"
        ) from None
    if envelope.address != address:
        raise InputError(
            f"--expected {address}: the log no longer holds what it was laid out from, so nothing can be compared with "
            "it; restore the store from a backup"
        )
    return envelope


def _known(store: Store, envelope: Envelope) -> Iterator[Envelope]:
    """Other envelopes of the store, to be recognized: read only where something differs."""
    for tenant, address in _addresses(store, envelope):
        if address != envelope.address:
            try:
                yield rebuild(store, address, tenant=tenant)
            except ContextError:
                continue


def _addresses(store: Store, envelope: Envelope) -> Iterator[tuple[str, str]]:
    """Of this session newest first, then the newest one of other sessions and tenants."""
    own = SessionKey(envelope.tenant, envelope.session)
    for manifest in store.journal.manifests(own)[: -MAX_KNOWN - 1 : -1]:
        yield own.tenant, manifest.address
    tenants = store.journal.tenants()
    others = (SessionKey(tenant, id) for tenant in tenants for id in store.journal.sessions(tenant))
    for key in islice((key for key in others if key != own), MAX_KNOWN):
        for manifest in store.journal.manifests(key)[-1:]:
            yield key.tenant, manifest.address
