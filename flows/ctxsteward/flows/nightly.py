"""The nightly steward as a Prefect flow: the shell of `steward.night`, its batches tasks.

    meta_steward_nightly(NightSettings(…))     one night; its report

The inner flow has the task runner that the settings name, so that a deployment's parameters choose it. Settings hold
names of places, reports numbers and codes; what a report quotes goes back to the caller and is not persisted.

Annotations here are values, not texts: Prefect reads them where a deployment has loaded the flow by its name.
"""

from dataclasses import replace

from prefect import flow, get_run_logger

from ctxsteward.steward.night import run_night
from ctxsteward.steward.report import NightReport
from ctxsteward.steward.settings import NightSettings
from ctxsteward.steward.surroundings import of_this_process
from ctxsteward.steward.telemetry import tell_night
from ctxsteward.steward.wiring import opened

from .batches import on_prefect
from .exporting import export
from .runners import task_runner


@flow(name="meta_steward_nightly", persist_result=False)
def meta_steward_nightly(settings: NightSettings) -> NightReport:
    """Run one night of the steward over whatever transcripts are due."""
    export()
    return night.with_options(task_runner=task_runner(settings))(settings)


@flow(name="night", persist_result=False)
def night(settings: NightSettings) -> NightReport:
    """One night, with its batches as tasks."""
    with opened(settings, of_this_process()) as opening:
        run = on_prefect(settings, opening.shell.records, opening.results)
        report = run_night(opening.stages, replace(opening.shell, run=run))
    tell_night(report)
    counts = ", ".join(f"{one.stage} {one.count}" for one in report.stages)
    get_run_logger().info("night %s of %s: %s; %s", report.night, report.profile, report.outcome, counts)
    return report
