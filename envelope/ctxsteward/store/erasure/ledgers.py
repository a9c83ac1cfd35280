"""Ledgers of the steward that an erasure has reached, and those that it could not.

A profile's ledger is a file on the machine that runs its nights, below the journal's folder (``ledgers/<tenant>/<profile>.sqlite``).
It holds words that were harvested. An erasure deletes the ledgers below its own journal's folder. A ledger in another
folder, or on another machine, takes out what was forgotten when it is opened next, by a night or by an erasure there.
Until then the erasure is not complete.

The journal keeps, for each profile, which erasure its ledger was told of last (`tell_ledger`). In a store in PostgreSQL
all machines share that; with a journal on the local disk it is known for this journal's folder alone. A profile whose
nights have never run has no ledger. A ledger that was left behind by a machine on which no night runs any more is not
known of: delete that machine's journal folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from ctxsteward.schemas import Finding

from ..backend import Backend
from ..journal import Journal, erasures
from ..names import part_of

LEDGER_FOLDER = "ledgers"
UNREACHED = "ledger_elsewhere"


def tell_ledger(journal: Journal, tenant: str, profile: str, erasure: int) -> None:
    """Note that the profile's ledger holds nothing any more that was forgotten up to this erasure."""
    journal.see(_mark(tenant, profile), erasure)


class LedgersBeside:
    """The ledgers below a store's folder before an erasure, and what to say of the others after it."""

    def __init__(self, store: Backend, tenant: str) -> None:
        self._store, self._tenant = store, tenant
        self._here = {profile for profile in self._profiles() if self._path(profile).is_file()}

    def after(self) -> Iterator[Finding]:
        """Findings for ledgers that were not told of the newest erasure; those here are noted as told."""
        if self._store.folder is None:
            return
        number = erasures(self._store.journal, self._tenant)
        for profile in sorted(self._profiles()):
            if profile in self._here:
                tell_ledger(self._store.journal, self._tenant, profile, number)
            elif self._store.journal.seen(_mark(self._tenant, profile)) < number:
                text = (
                    f"the ledger of profile {profile!r} is not in {self._path(profile).parent} and may still hold the "
                    "words: run the next night where it is, or repeat the erasure with the journal folder of those "
                    "nights (open_store(…, journal=FOLDER); CTXSTEWARD_JOURNAL for commands)"
                )
                yield Finding(kind=UNREACHED, field=f"ledgers/{profile}", text=text)

    def _path(self, profile: str) -> Path:
        folder = self._store.folder or Path()
        return folder / LEDGER_FOLDER / part_of(self._tenant) / f"{part_of(profile)}.sqlite"

    def _profiles(self) -> set[str]:
        """Profiles whose nights have run."""
        if self._store.folder is None:
            return set()
        parts = (one.key.split("/") for one in self._store.objects.list(f"steward/{part_of(self._tenant)}/"))
        return {unquote(part[2]) for part in parts if len(part) > 3 and part[3] == "nights"}


def _mark(tenant: str, profile: str) -> str:
    return f"ledger/{tenant}/{part_of(profile)}"
