"""What the flows tell Prefect of a run beside its states: name, tags, owner, report; and where its telemetry goes.

A run whose process was killed together with its worker says nothing any more, and its server shows it as running for
ever. So each run is labelled with the owner of the steward's lease (`night@HOST:PID`), and the next run calls those
crashed whose owner is gone: on this machine, because no such process is there; on another one, because its lease has
run out.

Telemetry goes where `CTXSTEWARD_TELEMETRY` says, as ``ctxsteward … --telemetry`` has it. A served flow runs in a
process of its own that ends with it, so `otlp=URL` is what fits; what waits is sent at the end of the process. Where
the process has an SDK already (the command line's, or a framework's), that SDK is used.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import date
from functools import cache
from typing import Any

from prefect import runtime
from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterState, FlowRunFilterStateType
from prefect.client.schemas.objects import StateType
from prefect.states import Crashed

from ctxsteward.schemas import InputError
from ctxsteward.steward import NightReport, NightSettings, ProcessEnvironment

OWNER = "ctxsteward.owner"
"""Label of a run: who holds the steward's lease."""


def run_name() -> str:
    """The name of the run that is under way: what it is about, and its day, range or suite."""
    told = dict(runtime.flow_run.parameters or {})
    settings = NightSettings.model_validate(told["settings"])
    about = settings.profile if settings.tenant == "default" else f"{settings.tenant}/{settings.profile}"
    if "suite" in told:
        return f"{told['suite']} of {about}"
    if "first" in told:
        return f"{about} {told['first']} to {told['last']}"
    return f"{about} {settings.night or date.today().isoformat()}"


def tags_of(settings: NightSettings) -> tuple[str, ...]:
    """Tags of all that runs for this profile."""
    return ("ctxsteward", f"tenant:{settings.tenant}", f"profile:{settings.profile}")


def refuse_relative_paths(settings: NightSettings) -> None:
    """Refuse relative paths in a deployment: each of its runs has a working directory of its own, thrown away."""
    if runtime.deployment.id is None:
        return
    store = settings.store.removeprefix("file:") if settings.store.startswith("file:") else None
    sources = [uri.removeprefix("file:") for uri in settings.sources if uri != "store" and "://" not in uri]
    for path in (store, settings.journal, settings.sent, settings.actors, *sources):
        if path is not None and not path.startswith("/"):
            raise InputError(
                f"{path!r:.200} is relative, and the working directory of a deployment's run is a new one each time; "
                "write the whole path"
            )


def claim(settings: NightSettings, here: ProcessEnvironment) -> None:
    """Say who runs this, and what for."""
    with get_client(sync_client=True) as client:
        client.update_flow_run_labels(runtime.flow_run.id, {OWNER: here.owner})
        tags = {*runtime.flow_run.tags, *tags_of(settings)}
        client.update_flow_run(runtime.flow_run.id, tags=sorted(tags))


def call_crashed(is_gone: Callable[[str], bool]) -> int:
    """Call runs crashed that show as running though their owner is gone; how many."""
    running = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING])))
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(flow_run_filter=running)
        gone = [run for run in runs if isinstance(owner := run.labels.get(OWNER), str) and is_gone(owner)]
        for run in gone:
            message = f"its process, {run.labels[OWNER]}, is gone; run {runtime.flow_run.name} takes over"
            client.set_flow_run_state(run.id, Crashed(message=message), force=True)
    return len(gone)


def show(report: NightReport) -> None:
    """Keep the report as an artifact of the run: numbers and codes, for a server's database is no place for more."""
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
    """Set up telemetry as `CTXSTEWARD_TELEMETRY` says, once a process."""
    destination = os.environ.get(TELEMETRY_VARIABLE)
    if not destination or "opentelemetry.sdk.metrics" in sys.modules:
        return
    from ctxsteward.envelope.audit import auditor as audits
    from ctxsteward.envelope.telemetry import exported
    from ctxsteward.evals import telemetry as evals
    from ctxsteward.steward.night import telemetry as steward

    stack = ExitStack()
    boards = (audits.board(), steward.board(), evals.board())
    stack.enter_context(exported(destination, stream=sys.stderr, boards=boards))
    atexit.register(stack.close)
