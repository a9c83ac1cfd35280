"""Machines for tests: stores with a journal of their own over one object store, and what all of them hold together.

world = World()
a, b = world.machine("a"), world.machine("b")      # no threads: a.write_behind.drainer.run_once()
world.settle()                                     # every network is well, everybody drains until nothing waits
world.said()                                       # text → sessions in whose own part of the log it stands
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

from ctxsteward.envelope.store import Store
from ctxsteward.evals.suites.kit.faulty_objects import PASS, FaultyObjects, Method, Plan, SimulatedClock, StoreFault
from ctxsteward.store.crypto.keyring import MasterKeys
from ctxsteward.store.journal.events import MessageAppended, from_record
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.port import Journal, SessionKey
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.objects.port import Patience
from ctxsteward.store.replication.breaker import Timing
from ctxsteward.store.replication.write_behind import WriteBehind

KEYS = MasterKeys(b"m" * 32)
TENANT = "default"


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


class Network:
    """A plan that can be cut: then nothing arrives and nothing is answered."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.up = plan, True

    def __call__(self, method: Method, key: str) -> StoreFault:
        if not self.up:
            return StoreFault("dropped" if method == "put" else "error_before")
        return self.plan(method, key)


class World:
    """Machines over one object store."""

    def __init__(self) -> None:
        self.objects = MemoryObjects()
        self.clock = SimulatedClock()
        self.journals: dict[str, Journal] = {}
        self.networks: dict[str, Network] = {}
        self.wires: dict[str, FaultyObjects] = {}
        self._nonces = itertools.count(100_000_000)

    def machine(self, name: str, plan: Plan = lambda method, key: PASS, **timing: Any) -> Store:
        """The machine with this name: its journal survives when it is made anew, as after a crash."""
        journal = self.journals.setdefault(name, MemoryJournal(drains=True, draw_id=lambda: f"{name}" * 8))
        if name not in self.wires:
            self.networks[name] = Network(plan)
            self.wires[name] = FaultyObjects(self.objects, self.networks[name], pause=self.clock.sleep)
        return self.over(journal, self.wires[name], **timing)

    def over(self, journal: Journal, objects: Any, **timing: Any) -> Store:
        def patience(total_seconds: float) -> Patience:
            return Patience(total_seconds=total_seconds, clock=self.clock, sleep=self.clock.sleep, jitter=lambda: 0.5)

        return Store(
            journal,
            objects,
            KEYS,
            uri="memory:",
            write_behind=True,
            patience=patience(6.0),
            draw_nonce=lambda: str(next(self._nonces)),
            behind={
                "background": False,
                "patience": patience(1.0),
                "timing": Timing(clock=self.clock, jitter=lambda: 0.5),
            }
            | timing,
        )

    def cut(self, name: str, *, up: bool = False) -> None:
        self.networks[name].up = up

    def settle(self) -> None:
        """All networks are well; everybody drains, and reads what the others have drained."""
        for name, wire in self.wires.items():
            wire.settle()
            self.networks[name].up, self.networks[name].plan = True, lambda method, key: PASS
        for _ in range(20):
            for name in self.journals:
                store = self.machine(name)
                self.clock.seconds += 60
                drain(store)
            if not any(journal.waiting(1) for journal in self.journals.values()):
                break
        for name, journal in self.journals.items():
            assert not journal.waiting(), (name, journal.waiting())
            _behind(self.machine(name)).all_readable(TENANT)

    def fresh(self) -> Store:
        """A machine that has never seen anything, with everything read in."""
        store = self.over(MemoryJournal(drains=True), self.objects)
        _behind(store).all_readable(TENANT)
        return store

    def said(self) -> dict[str, list[str]]:
        """Texts of all messages: in whose logs they stand. Shared parts of forks count once."""
        return said(self.fresh())

    def check(self, acknowledged: dict[str, str]) -> None:
        """Every machine holds the same logs, and every acknowledged text (text → session) stands in one place."""
        self.settle()
        fresh = self.fresh()
        sessions = fresh.journal.sessions(TENANT)
        for name, journal in self.journals.items():
            assert journal.sessions(TENANT) == sessions, name
            for session in sessions:
                key = SessionKey(TENANT, session)
                assert journal.read(key, 0) == fresh.journal.read(key, 0), (name, session)
        found = said(fresh)
        for text, session in acknowledged.items():
            places = found.pop(text, [])
            assert len(places) == 1, (text, places)
            assert places[0] == session or places[0].startswith(f"{session}-fork-"), (text, places)
        for session in sessions:
            store = fresh.at(TENANT, session)
            assert [entry.ordinal for entry in store.entries()] == list(range(1, len(store) + 1))


def drain(store: Store, *, hurry: bool = True) -> None:
    assert store.write_behind is not None
    store.write_behind.drainer.hurry = hurry
    store.write_behind.drainer.run_once()


def said(store: Store) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for session in store.journal.sessions(TENANT):
        for record in store.journal.read(SessionKey(TENANT, session), 0):
            event = from_record(record) if record.kind == "message" else None
            if isinstance(event, MessageAppended):
                found[store.at(TENANT, session).resolve(event.ordinal).text].append(session)
    return found


def _behind(store: Store) -> WriteBehind:
    assert store.write_behind is not None
    return store.write_behind
