"""The vault: content under a key of each subject, addresses that answer nothing, and forgetting as destroying a key."""

from __future__ import annotations

import base64
import json
import secrets
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given, settings, strategies as st

from ctxsteward.schemas import ContextError, Erased, StoreError, StoreUnavailable
from ctxsteward.schemas.errors import Damaged, ObjectMissing, OutcomeUnknown, UnsupportedVersion
from ctxsteward.store.crypto.keyring import AddressKey, Keys, SealKey, memory_keys, subject_of
from ctxsteward.store.crypto.vault import Vault, derived_subject, session_of
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.objects.port import ObjectInfo, Patience, PutOutcome

from ...examples import examples

TOLD = {"who": "dpo", "when": "2026-11-22", "why": "request 7"}


class KeyService:
    """As an application would put a key management service behind `Keys`: it keeps its keys, we get none of them."""

    def __init__(self) -> None:
        self._inside: dict[str, AESGCM] = {}
        self._secrets: dict[str, bytes] = {}
        self.calls = 0

    def _cipher(self, tenant: str) -> AESGCM:
        return self._inside.setdefault(tenant, AESGCM(AESGCM.generate_key(256)))

    def address_key(self, tenant: str) -> AddressKey:
        return AddressKey(self._secrets.setdefault(tenant, secrets.token_bytes(32)))

    def seal_key(self, tenant: str, key_id: str | None = None) -> SealKey:
        return SealKey(key_id or "kms-1", self._secrets.setdefault(f"{tenant} seal", secrets.token_bytes(32)))

    def wrap(self, tenant: str, secret: bytes, context: bytes) -> bytes:
        self.calls += 1
        nonce = secrets.token_bytes(12)
        return b"kms1" + nonce + self._cipher(tenant).encrypt(nonce, secret, context)

    def unwrap(self, tenant: str, wrapped: bytes, context: bytes) -> bytes:
        self.calls += 1
        try:
            return self._cipher(tenant).decrypt(wrapped[4:16], wrapped[16:], context)
        except (InvalidTag, ValueError) as error:
            raise Damaged("the key service does not know this key") from error


@pytest.fixture(params=[memory_keys, KeyService], ids=["our keys", "a key service"])
def keys(request: pytest.FixtureRequest) -> Keys:
    made: Keys = request.param()
    return made


@pytest.fixture
def objects() -> MemoryObjects:
    return MemoryObjects()


def vault_of(objects: MemoryObjects, keys: Keys, tenant: str = "acme") -> Vault:
    return Vault(objects, keys, tenant, patience=Patience(total_seconds=0.0, sleep=lambda seconds: None))


def stored(objects: MemoryObjects) -> dict[str, bytes]:
    return {info.key: objects.get(info.key) for info in objects.list("")}


def replaced(objects: MemoryObjects, key: str, body: bytes) -> None:
    objects.delete(key)
    assert objects.put(key, body) == "committed"


# -- content ----------------------------------------------------------------------------------------------------------


def test_what_was_put_is_read_again_by_another_process(objects: MemoryObjects, keys: Keys) -> None:
    address = vault_of(objects, keys).put("s-1", "note", "Grüße".encode())
    assert vault_of(objects, keys).get(address) == "Grüße".encode()
    assert vault_of(objects, keys).put("s-1", "note", "Grüße".encode()) == address
    assert len([key for key in stored(objects) if key.startswith("blobs/")]) == 1


@settings(max_examples=examples(60))
@given(data=st.binary(max_size=300), subject=st.text(min_size=1, max_size=20), kind=st.sampled_from(["a", "b"]))
def test_every_content_comes_back_unaltered_and_stands_nowhere_in_plain(data: bytes, subject: str, kind: str) -> None:
    try:
        subject.encode()
    except UnicodeEncodeError:
        return
    objects, keys = MemoryObjects(), memory_keys()
    marked = data + b"CANARY-8472"
    assert vault_of(objects, keys).get(vault_of(objects, keys).put(subject, kind, marked)) == marked
    assert not any(b"CANARY-8472" in body for body in stored(objects).values())


def test_the_same_content_has_another_address_for_every_tenant_subject_and_kind(keys: Keys) -> None:
    objects = MemoryObjects()
    places = [(tenant, subject, kind) for tenant in ("acme", "bcme") for subject in ("s", "t") for kind in ("a", "b")]
    addresses = {vault_of(objects, keys, tenant).put(subject, kind, b"yes") for tenant, subject, kind in places}
    assert len(addresses) == len(places)


