"""A writer that is killed with SIGKILL at random moments, over and over: nothing torn, nothing lost, nothing twice.

The writer appends messages with ids, builds (which select and compact) behind each message of the user, and commits
versions of a profile; with a journal outside the store its own thread drains meanwhile. It tells over a pipe what it
was acknowledged. Every other kill falls into a build that has begun, the rest anywhere. After each kill the store is
opened and what was acknowledged is looked for; the next writer goes on with the first message and version that were
not.

``CTXSTEWARD_SOAK=1``: 1,000 kills, else 26. SIGKILL does not test fsync: the page cache survives it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from ctxsteward.envelope import Store
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.objects.file import FileObjects

from ...examples import SOAK
from .forkserver import ForkServer, fork_server
from .invariants import RECOVERY_SECONDS, Told, collected
from .places import TENANT
from .scenarios import builder, text_of
from .writer import governed, open_place, session_of

KILLS = {"file": 400 if SOAK else 10, "drained": 600 if SOAK else 16}
SHORTEST_SECONDS, LONGEST_SECONDS = 0.01, 0.35
"""Opening takes a tenth of that; many writers are killed in it."""
BUILD_SECONDS = 0.012
"""About as long as a build takes."""
MOST_BUILDS = 8


@pytest.fixture(scope="module")
def forks() -> Iterator[ForkServer]:
    with fork_server() as server:
        yield server


@dataclass
class Acknowledged:
    """What all writers so far were told."""

    messages: dict[str, int] = field(default_factory=dict)
    """Ordinal by id, in order."""
    envelopes: dict[str, str] = field(default_factory=dict)
    """Session by address."""
    version: int = 0
    writers: int = 0
    """That were told anything at all."""
    cut_builds: int = 0
    """Builds that had begun and were not acknowledged: the process was killed in them."""

    def take(self, told: Told) -> None:
        self.writers += bool(told)
        self.cut_builds += bool(told) and told[-1] == ["building"]
        for kind, *what in told:
            match kind:
                case "append":
                    _, name, id, ordinal = what
                    assert name == session_of(len(self.messages))
                    assert id == f"m{len(self.messages)}"
                    self.messages[id] = ordinal
                case "build":
                    self.envelopes[what[2]] = what[1]
                case "version":
                    assert what == [self.version + 1]
                    self.version += 1


@pytest.mark.parametrize("kind", ["file", "drained"])
def test_a_writer_that_is_killed_at_any_moment_loses_and_tears_and_doubles_nothing(
    tmp_path: Path, kind: str, forks: ForkServer
) -> None:
    random, so_far, slowest = Random(f"kill {kind}"), Acknowledged(), 0.0
    for number in range(KILLS[kind]):
        given = {"message": len(so_far.messages), "version": so_far.version + 1}
        when: dict[str, float] = {"kill_seconds": random.uniform(SHORTEST_SECONDS, LONGEST_SECONDS)}
        if number % 2:
            when = {"kill_seconds": random.uniform(0, BUILD_SECONDS), "kill_build": random.randint(1, MOST_BUILDS)}
        ran = forks.run("writer", (kind, str(tmp_path), ""), given=given, **when)
        assert ran.status == -9, ran.error
        so_far.take(ran.told)
        slowest = max(slowest, recovered(tmp_path, kind, so_far))
    with opened(tmp_path, kind) as store:
        assert store.flush(60)
        everything(store, so_far)
        if kind == "drained":
            drained(store)
        collected(store)
        everything(store, so_far)
        decided = decisions(store)
    assert len(so_far.messages) > KILLS[kind]
    assert so_far.writers > KILLS[kind] / 4
    assert so_far.cut_builds > KILLS[kind] / 10
    assert min(decided.values()) > KILLS[kind] / 4
    print(
        f"\n{kind}: {KILLS[kind]} kills, {so_far.cut_builds} of them in a build; {len(so_far.messages)} messages, "
        f"{len(so_far.envelopes)} envelopes, {decided['compaction']} compactions, {decided['selection']} selections, "
        f"{so_far.version} versions, recovery in at most {slowest:.3f} s"
    )


def decisions(store: Store) -> dict[str, int]:
    """What builds have written into the logs, by kind."""
    keys = [SessionKey(TENANT, name) for name in store.journal.sessions(TENANT)]
    kinds = [record.kind for key in keys for record in store.journal.read(key, 0)]
    return {kind: kinds.count(kind) for kind in ("compaction", "selection")}


@contextmanager
def opened(root: Path, kind: str) -> Iterator[Store]:
    store = open_place(root, kind)
    try:
        yield store
    finally:
        store.close(flush_seconds=0)


def recovered(root: Path, kind: str, so_far: Acknowledged) -> float:
    """Open after a kill and look at what was written last; how long opening and loading took, in seconds."""
    started = time.perf_counter()
    with opened(root, kind) as store:
        names = store.journal.sessions(TENANT)
        newest = store.at(TENANT, names[-1]) if names else None
        head = store.profiles("support", tenant=TENANT).head()
        seconds = time.perf_counter() - started
        assert seconds < RECOVERY_SECONDS
        assert so_far.version <= (head.number if head else 0) <= so_far.version + 1
        if head:
            assert (head.profile.policies, head.profile.meta) == (
                governed(head.number).policies,
                governed(head.number).meta,
            )
        for name in {session_of(max(0, len(so_far.messages) - 1)), session_of(len(so_far.messages))} & set(names):
            holds(store, name, so_far)
        if newest is not None:
            builder().preview(newest, "and now?")
    return seconds


def holds(store: Store, name: str, so_far: Acknowledged) -> int:
    """The session's acknowledged messages, each once and in order, and at most one more; how many there are."""
    session = store.at(TENANT, name)
    entries = session.entries()
    first = next((n for n in range(len(so_far.messages) + 1) if session_of(n) == name), 0)
    assert [entry.ordinal for entry in entries] == list(range(1, len(session) + 1))
    assert [entry.event.id for entry in entries] == [f"m{first + n}" for n in range(len(entries))]
    for entry in entries:
        assert entry.event.id is not None
        assert session.resolve(entry.ordinal).text == text_of(entry.event.id)
        assert so_far.messages.get(entry.event.id, entry.ordinal) == entry.ordinal
    acknowledged = sum(session_of(int(id[1:])) == name for id in so_far.messages)
    assert acknowledged <= len(entries) <= acknowledged + 1
    for report in session.reports():
        for bullet in report.bullets:
            for ref in bullet.citations:
                session.resolve(ref)
    return len(entries)


