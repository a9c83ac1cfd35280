"""The vault: people's words, encrypted under one key per subject, so that an erasure only destroys a key.

A *subject* is one principal in one session (`keyring.subject_of`). Texts derived from several principals of a session
(compactions, selections, notes) belong to a subject of their own (`derived_subject`). Each subject has a random data
key (AES-256-GCM), stored in the object store under the tenant's wrapping key. A *blob* is content under its address:
HMAC of subject, kind and bytes. So the same text of two subjects has two addresses, and the erasure of one subject
cannot remove another's original.

    keys/<tenant>/<subject address>.json   {"schema_version": 1, "wrapped": base64}
    blobs/<tenant>/ab/<address>            one line of JSON {"schema_version", "key", "kind"}, then the ciphertext;
                                           in version 2 the content is compressed (RFC 1950)
    tombstones/<tenant>/<subject address>.json   {"schema_version": 1, "who", "when", "why", "held"?, "mac"}

A forgotten subject gets no new key, nor does any subject of a forgotten session. A key that a crash left beside a
tombstone is not used: a request for it raises `Erased`. `who`, `when` and `why` are stored in plain text: write no
personal data there. The package `erasure` erases everything else that came from a subject.
Raises `Erased`, `Damaged`, `ObjectMissing`, `OutcomeUnknown`, `StoreUnavailable`, `UnsupportedVersion`.
Source: NIST SP 800-38D; NIST SP 800-88 (cryptographic erase).
"""

from __future__ import annotations

import base64
import hmac
import json
import re
import secrets
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeGuard

from ctxsteward.schemas import Erased
from ctxsteward.schemas.errors import Damaged, ObjectMissing, UnsupportedVersion
from ctxsteward.schemas.message import Wire

from .. import names, process_forks as forking
from ..objects.port import ObjectStore, Patience, put_once
from .keyring import KEY_BYTES, NONCE_BYTES, Keys, address_of, decrypt, encrypt, subject_address

VAULT_VERSION = 1
"""Major version of key, blob and tombstone objects."""
COMPRESSED_VERSION = 2
"""Version of compressed blobs."""
COMPRESSION_LEVEL = 1
"""The fastest of levels 1 to 9, because time matters more to a night than space in the store."""

MAX_KEYS_IN_MEMORY = 10_000
"""Most data keys in memory; the oldest is dropped first and read again when needed."""

_HEX = frozenset("0123456789abcdef")
_NO_SESSION = re.compile("[\\x00\\x01]")


def derived_subject(session: str, generation: int = 0) -> str:
    """Return the subject of texts derived in a session; each erasure of a principal there begins a new generation.

    Its name has U+0001 after the session id, which has no control characters, so no principal's subject equals it.
    """
    return f"{session}\x01{generation}"


def session_of(subject: str) -> str:
    """Return a subject's session, or "" for a subject without one, whose name begins with a control character."""
    return _NO_SESSION.split(subject, maxsplit=1)[0]


class DataKey(NamedTuple):
    """A subject's data key."""

    subject: str
    """Address of the subject."""
    secret: bytes


class VaultBlob(NamedTuple):
    """Decrypted content of the vault, and the name of its subject."""

    subject: str
    data: bytes


class Tombstone(NamedTuple):
    """The record of a subject's erasure."""

    subject: str
    """Address of the subject."""
    who: str
    when: str
    why: str
    held: Mapping[str, Any] = {}
    """Counts of its records and names of calls before anything was destroyed; a repeat after a crash reads them."""


