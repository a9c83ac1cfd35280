"""Suites beside the frozen cases: all guards in one report, one that falls is enough, and bad names are refused."""

from __future__ import annotations

import pytest

from ctxsteward.schemas import InputError
from ctxsteward.schemas.profile import ProfileDocument, ProfileEntry
from ctxsteward.steward.gate import CombinedGate, GateSettings, configured, with_suites

CHAMPION = ProfileDocument(persona=(ProfileEntry(id="who", text="You help the people of a library."),))
TOO_LONG = ProfileDocument(persona=(ProfileEntry(id="who", text="You help. " * 400),))


def test_without_suites_the_frozen_gate_stands_alone() -> None:
    frozen = configured(GateSettings())
    assert with_suites(GateSettings(), frozen) is frozen


def test_a_report_has_the_guards_of_both() -> None:
    settings = GateSettings(suites=("verbatim",))
    gate = with_suites(settings, configured(settings))
    assert isinstance(gate, CombinedGate)
    report = gate(CHAMPION, CHAMPION)
    names = [result.guard for result in report.results]
    assert report.passed
    assert {"policies_verbatim", "verbatim.last_assistant", "verbatim.finished"} <= set(names)
    assert report.suite.endswith(" and verbatim, 2 scenarios of docs")
    assert "verbatim.finished" in gate(CHAMPION, TOO_LONG).failed


def test_a_suite_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="eval suite 'verbatm' is none"):
        with_suites(GateSettings(suites=("verbatm",)), configured(GateSettings()))
