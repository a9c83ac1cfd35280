"""Collect garbage older than a grace period: unreferenced objects, and leftovers of crashes.

Garbage is: blobs that no link names, directly or through other blobs; data keys of subjects with a tombstone;
compression reports whose key was destroyed; unfinished temporary files; probes of a store's conditional writes. Orphans
are normal: a commit writes its blobs first and its link last, so a crash in between leaves blobs. A data key without a
tombstone is never garbage, because a process may have it in memory and write under it at any time.

64 hex digits anywhere in a link's body, or in the content of a reachable blob, count as a reference, so the collection
works for every form of body. An unreadable link may have referred to anything. In that case, or if other damage hides
references, `Damaged` is raised before anything is deleted. No listing is trusted alone: it is compared with
other knowledge of chains (`inventory.complete`), and before a blob is deleted, the chains named by its own subject are
read. A key is deleted only after its tombstone was read.

Blobs of a running commit have no reference yet, but they are young. Age does not protect one case: a commit finds that
an old crash has left a blob with its content, and uses it. So after deleting, the links that were committed meanwhile
are read, and deleted blobs that they name are put back byte for byte. (A commit that found such an orphan before the
collection and lands after it must check again itself; `fsck` reports a missing blob.)

Raises `StoreError`. Source: mark and sweep; the grace period of the state design.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from urllib.parse import unquote

from ctxsteward.schemas import Erased, InputError
from ctxsteward.schemas.errors import Damaged, ObjectMissing, UnsupportedVersion

from ..backend import Backend
from ..crypto.vault import Vault, VaultBlob
from ..facts.fact import audiences_in
from ..facts.fact_store import FactStore
from ..names import part_of
from ..objects.port import ObjectInfo, put_once
from ..profiles.version_codec import profile_in
from ..replication.report_objects import key_of
from .inventory import TenantObjects, chains_of_profile, complete, look_up, profiles_of, take_inventory

_ADDRESS = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def addresses_in(data: bytes) -> set[str]:
    """Return everything in these bytes that has the form of an address."""
    return {found.decode() for found in _ADDRESS.findall(data)}


def reachable_blobs(store: Backend, found: TenantObjects, tenant: str) -> set[str]:
    """Return the addresses of this tenant's reachable blobs. Raises `Damaged` if they cannot be known."""
    named = set().union(*_named_by_links(store, found.chains, tenant))
    return follow(store.fresh_vault(tenant), named, found.blobs.keys())


def newly_reachable(
    store: Backend, before: TenantObjects, now: TenantObjects, tenant: str, there: Iterable[str]
) -> set[str]:
    """Return the addresses in `there` that are reachable from links committed between two inventories."""
    folders = dict.fromkeys((*before.chains, *now.chains))  # both, because the second listing may omit chains
    after = {folder: max(before.chains.get(folder, {0: None})) for folder in folders}
    named = set().union(*_named_by_links(store, folders, tenant, after))
    return follow(store.fresh_vault(tenant), named, there)


def follow(vault: Vault, named: set[str], there: Iterable[str]) -> set[str]:
    """Return the addresses in `there` that `named` contains, or that the content of a returned blob names."""
    known = set(there)
    reached: set[str] = set()
    todo = named & known
    while todo:
        reached |= todo
        inside: set[str] = set()
        for address in todo:
            try:
                inside |= addresses_in(vault.get(address))
            except (Erased, ObjectMissing):
                continue  # its references cannot be read
        todo = (inside & known) - reached
    return reached


def _named_by_links(
    store: Backend, folders: Iterable[str], tenant: str, after: dict[str, int] | None = None
) -> Iterator[set[str]]:
    for folder in folders:
        start = (after or {}).get(folder, 0) + 1
        for link in store.chain(folder, tenant=tenant).links(start):
            yield addresses_in(json.dumps(link.body).encode())


