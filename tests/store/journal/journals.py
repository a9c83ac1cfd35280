"""Journals, records and workers that the tests of this folder share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ctxsteward.schemas.errors import Conflict
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.port import Journal, JournalRecord, SessionKey
from ctxsteward.store.journal.postgres import PostgresJournal
from ctxsteward.store.journal.sqlite import FileJournal
from ctxsteward.store.postgres_database import PostgresDatabase, PostgresUri

from ...postgres import PostgresServer

KEY = SessionKey("acme", "s")
OTHER = SessionKey("acme", "t")
FOREIGN = SessionKey("globex", "s")

JOURNALS: dict[str, Callable[[Path], Journal]] = {
    "memory": lambda root: MemoryJournal(),
    "file": lambda root: FileJournal(root),
    "memory, drains": lambda root: MemoryJournal(drains=True),
    "file, drains": lambda root: FileJournal(root, drains=True),
    "postgres": lambda root: postgres_journal(root),
}
_server: list[PostgresServer] = []


def serve(request: pytest.FixtureRequest, kind: str) -> None:
    """Have the server that this kind of journal needs; skips where there is none."""
    if kind == "postgres":
        _server[:] = [request.getfixturevalue("shared_postgres")]


def postgres_journal(root: Path) -> PostgresJournal:
    """One in a schema that is named after a folder: opened again, it is the same."""
    schema = "j" + hashlib.sha256(str(root).encode()).hexdigest()[:16]
    return PostgresJournal(PostgresDatabase(PostgresUri.parse(_server[0].uri(schema))))


def note(text: str) -> JournalRecord:
    return JournalRecord("note", json.dumps({"text": text}, ensure_ascii=False), mac=f"mac of {text}")


def message(ordinal: int, text: str = "hello", *, id: str | None = None, outputs: int = 0) -> JournalRecord:
    return JournalRecord("message", '{"address":""}', ordinal, outputs, id, json.dumps({"content": text}), mac="m" * 64)


def compaction(address: str) -> JournalRecord:
    return JournalRecord("compaction", json.dumps({"report": {"id": address}}))


def append_at_end(journal: Journal, key: SessionKey, record: JournalRecord) -> int:
    """Append behind whatever others append; the position it got."""
    while True:
        position = journal.length(key)
        try:
            journal.append(key, position, [record])
            return position
        except Conflict:
            continue


def in_threads(workers: Iterable[Callable[[], object]]) -> list[object]:
    """Run all at once, each in a thread of its own; the first error is raised."""
    calls = list(workers)
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(timeout=120) for future in [pool.submit(call) for call in calls]]


WRITERS = """
import os, random, signal, sys, threading, time
from ctxsteward.store.journal.port import JournalRecord, SessionKey
from ctxsteward.schemas.errors import Conflict

def write(journal, run):
    def worker(name, session):
        key, n = SessionKey("t", session), 0
        while True:
            id, position = f"{session}:{run}:{name}:{n}", journal.length(key)
            pair = [JournalRecord("note", "x" * (n * 97 % 3000), id=id), JournalRecord("note", "{}", id=id + "+")]
            try:
                journal.append(key, position, pair)
            except Conflict:
                continue
            if n % 5 == 0:
                journal.put_manifest(key, id, "{}")
            os.write(1, f"{id} {position}\\n".encode())
            n += 1
    for name, session in (("a", "s"), ("b", "s"), ("c", "t")):
        threading.Thread(target=worker, args=(name, session)).start()
    worker("d", "u")
"""
"""Four threads append pairs of records, two of them to one session, and print an id when its pair is acknowledged."""
KILLER = """
moments = random.Random(7)
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        write(opened(), line.strip())
    time.sleep(moments.uniform(0.0, float(sys.argv[2])))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    print("killed", flush=True)
"""
"""Forks a writer for each line it reads, kills it within so many seconds (its second argument), and says so."""