def everything(store: Store, so_far: Acknowledged) -> None:
    """All of it, from the first writer on."""
    names = store.journal.sessions(TENANT)
    assert len(names) == len({session_of(n) for n in range(len(so_far.messages) + 1)} & set(names)), (
        "a fork, or another"
    )
    assert len(so_far.messages) <= sum(holds(store, name, so_far) for name in names) <= len(so_far.messages) + 1
    for address, name in so_far.envelopes.items():
        position = store.manifest(address, tenant=TENANT)["position"]
        assert builder().rebuild(store.at(TENANT, name, position)).address == address
    versions = list(store.profiles("support", tenant=TENANT).history())
    assert [version.profile.policies for version in versions] == [
        governed(number).policies for number in range(1, len(versions) + 1)
    ]
    assert [version.commit_id for version in versions] == [f"{version.number:032x}" for version in versions]
    assert so_far.version <= len(versions) <= so_far.version + 1
    found = fsck(store, read_data=True)
    assert found.damage == ()


def drained(store: Store) -> None:
    """A machine that has never seen anything reads the same out of the objects."""
    assert isinstance(store.objects, FileObjects)
    with Store(MemoryJournal(drains=True), store.objects, store.keys, uri="test:", write_behind=True) as fresh:
        assert fresh.write_behind is not None
        fresh.write_behind.all_readable(TENANT)
        for name in store.journal.sessions(TENANT):
            key = SessionKey(TENANT, name)
            assert fresh.journal.read(key, 0) == store.journal.read(key, 0)
            assert sorted(fresh.journal.manifests(key)) == sorted(store.journal.manifests(key))
