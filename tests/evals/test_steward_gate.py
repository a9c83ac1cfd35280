"""Suites as the steward's eval gate: an equal challenger passes, one that breaks off does not."""

from __future__ import annotations

import pytest

from ctxsteward.envelope import Budgets
from ctxsteward.evals.steward_gate import SuiteGate
from ctxsteward.evals.suites.kit.suite import Setup
from ctxsteward.schemas.profile import ProfileDocument, ProfileEntry
from ctxsteward.steward.gate.port import EvalGate

from .suites.doubles import Short

CHAMPION = ProfileDocument(persona=(ProfileEntry(id="who", text="You help the people of a library."),))
LONGER = ProfileDocument(persona=(ProfileEntry(id="who", text="You help the people of a library, whoever they are."),))
TOO_LONG = ProfileDocument(persona=(ProfileEntry(id="who", text="You help. " * 400),))
GATE: EvalGate = SuiteGate(suites=("verbatim",), scenarios=1, setup=Setup(budgets=Budgets(system_tokens=240)))


FIGURES = (
    "finished",
    "last_assistant",
    "last_user",
    "earlier_shown",
    "earlier_reachable",
    "last_place",
    "within_budget",
)


@pytest.fixture(autouse=True)
def _short_scenarios(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxsteward.evals.steward_gate.drawn", lambda suite, split, most: [Short(suite, split, 1)])


def test_a_challenger_that_shows_as_much_passes_every_guard() -> None:
    report = GATE(CHAMPION, LONGER)
    assert report.passed
    assert {result.guard: (result.champion, result.challenger) for result in report.results} == {
        f"verbatim.{name}": (1.0, 1.0) for name in FIGURES
    }
    assert report.is_of(CHAMPION, LONGER)


def test_a_challenger_that_does_not_fit_falls() -> None:
    report = GATE(CHAMPION, TOO_LONG)
    assert report.failed == ("verbatim.finished",)
    assert GATE(None, CHAMPION).passed
