"""The index of a ledger: the observations of live artifacts, each with its claim.

If a source was read twice, the artifacts of the newer reading are live. The content depends only on the set of
artifacts. Call the methods inside a transaction of the database.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence

from ctxsteward.store.crypto.keyring import AddressKey

from ..artifacts.artifact import Artifact
from ..artifacts.storage import possible_speakers
from ..reconcile.claims import IndexedObservation, ObservationBrief, claim_of, seen_in
from .database import LedgerDatabase, claim_row, seen_row
from .records import LedgerIdentity

_INSERT = f"INSERT INTO seen VALUES ({', '.join('?' * (len(ObservationBrief._fields) + 4))})"


class ObservationIndex:
    """The observations in a `LedgerDatabase`."""

    def __init__(self, database: LedgerDatabase, key: AddressKey, frame: LedgerIdentity) -> None:
        self._db, self._key, self._frame = database, key, frame

    def add(self, artifacts: Iterable[tuple[str, Artifact]]) -> int:
        """Add artifacts by address, and return the number of new observations. Known artifacts change nothing."""
        fresh: list[tuple[str, IndexedObservation]] = []
        for address, artifact in artifacts:
            is_known = bool(self._db.rows("SELECT 1 FROM artifacts WHERE address = ?", address))
            if is_known or self._is_erased(artifact):
                continue
            if self._enter(address, artifact):
                fresh += [(address, seen) for seen in seen_in(artifact, self._key)]
        live = {
            row[0]
            for row in self._db.among(
                "SELECT address FROM artifacts WHERE live AND address IN (…)", {a for a, _ in fresh}
            )
        }
        return self._see([(address, seen) for address, seen in fresh if address in live])

    def drop(self, addresses: Collection[str]) -> int:
        """Remove artifacts, and return the number of removed observations."""
        count = self._leave(addresses)
        self._db.many("DELETE FROM artifacts WHERE address = ?", [(address,) for address in addresses])
        return count

    # -- inside -------------------------------------------------------------------------------------------------

    def _is_erased(self, artifact: Artifact) -> bool:
        rows = self._db.rows("SELECT principal FROM erased WHERE session = ?", artifact.session)
        gone = {row[0] for row in rows}
        return "" in gone or not gone.isdisjoint(possible_speakers(artifact.session, artifact.principals))

    def _enter(self, address: str, artifact: Artifact) -> bool:
        """Add an artifact, and return whether it is live; if so, artifacts of older readings stop being live."""
        readings = self._db.rows(
            "SELECT address, transcript, rank, live FROM artifacts WHERE session = ? AND source = ?",
            artifact.session,
            artifact.source,
        )
        rank = json.dumps(artifact.rank)
        live = all(json.loads(row[2]) <= json.loads(rank) for row in readings)
        if live and (leaving := [row[0] for row in readings if row[3] and row[1] != artifact.transcript]):
            self._leave(leaving)
            self._db.many("UPDATE artifacts SET live = 0 WHERE address = ?", [(older,) for older in leaving])
        self._db.run(
            "INSERT INTO artifacts VALUES (?, ?, ?, ?, ?, ?, ?)",
            address,
            artifact.source,
            artifact.session,
            artifact.transcript,
            rank,
            live,
            json.dumps(artifact.principals),
        )
        return live

    def _see(self, fresh: Sequence[tuple[str, IndexedObservation]]) -> int:
        """Add observations with their claims, and return the number of new ones."""
        known = {
            row[0] for row in self._db.among("SELECT id FROM seen WHERE id IN (…)", {seen.id for _, seen in fresh})
        }
        new = {seen.id: (address, seen) for address, seen in fresh if seen.id not in known}
        claims = [claim_of(seen.observation, self._key, self._frame.agent) for _, seen in new.values()]
        rows = zip(new.values(), claims, strict=True)
        self._db.many(
            _INSERT,
            [
                (*seen.brief, bytes.fromhex(address), claim.id, claim_row(claim), seen_row(seen))
                for (address, seen), claim in rows
            ],
        )
        return len(new)

    def _leave(self, addresses: Collection[str]) -> int:
        """Remove the observations of these artifacts, and return their number."""
        return sum(self._db.run("DELETE FROM seen WHERE artifact = ?", bytes.fromhex(address)) for address in addresses)
