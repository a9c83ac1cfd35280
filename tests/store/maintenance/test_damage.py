"""Damage of every kind, to everything that is stored: it is noticed by whoever reads it, and by `fsck`.

Every operator on every kind in turn; what exactly is seeded: ``CTXSTEWARD_SEED`` draws other cases,
``CTXSTEWARD_DAMAGES`` so many of them. Run with ``-s`` for the table of what was damaged how.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from itertools import cycle, islice, product
from random import Random

from ctxsteward.envelope.store import Store
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.maintenance.fsck import fsck

from .furnished import Original
from .operators import OPERATORS, damage_manifest, damage_object, damage_record, kind_of
from .readings import (
    Noticed,
    Reading,
    compaction_reading,
    event_reading,
    manifest_reading,
    message_reading,
    outcome,
    reading_of,
)

CASES = int(os.environ.get("CTXSTEWARD_DAMAGES", "160"))
SEED = int(os.environ.get("CTXSTEWARD_SEED", "20261122"))
TRIES = 50
OBJECTS = ("versions", "writers", "snapshots", "sessions", "keys", "blobs", "tombstones", "tenants", "steward")
ROWS = ("message", "compaction", "note", "pin", "head", "opened", "selection", "manifest")
SORTS = tuple(product((*OBJECTS, *ROWS), OPERATORS))
IMPOSSIBLE = {("tenants", "delete")}
"""Nothing is lost with it: it is written again by whoever writes next."""


def test_what_is_furnished_is_whole(original: Original) -> None:
    """And holds something of every sort that is damaged below."""
    found = fsck(original.store, read_data=True)

    assert found.damage == ()
    assert {note.kind for note in found.notes} == {"blob_erased"}
    assert set(map(kind_of, original.bodies())) == set(OBJECTS)
    assert {kind for (kind,) in original.rows("SELECT DISTINCT kind FROM records")} == {*ROWS} - {"manifest"}


def test_every_damaged_object_is_noticed_by_its_reader_and_by_fsck(original: Original) -> None:
    rng = Random(SEED)
    table: Counter[tuple[str, str]] = Counter()
    raised: Counter[str] = Counter()
    missed: list[str] = []
    for number, (kind, operator) in enumerate(islice(cycle(SORTS), CASES)):
        damaged = _damaged(rng, original, operator, kind)
        if damaged is None:
            continue
        store, reading, where = damaged
        try:
            read, found = _read(reading, original, store), fsck(store, read_data=True)
        finally:
            if store.journal is not original.journal:
                store.journal.close()
        table[kind, operator] += 1
        raised[read] += 1
        if read in ("served", "unnoticed") or not found.damaged:
            missed.append(f"case {number}: {operator} {where}: reader {read}; {found.closing}")
    _print_table(table, raised)
    print(*missed, sep="\n")

    assert missed == []
    assert set(SORTS) - set(table) == IMPOSSIBLE
    assert fsck(original.store, read_data=True).damage == ()


def _read(reading: Reading, original: Original, store: Store) -> str:
    """What the reader does about the damage: the error it raises; ``served`` and ``unnoticed`` are defects."""
    try:
        after = outcome(reading, store)
    except Noticed as notice:
        return str(notice)
    return "unnoticed" if after == outcome(reading, original.store) else "served"


DamagedStore = tuple[Store, Reading, str]
"""A store with one thing damaged, how that is read, and what it was."""


def _damaged(rng: Random, original: Original, operator: str, kind: str) -> DamagedStore | None:
    """None where there is nothing of this kind that can be damaged so."""
    damage = _damaged_row if kind in ROWS else _damaged_object
    return next(filter(None, (damage(rng, original, operator, kind) for _ in range(TRIES))), None)


def _damaged_object(rng: Random, original: Original, operator: str, kind: str) -> DamagedStore | None:
    bodies = original.bodies()
    key = rng.choice([key for key in bodies if kind_of(key) == kind])
    if (kind, operator) in IMPOSSIBLE or _is_erased(original, key):
        return None
    store = original.with_objects(damage_object(rng, operator, key, bodies))
    return store, reading_of(original.store, key), key


def _is_erased(original: Original, key: str) -> bool:
    """Whether it is content of a forgotten subject: nobody could read it before, either."""
    return kind_of(key) == "blobs" and key in original.erased


def _damaged_row(rng: Random, original: Original, operator: str, kind: str) -> DamagedStore | None:
    file = original.journal_file()
    if kind == "manifest":
        tenant, address = rng.choice(original.rows("SELECT tenant, address FROM manifests"))
        done, reading = damage_manifest(rng, operator, address, file), manifest_reading(tenant, address)
        where = f"manifest {address}"
    else:
        query = "SELECT tenant, session, position, ordinal, body FROM records WHERE kind = ?"
        *row, ordinal, body = rng.choice(original.rows(query, (kind,)))
        tenant, session, position = row
        done = damage_record(rng, operator, (tenant, session, position), file)
        where = f"{kind} {tenant}/{session}#{position}"
        stops = _readings(original, SessionKey(tenant, session), position)
        if kind == "message":
            reading = message_reading(tenant, session, stops, ordinal)
        elif kind == "compaction":
            reading = compaction_reading(tenant, json.loads(body)["report"]["id"])
        else:
            reading = event_reading(tenant, session, stops)
    return (original.with_journal(file), reading, where) if done else None


def _readings(original: Original, key: SessionKey, position: int) -> tuple[int, ...]:
    """Where the session is opened: right after this record, before the next compaction, and as it is now."""
    query = "SELECT position FROM records WHERE tenant=? AND session=? AND kind='compaction' AND position>?"
    later = [int(found) for (found,) in original.rows(query, (*key, position))]
    return (position + 1, *later[:1], original.journal.length(key))


def _print_table(table: Counter[tuple[str, str]], raised: Counter[str]) -> None:
    print(f"\n{'damaged':<12}" + "".join(f"{name:>10}" for name in OPERATORS))
    for kind in (*OBJECTS, *ROWS):
        print(f"{kind:<12}" + "".join(f"{table[kind, name]:>10}" for name in OPERATORS))
    print(f"{table.total()} cases; readers raised {dict(raised)}")
