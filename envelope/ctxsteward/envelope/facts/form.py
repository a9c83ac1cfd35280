"""The form of a shelf's link: one audience's facts as references, each under a data key of its own.

    {"schema_version": 1, "who": …, "when": …, "why": …,
     "records": [{"blob", "key", "rests": [subject address, …]}, …]}

Order is that of value, the most valuable first. `blob` is the fact as canonical JSON in the vault, `key` the address of
the subject whose key opens it, `rests` the addresses of the sessions, and of the principals in them, whose words it
rests on: what must leave with them is told from links alone. Destroying one key takes one fact from every link.

A fact of a session lies under a subject of that session, so once it is forgotten no key can be made for one.
Raises what `Vault` raises. Source: the state design (text of several subjects lies under a key of its own).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from ctxsteward.schemas import Damaged, UnsupportedVersion

from ..chain import Link
from ..keys import AddressKey, address_of, subject_of
from ..objects.names import numbered
from ..slices import Kept, Shelf, canonical
from ..vault import Entry as VaultEntry
from ..vault import Vault
from .fact import Audience, Fact

VERSION = 1
"""Major version of a link's body; fields may be added within it."""
KIND = "fact"
_MARK = "\x01fact\x00"
"""In the name of every fact's subject."""


class Entry(NamedTuple):
    """A fact with its reference, not kept yet."""

    fact: Fact
    kept: Kept
    rests: tuple[str, ...]


class FactForm:
    """How one profile's facts are written and read."""

    def __init__(self, vault: Vault, key: AddressKey, profile: str) -> None:
        self.vault, self._key, self._profile = vault, key, profile
        self._shelf = Shelf(vault, key, profile)

    def entries(self, audience: Audience, facts: Iterable[Fact]) -> list[Entry]:
        """Facts with the references they have, or would have; asks nothing of the store."""
        return [self._entry(audience, fact) for fact in facts]

    def keep(self, audience: Audience, entry: Entry) -> None:
        """Put a fact into the vault; raises `Erased` where it, or its session, was forgotten."""
        self.vault.forget_secret(entry.kept.key)
        self.vault.put(_subject(self._profile, audience, entry.fact), KIND, _data(entry.fact))

    def fact(self, kept: Kept) -> Fact | None:
        """The fact again; None where it was erased. Fields of later versions are left out."""
        data = self._shelf.content(kept)
        return None if data is None else _read(kept, data)

    def body(self, entries: Sequence[Entry], note: Mapping[str, str]) -> dict[str, Any]:
        records = [{**entry.kept._asdict(), "rests": list(entry.rests)} for entry in entries]
        return {"schema_version": VERSION, **note, "records": records}

    def _entry(self, audience: Audience, fact: Fact) -> Entry:
        subject = _subject(self._profile, audience, fact)
        kept = Kept(address_of(self._key, subject, KIND, _data(fact)), self.vault.subject_address(subject))
        named = {source.session for source in fact.sources}
        named |= {subject_of(source.session, source.principal) for source in fact.sources}
        return Entry(fact, kept, tuple(sorted(map(self.vault.subject_address, named))))


def kept_in(link: Link, folder: str) -> list[Kept]:
    """References of a link, in order."""
    return [Kept(record["blob"], record["key"]) for record in records_of(link, folder)]


def records_of(link: Link, folder: str) -> list[dict[str, Any]]:
    """What a link says of its facts; raises `UnsupportedVersion`, `Damaged`."""
    major = link.body.get("schema_version")
    if major != VERSION:
        raise UnsupportedVersion(numbered(folder, link.number), major, VERSION)
    try:
        return [{name: record[name] for name in ("blob", "key", "rests")} for record in link.body["records"]]
    except (KeyError, TypeError) as error:
        raise Damaged(f"{numbered(folder, link.number)}: this program cannot read it; upgrade ctxsteward") from error


def _subject(profile: str, audience: Audience, fact: Fact) -> str:
    """The subject whose key a fact has; a part of its session, where it is for one."""
    of = audience.name if audience.kind == "session" else ""
    told = [profile, audience.kind, audience.name, fact.id, fact.text, [s.model_dump() for s in fact.sources]]
    return f"{of}{_MARK}{hashlib.sha256(canonical(told)).hexdigest()}"


def audiences_in(entry: VaultEntry) -> set[Audience]:
    """Whom a fact may be about, by what it rests on; none for content that is no fact, and never a project."""
    if _MARK not in entry.subject:
        return set()
    try:
        sources = _read(Kept("", ""), entry.data).sources
    except Damaged:
        return set()
    users = {Audience("user", source.principal) for source in sources if source.principal}
    return users | {Audience("session", source.session) for source in sources}


def _data(fact: Fact) -> bytes:
    return canonical(fact.model_dump(mode="json"))


def _read(kept: Kept, data: bytes) -> Fact:
    try:
        fields: dict[str, Any] = json.loads(data)
        return Fact(**{name: fields[name] for name in Fact.model_fields if name in fields})
    except (ValueError, TypeError, ValidationError) as error:
        raise Damaged(f"fact {kept.blob[:16]}… cannot be read by this program; upgrade ctxsteward") from error
