"""Listings that leave things out: nothing that is in use is deleted on their word, by machines old and new."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from ctxsteward.envelope.store import Store
from ctxsteward.schemas import StoreError, StoreUnavailable
from ctxsteward.store.crypto.keyring import MasterKeys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.sqlite import FileJournal
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.maintenance.gc import gc
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.objects.port import ObjectInfo

from ..doubles import LyingObjects, copied
from .furnished import commit

KEYS = MasterKeys(b"k" * 32)
TOLD = {"who": "ops", "why": "test", "when": "2026-11-22"}
LONG_AFTER = 1e12
Hides = Callable[[str], bool]

HIDING: dict[str, Hides] = {
    "everything but content": lambda key: not key.startswith("blobs/"),
    "all profiles": lambda key: key.startswith("profiles/"),
    "all snapshots and nights": lambda key: key.startswith(("snapshots/", "steward/")),
    "all facts": lambda key: key.startswith("facts/"),
    "the newest versions": lambda key: "/versions/" in key and not key.endswith("1.json"),
    "the first version": lambda key: key.endswith("/versions/000000000001.json"),
    "every second link": lambda key: not key.startswith("blobs/") and hash_of(key) % 2 == 0,
}


def hash_of(key: str) -> int:
    return sum(key.encode())


@pytest.fixture(scope="module")
def original() -> MemoryObjects:
    """Three versions with records; everything is in use."""
    objects = MemoryObjects()
    with Store(MemoryJournal(), objects, KEYS, uri="memory:") as store:
        commit(store, 100, 150, 200)
    return objects


@pytest.fixture
def objects(original: MemoryObjects) -> MemoryObjects:
    return copied(original)


def keys_of(objects: MemoryObjects) -> set[str]:
    return {info.key for info in MemoryObjects.list(objects, "")}


@pytest.mark.parametrize("hides", HIDING.values(), ids=HIDING)
@pytest.mark.parametrize("tenant", ["acme", None], ids=["a tenant", "all"])
def test_what_is_in_use_survives_whatever_a_listing_leaves_out(
    objects: MemoryObjects, hides: Hides, tenant: str | None
) -> None:
    before = keys_of(objects)

    with suppress(StoreError):  # it may say so, or find everything by other ways
        gc(Store(MemoryJournal(), LyingObjects(objects, hides), KEYS, uri="x"), now=LONG_AFTER, tenant=tenant)

    assert keys_of(objects) == before


@pytest.mark.parametrize("first", range(1, 12))
def test_a_listing_that_lies_from_some_moment_on_costs_nothing(objects: MemoryObjects, first: int) -> None:
    before = keys_of(objects)
    lying = LyingObjects(objects, HIDING["everything but content"], from_listing=first)

    with suppress(StoreError):
        gc(Store(MemoryJournal(), lying, KEYS, uri="x"), now=LONG_AFTER, tenant="acme")

    assert keys_of(objects) == before


def test_a_machine_that_has_seen_a_chain_says_which_one_the_listing_leaves_out(objects: MemoryObjects) -> None:
    journal = MemoryJournal()
    assert Store(journal, objects, KEYS, uri="x").profiles("support", tenant="acme").newest().number == 3
    lying = Store(journal, LyingObjects(objects, HIDING["all profiles"]), KEYS, uri="x")

    for check in (lambda: gc(lying, now=LONG_AFTER), lambda: fsck(lying)):
        with pytest.raises(StoreUnavailable) as caught:
            check()

        assert str(caught.value) == (
            "the store's listing leaves out profiles/acme/support/versions/000000000003.json, which is there: it is "
            "not complete; try again later"
        )


@pytest.mark.parametrize(
    "alteration", ["UPDATE logs SET length = 1", "UPDATE logs SET drained = 0, number = 0", "UPDATE logs SET mac = ''"]
)
@pytest.mark.parametrize("hidden", ["sessions/", "profiles/", ""])
def test_an_altered_row_and_a_listing_that_leaves_things_out_are_both_named(
    objects: MemoryObjects, tmp_path: Path, alteration: str, hidden: str
) -> None:
    def opened(objects: MemoryObjects) -> Store:
        journal = FileJournal(tmp_path, drains=True, address_key=KEYS.address_key)
        return Store(journal, objects, KEYS, uri="x", write_behind=True, behind={"background": False})

    with opened(objects) as store:
        store.session("s", tenant="acme").append({"role": "user", "content": "hello"})
        assert store.flush(10)
        assert store.profiles("support", tenant="acme").newest().number == 3
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as db, db:
        db.execute(alteration)
    with (
        opened(LyingObjects(objects, lambda key: key.startswith(hidden))) as store,
        pytest.raises(StoreUnavailable, match=r"leaves out .*; found before that: log_altered at journal/acme/s$"),
    ):
        fsck(store, tenant="acme")


def test_what_is_garbage_still_goes(objects: MemoryObjects) -> None:
    store = Store(MemoryJournal(), objects, KEYS, uri="x")
    orphan = store.vault("acme").put("nobody", "meta", b"left by a crash")

    assert [key[-64:] for key in gc(store, now=LONG_AFTER).blobs] == [orphan]


class Inventive(LyingObjects):
    """Listings that show what is not there."""

    def __init__(self, of: MemoryObjects, invented: str) -> None:
        super().__init__(of, lambda key: False)
        self.invented = invented

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        more = [ObjectInfo(self.invented, 1, 0.0)] if self.invented.startswith(prefix) else []
        yield from sorted([*super().list(prefix, after=after), *more])


def test_a_key_goes_when_its_tombstone_was_read(objects: MemoryObjects) -> None:
    before = keys_of(objects)
    key = next(key for key in sorted(before) if key.startswith("keys/acme/"))
    lying = Inventive(objects, key.replace("keys/", "tombstones/"))

    assert gc(Store(MemoryJournal(), lying, KEYS, uri="x"), now=LONG_AFTER).keys == ()
    assert keys_of(objects) == before
