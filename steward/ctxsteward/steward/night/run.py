"""One night, top to bottom: every stage once, in order, around one lease.

    lease → due → batches (ingest, harvest, artifact) → absorb → reconcile → admit → fit → stage → drift → gate
          → promote → link in the chain of nights → canary → report

`run_night` is called by whatever opened a night (`setup.open_night`). Nothing is decided here but the order. A night
knows only the shapes of its `Stages`: each is a function of its arguments and of what was taken in before, none reads a
clock, and another callable takes its place, in tests as in production (`setup` has the real ones). What is committed
depends on what was read and on the night's date, not on the clock, on who runs it, on the order of batches or on how
often it was killed: a night without a link is repeated from the link before, and whatever it had finished is found
again by its address.

Raises what its stages raise; whatever they had committed stays and is found again.
Source: the layered-envelope design (batch loop); the state design (committing governed state).
"""

from __future__ import annotations

import gc
import json
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ctxsteward.schemas import MetaRecommendation, StoreError
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument
from ctxsteward.store.crypto.keyring import AddressKey, address_of
from ctxsteward.store.profiles.versions import Version, WriterLease

from ..harvest.batches import (
    Batch,
    BatchFailure,
    BatchRecords,
    BatchResult,
    DueTranscript,
    RefusedTranscript,
    Run,
    WithdrawnTranscript,
    batched,
)
from ..settings import NightSettings
from .history import (
    ALERT_NIGHTS,
    READABLE,
    CheckVerdict as CheckVerdict,
    Night,
    NightChain,
    NightOutcome,
    NightReport,
    Outcome,
    QuarantinedTranscript,
    StageYield,
    WordingReport,
    alerts,
    dated_counts,
)

Marks = Mapping[str, Any]
"""Watermarks by source, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueTranscripts:
    """What is to be read tonight."""

    items: tuple[DueTranscript, ...]
    marks: Callable[[Collection[DueTranscript]], Marks]
    """Watermarks for when all is done but these."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Transcripts left out before they were opened, by reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerUpdate:
    """The ledger after artifacts were taken in."""

    digest: str
    """Digest of all observations in it, whatever the order they came in."""
    observations: int
    """How many are in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedRecords:
    """Records after the gates of admission."""

    active: Sequence[MetaRecommendation]
    """Active records that reach more than one person."""
    digest: str
    """Digest of what all records say, without the time since when they say it."""
    statuses: Mapping[str, int] = field(default_factory=dict)
    """Records by status."""
    refused: int = 0
    """Would-be records that their schema refused."""
    looked_at: int = 0
    """Drafts that were judged anew tonight."""


FittedSlice = tuple[MetaRecord, ...]
"""The meta slice as the steward would write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenger:
    """What would come into force."""

    document: ProfileDocument
    base: int
    """Version it was made from; 0: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionResult:
    """What became of the challenger."""

    outcome: Outcome
    version: int | None
    """In force now; None: none was ever committed."""
    final: str
    """Address of the text in force; the same for the same text, whatever its version."""
    changes: tuple[str, ...] = ()
    """What changed and why, a line each; for the report alone."""
    waiting: int = 0
    """Things that wait for a person."""
    supports: tuple[Mapping[str, str], ...] = ()
    """Where it is kept what stands behind records in force and in the challenger (`steward.erasure`)."""

    @property
    def is_new(self) -> bool:
        """Whether something came into force."""
        return self.outcome in ("promoted", "canary")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitContext:
    """In whose name, when, and by which claim something is committed."""

    who: str
    when: str
    """ISO 8601."""
    epoch: int
    """Epoch of the lease."""
    run: str
    commit_id: str
    """The same for the same run: a commit that landed before a kill is found again."""
    done: bool
    """Whether a night of this run is in the chain already."""

    def base(self, head: Version | None) -> int:
        """The version that this run starts from: the head, or the one before where this run has committed already."""
        if head is None:
            return 0
        return head.number - 1 if head.commit_id == self.commit_id and not self.done else head.number


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """One profile's stages."""

    due: Callable[[Marks], DueTranscripts]
    harvest: Callable[[Batch], BatchResult]
    absorb: Callable[[Iterable[str], Sequence[WithdrawnTranscript]], LedgerUpdate]
    """Addresses of artifacts to take in, and transcripts whose observations are to leave."""
    reconcile: Callable[[], int]
    """How many different claims there are."""
    admit: Callable[[str, str], AdmittedRecords]
    """Called with the date of the night and the id of the run."""
    fit: Callable[[AdmittedRecords, CommitContext], FittedSlice]
    stage: Callable[[FittedSlice, CommitContext], Challenger | None]
    """The challenger; None where it is what is in force."""
    drift: Callable[[Challenger, CommitContext], CheckVerdict]
    gate: Callable[[Challenger], CheckVerdict]
    promote: Callable[[Challenger | None, CheckVerdict | None, CheckVerdict | None, CommitContext], PromotionResult]
    canary: Callable[[CommitContext], CheckVerdict | None]
    """None: none is under way."""
    wording: Callable[[], WordingReport | None] = lambda: None
    """What came of a model's wordings."""


