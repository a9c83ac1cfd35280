"""The content of an object store from one listing: objects by tenant, counts (`stats`), and names (`ls`).

A tenant's folder is its percent-encoded name (`names.part_of`). A very long name cannot be decoded from it, and is then
searched among the names that the caller knows.

A listing may omit objects although its status is 200. Before anything is called garbage, `complete` compares it with
other knowledge of a tenant's chains: the numbers that the journal has seen, a second listing with another prefix, the
chains of each profile's name, and the chains that links name. Chains found in this way are added. A listing that
contradicts itself or the journal raises `StoreUnavailable`. A chain that all these sources omit is not noticed.

Messages are counted without reading all: a log's ordinals have no gaps, so the last one is found by bisection. Sizes
are bytes as stored.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from heapq import merge
from typing import NamedTuple
from urllib.parse import unquote

from ctxsteward.schemas import StoreUnavailable
from ctxsteward.schemas.errors import Damaged, UnsupportedVersion

from ..backend import Backend
from ..crypto.vault import Vault
from ..journal.events import MessageAppended, WindowCompacted, fork_point, from_record
from ..journal.port import Journal, SessionKey
from ..names import number_of, numbered, part_of, session_folder
from ..objects.port import ObjectInfo, ObjectStore, is_there

DATED_RECORDS = 200
"""Last records of a log in which a listing looks for a time."""
PROBES = "probe/"
"""Prefix of the objects that `objects.s3` writes to test conditional writes."""

FAMILIES = (
    "blobs",
    "facts",
    "keys",
    "profiles",
    "reports",
    "sessions",
    "snapshots",
    "steward",
    "tenants",
    "tombstones",
)
_YOUNG_SECONDS = 5.0
"""Age difference below which a new link may have been committed between two listings."""
CHAIN_FAMILIES = ("facts", "profiles", "sessions", "snapshots", "steward")
_ADDRESS = "[0-9a-f]{64}"
_FORMS = {
    "blobs": re.compile(r"([0-9a-f]{2})/(?P<name>\1[0-9a-f]{62})"),
    "reports": re.compile(r"([0-9a-f]{2})/(?P<name>\1[0-9a-f]{62})"),
    "keys": re.compile(rf"(?P<name>{_ADDRESS})\.json"),
    "tombstones": re.compile(rf"(?P<name>{_ADDRESS})\.json"),
    "tenants": re.compile(r"(?P<name>check)\.json"),
}
_CHAINS = {
    "facts": re.compile(rf"[^/]+/{_ADDRESS}/[^/]+"),
    "profiles": re.compile(r"[^/]+/(?:versions|writers)/[^/]+"),
    "sessions": re.compile(rf"{_ADDRESS}/log/[^/]+"),
    "snapshots": re.compile(r"[^/]+/[^/]+"),
    "steward": re.compile(rf"[^/]+/[a-z]+/(?:{_ADDRESS}/)?[^/]+"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantObjects:
    """Objects of one tenant: entries of a listing by address."""

    part: str
    """The tenant's folder."""
    name: str | None
    """The tenant's name, or None if it is too long for its folder and not among the known names."""
    chains: dict[str, dict[int, ObjectInfo]] = field(default_factory=dict)
    """Links by folder and number."""
    blobs: dict[str, ObjectInfo] = field(default_factory=dict)
    reports: dict[str, ObjectInfo] = field(default_factory=dict)
    keys: dict[str, ObjectInfo] = field(default_factory=dict)
    tombstones: dict[str, ObjectInfo] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The objects of a store."""

    tenants: dict[str, TenantObjects] = field(default_factory=dict)
    """Objects by the tenant's folder."""
    probes: list[ObjectInfo] = field(default_factory=list)
    foreign: list[ObjectInfo] = field(default_factory=list)


