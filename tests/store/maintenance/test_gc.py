"""Garbage collection: nothing reachable ever goes, every old orphan does, and a commit under way is never hurt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope.store import Store
from ctxsteward.schemas import Erased, InputError
from ctxsteward.schemas.errors import Damaged, ObjectMissing
from ctxsteward.store.crypto.hash_chain import Link
from ctxsteward.store.crypto.keyring import memory_keys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.maintenance.gc import GarbageReport, gc
from ctxsteward.store.names import blob_name, versions_folder
from ctxsteward.store.objects.file import FileObjects
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.objects.port import ObjectStore

from ...examples import examples

GRACE = 100.0
FOLDER = versions_folder("acme", "support")


class Clock:
    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


class Town:
    """A store with a clock of its own, and what should be in it."""

    def __init__(self, objects: Callable[[Clock], ObjectStore] = lambda clock: MemoryObjects(now=clock)) -> None:
        self.clock = Clock()
        self.objects = objects(self.clock)
        self.store = Store(MemoryJournal(), self.objects, memory_keys(), uri="memory:")
        self.vault = self.store.vault("acme")
        self.head: Link | None = None
        self.reachable: dict[str, bytes] = {}
        self.orphans: dict[str, float] = {}
        self.erased: set[str] = set()
        self.owner: dict[str, str] = {}
        self.since: dict[str, float] = {}
        self.direct: set[str] = set()
        """Named by a link itself; what is named by a blob alone goes when nobody can read that blob."""

    def put(self, subject: str, data: bytes) -> str | None:
        """A blob; None where its subject was forgotten."""
        try:
            address = self.vault.put(subject, "meta", data)
        except Erased:
            return None
        self.owner[address] = subject
        if not self.has_been(address):
            self.orphans[address] = self.since[address] = self.clock()
        return address

    def has_been(self, address: str) -> bool:
        """Whether it was there already."""
        return address in self.reachable or address in self.orphans

    def commit(self, *addresses: str) -> None:
        chain = self.store.chain(FOLDER, tenant="acme")
        self.head = chain.append(self.head, {"slices": list(addresses)})
        self.direct |= set(addresses)

    def mark(self, address: str, data: bytes) -> None:
        self.orphans.pop(address, None)
        self.reachable[address] = data

    def forget(self, subject: str) -> None:
        self.vault.destroy_key(subject, who="dpo", when="2026-11-22", why="asked")
        self.erased |= {address for address, owner in self.owner.items() if owner == subject}
        for address in [*self.reachable]:
            if self.owner[address] == subject and address not in self.direct:
                del self.reachable[address]
                self.orphans[address] = self.since[address]

    def collect(self, grace_seconds: float = GRACE, *, dry_run: bool = False) -> GarbageReport:
        return gc(self.store, now=self.clock(), grace_seconds=grace_seconds, dry_run=dry_run)

    def has(self, address: str) -> bool:
        try:
            self.objects.get(blob_name("acme", address))
        except ObjectMissing:
            return False
        return True


# -- any history ---------------------------------------------------------------------------------------------

SUBJECTS = ("ann", "bob")
CONTENT = st.sampled_from([b"a", b"b", b"c", b"d"])
MOVES = st.one_of(
    st.tuples(st.just("commit"), st.sampled_from(SUBJECTS), st.lists(CONTENT, min_size=1, max_size=3)),
    st.tuples(st.just("nested"), st.sampled_from(SUBJECTS), st.lists(CONTENT, min_size=1, max_size=3)),
    st.tuples(st.just("crash"), st.sampled_from(SUBJECTS), st.lists(CONTENT, min_size=1, max_size=3)),
    st.tuples(st.just("forget"), st.sampled_from(SUBJECTS), st.just([])),
    st.tuples(st.just("wait"), st.just(""), st.lists(CONTENT, min_size=1, max_size=3)),
    st.tuples(st.just("collect"), st.just(""), st.just([])),
)


def play(town: Town, kind: str, subject: str, contents: list[bytes]) -> None:
    match kind:
        case "wait":
            town.clock.seconds += 40 * len(contents)
        case "forget":
            town.forget(subject)
        case "collect":
            check_collection(town)
        case _:
            addresses = [address for content in contents if (address := town.put(subject, content)) is not None]
            if kind == "commit" and addresses:
                town.commit(*addresses)
                for address, content in zip(addresses, contents, strict=True):
                    town.mark(address, content)
            if kind == "nested" and addresses:  # a patch that names other blobs, as governed slices do
                patch = json.dumps(addresses).encode()
                outer = town.put(subject, patch)
                assert outer is not None
                town.commit(outer)
                for address, content in [*zip(addresses, contents, strict=True), (outer, patch)]:
                    town.mark(address, content)


def check_collection(town: Town) -> None:
    before = town.clock() - GRACE
    result = town.collect()
    gone = {address for address, since in town.orphans.items() if since <= before}
    for address, content in town.reachable.items():
        if address in town.erased:
            with pytest.raises(Erased):
                town.vault.get(address)
        else:
            assert town.vault.get(address) == content
    assert {key.rpartition("/")[2] for key in result.blobs} == set(gone)
    for address in [*town.orphans]:
        assert town.has(address) is (address not in gone)
    for address in gone:
        del town.orphans[address]
    assert result.young_blobs == len(town.orphans)


@settings(max_examples=examples(150))
@given(moves=st.lists(MOVES, max_size=14))
def test_after_any_history_what_is_reachable_stays_and_old_orphans_go(
    moves: list[tuple[str, str, list[bytes]]],
) -> None:
    town = Town()
    for move in moves:
        play(town, *move)
    check_collection(town)
    town.clock.seconds += 2 * GRACE
    check_collection(town)


def test_a_blob_named_only_by_a_forgotten_subject_s_blob_cannot_be_followed_and_goes() -> None:
    """What nobody can read refers to nothing any more; the blob of the forgotten subject itself is still named."""
    town = Town()
    inner = town.put("ann", b"inner")
    assert inner is not None
    outer = town.put("bob", inner.encode())
    assert outer is not None
    town.commit(outer)
    town.forget("bob")
    town.clock.seconds += 2 * GRACE
    result = town.collect()

    assert (town.has(outer), town.has(inner)) == (True, False)
    assert result.kept_blobs == 1


# -- never on an error path ----------------------------------------------------------------------------------


def test_nothing_is_collected_from_a_store_whose_chain_is_damaged() -> None:
    town = Town()
    orphan = town.put("ann", b"orphan")
    assert orphan is not None
    town.commit("0" * 64)
    town.commit("1" * 64)
    town.objects.delete(f"{FOLDER}/000000000001.json")
    town.clock.seconds += 2 * GRACE

    with pytest.raises(Damaged):
        town.collect()
    assert town.has(orphan)


def test_nothing_is_collected_where_the_tail_of_a_chain_is_gone() -> None:
    """The witness knows of a link that might have named the orphan."""
    town = Town()
    kept = town.put("ann", b"kept")
    assert kept is not None
    town.commit("0" * 64)
    town.commit(kept)
    town.objects.delete(f"{FOLDER}/000000000002.json")
    town.clock.seconds += 2 * GRACE

    with pytest.raises(Damaged):
        town.collect()
    assert town.has(kept)


class Interfering(MemoryObjects):
    """Lets somebody else act between the plan and the first deletion."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(now=clock)
        self.meanwhile: Callable[[], object] | None = None
        self.fails = False

    def delete(self, key: str) -> None:
        super().delete(key)
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            act()


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_an_old_orphan_that_a_commit_takes_up_while_it_is_collected_is_put_back(depth: int) -> None:
    """Also where the commit names it through blobs that are collected beside it."""
    town = Town(Interfering)
    assert isinstance(town.objects, Interfering)
    contents: dict[str, bytes] = {}
    named = ""
    for level in range(depth + 1):
        content = f"{level} {named}".encode()
        address = town.put("ann", content)
        assert address is not None
        contents[address], named = content, address
    other = town.put("ann", b"of no use to anybody")
    assert other is not None
    town.clock.seconds += 2 * GRACE
    town.objects.meanwhile = lambda: town.commit(named)
    result = town.collect()

    assert {address: town.vault.get(address) for address in contents} == contents
    assert {key.rpartition("/")[2] for key in result.restored} == set(contents)
    assert [key.rpartition("/")[2] for key in result.blobs] == [other]
    assert not town.has(other)


