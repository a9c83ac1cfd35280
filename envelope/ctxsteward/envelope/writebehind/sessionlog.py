"""A session's chain with its bodies read and written: what the object store holds of a session's journal.

Every record read has been checked: it decrypts under its subject's key at this place, its code is right, segments
follow one another without a gap, and the id in the first link is this session's. Raises what `Chain` and `Vault` raise.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ctxsteward.schemas import Damaged, Erased, Finding, ObjectMissing, UnsupportedVersion

from .. import records
from ..chain import Chain, Link
from ..commit import Patience
from ..erasers import Reached
from ..keyring import Keys
from ..keys import subject_of
from ..objects.names import session_folder
from ..objects.port import ObjectStore
from ..stores.port import Drained, Manifest, Record, SessionKey
from ..vault import Vault, derived_subject
from . import segments
from .segments import Part, Rewrite, Segment, Takeover

_DERIVED_HELD = 64
"""Generations of derived keys that may be in memory."""


class Entry(NamedTuple):
    """A link and what it holds."""

    link: Link
    part: Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """What a chain holds behind a point that a journal had got to."""

    start: int
    """Position of the first record."""
    records: tuple[Record, ...]
    manifests: tuple[Manifest, ...]
    rewritten: dict[int, Record]
    """Replacements of records before `start`."""
    head: Link | None
    """The chain's newest link; None where there is none."""
    owner: str | None
    """Journal that owns the session; None where that has not changed behind the point."""
    links: int
    """Links behind the point."""


def unreached(field: str, error: object) -> Finding:
    """Says which session, or chain, could not be read, and why."""
    return Finding(kind="session_unreachable", field=field, text=f"it cannot be read and is passed over: {error}")


class SessionLog:
    """The chain of one session."""

    def __init__(
        self, objects: ObjectStore, keys: Keys, vault: Vault, key: SessionKey, *, patience: Patience | None = None
    ) -> None:
        self.key = key
        self.folder = session_folder(key.tenant, vault.subject_address(key.session))
        self._vault = vault
        self._address_key = keys.address_key(key.tenant)
        self._chain = Chain(objects, self.folder, self._address_key, patience=patience)

    def tail(self, number: int) -> int:
        """Number of the newest link; `Damaged` where link `number`, which was there, is gone."""
        return self._chain.last_number(after=number)

    def link(self, number: int) -> Link:
        return self._chain.read(number)

    def commit(self, parent: Link | None, part: Part, *, epoch: int, generation: int = 0) -> Link:
        """Write the next link. Raises `VersionTaken` where another one has this number.

        The commit id names owner, place and bytes: repeating these bytes finds them again, and the same records in
        another link (encryption is never the same twice) are known again by their content when that one is read.
        """
        body = segments.encode(part, self._vault, self.folder, self.key.session, generation=generation)
        number = parent.number + 1 if parent else 1
        named = json.dumps([self.folder, number, epoch, body], sort_keys=True, ensure_ascii=False)
        commit_id = hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self._chain.append(parent, body, epoch=epoch, commit_id=commit_id)

    def subjects(self) -> Reached:
        """Addresses of the subjects under whose keys its records are encrypted, as links that can be read name them."""
        names, findings = dict[str, None](), list[Finding]()
        for link in self._chain.readable():
            if isinstance(link, Damaged):
                findings.append(unreached(self.key.session, link))
            else:
                names |= dict.fromkeys(map(str, link.body.get("keys", ())))
        return Reached(tuple(names), tuple(findings))

    def is_there(self) -> bool:
        """Whether it has a first link; asked for by its name."""
        try:
            self._chain.read(1)
        except ObjectMissing:
            return False
        except (Damaged, UnsupportedVersion):
            pass
        return True

    def entries(self, start: int = 1) -> Iterator[Entry]:
        """Links from number `start` on, decrypted."""
        for link in self._chain.links(start):
            yield Entry(link, segments.decode(link.body, self._vault, self.folder))

    def behind(self, drained: Drained) -> Incoming:
        """All that came into the chain behind this point. Raises `Erased` where the session was forgotten."""
        found: list[Record | None] = []
        manifests: dict[str, Manifest] = {}
        rewritten: dict[int, Record] = {}
        head = owner = None
        links = 0
        for head, part in self.entries(drained.number + 1):
            links += 1
            if isinstance(part, Rewrite):
                self._rewrite(part, drained.position, found, rewritten)
            else:
                owner = part.owner
                self._check_place(head, part, drained.position + len(found))
                if isinstance(part, Segment):
                    found += part.records
            if not isinstance(part, Takeover):
                manifests |= {manifest.address: manifest for manifest in part.manifests}
        if head is None and drained.number:
            head = self.link(drained.number)
        return Incoming(
            start=drained.position,
            records=self._checked(drained.position, found),
            manifests=tuple(manifests.values()),
            rewritten=rewritten,
            head=head,
            owner=owner,
            links=links,
        )

    def _rewrite(self, part: Rewrite, start: int, found: list[Record | None], rewritten: dict[int, Record]) -> None:
        for position, record in part.records.items():
            if position >= start + len(found):
                raise Damaged(f"{self.folder}: a rewrite of position {position}, which is not there; run store fsck")
            if position >= start:
                found[position - start] = record
            elif record is not None:
                records.check(self._address_key, self.key.session, position, record)
                rewritten[position] = record
        self._forget_secrets(part)

    def _forget_secrets(self, part: Rewrite) -> None:
        """Keys of this session that we hold may have been destroyed: ask for them anew."""
        named = {derived_subject(self.key.session, generation) for generation in range(_DERIVED_HELD)}
        for record in part.records.values():
            if record is not None and record.kind == "message":
                named.add(subject_of(self.key.session, json.loads(record.body).get("principal")))
        for subject in named:
            self._vault.forget_secret(self._vault.subject_address(subject))

    def _check_place(self, link: Link, part: Segment | Takeover, length: int) -> None:
        here = part.start if isinstance(part, Segment) else part.length
        if here != length:
            raise Damaged(f"{self.folder}: link {link.number} is for position {here}, not {length}; run store fsck")
        if link.number == 1:
            named = part.session if isinstance(part, Segment) else ""
            if named is None:
                self.check_not_erased()
            if named != self.key.session:
                raise Damaged(f"{self.folder}: its first link is not session {self.key.session!r}'s; run store fsck")

    def _checked(self, start: int, found: list[Record | None]) -> tuple[Record, ...]:
        whole: list[Record] = []
        for position, record in enumerate(found, start):
            if record is None:
                self.check_not_erased()
                raise Damaged(
                    f"session {self.key.session!r}: the key of the record at position {position} is gone and nothing "
                    "stands in its place; finish the erasure with `ctxsteward store forget`, or restore a backup"
                )
            records.check(self._address_key, self.key.session, position, record)
            whole.append(record)
        return tuple(whole)

    def check_not_erased(self) -> None:
        """Raise `Erased` where the session as a whole was forgotten."""
        buried = self._vault.tombstone(self._vault.subject_address(subject_of(self.key.session, None)))
        if buried is not None:
            raise Erased(f"session {self.key.session!r}", who=buried.who, when=buried.when, why=buried.why)
