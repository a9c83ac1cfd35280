"""Tables for people: rich renderables of envelopes, replays and reports. No figures are computed here.

Every table fits 80 columns; text from transcripts wraps, identifiers are shortened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, get_args

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ctxsteward.envelope import Envelope
from ctxsteward.schemas import CompressionReport, Finding, Loss
from ctxsteward.schemas.summary import LossKind

from .failures import visible

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII_BLOCKS = "_.:-=+*#"


def grid(*columns: str, rows: Iterable[Sequence[str | Text]] = (), numbers: Sequence[str] = ()) -> Table:
    """Return a table of these rows; columns named in `numbers` are right-aligned."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        right = column in numbers
        table.add_column(column, justify="right" if right else "left", no_wrap=right)
    _add_rows(table, rows)
    return table


def pairs(
    rows: Iterable[Sequence[str | Text]],
    *,
    style: str = "",
    justify: Literal["left", "right"] = "left",
    indent: int = 0,
) -> RenderableType:
    """Return two columns without a header: names, which never wrap, and values, aligned as `justify` says."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True, style=style)
    table.add_column(justify=justify)
    _add_rows(table, rows)
    return Padding(table, (0, 0, 0, indent), expand=False)


def _add_rows(table: Table, rows: Iterable[Sequence[str | Text]]) -> None:
    for row in rows:
        table.add_row(*(shown(cell) if isinstance(cell, str) else cell for cell in row))


def shown(text: str, style: str = "") -> Text:
    """Return text of a transcript without characters that control a terminal."""
    return Text(visible(text, keep="\n\t"), style=style)


def say(console: Console, text: str, style: str = "") -> None:
    """Print a line of text that a terminal wraps and a pipe gets as one line."""
    console.print(shown(text, style=style), soft_wrap=True)


def short(address: str) -> str:
    """Return the beginning of an address, for people."""
    return address[:12]


def sections_table(envelope: Envelope) -> Table:
    """Return a table of each section's tokens and budget."""
    table = grid("section", "tokens", "budget", "over", "epoch", numbers=("tokens", "budget", "over", "epoch"))
    for section in envelope.sections.values():
        over = Text(str(section.overflow_tokens), style="red" if section.overflow_tokens else "")
        table.add_row(section.name, f"{section.tokens:,}", f"{section.budget_tokens:,}", over, str(section.epoch))
    table.add_row("tools", f"{envelope.head.tools_tokens:,}", "-", "-", "-")
    table.add_row(Text("prompt", style="bold"), Text(f"{envelope.tokens:,}", style="bold"), "", "", "")
    return table


def bullet_list(envelope: Envelope) -> RenderableType:
    """Return the compacted history as a list, as the window shows it, without its fence."""
    return pairs((("-", row) for row in bullet_rows(envelope)), indent=2)


def bullet_rows(envelope: Envelope) -> list[str]:
    """Return each bullet with its citations, without fence and marker."""
    bullets = envelope.dynamic.bullets
    return [] if bullets is None else [row.removeprefix("- ") for row in bullets.text.splitlines()[1:-1]]


RULES_NAMED = 3
"""Most rules that a request does not show that are listed one by one."""


def finding_list(findings: Iterable[Finding]) -> RenderableType:
    """Return a list with one line for each distinct finding; many rules that a request does not show make one line."""
    distinct = list(dict.fromkeys(findings))
    rules = [finding for finding in distinct if finding.kind == "rule_not_visible"]
    if len(rules) > RULES_NAMED:
        named = ", ".join(rule.ref or rule.text for rule in rules[:RULES_NAMED])
        text = f"the request does not show {len(rules)} standing rules: {named}, … (--json: all)"
        distinct[distinct.index(rules[0])] = rules[0].model_copy(update={"ref": None, "text": text})
        distinct = [finding for finding in distinct if finding not in rules]
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True, style="yellow")
    table.add_column(no_wrap=True)
    table.add_column()
    _add_rows(table, ((finding.kind, finding.ref or "", finding.text) for finding in distinct))
    return Padding(table, (0, 0, 0, 2))


def reports_table(reports: Iterable[CompressionReport]) -> Table:
    """Return a table with a row for each compaction."""
    rows = (
        (
            short(report.id),
            report.section,
            f"{report.pre_tokens:,}",
            f"{report.post_tokens:,}",
            percent(1 - report.post_tokens / max(1, report.pre_tokens)),
            str(len(report.kept_refs)),
            losses_by_kind(report),
        )
        for report in reports
    )
    numbers = ("pre", "post", "saved", "kept")
    return grid("report", "section", "pre", "post", "saved", "kept", "losses", rows=rows, numbers=numbers)


FIRST_READ: tuple[LossKind, ...] = ("constraint", "decision", "open_item", "preference", "error", "identifier")
"""Kinds of losses that are listed first, as the most important to people; the others follow in their own order."""
LOSS_ORDER = (*FIRST_READ, *(kind for kind in get_args(LossKind) if kind not in FIRST_READ))


def losses_table(report: CompressionReport, limit: int, text_of: Callable[[Loss], str]) -> Table:
    """Return a table of the losses of one compaction, at most `limit` rows; `text_of` says what was lost."""
    losses = sorted(report.losses, key=lambda loss: LOSS_ORDER.index(loss.kind))[:limit]
    return grid("lost", "ref", "text", rows=((loss.kind, loss.ref, text_of(loss)) for loss in losses))


def losses_by_kind(report: CompressionReport, most: int | None = None) -> str:
    """Count losses by kind, most frequent first, at most `most` kinds, as in ``12 number, 3 path``, or ``none``."""
    counts = Counter(loss.kind for loss in report.losses)
    rest = "" if most is None or len(counts) <= most else ", …"
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common(most)) + rest or "none"


def percent(fraction: float) -> str:
    return f"{fraction * 100:.0f} %"


def change(now: float, before: float) -> str:
    """Return a change such as ``-63 %``, or ``-`` if `before` is 0."""
    return f"{(now / before - 1) * 100:+.0f} %" if before else "-"


def sparkline(values: Sequence[int], marks: Sequence[bool], width: int, *, blocks: str = BLOCKS) -> Text:
    """Return the values as bars, `width` in a row; a marked value has ``^`` below it."""
    top = max(values, default=0) or 1
    bars = "".join(blocks[min(len(blocks) - 1, value * len(blocks) // (top + 1))] for value in values)
    below = "".join("^" if mark else " " for mark in marks)
    rows = [
        f"{bars[start : start + width]}\n{below[start : start + width].rstrip()}"
        for start in range(0, len(bars), width)
    ]
    return Text("\n".join(rows).rstrip("\n"))
