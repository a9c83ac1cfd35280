"""Plots as inline SVG. The same figures give the same bytes.

Templates escape every value except `Markup`.
Lengths are SVG user units. Colours are CSS classes; the page's style sheet defines them for light and dark mode.
Source: SVG 1.1 (W3C).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from markupsafe import Markup

from .frame import render as render

WIDTH, LEFT, RIGHT = 640, 150, 56
ROW, GAP = 22, 8
PLOT_HEIGHT, PLOT_LEFT = 180, 48
MAX_ROWS = 24
COLOURS = 10
"""Classes ``c0`` to ``c9``."""


class Bar(NamedTuple):
    """One bar of a chart: its name, and the parts that are stacked in it."""

    name: str
    parts: tuple[float, ...]


class Series(NamedTuple):
    """One line over nights; None for a night without a figure."""

    name: str
    values: tuple[float | None, ...]


Shape = Mapping[str, Any]
"""A box, label, rule, dot or path, with its CSS class and position."""


def shape(name: Literal["box", "label", "rule", "dot", "path"], kind: str, **place: Any) -> Shape:
    """Return one shape in the form that the template draws."""
    return {"said": "", "anchor": "start", "radius": 3, "name": name, "kind": kind, **place}


def drawing(said: str, width: int, height: int, shapes: Sequence[Shape], kind: str = "") -> Markup:
    """Return an SVG of these shapes, in their order; `said` is its alternative text for screen readers."""
    return Markup(render("drawing.svg.j2", said=said, width=width, height=height, shapes=shapes, kind=kind))


def bars(title: str, rows: Sequence[Bar], parts: Sequence[str] = (), figure: str = "{:,}") -> Markup:
    """Return horizontal bars, one below the other; `parts` are the names of the colours, if there are several, and
    `figure` is the format of a bar's sum."""
    shown = rows[:MAX_ROWS]
    if not shown:
        return _nothing(title)
    top = 26 if len(parts) > 1 else 4
    most = max(sum(row.parts) for row in shown) or 1
    alt_text = f"{title}: " + ", ".join(f"{row.name} {figure.format(sum(row.parts))}" for row in shown)
    shapes = [*_key(parts), *(drawn for at, row in enumerate(shown) for drawn in _row(at, row, most, top, figure))]
    return drawing(alt_text, WIDTH, top + len(shown) * (ROW + GAP) + 4, shapes)


def lines(
    title: str, series: Sequence[Series], nights: Sequence[str], *, top: float = 1.0, percent: bool = True
) -> Markup:
    """Return lines over nights, from 0 to `top`; a night without a figure is a gap."""
    drawn = [line for line in series if any(value is not None for value in line.values)]
    if not drawn or not nights:
        return _nothing(title)
    newest = {line.name: next(value for value in reversed(line.values) if value is not None) for line in drawn}
    last = ", ".join(f"{name} {_figure(value, percent)}" for name, value in newest.items())
    shapes = [*_key([line.name for line in drawn]), *_axes(nights, top, percent)]
    for at, line in enumerate(drawn):
        shapes += _line(line, top, f"c{at % COLOURS}")
    return drawing(f"{title}, last: {last}", WIDTH, PLOT_HEIGHT + 60, shapes)


def counted(counts: Mapping[str, int]) -> list[Bar]:
    """Return a bar for each count, the longest first."""
    return [Bar(name, (number,)) for name, number in sorted(counts.items(), key=lambda bar: (-bar[1], bar[0]))]


def _row(at: int, row: Bar, most: float, top: int, figure: str) -> Iterator[Shape]:
    y, x = top + at * (ROW + GAP), float(LEFT)
    yield shape("label", "t", x=LEFT - 8, y=y + ROW - 7, text=row.name, anchor="end")
    for colour, part in enumerate(row.parts):
        width = (WIDTH - LEFT - RIGHT) * part / most
        if part:
            yield shape(
                "box", f"c{colour % COLOURS}", x=x, y=y, width=max(width, 1), height=ROW, said=figure.format(part)
            )
        x += width
    yield shape("label", "s", x=x + 6, y=y + ROW - 7, text=figure.format(sum(row.parts)))


def _axes(nights: Sequence[str], top: float, percent: bool) -> Iterator[Shape]:
    for step in range(5):
        value = top * step / 4
        y = _y(value, top)
        yield shape("rule", "grid" if step else "axis", x1=PLOT_LEFT, x2=WIDTH - 8, y1=y, y2=y)
        yield shape("label", "s", x=PLOT_LEFT - 6, y=y + 4, text=_figure(value, percent), anchor="end")
    for at in range(0, len(nights), max(1, -(-len(nights) // 6))):
        yield shape("label", "s", x=_x(at, len(nights)), y=PLOT_HEIGHT + 46, text=nights[at], anchor="middle")


def _line(series: Series, top: float, colour: str) -> Iterator[Shape]:
    """Yield a path for each run of nights with figures, and a dot for each figure."""
    runs: list[list[tuple[float, float]]] = [[]]
    dots = []
    for at, value in enumerate(series.values):
        if value is None:
            runs.append([])
            continue
        x, y = _x(at, len(series.values)), _y(min(value, top), top)
        runs[-1].append((x, y))
        dots.append(shape("dot", colour, x=x, y=y, said=f"{value:.3g}"))
    yield from (shape("path", colour, points=run) for run in runs if len(run) > 1)
    yield from dots


def _key(names: Sequence[str]) -> Iterator[Shape]:
    x, y = float(PLOT_LEFT), 0.0
    for at, name in enumerate(names if len(names) > 1 else ()):
        if x + 17 + 6.2 * len(name) > WIDTH:
            x, y = float(PLOT_LEFT), y + 12
        yield shape("box", f"c{at % COLOURS}", x=x, y=y, width=10, height=10)
        yield shape("label", "s", x=x + 15, y=y + 9, text=name)
        x += 32 + 6.2 * len(name)


def _x(at: int, count: int) -> float:
    return PLOT_LEFT + 12 + (WIDTH - PLOT_LEFT - 32) * (at / (count - 1) if count > 1 else 0.5)


def _y(value: float, top: float) -> float:
    return 28 + PLOT_HEIGHT * (1 - value / top)


def _figure(value: float, percent: bool) -> str:
    return f"{value:.0%}" if percent else f"{value:,.0f}"


def _nothing(title: str) -> Markup:
    return Markup(render("nothing.html.j2", title=title).rstrip())
