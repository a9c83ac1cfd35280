"""A chain: numbered links, one object each, created once and never changed.

    FOLDER/000000000001.json   {"schema_version": 1, "number": 1, "commit_id": …, "epoch": …, "parent": "",
    FOLDER/000000000002.json    "body": {…}, "mac": …}

To commit a link, create the object with the next number. That is a compare-and-swap on the head in any store that can
create if absent. `parent` is the code of the previous link, so history cannot be rewritten. `mac` is HMAC-SHA-256 over
folder and canonical JSON, so no link can be changed, moved to another number or copied from another chain. A *witness*
remembers the highest number seen: a chain that ends before that number has lost its tail.

Finding the newest link costs one listing that starts at the highest number known (the witness's, or `after`), for any
length of the history. Reading it costs one more request. If a listing omits links at the end, a commit finds the next
number taken and tells the witness; and `links` reads on by number, without a listing, while there is a next link.

Profile versions, writer epochs, snapshots and the segments of a session's journal are chains.
Raises `VersionTaken`, `OutcomeUnknown`, `ObjectMissing`, `Damaged`, `UnsupportedVersion`, `StoreUnavailable`.
Source: RFC 2104, RFC 8785 (canonical JSON; the numbers here are integers), the state design.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ctxsteward.schemas import StoreError
from ctxsteward.schemas.errors import Damaged, ObjectMissing, UnsupportedVersion, VersionTaken

from ..names import number_of, numbered
from ..objects.port import ObjectStore, Patience, list_twice, put_once
from .keyring import AddressKey

CHAIN_VERSION = 1
"""Major version of a link's format; it may gain fields within a version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One commit of a chain."""

    number: int
    commit_id: str
    """Id that the writer draws before its first attempt."""
    epoch: int
    """Epoch of the writer."""
    parent: str
    """Code of the previous link; empty for the first."""
    body: dict[str, Any]
    mac: str


class ChainWitness(Protocol):
    """A memory outside the store of the highest number of each chain."""

    def seen(self, name: str) -> int:
        """Return the highest number recorded under this name, or 0."""

    def see(self, name: str, number: int) -> None: ...


