"""``ctxsteward backfill``: store a snapshot of each profile in force, as the envelope of an empty session."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Console

from ctxsteward.envelope import EnvelopeBuilder, Profile, Store
from ctxsteward.envelope.building.snapshots import Snapshots
from ctxsteward.schemas import BudgetExceeded, Finding, InputError, WindowExceeded
from ctxsteward.store.profiles.proposal import bootstrap
from ctxsteward.store.profiles.versions import profile_names

from ..steward.context import author
from ..terminal.failures import FOUND
from ..terminal.options import DEFAULT_MODEL, common, read_builder, read_profile
from ..terminal.output import print_result
from ..terminal.stores import open_stored, open_uri
from ..terminal.tables import grid, say, short

WHO, WHY = "backfill", "the first version, of a profile file"


@click.command()
@click.option("--snapshot", is_flag=True, help="Snapshot the head of every profile of the tenant.")
@click.option(
    "--profile",
    type=click.Path(),
    metavar="FILE",
    help="Profile (YAML) for a first version; later it must equal the one in force (see `steward propose`).",
)
@click.option("--as", "who", metavar="NAME", help="Author of a first version; default: your login name.")
@click.option("--budget", "budgets", multiple=True, metavar="KEY=NUMBER", help="Set a field of Budgets; repeatable.")
@click.option("--model", default=DEFAULT_MODEL, show_default=True, metavar="NAME", help="Model that counts tokens.")
@common
@click.pass_context
def backfill(
    ctx: click.Context,
    snapshot: bool,
    profile: str | None,
    who: str | None,
    budgets: tuple[str, ...],
    model: str,
    as_json: bool,
    store: str,
    tenant: str,
) -> None:
    """Store the current persona, policies, rails, surface and meta of every profile as versioned envelopes.

    Each snapshot is the envelope of an empty session. An existing snapshot is not written again. Exit code 1: at
    least one profile could not be stored; the others were.
    """
    if not snapshot:
        raise click.UsageError("say what to write: --snapshot", ctx)
    builder = read_builder(model, budgets)
    governed = read_profile(profile)
    # A store is created only if there is a profile to put into it.
    with open_stored(store, tenant) if governed is None else open_uri(store, tenant) as opened:
        result = _backfilled(opened, tenant, governed, builder, who)
    print_result(result, _show, as_json=as_json)
    if any(row["error"] for row in result["profiles"]):
        ctx.exit(FOUND)


def _backfilled(
    store: Store, tenant: str, governed: Profile | None, builder: EnvelopeBuilder, who: str | None
) -> dict[str, Any]:

    when = datetime.now(UTC).isoformat(timespec="seconds")
    committed: str | None = None
    findings: tuple[Finding, ...] = ()
    if governed is not None:
        entered = bootstrap(store, governed, who=author(who), why=WHY, when=when, tenant=tenant)
        committed, findings = governed.name if entered.written else None, entered.findings
    names = list(profile_names(store.objects, store.profiles("default", tenant=tenant).tenant))
    if not names:
        raise InputError(f"{store.uri}: tenant {tenant!r} has committed no profile; pass one with --profile FILE")
    rows = [_snapshot(store, tenant, name, builder, when) | {"committed": name == committed} for name in names]
    for row in rows:
        if governed is not None and row["profile"] == governed.name:
            row["findings"] = [*_plain(list(findings)), *row["findings"]]
    return {
        "store": store.uri,
        "tenant": tenant,
        "written": sum(row["committed"] + row["written"] for row in rows),
        "profiles": rows,
    }


def _snapshot(store: Store, tenant: str, name: str, builder: EnvelopeBuilder, when: str) -> dict[str, Any]:
    version = store.profiles(name, tenant=tenant).newest()
    row: dict[str, Any] = {"profile": name, "version": version.number, "snapshot": None, "written": False}
    findings = list(version.findings)
    try:
        taken = Snapshots(store, tenant).take(version, builder, who=WHO, when=when)
    except (BudgetExceeded, WindowExceeded) as error:
        return row | {"address": None, "tokens": {}, "findings": _plain(findings), "error": str(error)}
    envelope = taken.envelope
    return row | {
        "snapshot": taken.number,
        "written": taken.written,
        "address": envelope.address,
        "tokens": {name: section.tokens for name, section in envelope.sections.items()},
        "findings": _plain([*findings, *envelope.findings]),
        "error": None,
    }


def _plain(findings: list[Any]) -> list[Any]:
    return [finding.model_dump(mode="json") for finding in findings]


def _show(console: Console, result: dict[str, Any]) -> None:
    rows = (
        (
            row["profile"],
            str(row["version"]),
            str(row["snapshot"] or "-"),
            f"{sum(row['tokens'].values()):,}" if row["tokens"] else "-",
            short(row["address"] or "-"),
            "failed" if row["error"] else ", ".join(w for w in ("committed", "written") if row[w]) or "unchanged",
        )
        for row in result["profiles"]
    )
    console.print(grid("profile", "version", "snapshot", "tokens", "envelope", "", rows=rows))
    for row in result["profiles"]:
        for text in [row["error"]] if row["error"] else [finding["text"] for finding in row["findings"]]:
            say(console, f"{row['profile']}: {text}")
    if not result["written"] and not any(row["error"] for row in result["profiles"]):
        console.print("nothing to write: every profile and snapshot is there already")
