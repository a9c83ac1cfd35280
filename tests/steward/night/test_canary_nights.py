"""A canary over nights: a new version for a part of the sessions, settled by what those sessions have shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxsteward.envelope.store import open_store
from ctxsteward.steward.night.chain import NightChain
from ctxsteward.steward.night.report import NightReport
from ctxsteward.steward.release.canary import CanaryArm, arms_of
from ctxsteward.steward.settings import NightSettings
from ctxsteward.store.erasure.forget import forget

from .desk import DAY_SECONDS, NOON, SHARED, night, say, settings_of

FIRST, SECOND, THIRD = SHARED[0], "No, the parking fee is 8 EUR, not 6 EUR.", "No, the locker fee is 3 EUR, not 2 EUR."


def thrice(root: Path, text: str, day: int) -> None:
    """Three people say it on this day."""
    for number in range(3):
        say(root / "in", f"{day}-{number}", text, principal=f"p{day}-{number}", seconds=NOON + day * DAY_SECONDS)


def started(root: Path) -> NightSettings:
    """Version 1 for all; version 2 is a canary."""
    thrice(root, FIRST, 0)
    settings = settings_of(root, canary_share=0.5)
    assert night(settings).outcome == "promoted"
    thrice(root, SECOND, 1)
    second = night(settings.model_copy(update={"night": "2026-11-23"}))
    assert (second.outcome, second.version, second.canary and second.canary.level) == ("canary", 2, "started")
    return settings


def sessions(root: Path, version: int, count: int, text: str) -> None:
    """Sessions under a version, in each of which somebody says this."""
    for number in range(count):
        name = f"v{version}-{number}"
        seconds = NOON + 2 * DAY_SECONDS
        say(root / "in", name, text, principal=name, seconds=seconds, profile_version=version)


@pytest.mark.parametrize(
    ("challenger", "level", "version", "code"),
    [("Thank you, that is all.", "kept", 2, 0), ("No, that's wrong: refunds take 5 days.", "rolled_back", 3, 4)],
)
def test_a_canary_is_kept_or_rolled_back_by_its_sessions(
    tmp_path: Path, challenger: str, level: str, version: int, code: int
) -> None:
    settings = started(tmp_path)
    sessions(tmp_path, 1, 40, "Thank you, that is all.")
    sessions(tmp_path, 2, 40, challenger)
    third = night(settings.model_copy(update={"night": "2026-11-24"}))
    assert third.canary is not None
    assert (third.canary.level, third.exit_code) == (level, code)
    with open_store(settings.store) as store:
        newest = store.profiles("support", tenant="acme").newest()
    assert newest.number == version
    wanted = {FIRST} if level == "rolled_back" else {FIRST, SECOND}
    assert {record.text for record in newest.profile.meta} == wanted


def test_a_canary_of_few_sessions_goes_on_and_nothing_overtakes_it(tmp_path: Path) -> None:
    settings = started(tmp_path)
    thrice(tmp_path, THIRD, 2)
    third: NightReport = night(settings.model_copy(update={"night": "2026-11-24"}))
    assert third.canary is not None
    assert (third.outcome, third.version, third.canary.level) == ("unchanged", 2, "extended")
    assert "is still a canary" in third.changes[-1]


def test_a_session_counts_once_however_often_it_is_read(tmp_path: Path) -> None:
    """A night that reads everything anew makes one complaint no two."""
    settings = started(tmp_path)
    sessions(tmp_path, 1, 4, "Thank you, that is all.")
    sessions(tmp_path, 2, 4, "No, that's wrong: refunds take 5 days.")
    for day in (24, 25, 26):
        night(settings.model_copy(update={"night": f"2026-11-{day}", "full": day > 24}))
    with open_store(settings.store) as store:
        nights = list(NightChain(store, "acme", "support").history())[2:]
        arms = arms_of(store, settings, nights, (1, 2))
        for name in ("v2-0", "v1-0"):
            forget(store, session=name, tenant="acme", who="dpo", why="asked", when="2026-11-27T00:00:00Z")
        left = arms_of(store, settings, nights, (1, 2))
    assert arms == (CanaryArm(sessions=4, turns=4), CanaryArm(sessions=4, turns=4, corrections=4))
    assert left == (CanaryArm(sessions=3, turns=3), CanaryArm(sessions=3, turns=3, corrections=3)), (
        "the forgotten count no more"
    )
