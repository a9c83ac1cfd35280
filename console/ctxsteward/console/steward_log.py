"""Versions and nights of a profile, a row each, newest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import tables

if TYPE_CHECKING:
    from rich.console import Console

    from .steward_place import Place


def versions(place: Place, limit: int | None) -> list[dict[str, Any]]:
    """Changelog entries, each with what its commit rested on."""
    head = place.head
    start = 1 if limit is None else max(1, head - limit + 1)
    rows = [
        {**told.entry.model_dump(mode="json"), "promotion": _plain(told.promotion)}
        for told in place.versions.told(start)
    ]
    return rows[::-1]


def nights(place: Place, limit: int | None) -> list[dict[str, Any]]:
    """Nights, a line each."""
    from ctxsteward.steward.nights import Nights
    from ctxsteward.steward.status import line

    history = Nights(place.store, place.tenant, place.profile).history(limit)
    return [line(number, night).model_dump(mode="json") for number, night in history][::-1]


def show_versions(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    for row in rows:
        kinds = Counter(change["kind"] for change in row["changes"])
        told = ", ".join(f"{number} {kind}" for kind, number in kinds.items()) or "no change"
        restored = f", restores {row['restores']}" if row["restores"] is not None else ""
        console.print(tables.shown(f"{row['version']}  {row['when']}  {row['who']}: {row['why']}"), soft_wrap=True)
        console.print(tables.shown(f"   {told}{restored}; {rested_on(row)}"), soft_wrap=True)
    if not rows:
        console.print("no version yet")


def show_nights(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    numbers = ("number", "due", "harvested", "new")
    table = tables.grid("night", "number", "outcome", "version", "due", "harvested", "new", "drift", numbers=numbers)
    for row in rows:
        counts = row["counts"]
        table.add_row(
            row["night"], str(row["number"]), row["outcome"], str(row["version"] or "-"), f"{counts.get('due', 0):,}",
            f"{counts.get('harvested', 0):,}", f"{counts.get('absorbed', 0):,}", row["drift"] or "-",
        )  # fmt: skip
    console.print(table if rows else "no night yet")


def rested_on(row: Mapping[str, Any]) -> str:
    """Drift and approvals of a commit, in words."""
    promotion = row["promotion"]
    if promotion is None:
        return "the first version" if row["version"] == 1 else "a rollback" if row["restores"] else "committed by hand"
    people = ", ".join(str(each["who"]) for each in promotion["approvals"])
    canary = f", canary for {promotion['canary']['share']:.0%}" if "canary" in promotion else ""
    return f"drift {promotion['level']}, {'approved by ' + people if people else 'needed nobody'}{canary}"


def _plain(promotion: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Levels, people, canary and addresses of the reports."""
    return None if promotion is None else {name: value for name, value in promotion.items() if name != "schema_version"}
