"""What can be put right from inside: a copy elsewhere takes the place of what is damaged, and nothing is invented.

    record_altered, record_missing      the journal's record, from the session's segments in the object store
    manifest_altered, manifest_missing  the same; where it is not there, dropped: the envelope can be built again
    log_altered                         the log's row is counted anew, where its records are whole from the first on,
                                        and where they begin as the object store's do
    key_after_tombstone                 the key is destroyed: the erasure ends as it was meant to

Everything else is left as it is. A link of a chain cannot be made again, because its code covers bytes that are gone;
a backup's copy can be put back under its key, and is checked by its code like any other. Segments are taken only where
the session's whole chain is sound: a link that cannot be read might have replaced what an earlier one holds.
Raises `StoreError` where the store cannot be written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import takewhile
from typing import Protocol, runtime_checkable

from ..objects.names import data_key_name
from ..store import Store
from ..stores.port import Drained, SessionKey
from ..writebehind.sessionlog import Incoming
from .drained import is_sound, read_drained
from .tally import Broken, BrokenLog, BrokenManifest, BrokenRecord, DeadKey


def restore_damaged(store: Store, broken: Iterable[Broken]) -> int:
    """Put right what can be; how many things were touched. Whether it helped is for a new check to say."""
    records: defaultdict[SessionKey, set[int]] = defaultdict(set)
    manifests: defaultdict[SessionKey, set[str]] = defaultdict(set)
    touched = 0
    for one in broken:
        match one:
            case BrokenLog(key):
                touched += _recount(store, key)
            case BrokenRecord(key, position):
                records[key].add(position)
            case BrokenManifest(key, address):
                manifests[key].add(address)
            case DeadKey(tenant, subject):
                store.objects.delete(data_key_name(tenant, subject))
                touched += 1
    for key in sorted({*records, *manifests}):
        drained = read_drained(store, key)
        touched += _restore(store, key, records[key], drained)
        touched += _replace(store, key, manifests[key], drained)
    return touched


@runtime_checkable
class Recounts(Protocol):
    """A journal that can write the row of a log anew."""

    def recount(self, key: SessionKey, length: int, drained: Drained) -> None: ...


def _recount(store: Store, key: SessionKey) -> int:
    """How many rows of logs were counted anew."""
    stored = read_drained(store, key)
    if stored is None or not isinstance(store.journal, Recounts):
        return 0
    whole = list(takewhile(lambda one: is_sound(store, key, *one), enumerate(store.journal.read(key, 0))))
    macs = [record.mac for _, record in whole]
    if macs[: len(stored.records)] != [record.mac for record in stored.records]:
        return 0
    drained = Drained()
    if stored.head is not None:
        epoch = stored.head.epoch if stored.owner == store.journal.id else -stored.head.epoch
        drained = Drained(len(stored.records), stored.head.number, epoch)
    store.journal.recount(key, len(whole), drained)
    return 1


def _restore(store: Store, key: SessionKey, positions: set[int], drained: Incoming | None) -> int:
    """Records from the object store, in one rewrite; those that it does not hold stay as they are."""
    there = dict(enumerate(drained.records)) if drained is not None else {}
    found = {position: there[position] for position in positions if position in there}
    if found:
        store.journal.rewrite(key, found)
    return len(found)


def _replace(store: Store, key: SessionKey, addresses: set[str], drained: Incoming | None) -> int:
    """A journal drops all manifests of a session or none, so the sound ones are written again."""
    sound = {one.address: one.body for one in drained.manifests} if drained is not None else {}
    sound |= {one.address: one.body for one in store.journal.manifests(key) if one.address not in addresses}
    if addresses:
        store.journal.drop_manifests(key)
        for address, body in sound.items():
            store.journal.put_manifest(key, address, body)
    return len(addresses)
