"""The picture of `docs/durability.md`: ``python -m ctxsteward.evals.bench.durability_picture docs/img``.

`durability.svg`: the way of a message from `append` to the object store, the chat path above, the write-behind below.
The same bytes in every run. Lengths are SVG user units. Source: SVG 1.1 (W3C); colours as in `picture`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from .readme_pictures import STYLE

NAME = "durability.svg"
WIDTH, HEIGHT = 760, 330
LINE = 17
"""From one line of text to the next."""

_SHAPES = """.box{fill:none;stroke:#57606a;stroke-width:1}.path{stroke:#0969da;fill:none;stroke-width:2}
.behind{stroke:#bc4c00;fill:none;stroke-width:2;stroke-dasharray:6 4}.tip{fill:#57606a}
@media (prefers-color-scheme:dark){.box{stroke:#9da7b3}.path{stroke:#58a6ff}.behind{stroke:#f0883e}.tip{fill:#9da7b3}}
"""


class PictureBox(NamedTuple):
    """A rectangle with a title and small lines below it."""

    x: int
    y: int
    width: int
    lines: tuple[str, ...]

    @property
    def height(self) -> int:
        return 16 + LINE * len(self.lines)

    def drawn(self) -> str:
        parts = [f'<rect class="box" x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}" rx="6"/>']
        for number, line in enumerate(self.lines):
            kind = "small" if number else "text"
            y = self.y + 8 + LINE * (number + 1) - 4
            parts.append(f'<text class="{kind}" x="{self.x + 10}" y="{y}">{escape(line)}</text>')
        return "\n".join(parts)


APPEND = PictureBox(20, 62, 150, ("session.append", "notes, compactions,", "selections too"))
JOURNAL = PictureBox(
    265, 62, 225, ("local journal", "SQLite; one fsync for all that wait", "each record with its code")
)
ACK = PictureBox(585, 62, 155, ("acknowledged", "outlives SIGKILL", "and power cuts"))
DRAIN = PictureBox(265, 212, 225, ("drain", "one thread, behind everything", "each record under its subject's key"))
OBJECTS = PictureBox(585, 212, 155, ("object store", "links 1, 2, 3 …", "each put if absent"))
OTHER = PictureBox(20, 212, 150, ("another machine", "reads the links;", "takes over: link N+1"))


def durability_svg() -> str:
    """The picture."""
    boxes = (APPEND, JOURNAL, ACK, DRAIN, OBJECTS, OTHER)
    arrows = (
        _across(APPEND, JOURNAL, "path"), _across(JOURNAL, ACK, "path"), _down(JOURNAL, DRAIN, "behind"),
        _across(DRAIN, OBJECTS, "behind"), _round(OBJECTS, OTHER, "behind"),
    )  # fmt: skip
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
            "<title>From append to the object store</title>",
            f"<style>{STYLE}{_SHAPES}</style>",
            f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
            '<text class="text title" x="20" y="32">The chat path ends at the local disk</text>',
            '<text class="small" x="20" y="188">behind it, while the object store answers</text>',
            *(box.drawn() for box in boxes),
            *arrows,
            "</svg>\n",
        )
    )


def _across(left: PictureBox, right: PictureBox, kind: str) -> str:
    y = left.y + left.height // 2
    return _arrow(kind, [(left.x + left.width, y), (right.x, y)])


def _down(above: PictureBox, below: PictureBox, kind: str) -> str:
    x = above.x + above.width // 2
    return _arrow(kind, [(x, above.y + above.height), (x, below.y)])


def _round(right: PictureBox, left: PictureBox, kind: str) -> str:
    """From the bottom of one to the bottom of the other, below everything."""
    start, stop, y = right.x + right.width // 2, left.x + left.width // 2, right.y + right.height + 24
    return _arrow(kind, [(start, right.y + right.height), (start, y), (stop, y), (stop, left.y + left.height)])


def _arrow(kind: str, points: list[tuple[int, int]]) -> str:
    (x0, y0), (x, y) = points[-2:]
    dx, dy = (x > x0) - (x < x0), (y > y0) - (y < y0)
    back, side = (x - 9 * dx, y - 9 * dy), (4 * dy, 4 * dx)
    tip = [(x, y), (back[0] + side[0], back[1] + side[1]), (back[0] - side[0], back[1] - side[1])]
    return f'<polyline class="{kind}" points="{_text(points)}"/>\n<polygon class="tip" points="{_text(tip)}"/>'


def _text(points: list[tuple[int, int]]) -> str:
    return " ".join(f"{x},{y}" for x, y in points)


if __name__ == "__main__":
    (Path(sys.argv[1]) / NAME).write_text(durability_svg(), encoding="utf-8", newline="\n")
