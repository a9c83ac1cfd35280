"""A chain: numbered links, one object each, created once and never changed.

    FOLDER/000000000001.json   {"schema_version": 1, "number": 1, "commit_id": …, "epoch": …, "parent": "",
    FOLDER/000000000002.json    "body": {…}, "mac": …}

A link is committed by creating the object with the next number (compare-and-swap on the head, for any store that can
create if absent). `parent` is the code of the link before, so history cannot be rewritten; `mac` is HMAC-SHA-256 over
folder and canonical JSON, so no link can be changed, moved to another number or brought from another chain. A *witness*
remembers the highest number seen: a chain that ends before it has lost its tail.

Finding the newest link costs one listing from the highest number known on (the witness's, or `after`), whatever the
length of the history; reading it one more request. What a listing leaves out at the end is found by whoever commits
there, and noted, or reads on (`links`), which does not ask for a listing as long as there is a next link.

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
"""Major version of a link's form; fields may be added within it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One commit of a chain."""

    number: int
    commit_id: str
    """Made by the writer before its first try."""
    epoch: int
    """Of the writer."""
    parent: str
    """Code of the link before; empty for the first."""
    body: dict[str, Any]
    mac: str


class ChainWitness(Protocol):
    """Remembers outside the store how far it had got."""

    def seen(self, name: str) -> int:
        """The highest number noted under this name; 0: none."""

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
        """The link with this number, its code checked."""
        return self._decode(number, self._objects.get(numbered(self.folder, number)))

    def present(self, number: int) -> Link:
        """The link with this number, which was committed: `Damaged` where it is missing.

        A listing that runs beside commits may leave a link out; reading it does not.
        """
        try:
            return self.read(number)
        except ObjectMissing:
            raise Damaged(f"{self.folder}: link {number} is missing though it was committed; run store fsck") from None

    def last_number(self, after: int = 0) -> int:
        """Number of the newest link, known to be `after` or later; 0: none. `Damaged` where one is missing."""
        seen = 0 if self._witness is None else self._witness.seen(self.folder)
        known = max(after, seen)  # asked before listing: who appends meanwhile does not make us doubt the listing
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
        """The newest link, known to be `after` or later; None where there is none."""
        last = self.last_number(after)
        return self.present(last) if last else None

    def links(self, start: int = 1) -> Iterator[Link]:
        """Yield links from `start` on, each checked against the one before."""
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
        """Every link that can be read by itself, in order; in the place of one that cannot, what is wrong with it."""
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
        """Commit `body` right after `parent`, the newest link as the caller knows it, and return what stands there.

        Given a `commit_id` again after the same parent, the commit is found and not repeated. `StoreUnavailable` says
        that nothing of this call landed, and nothing about earlier calls.
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
        self._note(number)  # one that is taken, too: whoever tries again looks behind it, whatever a listing says
        if not landing.is_ours:
            raise VersionTaken(self.folder, number)
        return stands

    def _note(self, number: int) -> None:
        if self._witness is not None:
            with suppress(StoreError):  # a commit has landed whether or not it can be noted
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
    """Whether a link was committed right after this one."""
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
    """A link's fields; None where the bytes are not exactly what a link is written as."""
    try:
        document = json.loads(data)
        canonical = isinstance(document, dict) and isinstance(document.get("mac"), str) and _canonical(document) == data
    except (ValueError, RecursionError):
        return None
    return document if canonical else None


def _commit_id(data: bytes) -> str | None:
    """Whose commit stands there; None where it is no link."""
    document = _read(data)
    found = document.get("commit_id") if document else None
    return found if isinstance(found, str) else None