@settings(max_examples=examples(60))
@given(data=st.binary(max_size=300), times=st.integers(1, 40))
def test_compressed_content_has_the_address_of_the_content_and_comes_back(data: bytes, times: int) -> None:
    objects, keys, content = MemoryObjects(), memory_keys(), data * times
    address = vault_of(objects, keys).put("s-1", "note", content, compress=True)
    assert address == vault_of(MemoryObjects(), keys).put("s-1", "note", content)
    assert vault_of(objects, keys).get(address) == content
    assert vault_of(objects, keys).put("s-1", "note", content) == address


def test_compressing_saves_room_or_is_left_out(objects: MemoryObjects, keys: Keys) -> None:
    vault = vault_of(objects, keys)
    sizes = {}
    for content in (b"the same again and again; " * 40, bytes(range(256))):
        address = vault.put("s-1", "note", content, compress=True)
        body = objects.get(f"blobs/acme/{address[:2]}/{address}")
        sizes[json.loads(body.partition(b"\n")[0])["schema_version"]] = len(body) / len(content)
    assert sizes[2] < 0.3
    assert sizes[1] > 1


def test_what_was_put_before_there_was_compression_is_read_and_stands(objects: MemoryObjects, keys: Keys) -> None:
    content = b"the same again and again; " * 40
    address = vault_of(objects, keys).put("s-1", "note", content)
    before = stored(objects)
    assert vault_of(objects, keys).put("s-1", "note", content, compress=True) == address
    assert stored(objects) == before
    assert vault_of(objects, keys).get(address) == content


@pytest.mark.parametrize(
    ("version", "payload", "error"),
    [
        pytest.param(2, b"no stream", Damaged, id="it is not compressed"),
        pytest.param(2, zlib.compress(b"one")[:-2], Damaged, id="cut"),
        pytest.param(3, zlib.compress(b"one"), UnsupportedVersion, id="of a later version"),
        pytest.param(0, b"one", UnsupportedVersion, id="of no version"),
    ],
)
def test_compressed_content_that_cannot_be_read_says_so(
    objects: MemoryObjects, keys: Keys, version: int, payload: bytes, error: type[Exception]
) -> None:
    vault = vault_of(objects, keys)
    address, data_key = vault.put("s-1", "note", b"one"), vault.data_key("s-1")
    key = f"blobs/acme/{address[:2]}/{address}"
    head = json.dumps({"schema_version": version, "key": data_key.subject, "kind": "note"}).encode()
    body = (3).to_bytes(4, "big") + b"s-1" + payload
    replaced(objects, key, head + b"\n" + vault.encrypt(data_key, body, key.encode() + b"\n" + head))
    with pytest.raises(error):
        vault_of(objects, keys).get(address)


def test_a_blob_that_was_changed_moved_or_cut_is_damaged(objects: MemoryObjects, keys: Keys) -> None:
    vault = vault_of(objects, keys)
    one, two = vault.put("s-1", "note", b"one"), vault.put("s-1", "note", b"two")
    key = f"blobs/acme/{one[:2]}/{one}"
    body, other = objects.get(key), objects.get(f"blobs/acme/{two[:2]}/{two}")
    head = json.loads(body.partition(b"\n")[0])
    foreign = json.dumps(head | {"key": vault.data_key("s-2").subject}).encode() + b"\n" + body.partition(b"\n")[2]
    odd = [json.dumps(head | {"key": value}).encode() + b"\nxx" for value in ("../../keys/x", "", 7, None, "A" * 64)]
    flips = [body[:i] + bytes([body[i] ^ 1]) + body[i + 1 :] for i in range(len(body))]
    for spoiled in (*flips, other, foreign, *odd, b"", b"\n", body[:-1], body + b"x", body.replace(b"note", b"nope")):
        replaced(objects, key, spoiled)
        with pytest.raises((Damaged, UnsupportedVersion, ObjectMissing)):
            vault_of(objects, keys).get(one)


@pytest.mark.parametrize(
    ("kind", "subject", "data", "says"),
    [
        pytest.param("note", "s-1", b"one", None, id="as it was put"),
        pytest.param("note", "s-1", b"two", "not what its address says", id="other content"),
        pytest.param("note", "s-2", b"one", "not what its address says", id="of somebody else"),
        pytest.param("fact", "s-1", b"one", "not what its address says", id="of another kind"),
        pytest.param(None, "s-1", b"one", "it is not a blob", id="of no kind"),
    ],
)
def test_a_blob_that_was_soundly_encrypted_is_what_its_address_says_or_damaged(
    objects: MemoryObjects, keys: Keys, kind: str | None, subject: str, data: bytes, says: str | None
) -> None:
    vault = vault_of(objects, keys)
    address, data_key = vault.put("s-1", "note", b"one"), vault.data_key("s-1")
    key = f"blobs/acme/{address[:2]}/{address}"
    head = json.dumps({"schema_version": 1, "key": data_key.subject, "kind": kind}).encode()
    payload = len(subject).to_bytes(4, "big") + subject.encode() + data
    replaced(objects, key, head + b"\n" + vault.encrypt(data_key, payload, key.encode() + b"\n" + head))
    if says is None:
        assert vault_of(objects, keys).get(address) == data
    else:
        with pytest.raises(Damaged, match=says):
            vault_of(objects, keys).get(address)


