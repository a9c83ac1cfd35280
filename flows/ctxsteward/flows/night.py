"""The nightly steward as a Prefect flow: runs `ctxsteward.steward.run_night` with each batch as a Prefect task.

    meta_steward_nightly(NightSettings(…))     one night; its report

The settings, and so the parameters of a deployment, choose the task runner of the inner flow: threads of this process,
a local Dask cluster (`dask_cluster`), or an existing one. The inner flow is retried if the store does not answer. If
another night of the profile is running, this one waits at most for the lifetime of a lease. It takes over from a night
that was killed: at once on the same machine, on another one when the lease has expired. A night without work (no such
profile, no transcript in a source) fails before it begins.

A task gets names of transcripts and returns the address of its result, never a body. Its cache key is the address of
its batch, which is a digest of its inputs. Results are persisted, so a run that is repeated after a kill finds every
finished batch, even while Prefect still shows the first run as running. A failed batch is a failed state, not a
failed run. Only the name of its exception is kept, because its text may quote a transcript and Prefect keeps logs.

Every night leaves a Markdown artifact. A night that is rejected, rolled back, busy or broken ends `Failed`, and a
caller in this process gets `NightFailed` with the report; a night that waits for a person's decision ends `Held`.
Quotes in a report go back to the caller and are not persisted.

Annotations here must be values, not texts, because Prefect evaluates them when a deployment loads the flow by its name.

This module also sets the name, tags, owner and report of a run in Prefect. A run whose process was killed together with
its worker stays "running" on the server for ever. So each run is labelled with the owner of the steward's lease
(`night@HOST:PID`), and the next run marks runs as crashed whose owner is gone: on this machine because the process has
ended, on another machine because its lease has run out.

Telemetry goes to the destination in `CTXSTEWARD_TELEMETRY`, as with ``ctxsteward … --telemetry``. A served flow runs in
a process of its own that ends with it, so use `otlp=URL`; pending telemetry is sent at the end of the process. An SDK
that the process has already set up (the command line's, or a framework's) is used instead.
"""

import atexit
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, runtime, tags, task
from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterState, FlowRunFilterStateType
from prefect.client.schemas.objects import State, StateType
from prefect.states import Completed, Crashed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from ctxsteward.envelope import Store, open_store
from ctxsteward.schemas import InputError
from ctxsteward.steward import NightReport, NightSettings, ProcessEnvironment, of_this_process, open_night, run_night
from ctxsteward.steward.harvest.batches import Batch, BatchFailure, BatchRecords, BatchResult, Run
from ctxsteward.steward.night.telemetry import tell_night
from ctxsteward.steward.setup import harvest_in_process, home_of, require
from ctxsteward.store.profiles.versions import WriterLease

OWNER = "ctxsteward.owner"
"""Label of a run with the owner of the steward's lease."""


def run_name() -> str:
    """Name the current run by tenant, profile, and its day, range or suite."""
    parameters = dict(runtime.flow_run.parameters or {})
    settings = NightSettings.model_validate(parameters["settings"])
    about = settings.profile if settings.tenant == "default" else f"{settings.tenant}/{settings.profile}"
    if "suite" in parameters:
        return f"{parameters['suite']} of {about}"
    if "first" in parameters:
        return f"{about} {parameters['first']} to {parameters['last']}"
    return f"{about} {settings.night or date.today().isoformat()}"


def tags_of(settings: NightSettings) -> tuple[str, ...]:
    """Return the tags of all runs for this profile."""
    return ("ctxsteward", f"tenant:{settings.tenant}", f"profile:{settings.profile}")


def refuse_relative_paths(settings: NightSettings) -> None:
    """Refuse relative paths in a deployment, since each of its runs has a temporary working directory."""
    if runtime.deployment.id is None:
        return
    store = settings.store.removeprefix("file:") if settings.store.startswith("file:") else None
    sources = [uri.removeprefix("file:") for uri in settings.sources if uri != "store" and "://" not in uri]
    for path in (store, settings.journal, settings.actors, *sources):
        if path is not None and not path.startswith("/"):
            raise InputError(
                f"{path!r:.200} is relative, but each run of a deployment has a new working directory; "
                "write the absolute path"
            )


