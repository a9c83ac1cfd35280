"""Plots as inline SVG: bars, stacked bars, lines over nights or runs. Strings in, strings out; the same bytes for the
same figures.

Lengths are SVG user units. Colours are classes that the page's style sheet sets, for light and dark. Every text is
escaped. Source: SVG 1.1 (W3C).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

WIDTH, LEFT, RIGHT = 640, 150, 56
ROW, GAP = 22, 8
PLOT_HEIGHT, PLOT_LEFT = 180, 48
MAX_ROWS = 24
COLOURS = 7
"""Classes ``c0`` to ``c6``."""

STYLE = """
svg{display:block;width:100%;max-width:680px;height:auto}
.t{fill:var(--text);font:12px system-ui,-apple-system,'Segoe UI',sans-serif}
.s{fill:var(--dim);font:11px system-ui,-apple-system,'Segoe UI',sans-serif}
.grid{stroke:var(--line);stroke-width:1}.axis{stroke:var(--dim);stroke-width:1}
.line{fill:none;stroke-width:2}.c0{fill:#0969da;stroke:#0969da}.c1{fill:#bc4c00;stroke:#bc4c00}
.c2{fill:#1a7f37;stroke:#1a7f37}.c3{fill:#8250df;stroke:#8250df}.c4{fill:#cf222e;stroke:#cf222e}
.c5{fill:#9a6700;stroke:#9a6700}.c6{fill:#6e7781;stroke:#6e7781}.line.c0,.line.c1,.line.c2,.line.c3{fill:none}
@media (prefers-color-scheme:dark){.c0{fill:#58a6ff;stroke:#58a6ff}.c1{fill:#f0883e;stroke:#f0883e}
.c2{fill:#56d364;stroke:#56d364}.c3{fill:#bc8cff;stroke:#bc8cff}.c4{fill:#ff7b72;stroke:#ff7b72}
.c5{fill:#e3b341;stroke:#e3b341}.c6{fill:#9da7b3;stroke:#9da7b3}.line.c0,.line.c1,.line.c2,.line.c3{fill:none}}
"""


class Bar(NamedTuple):
    """A row: its name and its parts, stacked."""

    name: str
    parts: tuple[int, ...]


class Series(NamedTuple):
    """A line over nights; None where there is no figure."""

    name: str
    values: tuple[float | None, ...]


def bars(title: str, rows: Sequence[Bar], parts: Sequence[str] = ()) -> str:
    """Horizontal bars, one below the other; `parts` name the colours where there are several."""
    shown = rows[:MAX_ROWS]
    top = 26 if len(parts) > 1 else 4
    height = top + len(shown) * (ROW + GAP) + 4
    most = max((sum(row.parts) for row in shown), default=0) or 1
    said = f"{title}: " + ", ".join(f"{row.name} {sum(row.parts):,}" for row in shown)
    body = [*_key(parts), *(_row(at, row, most, top) for at, row in enumerate(shown))]
    return _svg(said, height, body) if shown else _nothing(title)


def lines(
    title: str, series: Sequence[Series], nights: Sequence[str], *, top: float = 1.0, percent: bool = True
) -> str:
    """Lines over nights, from 0 to `top`; a night without a figure is a gap."""
    known = [one for one in series if any(value is not None for value in one.values)]
    if not known or not nights:
        return _nothing(title)
    last = ", ".join(f"{one.name} {_figure(_last(one), percent)}" for one in known)
    body = [*_key([one.name for one in known]), *_axes(nights, top, percent)]
    for at, one in enumerate(known):
        body += _line(one, top, f"c{at % COLOURS}")
    return _svg(f"{title}, last: {last}", PLOT_HEIGHT + 60, body)


# -- parts --------------------------------------------------------------------------------------------------------


def _row(at: int, row: Bar, most: int, top: int) -> str:
    y = top + at * (ROW + GAP)
    room = WIDTH - LEFT - RIGHT
    x, drawn = float(LEFT), []
    for colour, part in enumerate(row.parts):
        width = room * part / most
        if part:
            drawn.append(
                f'<rect class="c{colour % COLOURS}" x="{x:.1f}" y="{y}" width="{max(width, 1):.1f}" height="{ROW}" '
                f'rx="2"><title>{part:,}</title></rect>'
            )
        x += width
    name = _text(LEFT - 8, y + ROW - 7, row.name, "t", "end")
    return "".join([name, *drawn, _text(x + 6, y + ROW - 7, f"{sum(row.parts):,}", "s")])


def _axes(nights: Sequence[str], top: float, percent: bool) -> Iterator[str]:
    for step in range(5):
        value = top * step / 4
        y = _y(value, top)
        kind = "grid" if step else "axis"
        yield f'<line class="{kind}" x1="{PLOT_LEFT}" x2="{WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(PLOT_LEFT - 6, y + 4, _figure(value, percent), "s", "end")
    stride = max(1, -(-len(nights) // 6))
    for at in range(0, len(nights), stride):
        yield _text(_x(at, len(nights)), PLOT_HEIGHT + 46, nights[at], "s", "middle")


def _line(one: Series, top: float, colour: str) -> list[str]:
    """Runs of known figures, and a point on each."""
    runs: list[list[str]] = [[]]
    points = []
    for at, value in enumerate(one.values):
        if value is None:
            runs.append([])
            continue
        x, y = _x(at, len(one.values)), _y(min(value, top), top)
        runs[-1].append(f"{x:.1f},{y:.1f}")
        points.append(f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{value:.3g}</title></circle>')
    drawn = [f'<polyline class="line {colour}" points="{" ".join(run)}"/>' for run in runs if len(run) > 1]
    return drawn + points


def _key(names: Sequence[str]) -> Iterator[str]:
    x = float(PLOT_LEFT)
    for at, name in enumerate(names if len(names) > 1 else ()):
        yield f'<rect class="c{at % COLOURS}" x="{x:.1f}" y="4" width="12" height="12" rx="2"/>'
        yield _text(x + 17, 14, name, "s")
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


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(said: str, height: float, body: Sequence[str]) -> str:
    label = escape(said, quote=True)
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{label}">{"".join(body)}</svg>'


def _nothing(title: str) -> str:
    return f'<p class="none">{escape(title)}: nothing to show yet</p>'


def counted(counts: Mapping[str, int]) -> list[Bar]:
    """A bar for each count, the longest first."""
    return [Bar(name, (number,)) for name, number in sorted(counts.items(), key=lambda one: (-one[1], one[0]))]
