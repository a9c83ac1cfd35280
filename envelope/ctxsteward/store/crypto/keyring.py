"""A tenant's keys: the port `Keys`, key rings from a folder or a master secret, AES-GCM, `check_keys`; and addresses.

Stores, reports and logs show an *address* instead of content: HMAC-SHA-256 under the tenant's address key of
subject ‖ type ‖ bytes, each length-prefixed, as 64 hex digits. The same content has different addresses in two tenants
and in two subjects of one tenant, so an address reveals nothing about content. A *subject* is one principal in one
session, or the session itself if a message has no principal.

A tenant has three kinds of keys: the *address key* (HMAC of addresses and stored records; never rotated, because every
address would change), *seal keys* (HMAC of envelopes; rotated, each with an id), and a *wrapping key* that encrypts the
data keys of subjects. An application can implement `Keys` over a key management service, which then does `wrap` and
`unwrap` and stores the other keys. `MasterKeys` derives all keys from one secret; `StoredKeys` stores random keys.

    tenants/<tenant>/check.json   {"schema_version": 1, "check": 64 hex digits}

`check` is an HMAC under the tenant's address key, stored by the first writer. With other keys every code in a store
would be wrong and look like tampering; `check_keys` reports the wrong keys instead.

Raises `StoreError`, `Damaged`, `InputError`. Source: RFC 5869 (HKDF), RFC 2104, FIPS 180-4, NIST SP 800-38D (AES-GCM).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NewType, Protocol, runtime_checkable

from ctxsteward.schemas import InputError, StoreError
from ctxsteward.schemas.errors import Damaged, ObjectMissing, UnsupportedVersion

from .. import create_once, process_forks as forking
from ..names import check_name
from ..objects.port import ObjectStore, Patience, put_once

if TYPE_CHECKING:
    from hashlib import _Hash

AddressKey = NewType("AddressKey", bytes)
"""32 random bytes, one key per tenant, never rotated."""

KEY_BYTES = 32


def subject_of(session: str, principal: str | None) -> str:
    """Return the subject of a message by this principal in this session."""
    return session if principal is None else f"{session}\x00{principal}"


def address_of(key: AddressKey, subject: str, kind: str, data: bytes) -> str:
    """Return the address of `data` as a record of this kind of this subject."""
    return code(key, _head(subject, kind) + data)


def subject_address(key: AddressKey, subject: str) -> str:
    """Return the address that names a subject in the object store and in spans."""
    return address_of(key, subject, "subject", b"")


def code(key: bytes, data: bytes) -> str:
    """Return HMAC-SHA-256 as 64 hex digits; for short data twice as fast as `hmac.digest`.

    >>> code(b"k" * 32, b"text") == hmac.digest(b"k" * 32, b"text", "sha256").hex()
    True
    """
    if len(key) > _BLOCK_BYTES:
        return hmac.digest(key, data, "sha256").hex()
    inner, outer = _keyed(key)
    text = inner.copy()
    text.update(data)
    whole = outer.copy()
    whole.update(text.digest())
    return whole.hexdigest()


_BLOCK_BYTES = 64
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))


@lru_cache(maxsize=256)
def _keyed(key: bytes) -> tuple[_Hash, _Hash]:
    """Return the SHA-256 states of both passes after the key's block. Callers copy them and never change them."""
    padded = key.ljust(_BLOCK_BYTES, b"\x00")
    return hashlib.sha256(padded.translate(_INNER)), hashlib.sha256(padded.translate(_OUTER))


@lru_cache(maxsize=1024)
def _head(subject: str, kind: str) -> bytes:
    who, what = subject.encode(), kind.encode()
    return len(who).to_bytes(4, "big") + who + len(what).to_bytes(4, "big") + what


NONCE_BYTES = 12
FIRST_SEAL_KEY = "1"
_SEAL_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class SealKey(NamedTuple):
    """A key that seals envelopes, and its id in seals."""

    id: str
    secret: bytes


