"""Keys of a tenant: made once, kept private, told apart, rotated; bad ones are refused."""

from __future__ import annotations

import multiprocessing
import secrets
import stat
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from ctxsteward.schemas import ContextError, InputError, StoreError
from ctxsteward.schemas.errors import Damaged
from ctxsteward.store.crypto import keyring
from ctxsteward.store.crypto.keyring import (
    AddressKey,
    Keys,
    MasterKeys,
    StoredKeys,
    decrypt,
    encrypt,
    file_keys,
    memory_keys,
)

MASTER = bytes(range(32))


def test_a_keys_folder_gives_the_same_keys_after_reopening(tmp_path: Path) -> None:
    first, again = file_keys(tmp_path), file_keys(tmp_path)
    wrapped = first.wrap("acme", b"s" * 32, b"context")
    assert again.address_key("acme") == first.address_key("acme")
    assert again.seal_key("acme") == first.seal_key("acme")
    assert again.unwrap("acme", wrapped, b"context") == b"s" * 32


def _make_keys(folder: str) -> tuple[bytes, bytes]:
    keys = file_keys(Path(folder))
    return keys.address_key("acme"), keys.seal_key("acme").secret


def test_processes_that_make_the_same_tenants_keys_at_once_agree_on_one(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=3, mp_context=context) as pool:
        made = set(pool.map(_make_keys, [str(tmp_path)] * 8))
    assert len(made) == 1
    assert not list(tmp_path.rglob("*.tmp"))


def test_threads_that_race_for_a_key_agree_on_one(tmp_path: Path) -> None:
    for attempt in range(20):
        rings = [file_keys(tmp_path / str(attempt)) for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            assert len(set(pool.map(lambda ring: ring.address_key("acme"), rings))) == 1


def test_keys_are_files_that_only_their_owner_may_read_named_by_no_tenant(tmp_path: Path) -> None:
    root = tmp_path / "keys"
    ring = file_keys(root)
    ring.address_key("acme/../secret")
    ring.rotate_seal_key("acme/../secret")
    ring.wrap("acme/../secret", b"s" * 32, b"")
    for path in (root, *root.rglob("*")):
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path
        assert "acme" not in str(path.relative_to(root))
        assert path.is_dir() or path.stat().st_size == (64 if path.suffix == ".sum" else 32)
    assert len(list(root.rglob("*.key"))) == 4  # address, two seals, wrap
    assert len(list(root.rglob("*.sum"))) == 4


def test_keys_of_tenants_and_purposes_all_differ() -> None:
    tenants = ("acme", "bcme", "acm", "acme.seal-1", "")
    for ring in (memory_keys(), MasterKeys(MASTER)):
        found = [ring.address_key(tenant) for tenant in tenants]
        found += [AddressKey(ring.seal_key(tenant).secret) for tenant in tenants]
        assert len(set(found)) == 2 * len(tenants)


@pytest.mark.parametrize("make", [lambda: MasterKeys(b"m" * 32), memory_keys], ids=["master", "stored"])
def test_keys_of_any_number_of_tenants_take_a_bounded_room(
    make: Callable[[], Keys], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyring, "KEYS_IN_MEMORY", 8)
    ring = make()
    first = {n: (ring.address_key(f"t{n}"), ring.seal_key(f"t{n}")) for n in range(50)}
    assert {n: (ring.address_key(f"t{n}"), ring.seal_key(f"t{n}")) for n in range(50)} == first
    assert [name for name, value in vars(ring).items() if isinstance(value, dict) and len(value) > 8] == []


def test_master_keys_are_the_same_on_every_machine_that_has_the_secret() -> None:
    here, there = MasterKeys(MASTER), MasterKeys(MASTER)
    assert here.address_key("acme") == there.address_key("acme")
    assert there.unwrap("acme", here.wrap("acme", b"k" * 32, b"x"), b"x") == b"k" * 32
    assert MasterKeys(b"o" * 32).address_key("acme") != here.address_key("acme")


class Wrong(NamedTuple):
    id: str
    value: str | None
    seal_id: str | None = None


GOOD = "0f" * 32
WRONG = (
    Wrong("missing", None),
    Wrong("empty", ""),
    Wrong("blank", "   "),
    Wrong("short", "0f" * 31),
    Wrong("long", "0f" * 33),
    Wrong("odd digits", "0" + "0f" * 31),
    Wrong("no hex", "zz" * 32),
    Wrong("base64", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="),
    Wrong("prefixed", "0x" + "0f" * 31),
    Wrong("full-width digits", "０f" * 32),
    Wrong("a surrogate", "\udc80" * 64),
    Wrong("seal id empty", GOOD, ""),
    Wrong("seal id of blanks", GOOD, " "),
    Wrong("seal id too long", GOOD, "x" * 65),
    Wrong("seal id with a line break", GOOD, "1\n"),
    Wrong("seal id of other letters", GOOD, "schlüssel"),
)


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
def test_a_bad_environment_is_refused_in_one_line_that_does_not_show_it(case: Wrong) -> None:
    environ = {"CTXSTEWARD_MASTER_KEY": case.value, "CTXSTEWARD_MASTER_KEY_SEAL_ID": case.seal_id}
    with pytest.raises(InputError) as caught:
        MasterKeys.from_environment({name: value for name, value in environ.items() if value is not None})
    assert "\n" not in str(caught.value)
    assert not case.value or not case.value.strip() or case.value not in str(caught.value)


def test_the_environment_is_read_from_the_mapping_given_under_the_name_given() -> None:
    ring = MasterKeys.from_environment({"K": f" {GOOD.upper()}\n", "K_SEAL_ID": "2026-11"}, "K")
    assert ring.address_key("acme") == MasterKeys(bytes.fromhex(GOOD)).address_key("acme")
    assert ring.seal_key("acme").id == "2026-11"


@pytest.mark.parametrize("master", [b"", b"x" * 31, b"x" * 33, "x" * 32, bytearray(32)])
def test_a_master_key_of_another_size_or_type_is_refused(master: object) -> None:
    with pytest.raises(InputError):
        MasterKeys(master)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, 1, 31, 33, 64])