DAY_SECONDS = 86_400.0
BATCH_BLOBS = 200
"""Number of blobs deleted between two checks for new commits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GarbageReport:
    """The garbage that was removed, or, with `dry_run`, only found."""

    blobs: tuple[str, ...]
    """Keys of objects; so are `keys`, `reports` and `probes`."""
    keys: tuple[str, ...]
    reports: tuple[str, ...]
    """Compression reports whose key was destroyed."""
    probes: tuple[str, ...]
    temporaries: tuple[str, ...]
    """Paths of files."""
    bytes: int
    kept_blobs: int
    """Number of reachable blobs."""
    young_blobs: int
    """Number of unreachable blobs younger than the grace period."""
    restored: tuple[str, ...]
    """Keys of blobs that were put back because a new commit refers to them."""
    dry_run: bool


def gc(
    store: Backend,
    *,
    now: float,
    tenant: str | None = None,
    grace_seconds: float = DAY_SECONDS,
    dry_run: bool = False,
    tell: Callable[[str], object] = lambda text: None,
) -> GarbageReport:
    """Remove garbage older than the grace period; `now` is Unix time by the object store's clock.

    With a tenant, remove only its garbage, and the temporaries of the whole store.
    """
    if not 0 <= grace_seconds < float("inf"):
        raise InputError(f"the grace period is {grace_seconds!r} s; write 0 or more, such as {DAY_SECONDS:.0f}")
    inventory = take_inventory(store.objects, store.journal.tenants(), tenant=tenant, tell=tell)
    sweep = _Sweep(store, now - grace_seconds, dry_run, tell)
    plans = [sweep.plan(objects) for objects in inventory.tenants.values()]  # plan all before anything is deleted
    blobs = [key for plan in plans for key in sweep.blobs(plan)]
    keys = sweep.remove(info for plan in plans for info in plan.dead_keys)
    reports = sweep.remove(info for plan in plans for info in plan.dead_reports)
    probes = sweep.remove(inventory.probes)
    leftovers = [leftover for leftover in store.objects.temporaries() if leftover.age_seconds >= grace_seconds]
    if leftovers and not dry_run:
        store.objects.sweep(grace_seconds)
    return GarbageReport(
        blobs=tuple(blobs),
        keys=tuple(keys),
        reports=tuple(reports),
        probes=tuple(probes),
        temporaries=tuple(str(leftover.path) for leftover in leftovers),
        bytes=sweep.bytes + sum(leftover.size_bytes for leftover in leftovers),
        kept_blobs=sum(len(plan.reached) for plan in plans),
        young_blobs=sweep.young,
        restored=tuple(sweep.restored),
        dry_run=dry_run,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The garbage of one tenant."""

    found: TenantObjects
    tenant: str
    reached: set[str]
    orphans: list[tuple[str, ObjectInfo]]
    dead_keys: list[ObjectInfo]
    dead_reports: list[ObjectInfo]