@runtime_checkable
class Keys(Protocol):
    """Provider of a tenant's keys, which it makes at first use. Safe with threads."""

    def address_key(self, tenant: str) -> AddressKey: ...

    def seal_key(self, tenant: str, key_id: str | None = None) -> SealKey:
        """Return the key with this id, or the newest. Raises `StoreError` for an unknown id."""

    def wrap(self, tenant: str, secret: bytes, context: bytes) -> bytes:
        """Encrypt a data key; `context` must be given again to unwrap it."""

    def unwrap(self, tenant: str, wrapped: bytes, context: bytes) -> bytes:
        """Decrypt a wrapped data key. Raises `Damaged` if it was changed or has another context."""


@runtime_checkable
class CheckableKeys(Protocol):
    """Keys that can check whether their stored keys are intact."""

    def seal_key_faults(self, tenant: str) -> Iterator[StoreError]:
        """Yield `Damaged` or `KeyFileMissing` for each seal key that is not intact; make no key."""


def encrypt(secret: bytes, data: bytes, context: bytes, nonce: bytes) -> bytes:
    """Encrypt with AES-256-GCM; return nonce ‖ ciphertext ‖ tag. `context` is authenticated, not stored."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return nonce + AESGCM(secret).encrypt(nonce, data, context)


def decrypt(secret: bytes, data: bytes, context: bytes) -> bytes:
    """Decrypt the result of `encrypt`. Raises `Damaged`."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(secret).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], context)
    except (InvalidTag, ValueError) as error:
        raise Damaged("encrypted content was changed, or is not what stands here; restore it from a backup") from error


KEYS_IN_MEMORY = 10_000
"""Most keys of tenants that a `MasterKeys` or `StoredKeys` holds at once."""


def _keep(held: dict[Any, Any], name: object, key: object) -> None:
    if len(held) >= KEYS_IN_MEMORY:
        held.clear()
    held[name] = key


class MasterKeys:
    """Keys derived from one secret of 32 bytes; equal on every machine with this secret.

    `seal_id` names the seal key for new seals. Choose another one to rotate; older seals still verify.
    """

    def __init__(self, master: bytes, *, seal_id: str = FIRST_SEAL_KEY) -> None:
        if not isinstance(master, bytes):
            raise InputError(f"the master key is {type(master).__name__}; pass {KEY_BYTES} random bytes")
        if len(master) != KEY_BYTES:
            raise InputError(f"the master key has {len(master)} bytes; pass {KEY_BYTES} random ones")
        if not isinstance(seal_id, str) or not _SEAL_ID.fullmatch(seal_id):
            raise InputError(f"seal id {seal_id!r:.80} is not usable; take 1 to 64 letters, digits, '.', '_' or '-'")
        self._extracted, self._seal_id = hmac.digest(b"ctxsteward keys 1", master, "sha256"), seal_id
        self._derived: dict[tuple[str, str], bytes] = {}

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], name: str = "CTXSTEWARD_MASTER_KEY") -> MasterKeys:
        """Read the secret as 64 hex digits from this mapping; ``<name>_SEAL_ID`` names the seal key for new seals.

        Raises `InputError`, which never shows the value.
        """
        text = environ.get(name, "").strip()
        try:
            master = bytes.fromhex(text)
        except ValueError:
            master = b""
        if len(master) != KEY_BYTES:
            raise InputError(f"{name} is not {2 * KEY_BYTES} hex digits; make one with `openssl rand -hex {KEY_BYTES}`")
        return cls(master, seal_id=environ.get(f"{name}_SEAL_ID", FIRST_SEAL_KEY))

    def address_key(self, tenant: str) -> AddressKey:
        return AddressKey(self._derive(tenant, "address"))

    def seal_key(self, tenant: str, key_id: str | None = None) -> SealKey:
        chosen = self._seal_id if key_id is None else key_id
        return SealKey(chosen, self._derive(tenant, f"seal {chosen}"))

    def wrap(self, tenant: str, secret: bytes, context: bytes) -> bytes:
        return encrypt(self._derive(tenant, "wrap"), secret, context, secrets.token_bytes(NONCE_BYTES))

    def unwrap(self, tenant: str, wrapped: bytes, context: bytes) -> bytes:
        return decrypt(self._derive(tenant, "wrap"), wrapped, context)

    def _derive(self, tenant: str, purpose: str) -> bytes:
        """Derive one block with HKDF-SHA-256. Purpose and tenant are length-prefixed, so that no two pairs collide."""
        derived = self._derived.get((purpose, tenant))
        if derived is None:
            info = b"".join(len(part).to_bytes(4, "big") + part for part in (purpose.encode(), tenant.encode()))
            derived = hmac.digest(self._extracted, info + b"\x01", "sha256")
            _keep(self._derived, (purpose, tenant), derived)
        return derived