def test_putting_over_a_blob_that_cannot_be_read_is_told(objects: MemoryObjects, keys: Keys) -> None:
    vault = vault_of(objects, keys)
    address = vault.put("s-1", "note", b"one")
    replaced(objects, f"blobs/acme/{address[:2]}/{address}", b"{}\nnothing")
    with pytest.raises((Damaged, UnsupportedVersion)):
        vault_of(objects, keys).put("s-1", "note", b"one")


@pytest.mark.parametrize("address", ["", "ab", "../../x", "ab/../../keys/acme/x", "%2e", "a" * 64, "é", "a" * 9000])
def test_an_address_that_names_nothing_is_refused_in_words_that_do_not_depend_on_what_is_there(
    objects: MemoryObjects, keys: Keys, address: str
) -> None:
    vault_of(objects, keys, "other").put("s", "note", b"there")
    with pytest.raises(ContextError):
        vault_of(objects, keys).get(address)


# -- keys -------------------------------------------------------------------------------------------------------------


def test_threads_and_processes_that_make_a_key_at_once_use_one(keys: Keys) -> None:
    for _ in range(20):
        objects = MemoryObjects()
        vaults = [vault_of(objects, keys) for _ in range(4)]
        with ThreadPoolExecutor(8) as pool:
            made = set(pool.map(lambda vault: vault.data_key("s-1"), vaults * 2))
        assert len(made) == 1


@pytest.mark.parametrize("size", [0, 16, 24, 31, 33])
def test_a_key_service_that_gives_back_a_key_of_another_size_is_found_out(objects: MemoryObjects, size: int) -> None:
    class Odd(KeyService):
        def unwrap(self, tenant: str, wrapped: bytes, context: bytes) -> bytes:
            return b"k" * size

    ring = Odd()
    vault_of(objects, ring).put("s-1", "note", b"one")
    with pytest.raises(Damaged):
        vault_of(objects, ring).data_key("s-1")


def test_a_data_key_object_that_was_changed_or_moved_is_damaged(objects: MemoryObjects, keys: Keys) -> None:
    vault = vault_of(objects, keys)
    one, two = vault.data_key("s-1").subject, vault.data_key("s-2").subject
    key, other = f"keys/acme/{one}.json", objects.get(f"keys/acme/{two}.json")
    wrapped = bytearray(base64.b64decode(json.loads(objects.get(key))["wrapped"]))
    wrapped[20] ^= 1
    changed = json.dumps({"schema_version": 1, "wrapped": base64.b64encode(wrapped).decode()}).encode()
    for body in (other, changed, b"", b"[]", b'{"schema_version":1}', b'{"schema_version":1,"wrapped":"*"}'):
        replaced(objects, key, body)
        with pytest.raises(Damaged):
            vault_of(objects, keys).data_key("s-1")
    replaced(objects, key, b'{"schema_version":2}')
    with pytest.raises(UnsupportedVersion):
        vault_of(objects, keys).data_key("s-1")


def test_asking_a_key_service_costs_one_call_a_subject(objects: MemoryObjects) -> None:
    ring = KeyService()
    vault = vault_of(objects, ring)
    for n in range(50):
        vault.put("s-1", "note", b"%d" % n)
    assert ring.calls == 1


def test_no_principal_s_subject_is_a_session_s_or_derived() -> None:
    names = ["a", "a\x00", "\x000", "0", "a\x01", "\x01", "a\x000", "b"]
    own = {subject_of(session, None) for session in ("a", "b", "0")}
    theirs = {subject_of(session, name) for session in ("a", "b", "0") for name in names}
    derived = {derived_subject(session, generation) for session in ("a", "b", "0") for generation in range(3)}
    assert len(own | theirs | derived) == len(own) + len(theirs) + len(derived)
    assert {session_of(subject) for subject in own | theirs | derived} == {"a", "b", "0"}
    assert session_of("\x00record\x00support\x00r-1") == ""


