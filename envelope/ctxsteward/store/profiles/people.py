"""The public keys of the people of a profile, stored in a chain, and the reviewer who vouched for each.

    steward/<tenant>/<profile>/people/   chain of
      {"kind": "founded", "salt", "people": {name: {"roles", "key"}}, "spent": [key], "versions"}
      {"kind": "enrolled", "who", "roles", "key", "replaces", "by", "signature"}
      {"kind": "removed", "who", "key", "by", "signature"}

The first link is written when people are first needed, from the file of actors that the operator has configured. After
that the file alone changes nothing: to add or remove a person, or to change a key or role, needs the signature of an
enrolled reviewer. The first link also has the number of versions that the profile had then (`versions`). People whose
keys were never stored may have approved those versions.

A statement's signature covers the key that it replaces. A signature is accepted once, and a key that was replaced or
removed (`spent`) is never enrolled again. So an old statement cannot be repeated.

Raises `Unapproved`, and what `Chain` raises. Source: the state design (trust is raised by a signature of a person).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import Damaged, UnsupportedVersion, VersionTaken

from ..backend import Backend
from ..crypto.hash_chain import Link
from ..crypto.keyring import address_of
from ..crypto.signatures import is_signed, signed_data
from ..names import numbered, skeleton, steward_folder
from .version_codec import canonical

PEOPLE_VERSION = 1
PURPOSE = b"ctxsteward people 1"
REVIEWER = "reviewer"


class EnrolledPerson(NamedTuple):
    """The roles and the public key of an enrolled person."""

    roles: tuple[str, ...]
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonStatement:
    """A reviewer's signed statement about a person; `key` None removes the person."""

    who: str
    roles: tuple[str, ...]
    key: str | None
    replaces: str | None
    """The person's previous key, or None for a new person."""
    by: str
    signature: str

    def is_signed_with(self, key: str, salt: str) -> bool:
        """Return whether this key has signed the statement, for the file of actors with this salt."""
        return is_signed(key, self.signature, statement_data(salt, self.who, self.roles, self.key, self.replaces))


def statement_data(salt: str, who: str, roles: Iterable[str], key: str | None, replaces: str | None) -> bytes:
    """Return the signed bytes of a statement about a person.

    The salt of the file of actors replaces the tenant in them, because one file serves several tenants and profiles.
    """
    return signed_data(PURPOSE, salt, "", [who, sorted(roles), key, replaces])


class PeopleRoll:
    """Everybody who is or was enrolled, read from the links of the chain, each link checked."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.now: dict[str, EnrolledPerson] = {}
        self.keys: dict[str, list[str]] = {}
        """All keys that a person had as a reviewer, by name."""
        self.spent: set[str] = set()
        """Keys that were replaced or removed."""
        self.signatures: set[str] = set()
        """Signatures of the accepted statements."""
        self.versions: int = 0
        """Number of versions that the profile had when its people were enrolled."""
        self.salt: str = ""

    @property
    def is_founded(self) -> bool:
        return bool(self.salt)

    def take(self, link: Link) -> None:
        """Apply a link. Raises `Damaged` if no reviewer enrolled before it has signed it."""
        where, body = numbered(self.folder, link.number), link.body
        if body.get("schema_version") != PEOPLE_VERSION:
            raise UnsupportedVersion(where, body.get("schema_version"), PEOPLE_VERSION)
        try:
            if body["kind"] == "founded":
                self._found(where, link.number, body)
            else:
                why = self.obstacle(statement_of(body))
                if why is not None:
                    raise Damaged(f"{where}: {why}")
                self._apply(statement_of(body))
        except (KeyError, TypeError, ValueError) as error:
            raise Damaged(f"{where}: it is no statement about people ({error})") from error

    def obstacle(self, statement: PersonStatement) -> str | None:
        """Return why a statement is not valid, or None if it is valid."""
        who = statement.who
        if statement.signature in self.signatures:
            return f"the statement about {who!r} was taken before"
        signer = self.now.get(statement.by)
        if signer is None or REVIEWER not in signer.roles:
            return f"{who!r} is vouched for by {statement.by!r}, who is no reviewer enrolled in this store"
        if not statement.is_signed_with(signer.key, self.salt):
            return f"the statement about {who!r} is not signed with the key of {statement.by!r}"
        standing = self.now.get(who)
        if (standing.key if standing else None) != statement.replaces:
            return f"the statement about {who!r} replaces another key than {who!r} has"
        if statement.key is None:
            reviewers = [name for name, person in self.now.items() if REVIEWER in person.roles and name != who]
            return None if reviewers else f"{who!r} is the last reviewer, and cannot be removed"
        if statement.key in self.spent:
            return f"the key of {who!r} was replaced or removed before; make a new one"
        same = next((name for name, person in self.now.items() if person.key == statement.key and name != who), None)
        if same is not None:
            return f"{who!r} has the key of {same!r}"
        alike = next((name for name in self.now if name != who and skeleton(name) == skeleton(who)), None)
        return None if alike is None else f"{who!r} looks like {alike!r}"

    def take_over(self, statements: Iterable[PersonStatement]) -> list[PersonStatement]:
        """Apply the valid statements that were not accepted before; return them in an order in which they are valid."""
        waiting = [statement for statement in statements if statement.signature not in self.signatures]
        taken: list[PersonStatement] = []
        while (
            sound := next((statement for statement in waiting if self.obstacle(statement) is None), None)
        ) is not None:
            self._apply(sound)
            waiting.remove(sound)
            taken.append(sound)
        return taken

    def _found(self, where: str, number: int, body: Mapping[str, Any]) -> None:
        if number != 1:
            raise Damaged(f"{where}: the people of a profile are founded once, by its first link")
        self.salt, self.versions = str(body["salt"]), int(body["versions"])
        self.spent.update(body["spent"])
        for who, person in body["people"].items():
            self._enrol(who, EnrolledPerson(tuple(person["roles"]), person["key"]))

    def _apply(self, statement: PersonStatement) -> None:
        self.signatures.add(statement.signature)
        if statement.replaces is not None and statement.replaces != statement.key:
            self.spent.add(statement.replaces)
        if statement.key is None:
            del self.now[statement.who]
        else:
            self._enrol(statement.who, EnrolledPerson(statement.roles, statement.key))

    def _enrol(self, who: str, person: EnrolledPerson) -> None:
        self.now[who] = person
        if REVIEWER in person.roles:
            self.keys.setdefault(who, []).append(person.key)


def statement_of(body: Mapping[str, Any]) -> PersonStatement:
    """Return the statement in a link's body."""
    removed = body["kind"] == "removed"
    return PersonStatement(
        who=body["who"],
        roles=() if removed else tuple(body["roles"]),
        key=None if removed else body["key"],
        replaces=body["key"] if removed else body["replaces"],
        by=body["by"],
        signature=body["signature"],
    )


