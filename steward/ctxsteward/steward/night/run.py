"""Run one night: every stage once, in order, under one lease.

    lease → due → batches (ingest, harvest, artifact) → absorb → reconcile → admit → fit
          → decide (stage, drift, gate, promote) → link in the chain of nights → canary → report

`setup.open_night` makes an `OpenNight`, and `run_night` runs it. This module decides only the order; the port
`NightDecisions` decides the rest. No stage reads a clock. A commit depends on what was read and on the night's date,
not on the clock, the process, the order of batches or the number of kills: a night without a link is repeated from the
link before, and its finished parts are found again by their addresses.

Raises what its stages raise; their commits stay and are found again.
Source: the layered-envelope design (batch loop); the state design (committing governed state).
"""

from __future__ import annotations

import gc
import json
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from ctxsteward.envelope import Store
from ctxsteward.schemas import StoreError
from ctxsteward.schemas.profile import MetaRecord
from ctxsteward.store.crypto.keyring import address_of
from ctxsteward.store.profiles.versions import Version, WriterLease

from ..admission import AdmittedRecords
from ..harvest.batches import (
    Batch,
    BatchFailure,
    BatchRecords,
    BatchResult,
    Run,
    batched,
)
from ..ingest.items import SourceItem
from ..settings import NightSettings
from .alerts import ALERT_NIGHTS, READABLE, alerts, dated_counts
from .chain import Night, NightChain, Outcome
from .report import CheckVerdict, NightReport, QuarantinedTranscript

if TYPE_CHECKING:
    from ..ledger.facade import Ledger

Marks = Mapping[str, Any]
"""Watermarks by source, as JSON."""
MarksWithout = Callable[[Collection[SourceItem]], Marks]
"""Return the watermarks after all due items were processed, except for these."""


FittedSlice = tuple[MetaRecord, ...]
"""The meta slice of a challenger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitContext:
    """Author, time and lease of a commit."""

    who: str
    when: str
    """ISO 8601."""
    epoch: int
    """Epoch of the lease."""
    run: str
    commit_id: str
    """The same for the same run, so that a commit that landed before a kill is found again."""
    done: bool
    """Whether the chain already has a night of this run."""

    def base(self, head: Version | None) -> int:
        """Return the version that this run starts from: the head, or the one before if the run has made the head."""
        if head is None:
            return 0
        return head.number - 1 if head.commit_id == self.commit_id and not self.done else head.number


Tell = Callable[[str], object]
"""Receive the name of each boundary as the night passes it; tests kill a night there."""


class NightDecisions(Protocol):
    """Decide which version comes into force."""

    def admit(self, date: str, run: str) -> AdmittedRecords:
        """Judge all records on the date of the night."""

    def fit(self, admitted: AdmittedRecords, writing: CommitContext) -> FittedSlice:
        """Choose the records of the meta slice."""

    def decide(self, admitted: AdmittedRecords, fitted: FittedSlice, writing: CommitContext, tell: Tell) -> NightReport:
        """Stage, check and commit the slice; return the report so far, with `final` and `supports`.

        `tell` is called with ``staged``, ``drift``, ``gate`` and ``promoted``.
        """

    def canary(self, admitted: AdmittedRecords, writing: CommitContext) -> CheckVerdict | None:
        """Judge the open canary, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenNight:
    """A night that is ready to run: its stores, and its stages in order."""

    settings: NightSettings
    store: Store
    ledger: Ledger
    date: str
    """ISO 8601."""
    when: str
    """Time of its commits, ISO 8601."""
    chain: NightChain
    records: BatchRecords
    lease: WriterLease
    cpu_seconds: Callable[[], float]
    """CPU time of this process so far."""
    abandoned: Callable[[str], bool] = lambda owner: False
    """Whether the process that holds a lease is known to have ended."""
    tell: Tell = lambda boundary: None

    due: Callable[[Marks], tuple[tuple[SourceItem, ...], MarksWithout]]
    """Return the items to read tonight."""
    harvest: Run
    absorb: Callable[[Iterable[str], Sequence[tuple[SourceItem, str | None]]], tuple[str, int]]
    """Add artifacts by address, and remove those of withdrawn transcripts: each comes with the address of one session,
    or None for all of its sessions. Return digest and number of all observations."""
    reconcile: Callable[[], int]
    """Return the number of different claims."""
    decisions: NightDecisions

    def address(self, value: list[str]) -> str:
        """Return the address of a value under the tenant's key."""
        tenant = self.settings.tenant
        data = json.dumps([self.settings.profile, *value]).encode()
        return address_of(self.store.keys.address_key(tenant), tenant, "night", data)