def take_inventory(
    objects: ObjectStore,
    known: Iterable[str],
    *,
    tenant: str | None = None,
    tell: Callable[[str], object] = lambda text: None,
) -> Inventory:
    """List the store, or one tenant's part; `known` are names of tenants. Costs a listing and reads no object."""
    names = {part_of(name): name for name in (*known, *([tenant] if tenant is not None else []))}
    inventory = Inventory()
    prefixes = [""] if tenant is None else [f"{family}/{part_of(tenant)}/" for family in FAMILIES]
    count = 0
    for prefix in prefixes:
        for info in objects.list(prefix):
            family, _, rest = info.key.partition("/")
            part, _, rest = rest.partition("/")
            if info.key.startswith(PROBES):
                inventory.probes.append(info)
            elif family in FAMILIES and rest:
                if part not in inventory.tenants:
                    inventory.tenants[part] = TenantObjects(part=part, name=names.get(part) or name_of(part))
                if not _is_placed(inventory.tenants[part], family, rest, info):
                    inventory.foreign.append(info)
            else:
                inventory.foreign.append(info)
            count += 1
            if count % 1000 == 0:
                tell(f"{count:,} objects listed")
    return inventory


def seen_chains(store: Backend, vault: Vault, altered: Set[str] = frozenset()) -> dict[str, int]:
    """Return the highest link that this machine's journal has seen of each chain, by folder; skip `altered` logs."""
    families = tuple(f"{family}/{part_of(vault.tenant)}/" for family in CHAIN_FAMILIES)
    seen = {name: number for name, number in store.journal.witnessed().items() if name.startswith(families)}
    for session in set(store.journal.sessions(vault.tenant)) - altered:
        folder = session_folder(vault.tenant, vault.subject_address(session))
        number = store.journal.drained(SessionKey(vault.tenant, session)).number
        if max(number, seen.get(folder, 0)):
            seen[folder] = max(number, seen.get(folder, 0))
    return seen


def complete(store: Backend, listed: TenantObjects, vault: Vault, altered: Set[str] = frozenset()) -> list[str]:
    """Add omitted chains to the listed objects, as the module's docstring describes.

    Returns the keys of links that the journal has seen and that are gone.
    """
    lost = []
    seen = seen_chains(store, vault, altered)
    _list_again(store.objects, listed)  # after `seen_chains`, whose links may be younger than the first listing
    for folder, number in seen.items():
        if number > max(listed.chains.get(folder, (0,))):
            lost.append(numbered(folder, number))
            if is_there(store.objects, lost[-1]):
                raise _left_out(lost[-1])
    for session in sorted(altered):  # their drain mark is not known, and nobody drains them meanwhile
        folder = session_folder(vault.tenant, vault.subject_address(session))
        if look_up(store, listed, [folder]):
            raise _left_out(numbered(folder, 1))
    for name in profiles_of(listed):
        look_up(store, listed, chains_of_profile(listed.part, name))
    for folder in [name for name in listed.chains if name.startswith("steward/") and name.endswith("/nights")]:
        look_up(store, listed, _batches(store, vault.tenant, folder))
    return lost


def profiles_of(found: TenantObjects) -> list[str]:
    """Return the encoded names of all profiles with a chain."""
    return sorted({folder.split("/")[2] for folder in found.chains if not folder.startswith("sessions/")})


def chains_of_profile(part: str, name: str) -> list[str]:
    """Return the folders of a profile's chains that refer to content and have no other part than its encoded name."""
    kinds = (f"profiles/{part}/{name}/versions", f"snapshots/{part}/{name}", f"steward/{part}/{name}/nights")
    return [*kinds, f"steward/{part}/{name}/reviews", f"steward/{part}/{name}/verdicts"]


def look_up(store: Backend, found: TenantObjects, folders: Iterable[str]) -> int:
    """Add those of these chains that exist but were not listed; return their number."""
    added = 0
    for folder in folders:
        first = numbered(folder, 1)
        if folder not in found.chains and is_there(store.objects, first):
            found.chains[folder] = {1: ObjectInfo(first, 0, 0.0)}
            added += 1
    return added