# -- forgetting -------------------------------------------------------------------------------------------------------


def test_an_erased_subject_cannot_be_read_or_written_and_no_other_is_touched(
    objects: MemoryObjects, keys: Keys
) -> None:
    vault = vault_of(objects, keys)
    kept, gone = vault.put("s-1", "note", b"same"), vault.put("s-2", "note", b"same")
    assert vault.destroy_key("s-2", **TOLD).who == "dpo"
    for reader in (vault, vault_of(objects, keys)):
        assert reader.get(kept) == b"same"
        for act in (lambda r: r.get(gone), lambda r: r.put("s-2", "note", b"new"), lambda r: r.data_key("s-2")):
            with pytest.raises(Erased) as caught:
                act(reader)
            assert str(caught.value).endswith("was erased by dpo on 2026-11-22: request 7")
            assert "\n" not in str(caught.value)
            assert isinstance(caught.value, KeyError)
    assert f"keys/acme/{vault.subject_address('s-2')}.json" not in stored(objects)


def test_no_key_is_made_for_any_subject_of_an_erased_session(objects: MemoryObjects, keys: Keys) -> None:
    vault = vault_of(objects, keys)
    before = vault.put(subject_of("s-1", "ann"), "note", b"x")
    vault.destroy_key("s-1", **TOLD)
    fresh = vault_of(objects, keys)
    for subject in (subject_of("s-1", "bob"), subject_of("s-1", "ann"), derived_subject("s-1", 0)):
        with pytest.raises(Erased):
            fresh.data_key(subject)
    with pytest.raises(Erased):
        fresh.get(before)
    fresh.data_key(subject_of("s-11", "bob"))
    fresh.data_key("\x00record\x00s-1")


def test_the_first_burial_stays_and_repeating_finishes_it(objects: MemoryObjects, keys: Keys) -> None:
    vault = vault_of(objects, keys)
    vault.data_key("s-1")
    first = vault.destroy_key("s-1", **TOLD)
    assert vault.destroy_key("s-1", who="other", when="later", why="again") == first
    assert [vault.tombstone(name) for name in vault.erased()] == [first]
    assert list(vault.erased()) == [first.subject]
    assert vault.destroy_key_at(first.subject, who="x", when="y", why="z") == first


def test_a_key_left_beside_a_tombstone_opens_nothing(objects: MemoryObjects, keys: Keys) -> None:
    vault = vault_of(objects, keys)
    address, name = vault.put("s-1", "note", b"x"), vault.subject_address("s-1")
    key = objects.get(f"keys/acme/{name}.json")
    vault.destroy_key("s-1", **TOLD)
    assert objects.put(f"keys/acme/{name}.json", key) == "committed"  # what a crash may leave
    for act in (lambda v: v.get(address), lambda v: v.data_key("s-1"), lambda v: v.known_key(name)):
        with pytest.raises(Erased):
            act(vault_of(objects, keys))


@pytest.mark.parametrize("change", ["who", "when", "why", "mac", "moved", "empty", "version"])
def test_a_tombstone_that_was_changed_is_damaged_and_still_keeps_the_content_shut(
    objects: MemoryObjects, keys: Keys, change: str
) -> None:
    vault = vault_of(objects, keys)
    address, name = vault.put("s-1", "note", b"x"), vault.subject_address("s-1")
    vault.destroy_key("s-1", **TOLD)
    vault.destroy_key("s-2", **TOLD)
    key = f"tombstones/acme/{name}.json"
    body = json.loads(objects.get(key))
    spoiled = {
        "moved": objects.get(f"tombstones/acme/{vault.subject_address('s-2')}.json"),
        "empty": b"{}",
        "version": json.dumps(body | {"schema_version": 2}).encode(),
    }.get(change) or json.dumps(body | {change: "x"}).encode()
    replaced(objects, key, spoiled)
    with pytest.raises((Damaged, UnsupportedVersion)):
        vault_of(objects, keys).get(address)
    with pytest.raises((Damaged, UnsupportedVersion)):
        vault_of(objects, keys).destroy_key("s-1", **TOLD)
    assert f"keys/acme/{name}.json" not in stored(objects)


class Halting(MemoryObjects):
    """Runs a callable after so many writes; stands for another process, or for a crash."""

    def __init__(self, after: int, act: Callable[[], object]) -> None:
        super().__init__()
        self.left, self._act = after, act

    def put(self, key: str, body: bytes) -> PutOutcome:
        outcome = super().put(key, body)
        self._step()
        return outcome

    def delete(self, key: str) -> None:
        super().delete(key)
        self._step()

    def _step(self) -> None:
        self.left -= 1
        if self.left == 0:
            self._act()


