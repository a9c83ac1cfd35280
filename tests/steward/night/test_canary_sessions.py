"""A canary from the chat service's side: sessions open with the version they are assigned."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ctxsteward.envelope.store import Store, open_store
from ctxsteward.schemas import InputError
from ctxsteward.steward.gate.settings import GateSettings
from ctxsteward.steward.night.report import NightReport
from ctxsteward.steward.release.assignment import profile_for
from ctxsteward.steward.settings import NightSettings

from .desk import DAY_SECONDS, NOON, SHARED, night, say, settings_of

SESSIONS = 40
WHEN = "2026-11-17T12:00:00+00:00"
SECOND = "No, the parking fee is 8 EUR, not 6 EUR."


def serve(store: Store) -> Counter[int]:
    """A service's day: sessions under the version that each is assigned; how many under each."""
    shared: Counter[int] = Counter()
    for number in range(SESSIONS):
        name = f"s-{number}"
        session = store.session(name, tenant="acme", profile=profile_for(store, "support", name, tenant="acme"))
        session.append({"role": "user", "content": "What does parking cost?"}, ts=WHEN, principal=name)
        session.append({"role": "assistant", "content": "8 EUR."}, ts=WHEN)
        shared[session.state.head.profile["version"]] += 1
    return shared


def canary_of(root: Path) -> NightSettings:
    """Version 1 for all, version 2 a canary for one half."""
    settings = settings_of(root, canary_share=0.5, sources=(str(root / "in"), "store"))
    for day, text in enumerate((SHARED[0], SECOND)):
        for person in range(3):
            seconds = NOON + day * DAY_SECONDS
            say(root / "in", f"{day}-{person}", text, principal=f"p{day}-{person}", seconds=seconds)
        first = night(settings.model_copy(update={"night": f"2026-11-{16 + day}"}), now_seconds=seconds + 3600)
    assert (first.outcome, first.version) == ("canary", 2)
    return settings


def next_night(settings: NightSettings) -> NightReport:
    return night(settings.model_copy(update={"night": "2026-11-18"}), now_seconds=NOON + 3 * DAY_SECONDS)


def test_a_version_that_did_no_worse_with_its_share_of_sessions_is_kept(tmp_path: Path) -> None:
    settings = canary_of(tmp_path).model_copy(update={"canary_share": None})
    limits = settings.canary.model_copy(update={"min_sessions": 10})
    with open_store(settings.store) as store:
        shared = serve(store)
        assert min(shared[1], shared[2]) >= 10

    found = next_night(settings.model_copy(update={"canary": limits}))

    assert found.canary is not None
    assert (found.canary.level, found.exit_code) == ("kept", 0)
    with open_store(settings.store) as store:
        newest = store.profiles("support", tenant="acme").newest()
        assert newest.number == 2
        assert profile_for(store, "support", "s-new", tenant="acme").version == 2
        assert store.session("s-0", tenant="acme").state.head.profile["version"] in (1, 2), "open sessions stay"


def falling(root: Path) -> GateSettings:
    """A case that holds under version 1 and not under version 2."""
    (root / "gate.yaml").write_text(
        "name: desk/1\ncases:\n- id: parking\n  messages: [{role: user, content: The parking fee is 6 EUR.}]\n"
        "  canaries: [{text: 6 EUR, says: The parking fee is 6 EUR.}]\n  question: What is the parking fee?\n"
    )
    return GateSettings(cases=str(root / "gate.yaml"))


def test_a_guard_that_falls_on_tonights_cases_ends_a_canary(tmp_path: Path) -> None:
    settings = canary_of(tmp_path)
    found = next_night(settings.model_copy(update={"gate": falling(tmp_path)}))

    assert found.canary is not None
    assert (found.canary.level, found.canary.why, found.exit_code) == ("rolled_back", ("guard canary_facts fell",), 4)


def test_cases_that_are_not_there_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    told: list[str] = []
    with pytest.raises(InputError, match="nowhere"):
        night(settings_of(tmp_path, gate=GateSettings(cases="nowhere.yaml")), tell=told.append)
    assert told == []


def test_what_was_taken_back_returns_neither_by_itself_nor_in_other_words(tmp_path: Path) -> None:
    """More people say it, most of them otherwise: the record has the same id, and another text."""
    settings = canary_of(tmp_path).model_copy(update={"canary_share": None})
    third = next_night(settings.model_copy(update={"gate": falling(tmp_path)}))
    assert third.outcome == "rolled_back"

    fourth = night(settings.model_copy(update={"night": "2026-11-19"}), now_seconds=NOON + 4 * DAY_SECONDS)
    locker, reworded = "No, the locker fee is 3 EUR, not 2 EUR.", "No, the parking fee is 8 EUR and not 6 EUR."
    for number, text in enumerate([locker] * 3 + [reworded] * 6):
        say(tmp_path / "in", f"9-{number}", text, principal=f"q-{number}", seconds=NOON + 4 * DAY_SECONDS)
    fifth = night(settings.model_copy(update={"night": "2026-11-20"}), now_seconds=NOON + 5 * DAY_SECONDS)
    again = night(settings.model_copy(update={"night": "2026-11-20"}), now_seconds=NOON + 5 * DAY_SECONDS)

    assert (fourth.outcome, fourth.version) == ("unchanged", 3)
    assert "a rollback took back" in fourth.changes[-1]
    assert (fifth.outcome, fifth.version) == ("promoted", 4)
    assert "a rollback took back" in fifth.changes[-1]
    assert (again.outcome, again.final) == ("unchanged", fifth.final)
    with open_store(settings.store) as store:
        texts = {one.text for one in store.profiles("support", tenant="acme").newest().profile.meta}
    assert texts == {SHARED[0], locker}