T = TypeVar("T")

Tell = Callable[[str], object]
"""Called with the name of each boundary as the night passes it; tests kill a night there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightContext:
    """What a night needs beside its stages; arguments call it `shell`."""

    settings: NightSettings
    night: str
    """Its date, ISO 8601."""
    when: str
    """ISO 8601 time to write into changelogs."""
    nights: NightChain
    records: BatchRecords
    lease: WriterLease
    key: AddressKey
    cpu_seconds: Callable[[], float]
    """CPU time of this process so far."""
    run: Run
    abandoned: Callable[[str], bool] = lambda owner: False
    """Whether the holder of a lease is known to be gone."""
    tell: Tell = lambda boundary: None


def run_night(stages: Stages, shell: NightContext) -> NightReport:
    """Run one night; where another one is under way, do nothing and say so."""
    lease, ttl_seconds = shell.lease, shell.settings.lease_seconds
    holder = lease.holder()
    taken = lease.take(ttl_seconds, force=holder is not None and shell.abandoned(holder.owner))
    if taken is None:
        who = holder.owner if holder else "somebody"
        return _report(shell, outcome="busy", alerts=(f"{who} holds the lease of profile {shell.settings.profile!r}",))
    try:
        with _kept(lease, ttl_seconds), _rare_collections():
            return _NightRun(stages, shell, taken.epoch).through()
    finally:
        lease.release()


class _NightRun:
    """One night under way; `counts` grow stage by stage."""

    def __init__(self, stages: Stages, shell: NightContext, epoch: int) -> None:
        self._stages, self._shell, self._epoch = stages, shell, epoch
        self._started = shell.cpu_seconds()
        self._before = shell.nights.head()
        self._earlier = self._before[1] if self._before else None
        self._date = max(shell.night, self._earlier.night) if self._earlier else shell.night
        """Records never grow younger, in whatever order nights are made up for."""
        self._counts: dict[str, int] = {}

    def through(self) -> NightReport:
        """Every stage once, in order."""
        stages, passed = self._stages, self._passed
        due = self._due()
        read = self._read(due)
        absorbed = passed("absorbed", stages.absorb(self._artifacts(read), tuple(read.gone)), self._new)
        run = self._run_id(absorbed)
        passed("reconciled", stages.reconcile(), int)
        admitted = passed("admitted", stages.admit(self._date, run), lambda found: len(found.active))
        writing = self._writing(run, admitted)
        fitted = passed("fitted", stages.fit(admitted, writing), len)
        challenger = passed("staged", stages.stage(fitted, writing), lambda staged: int(staged is not None))
        drift = passed("drift", stages.drift(challenger, writing) if challenger else None)
        gate = passed("gate", stages.gate(challenger) if challenger else None)
        promoted = passed(
            "promoted", stages.promote(challenger, drift, gate, writing), lambda landed: int(landed.is_new)
        )
        night = Night(
            night=self._date,
            run=run,
            marks=due.marks(read.unfinished()),
            batches=tuple(sorted(read.addresses)),
            ledger=absorbed.digest,
            observations=absorbed.observations,
            records=admitted.digest,
            statuses=dict(admitted.statuses),
            version=promoted.version,
            outcome=promoted.outcome,
            final=self._address(["final", absorbed.digest, promoted.final]),
            counts=self._counts | {READABLE: read.readable} | dict(read.hits) | dated_counts(read.dated),
            quarantined=dict(sorted(read.reasons.items())),
            drift=drift.level if drift else None,
            gate=gate.level if gate else None,
            supports=promoted.supports,
        )
        lines = alerts(night.counts, self._shell.nights.newest(ALERT_NIGHTS))
        number = self._linked(night)
        canary = passed("canary", stages.canary(writing))
        wording = stages.wording()
        return _report(
            self._shell,
            night=night.night,
            run=run,
            number=number,
            version=night.version,
            outcome=_outcome(night, number, canary),
            stages=_yields(self._counts),
            skipped=dict(Counter(due.skipped) + read.skipped),
            quarantined=tuple(self._refused(due, read)),
            statuses=night.statuses,
            refused_records=admitted.refused,
            failed_batches=len(read.failed),
            found_batches=read.found,
            drift=drift,
            gate=gate,
            canary=canary,
            changes=promoted.changes,
            waiting=promoted.waiting,
            hits=dict(read.hits),
            dated=dict(read.dated),
            alerts=lines,
            final=night.final,
            cpu_seconds=self._shell.cpu_seconds() - self._started + read.cpu_seconds,
            tokens=read.tokens + (wording.tokens if wording else 0),
            wording=wording,
        )

    def _due(self) -> DueTranscripts:
        earlier = self._earlier if not self._shell.settings.full else None
        return self._passed("due", self._stages.due(earlier.marks if earlier else {}), lambda due: len(due.items))

    def _read(self, due: DueTranscripts) -> _BatchSums:
        """Have every batch done that is not done yet."""
        shell, read = self._shell, _BatchSums()
        salt = f"full {self._before[0].number if self._before else 0}" if shell.settings.full else ""
        todo = []
        for items in batched(due.items, shell.settings.batch_transcripts):
            batch = shell.records.batch(items, salt)
            found = shell.records.find(batch.address)
            if found is None:
                todo.append(batch)
            else:
                read.add(found)
        for ended in shell.run(todo):
            read.add(ended)
            shell.tell("batch")
        return self._passed("harvested", read, lambda read: read.transcripts)

    def _artifacts(self, read: _BatchSums) -> Iterator[str]:
        """Addresses, one batch in memory at a time."""
        records = self._shell.records
        return (artifact for address in sorted(read.addresses) for artifact in records.read(address).artifacts)

    def _new(self, absorbed: LedgerUpdate) -> int:
        """Observations more than after the last night; what a killed night had absorbed already counts as well."""
        before = self._earlier.observations if self._earlier else 0
        return max(0, absorbed.observations - before)

    def _run_id(self, absorbed: LedgerUpdate) -> str:
        """The same observations on the same date are the same run."""
        return f"n{self._date}-{self._address([absorbed.digest, self._date])[:12]}"

    def _writing(self, run: str, admitted: AdmittedRecords) -> CommitContext:
        """A run commits the same records under the same id; other ones, where people have said something since."""
        earlier, settings = self._earlier, self._shell.settings
        return CommitContext(
            who=settings.who,
            when=self._shell.when,
            epoch=self._epoch,
            run=run,
            commit_id=self._address([run, admitted.digest])[:32],
            done=earlier is not None and (earlier.run, earlier.records) == (run, admitted.digest),
        )

    def _address(self, value: list[str]) -> str:
        settings = self._shell.settings
        data = json.dumps([settings.profile, *value]).encode()
        return address_of(self._shell.key, settings.tenant, "night", data)

    def _refused(self, due: DueTranscripts, read: _BatchSums) -> Iterator[QuarantinedTranscript]:
        """Refused transcripts by name, for the report alone."""
        named = {self._shell.records.address(item): item for item in due.items} if read.quarantined else {}
        for refused in read.quarantined:
            if refused.item in named:
                item = named[refused.item]
                yield QuarantinedTranscript(source=item.source, name=item.name, reason=refused.reason)

    def _linked(self, night: Night) -> int | None:
        """Write the link; a finished night that is repeated writes none."""
        same = self._earlier is not None and night.repeats(self._earlier)
        after = self._before[0] if self._before else None
        landed = None if same else self._shell.nights.append(after, night, epoch=self._epoch)
        return self._passed("linked", landed.number if landed else None)

    def _passed(self, stage: str, found: T, count: Callable[[T], int] | None = None) -> T:
        if count is not None:
            self._counts[stage] = count(found)
        self._shell.tell(stage)
        return found


class _BatchSums:
    """What the batches gave, added up; artifacts are counted, and read again one batch at a time."""

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.transcripts = self.found = self.tokens = 0
        self.cpu_seconds = 0.0
        self.skipped: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.hits: Counter[str] = Counter()
        self.dated: Counter[str] = Counter()
        self.gone: list[WithdrawnTranscript] = []
        self.quarantined: list[RefusedTranscript] = []
        self.failed: list[BatchFailure] = []

    def add(self, ended: BatchResult | BatchFailure) -> None:
        if isinstance(ended, BatchFailure):
            self.failed.append(ended)
            return
        self.addresses.append(ended.address)
        self.transcripts += ended.transcripts
        self.found += ended.found
        self.tokens += ended.tokens
        self.cpu_seconds += ended.cpu_seconds
        self.skipped.update(ended.skipped)
        self.hits.update(ended.hits)
        self.dated.update(ended.dated)
        self.gone += ended.gone
        self.reasons.update(one.reason for one in ended.quarantined)
        self.quarantined += ended.quarantined

    @property
    def readable(self) -> int:
        """Transcripts that were the steward's to read, whatever became of them."""
        return self.transcripts + len(self.quarantined) + len(self.unfinished()) + self.skipped["empty"]

    def unfinished(self) -> frozenset[DueTranscript]:
        return frozenset(item for failed in self.failed for item in failed.batch.items)


