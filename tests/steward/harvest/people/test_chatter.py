"""What two people tell each other, and what is said in passing, is for nobody else."""

from __future__ import annotations

import pytest

from ctxsteward.steward.harvest.harvester import harvest, lasting

from .said import cases
from .talk import said, talk, task


@pytest.mark.parametrize("text", [*cases.SMALL_TALK, *cases.OF_THE_CASE])
def test_small_talk_and_what_is_of_the_case_leave_nothing(text: str) -> None:
    assert lasting(harvest(talk(text))) == lasting(harvest(task(text))) == []


def test_what_two_people_tell_each_other_is_for_nobody_else() -> None:
    line = "Ann: No, the desk closes at 19:30, not 18:00."
    (alone,) = harvest(talk("No, the desk closes at 19:30, not 18:00."))
    (between,) = harvest(talk(said(line, speaker="Ann", principal="Ann"), format="locomo", principal="Ann"))
    assert (alone.reach, between.reach) == ("shared", "session")
