"""The nightly steward as a Prefect flow: the shell of `steward.night`, its batches tasks.

    meta_steward_nightly(NightSettings(…))     one night; its report

The inner flow has the task runner that the settings name, so that a deployment's parameters choose it, and is retried
where the store does not answer. A night that another one is under way for waits as long as a lease lasts: one that was
killed is taken over, on its machine at once, on another when its lease has run out. A night over nothing (no such
profile, no transcript in a source) fails before it begins.

Every night leaves a Markdown artifact. Rejected, rolled back, busy or broken, it ends `Failed`, and a caller in this
process gets `NightFailed` with the report; where people must say something first, it ends `Held`.

Settings hold names of places, reports numbers and codes; what a report quotes goes back to the caller and is not
persisted. Annotations here are values, not texts: Prefect reads them where a deployment has loaded the flow by its
name.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, tags
from prefect.client.schemas.objects import State
from prefect.states import Completed

from ctxsteward.envelope.lease import WriterLease
from ctxsteward.envelope.store import Store, open_store
from ctxsteward.schemas import InputError
from ctxsteward.steward.night import run_night
from ctxsteward.steward.report import NightReport
from ctxsteward.steward.settings import NightSettings
from ctxsteward.steward.surroundings import Surroundings, of_this_process
from ctxsteward.steward.telemetry import tell_night
from ctxsteward.steward.wiring import opened, require

from .batches import on_prefect
from .exporting import export
from .runners import task_runner
from .runs import anchored, call_crashed, claim, named, show, tags_of

RETRIES, RETRY_SECONDS = 2, 10
"""Of a night whose store, server or cluster does not answer."""
POLL_SECONDS = 1.0


class NightFailed(Exception):
    """A night that is no success; `report` is all of it, the message quotes nobody.

    Prefect keeps a pickle of whatever a flow raises: that holds numbers alone.
    """

    def __init__(self, report: NightReport) -> None:
        self.report = report
        super().__init__(f"night {report.night} of {report.profile}: {report.failure}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.report.numbers(),))


@flow(name="meta_steward_nightly", flow_run_name=named, persist_result=False)
def meta_steward_nightly(settings: NightSettings) -> NightReport:
    """Run one night of the steward over whatever transcripts are due."""
    export()
    report = one_night(settings)
    if report.failure:
        raise NightFailed(report)
    if report.outcome == "held":
        held: State[NightReport] = Completed(name="Held", message=f"{report.waiting:,} waits for a person", data=report)
        return held  # type: ignore[return-value]  # Prefect hands its data on to whoever calls the flow
    return report


def one_night(settings: NightSettings) -> NightReport:
    """One night of the flow that is under way, its report shown; raises where it cannot begin."""
    here = of_this_process()
    claim(settings, here)
    _begin(settings, here)
    with tags(*tags_of(settings)):
        report = night.with_options(task_runner=task_runner(settings))(settings)
        if report.outcome == "busy":  # a try of its own that lost the store has left a lease behind, or one was faster
            _begin(settings, here)
            report = night.with_options(task_runner=task_runner(settings))(settings)
    show(report)
    return report


@flow(name="night", persist_result=False, retries=RETRIES, retry_delay_seconds=RETRY_SECONDS)
def night(settings: NightSettings) -> NightReport:
    """One night, with its batches as tasks."""
    here = of_this_process()
    claim(settings, here)
    with opened(settings, here) as opening:
        run = on_prefect(settings, opening.shell.records, opening.results)
        report = run_night(opening.stages, replace(opening.shell, run=run))
    tell_night(report)
    counts = ", ".join(f"{one.stage} {one.count}" for one in report.stages)
    get_run_logger().info("night %s of %s: %s; %s", report.night, report.profile, report.outcome, counts)
    return report


def _begin(settings: NightSettings, here: Surroundings) -> None:
    """Refuse a night over nothing, wait for its turn, and settle runs that were killed."""
    anchored(settings)
    with stored(settings, here) as store:
        require(settings, store)
        if settings.dry_run:
            return
        lapsed = _waited(
            WriterLease(store, settings.profile, settings.tenant, owner=here.owner, clock=here.clock), settings, here
        )
    crashed = call_crashed(lambda owner: here.abandoned(owner) or owner == lapsed)
    if crashed:
        get_run_logger().warning("%d runs were killed; this one takes over", crashed)


def stored(settings: NightSettings, here: Surroundings) -> Store:
    """The store, which is there already; raises `InputError` where none is."""
    scheme, _, folder = settings.store.partition(":")
    if scheme == "file" and not (Path(folder) / "objects").is_dir():
        raise InputError(f"store {settings.store!r:.200}: there is none; correct it, or make one with a first version")
    return open_store(settings.store, journal=settings.journal, keys=here.keys())


def _waited(lease: WriterLease, settings: NightSettings, here: Surroundings) -> str | None:
    """Wait while somebody else holds the lease, as long as a dead one would; the owner of one that has run out."""
    until = time.monotonic() + settings.lease_seconds + POLL_SECONDS
    while (holder := lease.holder()) is not None:
        if here.abandoned(holder.owner) or holder.expires_seconds <= here.clock():
            return holder.owner
        if time.monotonic() > until:
            return None
        time.sleep(POLL_SECONDS)
    return None
