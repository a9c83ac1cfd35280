"""Plots as inline SVG: bars, stacked bars, lines over nights or runs; the same bytes for the same figures.

Lengths are SVG user units. Colours are classes that the page's style sheet sets, for light and dark. Every text is
escaped by the template. Source: SVG 1.1 (W3C).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from . import render

WIDTH, LEFT, RIGHT = 640, 150, 56
ROW, GAP = 22, 8
PLOT_HEIGHT, PLOT_LEFT = 180, 48
MAX_ROWS = 24
COLOURS = 7
"""Classes ``c0`` to ``c6``."""


class Bar(NamedTuple):
    """A row: its name and its parts, stacked."""

    name: str
    parts: tuple[int, ...]


class Series(NamedTuple):
    """A line over nights; None where there is no figure."""

    name: str
    values: tuple[float | None, ...]


class Box(NamedTuple):
    kind: str
    x: float
    y: float
    width: float
    height: float
    said: str = ""
    name: str = "box"


class Label(NamedTuple):
    kind: str
    x: float
    y: float
    text: str
    anchor: str = "start"
    name: str = "label"


class RuleLine(NamedTuple):
    kind: str
    x1: float
    x2: float
    y1: float
    y2: float
    name: str = "rule"


class Dot(NamedTuple):
    kind: str
    x: float
    y: float
    said: str = ""
    radius: int = 3
    name: str = "dot"


class Path(NamedTuple):
    kind: str
    points: tuple[tuple[float, float], ...]
    name: str = "path"


Shape = Box | Label | RuleLine | Dot | Path


def drawing(said: str, width: int, height: int, shapes: Sequence[Shape], kind: str = "") -> Markup:
    """A picture of these shapes, in their order; `said` is what a reader who sees no pictures is told."""
    return Markup(render("drawing.svg.j2", said=said, width=width, height=height, shapes=shapes, kind=kind))


def bars(title: str, rows: Sequence[Bar], parts: Sequence[str] = ()) -> Markup:
    """Horizontal bars, one below the other; `parts` name the colours where there are several."""
    shown = rows[:MAX_ROWS]
    if not shown:
        return _nothing(title)
    top = 26 if len(parts) > 1 else 4
    most = max(sum(row.parts) for row in shown) or 1
    said = f"{title}: " + ", ".join(f"{row.name} {sum(row.parts):,}" for row in shown)
    shapes = [*_key(parts), *(shape for at, row in enumerate(shown) for shape in _row(at, row, most, top))]
    return drawing(said, WIDTH, top + len(shown) * (ROW + GAP) + 4, shapes)


def lines(
    title: str, series: Sequence[Series], nights: Sequence[str], *, top: float = 1.0, percent: bool = True
) -> Markup:
    """Lines over nights, from 0 to `top`; a night without a figure is a gap."""
    known = [one for one in series if any(value is not None for value in one.values)]
    if not known or not nights:
        return _nothing(title)
    last = ", ".join(f"{one.name} {_figure(_last(one), percent)}" for one in known)
    shapes = [*_key([one.name for one in known]), *_axes(nights, top, percent)]
    for at, one in enumerate(known):
        shapes += _line(one, top, f"c{at % COLOURS}")
    return drawing(f"{title}, last: {last}", WIDTH, PLOT_HEIGHT + 60, shapes)


def counted(counts: Mapping[str, int]) -> list[Bar]:
    """A bar for each count, the longest first."""
    return [Bar(name, (number,)) for name, number in sorted(counts.items(), key=lambda one: (-one[1], one[0]))]


def _row(at: int, row: Bar, most: int, top: int) -> Iterator[Shape]:
    y, x = top + at * (ROW + GAP), float(LEFT)
    yield Label("t", LEFT - 8, y + ROW - 7, row.name, "end")
    for colour, part in enumerate(row.parts):
        width = (WIDTH - LEFT - RIGHT) * part / most
        if part:
            yield Box(f"c{colour % COLOURS}", x, y, max(width, 1), ROW, f"{part:,}")
        x += width
    yield Label("s", x + 6, y + ROW - 7, f"{sum(row.parts):,}")


def _axes(nights: Sequence[str], top: float, percent: bool) -> Iterator[Shape]:
    for step in range(5):
        value = top * step / 4
        y = _y(value, top)
        yield RuleLine("grid" if step else "axis", PLOT_LEFT, WIDTH - 8, y, y)
        yield Label("s", PLOT_LEFT - 6, y + 4, _figure(value, percent), "end")
    for at in range(0, len(nights), max(1, -(-len(nights) // 6))):
        yield Label("s", _x(at, len(nights)), PLOT_HEIGHT + 46, nights[at], "middle")


def _line(one: Series, top: float, colour: str) -> Iterator[Shape]:
    """Runs of known figures, and a point on each."""
    runs: list[list[tuple[float, float]]] = [[]]
    dots = []
    for at, value in enumerate(one.values):
        if value is None:
            runs.append([])
            continue
        x, y = _x(at, len(one.values)), _y(min(value, top), top)
        runs[-1].append((x, y))
        dots.append(Dot(colour, x, y, f"{value:.3g}"))
    yield from (Path(colour, tuple(run)) for run in runs if len(run) > 1)
    yield from dots


def _key(names: Sequence[str]) -> Iterator[Shape]:
    x = float(PLOT_LEFT)
    for at, name in enumerate(names if len(names) > 1 else ()):
        yield Box(f"c{at % COLOURS}", x, 4, 12, 12)
        yield Label("s", x + 17, 14, name)
        x += 34 + 6.2 * len(name)


def _x(at: int, count: int) -> float:
    return PLOT_LEFT + 12 + (WIDTH - PLOT_LEFT - 32) * (at / (count - 1) if count > 1 else 0.5)


def _y(value: float, top: float) -> float:
    return 28 + PLOT_HEIGHT * (1 - value / top)


def _figure(value: float | None, percent: bool) -> str:
    if value is None:
        return "-"
    return f"{value:.0%}" if percent else f"{value:,.0f}"


def _last(one: Series) -> float | None:
    return next((value for value in reversed(one.values) if value is not None), None)


def _nothing(title: str) -> Markup:
    return Markup(render("nothing.html.j2", title=title).rstrip())
