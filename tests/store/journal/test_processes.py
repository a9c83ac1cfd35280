"""Several processes on one journal, and processes that are killed: nothing acknowledged is lost or twice there.

`CTXSTEWARD_SOAK=1` kills 300 writers instead of 20.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ctxsteward.store.journal.port import DrainMark, SessionKey
from ctxsteward.store.journal.sqlite import FileJournal

from ...examples import SOAK
from ..processes import run_together
from .journals import KILLER, WRITERS

KILLS = 300 if SOAK else 20
REOPEN_SECONDS = 2.0
PROCESSES = 8

WRITER = """
import json, sys
from pathlib import Path
from ctxsteward.store.journal.sqlite import FileJournal
from ctxsteward.store.journal.port import JournalRecord, SessionKey
from ctxsteward.schemas.errors import Conflict

root, name, session, count = sys.argv[1:]
journal, key, landed = FileJournal(Path(root), drains=True), SessionKey("t", session), []
print("ready", flush=True)
sys.stdin.readline()
for n in range(int(count)):
    while True:
        position = journal.length(key)
        try:
            journal.append(key, position, [JournalRecord("note", "{}", id=f"{name}-{n}")])
            break
        except Conflict:
            continue
    landed.append(position)
    journal.see("highest", position)
journal.close()
print(json.dumps(landed))
"""


@pytest.mark.parametrize(
    ("sessions", "count"),
    [
        pytest.param(["s"] * PROCESSES, 15, id="one session"),
        pytest.param([f"s{n}" for n in range(PROCESSES)], 30, id="a session each"),
    ],
)
def test_processes_get_gap_free_positions_and_each_id_once(tmp_path: Path, sessions: list[str], count: int) -> None:
    arguments = [(tmp_path, f"w{n}", session, count) for n, session in enumerate(sessions)]
    landed = [json.loads(line) for line in run_together(WRITER, arguments)]
    journal = FileJournal(tmp_path, drains=True)
    for session in set(sessions):
        key = SessionKey("t", session)
        writers = [n for n, name in enumerate(sessions) if name == session]
        ids = [record.id for record in journal.read(key, 0)]
        assert len(ids) == len(set(ids)) == journal.length(key) == count * len(writers)
        assert sorted(position for n in writers for position in landed[n]) == list(range(len(ids)))
        for n in writers:
            assert [ids[position] for position in landed[n]] == [f"w{n}-{i}" for i in range(count)]
    assert journal.seen("highest") == max(max(positions) for positions in landed)
    assert journal.waiting_bytes() == 2 * count * PROCESSES
    assert sum(waiting.length for waiting in journal.waiting()) == count * PROCESSES
    journal.close()


OPENED = """
from pathlib import Path
from ctxsteward.store.journal.sqlite import FileJournal

def opened():
    return FileJournal(Path(sys.argv[1]), drains=True)
"""


def check_after_a_kill(root: Path, acknowledged: list[tuple[str, int]]) -> None:
    start = time.monotonic()
    journal = FileJournal(root, drains=True)
    length = journal.length(SessionKey("t", "s"))
    seconds = time.monotonic() - start
    assert seconds <= REOPEN_SECONDS, f"reopened {length} records in {seconds:.2f} s"
    present: dict[str | None, int] = {}
    for session in ("s", "t", "u"):
        key = SessionKey("t", session)
        ids = [record.id for record in journal.read(key, 0)]
        assert len(ids) == len(set(ids)) == journal.length(key)
        assert [f"{id}+" for id in ids[::2]] == ids[1::2]
        present |= {id: position for position, id in enumerate(ids)}
    assert {id: present.get(id) for id, _ in acknowledged} == dict(acknowledged)
    waiting = {found.key.session: (found.length, found.drained) for found in journal.waiting()}
    assert waiting == {
        session: (journal.length(SessionKey("t", session)), DrainMark())
        for session in ("s", "t", "u")
        if journal.length(SessionKey("t", session))
    }
    journal.close()


def test_a_killed_writer_loses_nothing_that_it_had_acknowledged(tmp_path: Path) -> None:
    acknowledged: list[tuple[str, int]] = []
    with subprocess.Popen(
        [sys.executable, "-c", WRITERS + OPENED + KILLER, str(tmp_path), "0.12"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as killer:
        assert killer.stdin is not None
        assert killer.stdout is not None
        for run in range(KILLS):
            killer.stdin.write(f"{run}\n")
            killer.stdin.flush()
            for line in iter(killer.stdout.readline, "killed\n"):
                assert line, "the killer is gone"
                id, position = line.split()
                acknowledged.append((id, int(position)))
            check_after_a_kill(tmp_path, acknowledged)
        killer.stdin.close()
    assert killer.returncode == 0
    assert len(acknowledged) > KILLS
