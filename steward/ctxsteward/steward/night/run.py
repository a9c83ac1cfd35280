"""One night, top to bottom: every stage once, in order, around one lease.

    lease → due → batches (ingest, harvest, artifact) → absorb → reconcile → admit → fit → stage → drift → gate
          → promote → link in the chain of nights → canary → report

`setup.open_night` makes an `OpenNight`, and `run_night` runs it. Nothing is decided here but the order. Each stage is a
callable of the night: a function of its arguments and of what was taken in before. None reads a clock, and another
callable takes its place, in tests as in production. What is committed depends on what was read and on the night's date,
not on the clock, on who runs it, on the order of batches or on how often it was killed: a night without a link is
repeated from the link before, and whatever it had finished is found again by its address.

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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ctxsteward.envelope import Store
from ctxsteward.schemas import StoreError
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument
from ctxsteward.schemas.profile_changes import DriftReport
from ctxsteward.store.crypto.keyring import address_of
from ctxsteward.store.profiles.versions import Version, WriterLease

from ..admission import AdmittedRecords
from ..harvest.batches import (
    BatchFailure,
    BatchRecords,
    BatchResult,
    RefusedTranscript,
    Run,
    WithdrawnTranscript,
    batched,
)
from ..ingest.items import SourceItem
from ..settings import NightSettings
from .alerts import ALERT_NIGHTS, READABLE, alerts, dated_counts
from .chain import Night, NightChain, Outcome
from .report import CheckVerdict, NightReport, QuarantinedTranscript, StageYield

if TYPE_CHECKING:
    from ..gate.port import GateReport
    from ..ledger.facade import Ledger

Marks = Mapping[str, Any]
"""Watermarks by source, as JSON."""
MarksWithout = Callable[[Collection[SourceItem]], Marks]
"""Gives the watermarks for when all that was due is done but these."""


FittedSlice = tuple[MetaRecord, ...]
"""The meta slice as the steward would write it."""


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


Tell = Callable[[str], object]
"""Called with the name of each boundary as the night passes it; tests kill a night there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenNight:
    """A night that is ready to run: what it works on, and its stages in order."""

    settings: NightSettings
    store: Store
    ledger: Ledger
    date: str
    """ISO 8601."""
    when: str
    """ISO 8601 time to write into changelogs."""
    chain: NightChain
    records: BatchRecords
    lease: WriterLease
    cpu_seconds: Callable[[], float]
    """CPU time of this process so far."""
    abandoned: Callable[[str], bool] = lambda owner: False
    """Whether the holder of a lease is known to be gone."""
    tell: Tell = lambda boundary: None

    due: Callable[[Marks], tuple[tuple[SourceItem, ...], MarksWithout]]
    """Returns what is to be read tonight."""
    harvest: Run
    absorb: Callable[[Iterable[str], Sequence[tuple[SourceItem, str | None]]], tuple[str, int]]
    """Takes in artifacts by address. Takes out what came of withdrawn transcripts, each with the address of one session
    or, for all of its sessions, None. Returns the digest of all observations, whatever their order, and their count."""
    reconcile: Callable[[], int]
    """Returns how many different claims there are."""
    admit: Callable[[str, str], AdmittedRecords]
    """Called with the date of the night and the id of the run."""
    fit: Callable[[AdmittedRecords, CommitContext], FittedSlice]
    stage: Callable[[FittedSlice, CommitContext], ProfileDocument | None]
    """Returns the challenger, or None where it is what is in force."""
    drift: Callable[[ProfileDocument, CommitContext], DriftReport]
    gate: Callable[[ProfileDocument, DriftReport, AdmittedRecords], GateReport]
    promote: Callable[
        [ProfileDocument | None, DriftReport | None, GateReport | None, AdmittedRecords, FittedSlice, CommitContext],
        PromotionResult,
    ]
    canary: Callable[[AdmittedRecords, CommitContext], CheckVerdict | None]
    """Returns None where no canary is under way."""

    def address(self, value: list[str]) -> str:
        """Address of a value, under the tenant's key."""
        tenant = self.settings.tenant
        data = json.dumps([self.settings.profile, *value]).encode()
        return address_of(self.store.keys.address_key(tenant), tenant, "night", data)

    def report(self, **fields: Any) -> NightReport:
        """A report on this night with these fields."""
        place = {"tenant": self.settings.tenant, "profile": self.settings.profile, "dry_run": self.settings.dry_run}
        return NightReport.model_validate({"night": self.date} | place | fields)


