"""`store fsck`: check a store for damage, and repair what can be repaired from inside it.

Each check covers: that the journal is the one that belongs here, SQLite's own check of its file, and the codes of the
journal's own rows; each session's log; each chain; each data key and tombstone; that every blob named in a version is
there. With `read_data` it also decrypts every blob and computes its address anew, reads every record of every segment,
and opens every session (`checks`). In a chain every number must be there, every code must be right, and every link must
follow its predecessor. After an unreadable link, the next one is checked only by its own code. Only the journal can
show that a chain has lost its tail, because it recorded the highest number that it has seen.

Nothing in the store contradicts the following changes, so no check from inside finds them:

- the whole store (journal, objects and keys) was put back to an older consistent copy;
- the last links of a chain are gone and no journal has seen them (if another machine's journal has, it reports it);
- the last records of a log were removed before they were drained, and the log's row was put back to an older one;
- a data key is gone under which nothing was written, or an orphan blob is gone;
- whole sessions or whole tenants were removed from every place that names them.

If this matters, keep a copy of the codes of the chains' heads elsewhere: a head's code proves its whole chain.

`repair` replaces damaged data by a copy from elsewhere, and invents nothing:

    record_altered, record_missing      the journal's record, from the session's segments in the object store
    manifest_altered, manifest_missing  the same; a manifest without a copy is dropped, because the envelope can be
                                        built again
    log_altered                         the log's row is recounted over the intact records from the first on, if these
                                        begin with all records in the object store; and always if the session was
                                        forgotten, so that its records can be erased
    key_after_tombstone                 the key is destroyed, which completes the erasure

Everything else is left unchanged. A link cannot be made again, because its code covers bytes that are gone; a backup's
copy can be put back under its key, and its code is checked like any other. Segments are used only if the session's
whole chain is intact, because an unreadable link might have replaced records of an earlier one.
Raises `StoreError` if the store cannot be read or written, `InputError`. Source: the state design.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import takewhile
from urllib.parse import unquote

from ctxsteward.schemas import Finding, StoreError, StoreUnavailable
from ctxsteward.schemas.errors import Damaged, ObjectMissing, UnsupportedVersion

from ..backend import Backend
from ..crypto.hash_chain import Chain, Link, follows
from ..crypto.keyring import CheckableKeys, KeyFileMissing, check_keys
from ..journal.port import DrainMark, Manifest, SessionKey
from ..names import check_name, data_key_name, numbered, part_of
from ..objects.port import ObjectInfo
from ..profiles.people import PeopleRegister
from ..profiles.versions import ProfileVersions
from .checks import (
    check_blobs,
    check_drained,
    check_log,
    check_references,
    check_reports,
    check_subjects,
    is_sound,
    place,
    read_drained,
)
from .damage import DAMAGE, Broken, CheckTally, StoreShare
from .inventory import TenantObjects, complete, seen_chains, take_inventory


def restore_damaged(store: Backend, broken: Iterable[Broken]) -> int:
    """Repair what can be repaired; return the number of repairs. Only a new check shows whether they helped."""
    records: defaultdict[SessionKey, set[int]] = defaultdict(set)
    manifests: defaultdict[SessionKey, set[str]] = defaultdict(set)
    touched = 0
    for finding, key, at in broken:
        if finding.kind == "log_altered":
            touched += _recount(store, key)
        elif finding.kind == "key_after_tombstone":
            store.objects.delete(data_key_name(*key))
            touched += 1
        elif isinstance(at, int):
            records[key].add(at)
        else:
            manifests[key].add(at)
    for key in sorted({*records, *manifests}):
        drained = read_drained(store, key)
        stored = dict(enumerate(drained.records)) if drained is not None else {}
        found = {position: stored[position] for position in records[key] if position in stored}
        if found:  # in one rewrite; records without a copy in the object store stay unchanged
            store.journal.rewrite(key, found)
        damaged = manifests[key]
        if damaged:  # a journal drops all manifests of a session or none, so all are written again
            sound = {manifest.address: manifest.body for manifest in drained.manifests} if drained is not None else {}
            sound |= {
                manifest.address: manifest.body
                for manifest in store.journal.manifests(key)
                if manifest.address not in damaged
            }
            store.journal.drop_manifests(key, [Manifest(*manifest) for manifest in sound.items()])
        touched += len(found) + len(damaged)
    return touched


def _recount(store: Backend, key: SessionKey) -> int:
    """Recount a log's row if its records allow it; return the number of rewritten rows."""
    vault = store.vault(key.tenant)
    if vault.tombstone(vault.subject_address(key.session)) is not None:  # forgotten, but not erased here yet
        store.journal.recount(key, len(store.journal.read(key, 0)), DrainMark())
        return 1
    stored = read_drained(store, key)
    if stored is None:
        return 0
    whole = list(takewhile(lambda one: is_sound(store, key, *one), enumerate(store.journal.read(key, 0))))
    macs = [record.mac for _, record in whole]
    if macs[: len(stored.records)] != [record.mac for record in stored.records]:
        return 0
    drained = DrainMark()
    if stored.head is not None:
        epoch = stored.head.epoch if stored.owner == store.journal.id else -stored.head.epoch
        drained = DrainMark(len(stored.records), stored.head.number, epoch)
    store.journal.recount(key, len(whole), drained)
    return 1


