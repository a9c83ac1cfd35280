"""What scores like a fact and is none: requests, replies, small talk; and what is kept beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from ctxsteward.steward.harvest.harvester import harvest, lasting
from ctxsteward.steward.observations.observation import Observation

from .said import cases
from .talk import said, talk, task


def scored(transcript: object) -> list[Observation]:
    return [one for one in harvest(transcript) if one.kind == "fact"]  # type: ignore[arg-type]


def friend(text: str) -> object:
    return talk(said(f"Ann: {text}", speaker="Ann", principal="Ann"), format="locomo", principal="Ann")


def share(texts: Sequence[str], told: Callable[[str], object]) -> float:
    """Of texts, how many give a fact."""
    return sum(scored(told(text)) != [] for text in texts) / len(texts)


def test_hardly_an_errand_inside_a_task_is_a_fact() -> None:
    assert share(cases.ERRANDS, task) < 0.1
    assert share(cases.SMALL_TALK, task) == 0


def test_hardly_any_small_talk_is_a_fact_anywhere() -> None:
    """Weights that were measured tell it apart, not a list of what people say in passing."""
    assert share(cases.SMALL_TALK, talk) < 0.1
    assert share(cases.SMALL_TALK, friend) < 0.2


def test_facts_beside_small_talk_are_kept() -> None:
    assert share(cases.KEPT, talk) > 0.85
    assert share(cases.KEPT, friend) > 0.85
    assert {one.reach for text in cases.KEPT for one in scored(talk(text))} == {"user"}


@pytest.mark.parametrize("text", cases.OF_THE_CASE)
def test_what_states_something_of_the_case_is_over_with_it(text: str) -> None:
    assert lasting(scored(task(text))) == []


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