def run_night(night: OpenNight) -> NightReport:
    """Run one night; where another one is under way, do nothing and say so."""
    lease, ttl_seconds = night.lease, night.settings.lease_seconds
    holder = lease.holder()
    taken = lease.take(ttl_seconds, force=holder is not None and night.abandoned(holder.owner))
    if taken is None:
        owner = holder.owner if holder else "somebody"
        return night.report(outcome="busy", alerts=(f"{owner} holds the lease of profile {night.settings.profile!r}",))
    try:
        with _renewed(lease, ttl_seconds), _rare_collections():
            return _pass_stages(night, taken.epoch)
    finally:
        lease.release()


def _pass_stages(night: OpenNight, epoch: int) -> NightReport:
    settings, started = night.settings, night.cpu_seconds()
    earlier = night.chain.head()
    # Records never grow younger, in whatever order nights are made up for.
    date = max(night.date, earlier.night) if earlier else night.date
    counts: dict[str, int] = {}

    def passed(stage: str, count: int | None = None) -> None:
        if count is not None:
            counts[stage] = count
        night.tell(stage)

    due, marks_without = night.due(earlier.marks if earlier and not settings.full else {})
    passed("due", len(due))
    read = _read(night, due, f"full {earlier.number if earlier else 0}" if settings.full else "")
    passed("harvested", read.transcripts)
    named = {night.records.address(item): item for item in due} if read.gone or read.quarantined else {}
    artifacts = (artifact for address in sorted(read.addresses) for artifact in night.records.read(address).artifacts)
    withdrawn = [(named[gone.item], gone.session) for gone in read.gone if gone.item in named]
    observed, observations = night.absorb(artifacts, withdrawn)
    # What a killed night had absorbed already counts as well.
    passed("absorbed", max(0, observations - (earlier.observations if earlier else 0)))
    run = f"n{date}-{night.address([observed, date])[:12]}"  # the same observations on one date are one run
    passed("reconciled", night.reconcile())
    admitted = night.admit(date, run)
    passed("admitted", len(admitted.active))
    commit = CommitContext(
        who=settings.who,
        when=night.when,
        epoch=epoch,
        run=run,
        # The digest makes it another commit where people have said something since the run's last one.
        commit_id=night.address([run, admitted.digest])[:32],
        done=earlier is not None and (earlier.run, earlier.records) == (run, admitted.digest),
    )
    fitted = night.fit(admitted, commit)
    passed("fitted", len(fitted))
    challenger = night.stage(fitted, commit)
    passed("staged", int(challenger is not None))
    drift = night.drift(challenger, commit) if challenger else None
    passed("drift")
    gate = night.gate(challenger, drift, admitted) if challenger and drift else None
    passed("gate")
    promoted = night.promote(challenger, drift, gate, admitted, fitted, commit)
    passed("promoted", int(promoted.is_new))
    finished = Night(
        night=date,
        run=run,
        marks=marks_without(read.unfinished()),
        batches=tuple(sorted(read.addresses)),
        ledger=observed,
        observations=observations,
        records=admitted.digest,
        statuses=dict(admitted.statuses),
        version=promoted.version,
        outcome=promoted.outcome,
        final=night.address(["final", observed, promoted.final]),
        counts=counts | {READABLE: read.readable} | dict(read.hits) | dated_counts(read.dated),
        quarantined=dict(sorted(Counter(refused.reason for refused in read.quarantined).items())),
        drift=drift.level if drift else None,
        gate=_gate_level(gate) if gate else None,
        supports=promoted.supports,
    )
    odd = alerts(finished.counts, list(night.chain.history(ALERT_NIGHTS)))
    is_new = earlier is None or not finished.repeats(earlier)
    number = night.chain.append(earlier, finished, epoch=epoch).number if is_new else None
    passed("linked")
    canary = night.canary(admitted, commit)
    passed("canary")
    outcome = finished.outcome if is_new or not promoted.is_new else "unchanged"  # it was there already
    return night.report(
        night=date,
        run=run,
        number=number,
        version=finished.version,
        outcome="rolled_back" if canary is not None and canary.level == "rolled_back" else outcome,
        stages=_yields(counts),
        skipped=dict(read.skipped),
        quarantined=tuple(
            QuarantinedTranscript(source=named[each.item].source, name=named[each.item].name, reason=each.reason)
            for each in read.quarantined
            if each.item in named
        ),
        statuses=finished.statuses,
        refused_records=admitted.refused,
        failed_batches=len(read.failed),
        found_batches=read.found,
        drift=CheckVerdict(
            level=drift.level,
            ok=drift.level != "BLOCK",
            why=tuple(f"{finding.level}: {finding.text}" for finding in drift.findings if finding.level != "INFO"),
        )
        if drift
        else None,
        gate=CheckVerdict(level=_gate_level(gate), ok=gate.passed, why=gate.failed) if gate else None,
        canary=canary,
        changes=promoted.changes,
        waiting=promoted.waiting,
        hits=dict(read.hits),
        dated=dict(read.dated),
        alerts=odd,
        final=finished.final,
        cpu_seconds=night.cpu_seconds() - started + read.cpu_seconds,
    )


