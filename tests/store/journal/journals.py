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
