"""The tables of `docs/selection.md`, written by the command that measures them, between its markers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ctxsteward.schemas import InputError

from .recall import Row, measure
from .selectors import STRATEGIES, VARIANTS

VARIANT_BUDGETS_TOKENS = (900, 2000)
AT_DEFAULTS = "heuristic, defaults"
"""The default selector in a window of so many tokens in all; the other rows have so many tokens for recall alone."""


class Block(NamedTuple):
    """A generated part of a document."""

    name: str
    lines: tuple[str, ...]

    @property
    def begin(self) -> str:
        return f"<!-- {self.name} -->"

    @property
    def end(self) -> str:
        return f"<!-- /{self.name} -->"


BLOCKS = ("recall", "variants")


def check_markers(path: Path, names: Sequence[str] = BLOCKS) -> None:
    """Raise `InputError` where a block has no place, before anything is measured."""
    text = path.read_text(encoding="utf-8")
    for name in names:
        block = Block(name, ())
        if not 0 <= text.find(block.begin) < text.find(block.end):
            raise InputError(f"{path}: no {block.begin} followed by {block.end}; write them where the table belongs")


def write_tables(path: Path, data: Path, budgets_tokens: Sequence[int], tell: Callable[[str], None]) -> None:
    """Measure every strategy and every variant on `data`, and put the tables into the document."""
    check_markers(path)
    text = path.read_text(encoding="utf-8")
    for block in (recall_block(data, budgets_tokens, tell), variants_block(data, tell)):
        text = with_block(text, block)
    path.write_text(text, encoding="utf-8", newline="\n")


def with_block(text: str, block: Block) -> str:
    """The text with these lines between the block's markers, and nothing else changed."""
    start, stop = text.index(block.begin) + len(block.begin), text.index(block.end)
    return "\n".join([text[:start], *block.lines, text[stop:]])


def recall_block(data: Path, budgets_tokens: Sequence[int], tell: Callable[[str], None]) -> Block:
    """Recall by strategy and budget."""
    head = ["strategy", "tokens", "shown", "all", "reachable", "multi-hop", "temporal", "open-domain", "single-hop"]
    lines = [_line([*head, "ranking p50, ms"]), "|---|" + "---:|" * len(head)]
    questions = 0
    rows = [(name, selector, False) for name, selector in STRATEGIES.items()]
    for name, selector, defaults in [(AT_DEFAULTS, STRATEGIES["heuristic"], True), *rows]:
        for row in measure(
            data, selector=selector, budgets_tokens=budgets_tokens, defaults=defaults, tell=_prefixed(tell, name)
        ):
            questions = row.questions
            lines.append(_line([name, *_cells(row)]))
    return Block("recall", (f"{questions:,} questions; percent; CPU time.", "", *lines))


def _cells(row: Row) -> list[str]:
    figures = (row.mean, row.all_shown, row.reachable, *row.by_category.values())
    return [f"{row.budget_tokens:,}", *(f"{figure:.1f}" for figure in figures), f"{row.select_ms_p50:.2f}"]


def variants_block(data: Path, tell: Callable[[str], None]) -> Block:
    """What each signal and each way of filling the room is worth."""
    columns = [f"{what}, {budget:,}" for budget in VARIANT_BUDGETS_TOKENS for what in ("shown", "multi-hop")]
    lines = [_line(["ranking", *columns]), "|---|" + "---:|" * len(columns)]
    for name, selector in VARIANTS.items():
        rows = measure(data, selector=selector, budgets_tokens=VARIANT_BUDGETS_TOKENS, tell=_prefixed(tell, name))
        cells = [f"{value:.1f}" for row in rows for value in (row.mean, row.by_category["multi-hop"])]
        lines.append(_line([name, *cells]))
    return Block("variants", ("", *lines))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _prefixed(tell: Callable[[str], None], name: str) -> Callable[[str], None]:
    return lambda text: tell(f"{name}: {text}")