class _Sweep:
    """One run of the collection."""

    def __init__(self, store: Backend, before: float, dry_run: bool, tell: Callable[[str], object]) -> None:
        self._store, self._before, self._dry_run, self._tell = store, before, dry_run, tell
        self.bytes = 0
        self.young = 0
        self.restored: list[str] = []

    def plan(self, objects: TenantObjects) -> _Plan:
        if objects.name is None:
            raise Damaged(
                f"tenant folder {objects.part}: its name cannot be read back, nothing was collected; run store fsck"
            )
        vault = self._store.fresh_vault(objects.name)
        for lost in complete(self._store, objects, vault):
            raise Damaged(f"{lost} is missing though it was committed; nothing was collected; run store fsck")
        reached = reachable_blobs(self._store, objects, objects.name)
        while look_up(self._store, objects, self._led_to(vault, objects, reached)):
            reached = reachable_blobs(self._store, objects, objects.name)
        orphans = [(address, info) for address, info in objects.blobs.items() if address not in reached]
        old = [(address, info) for address, info in orphans if self._is_old(info)]
        self.young += len(orphans) - len(old)
        dead = [
            info
            for name, info in objects.keys.items()
            if name in objects.tombstones and vault.is_erased(name, damaged=False)
        ]
        unreadable = [info for info in objects.reports.values() if self._is_old(info) and self._is_dead(vault, info)]
        return _Plan(
            found=objects, tenant=objects.name, reached=reached, orphans=old, dead_keys=dead, dead_reports=unreadable
        )

    def _is_dead(self, vault: Vault, info: ObjectInfo) -> bool:
        """Return whether a report's key has a readable tombstone."""
        try:
            return vault.is_erased(key_of(info.key, self._store.objects.get(info.key)), damaged=False)
        except (Damaged, ObjectMissing, UnsupportedVersion):
            return False

    def _led_to(self, vault: Vault, objects: TenantObjects, reached: set[str]) -> set[str]:
        """Return the folders of chains that the subjects of old unreachable blobs name."""
        old = (address for address, info in objects.blobs.items() if address not in reached and self._is_old(info))
        entries: list[VaultBlob] = []
        for address in old:
            with suppress(Erased, ObjectMissing, Damaged, UnsupportedVersion):  # the blob is unreadable
                entries.append(vault.entry(address))
        parts = {part_of(name) for entry in entries if (name := profile_in(entry.subject))}
        folders = {folder for part in parts for folder in chains_of_profile(objects.part, part)}
        audiences = {audience for entry in entries for audience in audiences_in(entry)}
        for part in {*parts, *profiles_of(objects)} if audiences else ():
            shelves = FactStore(self._store, unquote(part), vault.tenant)
            folders |= {shelves.folder(audience) for audience in audiences}
        return folders

    def blobs(self, plan: _Plan) -> list[str]:
        """Delete orphans in batches, put back those that a new commit refers to, and return the removed keys."""
        removed: list[str] = []
        left = iter(plan.orphans)
        while batch := dict(islice(left, BATCH_BLOBS)):
            back = set() if self._dry_run else self._collect(plan, batch)
            removed += [info.key for address, info in batch.items() if address not in back]
            self.bytes += sum(info.size_bytes for address, info in batch.items() if address not in back)
            self._tell(f"{len(removed):,} blobs removed")
        return removed

    def _collect(self, plan: _Plan, batch: dict[str, ObjectInfo]) -> set[str]:
        """Delete these blobs; put back and return those that new commits refer to. On any error put all back."""
        bodies: dict[str, bytes] = {}
        for address, info in batch.items():
            with suppress(ObjectMissing):
                bodies[address] = self._store.objects.get(info.key)
        back: set[str] = set()
        try:
            for info in batch.values():
                self._store.objects.delete(info.key)
            while fresh := self._named_meanwhile(plan, batch) - back:
                self._put_back(batch, bodies, fresh)  # the next round follows their own references
                back |= fresh
        except BaseException:
            self._put_back(batch, bodies, set(batch) - back)
            raise
        self.restored += sorted(batch[address].key for address in back)
        return back

    def _named_meanwhile(self, plan: _Plan, batch: dict[str, ObjectInfo]) -> set[str]:
        listed = take_inventory(self._store.objects, [plan.tenant], tenant=plan.tenant).tenants
        now = listed.get(plan.found.part, plan.found)
        there = {*now.blobs, *batch}
        return newly_reachable(self._store, plan.found, now, plan.tenant, there) & set(batch)

    def _put_back(self, batch: dict[str, ObjectInfo], bodies: dict[str, bytes], which: set[str]) -> None:
        for address in which:
            key, body = batch[address].key, bodies.get(address)
            if body is not None:  # if the key is occupied, its writer has put it again already
                put_once(
                    self._store.objects,
                    key,
                    body,
                    commit_id=address[:16],
                    mine=lambda found: True,
                    patience=self._store.patience,
                )

    def remove(self, infos: Iterable[ObjectInfo]) -> list[str]:
        old = [info for info in infos if self._is_old(info)]
        for info in old:
            if not self._dry_run:
                self._store.objects.delete(info.key)
            self.bytes += info.size_bytes
        return [info.key for info in old]

    def _is_old(self, info: ObjectInfo) -> bool:
        return info.modified_seconds <= self._before
