"""One night, top to bottom: every stage once, in order, around one lease.

    lease → due → batches (ingest, harvest, artifact) → absorb → reconcile → admit → fit → stage → drift → gate
          → promote → link in the chain of nights → canary → report

Nothing is decided here but the order. What is committed depends on what was read and on the night's date, not on the
clock, on who runs it, on the order of batches or on how often it was killed: a night without a link is repeated from
the link before, and whatever it had finished is found again by its address.

Raises what its stages raise; whatever they had committed stays and is found again.
Source: the layered-envelope design (batch loop); the state design (committing governed state).
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from ctxsteward.schemas import StoreError
from ctxsteward.store.crypto.addresses import AddressKey, address_of
from ctxsteward.store.profiles.lease import WriterLease

from ..harvest.batches import (
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
from .history import ALERT_NIGHTS, READABLE, Night, NightChain, alerts, dated_counts
from .report import CheckReport, NightOutcome, NightReport, QuarantinedTranscript, StageYield
from .stages import AdmittedRecords, CheckVerdict, CommitContext, DueTranscripts, LedgerUpdate, PromotionResult, Stages

T = TypeVar("T")

Tell = Callable[[str], object]
"""Told the name of each boundary as it is passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightContext:
    """What a night needs beside its stages."""

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
        with _kept(lease, ttl_seconds):
            return _NightRun(stages, shell, taken.epoch).through()
    finally:
        lease.release()


@dataclass(frozen=True, slots=True, kw_only=True)
class _DecisionResult:
    """What came of what was read."""

    absorbed: LedgerUpdate
    writing: CommitContext
    admitted: AdmittedRecords
    drift: CheckVerdict | None
    gate: CheckVerdict | None
    promoted: PromotionResult


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
        due = self._due()
        read = self._read(due)
        decided = self._decided(read)
        night = self._night(due, read, decided)
        lines = alerts(night.counts, self._shell.nights.newest(ALERT_NIGHTS))
        number = self._linked(night)
        canary = self._passed("canary", self._stages.canary(decided.writing))
        told = _told(due, read, decided, night, number, canary, self._shell)
        spent_seconds = self._shell.cpu_seconds() - self._started + read.cpu_seconds
        return _report(self._shell, stages=_yields(self._counts), alerts=lines, cpu_seconds=spent_seconds, **told)

    # -- what is read -------------------------------------------------------------------------------------------

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

    # -- what is decided ----------------------------------------------------------------------------------------

    def _decided(self, read: _BatchSums) -> _DecisionResult:
        stages, passed = self._stages, self._passed
        absorbed = passed("absorbed", stages.absorb(self._artifacts(read), tuple(read.gone)), self._new)
        run = self._run_id(absorbed)
        passed("reconciled", stages.reconcile(), lambda count: count)
        admitted = passed("admitted", stages.admit(self._date, run), lambda found: len(found.active))
        writing = self._writing(run, admitted)
        fitted = passed("fitted", stages.fit(admitted, writing), lambda fitted: len(fitted.records))
        challenger = passed("staged", stages.stage(fitted, writing), lambda staged: int(staged is not None))
        drift = passed("drift", stages.drift(challenger, writing) if challenger else None)
        gate = passed("gate", stages.gate(challenger) if challenger else None)
        promoted = passed(
            "promoted", stages.promote(challenger, drift, gate, writing), lambda landed: int(landed.is_new)
        )
        return _DecisionResult(
            absorbed=absorbed, writing=writing, admitted=admitted, drift=drift, gate=gate, promoted=promoted
        )

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
            who=settings.who, when=self._shell.when, epoch=self._epoch, run=run,
            commit_id=self._address([run, admitted.digest])[:32],
            done=earlier is not None and (earlier.run, earlier.records) == (run, admitted.digest),
        )  # fmt: skip

    def _address(self, value: list[str]) -> str:
        settings = self._shell.settings
        data = json.dumps([settings.profile, *value]).encode()
        return address_of(self._shell.key, settings.tenant, "night", data)

    # -- what is kept -------------------------------------------------------------------------------------------

    def _night(self, due: DueTranscripts, read: _BatchSums, decided: _DecisionResult) -> Night:
        drift, gate, promoted = decided.drift, decided.gate, decided.promoted
        return Night(
            night=self._date, run=decided.writing.run, marks=due.marks(read.unfinished()),
            batches=tuple(sorted(read.addresses)), ledger=decided.absorbed.digest,
            observations=decided.absorbed.observations, records=decided.admitted.digest,
            statuses=dict(decided.admitted.statuses), version=promoted.version, outcome=promoted.outcome,
            final=self._address(["final", decided.absorbed.digest, promoted.final]),
            counts=self._counts | {READABLE: read.readable} | dict(read.hits) | dated_counts(read.dated),
            quarantined=dict(sorted(read.reasons.items())),
            drift=drift.level if drift else None, gate=gate.level if gate else None,
            supports=promoted.supports,
        )  # fmt: skip

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


def _told(
    due: DueTranscripts,
    read: _BatchSums,
    decided: _DecisionResult,
    night: Night,
    number: int | None,
    canary: CheckVerdict | None,
    shell: NightContext,
) -> dict[str, Any]:
    """What a night's report says beside its counts and costs."""
    outcome: NightOutcome = night.outcome
    if canary is not None and canary.level == "rolled_back":
        outcome = "rolled_back"
    elif number is None and outcome in ("promoted", "canary"):
        outcome = "unchanged"  # it was there already
    named = {shell.records.address(item): item for item in due.items} if read.quarantined else {}
    refused = [(named[one.item], one.reason) for one in read.quarantined if one.item in named]
    return {
        "night": night.night, "run": night.run, "number": number, "version": night.version, "outcome": outcome,
        "skipped": dict(Counter(due.skipped) + read.skipped), "statuses": night.statuses, "final": night.final,
        "quarantined": tuple(
            QuarantinedTranscript(source=item.source, name=item.name, reason=reason) for item, reason in refused
        ),
        "refused_records": decided.admitted.refused, "failed_batches": len(read.failed), "found_batches": read.found,
        "drift": _check(decided.drift), "gate": _check(decided.gate), "canary": _check(canary),
        "changes": decided.promoted.changes, "waiting": decided.promoted.waiting, "hits": dict(read.hits),
        "dated": dict(read.dated), "tokens": read.tokens,
    }  # fmt: skip


def _check(verdict: CheckVerdict | None) -> CheckReport | None:
    return None if verdict is None else CheckReport(level=verdict.level, ok=verdict.ok, why=verdict.why)


def _yields(counts: Mapping[str, int]) -> tuple[StageYield, ...]:
    """Each count with its share of the one before."""
    found: list[StageYield] = []
    for stage, count in counts.items():
        before = found[-1].count if found else 0
        found.append(StageYield(stage=stage, count=count, share=round(count / before, 4) if before else None))
    return tuple(found)


def _report(shell: NightContext, **fields: Any) -> NightReport:
    settings = shell.settings
    told: dict[str, Any] = {
        "tenant": settings.tenant,
        "profile": settings.profile,
        "night": shell.night,
        "dry_run": settings.dry_run,
    }
    return NightReport(**told | fields)


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
