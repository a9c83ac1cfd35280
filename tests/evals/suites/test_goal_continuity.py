"""The goal-continuity suite: what it makes, and that each figure can fail."""

from __future__ import annotations

import pytest

from ctxsteward.evals.canaries import normalize, shows
from ctxsteward.evals.suites import goal_continuity
from ctxsteward.evals.suites.goal_continuity import AimState, Checkpoint, judge
from ctxsteward.evals.suites.kit.suite import Draw, ScenarioResult, Setup, drawn
from ctxsteward.evals.suites.results import play_one
from ctxsteward.schemas.message import Wire

from .doubles import asked

EN = Draw("goal-continuity", "docs", 10)
SHOWN = ("goals_shown", "constraints_shown", "decisions_shown", "todos_open")


def played(draw: Draw, setup: Setup) -> ScenarioResult:
    result = play_one(draw, setup)
    assert result.error is None
    return result


def judged(known: AimState) -> dict[str, float]:
    ask = Checkpoint(metric="goal_drift", after=2, question="What is left?", wants=(), aims=(known,))
    said: list[Wire] = [
        {"role": "user", "content": "Todo: order the oak worktop."},
        {"role": "assistant", "content": "Fine."},
    ]
    return {score.metric: score.value for score in judge(known, asked(ask, *said)) if score.value is not None}


def task(wants: str, *, outdated: tuple[str, ...] = (), is_open: bool = True, said_at: int = 1) -> AimState:
    return AimState(kind="task", key="zzz", wants=(wants,), outdated=outdated, is_open=is_open, said_at=said_at)


OAK = "order the oak worktop"


@pytest.mark.parametrize(
    ("known", "wanted"),
    [
        (task(OAK), {"todos_open": 1, "reachable": 1, "stale": 0, "goal_drift": 0}),
        (task("paint the door"), {"todos_open": 0, "reachable": 1, "stale": 0, "goal_drift": 1}),
        (
            task("sold", outdated=(OAK,), is_open=False),
            {"done_stays_done": 0, "reachable": 1, "stale": 1, "goal_drift": 1},
        ),
        (task("sold", is_open=False), {"done_stays_done": 1, "reachable": 1, "stale": 0, "goal_drift": 0}),
        (task(OAK, outdated=("Fine",)), {"todos_open": 1, "reachable": 1, "stale": 0, "goal_drift": 0}),
        (task(OAK, said_at=9), {"todos_open": 1, "reachable": 0, "stale": 0, "goal_drift": 1}),
    ],
    ids=["shown", "not shown", "shown as if open", "over and gone", "old beside new", "nothing leads there"],
)
def test_each_figure_can_fail(known: AimState, wanted: dict[str, float]) -> None:
    assert judged(known) == wanted


def test_every_mark_is_said_and_stands_in_no_other_message_before() -> None:
    for draw in drawn("goal-continuity", "ci", 9):
        scenario = goal_continuity.make(draw)
        texts = [normalize(str(message["content"] or "")) for message in scenario.messages]
        assert scenario.turns == draw.turns
        for ask in scenario.asks:
            assert isinstance(ask, Checkpoint)
            for known in ask.aims:
                assert shows(texts[known.said_at - 1], known.wants[0])
                assert not any(shows(text, known.wants[0]) for text in texts[: known.said_at - 1]), known


def test_aims_of_all_kinds_are_set_changed_and_finished_in_both_languages() -> None:
    last = [one.asks[-1].after for one in map(goal_continuity.make, drawn("goal-continuity", "ci", 4))]
    assert all(after > 100 for after in last)
    for split in ("docs", "ci"):
        for language in ("en", "zh"):
            asks = [
                known
                for draw in drawn("goal-continuity", split, 12)
                if draw.language == language
                for ask in goal_continuity.make(draw).asks
                if isinstance(ask, Checkpoint)
                for known in ask.aims
            ]
            assert {(known.kind, known.is_open) for known in asks} >= {
                ("goal", True),
                ("goal", False),
                ("rule", True),
                ("rule", False),
                ("task", True),
                ("task", False),
                ("choice", True),
            }
            assert {known.kind for known in asks if known.outdated} == {"goal", "rule", "task", "choice"}


def test_the_splits_share_no_phrasing_of_an_aim() -> None:
    def said(split: str) -> set[str]:
        asks = (ask for draw in drawn("goal-continuity", split, 10) for ask in goal_continuity.make(draw).asks)  # type: ignore[arg-type]
        return {ask.question for ask in asks if ask.kind != "one"}

    assert said("docs").isdisjoint(said("ci"))