def run_night(night: OpenNight) -> NightReport:
    """Run one night, or report that another one is running."""
    lease, ttl_seconds = night.lease, night.settings.lease_seconds
    holder = lease.holder()
    taken = lease.take(ttl_seconds, force=holder is not None and night.abandoned(holder.owner))
    if taken is None:
        owner = holder.owner if holder else "somebody"
        settings = night.settings
        return NightReport(
            tenant=settings.tenant,
            profile=settings.profile,
            dry_run=settings.dry_run,
            night=night.date,
            outcome="busy",
            alerts=(f"{owner} holds the lease of profile {settings.profile!r}",),
        )
    try:
        with _renewed(lease, ttl_seconds), _rare_collections():
            return _pass_stages(night, taken.epoch)
    finally:
        lease.release()


def _pass_stages(night: OpenNight, epoch: int) -> NightReport:
    settings, started = night.settings, night.cpu_seconds()
    earlier = night.chain.head()
    if earlier is not None and earlier.version is not None:
        # The journal notes that this version exists: an older listing would give an older head to every later stage.
        night.store.profiles(settings.profile, tenant=settings.tenant).head(after=earlier.version)
    # Missed nights may be repeated in any order, and records must not grow younger.
    date = max(night.date, earlier.night) if earlier else night.date
    counts: dict[str, int] = {}

    def passed(stage: str, count: int) -> None:
        counts[stage] = count
        night.tell(stage)

    due, marks_without = night.due(earlier.marks if earlier and not settings.full else {})
    passed("due", len(due))
    done, failed = _read(night, due, f"full {earlier.number if earlier else 0}" if settings.full else "")
    unread = frozenset(item for failure in failed for item in failure.batch.items)
    refused = [transcript for batch in done for transcript in batch.quarantined]
    gone = [transcript for batch in done for transcript in batch.gone]
    skipped, hits, dated = Counter[str](), Counter[str](), Counter[str]()
    for each in done:
        skipped.update(each.skipped)
        hits.update(each.hits)
        dated.update(each.dated)
    addresses = sorted(batch.address for batch in done)
    passed("harvested", sum(batch.transcripts for batch in done))
    named = {night.records.address(item): item for item in due} if gone or refused else {}
    artifacts = (artifact for address in addresses for artifact in night.records.read(address).artifacts)
    withdrawn = [(named[each.item], each.session) for each in gone if each.item in named]
    observed, observations = night.absorb(artifacts, withdrawn)
    # Observations that a killed run of this night absorbed count, too.
    passed("absorbed", max(0, observations - (earlier.observations if earlier else 0)))
    run = f"n{date}-{night.address([observed, date])[:12]}"  # the same observations on one date are one run
    passed("reconciled", night.reconcile())
    decisions = night.decisions
    admitted = decisions.admit(date, run)
    passed("admitted", len(admitted.active))
    commit = CommitContext(
        who=settings.who,
        when=night.when,
        epoch=epoch,
        run=run,
        # The digest makes it another commit if people have reviewed records since the run's last one.
        commit_id=night.address([run, admitted.digest])[:32],
        done=earlier is not None and (earlier.run, earlier.records) == (run, admitted.digest),
    )
    fitted = decisions.fit(admitted, commit)
    passed("fitted", len(fitted))
    report = decisions.decide(admitted, fitted, commit, night.tell)
    counts |= {"staged": int(report.drift is not None), "promoted": int(report.has_landed)}
    # Transcripts that the steward may read, whether or not reading them succeeded.
    readable = counts["harvested"] + len(refused) + len(unread) + skipped.get("empty", 0)
    finished = Night(
        night=date,
        run=run,
        marks=marks_without(unread),
        batches=tuple(addresses),
        ledger=observed,
        observations=observations,
        records=admitted.digest,
        statuses=dict(admitted.statuses),
        version=report.version,
        outcome=cast("Outcome", report.outcome),
        final=night.address(["final", observed, report.final or ""]),
        counts=counts | {READABLE: readable} | hits | dated_counts(dated),
        quarantined=dict(sorted(Counter(each.reason for each in refused).items())),
        drift=report.drift.level if report.drift else None,
        gate=report.gate.level if report.gate else None,
        supports=report.supports,
    )
    odd = alerts(finished.counts, list(night.chain.history(ALERT_NIGHTS)))
    is_new = earlier is None or not finished.repeats(earlier)
    number = night.chain.append(earlier, finished, epoch=epoch).number if is_new else None
    night.tell("linked")
    canary = decisions.canary(admitted, commit)
    night.tell("canary")
    outcome = finished.outcome if is_new or not report.has_landed else "unchanged"  # it was there already
    of_chain = finished.report(settings.tenant, settings.profile, odd)
    return of_chain.model_copy(
        update={
            "number": number,
            "outcome": "rolled_back" if canary is not None and canary.level == "rolled_back" else outcome,
            "dry_run": settings.dry_run,
            "skipped": dict(skipped),
            "quarantined": tuple(
                QuarantinedTranscript(source=named[each.item].source, name=named[each.item].name, reason=each.reason)
                for each in refused
                if each.item in named
            ),
            "refused_records": admitted.refused,
            "failed_batches": len(failed),
            "found_batches": sum(batch.found for batch in done),
            "drift": report.drift,
            "gate": report.gate,
            "canary": canary,
            "changes": report.changes,
            "waiting": report.waiting,
            "dated": dict(dated),
            "cpu_seconds": night.cpu_seconds() - started + sum(batch.cpu_seconds for batch in done),
        }
    )


