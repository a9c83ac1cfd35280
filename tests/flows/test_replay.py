"""Nights made up for, and eval suites, as flows."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from ctxsteward.envelope.store import open_store
from ctxsteward.flows.replay import replay_nights
from ctxsteward.flows.suites import eval_suite, guards
from ctxsteward.schemas import InputError
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument
from ctxsteward.steward.night.environment import of_this_process
from ctxsteward.steward.settings import NightSettings
from ctxsteward.store.crypto.keyring import file_keys

from .transcripts import founded, write

pytestmark = pytest.mark.usefixtures("prefect")

DAY_SECONDS = 86_400
FIRST, LAST = date(2026, 11, 15), date(2026, 11, 16)


def prepared(root: Path, name: str) -> NightSettings:
    """Six transcripts a day, on two days; all stores have one store's keys."""
    midnight = datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp()
    for day in range(2):
        write(root / "in", 6, 6 * day, seconds=midnight + day * DAY_SECONDS)
    (root / name).mkdir()
    file_keys(root / "keys").address_key("default")
    (root / name / "keys").symlink_to(root / "keys")
    return founded(NightSettings(store=f"file:{root / name}", sources=(str(root / "in"),), profile="support"))


def test_days_made_up_for_end_as_one_night_and_the_second_time_commit_nothing(tmp_path: Path) -> None:
    settings = prepared(tmp_path, "days")
    reports = replay_nights(settings, FIRST, LAST)
    assert [(one.night, one.stages["due"], one.outcome) for one in reports] == [
        ("2026-11-15", 6, "unchanged"),
        ("2026-11-16", 6, "promoted"),
    ]
    again = replay_nights(settings, FIRST, LAST)
    assert {(one.outcome, one.number, one.final) for one in again} == {("unchanged", None, reports[-1].final)}
    (whole,) = replay_nights(prepared(tmp_path, "whole"), LAST, LAST)
    assert whole.final == reports[-1].final
    suite = eval_suite("guards", settings)
    assert (suite["version"], suite["passed"]) == (2, True)


def test_a_suite_reads_a_store_whose_keys_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXSTEWARD_MASTER_KEY", "5a" * 32)
    settings = NightSettings(store=f"file:{tmp_path / 'store'}", profile="desk")
    with open_store(settings.store, keys=of_this_process().keys()) as store:
        meta = (MetaRecord(id="r1", text="Keep answers short.", sources=("s-1§1",)),)
        first = ProfileDocument(name="desk", meta=meta)
        store.profiles("desk").commit(first, who="ada", why="first", when="2026-11-22")

    assert guards(settings)["passed"] is True
    assert not (tmp_path / "store" / "keys").exists()


def test_an_unknown_suite_names_those_there_are() -> None:
    with pytest.raises(InputError, match=r"one of: agents, cache, .*, guards, "):
        eval_suite("other", NightSettings())
