"""The verbatim suite: red over anything that shows the last turn otherwise."""

from __future__ import annotations

import pytest

from ctxsteward.evals.suites import verbatim
from ctxsteward.evals.suites.kit.suite import Ask, drawn
from ctxsteward.schemas.message import Wire

from .doubles import asked

ASK = Ask(metric="last_assistant", after=0, question="你的上一句是什么", wants=("It is on shelf 7.", "Where is it?"))


def scores(*texts: str) -> dict[str, float]:
    said: list[Wire] = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    return {score.metric: score.value for score in verbatim.judge(asked(ASK, *said))}


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (("Where is it?", "It is on shelf 7."), {"last_assistant": 1, "last_user": 1, "last_place": 1}),
        (("Where is it?", "It is on shelf 8."), {"last_assistant": 0, "last_user": 1, "last_place": 0}),
        (("Where?", "It is on shelf 7."), {"last_assistant": 1, "last_user": 0, "last_place": 1}),
        (("It is on shelf 7.", "Where is it?"), {"last_assistant": 0, "last_user": 0, "last_place": 0}),
        (
            ("Where is it?", "It is on shelf 7.", "Ah.", "Anything else?"),
            {"last_assistant": 1, "last_user": 1, "last_place": 0},
        ),
    ],
    ids=["as said", "altered", "the user's is gone", "roles swapped", "something behind it"],
)
def test_each_figure_can_fail(texts: tuple[str, ...], wanted: dict[str, float]) -> None:
    assert scores(*texts) == wanted


def test_questions_are_of_many_kinds_and_stand_behind_an_answer() -> None:
    made = [verbatim.make(draw) for draw in drawn("verbatim", "docs", 12)]
    kinds = {ask.kind for one in made for ask in one.asks}
    assert len(kinds) > 25, "shapes and baits are drawn apart"
    for one in made:
        assert one.turns == one.draw.turns
        assert all(one.messages[ask.after - 1]["role"] == "assistant" for ask in one.asks)
