"""Ledgers of the steward that an erasure has reached, and those that it could not.

A profile's ledger is a file on the machine that runs its nights, ``ledgers/<tenant>/<profile>.sqlite`` beside the
journal. It holds words that were harvested. An erasure deletes the ledgers below its own journal's folder. A ledger in
another folder, or on another machine, takes out what was forgotten when it is opened next, by a night or by an erasure
there. Until then the erasure is not complete.

The journal keeps, for each profile, how many tombstones its ledger was told of last (`tell_ledger`), and up to which
night an erasure has deleted it. In a store in PostgreSQL all machines share that; with a journal on the local disk it
is known for this journal's folder alone. A profile whose nights have never run has no ledger. A ledger that was left
behind by a machine on which no night runs any more is not known of: delete that machine's journal folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from ctxsteward.schemas import Finding

from ..backend import Backend
from ..journal.port import Journal
from ..names import number_of, part_of

LEDGER_FOLDER = "ledgers"
UNREACHED = "ledger_elsewhere"


def tell_ledger(journal: Journal, tenant: str, profile: str, tombstones: int) -> None:
    """Note that the profile's ledger holds nothing any more of what these tombstones name."""
    journal.see(_mark("told", tenant, profile), tombstones)


class LedgersBeside:
    """The ledgers below a store's folder before an erasure, and what to say of the others after it."""

    def __init__(self, store: Backend, tenant: str) -> None:
        self._store, self._tenant = store, tenant
        self._nights = self._newest_nights()
        self._here = {profile for profile in self._nights if self._path(profile).is_file()}

    def after(self) -> Iterator[Finding]:
        """Findings for ledgers that may hold what was forgotten; those here are noted as deleted."""
        journal, tombstones = self._store.journal, None
        for profile, night in sorted(self._nights.items()):
            if profile in self._here:
                journal.see(_mark("deleted", self._tenant, profile), night)
                continue
            if journal.seen(_mark("deleted", self._tenant, profile)) >= night:
                continue
            if tombstones is None:
                tombstones = sum(1 for _ in self._store.vault(self._tenant).buried())
            if journal.seen(_mark("told", self._tenant, profile)) < tombstones:
                text = (
                    f"the ledger of profile {profile!r} is not in {self._path(profile).parent} and may still hold the "
                    "words: run the next night where it is, or repeat the erasure with the journal folder of those "
                    "nights (open_store(…, journal=FOLDER); CTXSTEWARD_JOURNAL for commands)"
                )
                yield Finding(kind=UNREACHED, field=f"ledgers/{profile}", text=text)

    def _path(self, profile: str) -> Path:
        folder = self._store.folder or Path()
        return folder / LEDGER_FOLDER / part_of(self._tenant) / f"{part_of(profile)}.sqlite"

    def _newest_nights(self) -> dict[str, int]:
        """The number of the newest night of each profile."""
        newest: dict[str, int] = {}
        if self._store.folder is None:
            return newest
        for stored in self._store.objects.list(f"steward/{part_of(self._tenant)}/"):
            parts, number = stored.key.split("/"), number_of(stored.key)
            if len(parts) > 4 and parts[3] == "nights" and number is not None:
                profile = unquote(parts[2])
                newest[profile] = max(number, newest.get(profile, 0))
        return newest


def _mark(what: str, tenant: str, profile: str) -> str:
    return f"ledger_{what}/{tenant}/{part_of(profile)}"
