"""The nightly flow on a Prefect server: what it commits, what it keeps, what it finds again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxsteward.flows.night import meta_steward_nightly
from ctxsteward.steward.night.environment import of_this_process
from ctxsteward.steward.night.run import run_night
from ctxsteward.steward.settings import NightSettings
from ctxsteward.steward.setup import home_of, open_night

from .transcripts import founded, write

pytestmark = pytest.mark.usefixtures("prefect")


@pytest.fixture
def settings(tmp_path: Path) -> NightSettings:
    write(tmp_path / "in", 12)
    return founded(
        NightSettings(
            store=f"file:{tmp_path / 'store'}",
            sources=(str(tmp_path / "in"),),
            profile="support",
            night="2026-11-22",
            batch_transcripts=3,
            workers=2,
        )
    )


@pytest.mark.soak
def test_a_night_on_prefect_ends_as_one_without(settings: NightSettings, tmp_path: Path) -> None:
    report = meta_steward_nightly(settings)
    assert (report.outcome, report.stages["harvested"], report.failed_batches) == ("promoted", 12, 0)
    plain = founded(settings.model_copy(update={"store": f"file:{tmp_path / 'other'}"}))
    with open_night(plain, of_this_process()) as night:
        other = run_night(night)
    assert (other.stages, other.statuses) == (report.stages, report.statuses)
    assert sorted(other.changes) == sorted(report.changes), "in another store they have other ids, so another order"


def test_results_hold_addresses_and_nothing_else(settings: NightSettings) -> None:
    meta_steward_nightly(settings)
    results = list((home_of(settings) / "results").iterdir())
    assert len(results) >= 2
    for path in results:
        value = json.loads(json.loads(path.read_text())["result"])
        assert set(value) == {"address", "by", "cpu_seconds"}
        assert len(value["address"]) == 64
    everything = b"".join(path.read_bytes() for path in results)
    assert not any(word in everything for word in (b"aisle", b"user-1", b"00001.json", b"baggage"))
