"""Running: the same scores whoever plays, and an exception of the product is a scenario that broke off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxsteward.envelope import Budgets
from ctxsteward.evals.suites.kit.suite import Draw, ScenarioResult, Setup
from ctxsteward.evals.suites.results import in_order, play_one, run
from ctxsteward.schemas import InputError, SummarizerInput, Summary

DRAWS = tuple(Draw("verbatim", "docs", number) for number in (1, 3))


def without_time(results: list[ScenarioResult]) -> list[ScenarioResult]:
    return [replace(one, cpu_seconds=0.0) for one in results]


def test_several_processes_give_the_scores_of_one() -> None:
    alone = list(run(DRAWS, Setup(), workers=1))
    shared = in_order(list(run(DRAWS, Setup(), workers=2)), DRAWS)
    assert without_time(alone) == without_time(shared)
    assert all(one.turns >= 50 and one.builds >= one.turns and one.error is None for one in alone)


def test_an_exception_breaks_its_scenario_off_and_not_the_run() -> None:
    budgets = Budgets(system_tokens=1)
    heavy = Setup(budgets=budgets, profile=_profile())
    result = play_one(DRAWS[0], heavy)
    assert result.error is not None
    assert result.error.startswith("BudgetExceeded: ")
    assert (result.turns, result.builds) == (50, 1)


def _profile() -> object:
    from ctxsteward.schemas.profile import ProfileDocument, ProfileEntry

    return ProfileDocument(persona=(ProfileEntry(id="who", text="You are a helper with many words to say."),))


def local(source: SummarizerInput, *, budget_tokens: int) -> Summary:
    return Summary(bullets=())


def test_a_setup_that_cannot_leave_its_process_is_refused_with_what_to_do() -> None:
    unpicklable = Setup(summarizer=lambda source, *, budget_tokens: Summary(bullets=()))
    with pytest.raises(InputError, match="run with one worker"):
        list(run(DRAWS, unpicklable, workers=2))
    assert Setup(summarizer=local).describe()["summarizer"] == "local"
