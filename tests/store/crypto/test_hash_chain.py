"""Chains: what an append answers, what reading refuses, and what finding the head costs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

from ctxsteward.evals.suites.kit.faulty_objects import PASS, FaultyObjects, Plan, StoreFault
from ctxsteward.schemas import StoreError, StoreUnavailable
from ctxsteward.schemas.errors import Damaged, ObjectMissing, OutcomeUnknown, UnsupportedVersion, VersionTaken
from ctxsteward.store.crypto.hash_chain import Chain, Link
from ctxsteward.store.crypto.keyring import AddressKey
from ctxsteward.store.names import numbered
from ctxsteward.store.objects.file import FileObjects
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.objects.port import ObjectInfo, PutOutcome, put_once

from ..doubles import holding, simulated_patience, stored
from ..objects.crash_disk import Killed, RecordingDisk

KEY = AddressKey(b"k" * 32)
FOLDER = "profiles/acme/support/versions"


class Seen(dict[str, int]):
    """A witness."""

    def seen(self, name: str) -> int:
        return self.get(name, 0)

    def see(self, name: str, number: int) -> None:
        self[name] = max(number, self.seen(name))


def chain(objects: Any, *, folder: str = FOLDER, key: AddressKey = KEY, witness: Seen | None = None) -> Chain:
    return Chain(objects, folder, key, witness=witness, patience=simulated_patience(5.0))


def grown(objects: MemoryObjects, length: int, folder: str = FOLDER, key: AddressKey = KEY) -> Chain:
    made = chain(objects, folder=folder, key=key)
    link = None
    for n in range(length):
        link = made.append(link, {"n": n}, commit_id=f"c{n}")
    return made


def sequence(*kinds: str) -> Plan:
    """These faults for the first puts, then none."""
    waiting = iter(kinds)
    return lambda method, key: StoreFault(next(waiting, "pass")) if method == "put" else PASS  # type: ignore[arg-type]


# -- appending ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "faults",
    [
        ("lost_reply",),
        ("error_after",),
        ("false_conflict",),
        ("dropped", "conflict_409", "error_before"),
        ("late", "late", "lost_reply"),
    ],
    ids="+".join,
)
def test_a_commit_that_is_not_answered_is_sent_again_and_lands_once(faults: tuple[str, ...]) -> None:
    objects = MemoryObjects()
    link = chain(FaultyObjects(objects, sequence(*faults))).append(None, {"n": 1}, commit_id="mine")

    assert (link.number, link.commit_id) == (1, "mine")
    assert [each.commit_id for each in chain(objects).links()] == ["mine"]


def test_somebody_else_s_link_is_a_taken_version_whatever_the_answer_was() -> None:
    objects = MemoryObjects()
    grown(objects, 1)
    for fault in ("pass", "lost_reply", "false_conflict", "conflict_409"):
        with pytest.raises(VersionTaken, match="version 1 is already taken"):
            chain(FaultyObjects(objects, sequence(fault))).append(None, {}, commit_id="mine")


def test_what_cannot_be_settled_is_unknown_and_repeating_it_with_its_id_commits_once() -> None:
    objects = MemoryObjects()
    dead = FaultyObjects(objects, lambda method, key: StoreFault("late", operations=1_000) if method == "put" else PASS)
    with pytest.raises(OutcomeUnknown) as caught:
        chain(dead).append(None, {"n": 1})
    assert list(objects.list("")) == []

    dead.settle()  # it lands after all
    again = chain(objects).append(None, {"n": 1}, commit_id=caught.value.commit_id)

    assert again.commit_id == caught.value.commit_id
    assert len(list(chain(objects).links())) == 1


def test_a_repeated_commit_returns_what_stands_there_and_not_what_was_sent_again() -> None:
    """Else the next link would name a parent that never was."""
    objects = MemoryObjects()
    first = chain(objects).append(None, {"when": "04:00"}, commit_id="mine")
    again = chain(objects).append(None, {"when": "04:05"}, commit_id="mine")

    assert again == first
    chain(objects).append(again, {})
    assert len(list(chain(objects).links())) == 2


class Refusing(MemoryObjects):
    """No bucket, no permission."""

    def put(self, key: str, body: bytes) -> PutOutcome:
        raise StoreUnavailable("no permission")


def test_unavailable_is_raised_only_where_nothing_can_have_landed() -> None:
    with pytest.raises(StoreUnavailable):
        put_once(Refusing(), "a", b"1", commit_id="c", mine=lambda found: False, patience=simulated_patience(5.0))

    class RefusingLater(MemoryObjects):
        tries = 0

        def put(self, key: str, body: bytes) -> PutOutcome:
            self.tries += 1
            if self.tries > 1:
                raise StoreUnavailable("no permission")
            return "conflicted"  # perhaps an earlier try of ours: it could not be read back

        def get(self, key: str) -> bytes:
            raise StoreUnavailable("no answer")

    with pytest.raises(OutcomeUnknown):
        put_once(RefusingLater(), "a", b"1", commit_id="c", mine=lambda found: False, patience=simulated_patience(5.0))


def test_a_witness_that_cannot_note_does_not_fail_a_commit() -> None:
    class Busy(Seen):
        def see(self, name: str, number: int) -> None:
            raise StoreError("the journal is busy")

    assert chain(MemoryObjects(), witness=Busy()).append(None, {}).number == 1


def test_a_link_that_a_witness_has_seen_outlives_a_power_cut(tmp_path: Path) -> None:
    """Its writer was killed at one of its calls, and may have left a name that is not durable. A reader finds it."""
    states, point, is_killed = 0, 0, True
    while is_killed:
        point += 1
        base = tmp_path / str(point)
        base.mkdir()
        disk = RecordingDisk(base, kill_before=point)
        try:
            chain(FileObjects(base / "store", disk=disk)).append(None, {})
            is_killed = False
        except Killed:
            pass
        disk.revive()
        if chain(FileObjects(base / "store", disk=disk), witness=Seen()).last_number():
            disk.note("seen")
        for crash in disk.crashes():
            if "seen" in crash.noted:
                with TemporaryDirectory() as folder:
                    crash.lay_out(Path(folder))
                    assert (point, chain(FileObjects(Path(folder) / "store")).last_number()) == (point, 1)
                states += 1
    assert states > 3


# -- races that are no damage ------------------------------------------------------------------------------


class Appending(MemoryObjects):
    """Somebody appends just before each listing starts, or just after it was read."""

    def __init__(self, when: str) -> None:
        super().__init__()
        self.when, self.witness = when, Seen()

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        if self.when == "before":
            self._append()
        found = list(super().list(prefix, after=after))
        if self.when == "after":
            self._append()
        if self.when == "left out":  # a folder that is read while it grows may show the newer of two names alone
            self._append()
            self._append()
            found = [info for info in super().list(prefix, after=after) if not info.key.endswith("2.json")]
        yield from found

    def _append(self) -> None:
        other = Chain(MemoryView(self), FOLDER, KEY, witness=self.witness)
        other.append(other.head(), {})


class MemoryView(MemoryObjects):
    """The same objects without the race."""

    def __init__(self, of: MemoryObjects) -> None:
        super().__init__()
        self._objects = of._objects


@pytest.mark.parametrize("when", ["before", "after", "left out"])
def test_commits_of_others_during_a_listing_are_not_taken_for_damage(when: str) -> None:
    objects = Appending(when)
    objects._append()
    found = Chain(objects, FOLDER, KEY, witness=objects.witness).last_number()

    assert found == {"before": 2, "after": 1, "left out": 3}[when]


def test_a_link_that_appears_while_a_chain_is_read_is_read_too() -> None:
    class Racing(MemoryObjects):
        def get(self, key: str) -> bytes:
            try:
                return super().get(key)
            except ObjectMissing:
                if key == numbered(FOLDER, 3):
                    other = Chain(MemoryView(self), FOLDER, KEY)
                    if other.last_number() == 2:
                        other.append(other.head(), {})
                raise

    objects = Racing()
    grown(objects, 2)
    assert [link.number for link in Chain(objects, FOLDER, KEY).links()] == [1, 2, 3]


# -- damage ------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    id: str
    damage: Callable[[dict[str, bytes]], object]
    numbers: tuple[int, ...]
    """Links that can no longer be read; the chain as a whole can never."""
    head: bool
    """Whether asking for the head notices."""


def edit(number: int, change: Callable[[bytes], bytes]) -> Callable[[dict[str, bytes]], object]:
    key = numbered(FOLDER, number)
    return lambda objects: objects.__setitem__(key, change(objects[key]))


def swap(objects: dict[str, bytes]) -> None:
    one, two = numbered(FOLDER, 2), numbered(FOLDER, 3)
    objects[one], objects[two] = objects[two], objects[one]


def fields(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    def changed(data: bytes) -> bytes:
        document = json.loads(data)
        change(document)
        return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()

    return changed


OTHER_FOLDER = FOLDER.replace("support", "sales")
DAMAGE = [
    Case("truncated", edit(3, lambda data: data[:-20]), (3,), True),
    Case("emptied", edit(3, lambda data: b""), (3,), True),
    Case("deleted in the middle", lambda objects: objects.pop(numbered(FOLDER, 2)), (2,), False),
    Case("deleted at the end", lambda objects: objects.pop(numbered(FOLDER, 3)), (3,), True),
    Case("all deleted", lambda objects: objects.clear(), (1, 2, 3), True),
    Case("swapped", swap, (2, 3), True),
    Case("body changed", edit(2, fields(lambda link: link["body"].update(n=7))), (2,), False),
    Case("epoch changed", edit(3, fields(lambda link: link.update(epoch=9))), (3,), True),
    Case("code removed", edit(3, fields(lambda link: link.pop("mac"))), (3,), True),
    Case("code of another type", edit(3, fields(lambda link: link.update(mac=None))), (3,), True),
    Case("code not ASCII", edit(3, lambda data: data.replace(b'"mac":"', '"mac":"é'.encode())), (3,), True),
    Case("a lone surrogate", edit(3, lambda data: data.replace(b'"c2"', b'"\\ud800"')), (3,), True),
    Case("a field twice", edit(3, lambda data: data.replace(b'{"body"', b'{"body":{},"body"', 1)), (3,), True),
    Case("white space", edit(3, lambda data: data + b"\n"), (3,), True),
    Case("not a number", edit(3, lambda data: data.replace(b'"n":2', b'"n":NaN')), (3,), True),
    Case("deeper than the stack", edit(3, lambda data: b"[" * 200_000), (3,), True),
    Case("UTF-16", edit(3, lambda data: data.decode().encode("utf-16")), (3,), True),
    Case("no JSON", edit(3, lambda data: b"\xff\xfe\x00"), (3,), True),
    Case(
        "replayed at another number",
        lambda objects: objects.__setitem__(numbered(FOLDER, 4), objects[numbered(FOLDER, 2)]),
        (4,),
        True,
    ),
    Case(
        "replayed from another profile",
        lambda objects: objects.__setitem__(numbered(FOLDER, 3), objects[numbered(OTHER_FOLDER, 3)]),
        (3,),
        True,
    ),
]


@pytest.mark.parametrize("case", DAMAGE, ids=lambda case: case.id)
def test_damage_is_found_where_it_is_read(case: Case) -> None:
    before = MemoryObjects()
    grown(before, 3)
    grown(before, 3, OTHER_FOLDER)
    content = stored(before)
    case.damage(content)
    witness = Seen({FOLDER: 3})

    damaged = chain(holding(content), witness=witness)
    for number in case.numbers:
        with pytest.raises((Damaged, ObjectMissing)):
            damaged.read(number)
    with pytest.raises(Damaged):
        list(damaged.links())
    if case.head:
        with pytest.raises(Damaged):
            damaged.head()


def test_a_machine_that_sees_a_chain_for_the_first_time_finds_its_gap() -> None:
    objects = MemoryObjects()
    grown(objects, 4)
    objects.delete(numbered(FOLDER, 2))
    with pytest.raises(Damaged, match="link 2 is missing"):
        chain(objects).head()


def test_every_flipped_bit_is_found() -> None:
    objects = MemoryObjects()
    grown(objects, 1)
    key = numbered(FOLDER, 1)
    data = objects.get(key)
    for place in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit
            with pytest.raises((Damaged, UnsupportedVersion)):
                chain(holding({key: bytes(flipped)})).read(1)


def test_a_chain_of_another_tenant_s_key_is_not_read() -> None:
    objects = MemoryObjects()
    grown(objects, 1, key=AddressKey(b"o" * 32))
    with pytest.raises(Damaged):
        chain(objects).head()


def test_a_history_that_was_rewritten_after_a_restore_does_not_follow() -> None:
    """Both links are ours; the later one was made after another link 2."""
    lost, kept = MemoryObjects(), MemoryObjects()
    grown(lost, 1)
    first = lost.get(numbered(FOLDER, 1))
    kept.put(numbered(FOLDER, 1), first)
    chain(lost).append(chain(lost).head(), {"n": "lost"})
    chain(lost).append(chain(lost).head(), {"n": "after it"})
    chain(kept).append(chain(kept).head(), {"n": "kept"})
    kept.put(numbered(FOLDER, 3), lost.get(numbered(FOLDER, 3)))
    with pytest.raises(Damaged, match="link 3 does not follow link 2"):
        list(chain(kept).links())


def test_a_later_major_version_is_refused_before_anything_of_it_is_used() -> None:
    objects = MemoryObjects()
    grown(objects, 1)
    later = fields(lambda link: link.update(schema_version=2))(objects.get(numbered(FOLDER, 1)))
    with pytest.raises(UnsupportedVersion, match="schema_version 2; this program reads up to 1"):
        chain(holding({numbered(FOLDER, 1): later})).head()


# -- cost --------------------------------------------------------------------------------------------------


class Counting(MemoryObjects):
    """Counts requests, and the names that listings gave."""

    requests = names = 0

    def get(self, key: str) -> bytes:
        self.requests += 1
        return super().get(key)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        self.requests += 1
        for info in super().list(prefix, after=after):
            self.names += 1
            yield info


@pytest.mark.parametrize("length", [1, 10, 500])
def test_a_known_head_costs_one_listing_of_one_name_whatever_the_history(length: int) -> None:
    objects, witness = Counting(), Seen()
    grown(objects, length)
    chain(objects, witness=witness).last_number()
    objects.requests = objects.names = 0

    head = chain(objects, witness=witness).head()

    assert head is not None
    assert head.number == length
    assert (objects.requests, objects.names) == (2, 1)


def test_every_link_that_can_be_read_is_read_and_in_the_place_of_the_others_stands_what_is_wrong() -> None:
    objects = MemoryObjects()
    made = grown(objects, 4)
    objects.put(f"{FOLDER}/notes.txt", b"not a link")
    objects.delete(numbered(FOLDER, 2))
    objects.delete(numbered(FOLDER, 3))
    objects.put(numbered(FOLDER, 3), b"cut off")
    found = list(made.readable())
    assert [one.body["n"] if isinstance(one, Link) else None for one in found] == [0, None, None, 3]
    assert "000000000002.json is missing" in str(found[1])
    assert isinstance(found[2], Damaged)
    assert list(chain(MemoryObjects()).readable()) == []
