"""What is said in passing, or of the task at hand, is for nobody else."""

from __future__ import annotations

from typing import Literal

import pytest

from ctxsteward.steward.harvest.harvester import harvest, is_own_words, lasting
from ctxsteward.steward.observations.transcript import ReplayedCall, Role

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


WISH = "Prices ought to include the tax."
MOMENTS = {
    "acted on at once": ([("user", WISH), ("call", ""), ("assistant", "Done."), ("user", "Bye for now")], False),
    "the answer to a question": (
        [
            ("call", ""),
            ("assistant", "Which prices do you want?"),
            ("user", WISH),
            ("assistant", "Fine."),
            ("user", "Bye"),
        ],
        False,
    ),
    "the last word": ([("user", "Hi"), ("call", ""), ("assistant", "Done."), ("user", WISH)], False),
    "said beside the task": (
        [
            ("user", "Hi"),
            ("call", ""),
            ("assistant", "Done."),
            ("user", WISH),
            ("assistant", "Noted."),
            ("user", "Bye"),
        ],
        True,
    ),
    "without a task": ([("user", WISH), ("assistant", "Noted.")], True),
}


@pytest.mark.parametrize(("lines", "is_kept"), MOMENTS.values(), ids=MOMENTS)
def test_of_a_task_only_what_the_assistant_does_not_act_on_may_hold_for_others(
    lines: list[tuple[Role | Literal["call"], str]], is_kept: bool
) -> None:
    call = ReplayedCall(id="c1", name="search", arguments="{}")
    messages = [
        said("", "assistant", at, calls=(call,)) if role == "call" else said(text, role, at)
        for at, (role, text) in enumerate(lines, 1)
    ]
    assert (WISH in [one.text for one in lasting(harvest(talk(*messages)))]) == is_kept


def test_without_an_assistant_nobody_is_spoken_to() -> None:
    assert harvest(scene("The lift at platform two is broken.")) == ()