def _read(night: OpenNight, due: tuple[SourceItem, ...], salt: str) -> _BatchSums:
    """Have every batch done that is not done yet; another `salt` has all of them done anew."""
    sums, todo = _BatchSums(), []
    for items in batched(due, night.settings.batch_transcripts):
        batch = night.records.batch(items, salt)
        finished = night.records.find(batch.address)
        if finished is None:
            todo.append(batch)
        else:
            sums.add(finished)
    for result in night.harvest(todo):
        sums.add(result)
        night.tell("batch")
    return sums


class _BatchSums:
    """What the batches gave, added up; artifacts are counted, and read again one batch at a time."""

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.transcripts = self.found = 0
        self.cpu_seconds = 0.0
        self.skipped: Counter[str] = Counter()
        self.hits: Counter[str] = Counter()
        self.dated: Counter[str] = Counter()
        self.gone: list[WithdrawnTranscript] = []
        self.quarantined: list[RefusedTranscript] = []
        self.failed: list[BatchFailure] = []

    def add(self, result: BatchResult | BatchFailure) -> None:
        if isinstance(result, BatchFailure):
            self.failed.append(result)
            return
        self.addresses.append(result.address)
        self.transcripts += result.transcripts
        self.found += result.found
        self.cpu_seconds += result.cpu_seconds
        self.skipped.update(result.skipped)
        self.hits.update(result.hits)
        self.dated.update(result.dated)
        self.gone += result.gone
        self.quarantined += result.quarantined

    @property
    def readable(self) -> int:
        """Transcripts that were the steward's to read, whatever became of them."""
        return self.transcripts + len(self.quarantined) + len(self.unfinished()) + self.skipped["empty"]

    def unfinished(self) -> frozenset[SourceItem]:
        return frozenset(item for failed in self.failed for item in failed.batch.items)


def _gate_level(report: GateReport) -> str:
    return "passed" if report.passed else "failed"


def _yields(counts: Mapping[str, int]) -> tuple[StageYield, ...]:
    """Each count with its share of the one before."""
    yields: list[StageYield] = []
    for stage, count in counts.items():
        before = yields[-1].count if yields else 0
        yields.append(StageYield(stage=stage, count=count, share=round(count / before, 4) if before else None))
    return tuple(yields)


@contextmanager
def _renewed(lease: WriterLease, ttl_seconds: float) -> Iterator[None]:
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
