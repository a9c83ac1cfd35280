"""One printed figure of a benchmark, with its bar."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkRow:
    """One printed figure."""

    bench: str
    what: str
    value: str
    bar: str = ""
    """The bar as text; empty for a figure without a bar."""
    ok: bool | None = None
    """Whether the figure meets its bar, or None without a bar."""


def row(
    bench: str,
    what: str,
    value: float,
    unit: str = "",
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> BenchmarkRow:
    """Make a figure with its bar."""
    text = f"{value:,.0f}" if float(value).is_integer() and abs(value) >= 10 else f"{value:,.4g}"
    ok = None
    bar = ""
    if at_most is not None:
        bar, ok = f"≤ {at_most:g}", value <= at_most
    elif at_least is not None:
        bar, ok = f"≥ {at_least:g}", value >= at_least
    return BenchmarkRow(bench=bench, what=what, value=f"{text} {unit}".strip(), bar=bar, ok=ok)
