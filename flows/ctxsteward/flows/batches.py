"""Batches as Prefect tasks: names of transcripts go in, the address of what became of them comes out, never a body.

A task's cache key is its batch alone, and a batch's address is made of what it reads; results are persisted, so a run
that is repeated after a kill finds every finished batch, also where Prefect still shows the first run as running. A
batch that fails is a failed state, not a failed run. Its exception is told by name only: its text may quote a
transcript, and Prefect keeps logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import INPUTS
from prefect.client.schemas.objects import State

from ctxsteward.steward.batches import Batch, BatchFailed, BatchRecords, BatchResult
from ctxsteward.steward.runners import Run
from ctxsteward.steward.settings import NightSettings
from ctxsteward.steward.surroundings import of_this_process
from ctxsteward.steward.wiring import harvest_in_process

CACHED = "Cached"
"""Name of the state of a task that Prefect has not run again."""


class BatchBroke(Exception):
    """A batch came to no end."""


@task(cache_policy=INPUTS - "settings", persist_result=True, result_serializer="json", task_run_name="{batch.address}")
def harvest_batch(settings: NightSettings, batch: Batch) -> dict[str, Any]:
    """Harvest a batch; its address, and what that has cost."""
    here = of_this_process()
    try:
        done = harvest_in_process(settings, batch, here)
    except Exception as error:
        raise BatchBroke(type(error).__name__) from None
    return {"address": done.address, "cpu_seconds": done.cpu_seconds, "tokens": done.tokens, "by": here.owner}


def on_prefect(settings: NightSettings, records: BatchRecords, results: Path) -> Run:
    """Run batches as tasks of the flow that is under way; `results` is a folder for addresses."""
    harvest = harvest_batch.with_options(result_storage=results)

    def run(batches: Iterable[Batch]) -> Iterator[BatchResult | BatchFailed]:
        submitted = [(batch, harvest.submit(settings, batch)) for batch in batches]
        for batch, future in submitted:
            future.wait()
            yield _ended(batch, future.state, records)

    return run


def _ended(batch: Batch, state: State[Any], records: BatchRecords) -> BatchResult | BatchFailed:
    """What became of a batch, as its record says; what it has cost here is not counted twice."""
    if not state.is_completed():
        return BatchFailed(batch, state.name or "Failed")
    record = records.find(batch.address)
    if record is None:  # the store lost it, or is another one: Prefect's own word is not enough
        return BatchFailed(batch, "RecordMissing")
    told = state.result()
    if state.name == CACHED or told["by"] == of_this_process().owner:
        return replace(record, found=state.name == CACHED)
    return replace(record, found=False, cpu_seconds=told["cpu_seconds"], tokens=told["tokens"])
