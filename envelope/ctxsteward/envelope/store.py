"""The store: where sessions live. `open_store("file:./.ctxsteward")`, `open_store("memory:")`.

What a caller holds is a `Store`; what a back end implements is a `Journal` (`stores.port`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ctxsteward.schemas import InputError, ReferenceNotFound, Wire
from ctxsteward.schemas.message import encode_wire

from .counting import Counter
from .events import Compacted, Head, from_record
from .fence import random_nonce
from .incoming import checked_name
from .profile import Profile
from .session import Session
from .stores.port import Journal, Record, SessionKey

DEFAULT_TOKENIZER = "o200k_base"
"""Counts stored with each message, unless a session is opened with another."""

__all__ = ["Journal", "Record", "SessionKey", "Store", "open_store"]


class Store:
    """Sessions and manifests of envelopes in one journal."""

    def __init__(self, journal: Journal, *, uri: str, draw_nonce: Callable[[], str] = random_nonce) -> None:
        self.journal = journal
        self.uri = uri
        self._draw_nonce = draw_nonce

    def session(
        self,
        id: str,
        *,
        tenant: str = "default",
        profile: Profile | None = None,
        tools: Sequence[Wire] | None = (),
        system: str | Sequence[str | Wire] | None = (),
        counter: Counter | None = None,
    ) -> Session:
        """Open a session, or create it. `system` and `tools` are the application's own, and trusted.

        A session keeps the profile it was created with. Raises `StoreError`, `InvalidMessage`.
        """
        key = SessionKey(checked_name("tenant", tenant), checked_name("session", id))
        if profile is not None and not isinstance(profile, Profile):
            raise InputError(f"profile is {type(profile).__name__}; pass Profile.load(path) or Profile.from_text(text)")
        session = Session(self.journal, key, partial(_counter, counter), self._draw_nonce)
        head = Head(
            profile=None if profile is None else profile.model_dump(mode="json"),
            system=_system(system),
            tools=_tools(tools or ()),
        )
        session.open(head)
        return session

    def at(self, tenant: str, id: str, position: int) -> Session:
        """A session as it was at a log position, for reading only."""
        session = Session(self.journal, SessionKey(tenant, id), partial(_counter, None), self._draw_nonce)
        session.load(upto=position)
        return session

    def exists(self, id: str, *, tenant: str = "default") -> bool:
        return self.journal.length(SessionKey(tenant, id)) > 0

    def sessions(self, *, tenant: str = "default") -> list[str]:
        return self.journal.sessions(tenant)

    def address(self, text: str, *, tenant: str = "default") -> str:
        """The whole address that these leading digits (8 and more) name; the text itself where they name none.

        Raises `InputError` where they name several.
        """
        if not 8 <= len(text) < 64 or not set(text) <= set("0123456789abcdef"):
            return text
        found = self.journal.matching(tenant, text)
        if len(set(found)) > 1:
            raise InputError(f"address {text}… is that of several records; write more of its digits")
        return found[0] if found else text

    def manifest(self, address: str, *, tenant: str = "default") -> dict[str, Any]:
        """The manifest of a built envelope; raises `ReferenceNotFound`."""
        body = self.journal.get_manifest(tenant, address)
        if body is None:
            raise ReferenceNotFound(address[:16] + "…", "", f"no envelope of tenant {tenant!r} has this address")
        manifest: dict[str, Any] = json.loads(body)
        return manifest

    def compaction(self, address: str, *, tenant: str = "default") -> Compacted:
        """The compaction with this address; raises `ReferenceNotFound`."""
        found = self.journal.find(tenant, address)
        if found is None:
            raise ReferenceNotFound(address[:16] + "…", "", f"no compaction of tenant {tenant!r} has this address")
        record = self.journal.read(SessionKey(tenant, found[0]), found[1], found[1] + 1)[0]
        event = from_record(record)
        assert isinstance(event, Compacted)
        return event

    def close(self) -> None:
        self.journal.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_store(uri: str) -> Store:
    """Open ``file:PATH`` (made if missing) or ``memory:``; raises `InputError`, `StoreError`."""
    scheme, separator, rest = uri.partition(":")
    if scheme == "memory" and separator and not rest:
        from .stores.memory import MemoryJournal

        return Store(MemoryJournal(), uri=uri)
    if scheme == "file" and rest:
        from .stores.file import FileJournal

        return Store(FileJournal(Path(rest)), uri=uri)
    raise InputError(f"store {uri!r} is none; write file:PATH or memory:")


def _counter(given: Counter | None) -> Counter:
    if given is not None:
        return given
    from .tokens import load_tokenizer

    return Counter(load_tokenizer(DEFAULT_TOKENIZER))


def _system(system: str | Sequence[str | Wire] | None) -> tuple[str, ...]:
    """The application's system texts; a provider's text blocks are taken too."""
    texts: list[str] = []
    for index, item in enumerate((system,) if isinstance(system, str) else system or ()):
        text = item.get("text") if isinstance(item, dict) and item.get("type") == "text" else item
        if not isinstance(text, str):
            raise InputError(f"system[{index}] is {item!r:.60}; write text, or a block of type 'text'")
        encode_wire({"text": text})
        texts.append(text)
    return tuple(text for text in texts if text)


def _tools(tools: Sequence[Wire]) -> tuple[Wire, ...]:
    checked = json.loads(encode_wire({"tools": list(tools)}))["tools"]
    for index, tool in enumerate(checked):
        if not isinstance(tool, dict):
            raise InputError(f"tools[{index}] is {type(tool).__name__}; a tool schema is a dict")
    return tuple(checked)
