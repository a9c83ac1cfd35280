"""A draw says everything about its scenario: the same id, the same conversation, of a length it knows beforehand."""

from __future__ import annotations

from typing import get_args

import pytest

from ctxsteward.evals.suites.catalogue import NAMES, suite_named
from ctxsteward.evals.suites.kit.suite import LONG_TURNS, SCENARIOS, TURNS, Draw, Kind, drawn
from ctxsteward.schemas import InputError


def test_an_id_is_read_back_to_its_draw() -> None:
    for draw in (Draw("verbatim", "ci", 0), Draw("goal-continuity", "docs", 123456)):
        assert Draw.parse(draw.id) == draw


NO_IDS = ("", "verbatim", "verbatim/ci-", "verbatim/dev-1", "Verbatim/ci-1", "verbatim/ci-1x", "/ci-1", "a/ci-1234567")


@pytest.mark.parametrize("id", NO_IDS)
def test_a_text_that_is_no_id_is_refused(id: str) -> None:
    with pytest.raises(InputError, match="ids look like verbatim/ci-12"):
        Draw.parse(id)


def test_what_ci_runs_is_long_enough_varied_and_never_what_the_docs_show() -> None:
    draws = [draw for name in NAMES for draw in drawn(name, "ci", SCENARIOS)]
    turns = [draw.turns for draw in draws]
    assert (len(draws) >= 200, min(turns) >= 50, sum(t >= 200 for t in turns) >= 20) == (True, True, True)
    assert max(turns) <= LONG_TURNS[1]
    assert {draw.language for draw in draws if draw.turns >= 200} == {"en", "zh"}
    assert sum(draw.language == "zh" for draw in draws) in range(len(draws) // 3, len(draws) * 2 // 3)
    assert not {draw.id for draw in draws} & {draw.id for name in NAMES for draw in drawn(name, "docs", SCENARIOS)}
    assert Draw("verbatim", "ci", 3).random().random() != Draw("verbatim", "docs", 3).random().random()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_draw_makes_the_same_scenario_and_another_draw_another(name: str) -> None:
    suite = suite_named(name)
    draws = [Draw(name, "docs", 1), Draw(name, "docs", 2), Draw(name, "ci", 1), Draw(name, "ci", 2)]
    made = [suite.make(draw) for draw in draws]
    assert made == [suite.make(draw) for draw in draws]
    assert len({str(one.messages) for one in made}) == len(draws)


@pytest.mark.parametrize("name", NAMES)
def test_a_suite_says_what_it_holds_and_what_each_figure_is(name: str) -> None:
    suite = suite_named(name)
    assert suite.about.endswith(".")
    assert len({metric.name for metric in suite.metrics}) == len(suite.metrics) > 0
    for metric in suite.metrics:
        assert metric.about.endswith(".")
        assert metric.kind in get_args(Kind)
        assert metric.better in ("higher", "lower")


def test_a_larger_run_has_the_smaller_one_in_it() -> None:
    assert list(drawn("cache", "ci", 40))[:26] == list(drawn("cache", "ci", 26))


def test_every_ninth_is_long_and_the_others_are_not() -> None:
    for draw in drawn("agents", "docs", 100):
        low, high = LONG_TURNS if draw.number % 9 == 0 else TURNS
        assert low <= draw.turns <= high
