"""What scores like a fact and is none: requests, replies, small talk; and what is kept beside it."""

from __future__ import annotations

import pytest

from ctxsteward.steward.harvest.harvester import harvest
from ctxsteward.steward.observations.observation import Observation

from .said import cases
from .talk import said, talk, task


def scored(transcript: object) -> list[Observation]:
    return [one for one in harvest(transcript) if one.kind == "fact"]  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [*cases.ERRANDS, *cases.SMALL_TALK])
def test_an_errand_inside_a_task_is_no_fact(text: str) -> None:
    assert scored(task(text)) == []


@pytest.mark.parametrize("text", cases.SMALL_TALK)
def test_small_talk_is_no_fact_anywhere(text: str) -> None:
    assert scored(talk(text)) == []
    friend = said(f"Ann: {text}", speaker="Ann", principal="Ann")
    assert scored(talk(friend, format="locomo", principal="Ann")) == []


@pytest.mark.parametrize("text", cases.KEPT)
def test_a_fact_beside_small_talk_is_kept(text: str) -> None:
    assert [one.reach for one in scored(talk(text))] == ["user"]


@pytest.mark.parametrize("text", cases.OF_THE_CASE)
def test_what_states_something_of_the_case_is_kept_for_its_session(text: str) -> None:
    assert {one.reach for one in scored(task(text))} <= {"session"}
    assert scored(task(text))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I like walking home in the evening on Mondays.", "preference"),
        ("I love my sister Nora, who moved to Oslo with her two kids last week.", "fact"),
        ("我喜欢晚上散步。", "preference"),
    ],
)
def test_a_liking_is_a_wish_or_a_fact_and_never_both(text: str, kind: str) -> None:
    assert {one.kind for one in harvest(talk(text))} == {kind}


def test_what_two_people_tell_each_other_is_for_nobody_else() -> None:
    line = "Ann: No, the desk closes at 19:30, not 18:00."
    (alone,) = harvest(talk("No, the desk closes at 19:30, not 18:00."))
    (between,) = harvest(talk(said(line, speaker="Ann", principal="Ann"), format="locomo", principal="Ann"))
    assert (alone.reach, between.reach) == ("shared", "user")