class PeopleRegister:
    """The chain of people of one profile."""

    def __init__(self, store: Backend, profile: str, tenant: str = "default") -> None:
        self.folder: str = steward_folder(tenant, profile, "people")
        self._chain = store.chain(self.folder, tenant=tenant)
        self._key = store.keys.address_key(tenant)

    def read(self) -> PeopleRoll:
        """Read the roll and check every link. Raises `Damaged` for a link that is not properly signed."""
        return self._read()[0]

    def found(
        self, salt: str, people: Mapping[str, EnrolledPerson], *, versions: int, spent: Iterable[str] = ()
    ) -> PeopleRoll:
        """Enrol the first people; write nothing if some are enrolled already."""
        enrolled, last = self._read()
        if enrolled.is_founded:
            return enrolled
        if not any(REVIEWER in person.roles for person in people.values()):
            raise InputError("nobody in the file of actors is a reviewer; add one first")
        named = {who: {"roles": list(person.roles), "key": person.key} for who, person in sorted(people.items())}
        body = {"kind": "founded", "salt": salt, "people": named, "spent": sorted(spent), "versions": versions}
        self._append(last, body)
        return self.read()

    def state(self, statement: PersonStatement) -> PeopleRoll:
        """Commit a valid statement. Raises `InputError` with the reason if it is not valid."""
        while True:
            enrolled, last = self._read()
            why = enrolled.obstacle(statement)
            if why is not None:
                raise InputError(f"{self.folder}: {why}")
            body = {"who": statement.who, "by": statement.by, "signature": statement.signature}
            if statement.key is None:
                body |= {"kind": "removed", "key": str(statement.replaces)}
            else:
                body |= {"kind": "enrolled", "key": statement.key}
            more = {} if statement.key is None else {"roles": list(statement.roles), "replaces": statement.replaces}
            if self._append(last, {**body, **more}):
                return self.read()

    def _read(self) -> tuple[PeopleRoll, Link | None]:
        enrolled, last = PeopleRoll(self.folder), None
        for last in self._chain.links():
            enrolled.take(last)
        return enrolled, last

    def _append(self, after: Link | None, body: Mapping[str, Any]) -> bool:
        """Commit a link; return False if another writer was first.

        The commit id is a function of the previous link and the body, so a repeated attempt commits once.
        """
        whole = {"schema_version": PEOPLE_VERSION, **body}
        data = canonical([after.mac if after else "", whole])
        try:
            self._chain.append(after, whole, commit_id=address_of(self._key, self.folder, "people", data))
        except VersionTaken:
            return False
        return True
