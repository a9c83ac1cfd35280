"""How much use each record was: a pure function of the batches that were finished.

A batch tells what became of the records that each of its sessions was shown (`harvest.batches.SessionUse`). A session
counts once, by its newest reading; of two readings of one revision, by the one that tells of more records. It counts
until it, or anybody who spoke in it, is forgotten. The table keeps what each batch says, so that a batch is read once;
sums are made anew. It holds ids, addresses and numbers only.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Set

from ctxsteward.schemas.recommendation import Slot

from ..harvest.batches import BatchResult, SessionUse, newest
from ..harvest.usage import FATES, RecordUse, WatchedRecord, sum_uses
from ..reconcile.draft import Draft
from .database import LedgerDatabase
from .reconciliation import Reconciliation


class UsageTable:
    """The side table of one ledger."""

    def __init__(self, database: LedgerDatabase, reconciled: Callable[[], Reconciliation]) -> None:
        self._db, self._reconciled = database, reconciled

    def catch_up(
        self, addresses: Iterable[str], read: Callable[[str], BatchResult], forgotten: Set[str] = frozenset()
    ) -> int:
        """Read finished batches that were not read yet; how many. `forgotten`: addresses of subjects."""
        self.withdraw(forgotten)
        todo = sorted(set(addresses) - {row[0] for row in self._db.rows("SELECT address FROM batches")})
        for address in todo:
            with self._db.writing():
                self._keep(address, read(address).uses, forgotten)
        return len(todo)

    def withdraw(self, subjects: Collection[str]) -> None:
        """Take out the sessions that rest on one of these."""
        gone = frozenset(subjects)
        with self._db.writing():
            for address, uses in self._read() if gone else ():
                if not all(gone.isdisjoint(use.rests) for use in uses):
                    self._keep(address, uses, gone)

    def _keep(self, address: str, uses: Iterable[SessionUse], gone: Set[str]) -> None:
        told = [(use.reading, use.revision, use.fates, use.rests) for use in uses if gone.isdisjoint(use.rests)]
        self._db.run("INSERT OR REPLACE INTO batches VALUES (?, ?)", address, json.dumps(told))

    def _read(self) -> Iterator[tuple[str, list[SessionUse]]]:
        for address, told in self._db.rows("SELECT address, uses FROM batches"):
            yield address, [SessionUse(*row) for row in json.loads(told)]

    def by_shown_id(self) -> dict[str, RecordUse]:
        """By the id under which a record was shown; a fate of a later program says only that it was shown."""
        hits: dict[str, list[RecordUse]] = defaultdict(list)
        for use in newest(use for _, uses in self._read() for use in uses):
            for fate, ids in use.fates.items():
                for id_ in ids:
                    hits[id_].append(FATES.get(fate, FATES["untold"]))
        return {id_: sum_uses(rows) for id_, rows in sorted(hits.items())}

    def of_records(self) -> dict[str, RecordUse]:
        """By the id that a record has now: the sum over all ids that it was shown under."""
        found = self._reconciled()
        uses: dict[str, list[RecordUse]] = defaultdict(list)
        for name, use in self.by_shown_id().items():
            if (draft := found.draft(name)) is not None:
                uses[draft.id].append(use)
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
