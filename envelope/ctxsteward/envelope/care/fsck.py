"""Is the store whole? Everything that can be checked without an application, and what is wrong by stable names.

Always: whether the journal is the one that belongs here; SQLite's own check of its file, and the codes of its own rows;
each session's log (`logs`); each chain (`chains`); each data key and tombstone (`content`); every blob that a version
names is there. With `read_data` also: every blob decrypted and its address computed anew, every record of every
segment, every session opened.

What no check from inside can see, because nothing in the store contradicts it:

- the whole store, journal and objects and keys, put back to an older consistent copy;
- the last links of a chain gone, where no journal has seen them (another machine's journal has, and says so);
- the last records of a log gone together with the log's own row put back to an older one, before they were drained;
- a data key gone that nothing was written under, or an orphan blob gone;
- whole sessions or whole tenants taken out of every place that names them.

Keep a copy of the heads' codes elsewhere where this matters: one of them vouches for the whole chain below it.
Raises `StoreError` where the store cannot be asked, `InputError`. Source: the state design.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ctxsteward.schemas import Damaged, Finding, StoreError, StoreUnavailable, UnsupportedVersion

from ..objects.names import check_name, numbered, part_of
from ..store import Store
from ..stores.port import Altered, SessionKey
from ..vault import Vault
from ..writebehind.tenants import check_keys
from .chains import sound_links
from .content import check_blobs, check_references, check_subjects
from .damage import told_apart
from .drained import check_drained
from .gc import LeavesTemporaries
from .inventory import Inventory, TenantObjects, complete, seen_chains, take_inventory
from .logs import check_log, place
from .repair import restore_damaged
from .share import Share
from .tally import BrokenLog, Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Fsck:
    """What a check has seen."""

    checked: Mapping[str, int]
    """How many of each kind: sessions, records, manifests, links, keys, tombstones, blobs; bytes decrypted."""
    damage: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    repaired: tuple[Finding, ...]
    """Damage that was put right, not counted as damage any more."""
    read_data: bool
    subset: Share

    @property
    def damaged(self) -> bool:
        return bool(self.damage)

    @property
    def first(self) -> str | None:
        """Class of the first damage found."""
        return self.damage[0].kind if self.damage else None

    @property
    def closing(self) -> str:
        """One line: how it stands, and the first class of damage by name."""
        total = sum(number for kind, number in self.checked.items() if kind != "bytes")
        scope = "" if self.subset.parts == 1 else f" of share {self.subset}"
        mended = f", {len(self.repaired):,} repaired" if self.repaired else ""
        if not self.damage:
            return f"whole: {total:,} things checked{scope}, nothing damaged{mended}"
        first = self.damage[0]
        return f"damaged: {first.kind} at {first.field}; {len(self.damage):,} findings in {total:,}{scope}{mended}"


@runtime_checkable
class ChecksItself(Protocol):
    """A journal that can check its own file."""

    def integrity(self) -> list[str]: ...


@runtime_checkable
class CodesRows(Protocol):
    """A journal whose own rows have codes."""

    def altered(self, tenant: str) -> Sequence[Altered]: ...


def fsck(
    store: Store,
    *,
    tenant: str | None = None,
    read_data: bool = False,
    subset: str | None = None,
    repair: bool = False,
    tell: Callable[[str], object] = lambda text: None,
) -> Fsck:
    """Check one tenant (default: all), or a share of everything (``1/7``); with `repair`, put right what can be."""
    share = Share.parse(subset)
    tally = _check(store, tenant, Tally(share=share, tell=tell), read_data=read_data)
    mended: list[Finding] = []
    if repair and tally.broken and restore_damaged(store, [broken for _, broken in tally.broken]):
        before, tally = tally, _check(store, tenant, Tally(share=share, tell=tell), read_data=read_data)
        mended = [finding for finding, _ in before.broken if finding not in tally.findings]
    damage, notes = told_apart(tally.findings)
    return Fsck(
        checked=dict(sorted(tally.counts.items())), damage=damage, notes=notes, repaired=tuple(mended),
        read_data=read_data, subset=share,
    )  # fmt: skip


def _check(store: Store, tenant: str | None, tally: Tally, *, read_data: bool) -> Tally:
    for finding in store.findings:
        tally.found(finding.kind, finding.field or "journal", finding.text)
    if isinstance(store.journal, ChecksItself):
        for what in store.journal.integrity():
            tally.found("journal_damaged", "journal", what)
    known = store.journal.tenants() if tenant is None else [tenant]
    found = take_inventory(store.objects, known, tenant=tenant, tell=tally.tell)
    for name in _tenants(found, known, tally):
        _check_tenant(store, name, found.tenants.get(part_of(name)), tally, read_data=read_data)
    _note_leftovers(store, found, tally)
    return tally


def _tenants(found: Inventory, known: list[str], tally: Tally) -> list[str]:
    names = {one.name for one in found.tenants.values() if one.name is not None} | set(known)
    for one in found.tenants.values():
        if one.name is None:
            tally.found("tenant_unknown", one.part, "a tenant's folder")
    return sorted(names)


def _check_tenant(store: Store, tenant: str, found: TenantObjects | None, tally: Tally, *, read_data: bool) -> None:
    found = found or TenantObjects(part=part_of(tenant), name=tenant)
    if not _keys_fit(store, tenant, tally):
        return  # every code would be wrong
    vault = Vault(store.objects, store.keys, tenant, patience=store.patience)
    altered = _altered_rows(store, tenant, tally)
    complete(store, found, vault, altered)  # what is lost is found where it lay
    buried = frozenset(found.tombstones)
    _check_burials(store, vault, found, tally)
    check_subjects(vault, found, tally)  # first: a damaged key makes all that is under it unreadable
    for session in store.journal.sessions(tenant):
        if session not in altered and tally.share.holds(f"{tenant}\x00{session}"):
            key = SessionKey(tenant, session)
            try:
                check_log(store, key, buried, tally, read_data=read_data)
            except Damaged as error:  # the file itself
                tally.found("journal_damaged", place(key, 0), str(error))
    seen = seen_chains(store, vault, altered)
    owners: dict[str, str] = {}
    for folder in sorted({*found.chains, *seen}):
        drains, ours = folder.startswith("sessions/"), tally.share.holds(folder)
        if drains and not ours:
            continue
        told = tally if ours else Tally()  # of governed state it must be known whose the blobs of our share are
        told.tell(folder)
        listed = found.chains.get(folder, {})
        links = sound_links(store.chain(folder, tenant=tenant), listed, seen.get(folder, 0), told)
        if drains:
            check_drained(store, vault, folder, links, found, told, altered, read_data=read_data)
        for link in () if drains else links:
            owners |= dict(check_references(vault, found, link, numbered(folder, link.number), told))
    check_blobs(vault, found, owners, tally, read_data=read_data)


def _altered_rows(store: Store, tenant: str, tally: Tally) -> Set[str]:
    """Sessions whose log's row cannot be believed: nothing of them can be looked up by it."""
    rows = store.journal.altered(tenant) if isinstance(store.journal, CodesRows) else ()
    for session, row in rows:
        if tally.share.holds(f"{tenant}\x00{session}"):
            key = SessionKey(tenant, session)
            broken = BrokenLog(key) if row == "log" else None
            tally.found(f"{row}_altered", place(key, 0).rpartition("#")[0], "its row is not what was written", broken)
    return {session for session, row in rows if row == "log"}