class Crash(BaseException):
    pass


def _crash() -> None:
    raise Crash


def test_a_burial_that_was_killed_anywhere_is_finished_by_repeating() -> None:
    reached = 0
    for after in range(1, 6):
        objects, keys = Halting(after + 2, _crash), memory_keys()
        vault = vault_of(objects, keys)
        address = vault.put("s-1", "note", b"x")  # two writes
        try:
            vault.destroy_key("s-1", **TOLD)
        except Crash:
            reached += 1
        objects.left = 0
        vault_of(objects, keys).destroy_key("s-1", **TOLD)
        assert not any(key.startswith("keys/") for key in stored(objects))
        with pytest.raises(Erased):
            vault_of(objects, keys).get(address)
    assert reached == 2


def test_a_subject_erased_while_its_key_is_made_has_no_key_afterwards() -> None:
    """Whichever step of making the key the erasure meets."""
    for after in (1, 2):
        keys = memory_keys()
        objects = Halting(after, lambda: vault_of(objects, keys).destroy_key("s-1", **TOLD))  # noqa: B023 - called in the loop
        with suppress(Erased):
            vault_of(objects, keys).put("s-1", "note", b"x")
        assert not any(key.startswith("keys/") for key in stored(objects)), after
        for address in (key.rpartition("/")[2] for key in stored(objects) if key.startswith("blobs/")):
            with pytest.raises(Erased):
                vault_of(objects, keys).get(address)


def test_erasing_and_writing_at_once_leaves_nothing_that_can_be_read() -> None:
    for _ in range(30):
        objects, keys = MemoryObjects(), memory_keys()
        start, addresses = threading.Barrier(3), []

        def write(objects: MemoryObjects = objects, keys: Keys = keys, start: threading.Barrier = start) -> None:
            start.wait()
            for n in range(5):
                try:
                    addresses.append(vault_of(objects, keys).put("s-1\x00ann", "note", b"%d" % n))  # noqa: B023
                except Erased:
                    return

        def destroy(objects: MemoryObjects = objects, keys: Keys = keys, start: threading.Barrier = start) -> None:
            start.wait()
            vault = vault_of(objects, keys)
            vault.destroy_key("s-1", **TOLD)
            vault.destroy_key("s-1\x00ann", **TOLD)

        threads = [threading.Thread(target=act) for act in (write, write, destroy)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not any(key.startswith("keys/") for key in stored(objects))
        for address in addresses:
            with pytest.raises(Erased):
                vault_of(objects, keys).get(address)


class Dead(MemoryObjects):
    """Answers nothing once `down` is set; a put lands all the same where it is told to."""

    down = False
    lands = False

    def put(self, key: str, body: bytes) -> PutOutcome:
        if not self.down:
            return super().put(key, body)
        if self.lands:
            super().put(key, body)
        return "unknown"

    def get(self, key: str) -> bytes:
        if self.down:
            raise StoreUnavailable("no answer")
        return super().get(key)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        if self.down:
            raise StoreUnavailable("no answer")
        return super().list(prefix, after=after)

    def delete(self, key: str) -> None:
        if self.down:
            raise StoreUnavailable("no answer")
        super().delete(key)


@pytest.mark.parametrize("lands", [False, True], ids=["lost", "landed"])
def test_erasing_in_a_dead_store_says_that_it_is_not_known_and_is_finished_by_repeating(lands: bool) -> None:
    objects, keys = Dead(), memory_keys()
    address = vault_of(objects, keys).put("s-1", "note", b"x")
    objects.down, objects.lands = True, lands
    with pytest.raises((OutcomeUnknown, StoreUnavailable)):
        vault_of(objects, keys).destroy_key("s-1", **TOLD)
    objects.down = False
    assert vault_of(objects, keys).destroy_key("s-1", **TOLD).why == "request 7"
    with pytest.raises(Erased):
        vault_of(objects, keys).get(address)


def test_in_a_dead_store_nothing_is_said_to_be_missing_or_erased() -> None:
    objects, keys = Dead(), memory_keys()
    address = vault_of(objects, keys).put("s-1", "note", b"x")
    objects.down = True
    for act in (lambda v: v.get(address), lambda v: v.data_key("s-1"), lambda v: v.put("s-3", "note", b"y")):
        with pytest.raises(StoreError) as caught:
            act(vault_of(objects, keys))
        assert not isinstance(caught.value, (Erased, ObjectMissing, Damaged))