def test_a_key_file_of_another_size_is_damaged_and_never_replaced(tmp_path: Path, size: int) -> None:
    file_keys(tmp_path).address_key("acme")
    (path,) = (path for path in tmp_path.rglob("*.key"))
    path.write_bytes(b"x" * size)
    with pytest.raises(Damaged):
        file_keys(tmp_path).address_key("acme")
    assert path.read_bytes() == b"x" * size


def _folder_for_key(root: Path) -> None:
    file_keys(root).address_key("acme")
    (path,) = (path for path in root.rglob("*.key"))
    path.unlink()
    path.mkdir()


def _file_for_folder(root: Path) -> None:
    root.write_text("")


@pytest.mark.parametrize("spoil", [_folder_for_key, _file_for_folder])
def test_keys_that_cannot_be_read_say_so_and_no_new_ones_are_made(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    root = tmp_path / "keys"
    spoil(root)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StoreError):
        file_keys(root).address_key("acme")
    assert sorted(tmp_path.rglob("*")) == before


def test_rotating_keeps_older_seal_keys_and_is_seen_by_the_next_process(tmp_path: Path) -> None:
    ring = file_keys(tmp_path)
    first = ring.seal_key("acme")
    second = ring.rotate_seal_key("acme")
    assert (first.id, second.id) == ("1", "2")
    assert first.secret != second.secret
    assert ring.seal_key("acme") == second
    assert ring.seal_key("acme", "1") == first
    assert file_keys(tmp_path).seal_key("acme") == second
    assert ring.seal_key("other").id == "1"


def test_every_rotation_makes_a_new_key_even_behind_another_process_s(tmp_path: Path) -> None:
    here, there = file_keys(tmp_path), file_keys(tmp_path)
    assert here.seal_key("acme").id == there.seal_key("acme").id == "1"
    second = here.rotate_seal_key("acme")
    third = there.rotate_seal_key("acme")
    assert (second.id, third.id) == ("2", "3")
    assert second.secret != third.secret
    assert there.seal_key("acme", "2") == second  # made by the other process, found when it is asked for


@pytest.mark.parametrize("key_id", ["2", "01", "0", "-1", "", "x", "../1", "1\x00", "９", "9" * 40])
def test_a_seal_key_id_that_is_not_known_is_refused(tmp_path: Path, key_id: str) -> None:
    ring = file_keys(tmp_path)
    ring.seal_key("acme")
    with pytest.raises(StoreError):
        ring.seal_key("acme", key_id)
    assert len(list(tmp_path.rglob("*.key"))) == 1


def test_rotating_a_master_s_seal_key_is_naming_another_one() -> None:
    old, new = MasterKeys(MASTER), MasterKeys(MASTER, seal_id="2")
    assert new.seal_key("acme").id == "2"
    assert new.seal_key("acme") != old.seal_key("acme")
    assert new.seal_key("acme", "1") == old.seal_key("acme")
    assert new.address_key("acme") == old.address_key("acme")


