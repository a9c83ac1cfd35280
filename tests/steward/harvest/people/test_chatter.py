"""What two people tell each other, and what is said in passing, is for nobody else."""

from __future__ import annotations

import pytest

from ctxsteward.steward.harvest.harvester import harvest, is_own_words, lasting

from ..tools.scenes import scene
from .said import cases
from .talk import said, talk, task


@pytest.mark.parametrize("text", [*cases.SMALL_TALK, *cases.OF_THE_CASE])
def test_small_talk_and_what_is_of_the_case_leave_nothing_that_counts_by_itself(text: str) -> None:
    """What is kept in people's own words makes no record unless three say it alike (`tests.steward.ledger`)."""
    for found in (harvest(talk(text)), harvest(task(text))):
        assert [one for one in lasting(found) if not is_own_words(one)] == []


@pytest.mark.parametrize("text", ["My code is PEP4E0, remember it.", "Write to me at ann@example.org, please."])
def test_what_names_its_speaker_s_case_is_not_kept_at_all(text: str) -> None:
    assert (
        lasting(harvest(talk("Hello there.", said("How can I help you?", "assistant", 2), said(text, ordinal=3)))) == []
    )


def test_without_an_assistant_nobody_is_spoken_to() -> None:
    assert harvest(scene("The lift at platform two is broken.")) == ()


def test_what_two_people_tell_each_other_is_for_nobody_else() -> None:
    line = "Ann: No, the desk closes at 19:30, not 18:00."
    (alone,) = harvest(talk("No, the desk closes at 19:30, not 18:00."))
    (between,) = harvest(talk(said(line, speaker="Ann", principal="Ann"), format="locomo", principal="Ann"))
    assert (alone.reach, between.reach) == ("shared", "session")