class Vault:
    """One tenant's encrypted content. Safe with threads."""

    def __init__(
        self,
        objects: ObjectStore,
        keys: Keys,
        tenant: str,
        *,
        patience: Patience | None = None,
        erasures: Callable[[], int] = lambda: 0,
    ) -> None:
        """`erasures` returns the number of the tenant's erasures by all processes. When it changes, cached keys are
        dropped."""
        self.tenant = tenant
        self.objects = objects
        self._keys = keys
        self._patience = patience or Patience()
        self._address_key = keys.address_key(tenant)
        self._lock = forking.lock()
        self._secrets: dict[str, bytes] = {}
        self._erasures, self._epoch = erasures, 0

    # -- data keys ----------------------------------------------------------------------------------------------

    def subject_address(self, subject: str) -> str:
        """Return the address that names a subject in the object store."""
        return subject_address(self._address_key, subject)

    def data_key(self, subject: str) -> DataKey:
        """Return the subject's key, made at first use. Raises `Erased` if the subject or its session was forgotten."""
        name, session = self.subject_address(subject), session_of(subject)
        path = (name, self.subject_address(session)) if session else (name,)
        epoch, secret = self._remembered(name)
        if secret is None:
            secret = self._fetched(name)
            if secret is None:
                self._refuse_erased(*path)
                secret = self._created(name)
            try:
                self._refuse_erased(*path)  # last, so that a concurrent erasure sees the key or is seen here
            except Erased as error:
                self.destroy_key_at(name, who=error.who, when=error.when, why=error.why)
                raise
            self._remember(name, secret, epoch)
        return DataKey(name, secret)

    def known_key(self, name: str) -> DataKey:
        """Return the key with this subject address. Raises `Erased`, or `ObjectMissing` if there never was one."""
        epoch, secret = self._remembered(name)
        if secret is None:
            secret = self._fetched(name)
            self._refuse_erased(name)
            if secret is None:
                raise ObjectMissing(names.data_key_name(self.tenant, name))
            self._remember(name, secret, epoch)
        return DataKey(name, secret)

    def _refuse_erased(self, *path: str) -> None:
        """Raise `Erased` if one of these subjects was forgotten."""
        for name in dict.fromkeys(path):
            self.check_not_erased(name, f"content of subject {name[:16]}…")

    def check_not_erased(self, name: str, what: str) -> None:
        """Raise `Erased` about `what` if the subject with this address was forgotten."""
        tombstone = self.tombstone(name)
        if tombstone is not None:
            raise Erased(what, who=tombstone.who, when=tombstone.when, why=tombstone.why)

    def _fetched(self, name: str) -> bytes | None:
        key = names.data_key_name(self.tenant, name)
        try:
            return self._unwrapped(name, self.objects.get(key))
        except ObjectMissing:
            return None

    def _created(self, name: str) -> bytes:
        secret = secrets.token_bytes(KEY_BYTES)
        wrapped = self._keys.wrap(self.tenant, secret, name.encode())
        body = json.dumps({"schema_version": VAULT_VERSION, "wrapped": base64.b64encode(wrapped).decode()}).encode()
        key = names.data_key_name(self.tenant, name)
        found = self._put(key, body, name)
        return secret if found is None else self._unwrapped(name, found)

    def _unwrapped(self, name: str, data: bytes) -> bytes:
        key = names.data_key_name(self.tenant, name)
        document = _document(key, data)
        try:
            wrapped = base64.b64decode(document["wrapped"], validate=True)
        except (KeyError, ValueError, TypeError):
            raise Damaged(f"{key}: it is not a data key; restore it from a backup") from None
        secret = self._keys.unwrap(self.tenant, wrapped, name.encode())
        if len(secret) != KEY_BYTES:
            raise Damaged(f"{key}: the key in it has {len(secret)} bytes, not {KEY_BYTES}; restore it from a backup")
        return secret

    def _remembered(self, name: str) -> tuple[int, bytes | None]:
        """Return the current number of erasures, and the cached key."""
        epoch = self._erasures()
        with self._lock:
            if epoch != self._epoch:
                self._secrets.clear()
                self._epoch = epoch
            return epoch, self._secrets.get(name)

    def _remember(self, name: str, secret: bytes, epoch: int) -> None:
        with self._lock:
            if epoch != self._epoch:
                return  # an erasure happened after the key was read
            self._secrets[name] = secret
            while len(self._secrets) > MAX_KEYS_IN_MEMORY:
                del self._secrets[next(iter(self._secrets))]

    # -- content ------------------------------------------------------------------------------------------------

    def encrypt(self, key: DataKey, data: bytes, context: bytes) -> bytes:
        """Return ciphertext that only this subject's key decrypts, and only with this context."""
        return encrypt(key.secret, data, context, secrets.token_bytes(NONCE_BYTES))

    def decrypt(self, key: DataKey, data: bytes, context: bytes) -> bytes:
        """Decrypt the result of `encrypt`. Raises `Damaged`."""
        return decrypt(key.secret, data, context)

    def put(self, subject: str, kind: str, data: bytes, *, compress: bool = False) -> str:
        """Store content permanently and return its address. The same content of the same subject is stored once.

        `compress` compresses it if that saves space; the address is that of the uncompressed content.
        Raises `Damaged` if the address has an unreadable blob already, so that stored content is always readable.
        """
        address = address_of(self._address_key, subject, kind, data)
        key, data_key = names.blob_name(self.tenant, address), self.data_key(subject)
        version = VAULT_VERSION
        if compress and len(smaller := zlib.compress(data, COMPRESSION_LEVEL)) < len(data):
            version, data = COMPRESSED_VERSION, smaller
        head = json.dumps({"schema_version": version, "key": data_key.subject, "kind": kind}).encode()
        who = subject.encode()
        payload = len(who).to_bytes(4, "big") + who + data
        body = head + b"\n" + self.encrypt(data_key, payload, key.encode() + b"\n" + head)
        standing = self._put(key, body, address)
        if standing is not None:
            self._opened(address, standing)
        return address

    def get(self, address: str) -> bytes:
        """Return the content with this address, decrypted and checked."""
        return self.entry(address).data

    def entry(self, address: str) -> VaultBlob:
        """Return the content with this address, and its subject."""
        return self._opened(address, self.objects.get(names.blob_name(self.tenant, address)))

    def _opened(self, address: str, blob: bytes) -> VaultBlob:
        key = names.blob_name(self.tenant, address)
        head, separator, ciphertext = blob.partition(b"\n")
        document = _document(key, head, COMPRESSED_VERSION) if separator else {}
        name, kind = document.get("key"), document.get("kind")
        if not _is_address(name) or not isinstance(kind, str):
            raise Damaged(f"{key}: it is not a blob; restore it from a backup")
        payload = self.decrypt(self.known_key(name), ciphertext, key.encode() + b"\n" + head)
        length = int.from_bytes(payload[:4], "big")
        subject, data = payload[4 : 4 + length].decode(), payload[4 + length :]
        if document["schema_version"] == COMPRESSED_VERSION:
            try:
                data = zlib.decompress(data)
            except zlib.error:
                raise Damaged(f"{key}: its content cannot be decompressed; restore it from a backup") from None
        if not hmac.compare_digest(address_of(self._address_key, subject, kind, data), address):
            raise Damaged(f"{key}: its content is not what its address says; restore it from a backup")
        return VaultBlob(subject, data)

    # -- forgetting ---------------------------------------------------------------------------------------------

    def destroy_key(self, subject: str, *, who: str, when: str, why: str) -> Tombstone:
        """Write the tombstone, then destroy the key. A repeat after a crash finishes this and keeps the tombstone."""
        return self.destroy_key_at(self.subject_address(subject), who=who, when=when, why=why)

    def destroy_key_at(
        self, name: str, *, who: str, when: str, why: str, held: Mapping[str, Any] | None = None
    ) -> Tombstone:
        """Do `destroy_key` for the subject with this address; `held` is that of the `Tombstone`."""
        key = names.tombstone_name(self.tenant, name)
        fields: Wire = {"schema_version": VAULT_VERSION, "who": who, "when": when, "why": why}
        if held is not None:
            fields["held"] = dict(held)
        body = json.dumps(fields | {"mac": self._tombstone_code(name, fields)}, ensure_ascii=False).encode()
        found = self._put(key, body, name)
        self.objects.delete(names.data_key_name(self.tenant, name))
        self.forget_secret(name)
        return Tombstone(name, who, when, why, held or {}) if found is None else self._tombstone(name, found)

    def _put(self, key: str, body: bytes, address: str) -> bytes | None:
        """Create an object; return the stored bytes if they had to be read back, else None."""
        return put_once(
            self.objects, key, body, commit_id=address[:16], mine=body.__eq__, patience=self._patience
        ).found

    def discard(self, address: str) -> None:
        """Delete content whose subject is not forgotten, because it contains words of a forgotten subject."""
        self.objects.delete(names.blob_name(self.tenant, address))

    def finish_destroying(self, name: str) -> None:
        """Destroy a key that an erasure left because it was interrupted after writing the tombstone."""
        key = names.data_key_name(self.tenant, name)
        with suppress(ObjectMissing):
            self.objects.get(key)
            self.objects.delete(key)

    def holds_key(self, name: str) -> bool:
        """Return whether the object store has a key object of the subject with this address, even an unreadable one."""
        try:
            self.objects.get(names.data_key_name(self.tenant, name))
        except ObjectMissing:
            return False
        return True

    def is_erased(self, name: str, *, damaged: bool) -> bool:
        """Return whether the subject with this address has a tombstone; return `damaged` if it cannot be read."""
        try:
            return self.tombstone(name) is not None
        except (Damaged, UnsupportedVersion):
            return damaged

    def tombstone(self, name: str) -> Tombstone | None:
        """Return the tombstone of the subject with this address, or None if it was not forgotten."""
        try:
            data = self.objects.get(names.tombstone_name(self.tenant, name))
        except ObjectMissing:
            return None
        return self._tombstone(name, data)

    def _tombstone(self, name: str, data: bytes) -> Tombstone:
        key = names.tombstone_name(self.tenant, name)
        document = _document(key, data)
        code = document.pop("mac", "")
        if not isinstance(code, str) or not hmac.compare_digest(code, self._tombstone_code(name, document)):
            raise Damaged(f"{key}: the tombstone is not what was written; restore it from a backup")
        return Tombstone(name, document["who"], document["when"], document["why"], document.get("held", {}))

    def erased(self) -> Iterator[str]:
        """Yield the addresses of the tenant's forgotten subjects in order; costs a listing."""
        for info in self.objects.list(names.tombstone_name(self.tenant, "").removesuffix(".json")):
            name = info.key.rpartition("/")[2].removesuffix(".json")
            if _is_address(name):
                yield name

    def forget_secret(self, name: str) -> None:
        """Drop a key from memory."""
        with self._lock:
            self._secrets.pop(name, None)

    def _tombstone_code(self, name: str, document: Wire) -> str:
        data = json.dumps(document, sort_keys=True, ensure_ascii=False).encode()
        return address_of(self._address_key, name, "tombstone", data)


def _is_address(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) == 64 and _HEX.issuperset(value)


def _document(key: str, data: bytes, newest: int = VAULT_VERSION) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise Damaged(f"{key}: it is not JSON; restore it from a backup")
    if (version := document.get("schema_version")) not in range(VAULT_VERSION, newest + 1):
        raise UnsupportedVersion(key, version, newest)
    return document
