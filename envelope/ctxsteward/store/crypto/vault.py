"""The vault: what was said by people, encrypted under a key of each subject, so that forgetting is destroying a key.

A *subject* is one principal in one session (`keyring.subject_of`); what was derived from several of them in a session
(compactions, selections, notes) is a subject of its own (`derived_subject`). Each has a random data key (AES-256-GCM),
kept in the object store wrapped by the tenant's wrapping key. A *blob* is content under its address: HMAC of subject,
kind and bytes, so the same text of two subjects has two addresses, and one subject's erasure cannot touch another's
original.

    keys/<tenant>/<subject address>.json   {"schema_version": 1, "wrapped": base64}
    blobs/<tenant>/ab/<address>            one line of JSON {"schema_version", "key", "kind"}, then the ciphertext;
                                           in version 2 its content is compressed (RFC 1950)
    tombstones/<tenant>/<subject address>.json   {"schema_version": 1, "who", "when", "why", "held"?, "mac"}

A forgotten subject gets no new key, nor does any subject of a forgotten session, and a key that a crash left beside a
tombstone opens nothing: asking for it raises `Erased`. `who`, `when` and `why` are kept in plain: write no
personal data there. Erasing everything a subject has left behind is `erasure`'s business.
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
from .keyring import KEY_BYTES, NONCE_BYTES, Keys, address_of, decrypt, encrypt

VAULT_VERSION = 1
"""Major version of key, blob and tombstone objects."""
COMPRESSED_VERSION = 2
"""Of blobs alone."""
COMPRESSION_LEVEL = 1
"""Of 1 to 9: a night spends more time than its store spends room."""

MAX_KEYS_IN_MEMORY = 10_000
"""The oldest go first; they are read again when they are needed."""

_HEX = frozenset("0123456789abcdef")
_NO_SESSION = re.compile("[\\x00\\x01]")


def derived_subject(session: str, generation: int = 0) -> str:
    """The subject of what was derived in a session; the generation moves on when a principal of it is forgotten.

    Session ids hold no control characters, so it is no principal's.
    """
    return f"{session}\x01{generation}"


def session_of(subject: str) -> str:
    """The session a subject is part of; empty for one of no session, whose name begins with a control character."""
    return _NO_SESSION.split(subject, maxsplit=1)[0]


class DataKey(NamedTuple):
    """A subject's key and the address it is kept under."""

    subject: str
    """Address of the subject."""
    secret: bytes


class VaultBlob(NamedTuple):
    """Content of the vault and its subject, as it was named."""

    subject: str
    data: bytes


