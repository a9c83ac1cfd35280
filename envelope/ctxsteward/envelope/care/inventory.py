"""What lies in an object store, from one listing: each tenant's chains, blobs, keys, tombstones, and what is not ours.

A tenant's folder is its percent-encoded name (`objects.names.part_of`); only a very long name cannot be read back from
it, and is then found among the names that the caller knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote

from ..objects.names import number_of, part_of
from ..objects.port import ObjectInfo, ObjectStore

PROBES = "probe/"
"""Where a store is tried out; see `objects.s3`."""

FAMILIES = ("blobs", "facts", "keys", "profiles", "sessions", "snapshots", "steward", "tenants", "tombstones")
CHAIN_FAMILIES = ("facts", "profiles", "sessions", "snapshots", "steward")
_ADDRESS = "[0-9a-f]{64}"
_FORMS = {
    "blobs": re.compile(r"([0-9a-f]{2})/(?P<name>\1[0-9a-f]{62})"),
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
    """Objects of one tenant; addresses map to what the listing said."""

    part: str
    """The tenant's folder."""
    name: str | None
    """None: a long name that nobody knows."""
    chains: dict[str, dict[int, ObjectInfo]] = field(default_factory=dict)
    """By folder, by number."""
    blobs: dict[str, ObjectInfo] = field(default_factory=dict)
    keys: dict[str, ObjectInfo] = field(default_factory=dict)
    tombstones: dict[str, ObjectInfo] = field(default_factory=dict)

    def chains_of(self, family: str) -> dict[str, dict[int, ObjectInfo]]:
        """Chains below one of `CHAIN_FAMILIES`, in order of their folders."""
        return {folder: links for folder, links in sorted(self.chains.items()) if folder.startswith(f"{family}/")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """A store's objects."""

    tenants: dict[str, TenantObjects] = field(default_factory=dict)
    """By folder."""
    probes: list[ObjectInfo] = field(default_factory=list)
    foreign: list[ObjectInfo] = field(default_factory=list)


def take_inventory(
    objects: ObjectStore,
    known: Iterable[str],
    *,
    tenant: str | None = None,
    tell: Callable[[str], object] = lambda text: None,
) -> Inventory:
    """List the store, or one tenant's part of it; `known` are names of tenants. Costs a listing, reads no object."""
    names = {part_of(name): name for name in (*known, *([tenant] if tenant is not None else []))}
    found = Inventory()
    prefixes = [""] if tenant is None else [f"{family}/{part_of(tenant)}/" for family in FAMILIES]
    count = 0
    for prefix in prefixes:
        for info in objects.list(prefix):
            _place(found, info, names)
            count += 1
            if count % 1000 == 0:
                tell(f"{count:,} objects listed")
    return found


def _place(found: Inventory, info: ObjectInfo, names: dict[str, str]) -> None:
    if info.key.startswith(PROBES):
        found.probes.append(info)
        return
    family, _, rest = info.key.partition("/")
    part, _, rest = rest.partition("/")
    if family not in FAMILIES or not rest or not _is_placed(_tenant(found, part, names), family, rest, info):
        found.foreign.append(info)


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
        {"blobs": tenant.blobs, "keys": tenant.keys, "tombstones": tenant.tombstones}[family][form["name"]] = info
    return True


def _tenant(found: Inventory, part: str, names: dict[str, str]) -> TenantObjects:
    if part not in found.tenants:
        found.tenants[part] = TenantObjects(part=part, name=names.get(part) or name_of(part))
    return found.tenants[part]


def name_of(part: str) -> str | None:
    """The tenant whose folder this is; None for a name too long to be read back."""
    name = unquote(part)
    return name if not part.startswith("~") and part_of(name) == part else None
