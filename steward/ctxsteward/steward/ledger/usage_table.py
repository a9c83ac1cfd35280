"""How much use each record was: a side table of a ledger, a pure function of the batches that were finished.

A batch tells what became of the records that each of its sessions was shown (`harvest.batches.SessionUse`). A session
counts once, by its newest reading; of two readings of one revision, by the one that tells of more records. It counts
until it, or anybody who spoke in it, is forgotten. Totals are kept up to date as sessions come. The table holds ids,
addresses and numbers only.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import Protocol

from ctxsteward.schemas.recommendation import Slot

from ..harvest.batches import BatchResult, SessionUse
from ..harvest.usage import FATES, RecordUse, WatchedRecord, sum_uses
from ..reconcile.draft import Draft
from .database import LedgerDatabase
from .reconciliation import Reconciliation

_COLUMNS = ", ".join(RecordUse._fields)
_ADDING = ", ".join(f"{name} = {name} + excluded.{name}" for name in RecordUse._fields)
_ADD = (
    f"INSERT INTO used (record, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (record) DO UPDATE SET {_ADDING}"
)


class FinishedBatches(Protocol):
    """Batches that came to their end."""

    def addresses(self) -> Iterable[str]:
        """Of all of them."""

    def read(self, address: str) -> BatchResult:
        """What became of one."""


class UsageTable:
    """The side table of one ledger."""

    def __init__(self, database: LedgerDatabase, reconciled: Callable[[], Reconciliation]) -> None:
        self._db, self._reconciled = database, reconciled

    def catch_up(self, batches: FinishedBatches, forgotten: Set[str] = frozenset()) -> int:
        """Count what is not counted yet; how many batches that were. `forgotten`: addresses of subjects."""
        self.withdraw(forgotten)
        todo = sorted(set(batches.addresses()) - {row[0] for row in self._db.rows("SELECT batch FROM counted")})
        for address in todo:
            self.add(address, (use for use in batches.read(address).uses if forgotten.isdisjoint(use.rests)))
        return len(todo)

    def add(self, batch: str, uses: Iterable[SessionUse]) -> None:
        """Count the sessions of one batch."""
        with self._db.writing():
            if self._db.run("INSERT OR IGNORE INTO counted VALUES (?)", batch):
                for use in uses:
                    self._count(use)

    def _count(self, use: SessionUse) -> None:
        told = json.dumps(use.fates, sort_keys=True)
        rows = self._db.rows("SELECT revision, fates FROM uses WHERE reading = ?", use.reading)
        if rows and _rank(*rows[0]) >= _rank(use.revision, told):
            return
        self._take_back(use.reading)
        self._db.run("INSERT INTO uses VALUES (?, ?, ?)", use.reading, use.revision, told)
        self._db.many("INSERT INTO rests VALUES (?, ?)", [(use.reading, subject) for subject in sorted(set(use.rests))])
        self._db.many(_ADD, [(record, *hit) for record, hit in sorted(_hits(use.fates).items())])

    def withdraw(self, subjects: Collection[str]) -> None:
        """Take out the sessions that rest on one of these."""
        with self._db.writing():
            rows = self._db.among("SELECT reading FROM rests WHERE subject IN (…)", sorted(subjects))
            for reading in sorted({row[0] for row in rows}):
                self._take_back(reading)

    def _take_back(self, reading: str) -> None:
        """Count a session no more."""
        for (told,) in self._db.rows("SELECT fates FROM uses WHERE reading = ?", reading):
            hits = sorted(_hits(json.loads(told)).items())
            self._db.many(_ADD, [(record, *(-count for count in hit)) for record, hit in hits])
            self._db.many("DELETE FROM used WHERE record = ? AND shown = 0", [(record,) for record, _ in hits])
        self._db.run("DELETE FROM uses WHERE reading = ?", reading)
        self._db.run("DELETE FROM rests WHERE reading = ?", reading)

    def of_records(self) -> dict[str, RecordUse]:
        """By the id that a record has now: the sum over all ids that it was shown under."""
        found = self._reconciled()
        uses: dict[str, list[RecordUse]] = defaultdict(list)
        for name, *counts in self._db.rows(f"SELECT record, {_COLUMNS} FROM used"):
            if counts[0] and (draft := found.draft(name)) is not None:
                uses[draft.id].append(RecordUse(*counts))
        return {id_: sum_uses(rows) for id_, rows in sorted(uses.items())}

    def watched(self, ids: Collection[str]) -> tuple[WatchedRecord, ...]:
        """What is known of the records that were shown under these ids; whatever their status."""
        found = self._reconciled()
        drafts: dict[str, Draft] = {}
        names: dict[str, set[str]] = defaultdict(set)
        for id_ in ids:
            if (draft := found.draft(id_)) is not None:
                drafts[draft.id] = draft
                names[draft.id].add(id_)
        return tuple(
            WatchedRecord(
                id=draft.id,
                kind=draft.kind,
                slot=Slot(**draft.said["slot"]),
                trigger=draft.said["trigger"],
                value=draft.said["value"],
                polarity=draft.said["polarity"],
                names=frozenset((draft.id, *shown)),
            )
            for draft, shown in ((drafts[id_], names[id_]) for id_ in sorted(drafts))
        )


def _hits(fates: Mapping[str, Sequence[str]]) -> dict[str, RecordUse]:
    """Rows of one session; a fate that only a later program knows says no more than that a record was shown."""
    rows = [(id_, FATES.get(fate, FATES["untold"])) for fate, ids in fates.items() for id_ in ids]
    return {id_: sum_uses(hit for other, hit in rows if other == id_) for id_, _ in rows}


def _rank(revision: int, told: str) -> tuple[int, int, str]:
    return revision, sum(map(len, json.loads(told).values())), told
