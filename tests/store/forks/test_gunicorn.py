"""`gunicorn --preload`, four workers: one store, opened before they are forked, and no acknowledged turn is lost.

300 turns with CTXSTEWARD_SOAK=1, else 80.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

from ctxsteward.envelope import open_store
from ctxsteward.store.maintenance.fsck import fsck

from ...examples import SOAK

ROOT = Path(__file__).resolve().parents[3]
WORKERS = 4
TURNS, TURNS_OF_A_WORKER = (300, 40) if SOAK else (80, 8)
MOST_TURNS = 5 * TURNS
SESSIONS = 10
START_SECONDS = 60.0
_LISTENS = re.compile(rb"Listening at: http://127\.0\.0\.1:(\d+)")


@contextmanager
def served(folder: Path) -> Iterator[int]:
    """The port of a running service; it is ended by its process id, and waits for its workers."""
    log = folder / "log"
    application = f"tests.store.forks.service:made({str(folder)!r})"
    options = (
        f"--preload --workers {WORKERS} --threads 2 --max-requests {TURNS_OF_A_WORKER} --bind 127.0.0.1:0 "
        "--no-control-socket"
    )
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [sys.executable, "-m", "gunicorn", *options.split(), application],
            cwd=ROOT,
            stdout=output,
            stderr=output,
            env={**os.environ, "GUNICORN_CMD_ARGS": ""},
        ) as server,
    ):
        try:
            until = time.monotonic() + START_SECONDS
            while (found := _LISTENS.search(log.read_bytes())) is None:
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                time.sleep(0.02)
            yield int(found[1])
        finally:
            server.terminate()
            try:
                server.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                raise


def post(port: int, number: int) -> tuple[str, int]:
    """One turn; its id and the process that acknowledged it."""
    turn = {"session": f"s{number % SESSIONS}", "id": f"turn-{number}", "text": f"What about order {number}?"}
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/", json.dumps(turn))
        answer = connection.getresponse()
        said = answer.read()
        assert answer.status == 200, said
        return turn["id"], json.loads(said)["process"]
    finally:
        connection.close()


def test_every_turn_that_a_preloaded_gunicorn_acknowledged_is_there_afterwards(tmp_path: Path) -> None:
    with served(tmp_path) as port, ThreadPoolExecutor(16) as clients:
        told = list(clients.map(lambda number: post(port, number), range(TURNS)))
        while len({process for _, process in told}) <= WORKERS and len(told) < MOST_TURNS:
            told.append(post(port, len(told)))  # a busy machine is slow to replace a worker
    with open_store(f"file:{tmp_path}/store", journal=tmp_path / "journal") as store:
        entries = [entry for name in store.sessions() for entry in store.session(name).entries()]
        ids = sorted(entry.event.id for entry in entries if entry.event.id is not None)
        drained, result = store.flush(30), fsck(store, read_data=True)
    expected = [id for turn, _ in told for id in (turn, f"{turn}+")]
    assert ids == sorted(expected)
    assert len({process for _, process in told}) > WORKERS  # some were replaced by later forks
    assert (drained, result.damage) == (True, ())
