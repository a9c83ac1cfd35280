"""Tables for people: rich renderables of envelopes, replays and reports; no numbers are made here.

Every table fits 80 columns; text from transcripts wraps, identifiers are shortened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import get_args

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ctxsteward.envelope import Envelope
from ctxsteward.schemas import CompressionReport, Finding
from ctxsteward.schemas.summary import LossKind

from .failures import visible

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII_BLOCKS = "_.:-=+*#"


def grid(*columns: str, numbers: Sequence[str] = ()) -> Table:
    """An empty table; columns named in `numbers` are set right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        right = column in numbers
        table.add_column(column, justify="right" if right else "left", no_wrap=right)
    return table


def shown(text: str, style: str = "") -> Text:
    """Text of a transcript, made harmless for a terminal."""
    return Text(visible(text, keep="\n\t"), style=style)


def short(address: str) -> str:
    """The beginning of an address, enough for a person."""
    return address[:12]


def sections_table(envelope: Envelope) -> Table:
    """Tokens of each section against its budget."""
    table = grid("section", "tokens", "budget", "over", "epoch", numbers=("tokens", "budget", "over", "epoch"))
    for section in envelope.sections.values():
        over = Text(str(section.overflow_tokens), style="red" if section.overflow_tokens else "")
        table.add_row(section.name, f"{section.tokens:,}", f"{section.budget_tokens:,}", over, str(section.epoch))
    table.add_row("tools", f"{envelope.head.tools_tokens:,}", "-", "-", "-")
    table.add_row(Text("prompt", style="bold"), Text(f"{envelope.tokens:,}", style="bold"), "", "", "")
    return table


def bullet_list(envelope: Envelope) -> RenderableType:
    """The compacted history, as the window shows it, without its fence."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for row in bullet_rows(envelope):
        table.add_row("-", shown(row))
    return Padding(table, (0, 0, 0, 2))


def bullet_rows(envelope: Envelope) -> list[str]:
    """Each bullet with its citations, without fence and marker."""
    bullets = envelope.dynamic.bullets
    return [] if bullets is None else [row.removeprefix("- ") for row in bullets.text.splitlines()[1:-1]]


def finding_list(findings: Iterable[Finding]) -> RenderableType:
    """A line a finding, repeated ones once."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True, style="yellow")
    table.add_column(no_wrap=True)
    table.add_column()
    for finding in dict.fromkeys(findings):
        table.add_row(finding.kind, finding.ref or "", shown(finding.text))
    return Padding(table, (0, 0, 0, 2))


def reports_table(reports: Iterable[CompressionReport]) -> Table:
    """A line a compaction."""
    numbers = ("pre", "post", "saved", "kept")
    table = grid("report", "section", "pre", "post", "saved", "kept", "losses", numbers=numbers)
    for report in reports:
        table.add_row(
            short(report.id),
            report.section,
            f"{report.pre_tokens:,}",
            f"{report.post_tokens:,}",
            percent(1 - report.post_tokens / max(1, report.pre_tokens)),
            str(len(report.kept_refs)),
            losses_by_kind(report),
        )
    return table


FIRST_READ: tuple[LossKind, ...] = ("constraint", "decision", "open_item", "preference", "error", "identifier")
"""What a person wants to read first; the other kinds follow in their own order."""
LOSS_ORDER = (*FIRST_READ, *(kind for kind in get_args(LossKind) if kind not in FIRST_READ))


def losses_table(report: CompressionReport, limit: int) -> Table:
    """What one compaction lost, at most `limit` lines."""
    table = grid("lost", "ref", "text")
    for loss in sorted(report.losses, key=lambda loss: LOSS_ORDER.index(loss.kind))[:limit]:
        table.add_row(loss.kind, loss.ref, shown(" ".join(loss.text.split())))
    return table


def losses_by_kind(report: CompressionReport, most: int | None = None) -> str:
    """``12 number, 3 path``, most first, at most so many kinds; ``none``."""
    counts = Counter(loss.kind for loss in report.losses)
    rest = "" if most is None or len(counts) <= most else ", …"
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common(most)) + rest or "none"


def percent(fraction: float) -> str:
    return f"{fraction * 100:.0f} %"


def change(now: float, before: float) -> str:
    """``-63 %``; ``-`` where there was nothing."""
    return f"{(now / before - 1) * 100:+.0f} %" if before else "-"


def sparkline(values: Sequence[int], marks: Sequence[bool], width: int, *, blocks: str = BLOCKS) -> Text:
    """Values as bars, `width` to a row; a marked one has ``^`` below it."""
    top = max(values, default=0) or 1
    bars = "".join(blocks[min(len(blocks) - 1, value * len(blocks) // (top + 1))] for value in values)
    below = "".join("^" if mark else " " for mark in marks)
    rows = [
        f"{bars[start : start + width]}\n{below[start : start + width].rstrip()}"
        for start in range(0, len(bars), width)
    ]
    return Text("\n".join(rows).rstrip("\n"))