def claim(settings: NightSettings, here: ProcessEnvironment) -> None:
    """Label the current run with its owner, and tag it with tenant and profile."""
    with get_client(sync_client=True) as client:
        client.update_flow_run_labels(runtime.flow_run.id, {OWNER: here.owner})
        tags = {*runtime.flow_run.tags, *tags_of(settings)}
        client.update_flow_run(runtime.flow_run.id, tags=sorted(tags))


def mark_crashed(is_gone: Callable[[str], bool]) -> int:
    """Mark running runs whose owner is gone as crashed; return their number."""
    running = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING])))
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(flow_run_filter=running)
        gone = [run for run in runs if isinstance(owner := run.labels.get(OWNER), str) and is_gone(owner)]
        for run in gone:
            message = f"its process, {run.labels[OWNER]}, is gone; run {runtime.flow_run.name} takes over"
            client.set_flow_run_state(run.id, Crashed(message=message), force=True)
    return len(gone)


def show(report: NightReport) -> None:
    """Keep the report as an artifact of the run: numbers and codes only, since the server's database stores it."""
    keyed = "".join(char if char.isalnum() and char.isascii() else "-" for char in report.profile.lower())
    create_markdown_artifact(report.markdown(), key=f"night-{keyed}", description=f"{report.outcome}, {report.night}")


