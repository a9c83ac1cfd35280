"""``ctxsteward store``: check a store, remove its garbage, list and count its contents, and forget.

Exit codes: 1 if `fsck` finds damage, `ls` a log that it cannot read, or `forget` leaves something; 2 for bad input, and
for a store that does not exist or does not answer.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from ctxsteward.schemas import Finding, InputError
from ctxsteward.store.erasure.forget import forget as erase
from ctxsteward.store.erasure.receipt import receipt_key as key_of_receipts, verified_receipt
from ctxsteward.store.journal.erasures import Erasure
from ctxsteward.store.maintenance.damage import StoreShare
from ctxsteward.store.maintenance.fsck import fsck as check
from ctxsteward.store.maintenance.gc import gc as collect
from ctxsteward.store.maintenance.inventory import ls as list_names, stats as count

from ..terminal import tables
from ..terminal.failures import FOUND, one_line
from ..terminal.options import common, of_whole_store
from ..terminal.output import print_json, progress, table_console, write_text
from ..terminal.stores import check_tenant, open_stored

_REPEAT = "mend what is named above (`ctxsteward store fsck`), and repeat the command"


@click.command(short_help="Erase a session, or everything a principal said.")
@click.option("--session", metavar="ID", help="Session to erase, with all its forks.")
@click.option("--principal", metavar="NAME", help="Principal to erase, in all sessions (or in --session).")
@click.option("--who", required=True, metavar="NAME", help="Who requests the erasure; stored unencrypted.")
@click.option("--why", required=True, metavar="TEXT", help="Reason, such as a request number; stored unencrypted.")
@click.option("--when", metavar="TIME", help="Time of the request (ISO 8601); default: now.")
@click.option("--receipt", metavar="FILE", type=click.Path(path_type=Path), help="Write the signed receipt here.")
@common
def forget(
    session: str | None,
    principal: str | None,
    who: str,
    why: str,
    when: str | None,
    receipt: Path | None,
    as_json: bool,
    store: str,
    tenant: str,
) -> None:
    """Erase a session, or what a principal said, permanently and in every copy.

    A tombstone records who asked, why and when. An erased session's id cannot be used again. A principal's messages
    keep their place without their words; what others said, the model included, stays. Repeating the command
    finishes an interrupted erasure. Data that cannot be read is named and skipped, and the exit code is 1: repair
    it, and repeat the command.

    The command ends with a signed receipt: counts before and after for each place, and what is out of reach
    (provider caches and logs, exported pages, recordings) with the calls to look for. --receipt writes it to a
    file, --json prints it, and `ctxsteward store verify-receipt` checks it without the store.
    """

    ordered_at = when or datetime.now(UTC).isoformat(timespec="seconds")
    with open_stored(store, tenant) as opened:
        done = erase(opened, tenant=tenant, session=session, principal=principal, who=who, why=why, when=ordered_at)
    if receipt is not None:
        write_text(receipt, done.receipt)
    if as_json:
        click.echo(done.receipt, nl=False)
    else:
        _show(done)
        click.echo(f"receipt: {receipt or 'repeat the command with --receipt FILE; it gives the same counts'}")
    if not done.complete:
        left = done.findings[0].field if done.findings else next(row.place for row in done.places if row.after)
        click.echo(one_line(f"not everything is forgotten: {left}; {_REPEAT}"), err=True)
        raise click.exceptions.Exit(1)


@click.command("verify-receipt", short_help="Check the receipt of an erasure.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--key", metavar="HEX", help="The public key that the operator has published.")
@click.option("--json", "as_json", is_flag=True, help="Print the receipt.")
def verify_receipt(file: Path, key: str | None, as_json: bool) -> None:
    """Check the signature of the receipt in FILE, and show the receipt; needs no store.

    Without --key the signature is compared with the key that is in the file, and the first line says that nobody
    has said whose key that is: pass the key that the operator published (`ctxsteward store receipt-key`). A valid
    receipt proves that a holder of the tenant's keys stated this and that nothing was changed since. It does not
    prove that the counts are true. Exit code 2: the receipt was changed, or another key signed it.
    """
    done = verified_receipt(file.read_bytes(), key)
    if as_json:
        click.echo(done.receipt, nl=False)
        return
    whose = "valid"
    if key is None:
        whose = "the signature fits the key in the file, but nobody has said whose key that is; pass --key"
    click.echo(one_line(f"{whose}: tenant {done.tenant}, by {done.who} at {done.when}: {done.why}"))
    _show(done)


@click.command("receipt-key", short_help="Print the public key of a tenant's receipts, to publish it.")
@common
def receipt_key(as_json: bool, store: str, tenant: str) -> None:
    """Print the public key that verifies the receipts of a tenant's erasures, as 64 hex digits.

    Publish it before the first erasure, at a place that the receivers of receipts trust: `store verify-receipt
    --key` compares a receipt with it.
    """
    with open_stored(store, tenant) as opened:
        check_tenant(opened, tenant)
        key = key_of_receipts(opened.keys, tenant)
    if as_json:
        print_json({"tenant": tenant, "key": key})
    else:
        click.echo(key)


def _show(done: Erasure) -> None:
    """Print what an erasure has done, and which copies are out of its reach."""
    what = f"principal {done.principal}" if done.principal is not None else f"session {done.session}"
    forks = f" and {len(done.forks)} forks of it"
    where = f" in {len(done.sessions)} sessions" if done.principal is not None else forks
    click.echo(one_line(f"forgot {what}{where}"))
    console = table_console()
    rows = ((row.place, f"{row.before:,}", f"{row.after:,}") for row in done.places)
    console.print(tables.grid("place", "before", "after", rows=rows, numbers=("before", "after")))
    for finding in done.findings:
        click.echo(one_line(f"{finding.kind}: {finding.field}: {finding.text}"))
    for left in done.remains:
        known = f"{f', until {left.until}' if left.until else ''}{f', {len(left.calls):,} calls' if left.calls else ''}"
        click.echo(one_line(f"out of reach: {left.place}{known}: {left.remedy}"))
    click.echo(f"signed by key {json.loads(done.receipt)['key']}")


_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_GRACE = re.compile(r"([0-9]{1,9})([smhd])", re.ASCII)
_FINDINGS_SHOWN = 40


@click.group()
def store() -> None:
    """Maintain a store: check it, clean it, list and count its contents."""


@store.command(short_help="Check the integrity of a store.")
@click.option("--read-data", is_flag=True, help="Also decrypt and verify all content; reads the whole store.")
@click.option("--subset", metavar="K/N", help="Check only part K of N; all N parts together cover the store.")
@click.option("--repair", is_flag=True, help="Repair what copies in the store allow.")
@of_whole_store
def fsck(read_data: bool, subset: str | None, repair: bool, as_json: bool, store: str, tenant: str | None) -> None:
    """Check records, chains, keys and tombstones; exit code 1 names the first class of damage.

    An empty store also gives exit code 1; an empty part of a store does not. Leftovers of crashes are notes, not
    damage; `store gc` removes them.
    """

    StoreShare.parse(subset)  # refused before a store is opened
    with open_stored(store, tenant, any_keys=True) as opened, progress("checking", shown=not as_json) as tell:
        check_tenant(opened, tenant)
        result = check(opened, tenant=tenant, read_data=read_data, subset=subset, repair=repair, tell=tell)
    if as_json:
        print_json(
            {
                "damaged": result.damaged,
                "first": result.first,
                "checked": dict(result.checked),
                "damage": _plain(result.damage),
                "notes": _plain(result.notes),
                "repaired": _plain(result.repaired),
                "read_data": result.read_data,
                "subset": str(result.subset),
            }
        )
    else:
        console = table_console()
        rows = ((kind.replace("_", " "), f"{number:,}") for kind, number in result.checked.items())
        console.print(tables.grid("checked", "number", rows=rows, numbers=("number",)))
        for title, findings in (("damage", result.damage), ("repaired", result.repaired), ("notes", result.notes)):
            if findings:
                console.print(title)
                console.print(tables.finding_list(findings[:_FINDINGS_SHOWN]))
                if len(findings) > _FINDINGS_SHOWN:
                    console.print(f"  {len(findings) - _FINDINGS_SHOWN:,} more; --json lists all")
        tables.say(console, result.closing)
    if result.damaged or (result.is_empty and result.subset.parts == 1):
        raise click.exceptions.Exit(FOUND)


@store.command(short_help="Remove unreferenced objects.")
@click.option("--grace", default="24h", show_default=True, metavar="TIME", help="Keep younger objects: 90m, 24h, 7d.")
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@of_whole_store
def gc(grace: str, dry_run: bool, as_json: bool, store: str, tenant: str | None) -> None:
    """Remove unreferenced blobs, keys of forgotten subjects, and leftovers of crashes.

    Objects younger than --grace stay. Nothing is removed from a store whose chains are damaged, because references
    cannot be trusted there.
    """

    seconds = read_grace(grace)
    with open_stored(store, tenant) as opened, progress("collecting", shown=not as_json) as tell:
        check_tenant(opened, tenant)
        result = collect(opened, now=time.time(), tenant=tenant, grace_seconds=seconds, dry_run=dry_run, tell=tell)
    if as_json:
        print_json({"dry_run": dry_run, **asdict(result)})
        return
    console = table_console()
    names = ("blobs", "keys", "reports", "probes", "temporaries")
    rows = ((name, f"{len(getattr(result, name)):,}") for name in names)
    console.print(tables.grid("garbage", "number", rows=rows, numbers=("number",)))
    if result.restored:
        console.print(f"{len(result.restored):,} blobs put back: a commit has come to refer to them")
    verb = "would go" if result.dry_run else "removed"
    console.print(
        f"{result.bytes:,} bytes {verb}; {result.kept_blobs:,} blobs in use, {result.young_blobs:,} within the grace"
    )


@store.command(short_help="List names in a store.")
@click.argument("prefix", default="")
@of_whole_store
def ls(prefix: str, as_json: bool, store: str, tenant: str | None) -> None:
    """List objects, and sessions as journal/TENANT/SESSION, whose names begin with PREFIX.

    An unreadable log is listed with its fault, and the exit code is 1.
    """
    faults = 0
    with open_stored(store, tenant) as opened:
        check_tenant(opened, tenant)
        for row in list_names(opened, prefix, tenant=tenant):
            faults += row.fault is not None
            if as_json:
                print_json(row._asdict())
                continue
            unit = "records" if row.kind == "log" else "bytes"
            when = "-" * 20
            if row.modified_seconds is not None:
                when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(row.modified_seconds))
            size = "?" if row.size is None else f"{row.size:,}"
            click.echo(f"{when}  {size:>12} {unit:<7}  {row.name}{'' if row.fault is None else f'  {row.fault}'}")
    if faults:
        raise click.exceptions.Exit(FOUND)


@store.command(short_help="Count the contents of a store.")
@of_whole_store
def stats(as_json: bool, store: str, tenant: str | None) -> None:
    """Count sessions, messages, compactions, versions, objects, bytes, and records not yet in the object store."""
    with open_stored(store, tenant) as opened, progress("counting", shown=not as_json) as tell:
        check_tenant(opened, tenant)
        result = count(opened, tenant=tenant, tell=tell)
    counted = ("tenants", "sessions", "messages", "compactions", "stored_sessions", "versions")
    waiting = ("waiting_sessions", "waiting_bytes", "oldest_waiting", "forgotten")
    if as_json:
        kinds = {kind: kept._asdict() for kind, kept in result.kinds.items()}
        document = {name: getattr(result, name) for name in counted} | {"objects": kinds}
        print_json(document | {name: getattr(result, name) for name in waiting})
        return
    rows = [(name.replace("_", " "), f"{getattr(result, name):,}", "") for name in (*counted, "forgotten")]
    rows += [(f"objects: {kind}", f"{kept.objects:,}", f"{kept.bytes:,}") for kind, kept in result.kinds.items()]
    rows += [("waiting to be drained", f"{result.waiting_sessions:,}", f"{result.waiting_bytes:,}")]
    console = table_console()
    console.print(tables.grid("in the store", "number", "bytes", rows=rows, numbers=("number", "bytes")))
    if result.oldest_waiting is not None:
        tables.say(console, f"waiting longest: session {result.oldest_waiting}")


store.add_command(forget)
store.add_command(verify_receipt)
store.add_command(receipt_key)


def read_grace(text: str) -> int:
    """Return the seconds of ``90s``, ``45m``, ``24h`` or ``7d``; raise `InputError` for any other form."""
    found = _GRACE.fullmatch(text)
    if found is None:
        raise InputError(f"--grace {text}: not a time; write a number and s, m, h or d, such as 24h")
    return int(found[1]) * _SECONDS[found[2]]


def _plain(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    return [finding.model_dump(mode="json") for finding in findings]
