"""What must hold at a place where a process has died, and where the next one has come to its end.

`recovered` opens everything there is and reads all of it; `collected` is a store without garbage; `picture` is every
byte, to tell whether reading, recovering or repeating has changed one.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import Session, Store
from ctxsteward.envelope.building.snapshots import Snapshots
from ctxsteward.schemas import Erased
from ctxsteward.store.journal.log import read_manifest
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.maintenance.gc import gc
from ctxsteward.store.objects.file import FileObjects
from ctxsteward.store.profiles.version_codec import references

from .places import TENANT, Machines, Place, drain
from .scenarios import BOTH, FAR_SECONDS, NAME, WORDS, builder, profile, text_of

RECOVERY_SECONDS = 2.0
UNFINISHED = frozenset({"key_after_tombstone", "content_after_erasure"})
"""What fsck calls an erasure that was cut off."""
Told = list[list[Any]]


def recovered(machines: Machines, *, unfinished: frozenset[str] = frozenset()) -> float:
    """Open and load everything, check that all of it is whole; how long opening and loading took, in seconds."""
    started = time.perf_counter()
    stores = [machines(name) for name in machines.names]
    loaded = [session for store in stores for name in here(store) if (session := _read(store, name)) is not None]
    for store in stores:
        store.profiles(NAME, tenant=TENANT).head()
    seconds = time.perf_counter() - started
    assert seconds < RECOVERY_SECONDS
    for session in loaded:
        entries = session.entries()
        assert [entry.ordinal for entry in entries] == list(range(1, len(session) + 1))
        ids = [entry.event.id for entry in entries if entry.event.id is not None]
        assert len(ids) == len(set(ids)), "an id stands twice in a log"
        for entry in entries:
            _resolves(session, entry.ordinal)
            if entry.event.id is not None and not entry.event.erased:
                assert entry.message.text.endswith(text_of(entry.event.id))
        for report in session.reports():
            for ref in {*report.report.kept_refs, *(loss.ref for loss in report.report.losses if loss.ref)}:
                _resolves(session, ref)
            for bullet in report.bullets:
                for ref in bullet.citations:
                    _resolves(session, ref)
        builder().preview(session, "and now?")
    for store in stores:
        found = fsck(store, tenant=TENANT, read_data=True)
        assert {finding.kind for finding in found.damage} <= unfinished, found.damage
    return seconds


def _read(store: Store, name: str) -> Session | None:
    """The session; None where it is being forgotten."""
    with suppress(Erased):
        return store.at(TENANT, name)
    return None


def _resolves(session: Any, ref: str | int) -> None:
    with suppress(Erased):  # there was one, and it says who forgot it
        session.resolve(ref)


def here(store: Store) -> list[str]:
    return store.journal.sessions(TENANT)


# -- what was acknowledged ---------------------------------------------------------------------------------------


def holds_messages(machines: Machines, told: Told) -> None:
    """Every acknowledged message stands at its place on its machine; of the envelopes handed out none has changed."""
    for kind, machine, name, *what in told:
        store = machines(machine)
        if kind == "append":
            id, ordinal = what
            logs = [log for log in here(store) if log == name or log.startswith(f"{name}-fork-e")]
            records = [store.journal.by_id(SessionKey(TENANT, log), id) for log in logs]
            assert ordinal in [record.ordinal for record in records if record is not None], (name, id, logs)
        elif kind == "build":
            address, reports = what
            _rebuilds(store, name, address)
            for report in reports:
                assert store.compaction(report, tenant=TENANT).report.artifact == report


def _rebuilds(store: Store, name: str, address: str) -> None:
    body = store.journal.get_manifest(TENANT, address)
    assert body is not None, "the envelope was handed out"
    manifest = read_manifest(store.keys.address_key(TENANT), address, body)
    if manifest["session"] == name:  # else its turns have moved, and it with them
        assert builder().rebuild(store.at(TENANT, name, manifest["position"])).address == address


def stands_once(machines: Machines, told: Told, *, repeated: bool) -> None:
    """With all drained, every acknowledged message is in the session or in one fork of it; all machines agree.

    `repeated`: a second run has said again, in the session, what had moved into a fork.
    """
    for _ in range(10):
        for name in machines.names:
            drain(machines(name))
    stores = [machines(name) for name in machines.names]
    for store in stores:
        assert store.journal.waiting() == [], store.write_behind_status()
        assert store.write_behind is not None
        store.write_behind.all_readable(TENANT)
    fresh = machines.fresh()
    for store in stores:
        assert here(store) == here(fresh)
        for name in here(fresh):
            key = SessionKey(TENANT, name)
            assert store.journal.read(key, 0) == fresh.journal.read(key, 0)
            assert sorted(store.journal.manifests(key)) == sorted(fresh.journal.manifests(key))
    places = defaultdict(list)
    for name in here(fresh):
        for record in fresh.journal.read(SessionKey(TENANT, name), 0):
            if record.id is not None:
                places[record.id].append(name)
    for kind, _, name, *what in told:
        if kind == "append":
            found = places[what[0]]
            assert found, f"{what[0]} was acknowledged and is lost"
            assert repeated or len(found) == 1, (what[0], found)
            assert all(place == name or place.startswith(f"{name}-fork-e") for place in found)
            assert len(set(found)) == len(found)


def holds_versions(store: Store, told: Told, *, last: int) -> None:
    """The head is the last acknowledged version or the one after it, and every version is whole."""
    acknowledged = max((what[-1] for what in told if what[0] == "version"), default=0)
    versions = list(store.profiles(NAME, tenant=TENANT).history())
    assert [version.number for version in versions] == list(range(1, len(versions) + 1))
    assert acknowledged <= len(versions) <= min(acknowledged + 1, last)
    for version in versions:
        assert _content(version.profile) == _content(profile(version.number))
        shown = store.profiles(NAME, tenant=TENANT).slice_text(version)
        assert all(record.text in shown for record in version.profile.meta)


def _content(found: Any) -> Any:
    return [getattr(found, field) for field in ("persona", "policies", "rails", "surface", "meta")]


def holds_snapshots(store: Store, told: Told) -> None:
    acknowledged = max((what[-1] for what in told if what[0] == "snapshot"), default=0)
    found = list(Snapshots(store, TENANT).history(NAME))
    assert acknowledged <= len(found) <= acknowledged + 1
    for number, snapshot in enumerate(found, 1):
        assert (snapshot.number, snapshot.version, snapshot.findings) == (number, number, ())
        text = json.dumps(snapshot.envelope, ensure_ascii=False)
        assert all(record.text in text for record in profile(number).meta)


# -- erasure -----------------------------------------------------------------------------------------------------


def keeps_the_others(machines: Machines, what: dict[str, str]) -> None:
    """However far an erasure has got, it touches nobody else."""
    store = machines()
    bobs = [("t", "t0"), ("s", "n0"), ("s", "n1"), ("s", "n2"), ("s-branch", "b0")]
    kept = bobs[:1] if "session" in what else bobs
    for name, id in kept:
        record = store.journal.by_id(SessionKey(TENANT, name), id)
        assert record is not None
        assert WORDS["bob"] in store.at(TENANT, name).resolve(record.ordinal).text
    (version,) = store.profiles(NAME, tenant=TENANT).history()
    assert BOTH in version.profile.meta


def has_forgotten(machines: Machines, what: dict[str, str], bodies: Iterable[bytes]) -> None:
    """Nothing of it can be read, by whatever way."""
    store, word = machines(), WORDS["ann"].encode()
    (version,) = store.profiles(NAME, tenant=TENANT).history()
    assert version.profile.meta == (BOTH,)
    if "session" in what:
        assert here(store) == ["t"]
        for name in ("s", "s-branch"):
            with pytest.raises(Erased):
                store.session(name, tenant=TENANT)
    else:
        assert all(word not in body for body in bodies)
        for name in ("s", "t"):
            with pytest.raises(Erased):
                store.session(name, tenant=TENANT).append({"role": "user", "content": "x"}, principal="ann")


# -- garbage, and every byte ------------------------------------------------------------------------------------


def collected(store: Store) -> None:
    """After `gc` with no grace: no blob without a reference, no dead key, no temporary, no probe; all is whole."""
    gc(store, now=FAR_SECONDS, grace_seconds=0)
    keys = [info.key for info in store.objects.list("")]
    named = set()
    for folder in sorted({key.rpartition("/")[0] for key in keys if key.startswith(("profiles/", "snapshots/"))}):
        for link in store.chain(folder, tenant=TENANT).links():
            named |= {kept.blob for kept in references(link.body)}
    blobs = {key.rpartition("/")[2] for key in keys if key.startswith("blobs/")}
    assert blobs == named
    tombstones = {key.rpartition("/")[2] for key in keys if key.startswith("tombstones/")}
    assert not [key for key in keys if key.startswith("keys/") and key.rpartition("/")[2] in tombstones]
    assert not [key for key in keys if key.startswith("probe/")]
    if isinstance(store.objects, FileObjects):
        assert list(store.objects.temporaries()) == []
    found = fsck(store, tenant=TENANT)
    assert found.damage == ()
    assert {note.kind for note in found.notes} <= {"blob_erased"}


def picture(place: Place) -> dict[str, Any]:
    """Every object (in a bucket, its size and when it was written), and every row of every journal."""
    with place.open() as machines:
        store = machines()
        found: dict[str, Any] = {
            info.key: info if place.uri else store.objects.get(info.key) for info in store.objects.list("")
        }
        for machine in machines.names:
            journal = machines(machine).journal
            for name in journal.sessions(TENANT):
                key = SessionKey(TENANT, name)
                found[f"{machine} {name}"] = (journal.read(key, 0), journal.manifests(key), journal.drained(key))
            found[f"{machine} forgotten"] = journal.forgotten(TENANT)
        return found


def bodies(place: Place) -> list[bytes]:
    """Every byte of it: files of the folder, objects of the bucket."""
    found = [path.read_bytes() for path in sorted(Path(place.folder).rglob("*")) if path.is_file()]
    if place.uri:
        with place.open() as machines:
            objects = machines().objects
            found += [objects.get(info.key) for info in objects.list("")]
    return found
