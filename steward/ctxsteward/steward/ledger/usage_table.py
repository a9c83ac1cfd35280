"""The use of each record in sessions, computed from finished batches.

A batch has the fate of each record that its sessions were shown (`harvest.batches.SessionUse`). A session counts once,
by its newest reading; of two readings of one revision, the one with more records counts. It counts until it, or anybody
who spoke in it, is forgotten. The table keeps the uses of each batch, so that a batch is read once; sums are computed
when needed. It holds only ids, addresses and numbers.
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
        """Read new finished batches, and return their number; `forgotten` are addresses of subjects."""
        self.withdraw(forgotten)
        todo = sorted(set(addresses) - {row[0] for row in self._db.rows("SELECT address FROM batches")})
        for address in todo:
            with self._db.writing():
                self._keep(address, read(address).uses, forgotten)
        return len(todo)

    def withdraw(self, subjects: Collection[str]) -> None:
        """Remove the sessions of these subjects."""
        gone = frozenset(subjects)
        with self._db.writing():
            for address, uses in self._read() if gone else ():
                if not all(gone.isdisjoint(use.rests) for use in uses):
                    self._keep(address, uses, gone)

    def _keep(self, address: str, uses: Iterable[SessionUse], gone: Set[str]) -> None:
        rows = [(use.reading, use.revision, use.fates, use.rests) for use in uses if gone.isdisjoint(use.rests)]
        self._db.run("INSERT OR REPLACE INTO batches VALUES (?, ?)", address, json.dumps(rows))

    def _read(self) -> Iterator[tuple[str, list[SessionUse]]]:
        for address, uses in self._db.rows("SELECT address, uses FROM batches"):
            yield address, [SessionUse(*row) for row in json.loads(uses)]

    def by_shown_id(self) -> dict[str, RecordUse]:
        """Return use by the id under which a record was shown; an unknown fate (of a later version) counts as shown."""
        by_id: dict[str, list[RecordUse]] = defaultdict(list)
        for use in newest(use for _, uses in self._read() for use in uses):
            for fate, ids in use.fates.items():
                for id_ in ids:
                    by_id[id_].append(FATES.get(fate, FATES["untold"]))
        return {id_: sum_uses(uses) for id_, uses in sorted(by_id.items())}

    def of_records(self) -> dict[str, RecordUse]:
        """Return use by a record's present id, summed over all ids under which it was shown."""
        reconciliation = self._reconciled()
        by_id: dict[str, list[RecordUse]] = defaultdict(list)
        for name, use in self.by_shown_id().items():
            if (draft := reconciliation.draft(name)) is not None:
                by_id[draft.id].append(use)
        return {id_: sum_uses(uses) for id_, uses in sorted(by_id.items())}

    def watched(self, ids: Collection[str]) -> tuple[WatchedRecord, ...]:
        """Look up the records that were shown under these ids, of any status."""
        reconciliation = self._reconciled()
        drafts: dict[str, Draft] = {}
        names: dict[str, set[str]] = defaultdict(set)
        for id_ in ids:
            if (draft := reconciliation.draft(id_)) is not None:
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