def _list_again(objects: ObjectStore, listed: TenantObjects) -> None:
    """Compare with a second listing: it must have every link of the first, and no old link that the first lacks."""
    first = {info.key for links in listed.chains.values() for info in links.values()}
    newest = max((info.modified_seconds for links in listed.chains.values() for info in links.values()), default=0.0)
    for family in CHAIN_FAMILIES:
        beginning = f"{family}/{listed.part}/"
        again = {info.key: info for info in objects.list(beginning[:-1]) if info.key.startswith(beginning)}
        for key in first:
            if key.startswith(beginning) and key not in again:
                raise _left_out(key)
        for key, info in again.items():
            added = key not in first and _is_placed(listed, family, key.removeprefix(beginning), info)
            if added and info.modified_seconds + _YOUNG_SECONDS < newest:
                raise _left_out(key)


def _batches(store: Backend, tenant: str, nights: str) -> list[str]:
    named: dict[str, None] = {}
    with suppress(Damaged, UnsupportedVersion):  # the check or collection of the chain's content reports it
        for link in store.chain(nights, tenant=tenant).links():
            batches = link.body.get("batches", ())
            named |= dict.fromkeys(
                address for address in batches if isinstance(address, str) and re.fullmatch(_ADDRESS, address)
            )
    return [f"{nights.rpartition('/')[0]}/batches/{address}" for address in named]


def _left_out(key: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"the store's listing leaves out {key}, which is there: it is not complete; try again later"
    )


def _is_placed(tenant: TenantObjects, family: str, rest: str, info: ObjectInfo) -> bool:
    if family in _CHAINS:
        number = number_of(info.key)
        if number is None or number < 1 or not _CHAINS[family].fullmatch(rest):
            return False
        tenant.chains.setdefault(info.key.rpartition("/")[0], {})[number] = info
        return True
    form = _FORMS[family].fullmatch(rest)
    if form is None:
        return False
    if family != "tenants":
        by_family = {
            "blobs": tenant.blobs,
            "reports": tenant.reports,
            "keys": tenant.keys,
            "tombstones": tenant.tombstones,
        }
        by_family[family][form["name"]] = info
    return True


def name_of(part: str) -> str | None:
    """Return the name of the tenant with this folder, or None if the name is too long to be decoded."""
    name = unquote(part)
    return name if not part.startswith("~") and part_of(name) == part else None


class ObjectTotals(NamedTuple):
    """Number and size of the objects of one kind."""

    objects: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Counts of a store, or of one tenant's part."""

    tenants: int
    sessions: int
    """Sessions in this machine's journal; `messages` and `compactions` are counted there, too."""
    messages: int
    """Messages; those that a fork shares with its parent count once."""
    compactions: int
    stored_sessions: int
    """Sessions in the object store, drained by any machine."""
    versions: int
    """Versions of profiles."""
    kinds: dict[str, ObjectTotals]
    """Totals by the first part of the key."""
    waiting_sessions: int
    """Sessions with records or manifests that wait to be drained."""
    waiting_bytes: int
    oldest_waiting: str | None
    """The session that has waited longest."""
    forgotten: int
    """Forgotten subjects: sessions, and principals in one session each."""


class ListingRow(NamedTuple):
    """A row of `ls`: an object, or a session's log in the journal."""

    name: str
    kind: str
    size: int | None
    """Bytes of an object, or number of records of a log; None if the log cannot be read."""
    modified_seconds: float | None
    """Time of an object, or the newest time in a log's last records; None if they have none."""
    fault: str | None = None
    """Reason why the log cannot be read."""


