"""``ctxsteward export``: what a store holds, in forms that other programs read; ``import`` reads a session back."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from ctxsteward.envelope import past_calls
from ctxsteward.envelope.audit.attestations import ATTESTATION_FORMS, AttestationForm, attest
from ctxsteward.envelope.building.bundle import ImportedSession, bundle_lines, import_bundle
from ctxsteward.schemas import InputError

from ..pages.inspector import call_numbered
from ..terminal.failures import one_line
from ..terminal.options import common, store_option, tenant_option
from ..terminal.output import note, print_json, write_text
from ..terminal.stores import is_address, open_stored, open_uri, stored_session
from .approved_lines import LINE_FORMS, LineForm, read_text_file, with_block

_out = click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="File to write; default: print.")


@click.group()
def export() -> None:
    """Export the contents of a store in forms that other programs read."""


@export.command(
    "envelope", short_help="Export what a call consists of, without its text: a bill of materials or a statement."
)
@click.argument("name", metavar="ADDRESS|SESSION")
@click.option(
    "--as",
    "form",
    required=True,
    type=click.Choice(ATTESTATION_FORMS),
    help="CycloneDX 1.6 (ML-BOM) or in-toto Statement v1, as JSON.",
)
@_out
@store_option
@tenant_option
def envelope(name: str, form: AttestationForm, out: Path | None, store: str, tenant: str) -> None:
    """Describe the prompt of the call at ADDRESS, or of a SESSION's newest call, without its text.

    The document holds model, profile, sections with budgets, every piece with its originals, the standing rules and
    whether the request shows them, and the seal. Addresses are codes under the tenant's key: whoever has the store
    can check them.
    """
    with open_stored(store, tenant) as opened:
        address = opened.address(name, tenant=tenant)
        if not is_address(address):
            stored_session(opened, name, tenant)  # names other sessions if there is none
            calls = past_calls(opened, name, tenant=tenant)
            address = call_numbered(calls, len(calls), name).address
        document = attest(opened, address, form, tenant=tenant)
    _give(json.dumps(document, ensure_ascii=False, indent=2) + "\n", out)


@export.command("lines", short_help="A profile's approved records for an AGENTS.md or a SKILL.md, with provenance.")
@click.argument("profile")
@click.option(
    "--as", "form", required=True, type=click.Choice(LINE_FORMS), help="A block of AGENTS.md, or of a skill's SKILL.md."
)
@click.option("--number", type=click.IntRange(min=1), metavar="N", help="Version of the profile; default: the newest.")
@_out
@store_option
@tenant_option
def lines(profile: str, form: LineForm, number: int | None, out: Path | None, store: str, tenant: str) -> None:
    """Write the records of PROFILE that people approved as a block for coding agents.

    Each line has the record's id, the version, the messages that it rests on, and its date. With --out the block of an
    earlier export is replaced where it stands, and all other text of the file stays; without one it is added at the
    end. A new SKILL.md begins with the name and description that skills need.
    """
    with open_stored(store, tenant) as opened:
        versions = opened.profiles(profile, tenant=tenant)
        version = versions.newest() if number is None else versions.at(number)
    before = "" if out is None else read_text_file(out)
    _give(with_block(before, version, form, where=str(out)), out)


@export.command("session", short_help="A whole session in one file, which `ctxsteward import` reads into any store.")
@click.argument("session", metavar="ID")
@click.option("--to", "out", required=True, metavar="FILE", type=click.Path(path_type=Path), help="File to write.")
@store_option
@tenant_option
def session(session: str, out: Path, store: str, tenant: str) -> None:
    """Write the session ID as a bundle: JSON Lines of the schema `session_bundle`.

    A bundle has the log, that of the parents of a fork as far as it is shared, the manifest of every call with the
    compression reports, and the profile versions that the session was shown, with approvals and sources. It has no
    forgotten message, and no key. It is not encrypted: it is as secret as the chat, and no erasure reaches it.
    """
    with open_stored(store, tenant) as opened:
        stored_session(opened, session, tenant)  # names other sessions if there is none
        lines = list(bundle_lines(opened, session, tenant=tenant))
    try:
        with open(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            stream.writelines(lines)
    except OSError as error:
        raise InputError(f"{out}: {error.strerror}; check the path and its permissions") from error
    note(f"{out}: {len(lines):,} lines of session {session}; they are not encrypted")


@click.command("import", short_help="Read a session that `export session` wrote into a store.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@common
def import_(file: Path, as_json: bool, store: str, tenant: str) -> None:
    """Read the session in FILE into a store, or nothing of it.

    Every call is laid out again and compared before anything is written. Under the keys that the bundle was written
    with, every address stays and its author is checked; under other keys calls get new addresses, which --json
    prints, so import only files from people whom you would let write the session. A session of the same name that
    differs, and words that were forgotten in the store, are refused. Versions of a profile are not committed.
    """
    with open_uri(store, tenant) as opened:
        done = import_bundle(opened, file, tenant=tenant)
    if as_json:
        facts = {name: getattr(done, name) for name in ImportedSession.__slots__}
        print_json(facts | {"versions": [version.model_dump(mode="json") for version in done.versions]})
        return
    state = "was here already, exactly so" if done.was_here else "is here"
    click.echo(
        one_line(f"session {done.session} {state}: {done.messages:,} messages, {done.calls:,} calls as they were")
    )
    if not done.same_keys:
        click.echo(
            f"written under other keys: its author is not checked, {len(done.addresses):,} calls have new addresses"
        )
    if done.versions:
        shown = ", ".join(f"{one.changelog.profile} {one.changelog.version}" for one in done.versions)
        click.echo(one_line(f"profile versions that it was shown, none of them committed: {shown} (--json: whole)"))


def _give(text: str, out: Path | None) -> None:
    if out is None:
        click.echo(text, nl=False)
    else:
        write_text(out, text)
