"""The configuration file of people who may approve, reject and operate, and the keys with which they sign.

    salt: 8f0c…                     # random hex, 16 bytes and more, made once
    actors:
      ada: {roles: [reviewer], key: 3b1f…}
      ben: {roles: [reviewer, operator], key: 90aa…, by: ada, signature: 5c0e…}
    removed:
      eve: {key: 77b2…, by: ada, signature: 1d9f…}

People in the first version of the file need no signature. Later a reviewer signs every addition, removal and change of
key or roles (`signed_person`), and the store accepts no other change (`ctxsteward.store` `people`).

`key` is a public Ed25519 key in hex. The private key is derived from a person's token (scrypt, with the salt), so a
token both identifies its owner and signs. File and store hold public keys, which check signatures and cannot make any.
A person may also use a key of their own (`KeySigner`). Deriving a key costs one scrypt, 16 MB.

Raises `InputError` (file, line, key, what was found, what to do), `InputTooLarge`, `ActionRefused`.
Source: RFC 8032 (Ed25519), RFC 7914 (scrypt).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, StrictStr, model_validator

from ctxsteward.schemas import InputError
from ctxsteward.schemas.profile_changes import Who
from ctxsteward.store.names import skeleton, unseen
from ctxsteward.store.profiles.people import PersonStatement, statement_data
from ctxsteward.store.strict_yaml import DocumentKind, parse_document, read_document

Role = Literal["reviewer", "operator"]
"""reviewer: approves and rejects. operator: promotes by hand and rolls back."""
Refusal = Literal[
    "unknown_actor",
    "wrong_token",
    "wrong_role",
    "author",
    "same_person",
    "unknown_request",
    "changed",
    "stale",
    "expired",
    "rejected",
    "not_enrolled",
]

MIN_TOKEN_CHARS = 16
MAX_CONFIG_BYTES = 64 * 1024
_SCRYPT = {"n": 1 << 14, "r": 8, "p": 1, "maxmem": 64 << 20, "dklen": 32}

PublicKey = Annotated[StrictStr, Field(pattern=r"^[0-9a-f]{64}$")]


class ActionRefused(InputError):
    """The person may not do this; `reason` is a stable code."""

    def __init__(self, reason: Refusal, text: str) -> None:
        self.reason = reason
        super().__init__(text)


class Actor(BaseModel):
    """One person."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    roles: Annotated[tuple[Role, ...], Field(min_length=1)]
    key: PublicKey
    replaces: PublicKey | None = None
    """The person's earlier key."""
    by: Who | None = None
    """The reviewer who signed this entry."""
    signature: StrictStr | None = None


