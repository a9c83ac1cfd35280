"""What a store holds, in numbers; and its names, one by one.

Messages are counted without reading them: a log's ordinals run on without a gap, so the last one is found by asking
for a few. Sizes are bytes as stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from ..events import Opened, from_record
from ..objects.names import part_of
from ..objects.port import ObjectInfo
from ..store import Store
from ..stores.port import Journal, SessionKey
from .inventory import FAMILIES, name_of


class Kept(NamedTuple):
    """Objects of one kind."""

    objects: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """A store, or one tenant's part of it."""

    tenants: int
    sessions: int
    """In this machine's journal, as of the next two."""
    messages: int
    """Own ones: what a fork shares with its parent counts once."""
    compactions: int
    stored_sessions: int
    """In the object store: those that were drained, by whichever machine."""
    versions: int
    """Of profiles."""
    kinds: dict[str, Kept]
    """By the first part of the key."""
    waiting_sessions: int
    """With something that is not in the object store yet."""
    waiting_bytes: int
    oldest_waiting: str | None
    """The session that has waited longest."""
    forgotten: int
    """Subjects: sessions, and principals in one session each."""


class Listed(NamedTuple):
    """One name: an object, or a session's log in the journal."""

    name: str
    kind: str
    size: int
    """Bytes of an object, records of a log."""
    modified_seconds: float | None
    """None: a journal does not note it."""


def stats(store: Store, *, tenant: str | None = None, tell: Callable[[str], object] = lambda text: None) -> Stats:
    """Count one tenant's part of a store, or all of it. Costs a listing and a few reads a session."""
    journal = store.journal
    tenants = journal.tenants() if tenant is None else [tenant]
    keys = [SessionKey(name, session) for name in tenants for session in journal.sessions(name)]
    objects = _objects(store, tenant, tell)
    waiting = [one for one in journal.waiting(1 << 31) if tenant in (None, one.key.tenant)]
    return Stats(
        tenants=len(objects.tenants | {part_of(key.tenant) for key in keys}),
        sessions=len(keys),
        messages=sum(_messages(journal, key) for key in keys),
        compactions=sum(_compactions(journal, key) for key in keys),
        stored_sessions=len(objects.sessions),
        versions=objects.versions,
        kinds=dict(sorted(objects.kinds.items())),
        waiting_sessions=len(waiting),
        waiting_bytes=journal.waiting_bytes(),
        oldest_waiting=waiting[0].key.session if waiting else None,
        forgotten=sum(len(journal.forgotten(name)) for name in {*tenants, *map(name_of, objects.tenants)} if name),
    )


def ls(store: Store, prefix: str = "", *, tenant: str | None = None) -> Iterator[Listed]:
    """Names that begin with `prefix`, in their order: objects by key, logs as ``journal/<tenant>/<session>``."""
    part = None if tenant is None else part_of(tenant)
    logs = (
        Listed(
            f"journal/{part_of(name)}/{part_of(session)}", "log", store.journal.length(SessionKey(name, session)), None
        )
        for name in (store.journal.tenants() if tenant is None else [tenant])
        for session in store.journal.sessions(name)
    )
    listed = [log for log in logs if log.name.startswith(prefix)]
    listed.sort()
    objects = (
        Listed(info.key, info.key.partition("/")[0], info.size_bytes, info.modified_seconds)
        for info in store.objects.list(prefix)
        if part is None or (_part(info.key) == part and info.key.partition("/")[0] in FAMILIES)
    )
    waiting = iter(listed)
    held = next(waiting, None)
    for one in objects:
        while held is not None and held.name < one.name:
            yield held
            held = next(waiting, None)
        yield one
    if held is not None:
        yield held
    yield from waiting


def _part(key: str) -> str:
    return key.partition("/")[2].partition("/")[0]


@dataclass(slots=True)
class _Objects:
    """What a listing says."""

    kinds: dict[str, Kept] = field(default_factory=dict)
    tenants: set[str] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)
    versions: int = 0

    def add(self, info: ObjectInfo) -> None:
        family, _, rest = info.key.partition("/")
        before = self.kinds.get(family, Kept(0, 0))
        self.kinds[family] = Kept(before.objects + 1, before.bytes + info.size_bytes)
        self.versions += family == "profiles" and "/versions/" in rest
        if family == "sessions":
            self.sessions.add(rest.partition("/log/")[0])
        if family in FAMILIES:
            self.tenants.add(rest.partition("/")[0])


def _objects(store: Store, tenant: str | None, tell: Callable[[str], object]) -> _Objects:
    found = _Objects()
    prefixes = [""] if tenant is None else [f"{family}/{part_of(tenant)}/" for family in FAMILIES]
    for number, info in enumerate(info for prefix in prefixes for info in store.objects.list(prefix)):
        found.add(info)
        if number % 1000 == 999:
            tell(f"{number + 1:,} objects")
    return found


def _messages(journal: Journal, key: SessionKey) -> int:
    """Messages of this log alone, by bisection over its ordinals."""
    first = _first_ordinal(journal, key)
    step = 1
    while journal.position(key, first + step - 1) is not None:
        step *= 2
    low, high = step // 2, step  # message `low` (counted from 1) is there, or low is 0; message `high` is not
    while high - low > 1:
        middle = (low + high) // 2
        if journal.position(key, first + middle - 1) is not None:
            low = middle
        else:
            high = middle
    return low


def _first_ordinal(journal: Journal, key: SessionKey) -> int:
    for record in journal.read(key, 0, 1):
        opened = from_record(record)
        if isinstance(opened, Opened) and opened.parent is not None:
            return opened.parent.ordinal + 1
    return 1


def _compactions(journal: Journal, key: SessionKey) -> int:
    def positions() -> Iterator[int]:
        position = journal.checkpoint(key)
        while True:
            yield position
            position = journal.checkpoint(key, before=position)

    return sum(1 for _ in takewhile(bool, positions()))
