"""Pictures of the dashboard, from real series: what a Prometheus recorded while `showing` ran.

``dashboard-builds.svg`` has the panels of builds, ``dashboard-nights.svg`` those of nights and evals. Every line is a
series of the panel's own query over that time; lengths are SVG user units, times seconds since the first scrape. The
run is real, so no two are the same bytes. Source: SVG 1.1 and the media query `prefers-color-scheme` (W3C).

A real Prometheus on the loopback that scrapes processes of ours with our rules, for pictures and tests.

    with watching(folder, {"chat": "http://127.0.0.1:9464/metrics"}, rules=[Path("alerts.yml")]) as prometheus:
        prometheus.query("up")

`targets` are addresses of metrics by the name of their job. It is started with a configuration of its own in `folder`,
keeps its data there, and is stopped at the end. `program` is the binary; Debian's package ``prometheus`` has one. Times
are Unix seconds.

Raises `FileNotFoundError` where there is no such program, `TimeoutError` where it does not answer in time.
Source: the Prometheus project's HTTP API.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import IO, Any, NamedTuple
from urllib.parse import urlencode, urlsplit
from xml.sax.saxutils import escape

from .panels import GROUPS, DashboardPanel, PanelRow, Unit, query_for

READY_SECONDS, STOP_SECONDS = 60.0, 20.0
NAMES = ("prometheus", "/usr/bin/prometheus", "/usr/local/bin/prometheus")


class QueriedSeries(NamedTuple):
    """One series: its labels, its points (time, value)."""

    labels: dict[str, str]
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """The API of one that runs."""

    host: str
    port: int

    def query(self, query: str) -> list[QueriedSeries]:
        """What the query says now."""
        rows = self._get("/api/v1/query", query=query)["result"]
        return [QueriedSeries(row["metric"], _points([row["value"]])) for row in rows]

    def query_range(self, query: str, start: float, end: float, step_seconds: float) -> list[QueriedSeries]:
        """What it said over this time."""
        asked = {"query": query, "start": str(start), "end": str(end), "step": str(step_seconds)}
        rows = self._get("/api/v1/query_range", **asked)["result"]
        return [QueriedSeries(row["metric"], _points(row["values"])) for row in rows]

    def alerts(self) -> list[dict[str, Any]]:
        """Alerts that are pending or fire."""
        found: list[dict[str, Any]] = self._get("/api/v1/alerts")["alerts"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        """Every rule, with its health."""
        groups = self._get("/api/v1/rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            return self._fetch("/-/ready")[0] == 200
        except OSError:
            return False

    def _get(self, path: str, **asked: str) -> dict[str, Any]:
        status, body = self._fetch(f"{path}?{urlencode(asked)}" if asked else path)
        answer = json.loads(body)
        if status != 200 or answer["status"] != "success":
            raise ValueError(f"{path} {asked}: {answer.get('error', status)}")
        data: dict[str, Any] = answer["data"]
        return data

    def _fetch(self, path: str) -> tuple[int, bytes]:
        connection = HTTPConnection(self.host, self.port, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def find(program: str | None = None) -> str | None:
    """The binary: the one that is named, or where it usually is; None: there is none."""
    return next(filter(None, map(shutil.which, [program] if program else NAMES)), None)


@contextmanager
def watching(
    folder: Path, targets: Mapping[str, str], *, rules: Sequence[Path] = (), program: str | None = None,
    scrape_seconds: float = 1.0,
) -> Iterator[Prometheus]:  # fmt: skip
    """One that runs, ready to be asked; it is stopped at the end."""
    binary = find(program)
    if binary is None:
        raise FileNotFoundError(f"no program {program or NAMES[0]}: install the Debian package prometheus")
    config = folder / "prometheus.json"  # JSON is YAML
    config.write_text(json.dumps(_config(targets, rules, scrape_seconds)), encoding="utf-8")
    api = Prometheus(host="127.0.0.1", port=_free_port())
    command = [binary, f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
               f"--web.listen-address={api.host}:{api.port}", "--log.level=error"]  # fmt: skip
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    try:
        _wait(api, process, folder)
        yield api
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _config(targets: Mapping[str, str], rules: Sequence[Path], scrape_seconds: float) -> dict[str, Any]:
    every = f"{round(scrape_seconds * 1000)}ms"
    return {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": [str(path.resolve()) for path in rules],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": [urlsplit(url).netloc]}]} for job, url in targets.items()
        ],
    }


def _wait(api: Prometheus, process: subprocess.Popen[bytes], folder: Path) -> None:
    until = time.monotonic() + READY_SECONDS
    while not api.is_ready():
        if process.poll() is not None or time.monotonic() > until:
            said = (folder / "prometheus.log").read_text(encoding="utf-8", errors="replace")[-2_000:]
            raise TimeoutError(f"prometheus does not answer on port {api.port}: {said}")
        time.sleep(0.05)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def _points(rows: Sequence[tuple[float, str]]) -> tuple[tuple[float, float], ...]:
    return tuple((float(at), float(value)) for at, value in rows)


@contextmanager
def showing(what: str, *options: str, stderr: IO[bytes]) -> Iterator[tuple[str, IO[str]]]:
    """A process of `showing` on a free port: where its metrics are, and what it prints after that."""
    command = [sys.executable, "-m", f"{__package__}.showing", what, "prometheus=127.0.0.1:0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, encoding="utf-8") as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process.stdout
        finally:
            process.terminate()


SECONDS, SCRAPE_SECONDS, WINDOW = 60.0, 1.0, "5s"
COLUMNS, WIDTH, PLOT, GAP = 2, 400, 130, 16
LEFT, TOP, LEGEND_ROW, MOST_LINES = 52, 58, 15, 8
ABOUT_LETTERS = 66
COLOURS = 8
STYLE = """
.paper{fill:#fff}.title{fill:#24292f;font:600 13px system-ui,-apple-system,'Segoe UI',sans-serif}
.small{fill:#57606a;font:11px system-ui,-apple-system,'Segoe UI',sans-serif}.grid{stroke:#d8dee4;stroke-width:1}
.row{fill:#24292f;font:600 15px system-ui,-apple-system,'Segoe UI',sans-serif}
.line{fill:none;stroke-width:1.6}.c0{stroke:#0969da}.c1{stroke:#bc4c00}.c2{stroke:#1a7f37}.c3{stroke:#8250df}
.c4{stroke:#cf222e}.c5{stroke:#9a6700}.c6{stroke:#6e7781}.c7{stroke:#bf3989}.dash{stroke-dasharray:5 4}
@media (prefers-color-scheme:dark){.paper{fill:#0d1117}.title,.row{fill:#e6edf3}.small{fill:#9da7b3}
.grid{stroke:#30363d}.c0{stroke:#58a6ff}.c1{stroke:#f0883e}.c2{stroke:#56d364}.c3{stroke:#bc8cff}.c4{stroke:#ff7b72}
.c5{stroke:#e3b341}.c6{stroke:#9da7b3}.c7{stroke:#f778ba}}
"""


class PanelSeries(NamedTuple):
    """One series of a panel."""

    name: str
    points: tuple[tuple[float, float], ...]


PICTURES: Mapping[str, tuple[str, slice]] = {
    "dashboard-builds.svg": ("builds", slice(0, 5)),
    "dashboard-nights.svg": ("nights", slice(5, None)),
}
"""By file: which show, which groups."""


def draw_all(folder: Path, rules: Path) -> Iterator[Path]:
    """Run the shows under a Prometheus with the rules of that folder, and write every picture."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as work, ExitStack() as stack:
        log = stack.enter_context((Path(work) / "shows.log").open("wb"))
        shows = {
            what: stack.enter_context(showing(what, f"--seconds={SECONDS}", "--linger=60", stderr=log))
            for what, _ in PICTURES.values()
        }
        targets = {what: url for what, (url, _) in shows.items()}
        files = [rules / "recording.yml", rules / "alerts.yml"]
        prometheus = stack.enter_context(watching(Path(work), targets, rules=files, scrape_seconds=SCRAPE_SECONDS))
        start, ends = time.time(), {}
        for what, (_, printed) in shows.items():
            if printed.readline().strip() != "shown":
                raise RuntimeError((Path(work) / "shows.log").read_text(encoding="utf-8", errors="replace")[-2_000:])
            ends[what] = time.time()
        time.sleep(2 * SCRAPE_SECONDS)
        for name, (what, groups) in PICTURES.items():
            text = picture(GROUPS[groups], partial(lines, prometheus, job=what, start=start, end=ends[what]))
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
            yield folder / name


def lines(prometheus: Prometheus, panel: DashboardPanel, *, job: str, start: float, end: float) -> list[PanelSeries]:
    """What a panel's queries said over this time."""
    found = []
    for target in panel.targets:
        query = query_for(target, job=job, window=WINDOW)
        for sample in prometheus.query_range(query, start, end, SCRAPE_SECONDS):
            points = tuple((at - start, value) for at, value in sample.points if math.isfinite(value))
            if points:
                found.append(PanelSeries(_legend(target.legend, sample.labels), points))
    return found


def _legend(template: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""), template)


# -- drawing ------------------------------------------------------------------------------------------------------


class _PanelPlot(NamedTuple):
    panel: DashboardPanel
    lines: list[PanelSeries]

    @property
    def height(self) -> int:
        return TOP + PLOT + 24 + LEGEND_ROW * -(-min(len(self.lines), MOST_LINES) // 2) + GAP


def picture(groups: Sequence[PanelRow], lines_of: Callable[[DashboardPanel], list[PanelSeries]]) -> str:
    """The groups' panels, two side by side, as one document."""
    body: list[str] = []
    y = 8
    for group in groups:
        body.append(_text(GAP, y + 18, group.title, "row"))
        y += 24
        for at in range(0, len(group.panels), COLUMNS):
            row = [_PanelPlot(panel, _shown(lines_of(panel))) for panel in group.panels[at : at + COLUMNS]]
            for column, placed in enumerate(row):
                body += _panel(placed, GAP + column * (WIDTH + GAP), y)
            y += max(placed.height for placed in row)
    width = COLUMNS * (WIDTH + GAP) + GAP
    said = "Dashboard: " + "; ".join(panel.title for group in groups for panel in group.panels)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" role="img" aria-label="{escape(said)}">',
        f"<title>{escape(said)}</title>", f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{width}" height="{y}" rx="8"/>', *body, "</svg>",
    ]) + "\n"  # fmt: skip


def _shown(found: list[PanelSeries]) -> list[PanelSeries]:
    """Those that say something; all of them where none does."""
    telling = [line for line in found if any(value for _, value in line.points)] or found
    return sorted(telling, key=lambda line: -max(value for _, value in line.points))[:MOST_LINES]


def _panel(placed: _PanelPlot, x: int, y: int) -> Iterator[str]:
    panel, drawn = placed
    yield _text(x, y + 18, panel.title, "title")
    for at, about in enumerate(wrap(panel.about, ABOUT_LETTERS)[:2]):
        yield _text(x, y + 33 + 14 * at, about, "small")
    top = _round_up(max((value for line in drawn for _, value in line.points), default=1.0))
    end = max((at for line in drawn for at, _ in line.points), default=1.0) or 1.0
    for step in range(5):
        height = y + TOP + PLOT * (1 - step / 4)
        yield f'<line class="grid" x1="{x + LEFT}" x2="{x + WIDTH}" y1="{height:.1f}" y2="{height:.1f}"/>'
        yield _text(x + LEFT - 6, height + 4, _figure(top * step / 4, panel.unit), "small", "end")
    for seconds in range(0, int(end) + 1, 20):
        place = x + LEFT + (WIDTH - LEFT) * seconds / end
        yield _text(place, y + TOP + PLOT + 15, f"{seconds} s", "small", "middle")
    for at, line in enumerate(drawn):
        kind = f"line c{at % COLOURS}" + (" dash" if line.name.startswith("budget") else "")
        points = " ".join(
            f"{x + LEFT + (WIDTH - LEFT) * seconds / end:.1f},{y + TOP + PLOT * (1 - value / top):.1f}"
            for seconds, value in line.points
        )
        yield f'<polyline class="{kind}" points="{points}"/>'
        place, row = x + LEFT + (at % 2) * (WIDTH - LEFT) // 2, y + TOP + PLOT + 31 + LEGEND_ROW * (at // 2)
        yield f'<line class="{kind}" x1="{place}" x2="{place + 14}" y1="{row - 4}" y2="{row - 4}"/>'
        yield _text(place + 19, row, line.name, "small")


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _round_up(value: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten.

    >>> _round_up(1703), _round_up(0.031), _round_up(0)
    (2000.0, 0.05, 1.0)
    """
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value * 0.999)


def _figure(value: float, unit: Unit) -> str:
    """A mark on the axis.

    >>> _figure(0.5, "percentunit"), _figure(0.0125, "s"), _figure(1500, "short")
    ('50 %', '12.5 ms', '1,500')
    """
    if unit == "percentunit":
        return f"{value * 100:g} %"
    if unit == "s":
        return f"{value * 1000:g} ms" if value < 1 else f"{value:g} s"
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"