class StoredKeys:
    """Random keys, stored by name through two callables: `load(name) -> bytes | None`, `create(name, key) -> bytes`.

    `create` stores only the first key of a name and returns the stored key, so that racing processes agree.
    """

    def __init__(
        self,
        load: Callable[[str], bytes | None],
        create: Callable[[str, bytes], bytes],
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
        *,
        lost: Callable[[str], bool] = lambda name: False,
    ) -> None:
        """`lost` says whether a key that was read earlier is no longer stored."""
        self._lost = lost
        self._load, self._create, self._random_bytes = load, create, random_bytes
        self._lock = forking.lock()
        self._known: dict[str, bytes] = {}
        self._newest: dict[str, SealKey] = {}

    def address_key(self, tenant: str) -> AddressKey:
        name = _name(tenant, "")
        key = self._key(name)
        if self._lost(name):  # the next process could not read anything written under this key
            raise StoreError(f"the key of tenant {tenant!r:.80} is gone; restore the key folder from a backup")
        return AddressKey(key)

    def seal_key(self, tenant: str, key_id: str | None = None) -> SealKey:
        if key_id is not None:
            is_number = key_id.isascii() and key_id.isdecimal() and len(key_id) <= 9
            secret = self._known_or_loaded(_name(tenant, f"seal-{key_id}")) if is_number else None
            if secret is None and key_id == FIRST_SEAL_KEY:
                secret = self._key(_name(tenant, f"seal-{key_id}"))
            if secret is None:
                raise StoreError(f"seal key {key_id!r:.40} of tenant {tenant!r} is not known; restore the key folder")
            return SealKey(key_id, secret)
        newest = self._newest.get(tenant)
        if newest is None:
            number = 1
            while self._known_or_loaded(_name(tenant, f"seal-{number + 1}")) is not None:
                number += 1
            newest = self.seal_key(tenant, str(number))
            _keep(self._newest, tenant, newest)
        return newest

    def rotate_seal_key(self, tenant: str) -> SealKey:
        """Make a new seal key and use it from now on; seals by older keys still verify.

        Another process that has sealed for this tenant uses its old seal key until it is restarted.
        """
        self._newest.pop(tenant, None)  # another process may have rotated since; the new key must come after its key
        number = int(self.seal_key(tenant).id) + 1
        self._key(_name(tenant, f"seal-{number}"))
        key = self.seal_key(tenant, str(number))
        _keep(self._newest, tenant, key)
        return key

    def seal_key_faults(self, tenant: str) -> Iterator[StoreError]:
        """Yield an error for each stored seal key of the tenant that is not intact; make no key."""
        number = 1
        while True:
            name = _name(tenant, f"seal-{number}")
            try:
                key = self._load(name)
                if key is None:
                    return
                _checked(name, key)
            except StoreError as error:
                yield error
                # The folder itself cannot be read, so no other key can be either.
                if not isinstance(error, Damaged | KeyFileMissing):
                    return
            number += 1

    def wrap(self, tenant: str, secret: bytes, context: bytes) -> bytes:
        return encrypt(self._key(_name(tenant, "wrap")), secret, context, self._random_bytes(NONCE_BYTES))

    def unwrap(self, tenant: str, wrapped: bytes, context: bytes) -> bytes:
        return decrypt(self._key(_name(tenant, "wrap")), wrapped, context)

    def _known_or_loaded(self, name: str) -> bytes | None:
        with self._lock:
            found = self._known.get(name) or self._load(name)
            if found is not None:
                _keep(self._known, name, _checked(name, found))
            return found

    def _key(self, name: str) -> bytes:
        found = self._known_or_loaded(name)
        if found is None:
            with self._lock:
                found = _checked(name, self._create(name, self._random_bytes(KEY_BYTES)))
                _keep(self._known, name, found)
        return found


