"""A flow that is killed at the end of one of its tasks: run again, it does no finished batch twice and ends alike.

What a night does between its tasks is killed everywhere in `tests/steward/night/test_kills.py`.
"""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from prefect import flow

from ctxsteward.envelope.store import open_store
from ctxsteward.flows.night import harvest_batch, meta_steward_nightly, on_prefect
from ctxsteward.steward.harvest.batches import BatchRecords, batched
from ctxsteward.steward.ingest.items import SourceItem
from ctxsteward.steward.settings import NightSettings
from ctxsteward.store.crypto.keyring import file_keys

from .servers import environment, process, wait_for
from .transcripts import founded, write

pytestmark = pytest.mark.usefixtures("prefect")

RUN = """
import sys
from ctxsteward.flows.night import meta_steward_nightly
from ctxsteward.steward.settings import NightSettings

meta_steward_nightly(NightSettings.model_validate_json(sys.argv[1]))
"""
TRANSCRIPTS, BATCH = 12, 3
STOPS = range(1, 5) if os.environ.get("CTXSTEWARD_SOAK") == "1" else (2,)
"""Finished batches at which the flow is killed; with ``CTXSTEWARD_SOAK=1``, every number of them."""


def prepared(root: Path, keys: Path) -> NightSettings:
    """Twelve transcripts, and a store with these keys."""
    write(root / "in", TRANSCRIPTS)
    shutil.copytree(keys, root / "store" / "keys")
    (root / "home").mkdir()
    return founded(
        NightSettings(
            store=f"file:{root / 'store'}",
            sources=(str(root / "in"),),
            profile="support",
            night="2026-11-22",
            batch_transcripts=BATCH,
            workers=1,
        )
    )


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """The same in all stores, so that the same is found under the same addresses."""
    made = file_keys(tmp_path / "keys")
    made.address_key("default"), made.wrap("default", b"s" * 32, b"")
    return tmp_path / "keys"


def batches(settings: NightSettings) -> int:
    """How many there are: which transcripts are dealt together depends on where they lie."""
    items = [SourceItem(settings.sources[0], f"{n:05}.json", "") for n in range(TRANSCRIPTS)]
    return sum(1 for _ in batched(items, BATCH))


def finished(root: Path) -> int:
    """Batches that are in the store."""
    return len(list((root / "store").glob("objects/steward/*/*/batches/*/*.json")))


@pytest.mark.soak
def test_a_killed_flow_is_repeated_and_does_no_finished_batch_twice(tmp_path: Path, keys: Path) -> None:
    from prefect.settings import PREFECT_API_URL

    settings = prepared(tmp_path / "whole", keys)
    whole = meta_steward_nightly(settings)
    assert (whole.outcome, finished(tmp_path / "whole")) == ("promoted", batches(settings))
    for stop in STOPS:
        root = tmp_path / str(stop)
        settings = prepared(root, keys)
        env = environment(root / "home", PREFECT_API_URL=str(PREFECT_API_URL.value()))
        log = root / "home" / "run.log"
        with process("-c", RUN, settings.model_dump_json(), env=env, log=log) as child:
            least = min(stop, batches(settings))
            wait_for(lambda root=root, least=least: finished(root) >= least, 60, log)
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        done = finished(root)
        report = meta_steward_nightly(settings)
        assert (report.found_batches, finished(root), report.failed_batches) == (done, batches(settings), 0), stop
        assert (report.outcome, report.final, report.stages) == (whole.outcome, whole.final, whole.stages), stop


def test_a_finished_task_is_found_by_prefect_alone(tmp_path: Path, keys: Path) -> None:
    settings = prepared(tmp_path / "one", keys)
    items = tuple(SourceItem(settings.sources[0], f"{n:05}.json", "") for n in range(3))
    seen: list[tuple[str | None, Any]] = []
    task = harvest_batch.with_options(result_storage=tmp_path / "results")
    with open_store(settings.store) as store:
        batch = BatchRecords(store, "default", "support", extractor="x").batch(items)

    @flow
    def nights() -> None:
        for day in (22, 23):
            state = task(settings.model_copy(update={"night": f"2026-11-{day}"}), batch, return_state=True)
            seen.append((state.name, state.result()))

    nights()
    (first, told), (again, told_again) = seen
    assert (first, again, told_again) == ("Completed", "Cached", told)


def test_a_batch_that_breaks_fails_alone_and_says_no_word_of_a_transcript(
    tmp_path: Path, keys: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = prepared(tmp_path / "one", keys)
    broken, whole = (SourceItem("no/source", "a.json", ""),), (SourceItem(settings.sources[0], "00001.json", ""),)
    with open_store(settings.store) as store:
        records = BatchRecords(store, "default", "support", extractor="x")

        @flow
        def night() -> list[Any]:
            batches = [records.batch(broken), records.batch(whole)]
            return list(on_prefect(settings, records, tmp_path / "results")(batches))

        failed, done = night()
    assert (failed.error, failed.batch.items) == ("Failed", broken)
    assert (len(done.artifacts), done.transcripts) == (1, 1)
    assert "KeyError" in caplog.text
    assert "no/source" not in caplog.text
