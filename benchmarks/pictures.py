"""The pictures of the documents, drawn from a run: ``python -m benchmarks.pictures docs/img``.

`question.svg`: how ``ctxsteward demo`` begins. `evidence.svg`: how much of a question's evidence is shown, by tokens,
ours beside baselines: the figures of the tables in ``selection.md``, which stands beside the folder. Both are the same
bytes in every run. With ``--pages`` also screenshots of ``ctxsteward serve --demo``.
Lengths are SVG user units.
Source: SVG 1.1 and the media query `prefers-color-scheme` (W3C).
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from math import log
from pathlib import Path
from sysconfig import get_path
from typing import NamedTuple
from xml.sax.saxutils import escape

from rich.console import Console
from rich.text import Text

from ctxsteward.evals.documents import block_of, table_rows

WIDTH = 760
PAGES = {
    "view-call.png": "sessions/demo/calls/129",
    "view-timeline.png": "sessions/demo",
    "view-difference.png": "sessions/demo/calls/129/since/128",
    "view-steward.png": "steward/fernhollow-desk",
    "evals.png": "evals",
}
"""Screenshots, and the pages of the demo that they show."""

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


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


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


def question_svg() -> str:
    """Return the beginning of the demo as a terminal shows it: bills, and one question to two prompts."""
    rows = demo_told().splitlines()
    start, end = (next(at for at, row in enumerate(rows) if title in row) for title in ("1  A day of", "3  What comes"))
    console = Console(record=True, width=80, file=io.StringIO(), force_terminal=True, color_system="standard")
    for row in rows[start : end - 1]:
        console.print(Text.from_ansi(row.rstrip()), no_wrap=True)
    return console.export_svg(title="ctxsteward demo", code_format=_TERMINAL, unique_id="question")


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


def screenshots(folder: Path) -> None:
    """Take pictures of the pages of ``ctxsteward serve --demo``, 1280 x 800; needs Chromium."""
    from playwright.sync_api import sync_playwright

    command = [str(Path(get_path("scripts")) / "ctxsteward"), "serve", "--demo", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8") as service:
        try:
            assert service.stdout is not None
            url = json.loads(service.stdout.readline())["url"]
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                for name, path in PAGES.items():
                    page.goto(url + path)
                    page.screenshot(path=folder / name)
                    print(folder / name)
        finally:
            service.terminate()


def main(argv: list[str] | None = None) -> int:
    """Write the pictures into a folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pictures", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", action="store_true", help="also take the screenshots; needs Chromium")
    options = parser.parse_args(argv)
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    page = (folder.parent / "selection.md").read_text(encoding="utf-8")
    for name, svg in {"question.svg": question_svg(), "evidence.svg": evidence_svg(page)}.items():
        (folder / name).write_text(svg, encoding="utf-8", newline="\n")
        print(folder / name)
    if options.pages:
        screenshots(folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