def file_keys(folder: Path) -> StoredKeys:
    """Return keys in files of mode 0600 below `folder`, named by SHA-256 of the tenant, each with a digest (`.sum`).

    A key that differs from its digest, or is missing while its digest exists, is an error that names the file. It is
    never replaced by a new key, which could not read or verify anything that was written before.
    """

    def load(name: str) -> bytes | None:
        path = _path(folder, name)
        try:
            digest = _read_if_there(path.with_suffix(SUM_SUFFIX))  # read first: it is written after the key
            key = _read_if_there(path)
            if key is not None and len(key) == KEY_BYTES and digest is None:  # made by an earlier version
                with suppress(OSError):  # in a read-only folder the key is usable without a digest, as before
                    create_once.create(path.with_suffix(SUM_SUFFIX), key_digest(key))
        except OSError as error:
            raise StoreError(f"{folder}: the tenant's keys cannot be read: {error}") from error
        if key is None and digest is not None:
            raise KeyFileMissing(f"{path}: the key is gone; restore this file from a backup of the key folder")
        if key is not None and digest is not None and not hmac.compare_digest(key_digest(key), digest):
            raise Damaged(
                f"{path}: it is not the key that was written; restore this file from a backup of the key folder"
            )
        return key

    def create(name: str, key: bytes) -> bytes:
        path = _path(folder, name)
        try:
            create_once.make_folders(path.parent)
            create_once.create(path, key)
            stands = path.read_bytes()
            create_once.create(path.with_suffix(SUM_SUFFIX), key_digest(stands))
            return stands
        except OSError as error:
            raise StoreError(f"{folder}: the tenant's keys cannot be made: {error}") from error

    return StoredKeys(load, create, lost=lambda name: not os.path.exists(_path(folder, name)))


def memory_keys(random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> StoredKeys:
    """Return keys that live as long as the process."""
    kept: dict[str, bytes] = {}
    return StoredKeys(kept.get, kept.setdefault, random_bytes)


SUM_SUFFIX = ".sum"


class KeyFileMissing(StoreError):
    """A stored key is missing, although its digest is there."""


def key_digest(key: bytes) -> bytes:
    """Return the digest that is stored beside a key. It does not reveal the key, which is random."""
    return hashlib.sha256(b"ctxsteward key 1\x00" + key).hexdigest().encode()


def _read_if_there(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _name(tenant: str, purpose: str) -> str:
    stem = hashlib.sha256(tenant.encode()).hexdigest()
    return f"{stem}.{purpose}.key" if purpose else f"{stem}.key"


def _path(folder: Path, name: str) -> Path:
    return folder / name[:2] / name


def _checked(name: str, key: bytes) -> bytes:
    if len(key) != KEY_BYTES:
        raise Damaged(f"key {name[:16]}…: it has {len(key)} bytes, not {KEY_BYTES}; restore it from a backup")
    return key


CHECK_VERSION = 1


def key_check(key: AddressKey) -> str:
    """Return the text that is equal for two tenants exactly if they have the same address key; it reveals no key."""
    return hmac.digest(key, b"ctxsteward tenant check 1", "sha256").hex()


def check_keys(objects: ObjectStore, keys: Keys, tenant: str, *, write: bool, patience: Patience | None = None) -> None:
    """Raise `StoreError` if the tenant's objects were written with other keys; `write` stores a missing check."""
    name = check_name(tenant)
    body = json.dumps({"schema_version": CHECK_VERSION, "check": key_check(keys.address_key(tenant))}).encode()
    try:
        stored = objects.get(name)
    except ObjectMissing:
        if not write:
            return
        landing = put_once(
            objects, name, body, commit_id="of the tenant's keys", mine=body.__eq__, patience=patience or Patience()
        )
        stored = landing.found or body
    if hmac.compare_digest(stored, body):
        return
    try:
        document = json.loads(stored)
        version, theirs = document["schema_version"], document["check"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Damaged(f"{name}: it is not what was written; restore it from a backup") from None
    if version != CHECK_VERSION:
        raise UnsupportedVersion(name, version, CHECK_VERSION)
    raise StoreError(
        f"{objects.uri}: tenant {tenant!r} was written with other keys ({str(theirs)[:8]}…): bring the key folder, or "
        "the master key, that it was written with, and open the store with `keys=`"
    )