def show_suite(suite: str, document: dict[str, Any]) -> None:
    """Keep the figures of an eval suite's document as an artifact of the run."""
    rows = [(name, value) for name, value in sorted(document.items()) if isinstance(value, bool | int | float | str)]
    table = "\n".join(("| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)))
    outcome = "passed" if document.get("passed") else "failed"
    create_markdown_artifact(f"# {suite}: {outcome}\n\n{table}\n", key=f"suite-{suite.replace('_', '-')}")


TELEMETRY_VARIABLE = "CTXSTEWARD_TELEMETRY"


@cache
def export() -> None:
    """Set up telemetry from `CTXSTEWARD_TELEMETRY`, once per process."""
    destination = os.environ.get(TELEMETRY_VARIABLE)
    if not destination or "opentelemetry.sdk.metrics" in sys.modules:
        return
    from ctxsteward.envelope.audit import auditor as audits
    from ctxsteward.envelope.telemetry.sdk import exported
    from ctxsteward.evals import telemetry as evals
    from ctxsteward.steward.night import telemetry as steward

    stack = ExitStack()
    boards = (audits.board(), steward.board(), evals.board())
    stack.enter_context(exported(destination, stream=sys.stderr, boards=boards))
    atexit.register(stack.close)


CACHED = "Cached"
"""State name of a task whose result Prefect took from its cache."""


class HarvestTaskError(Exception):
    """Raised when a batch fails."""


@task(
    cache_key_fn=lambda _, given: str(given["batch"].address),
    persist_result=True,
    result_serializer="json",
    task_run_name="{batch.address}",
)
def harvest_batch(settings: NightSettings, batch: Batch) -> dict[str, Any]:
    """Harvest a batch; return its address and its cost."""
    here = of_this_process()
    try:
        done = harvest_in_process(settings, batch, here)
    except Exception as error:
        raise HarvestTaskError(type(error).__name__) from None
    return {"address": done.address, "cpu_seconds": done.cpu_seconds, "by": here.owner}


def on_prefect(settings: NightSettings, records: BatchRecords, results: Path) -> Run:
    """Return a runner of batches as tasks of the current flow; `results` is a folder for addresses."""
    harvest = harvest_batch.with_options(result_storage=results)

    def run(batches: Iterable[Batch]) -> Iterator[BatchResult | BatchFailure]:
        submitted = [(batch, harvest.submit(settings, batch)) for batch in batches]
        for batch, future in submitted:
            future.wait()
            yield _ended(batch, future.state, records)

    return run


def _ended(batch: Batch, state: State[Any], records: BatchRecords) -> BatchResult | BatchFailure:
    """Return the result of a batch from its record, without counting its cost twice."""
    if not state.is_completed():
        return BatchFailure(batch, state.name or "Failed")
    record = records.find(batch.address)
    if record is None:  # Prefect's cache may be older than the store, or belong to another store
        return BatchFailure(batch, "RecordMissing")
    outcome = state.result()
    if state.name == CACHED or outcome["by"] == of_this_process().owner:
        return replace(record, found=state.name == CACHED)
    return replace(record, found=False, cpu_seconds=outcome["cpu_seconds"])


def task_runner(settings: NightSettings) -> TaskRunner[Any]:
    """Return the task runner that the settings name."""
    if settings.runner == "threads":
        return ThreadPoolTaskRunner(max_workers=settings.workers)
    from prefect_dask.task_runners import DaskTaskRunner

    if settings.dask_address is not None:
        return DaskTaskRunner(address=settings.dask_address)
    from .dask_cluster import QuietCluster

    return DaskTaskRunner(cluster_class=QuietCluster, cluster_kwargs={"n_workers": settings.workers})


RETRIES, RETRY_SECONDS = 2, 10
"""Retries of a night whose store, server or cluster does not answer."""
POLL_SECONDS = 1.0


class NightFailed(Exception):
    """Raised when a night fails; `report` is complete, the message quotes no transcript.

    Prefect persists a pickle of each exception of a flow, so the pickle holds numbers only.
    """

    def __init__(self, report: NightReport) -> None:
        self.report = report
        super().__init__(f"night {report.night} of {report.profile}: {report.failure}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.report.numbers(),))


@flow(name="meta_steward_nightly", flow_run_name=run_name, persist_result=False)
def meta_steward_nightly(settings: NightSettings) -> NightReport:
    """Run one night of the steward over the transcripts that are due."""
    export()
    report = one_night(settings)
    if report.failure:
        raise NightFailed(report)
    if report.outcome == "held":
        held: State[NightReport] = Completed(name="Held", message=f"{report.waiting:,} waits for a person", data=report)
        return held  # type: ignore[return-value]  # Prefect returns the state's data to the caller
    return report


def one_night(settings: NightSettings) -> NightReport:
    """Run one night within the current flow and show its report; raise if it cannot begin."""
    here = of_this_process()
    claim(settings, here)
    _begin(settings, here)
    with tags(*tags_of(settings)):
        report = night.with_options(task_runner=task_runner(settings))(settings)
        if report.outcome == "busy":  # an earlier try lost the store but not its lease, or another night was faster
            _begin(settings, here)
            report = night.with_options(task_runner=task_runner(settings))(settings)
    show(report)
    return report


@flow(name="night", persist_result=False, retries=RETRIES, retry_delay_seconds=RETRY_SECONDS)
def night(settings: NightSettings) -> NightReport:
    """Run one night with its batches as tasks."""
    here = of_this_process()
    claim(settings, here)
    with open_night(settings, here) as opening:
        run = on_prefect(settings, opening.records, home_of(settings) / "results")
        report = run_night(replace(opening, harvest=run))
    tell_night(report)
    counts = ", ".join(f"{stage} {count}" for stage, count in report.stages.items())
    get_run_logger().info("night %s of %s: %s; %s", report.night, report.profile, report.outcome, counts)
    return report


def _begin(settings: NightSettings, here: ProcessEnvironment) -> None:
    """Check the settings, wait for the lease, and mark killed runs as crashed."""
    refuse_relative_paths(settings)
    with stored(settings, here) as store:
        require(settings, store)
        if settings.dry_run:
            return
        lapsed = _waited(
            WriterLease(store, settings.profile, settings.tenant, owner=here.owner, clock=here.clock), settings, here
        )
    crashed = mark_crashed(lambda owner: here.abandoned(owner) or owner == lapsed)
    if crashed:
        get_run_logger().warning("%d runs were killed; this one takes over", crashed)


def stored(settings: NightSettings, here: ProcessEnvironment) -> Store:
    """Open an existing store; raise `InputError` if it does not exist."""
    scheme, _, folder = settings.store.partition(":")
    if scheme == "file" and not (Path(folder) / "objects").is_dir():
        raise InputError(f"store {settings.store!r:.200} does not exist; correct it, or make one with a first version")
    return open_store(settings.store, journal=settings.journal, keys=here.keys())


def _waited(lease: WriterLease, settings: NightSettings, here: ProcessEnvironment) -> str | None:
    """Wait while another owner holds the lease, at most its lifetime; return the owner of an expired lease, or None."""
    until = time.monotonic() + settings.lease_seconds + POLL_SECONDS
    while (holder := lease.holder()) is not None:
        if here.abandoned(holder.owner) or holder.expires_seconds <= here.clock():
            return holder.owner
        if time.monotonic() > until:
            return None
        time.sleep(POLL_SECONDS)
    return None
