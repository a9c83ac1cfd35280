"""Forgetting that was cut off anywhere, or whose store went away, is finished by repeating it.

With CTXSTEWARD_SOAK=1 each crash is finished in both ways, and processes are killed at more of their steps.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import Store, open_store
from ctxsteward.schemas import Erased, StoreUnavailable
from ctxsteward.schemas.errors import OutcomeUnknown
from ctxsteward.store.crypto.keyring import Keys, memory_keys
from ctxsteward.store.erasure.forget import apply_tombstones, forget
from ctxsteward.store.erasure.receipt import receipt_key, verified_receipt
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.objects.port import Patience, PutOutcome

from ...examples import SOAK
from ..doubles import HookedObjects, copied, copied_journal
from .scenes import ANN, BOB, CHARS, NOTE, OWN, TOLD, builder, contents_of, fill, hits

SESSION = {"session": "s-1"}
PRINCIPAL = {"principal": "ann"}
WRITES = frozenset(("put", "delete", "forget", "rewrite", "truncate", "drop_manifests", "put_manifest", "scrub", "see"))


class Crash(BaseException):
    """The process is gone: nothing may catch this."""


class Tripwire:
    """Lets writes through to whatever it stands before, and crashes instead of the one with this number."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.made: list[str] = []

    def before(self, target: Any) -> Any:
        wire = self

        class Guarded:
            def __getattr__(self, name: str) -> Any:
                found = getattr(target, name)
                return wire.step(name, found) if name in WRITES else found

        return Guarded()

    def step(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                raise Crash(name)
            self.made.append(name)
            return act(*given, **named)

        return call


def rows_of(store: Store) -> dict[str, bytes]:
    found = {}
    for session in store.journal.sessions("acme"):
        key = SessionKey("acme", session)
        text = repr(store.journal.read(key, 0)) + repr(store.journal.manifests(key))
        found[session] = text.encode()
    return found


def readable(store: Store, words: tuple[str, ...]) -> list[str]:
    """Words that are left in rows or objects."""
    return sorted(hits({**rows_of(store), **contents_of(store)}, words))


def finished(store: Store, what: dict[str, str]) -> None:
    """Everything that the erasure has to leave behind."""
    if what == SESSION:
        assert store.journal.sessions("acme") == ["s-2", "s-3"]
        for name in ("s-1", "s-1-child", "s-1-grandchild"):
            with pytest.raises(Erased):
                store.session(name, tenant="acme")
        assert readable(store, NOTE) == []
    else:
        assert readable(store, (*ANN, *NOTE)) == []
        assert set(readable(store, (*BOB, *OWN))) == {*BOB, *OWN}
        with pytest.raises(Erased):
            store.session("s-2", tenant="acme", counter=CHARS).append({"role": "user", "content": "x"}, principal="ann")
    assert fsck(store, tenant="acme", read_data=True).damage == ()
    for name in store.journal.sessions("acme"):
        builder().build(store.session(name, tenant="acme", counter=CHARS))


Filled = tuple[MemoryJournal, MemoryObjects, Keys]


@pytest.fixture(scope="module")
def filled() -> Filled:
    journal, objects, keys = MemoryJournal(), MemoryObjects(), memory_keys()
    fill(Store(journal, objects, keys, uri="memory:"), turns=2)
    return journal, objects, keys


@pytest.mark.parametrize("tombstones", [False, True], ids=["forgetting again", "applying tombstones first"])
@pytest.mark.parametrize("what", [SESSION, PRINCIPAL], ids=["session", "principal"])
def test_a_crash_at_any_step_is_finished_by_repeating(filled: Filled, what: dict[str, str], tombstones: bool) -> None:
    """Before each write: what a crash behind one leaves is the same as before the next. The receipt of the repeat has
    the counts of an erasure that nothing interrupted."""
    whole = forget(
        Store(copied_journal(filled[0]), copied(filled[1]), filled[2], uri="memory:"), tenant="acme", **what, **TOLD
    )
    assert {place.place for place in whole.places if place.before} >= {"messages", "notes", "selections of recall"}
    for steps in count(1):
        journal, objects, keys = copied_journal(filled[0]), copied(filled[1]), filled[2]
        wire = Tripwire(steps)
        try:
            work = Store(wire.before(journal), wire.before(objects), keys, uri="memory:")
            forget(work, tenant="acme", **what, **TOLD)
        except Crash:
            if SOAK or steps % 2 == tombstones:
                again = Store(journal, objects, keys, uri="memory:")
                if tombstones:  # what a machine does that finds them: enough once one is there
                    apply_tombstones(again, "acme")
                done = forget(again, tenant="acme", **what, who="x", when="y", why="z")
                finished(again, what)
                assert verified_receipt(done.receipt.encode(), receipt_key(keys, "acme")).places == whole.places
                assert done.remains[1:] == whole.remains[1:]  # the first depends on `when`
        else:
            break
    finished(Store(journal, objects, keys, uri="memory:"), what)
    assert steps > 21, wire.made


KILLED = """
import os, sys
from ctxsteward.envelope import open_store
from ctxsteward.store.erasure.forget import forget
left = int(sys.argv[2])
def count(target, name):
    act = getattr(target, name)
    def call(*given, **named):
        global left
        left -= 1
        if left == 0:
            os._exit(137)
        return act(*given, **named)
    setattr(target, name, call)
with open_store("file:" + sys.argv[1]) as store:
    for name in ("forget", "rewrite", "truncate", "drop_manifests", "scrub"):
        count(store.journal, name)
    for name in ("put", "delete"):
        count(store.objects, name)
    forget(store, tenant="acme", session="s-1", who="dpo", when="2026", why="r")
    forget(store, tenant="acme", principal="ann", who="dpo", when="2026", why="r")
"""


@pytest.mark.parametrize("steps", [9, 22, *([2, 16, 25] if SOAK else [])])
def test_a_killed_process_leaves_a_store_that_the_next_one_finishes_to_the_last_byte(
    tmp_path: Path, steps: int
) -> None:
    root = tmp_path / "store"
    with open_store(f"file:{root}") as store:
        fill(store, turns=2)
        forget(store, tenant="other", session="s-1", **TOLD)
    script = [sys.executable, "-c", KILLED, str(root), str(steps)]
    assert subprocess.run(script, check=False, timeout=60).returncode == 137
    with open_store(f"file:{root}") as store:
        assert hits(contents_of(store, root), ANN)
        for what in (SESSION, PRINCIPAL):
            forget(store, tenant="acme", **what, **TOLD)
        assert hits(contents_of(store, root), (*ANN, *NOTE)) == {}  # while the journal is open, its log included
    assert hits(contents_of(store, root), (*ANN, *NOTE)) == {}


class Dead(HookedObjects):
    """Answers nothing while it is down."""

    down = False

    def ask(self, method: str, key: str) -> None:
        if self.down:
            raise StoreUnavailable("no answer")

    def put(self, key: str, body: bytes) -> PutOutcome:
        return "unknown" if self.down else super().put(key, body)


@pytest.mark.parametrize("what", [SESSION, PRINCIPAL], ids=["session", "principal"])
def test_forgetting_with_the_object_store_away_says_so_and_changes_nothing(what: dict[str, str]) -> None:
    journal, objects, keys = MemoryJournal(), Dead(), memory_keys()
    patience = Patience(total_seconds=0.0, sleep=lambda seconds: None)
    store = Store(journal, objects, keys, uri="memory:", patience=patience)
    fill(store, turns=2)
    before, tombstones = rows_of(store), list(store.vault("acme").erased())
    objects.down = True
    with pytest.raises((StoreUnavailable, OutcomeUnknown)) as caught:
        forget(store, tenant="acme", **what, **TOLD)
    assert "\n" not in str(caught.value)
    objects.down = False
    assert rows_of(store) == before
    assert journal.forgotten("acme") == []
    assert list(store.vault("acme").erased()) == tombstones
    builder().build(store.session("s-1", tenant="acme", counter=CHARS))
    forget(store, tenant="acme", **what, **TOLD)
    finished(store, what)


def test_writers_that_are_at_it_while_a_principal_is_forgotten_leave_nothing_of_hers(filled: Filled) -> None:
    """Another process that knew of nothing writes for her between any two steps of the erasure."""
    for steps in range(1, 60):
        journal, objects, keys = copied_journal(filled[0]), copied(filled[1]), filled[2]
        store = Store(journal, objects, keys, uri="memory:")
        writer = Store(journal, objects, keys, uri="memory:").session("s-2", tenant="acme", counter=CHARS)
        made = builder(dynamic_tokens=900)

        def meddle(writer: Any = writer, made: Any = made) -> None:
            for text in (f"{ANN[0]} late", "x " * 200):
                writer.append({"role": "user", "content": text}, principal="ann")
                made.build(writer)

        wire = Meddling(steps, meddle)
        work = Store(wire.before(journal), wire.before(objects), keys, uri="memory:")
        forget(work, tenant="acme", principal="ann", **TOLD)
        assert readable(store, (*ANN, *NOTE)) == [], (steps, wire.made[-3:])
        if wire.left > 0:
            return
    raise AssertionError("the erasure has more steps than were tried")


class Meddling(Tripwire):
    """Calls somebody after so many writes, and goes on."""

    def __init__(self, steps: int, act: Callable[[], None]) -> None:
        super().__init__(steps)
        self._act = act

    def step(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            done = act(*given, **named)
            self.made.append(name)
            self.left -= 1
            if self.left == 0:
                try:
                    self._act()
                except Erased:
                    self.made.append("refused")
            return done

        return call