def test_a_collection_that_fails_half_way_puts_back_what_it_took() -> None:
    town = Town(Interfering)
    assert isinstance(town.objects, Interfering)
    orphans = [town.put("ann", b"%d" % n) for n in range(5)]
    town.clock.seconds += 2 * GRACE

    def fail() -> None:
        raise ObjectMissing("the store went away")

    town.objects.meanwhile = fail
    with pytest.raises(ObjectMissing):
        town.collect()
    assert all(orphan is not None and town.has(orphan) for orphan in orphans)


# -- the rest of the garbage ---------------------------------------------------------------------------------


def test_a_key_is_collected_beside_its_tombstone_and_never_without() -> None:
    """A process may hold a key in memory and write under it at any time: only a tombstone ends that."""
    town = Town()
    town.put("ann", b"x")
    town.put("bob", b"y")
    names = {name: f"keys/acme/{town.vault.subject_address(name)}.json" for name in SUBJECTS}
    key = town.objects.get(names["ann"])
    town.forget("ann")
    town.objects.put(names["ann"], key)  # as a crash between tombstone and key leaves it
    town.clock.seconds += 2 * GRACE
    result = town.collect()

    assert result.keys == (names["ann"],)
    assert [info.key for info in town.objects.list("keys/")] == [names["bob"]]


