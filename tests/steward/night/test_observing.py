"""A night's observations of idle sessions: once, of those that are idle, and gone with whoever is forgotten."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.summarizers.models.fake_model import FakeModel, faithful

from ctxsteward.envelope import Session, Store, open_store
from ctxsteward.schemas import InputError, ModelUnavailable
from ctxsteward.steward.night.history import NightReport, ObservingReport
from ctxsteward.steward.settings import NightSettings, settings_of as read_settings
from ctxsteward.steward.setup import ObservingStage
from ctxsteward.store import forget

from . import desk
from .desk import NOON, fill, settings_of

WHY = {"who": "ops", "why": "asked", "when": "2026-11-23T00:00:00+00:00"}


def observing(root: Path, **more: Any) -> NightSettings:
    return settings_of(root, observing={"builds_for": "gpt-4o", "dynamic_tokens": 4_000, **more})


def talk(store: Store, id: str, turns: int = 4, ts: str = "2026-11-15T12:00:00+00:00") -> Session:
    session = store.session(id, tenant="acme")
    for number in range(len(session), len(session) + turns):
        user = {"role": "user", "content": f"Order {id}-{number} costs {number} euros and goes to Bern."}
        session.append(user, principal="ann" if number % 2 else "bob", ts=ts)
        session.append({"role": "assistant", "content": f"Order {id}-{number} is noted."}, ts=ts)
    return session


def stage(settings: NightSettings, store: Store, fake: FakeModel | None = None) -> ObservingReport:
    here = replace(desk.here(NOON + 7 * desk.DAY_SECONDS), models=lambda address: fake or FakeModel(faithful))
    report = ObservingStage(settings, store, here)()
    assert report is not None
    return report


def test_a_night_over_a_real_store_observes_its_sessions_and_tells_how_many(tmp_path: Path) -> None:
    settings = observing(tmp_path)
    fill(tmp_path / "in", 3)
    first = desk.night(settings)
    with open_store(settings.store) as store:
        talk(store, "one")
    told, again = desk.night(settings), desk.night(settings)
    assert first.observing == ObservingReport(model=None, sessions=0, observations=0)
    assert told.observing is not None
    assert (told.observing.sessions, told.observing.observations > 0) == (1, True)
    assert again.observing == first.observing
    assert NightReport.model_validate_json(told.model_dump_json()) == told


def test_repeated_and_after_a_kill_it_appends_nothing_twice(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    asked = list[int]()

    def dies_at_the_second(request: Any) -> str:
        asked.append(1)
        if len(asked) == 2:
            raise Killed
        return faithful(request)

    settings = observing(tmp_path, model="http://127.0.0.1:9/v1#small")
    with open_store("memory:") as store:
        sessions = [talk(store, name) for name in ("one", "two", "three")]
        with pytest.raises(Killed):
            stage(settings, store, FakeModel(dies_at_the_second))
        rest, repeated = stage(settings, store), stage(settings, store)
        assert (rest.sessions, rest.model) == (2, "fake")
        assert (repeated.sessions, repeated.observations, repeated.failed) == (0, 0, 0)
        for session in sessions:
            session.refresh()
            refs = [ref for one in session.state.observations for ref in one.citations]
            assert len(refs) == len(set(refs)) >= 4
            assert session.state.observed_to == len(session)


def test_what_is_said_later_is_observed_the_next_night_and_a_session_under_way_waits(tmp_path: Path) -> None:
    settings = observing(tmp_path)
    with open_store("memory:") as store:
        session = talk(store, "one")
        talk(store, "now", ts="2026-11-22T11:59:00+00:00")
        stage(settings, store)
        session.refresh()
        stood = session.state.observations
        talk(store, "one", 2)
        later = stage(settings, store)
        session.refresh()
        assert (later.sessions, session.state.observations[: len(stood)]) == (1, stood)
        assert len(session.state.observations) > len(stood)
        busy = store.session("now", tenant="acme")
        assert busy.state.observations == ()


def test_a_model_that_is_down_leaves_extractive_observations(tmp_path: Path) -> None:
    def down(request: Any) -> Any:
        raise ModelUnavailable("small", "refused")

    settings = observing(tmp_path, model="http://127.0.0.1:9/v1#small")
    with open_store("memory:") as store:
        session = talk(store, "one")
        report = stage(settings, store, FakeModel(down))
        session.refresh()
        assert report.observations == len(session.state.observations) > 0


def test_whoever_is_forgotten_leaves_what_a_night_wrote(tmp_path: Path) -> None:
    settings = observing(tmp_path)
    with open_store("memory:") as store:
        talk(store, "one")
        stage(settings, store)
        forget(store, principal="ann", tenant="acme", **WHY)
        session = store.session("one", tenant="acme")
        texts = [one.text for one in session.state.observations if "costs" in one.text]
        assert texts
        assert not [text for text in texts if "one-1" in text or "one-3" in text]
        assert stage(settings, store).observations == 0
        forget(store, session="one", tenant="acme", **WHY)
        assert stage(settings, store) == ObservingReport(model=None, sessions=0, observations=0)


def test_a_dry_run_and_a_night_without_the_setting_observe_nothing(tmp_path: Path) -> None:
    with open_store("memory:") as store:
        talk(store, "one")
        here = desk.here(NOON + desk.DAY_SECONDS)
        assert ObservingStage(settings_of(tmp_path), store, here)() is None
        dry = settings_of(tmp_path, observing={"builds_for": "gpt-4o", "dynamic_tokens": 4_000}, dry_run=True)
        assert ObservingStage(dry, store, here)() is None


@pytest.mark.parametrize("wrong", [{"builds_for": ""}, {}, {"builds_for": "gpt-4o", "dynamic_tokens": 10}])
def test_wrong_settings_are_named(tmp_path: Path, wrong: dict[str, Any]) -> None:
    path = tmp_path / "night.yaml"
    path.write_text(json.dumps({"observing": wrong}), encoding="utf-8")
    with pytest.raises(InputError, match="observing"):
        read_settings(path)


def test_a_log_of_more_than_half_and_a_model_that_nobody_knows_are_named(tmp_path: Path) -> None:
    path = tmp_path / "night.yaml"
    asked = {"builds_for": "gpt-4o", "dynamic_tokens": 400, "observations_tokens": 300}
    path.write_text(json.dumps({"observing": asked}), encoding="utf-8")
    with pytest.raises(InputError, match=r"observing\.observations_tokens 300 is more than half"):
        read_settings(path)
    with open_store("memory:") as store, pytest.raises(InputError, match=r"observing\.builds_for no-such-model: "):
        stage(observing(tmp_path, builds_for="no-such-model"), store)
