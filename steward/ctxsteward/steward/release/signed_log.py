"""A chain of what people said, with their signatures: challengers' reviews and verdicts on records are views of one.

    steward/<tenant>/<profile>/<folder>/   chain of {"schema_version": 1, "kind", …, "signature"?}

A signature is over a purpose, the tenant, the profile and the fields that a view names, so it serves nothing else.
Raises `ActionRefused`, and what `Chain` raises. Source: RFC 8032 (Ed25519).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Literal

from ctxsteward.envelope.store import Store
from ctxsteward.schemas import UnsupportedVersion, VersionTaken
from ctxsteward.store.crypto.addresses import address_of
from ctxsteward.store.names import numbered, steward_folder
from ctxsteward.store.profiles.meta_records import canonical

from .actors import NOBODY, Actors, Signer, is_signed, token_signer

VERSION = 1

Verdict = Literal["approve", "reject"]
Body = dict[str, Any]


class SignedLog:
    """One chain of one profile."""

    purpose: bytes
    """What a signature is for."""
    fields: tuple[str, ...]
    """Of a body: what is signed."""
    folder_name: str
    link_name: str
    """Names the id of a commit."""

    def __init__(self, store: Store, profile: str, tenant: str = "default", *, actors: Actors = NOBODY) -> None:
        self.profile, self.tenant, self.actors = profile, tenant, actors
        self.folder = steward_folder(tenant, store.profiles(profile, tenant=tenant).name, self.folder_name)
        self._chain = store.chain(self.folder, tenant=tenant)
        self._key = store.keys.address_key(tenant)

    def links(self) -> Iterator[tuple[int, Body]]:
        """What every link says, by its number."""
        for link in self._chain.links():
            if link.body.get("schema_version") != VERSION:
                raise UnsupportedVersion(numbered(self.folder, link.number), link.body.get("schema_version"), VERSION)
            yield link.number, link.body

    def reviewer(self, by: str | Signer, who: str | None) -> tuple[str, Signer]:
        """Name and signer of a reviewer, by a token or another signer; `who` is who they say they are."""
        signer = token_signer(by, self.actors.salt) if isinstance(by, str) else by
        return self.actors.whose(signer, "reviewer", who), signer

    def signed(self, body: Body, signer: Signer) -> Body:
        """The body with its signature."""
        return {"schema_version": VERSION, **body, "signature": signer.sign(self._data(body))}

    def is_by_reviewer(self, body: Body) -> bool:
        """Whether somebody signed this who may still review."""
        actor = self.actors.actors.get(body["who"])
        if actor is None or "reviewer" not in actor.roles:
            return False
        return is_signed(actor.key, body["signature"], self._data(body))

    def append(self, body: Body, same: Callable[[Body], bool] | None = None) -> int:
        """Commit a link, unless one that says the same stands there; its number. None: the same is the same bytes."""
        data = json.dumps(body, sort_keys=True).encode()
        commit_id = address_of(self._key, self.folder, self.link_name, data)
        while True:
            links = list(self._chain.links())
            for link in links:
                if same(link.body) if same else link.commit_id == commit_id:
                    return link.number
            try:
                return self._chain.append(links[-1] if links else None, body, commit_id=commit_id).number
            except VersionTaken:
                continue

    def _data(self, body: Body) -> bytes:
        return self.purpose + b"\x00" + canonical([self.tenant, self.profile, *(body[name] for name in self.fields)])