class Tombstone(NamedTuple):
    """That a subject was forgotten."""

    subject: str
    """Address of the subject."""
    who: str
    when: str
    why: str
    held: Mapping[str, Any] = {}
    """What stood there before, counted before anything was destroyed, so that a repeat after a crash knows it."""


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
        """`erasures` are those of the tenant so far, by whichever process: keys that were read before one are read
        again."""
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
        """What a subject is called in the object store."""
        return address_of(self._address_key, subject, "subject", b"")

    def data_key(self, subject: str) -> DataKey:
        """The subject's key, made at first use. Raises `Erased` where it, or the session it is of, was forgotten."""
        name, session = self.subject_address(subject), session_of(subject)
        path = (name, self.subject_address(session)) if session else (name,)
        epoch, secret = self._remembered(name)
        if secret is None:
            secret = self._fetched(name)
            if secret is None:
                self._refuse_erased(*path)
                secret = self._created(name)
            try:
                self._refuse_erased(*path)  # asked last: an erasure either sees this key, or is seen here
            except Erased as error:
                self.destroy_key_at(name, who=error.who, when=error.when, why=error.why)
                raise
            self._remember(name, secret, epoch)
        return DataKey(name, secret)

    def known_key(self, name: str) -> DataKey:
        """The key with this subject address; raises `Erased` or `ObjectMissing` where there is none (any more)."""
        epoch, secret = self._remembered(name)
        if secret is None:
            secret = self._fetched(name)
            self._refuse_erased(name)
            if secret is None:
                raise ObjectMissing(names.data_key_name(self.tenant, name))
            self._remember(name, secret, epoch)
        return DataKey(name, secret)

    def _refuse_erased(self, *path: str) -> None:
        """Raise `Erased` where one of these subjects was forgotten."""
        for name in dict.fromkeys(path):
            tombstone = self.tombstone(name)
            if tombstone is not None:
                what = f"content of subject {name[:16]}…"
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
        """The key, and as of which erasure."""
        epoch = self._erasures()
        with self._lock:
            if epoch != self._epoch:
                self._secrets.clear()
                self._epoch = epoch
            return epoch, self._secrets.get(name)

    def _remember(self, name: str, secret: bytes, epoch: int) -> None:
        with self._lock:
            if epoch != self._epoch:
                return  # somebody was forgotten since it was read
            self._secrets[name] = secret
            while len(self._secrets) > MAX_KEYS_IN_MEMORY:
                del self._secrets[next(iter(self._secrets))]

    # -- content ------------------------------------------------------------------------------------------------

    def encrypt(self, key: DataKey, data: bytes, context: bytes) -> bytes:
        """Ciphertext that only this subject's key opens, and only in this context."""
        return encrypt(key.secret, data, context, secrets.token_bytes(NONCE_BYTES))

    def decrypt(self, key: DataKey, data: bytes, context: bytes) -> bytes:
        """The inverse of `encrypt`; raises `Damaged`."""
        return decrypt(key.secret, data, context)

    def put(self, subject: str, kind: str, data: bytes, *, compress: bool = False) -> str:
        """Keep content for good; its address. The same content of the same subject is kept once.

        `compress` it first where that saves room; its address stays that of the content, whatever compressed it.
        Raises `Damaged` where what stands there already cannot be read: what was put is there to be read.
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
        """The content with this address, decrypted and checked."""
        return self.entry(address).data

    def entry(self, address: str) -> VaultBlob:
        """The content with this address, and whose it is."""
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
        """Write the tombstone, then destroy the key. A repeat finishes it after a crash and keeps the tombstone."""
        return self.destroy_key_at(self.subject_address(subject), who=who, when=when, why=why)

    def destroy_key_at(
        self, name: str, *, who: str, when: str, why: str, held: Mapping[str, Any] | None = None
    ) -> Tombstone:
        """Like `destroy_key`, for a subject known by its address alone; `held` as in `Tombstone`."""
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
        """Create an object; what stands there where it had to be read back."""
        return put_once(
            self.objects, key, body, commit_id=address[:16], mine=body.__eq__, patience=self._patience
        ).found

    def discard(self, address: str) -> None:
        """Delete content whose subject stays: it holds words of somebody else, who was forgotten."""
        self.objects.delete(names.blob_name(self.tenant, address))

    def finish_destroying(self, name: str) -> None:
        """Destroy a key that is left because an erasure was cut off after its tombstone."""
        key = names.data_key_name(self.tenant, name)
        with suppress(ObjectMissing):
            self.objects.get(key)
            self.objects.delete(key)

    def holds_key(self, name: str) -> bool:
        """Whether the object store has a key of the subject with this address, readable or not, forgotten or not."""
        try:
            self.objects.get(names.data_key_name(self.tenant, name))
        except ObjectMissing:
            return False
        return True

    def is_erased(self, name: str, *, damaged: bool) -> bool:
        """Whether a tombstone of the subject is there; `damaged`: what a damaged one counts for."""
        try:
            return self.tombstone(name) is not None
        except (Damaged, UnsupportedVersion):
            return damaged

    def tombstone(self, name: str) -> Tombstone | None:
        """The tombstone of the subject with this address, if it was forgotten."""
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
        """Addresses of the subjects forgotten in this tenant, in order; costs a listing."""
        for info in self.objects.list(names.tombstone_name(self.tenant, "").removesuffix(".json")):
            name = info.key.rpartition("/")[2].removesuffix(".json")
            if _is_address(name):
                yield name

    def forget_secret(self, name: str) -> None:
        """Drop a key from memory, because another process has erased its subject."""
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