class Chain:
    """The links below one folder of an object store."""

    def __init__(
        self,
        objects: ObjectStore,
        folder: str,
        key: AddressKey,
        *,
        witness: ChainWitness | None = None,
        patience: Patience | None = None,
    ) -> None:
        self.folder = folder
        self._objects, self._witness = objects, witness
        self._secret = hmac.digest(key, b"ctxsteward chain 1", "sha256")
        self._patience = patience or Patience()

    def read(self, number: int) -> Link:
        """Return the link with this number, and check its code."""
        return self._decode(number, self._objects.get(numbered(self.folder, number)))

    def present(self, number: int) -> Link:
        """Return the link with this number, which was committed. Raises `Damaged` if it is missing.

        A listing that runs during commits may omit a link; a read by number finds it.
        """
        try:
            return self.read(number)
        except ObjectMissing:
            raise Damaged(f"{self.folder}: link {number} is missing though it was committed; run store fsck") from None

    def last_number(self, after: int = 0) -> int:
        """Return the number of the newest link, at least `after`; 0 if none. Raises `Damaged` if a link is missing."""
        seen = 0 if self._witness is None else self._witness.seen(self.folder)
        known = max(after, seen)  # before the listing, so that an append meanwhile does not contradict the listing
        last = max(known - 1, 0)
        for info in self._objects.list(f"{self.folder}/", after=numbered(self.folder, last) if last else ""):
            number = number_of(info.key)
            if number is None:
                continue
            for between in range(last + 1, number):
                self.present(between)
            last = number
        if last < known:
            self.present(known)
            last = known
        if last > seen:
            self._note(last)
        return last

    def head(self, after: int = 0) -> Link | None:
        """Return the newest link, whose number is at least `after`, or None if the chain is empty."""
        last = self.last_number(after)
        return self.present(last) if last else None

    def links(self, start: int = 1) -> Iterator[Link]:
        """Yield the links from `start` on, each checked against its predecessor."""
        before = self.read(start - 1) if start > 1 else None
        number = start
        while True:
            try:
                link = self.read(number)
            except ObjectMissing:
                if self.last_number(number - 1) < number:
                    return
                link = self.present(number)
            if not follows(link, before):
                raise Damaged(f"{self.folder}: link {number} does not follow link {number - 1}; run store fsck")
            yield link
            before, number = link, number + 1

    def readable(self) -> Iterator[Link | Damaged]:
        """Yield every link in order, each checked alone; in place of an unreadable link, yield its error."""
        numbers = map(number_of, list_twice(self._objects, f"{self.folder}/"))
        last, number = max((found for found in numbers if found is not None), default=0), 1
        while True:
            try:
                yield self.read(number)
            except ObjectMissing as error:
                if number > last:
                    return
                yield Damaged(f"{error.key} is missing; restore it from a backup")
            except (Damaged, UnsupportedVersion) as error:
                yield Damaged(str(error))
            number += 1

    def append(
        self, parent: Link | None, body: dict[str, Any], *, epoch: int = 0, commit_id: str | None = None
    ) -> Link:
        """Commit `body` right after `parent`, the newest link that the caller knows, and return the stored link.

        A second call with the same `commit_id` and parent finds the first commit and does not repeat it.
        `StoreUnavailable` means that this call wrote nothing; an earlier call may have.
        """
        number = parent.number + 1 if parent else 1
        link = self._sealed(number, commit_id or secrets.token_hex(16), epoch, parent.mac if parent else "", body)
        key, data = numbered(self.folder, number), _encode(link)
        landing = put_once(
            self._objects,
            key,
            data,
            commit_id=link.commit_id,
            mine=lambda found: _commit_id(found) == link.commit_id,
            patience=self._patience,
        )
        stands = self._decode(number, data if landing.found is None else landing.found)
        self._note(number)  # also if it is taken, so that the next attempt looks beyond it even if a listing omits it
        if not landing.is_ours:
            raise VersionTaken(self.folder, number)
        return stands

    def _note(self, number: int) -> None:
        if self._witness is not None:
            with suppress(StoreError):  # the commit is stored even if the witness fails
                self._objects.make_durable(numbered(self.folder, number))  # else a power cut may contradict the witness
                self._witness.see(self.folder, number)

    def _sealed(self, number: int, commit_id: str, epoch: int, parent: str, body: dict[str, Any]) -> Link:
        plain = Link(number=number, commit_id=commit_id, epoch=epoch, parent=parent, body=body, mac="")
        return replace(plain, mac=self._code(_document(plain)))

    def _code(self, document: dict[str, Any]) -> str:
        folder = self.folder.encode()
        data = len(folder).to_bytes(4, "big") + folder + _canonical(document)
        return hmac.digest(self._secret, data, "sha256").hex()

    def _decode(self, number: int, data: bytes) -> Link:
        key = numbered(self.folder, number)
        document = _read(data)
        if document is None:
            raise Damaged(f"{key}: it is not a link; restore it from a backup")
        mac = document.pop("mac")
        version = document.get("schema_version")
        if not hmac.compare_digest(mac.encode(), self._code(document).encode()):
            if isinstance(version, int) and version > CHAIN_VERSION:
                raise UnsupportedVersion(key, version, CHAIN_VERSION)
            raise Damaged(f"{key}: it is not what was committed; restore it from a backup")
        if version != CHAIN_VERSION:
            raise UnsupportedVersion(key, version, CHAIN_VERSION)
        if document["number"] != number:
            raise Damaged(f"{key}: it is link {document['number']}, not {number}; restore it from a backup")
        fields = {name: document[name] for name in ("number", "commit_id", "epoch", "parent", "body")}
        return Link(**fields, mac=mac)


def follows(link: Link, before: Link | None) -> bool:
    """Return whether `link` was committed right after `before`."""
    return link.parent == (before.mac if before else "")


def _document(link: Link) -> dict[str, Any]:
    return {
        "schema_version": CHAIN_VERSION,
        "number": link.number,
        "commit_id": link.commit_id,
        "epoch": link.epoch,
        "parent": link.parent,
        "body": link.body,
    }


def _encode(link: Link) -> bytes:
    return _canonical(_document(link) | {"mac": link.mac})


def _canonical(document: dict[str, Any]) -> bytes:
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return text.encode()


def _read(data: bytes) -> dict[str, Any] | None:
    """Return a link's fields, or None if the bytes are not a link's canonical JSON."""
    try:
        document = json.loads(data)
        canonical = isinstance(document, dict) and isinstance(document.get("mac"), str) and _canonical(document) == data
    except (ValueError, RecursionError):
        return None
    return document if canonical else None


def _commit_id(data: bytes) -> str | None:
    """Return the commit id of a stored link, or None if the bytes are not a link."""
    document = _read(data)
    found = document.get("commit_id") if document else None
    return found if isinstance(found, str) else None
