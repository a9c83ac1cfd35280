"""The pictures of the README, drawn from a run: ``python -m benchmarks.pictures docs/img``.

`window.svg`: prompt tokens of every call of the demo's incident, all of the history against the envelope, and below it
the dynamic section with its budget and compactions. `question.svg`: how ``ctxsteward demo`` begins. `demo.svg`: how it
ends, but for its build times, which no two runs share. `evidence.svg`: how much of a question's evidence is shown, by
tokens, ours beside baselines: the figures of the tables in ``selection.md``, which stands beside the folder.
All are the same bytes in every run.
Tokens are the builder's; lengths are SVG user units.
Source: SVG 1.1 and the media query `prefers-color-scheme` (W3C).
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import log
from pathlib import Path
from sysconfig import get_path
from typing import NamedTuple
from xml.sax.saxutils import escape

from rich.console import Console
from rich.text import Text

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile
from ctxsteward.envelope.testing import memory_store
from ctxsteward.envelope.transcripts.files import parse_transcripts
from ctxsteward.evals.documents import block_of, table_rows
from ctxsteward.evals.replay import open_session, replay

MODEL, DYNAMIC_TOKENS = "gpt-4o", 2_000
"""Values of the demo; a test compares the sums."""

WIDTH, LEFT, RIGHT = 760, 70, 64
UPPER, LOWER = (70, 250), (318, 478)
"""Top and bottom of the two panels."""
HEIGHT = 540

STYLE = """
.paper{fill:#fff}.text{fill:#24292f;font:13px system-ui,-apple-system,'Segoe UI',sans-serif}
.small{fill:#57606a;font:11px system-ui,-apple-system,'Segoe UI',sans-serif}.title{font-size:15px;font-weight:600}
.grid{stroke:#d8dee4;stroke-width:1}.axis{stroke:#57606a;stroke-width:1}
.full{stroke:#bc4c00;fill:none;stroke-width:2}.sent{stroke:#0969da;fill:none;stroke-width:2}
.second{stroke:#bc4c00;fill:none;stroke-width:1;stroke-dasharray:2 3}
.third{stroke:#57606a;fill:none;stroke-width:1;stroke-dasharray:2 3}
.limit{stroke:#57606a;stroke-width:1;stroke-dasharray:5 4}.mark{fill:#8250df}
@media (prefers-color-scheme:dark){.paper{fill:#0d1117}.text{fill:#e6edf3}.small{fill:#9da7b3}.grid{stroke:#30363d}
.axis,.limit{stroke:#9da7b3}.full{stroke:#f0883e}.sent{stroke:#58a6ff}.mark{fill:#bc8cff}
.second{stroke:#f0883e}.third{stroke:#9da7b3}}
"""

_TERMINAL = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<style>.{unique_id}-matrix {{font:{char_height}px/{line_height}px ui-monospace,Menlo,Consolas,monospace}}
.{unique_id}-title {{font:bold 18px system-ui,sans-serif}}
{styles}</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
{chrome}<g transform="translate({terminal_x},{terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g></svg>
"""


class WindowPoint(NamedTuple):
    """One model call."""

    full_tokens: int
    """Tokens of the same head with all messages so far."""
    sent_tokens: int
    dynamic_tokens: int
    compacted: bool


class WindowPanel(NamedTuple):
    """A plot area and the range of its axes."""

    top: int
    bottom: int
    calls: int
    top_tokens: int

    def x(self, call: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (call - 1) / max(1, self.calls - 1)

    def y(self, tokens: float) -> float:
        return self.bottom - (self.bottom - self.top) * tokens / self.top_tokens


def points() -> list[WindowPoint]:
    """Return every call of the shipped incident under the demo's budgets."""
    data = files("ctxsteward.console") / "data"  # a data file of the package, not its code
    (transcript,) = parse_transcripts((data / "demo.jsonl").read_text(encoding="utf-8"), "demo.jsonl")
    profile = Profile.from_yaml((data / "demo-profile.yaml").read_text(encoding="utf-8"))
    builder = EnvelopeBuilder(model=MODEL, budgets=Budgets(dynamic_tokens=DYNAMIC_TOKENS))
    session = open_session(memory_store(), transcript, profile=profile)
    found: list[WindowPoint] = []
    history = counted = 0
    for call in replay(transcript, builder, session):
        history += sum(entry.tokens(builder.counter) for entry in session.entries(counted + 1))
        counted = len(session)
        sent, dynamic = call.envelope.tokens, call.envelope.section("dynamic").tokens
        found.append(WindowPoint(sent - dynamic + history, sent, dynamic, bool(call.envelope.reports)))
    return found


# -- window.svg ---------------------------------------------------------------------------------------------------


def window_svg(calls: Sequence[WindowPoint]) -> str:
    """Return both panels as one document."""
    full, sent = sum(call.full_tokens for call in calls), sum(call.sent_tokens for call in calls)
    compactions = sum(call.compacted for call in calls)
    said = (
        f"Prompt tokens of {len(calls)} model calls. All of the history: {full:,} in all. Envelope: {sent:,}, "
        f"with {compactions} compactions."
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{said}">',
        f"<title>{said}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
        *_prompt_panel(calls, full, sent),
        *_dynamic_panel(calls, compactions),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _prompt_panel(calls: Sequence[WindowPoint], full: int, sent: int) -> Iterator[str]:
    panel = WindowPanel(*UPPER, len(calls), _round_up(max(call.full_tokens for call in calls), 5_000))
    yield _text(LEFT, 26, "Tokens in each prompt of an on-call day", "text title")
    yield from _key(LEFT, 48, "full", f"all of the history: {full:,} tokens in {len(calls)} calls")
    yield from _key(LEFT + 350, 48, "sent", f"envelope: {sent:,} tokens")
    yield from _axes(panel, 5_000)
    yield _line(panel, [call.full_tokens for call in calls], "full")
    yield _line(panel, [call.sent_tokens for call in calls], "sent")


def _dynamic_panel(calls: Sequence[WindowPoint], compactions: int) -> Iterator[str]:
    budgets = Budgets(dynamic_tokens=DYNAMIC_TOKENS, recall_fraction=0)
    panel = WindowPanel(*LOWER, len(calls), 2_500)
    yield _text(LEFT, 300, "Of it, the dynamic section", "text title")
    yield _mark(LEFT + 355, 295)
    yield _text(LEFT + 368, 300, f"{compactions} compactions", "text")
    yield from _axes(panel, 500)
    for tokens, name in (
        (budgets.dynamic_tokens, "budget"),
        (budgets.trigger_tokens, "due"),
        (budgets.target_tokens, "target"),
    ):
        y = panel.y(tokens)
        yield f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(WIDTH - RIGHT + 6, y + 4, name, "small")
    yield _line(panel, [call.dynamic_tokens for call in calls], "sent")
    for number, call in enumerate(calls, 1):
        if call.compacted:
            yield _mark(panel.x(number), panel.bottom - 8)
    yield _text((LEFT + WIDTH - RIGHT) / 2, panel.bottom + 40, "model call", "small", "middle")


def _axes(panel: WindowPanel, step_tokens: int, about: str = "tokens in a prompt") -> Iterator[str]:
    for tokens in range(0, panel.top_tokens + 1, step_tokens):
        y = panel.y(tokens)
        kind = "grid" if tokens else "axis"
        yield f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(LEFT - 8, y + 4, f"{tokens:,}", "small", "end")
    middle = (panel.top + panel.bottom) / 2
    yield (
        f'<text class="small" text-anchor="middle" transform="translate(18 {middle:.1f}) rotate(-90)">{about}</text>'
    )
    for call in (1, *range(20, panel.calls + 1, 20)):
        yield _text(panel.x(call), panel.bottom + 18, str(call), "small", "middle")


def _line(panel: WindowPanel, values: Sequence[int], kind: str) -> str:
    places = " ".join(f"{panel.x(number):.1f},{panel.y(value):.1f}" for number, value in enumerate(values, 1))
    return f'<polyline class="{kind}" points="{places}"/>'


def _key(x: float, y: float, kind: str, text: str) -> Iterator[str]:
    yield f'<line class="{kind}" x1="{x}" x2="{x + 22}" y1="{y - 4}" y2="{y - 4}"/>'
    yield _text(x + 30, y, text, "text")


def _mark(x: float, y: float) -> str:
    return f'<path class="mark" d="M{x:.1f} {y - 4:.1f}l5 9h-10z"/>'


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


# -- evidence.svg -------------------------------------------------------------------------------------------------


class EvidenceLine(NamedTuple):
    """One ranking's curve."""

    name: str
    kind: str
    """CSS class in `STYLE`."""
    shown: Mapping[int, float]
    """Tokens → percent of the evidence."""


KINDS = {
    "heuristic": "sent",
    "oracle": "limit",
    "BM25 / tokens": "full",
    "BM25": "second",
    "recency": "axis",
    "random": "third",
}
"""Rankings that are drawn, with their CSS class."""
_DRAWN = {"heuristic": "ours", "recency": "newest"}
EVIDENCE_HEIGHT, EVIDENCE_TOP, EVIDENCE_BOTTOM = 340, 84, 282
PANEL_WIDTH, PANEL_LEFT, LABELS = 232, 56, 128


def evidence_lines(page: str) -> tuple[list[EvidenceLine], list[EvidenceLine]]:
    """Read the tables of ``selection.md``: talk between people, and chats with long replies, held out."""
    recall = [row for row in table_rows(block_of(page, "recall")) if row[0] != "strategy"]
    chats = table_rows(block_of(page, "chats"))
    chats = chats[: next((at for at, row in enumerate(chats) if row[0] == "ranking, by passage"), None)]
    sizes = {
        at: int(name.removeprefix("user, ").replace(",", ""))
        for at, name in enumerate(chats[0])
        if name.startswith("user, ")
    }
    people = [
        EvidenceLine(
            _DRAWN.get(name, name),
            kind,
            {int(row[1].replace(",", "")): float(row[2]) for row in recall if row[0] == name},
        )
        for name, kind in KINDS.items()
    ]
    assistant = [
        EvidenceLine(
            _DRAWN.get(row[0], row[0]),
            KINDS[row[0]],
            {size: float(row[at].split(" / ")[1]) for at, size in sizes.items()},
        )
        for row in chats
        if row[0] in KINDS
    ]
    return people, assistant


def evidence_svg(page: str) -> str:
    """Return both panels as one document."""
    people, assistant = evidence_lines(page)
    said = "Percent of a question's evidence that is shown, by tokens of recall: ours beside baselines."
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {EVIDENCE_HEIGHT}" role="img" '
        f'aria-label="{said}">',
        f"<title>{said}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{EVIDENCE_HEIGHT}" rx="8"/>',
        _text(16, 26, "Evidence shown word for word, %, by tokens for recall", "text title"),
        *_evidence_panel(PANEL_LEFT, "talk between people (LoCoMo, development)", people),
        *_evidence_panel(
            PANEL_LEFT + PANEL_WIDTH + LABELS, "what users said to an assistant (BEAM, held out)", assistant
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _evidence_panel(left: float, about: str, lines: Sequence[EvidenceLine]) -> Iterator[str]:
    sizes = sorted({size for line in lines for size in line.shown})
    right = left + PANEL_WIDTH

    def x(size: int) -> float:
        return left + PANEL_WIDTH * log(size / sizes[0]) / log(sizes[-1] / sizes[0])

    def y(percent: float) -> float:
        return EVIDENCE_BOTTOM - (EVIDENCE_BOTTOM - EVIDENCE_TOP) * percent / 100

    yield _text(left, 58, about, "text")
    for percent in range(0, 101, 25):
        yield (
            f'<line class="{"grid" if percent else "axis"}" x1="{left}" x2="{right}" y1="{y(percent):.1f}" '
            f'y2="{y(percent):.1f}"/>'
        )
        yield _text(left - 8, y(percent) + 4, str(percent), "small", "end")
    for size in sizes:
        yield _text(x(size), EVIDENCE_BOTTOM + 18, f"{size:,}", "small", "middle")
    label = float("inf")
    for line in sorted(lines, key=lambda line: line.shown[sizes[-1]]):
        places = " ".join(f"{x(size):.1f},{y(line.shown[size]):.1f}" for size in sorted(line.shown))
        yield f'<polyline class="{line.kind}" fill="none" points="{places}"/>'
        label = min(label - 13, y(line.shown[sizes[-1]]) + 4)
        yield _text(right + 6, label, f"{line.name} {line.shown[sizes[-1]]:.0f}", "small")


# -- demo.svg -----------------------------------------------------------------------------------------------------


def question_svg() -> str:
    """Return the beginning of the demo as a terminal shows it: bills, and one question to two prompts."""
    rows = demo_told().splitlines()
    start, end = (next(at for at, row in enumerate(rows) if title in row) for title in ("1  A day of", "3  What comes"))
    console = _recording(80)
    for row in rows[start : end - 1]:
        console.print(Text.from_ansi(row.rstrip()), no_wrap=True)
    return console.export_svg(title="ctxsteward demo", code_format=_TERMINAL, unique_id="question")


def demo_svg() -> str:
    """Return the end of the demo as a terminal shows it, from its checks on."""
    return terminal_svg(demo_told())


@cache
def demo_told() -> str:
    """Return the demo's output, with ANSI colours."""
    colours = {"FORCE_COLOR": "1", "COLUMNS": "80", "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [str(Path(get_path("scripts")) / "ctxsteward"), "demo"],
        env={**{key: value for key, value in os.environ.items() if key != "NO_COLOR"}, **colours},
        capture_output=True,
        check=True,
        encoding="utf-8",
    ).stdout


def _recording(width: int) -> Console:
    return Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="standard")


def terminal_svg(told: str) -> str:
    """Return the demo's output as a picture, from the line after ``Checked`` on and without build times."""
    console = _recording(72)
    rows = [Text.from_ansi(row) for row in told.splitlines()]
    start = next(index for index, row in enumerate(rows) if row.plain == "Checked")
    figures = False
    for row in rows[start + 1 :]:
        name, _, value = row.plain.strip().partition("  ")
        if figures and name.startswith("build"):
            continue
        if figures and value:  # the column is as wide as its build times, so it is laid out again
            row = Text(f" {name:<32}{value.strip():>12}")
        console.print(row, no_wrap=True)
        figures = figures or name.startswith("same head")
    return console.export_svg(title="ctxsteward demo", code_format=_TERMINAL, unique_id="demo")


def main(argv: list[str] | None = None) -> int:
    """Write the pictures into a folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pictures", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args(argv).folder
    folder.mkdir(parents=True, exist_ok=True)
    page = (folder.parent / "selection.md").read_text(encoding="utf-8")
    pictures = {
        "window.svg": window_svg(points()),
        "question.svg": question_svg(),
        "demo.svg": demo_svg(),
        "evidence.svg": evidence_svg(page),
    }
    for name, svg in pictures.items():
        (folder / name).write_text(svg, encoding="utf-8", newline="\n")
        print(folder / name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