def stats(store: Backend, *, tenant: str | None = None, tell: Callable[[str], object] = lambda text: None) -> Stats:
    """Count one tenant's part of a store, or all of it. Costs a listing and a few reads per session."""
    journal = store.journal
    tenants = journal.tenants() if tenant is None else [tenant]
    keys = [SessionKey(name, session) for name in tenants for session in journal.sessions(name)]
    kinds: dict[str, ObjectTotals] = {}
    folders: set[str] = set()
    stored_sessions: set[str] = set()
    versions = 0
    prefixes = [""] if tenant is None else [f"{family}/{part_of(tenant)}/" for family in FAMILIES]
    for number, info in enumerate((info for prefix in prefixes for info in store.objects.list(prefix)), 1):
        family, _, rest = info.key.partition("/")
        before = kinds.get(family, ObjectTotals(0, 0))
        kinds[family] = ObjectTotals(before.objects + 1, before.bytes + info.size_bytes)
        versions += family == "profiles" and "/versions/" in rest
        if family == "sessions":
            stored_sessions.add(rest.partition("/log/")[0])
        if family in FAMILIES:
            folders.add(rest.partition("/")[0])
        if number % 1000 == 0:
            tell(f"{number:,} objects")
    waiting = [log for log in journal.waiting(1 << 31) if tenant in (None, log.key.tenant)]
    return Stats(
        tenants=len(folders | {part_of(key.tenant) for key in keys}),
        sessions=len(keys),
        messages=sum(_messages(journal, key) for key in keys),
        compactions=sum(_compactions(journal, key) for key in keys),
        stored_sessions=len(stored_sessions),
        versions=versions,
        kinds=dict(sorted(kinds.items())),
        waiting_sessions=len(waiting),
        waiting_bytes=journal.waiting_bytes(),
        oldest_waiting=waiting[0].key.session if waiting else None,
        forgotten=sum(len(journal.forgotten(name)) for name in {*tenants, *map(name_of, folders)} if name),
    )


def ls(store: Backend, prefix: str = "", *, tenant: str | None = None) -> Iterator[ListingRow]:
    """Yield rows whose name begins with `prefix`, sorted: objects by key, logs as ``journal/<tenant>/<session>``."""
    part = None if tenant is None else part_of(tenant)
    logs = (
        _log_row(store.journal, SessionKey(name, session))
        for name in (store.journal.tenants() if tenant is None else [tenant])
        for session in store.journal.sessions(name)
    )
    objects = (
        ListingRow(info.key, info.key.partition("/")[0], info.size_bytes, info.modified_seconds)
        for info in store.objects.list(prefix)
        if part is None or any(info.key.startswith(f"{family}/{part}/") for family in FAMILIES)
    )
    named = sorted(log for log in logs if log.name.startswith(prefix))
    return merge(named, objects, key=lambda row: row.name)


def _log_row(journal: Journal, key: SessionKey) -> ListingRow:
    name = f"journal/{part_of(key.tenant)}/{part_of(key.session)}"
    try:
        length = journal.length(key)
        return ListingRow(name, "log", length, _newest_time(journal, key, length))
    except Damaged as error:  # list the other logs even if this one is damaged
        return ListingRow(name, "log", None, None, str(error))


def _newest_time(journal: Journal, key: SessionKey, length: int) -> float | None:
    """Return the time of the newest record with a time among the last `DATED_RECORDS`, in Unix seconds."""
    for record in reversed(list(journal.read(key, max(0, length - DATED_RECORDS)))):
        event = from_record(record)
        named = event.ts if isinstance(event, MessageAppended) else None
        named = event.report.created_at if isinstance(event, WindowCompacted) else named
        with suppress(TypeError, ValueError):
            return datetime.fromisoformat(named).timestamp()  # type: ignore[arg-type]
    return None


def _messages(journal: Journal, key: SessionKey) -> int:
    """Count the messages of this log alone, by bisection over its ordinals."""
    origin = fork_point(journal.read(key, 0, 1))
    first = origin.ordinal + 1 if origin else 1

    def is_missing(number: int) -> bool:
        return journal.position(key, first + number - 1) is None

    step = 1
    while not is_missing(step):
        step *= 2
    there = step // 2  # at least this many messages exist
    return there + bisect_left(range(there + 1, step), True, key=is_missing)


def _compactions(journal: Journal, key: SessionKey) -> int:
    count, position = 0, journal.checkpoint(key)
    while position:
        count, position = count + 1, journal.checkpoint(key, before=position)
    return count