class RemovedActor(BaseModel):
    """A person who was removed."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    key: PublicKey
    by: Who
    signature: StrictStr


class Actors(BaseModel):
    """All people with a role."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    salt: Annotated[StrictStr, Field(pattern=r"^(?:[0-9a-f]{2}){16,64}$")]
    actors: Annotated[dict[Who, Actor], Field(max_length=1_000)]
    removed: Annotated[dict[Who, RemovedActor], Field(max_length=1_000)] = {}

    @classmethod
    def load(cls, path: str | Path) -> Actors:
        """Read a YAML file."""
        return read_document(path, cls, _FORM)

    @classmethod
    def from_yaml(cls, text: str, source: str = "actors") -> Actors:
        """Read YAML text; `source` names it in errors."""
        return parse_document(text, cls, _FORM, source)

    @model_validator(mode="after")
    def _have_names_of_their_own(self) -> Actors:
        names: dict[str, str] = {}
        for name in self.actors:
            if (char := unseen(name)) is not None:
                raise ValueError(f"{name!r} holds {char}, which nobody can see")
            other = names.setdefault(skeleton(name), name)
            if other != name:
                raise ValueError(f"{name!r} looks like {other!r}; two people need two names that can be told apart")
        return self

    @model_validator(mode="after")
    def _have_keys_of_their_own(self) -> Actors:
        keys: dict[str, str] = {}
        for name, actor in self.actors.items():
            other = keys.setdefault(actor.key, name)
            if other != name:
                raise ValueError(f"{name!r} has the key of {other!r}; two people need two keys")
        return self

    def named(self, name: str) -> Actor:
        """Return the actor with this name; raises `ActionRefused`."""
        actor = self.actors.get(name)
        if actor is None:
            known = ", ".join(sorted(self.actors)) or "nobody"
            raise ActionRefused("unknown_actor", f"actor {name!r:.80} is not in the configuration; it knows {known}")
        return actor

    def owner(self, signer: Signer, name: str | None = None) -> str:
        """Return the name of the actor with the signer's key; raises `ActionRefused` if they claim another `name`."""
        claimed = None if name is None else self.named(name)
        owner = next((who for who, actor in self.actors.items() if hmac.compare_digest(actor.key, signer.key)), None)
        if owner is None or (claimed is not None and owner != name):
            whose = f"actor {name!r}" if claimed else "any actor"
            raise ActionRefused("wrong_token", f"the token is not that of {whose}; use your own, or configure it")
        return owner

    def whose(self, signer: Signer, role: Role, name: str | None = None) -> str:
        """Return the name of the actor with the signer's key, who must have this role."""
        owner = self.owner(signer, name)
        if role not in self.actors[owner].roles:
            raise ActionRefused("wrong_role", f"actor {owner!r} is no {role}; a {role} must do this")
        return owner


NOBODY = Actors(salt="00" * 16, actors={})
"""No actors: requests that need a person wait."""


class Signer(Protocol):
    """The private key of a person."""

    @property
    def key(self) -> str:
        """The public key, in hex."""

    def sign(self, data: bytes) -> str:
        """Return the signature in hex."""


class KeySigner:
    """Sign with 32 secret bytes."""

    def __init__(self, secret: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._private = Ed25519PrivateKey.from_private_bytes(secret)

    @property
    def key(self) -> str:
        return self._private.public_key().public_bytes_raw().hex()

    def sign(self, data: bytes) -> str:
        return self._private.sign(data).hex()


def token_signer(token: str, salt: str) -> KeySigner:
    """Derive the key of a token; raises `InputError` for a token that is short enough to guess."""
    if len(token) < MIN_TOKEN_CHARS:
        raise InputError(f"a token of {len(token)} characters; use a random one of at least {MIN_TOKEN_CHARS}")
    return KeySigner(hashlib.scrypt(token.encode(), salt=bytes.fromhex(salt), **_SCRYPT))


def signed_person(
    salt: str, name: str, actor: Actor | None, before: Actor | None, by: str, signer: Signer
) -> PersonStatement:
    """Sign, as a reviewer, that a person has these roles and this key, or (`actor` None) that they were removed."""
    roles, key = (actor.roles, actor.key) if actor else ((), None)
    replaces = before.key if before else None
    signature = signer.sign(statement_data(salt, name, roles, key, replaces))
    return PersonStatement(who=name, roles=roles, key=key, replaces=replaces, by=by, signature=signature)


def statements(actors: Actors) -> Iterator[PersonStatement]:
    """Yield the signed statements of a file: first people added or changed, then people removed."""
    for name, actor in actors.actors.items():
        if actor.by is not None and actor.signature is not None:
            yield PersonStatement(
                who=name,
                roles=actor.roles,
                key=actor.key,
                replaces=actor.replaces,
                by=actor.by,
                signature=actor.signature,
            )
    for name, gone in actors.removed.items():
        yield PersonStatement(who=name, roles=(), key=None, replaces=gone.key, by=gone.by, signature=gone.signature)


_FORM = DocumentKind(
    what="actors",
    max_bytes=MAX_CONFIG_BYTES,
    max_depth=5,
    expected="write a mapping with: salt, actors",
    hints={
        "salt": "write random hex of 16 bytes or more",
        "key": "write 64 lower-case hex digits",
        "roles": "write reviewer, operator, or both",
    },
)
