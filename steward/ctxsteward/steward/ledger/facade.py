"""The ledger: all observations of one agent's transcripts, the records they make, and how much use each record was.

    ledger = Ledger.open(path, store, "acme", "support")
    ledger.absorb(*artifacts)                      a set: order, batches and repeats do not matter
    for record in ledger.records(JudgementContext(now="2026-11-22T00:00:00Z", run="night-7")): …
    ledger.publish(records)                        remember their stamps, once they are committed
    ledger.withdraw(session="s-42")
    ledger.uses.catch_up(batches, gone)            count what is not counted yet; a repeat or a kill does not matter
    ledger.uses.of_records()                       {id of a record: `RecordUse`}, under the id that the record has now

The same set of artifacts gives the same records, byte for byte, in whatever order and however many nights it came; what
a night adds costs what it touches. `records` is a function of the set, the policy, the present and the reviews, apart
from three stamps (`revision`, `run`, `recorded_at`) that say when a record last changed. `digest` does not cover them.

Use is a side table (`UsageTable`), a pure function of the batches that were finished. A batch tells what became of the
records that each of its sessions was shown (`harvest.batches.SessionUse`). A session counts once, by its newest
reading; of two readings of one revision, by the one that tells of more records. It counts until it, or anybody who
spoke in it, is forgotten. Totals are kept up to date as sessions come. The table holds ids, addresses and numbers only.

The file is an index: `rebuild` makes it from the store's artifacts. It holds words of users. So it registers with
`store.erasers`, takes out what was forgotten elsewhere when it is opened (a process that does not have it open deletes
the file), and is rewritten after each erasure, so that no deleted row is left in it.

Raises `StoreError`, and what the store raises.
Source: the layered-envelope design (meta-steward); the state design (erasure, trust).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple, Protocol, Self

from ctxsteward.envelope import Store
from ctxsteward.schemas import InputError, MetaRecommendation
from ctxsteward.schemas.recommendation import Evidence, Slot
from ctxsteward.store import Audience, Fact
from ctxsteward.store.crypto.keyring import AddressKey
from ctxsteward.store.journal.erasures import Deletion, ErasureRequest
from ctxsteward.store.sqlite_file import IN_MEMORY

from ..admission import AdmissionPolicy, AdmittedRecords
from ..artifacts.artifact import Artifact, EvidenceQuote
from ..artifacts.storage import ArtifactStore, possible_speakers
from ..erasure import RecordSupport, tell_ledger
from ..harvest.batches import BatchResult, SessionUse
from ..harvest.usage import FATES, RecordUse, WatchedRecord, sum_uses
from ..observations.transcript import in_order
from ..reconcile.sketches import SKETCH
from .database import LedgerDatabase, drafts_of
from .index import ObservationIndex
from .judgement import RecordBasis, RecordEvidence
from .records import JudgementContext, LedgerIdentity, LineCounter, RecordWriter, facts_of, line
from .status import RecordStatuses

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

    def __init__(self, database: LedgerDatabase) -> None:
        self._db = database

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
        sums = ", ".join(f"sum(u.{name})" for name in RecordUse._fields)
        rows = self._db.rows(
            f"SELECT d.id, {sums} FROM used u JOIN claims c ON c.id = u.record JOIN drafts d "
            "ON d.component = c.component WHERE d.id IS NOT NULL GROUP BY d.id ORDER BY d.id"
        )
        return {id_: RecordUse(*counts) for id_, *counts in rows if counts[0]}

    def watched(self, ids: Collection[str]) -> tuple[WatchedRecord, ...]:
        """What is known of the records that were shown under these ids; whatever their status."""
        names: dict[str, set[str]] = {}
        for id_, component in self._db.among("SELECT id, component FROM claims WHERE id IN (…)", sorted(set(ids))):
            names.setdefault(component, set()).add(id_)
        return tuple(
            WatchedRecord(
                id=draft.id,
                kind=draft.kind,
                slot=Slot(**draft.said["slot"]),
                trigger=draft.said["trigger"],
                value=draft.said["value"],
                polarity=draft.said["polarity"],
                names=frozenset((draft.id, *names[component])),
            )
            for component, draft in drafts_of(self._db, names).items()
        )


def _hits(fates: Mapping[str, Sequence[str]]) -> dict[str, RecordUse]:
    """Rows of one session; a fate that only a later program knows says no more than that a record was shown."""
    rows = [(id_, FATES.get(fate, FATES["untold"])) for fate, ids in fates.items() for id_ in ids]
    return {id_: sum_uses(hit for other, hit in rows if other == id_) for id_, _ in rows}


def _rank(revision: int, told: str) -> tuple[int, int, str]:
    return revision, sum(map(len, json.loads(told).values())), told


_EVERYBODY = ""
"""In the list of what was erased: the whole session."""


PLAIN = JudgementContext()
"""At no time, under the default policy, with no review."""


class LedgerSize(NamedTuple):
    """How much is in a ledger; of observations, those that were harvested."""

    artifacts: int
    observations: int
    claims: int
    components: int


class Ledger:
    """Observations and records of one agent."""

    def __init__(self, database: LedgerDatabase, store: Store, frame: LedgerIdentity, key: AddressKey) -> None:
        """Use `open`."""
        self._db, self._store = database, store
        self._artifacts = ArtifactStore(store, frame.tenant)
        self._index = ObservationIndex(database, key, frame)
        self._records = RecordWriter(database, frame, key)
        self._citing = RecordEvidence(database, self._artifacts, key, store.vault(frame.tenant).subject_address)
        self._standings = RecordStatuses(database)
        self.uses: UsageTable = UsageTable(database)
        self._tenant = frame.tenant
        store.erasers.append(self)

    @classmethod
    def open(cls, path: Path | str, store: Store, tenant: str, agent: str, key: AddressKey | None = None) -> Self:
        """Open a ledger's file: made if missing, made anew from the store where an older version made it.

        What was forgotten meanwhile leaves it. `key`: the tenant's own.
        """
        key = key or store.keys.address_key(tenant)
        about = f"tenant {tenant!r}, agent {agent!r}, sketches {SKETCH}"
        database = LedgerDatabase(Path(path), about)
        try:
            ledger = cls(database, store, LedgerIdentity(tenant, agent), key)
        except BaseException:
            database.close()
            raise
        try:
            tombstones = sum(1 for _ in store.vault(tenant).erased())
            ledger.catch_up()
            if Path(path) != IN_MEMORY:
                tell_ledger(store.journal, tenant, agent, tombstones)
            ledger.absorb_kept(database.left)
        except BaseException:
            ledger.close()
            raise
        return ledger

    # -- the set ------------------------------------------------------------------------------------------------

    def absorb(self, *artifacts: Artifact) -> int:
        """Take artifacts in; how many observations are new. Known, outdated and forgotten ones change nothing."""
        with self._db.writing():
            found = ((self._artifacts.address(one), one) for one in artifacts)
            return self._index.add((address, one) for address, one in found if address is not None)

    def absorb_kept(self, addresses: Iterable[str]) -> tuple[int, int]:
        """Take artifacts of the store in by address; how many observations are new, how many artifacts are gone."""
        known = set(addresses)
        known -= {row[0] for row in self._db.among("SELECT address FROM artifacts WHERE address IN (…)", known)}
        new = gone = 0
        todo = sorted(known)
        for start in range(0, len(todo), _AT_ONCE):
            with self._db.writing():
                for first in range(start, min(start + _AT_ONCE, len(todo)), _PAGE):
                    page = {address: self._artifacts.find(address) for address in todo[first : first + _PAGE]}
                    gone += sum(artifact is None for artifact in page.values())
                    new += self._index.add((address, found) for address, found in page.items() if found is not None)
        return new, gone

    def sessions(self, source: str) -> tuple[str, ...]:
        """Sessions that came out of this source, as artifacts name it; sorted."""
        rows = self._db.rows("SELECT DISTINCT session FROM artifacts WHERE source = ? ORDER BY session", source)
        return tuple(row[0] for row in rows)

    def cites(self, session: str, ref: str) -> bool:
        """Whether this message of a session was harvested, and can still be read."""
        rows = self._db.rows("SELECT address FROM artifacts WHERE live AND session = ?", session)
        found = (self._artifacts.find(row[0]) for row in rows)
        return any(cited.ref == ref for artifact in found if artifact for cited in artifact.cited)

    def rebuild(self, addresses: Iterable[str]) -> tuple[int, int]:
        """Make the index anew from the store's artifacts; what `absorb_kept` says."""
        self._db.empty()
        self._index.forget_memory()
        return self.absorb_kept(addresses)

    # -- what was forgotten -------------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The file that is in order once the ledger was told of an erasure."""
        return self._db.path

    def __call__(self, gone: Sequence[Deletion]) -> int:
        """Take out what was forgotten, as `store.erasers` ask it; how many observations left."""
        pairs = [(one.session, one.principal) for one in gone if one.tenant == self._tenant]
        return self._take_out(pairs) if pairs else 0

    def withdraw(
        self, *, session: str | None = None, principal: str | None = None, told: ErasureRequest | None = None
    ) -> int:
        """Take out what a session, a principal, or a principal in one session gave; how many observations.

        They do not come back. With `told`, their artifacts' keys are destroyed too: for transcripts from outside, of
        which the store knows no session to forget.
        """
        if session is None and principal is None:
            raise InputError("nothing to withdraw: name a session, a principal, or both")
        held = [
            (name, people)
            for _, name, people in self._held(session)
            if principal is None or principal in possible_speakers(name, people)
        ]
        pairs = [(name, principal) for name, _ in held] or ([(session, principal)] if session else [])
        if told is not None:
            for name in sorted({name for name, _ in pairs}):
                everybody = {who for other, people in held if other == name for who in people}
                if principal is not None:
                    everybody &= {principal, None} if principal == name else {principal}
                subjects = in_order(everybody, name)
                self._artifacts.erase(name, subjects, **told._asdict())
                if principal is None:
                    self._artifacts.erase(name, (), **told._asdict())
        return self._take_out(sorted(set(pairs), key=repr))

    def catch_up(self) -> int:
        """Take out what another process, or another machine, has forgotten; how many observations."""
        forgotten = self._artifacts.forgotten()
        if not forgotten:
            return 0
        pairs = {
            (session, principal)
            for _, session, people in self._held(None)
            for principal in (None, *possible_speakers(session, people))
            if self._artifacts.is_among(forgotten, session, principal)
        }
        self.uses.withdraw(forgotten)
        return self._take_out(sorted(pairs, key=repr)) if pairs else 0

    def _take_out(self, pairs: Collection[tuple[str, str | None]]) -> int:
        left = 0
        with self._db.writing():
            for session, principal in pairs:
                self._db.run("INSERT OR IGNORE INTO erased VALUES (?, ?)", session, principal or _EVERYBODY)
                held = self._held(session)
                if principal == session:  # an unknown speaker's words lie under the session's key, which stays
                    for address, _, people in held:
                        if None in people:
                            self._artifacts.discard(address)
                left += self._index.drop(
                    [
                        address
                        for address, name, people in held
                        if principal is None or principal in possible_speakers(name, people)
                    ]
                )
            self.uses.withdraw({self._artifacts.subject(*pair) for pair in pairs})
            self._index.refresh()
        self._db.scrub()
        return left

    def _held(self, session: str | None) -> list[tuple[str, str, list[str | None]]]:
        """Artifacts of a session, or of all: address, session, principals."""
        rows = self._db.rows(
            "SELECT address, session, principals FROM artifacts WHERE ?1 IS NULL OR session = ?1", session
        )
        return [(address, name, json.loads(people)) for address, name, people in rows]

    # -- records ------------------------------------------------------------------------------------------------

    def records(self, as_of: JudgementContext = PLAIN) -> Iterator[MetaRecommendation]:
        """Every record, by id."""
        self._refresh(as_of.counter)
        yield from self._records.each(as_of)

    def judged(self, as_of: JudgementContext = PLAIN) -> AdmittedRecords:
        """What `records` comes to, without writing out what concerns one person alone."""
        with self._db.writing():
            self._refresh(as_of.counter, for_many=True)
            return self._records.judged(as_of, self._index.total())

    def record(self, id: str, as_of: JudgementContext = PLAIN) -> MetaRecommendation | None:
        """One record, by its id or one it once had."""
        self._refresh(as_of.counter)
        return self._records.one(as_of, id)

    def publish(self, records: Iterable[MetaRecommendation]) -> None:
        """Remember the stamps of records that were committed; of what is left out, nothing is remembered any more."""
        with self._db.writing():
            self._records.publish(records)

    # -- shelves ------------------------------------------------------------------------------------------------

    def unshelved(self, after: str | None) -> tuple[tuple[Audience, ...], bool]:
        """Audiences that have to be told what is known of them, as `judged` left it, and whether these are all.

        `after`: the run that wrote the shelves last. Where that was not told by this ledger (`shelved`), all of them.
        """
        is_whole = after is None or self._db.noted("shelved") != after
        known = set(self._standings.shelves()) if is_whole else set[str]()
        known |= {row[0] for row in self._db.rows("SELECT shelf FROM unshelved")}
        return tuple(Audience(*json.loads(one)) for one in sorted(known)), is_whole

    def facts(self, audience: Audience) -> tuple[Fact, ...]:
        """What is active for this audience alone, by value, as `judged` left it."""
        return facts_of(self._standings.on(json.dumps(audience)))

    def shelved(self, run: str) -> None:
        """Note that this run has written all shelves."""
        with self._db.writing():
            self._db.note("shelved", run)
            self._db.run("DELETE FROM unshelved")

    def flawed(self) -> dict[str, str]:
        """Why would-be records fit no record by the published schema, by id."""
        self._refresh(None)
        return dict(self._db.rows("SELECT id, malformed FROM drafts WHERE malformed IS NOT NULL ORDER BY id"))

    def digest(self) -> str:
        """64 hex digits of all observations and what they make: equal for equal sets of artifacts."""
        self._refresh(None)
        return f"{self._index.total():064x}"

    def observations(self) -> int:
        """How many were harvested, as `size` says, without counting them."""
        return int(self._db.noted("observations") or 0)

    def components(self) -> int:
        """How many different claims there are, as `size` says, without counting them."""
        self._refresh(None)
        return int(self._db.noted("components") or 0)

    def size(self) -> LedgerSize:
        tables = ("artifacts", "seen", "claims", "drafts")
        self._refresh(None)
        size = LedgerSize(*(self._db.rows(f"SELECT count(*) FROM {table}")[0][0] for table in tables))
        return size._replace(observations=size.observations - self._db.rows("SELECT count(*) FROM derived")[0][0])

    # -- spans --------------------------------------------------------------------------------------------------

    def why(self, id: str) -> tuple[EvidenceQuote, ...]:
        """The spans a record rests on, with their words; empty for an id that is not known."""
        self._refresh(None)
        return self._citing.why(id)

    def support(self, record: MetaRecommendation, policy: AdmissionPolicy | None = None) -> RecordSupport | None:
        """Everybody behind a record, for whoever forgets; None where it is not known or counts no voices."""
        self._refresh(None)
        return self._citing.support(record, policy or AdmissionPolicy())

    def basis(self, id: str) -> RecordBasis | None:
        """What stands behind the record of this id, counted; None where it is not known."""
        self._refresh(None)
        return self._citing.basis(id)

    def recurring(self, since_seconds: float, until_seconds: float) -> list[tuple[str, int]]:
        """Errors that came up in this time (Unix seconds): id of the record, number of transcripts, the most first."""
        self._refresh(None)
        return self._citing.recurring(since_seconds, until_seconds)

    def broken(self, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
        """Those of the evidence whose bytes are not what their addresses say, or are gone."""
        return self._citing.broken(evidence)

    # -- inside -------------------------------------------------------------------------------------------------

    def _refresh(self, counter: LineCounter | None, *, for_many: bool = False) -> None:
        with self._db.writing():
            self._index.refresh()
            if counter is not None:
                self._count(counter, for_many=for_many)

    def _count(self, counter: LineCounter, *, for_many: bool) -> None:
        """Count the lines of drafts that this counter has not counted; of those alone that may be for many."""
        query = (
            "SELECT component FROM drafts WHERE wide = ?2 AND id IS NOT NULL "
            "AND (counter IS NULL OR counter < ?1 OR counter > ?1)"
        )
        stale = [row[0] for wide in ((1,) if for_many else (0, 1)) for row in self._db.rows(query, counter.name, wide)]
        for start in range(0, len(stale), _PAGE):
            drafts = drafts_of(self._db, stale[start : start + _PAGE])
            counts = [(counter.name, counter.text(line(draft)), component) for component, draft in drafts.items()]
            self._db.many("UPDATE drafts SET counter = ?, tokens = ? WHERE component = ?", counts)
        self._standings.recount(stale)

    def close(self) -> None:
        """Let go of the file, and of the store's erasures."""
        if self in self._store.erasers:
            self._store.erasers.remove(self)
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_PAGE = 200
"""Artifacts read at once."""
_AT_ONCE = 10 * _PAGE
"""Artifacts of one transaction: keys are hashes, so each writes a page of the file for almost every row."""