def _check_burials(store: Store, vault: Vault, found: TenantObjects, tally: Tally) -> None:
    """As many tombstones as were seen here once; counted again, because one may be younger than the listing."""
    seen = store.journal.seen(f"tombstones/{vault.tenant}")
    if seen > len(found.tombstones):
        there = sum(1 for _ in vault.buried())
        if seen > there:
            folder = f"tombstones/{part_of(vault.tenant)}/"
            tally.found("tombstone_missing", folder, f"{there} are there, and {seen} were seen")


def _keys_fit(store: Store, tenant: str, tally: Tally) -> bool:
    """Whether the tenant's objects were written with the keys we have."""
    where = check_name(tenant)
    try:
        check_keys(store.objects, store.keys, tenant, write=False)
    except (Damaged, UnsupportedVersion) as error:
        tally.found("check_altered", where, str(error))
    except StoreUnavailable:
        raise
    except StoreError as error:
        tally.found("keys_wrong", where, str(error))
        return False
    return True


def _note_leftovers(store: Store, found: Inventory, tally: Tally) -> None:
    for info in found.probes:
        tally.found("probe_left", info.key, "left of a try")
    for info in found.foreign:
        tally.found("foreign_object", info.key, "it has no place in a store")
    if isinstance(store.objects, LeavesTemporaries):
        for left in store.objects.temporaries():
            tally.found("temporary_left", str(left.path), f"{left.size_bytes:,} bytes, {left.age_seconds:.0f} s old")