def _read(night: OpenNight, due: tuple[SourceItem, ...], salt: str) -> tuple[list[BatchResult], list[BatchFailure]]:
    """Harvest every batch that has no result yet; another `salt` has all batches harvested again.

    Results come without artifacts and uses, to save memory: a night reads them again, one batch at a time.
    """
    done, todo, failed = list[BatchResult](), list[Batch](), list[BatchFailure]()
    for items in batched(due, night.settings.batch_transcripts):
        batch = night.records.batch(items, salt)
        finished = night.records.find(batch.address)
        if finished is None:
            todo.append(batch)
        else:
            done.append(replace(finished, artifacts=(), uses=()))
    for result in night.harvest(todo):
        if isinstance(result, BatchFailure):
            failed.append(result)
        else:
            done.append(replace(result, artifacts=(), uses=()))
        night.tell("batch")
    return done, failed


@contextmanager
def _renewed(lease: WriterLease, ttl_seconds: float) -> Iterator[None]:
    """Renew the lease from a thread, so that a stage may take longer than the lease's time to live.

    A lost lease does not stop the night, but its commits are refused once a later epoch has committed (`Fenced`).
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
"""Threshold of the youngest generation of Python's garbage collector during a night."""


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Collect garbage less often: a night makes few cycles, and scanning live objects takes a tenth of its time."""
    before = gc.get_threshold()
    if not 0 < before[0] < YOUNG_OBJECTS:  # collections are already rare, or switched off
        yield
        return
    gc.set_threshold(YOUNG_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