def sound_links(chain: Chain, listed: Mapping[int, ObjectInfo], seen: int, tally: CheckTally) -> Iterator[Link]:
    """Yield the readable links in order, each checked; `seen` is the highest number that the journal has seen."""
    last = max(listed, default=0)
    before: Link | None = None
    for number in range(1, last + 1):
        link = _read(chain, number, tally)
        if link is not None:
            if (number == 1 or before is not None) and not follows(link, before):
                tally.found("link_misplaced", numbered(chain.folder, number), f"it does not follow link {number - 1}")
            yield link
        before = link
    for number in range(last + 1, seen + 1):  # a listing during a commit may have omitted it
        link = _read(chain, number, tally, missing="tail_missing", why=f"the chain ends at {last}, not at {seen}")
        if link is not None:
            yield link


def _read(
    chain: Chain, number: int, tally: CheckTally, *, missing: str = "link_missing", why: str = "later ones are there"
) -> Link | None:
    key = numbered(chain.folder, number)
    tally.count("links")
    with tally.reading(key, "link_altered", "it is not what was committed here"):
        try:
            return chain.read(number)
        except ObjectMissing:
            tally.found(missing, key, f"it is not there; {why}")
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fsck:
    """The result of a check."""

    checked: Mapping[str, int]
    """Numbers checked of sessions, records, manifests, links, keys, tombstones and blobs; bytes decrypted."""
    damage: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    repaired: tuple[Finding, ...]
    """Repaired damage, which `damage` does not contain."""
    read_data: bool
    subset: StoreShare

    @property
    def damaged(self) -> bool:
        return bool(self.damage)

    @property
    def first(self) -> str | None:
        """Kind of the first damage, or None."""
        return self.damage[0].kind if self.damage else None

    @property
    def total(self) -> int:
        """Number of things checked."""
        return sum(number for kind, number in self.checked.items() if kind != "bytes")

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to check, so that the absence of damage proves nothing."""
        return not self.damage and self.total == 0

    @property
    def closing(self) -> str:
        """One line for people: whole or damaged, with the first kind of damage."""
        total = self.total
        scope = "" if self.subset.parts == 1 else f" of share {self.subset}"
        mended = f", {len(self.repaired):,} repaired" if self.repaired else ""
        if self.is_empty:
            return f"nothing checked{scope}: 0 sessions, objects and keys; is this the store that was written?"
        if not self.damage:
            return f"whole: {total:,} things checked{scope}, nothing damaged{mended}"
        first = self.damage[0]
        return f"damaged: {first.kind} at {first.field}; {len(self.damage):,} findings in {total:,}{scope}{mended}"


def fsck(
    store: Backend,
    *,
    tenant: str | None = None,
    read_data: bool = False,
    subset: str | None = None,
    repair: bool = False,
    tell: Callable[[str], object] = lambda text: None,
) -> Fsck:
    """Check one tenant (default: all), or a share of the store (``1/7``); with `repair`, repair what is possible."""
    share = StoreShare.parse(subset)
    tally = _check(store, tenant, CheckTally(share=share, tell=tell), read_data=read_data)
    mended: list[Finding] = []
    if repair and tally.broken and restore_damaged(store, tally.broken):
        before, tally = tally, _check(store, tenant, CheckTally(share=share, tell=tell), read_data=read_data)
        mended = [broken.finding for broken in before.broken if broken.finding not in tally.findings]
    damage = tuple(finding for finding in tally.findings if finding.kind in DAMAGE)
    notes = tuple(finding for finding in tally.findings if finding.kind not in DAMAGE)
    return Fsck(
        checked=dict(sorted(tally.counts.items())),
        damage=damage,
        notes=notes,
        repaired=tuple(mended),
        read_data=read_data,
        subset=share,
    )


def _check(store: Backend, tenant: str | None, tally: CheckTally, *, read_data: bool) -> CheckTally:
    for finding in store.findings:
        tally.found(finding.kind, finding.field or "journal", finding.text)
    for what in store.journal.integrity():
        tally.found("journal_damaged", "journal", what)
    known = store.journal.tenants() if tenant is None else [tenant]
    inventory = take_inventory(store.objects, known, tenant=tenant, tell=tally.tell)
    names = set(known)
    for listed in inventory.tenants.values():
        if listed.name is None:
            tally.found("tenant_unknown", listed.part, "a tenant's folder")
        else:
            names.add(listed.name)
    for name in sorted(names):
        _check_tenant(store, name, inventory.tenants.get(part_of(name)), tally, read_data=read_data)
    for info in inventory.probes:
        tally.found("probe_left", info.key, "left of a try")
    for info in inventory.foreign:
        tally.found("foreign_object", info.key, "it has no place in a store")
    for left in store.objects.temporaries():
        tally.found("temporary_left", str(left.path), f"{left.size_bytes:,} bytes, {left.age_seconds:.0f} s old")
    return tally


def _check_tenant(
    store: Backend, tenant: str, objects: TenantObjects | None, tally: CheckTally, *, read_data: bool
) -> None:
    objects = objects or TenantObjects(part=part_of(tenant), name=tenant)
    if not _keys_fit(store, tenant, tally):
        return  # every code would be wrong
    if isinstance(store.keys, CheckableKeys):
        for fault in store.keys.seal_key_faults(tenant):
            kind = "seal_key_missing" if isinstance(fault, KeyFileMissing) else "seal_key_wrong"
            tally.found(kind, f"keys of tenant {tenant}", str(fault))
    vault = store.fresh_vault(tenant)
    altered = _altered_rows(store, tenant, tally)
    try:
        complete(store, objects, vault, altered)  # lost links are reported when their chain is checked
    except StoreUnavailable as error:
        if not tally.findings:
            raise
        damage = ", ".join(f"{finding.kind} at {finding.field}" for finding in tally.findings)
        raise StoreUnavailable(f"{error}; found before that: {damage}") from error
    erased = frozenset(objects.tombstones)
    seen_tombstones = store.journal.seen(f"tombstones/{tenant}")
    if seen_tombstones > len(erased):
        there = sum(1 for _ in vault.erased())  # count again: a tombstone may be younger than the listing
        if seen_tombstones > there:
            folder = f"tombstones/{part_of(tenant)}/"
            tally.found("tombstone_missing", folder, f"{there} are there, and {seen_tombstones} were seen")
    check_subjects(vault, objects, tally)  # first, because a damaged key makes everything under it unreadable
    for session in store.journal.sessions(tenant):
        if session not in altered and tally.share.holds(f"{tenant}\x00{session}"):
            key = SessionKey(tenant, session)
            try:
                check_log(store, key, erased, tally, read_data=read_data)
            except Damaged as error:  # the journal's file itself is damaged
                tally.found("journal_damaged", place(key, 0), str(error))
    seen = seen_chains(store, vault, altered)
    owners: dict[str, str] = {}
    for folder in sorted({*objects.chains, *seen}):
        drains, ours = folder.startswith("sessions/"), tally.share.holds(folder)
        if drains and not ours:
            continue
        # governed state of other shares is read, too, because only its links name the owners of our share's blobs
        chain_tally = tally if ours else CheckTally()
        chain_tally.tell(folder)
        listed = objects.chains.get(folder, {})
        links = sound_links(store.chain(folder, tenant=tenant), listed, seen.get(folder, 0), chain_tally)
        if drains:
            check_drained(store, vault, folder, links, objects, chain_tally, altered, read_data=read_data)
        for link in () if drains else links:
            owners |= dict(check_references(vault, objects, link, numbered(folder, link.number), chain_tally))
    check_blobs(vault, objects, owners, tally, read_data=read_data)
    check_reports(vault, objects, tally, read_data=read_data)
    _check_approvals(store, tenant, objects, tally)


def _check_approvals(store: Backend, tenant: str, objects: TenantObjects, tally: CheckTally) -> None:
    """Check the people enrolled for each profile, and that reviewers signed the approvals that its versions name."""
    for folder in sorted(objects.chains):
        if not (folder.startswith("profiles/") and folder.endswith("/versions") and tally.share.holds(folder)):
            continue
        profile = unquote(folder.split("/")[2])
        register = PeopleRegister(store, profile, tenant)
        with tally.reading(register.folder, "people_forged", "it is not signed by a reviewer of then"):
            register.read()
            _check_versions(ProfileVersions(store, profile, tenant), tally)


def _check_versions(versions: ProfileVersions, tally: CheckTally) -> None:
    """Check the approvals of each version. An unreadable version ends the check; another check reports it."""
    try:
        for number, check in versions.approval_checks():
            key = numbered(versions.folder, number)
            for problem in check.problems:
                tally.found("approval_forged", key, problem)
            for who in check.unknown:
                tally.found("approval_unknown", key, f"approved by {who}")
    except UnsupportedVersion as error:
        if all(finding.field != error.what for finding in tally.findings):
            tally.found("later_version", error.what, str(error))
    except Damaged as error:
        if not tally.findings:
            tally.found("link_altered", versions.folder, str(error))


def _altered_rows(store: Backend, tenant: str, tally: CheckTally) -> Set[str]:
    """Return the sessions whose row of logs was altered, so that their logs cannot be read by it."""
    rows = store.journal.altered(tenant)
    for session, row in rows:
        if tally.share.holds(f"{tenant}\x00{session}"):
            key = SessionKey(tenant, session)
            of = key if row == "log" else None
            tally.found(f"{row}_altered", place(key), "its row is not what was written", of=of)
    return {session for session, row in rows if row == "log"}


def _keys_fit(store: Backend, tenant: str, tally: CheckTally) -> bool:
    """Return whether the tenant's objects were written with the keys of this store."""
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
