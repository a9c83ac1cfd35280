"""A real Prometheus on the loopback that scrapes processes of ours with our rules, for pictures and tests.

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
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import urlencode, urlsplit

READY_SECONDS, STOP_SECONDS = 60.0, 20.0
NAMES = ("prometheus", "/usr/bin/prometheus", "/usr/local/bin/prometheus")


class Sample(NamedTuple):
    """One series: its labels, its points (time, value)."""

    labels: dict[str, str]
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """The API of one that runs."""

    host: str
    port: int

    def query(self, query: str) -> list[Sample]:
        """What the query says now."""
        rows = self._get("/api/v1/query", query=query)["result"]
        return [Sample(row["metric"], _points([row["value"]])) for row in rows]

    def query_range(self, query: str, start: float, end: float, step_seconds: float) -> list[Sample]:
        """What it said over this time."""
        asked = {"query": query, "start": str(start), "end": str(end), "step": str(step_seconds)}
        rows = self._get("/api/v1/query_range", **asked)["result"]
        return [Sample(row["metric"], _points(row["values"])) for row in rows]

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