def _outcome(night: Night, number: int | None, canary: CheckVerdict | None) -> NightOutcome:
    if canary is not None and canary.level == "rolled_back":
        return "rolled_back"
    if number is None and night.outcome in ("promoted", "canary"):
        return "unchanged"  # it was there already
    return night.outcome


def _yields(counts: Mapping[str, int]) -> tuple[StageYield, ...]:
    """Each count with its share of the one before."""
    yields: list[StageYield] = []
    for stage, count in counts.items():
        before = yields[-1].count if yields else 0
        yields.append(StageYield(stage=stage, count=count, share=round(count / before, 4) if before else None))
    return tuple(yields)


def _report(shell: NightContext, **fields: Any) -> NightReport:
    settings = shell.settings
    place = {"tenant": settings.tenant, "profile": settings.profile, "dry_run": settings.dry_run}
    return NightReport.model_validate({"night": shell.night} | place | fields)


@contextmanager
def _kept(lease: WriterLease, ttl_seconds: float) -> Iterator[None]:
    """Renew the lease from a thread, so that a stage may take longer than its time to live.

    Losing it stops nothing: what is committed after a later epoch is refused (`Fenced`).
    """
    done = threading.Event()

    def renew() -> None:
        while not done.wait(ttl_seconds / 3):
            with suppress(StoreError):
                lease.renew(ttl_seconds)

    renewing = threading.Thread(target=renew, name="ctxsteward lease", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        done.set()
        renewing.join()


YOUNG_OBJECTS = 50_000
"""New objects after which garbage is looked for, while a night is under way."""


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Look for garbage less often: a night makes few cycles, and passing over all that lives takes a tenth of it."""
    before = gc.get_threshold()
    if not 0 < before[0] < YOUNG_OBJECTS:  # they are rare, or switched off, already
        yield
        return
    gc.set_threshold(YOUNG_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