@pytest.mark.parametrize("ring", [memory_keys(), MasterKeys(MASTER)], ids=["stored", "master"])
def test_a_wrapped_key_opens_only_for_its_tenant_its_context_and_unchanged(ring: Keys) -> None:
    secret = secrets.token_bytes(32)
    wrapped = ring.wrap("acme", secret, b"subject")
    assert ring.unwrap("acme", wrapped, b"subject") == secret
    assert ring.wrap("acme", secret, b"subject") != wrapped
    changed = [wrapped[:i] + bytes([wrapped[i] ^ 1]) + wrapped[i + 1 :] for i in range(len(wrapped))]
    tries = [("bcme", wrapped, b"subject"), ("acme", wrapped, b"other"), ("acme", wrapped, b"")]
    tries += [("acme", data, b"subject") for data in (*changed, b"", wrapped[:11], wrapped[:-1], wrapped + b"x")]
    for tenant, data, context in tries:
        with pytest.raises(Damaged):
            ring.unwrap(tenant, data, context)


def test_encryption_is_undone_by_nothing_but_its_own_key_and_context() -> None:
    key, nonce = b"k" * 32, b"n" * 12
    sealed = encrypt(key, b"text", b"here", nonce)
    assert decrypt(key, sealed, b"here") == b"text"
    assert b"text" not in sealed
    for other, context in product((key, b"o" * 32), (b"here", b"there")):
        if (other, context) != (key, b"here"):
            with pytest.raises(Damaged):
                decrypt(other, sealed, context)


def test_stored_keys_serve_any_place_that_keeps_the_first_of_a_name() -> None:
    kept: dict[str, bytes] = {}
    one, two = StoredKeys(kept.get, kept.setdefault), StoredKeys(kept.get, kept.setdefault)
    assert one.address_key("acme") == two.address_key("acme")
    with pytest.raises(ContextError):
        StoredKeys(lambda name: b"short", kept.setdefault).address_key("acme")


# -- a key file that was changed or lost ---------------------------------------------------------------------------


PURPOSES = ("", ".seal-1", ".seal-2", ".wrap")


def _used(folder: Path, tenant: str) -> None:
    ring = file_keys(folder)
    ring.address_key(tenant)
    ring.rotate_seal_key(tenant)
    ring.wrap(tenant, b"s" * 32, b"")


def _ask(folder: Path, tenant: str, purpose: str) -> object:
    ring = file_keys(folder)
    if purpose == "":
        return ring.address_key(tenant)
    if purpose == ".wrap":
        return ring.wrap(tenant, b"s" * 32, b"")
    return ring.seal_key(tenant, purpose.removeprefix(".seal-"))


def _key_file(folder: Path, purpose: str) -> Path:
    (found,) = [path for path in folder.rglob("*.key") if path.name[64:] == f"{purpose}.key"]
    return found


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize("attack", ["flip", "delete", "replay", "truncate"])
def test_a_key_file_that_was_changed_or_lost_is_named_and_never_replaced(
    tmp_path: Path, purpose: str, attack: str
) -> None:
    _used(tmp_path / "keys", "acme")
    _used(tmp_path / "other", "acme")
    path = _key_file(tmp_path / "keys", purpose)
    key = path.read_bytes()
    if attack == "delete":
        path.unlink()
    elif attack == "flip":
        path.write_bytes(bytes((key[0] ^ 1,)) + key[1:])
    elif attack == "truncate":
        path.write_bytes(key[:-1])
    else:
        path.write_bytes(_key_file(tmp_path / "other", purpose).read_bytes())
    before = path.read_bytes() if path.exists() else None

    with pytest.raises(StoreError) as caught:
        _ask(tmp_path / "keys", "acme", purpose)

    assert str(path) in str(caught.value)
    assert "restore this file" in str(caught.value)
    assert (path.read_bytes() if path.exists() else None) == before
    path.write_bytes(key)
    assert _ask(tmp_path / "keys", "acme", purpose)


def test_the_newest_seal_key_lost_does_not_bring_the_one_before_back(tmp_path: Path) -> None:
    _used(tmp_path, "acme")
    _key_file(tmp_path, ".seal-2").unlink()

    with pytest.raises(StoreError, match="the key is gone"):
        file_keys(tmp_path).seal_key("acme")


def test_a_key_of_an_earlier_program_gets_its_digest_when_it_is_read(tmp_path: Path) -> None:
    _used(tmp_path, "acme")
    for digest in tmp_path.rglob("*.sum"):
        digest.unlink()
    key = file_keys(tmp_path).address_key("acme")

    assert file_keys(tmp_path).address_key("acme") == key
    assert len(list(tmp_path.rglob("*.sum"))) == 1
