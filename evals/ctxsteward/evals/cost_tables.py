"""The tables of `docs/cost.md`, written by the command that measures them, between its markers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from .cost import Row
from .cost_prompts import Prices
from .recall_tables import Block, with_block

NAME = "cost"
HEAD = (
    "sent", "raw tokens", "to everything", "cache-priced", "to everything", "to best in hindsight", "from cache, %",
    "compactions", "over budget, %", "refused, %", "task shown, %", "task reachable, %",
)  # fmt: skip


class Measured(NamedTuple):
    """Rows at one budget."""

    dynamic_tokens: int
    rows: Sequence[Row]


def cells(row: Row) -> tuple[str, ...]:
    """A row's figures as `HEAD` names them."""
    return (
        row.strategy, f"{row.raw_tokens:,}", f"{row.raw_ratio:.2f}", f"{row.priced_tokens:,.0f}",
        f"{row.priced_ratio:.2f}", f"{row.hindsight_ratio:.2f}", _percent(row.prefix_reuse), f"{row.compactions:,}",
        _percent(row.over_budget), _percent(row.invalid), _percent(row.task_shown), _percent(row.task_reachable),
    )  # fmt: skip


def _percent(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0")


def grouped(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows by what runs they are of, in order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.runs_of, []).append(row)
    return found


def title(rows: Sequence[Row], dynamic_tokens: int) -> str:
    """What a table is about."""
    first = rows[0]
    return f"{first.runs_of}: {first.runs:,} runs, {first.calls:,} calls, budget {dynamic_tokens:,} tokens"


def cost_block(measured: Iterable[Measured], prices: Prices) -> Block:
    """All tables, one for each budget and each format."""
    told = (
        f"A cached token costs {prices.cached:g}, a written one {prices.write:g}; block {prices.block_tokens:,} tokens."
    )
    return Block(NAME, (told, *(line for one in measured for line in _tables(one))))


def _tables(measured: Measured) -> Iterator[str]:
    for rows in grouped(measured.rows).values():
        yield from ("", f"**{title(rows, measured.dynamic_tokens)}**", "")
        yield f"| {' | '.join(HEAD)} |"
        yield "|---|" + "---:|" * (len(HEAD) - 1)
        yield from (f"| {' | '.join(cells(row))} |" for row in rows)


def write_tables(path: Path, measured: Iterable[Measured], prices: Prices) -> None:
    """Put the tables between the document's markers and touch nothing else."""
    text = with_block(path.read_text(encoding="utf-8"), cost_block(measured, prices))
    path.write_text(text, encoding="utf-8", newline="\n")