def test_tries_of_conditional_writes_are_collected_and_what_is_not_ours_is_left_alone() -> None:
    town = Town()
    for key in ("probe/0123456789abcdef", "notes/of-somebody.txt", "blobs/acme/zz/readme"):
        town.objects.put(key, b"x")
    town.clock.seconds += 2 * GRACE
    result = town.collect()

    assert result.probes == ("probe/0123456789abcdef",)
    assert [info.key for info in town.objects.list("")] == ["blobs/acme/zz/readme", "notes/of-somebody.txt"]


def test_temporary_files_are_collected_once_they_are_old(tmp_path: Path) -> None:
    town = Town(lambda clock: FileObjects(tmp_path, now=clock))
    folder = tmp_path / "blobs" / "acme"
    folder.mkdir(parents=True)
    left = folder / f"x.{'0' * 16}.tmp"
    left.write_bytes(b"half")
    town.clock.seconds = left.stat().st_mtime + GRACE - 1
    young = town.collect()
    town.clock.seconds += 2
    old = town.collect()

    assert (young.temporaries, old.temporaries) == ((), (str(left),))
    assert old.bytes == 4
    assert not left.exists()


def test_a_dry_run_says_the_same_and_touches_nothing() -> None:
    town = Town()
    orphans = {town.put("ann", b"x"), town.put("bob", b"y")}
    town.objects.put("probe/0", b"x")
    town.clock.seconds += 2 * GRACE
    keys = [info.key for info in town.objects.list("")]
    said = town.collect(dry_run=True)

    assert [info.key for info in town.objects.list("")] == keys
    done = town.collect()
    assert (said.blobs, said.probes, said.bytes) == (done.blobs, done.probes, done.bytes)
    assert {key.rpartition("/")[2] for key in done.blobs} == orphans


@pytest.mark.parametrize("seconds", [-1.0, float("inf"), float("nan")])
def test_a_grace_period_is_a_finite_time(seconds: float) -> None:
    with pytest.raises(InputError, match="grace period"):
        Town().collect(seconds)
