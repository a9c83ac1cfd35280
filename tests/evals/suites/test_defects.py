"""Seeded defects turn their suites red (`tests/defects.py`): an everyday run tries one, `CTXSTEWARD_SOAK=1` all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ctxsteward.evals.documents import block_of
from ctxsteward.evals.subjects.registry import subject_named
from ctxsteward.evals.suites import catalogue
from ctxsteward.evals.suites.gates import shipped_gates
from ctxsteward.evals.suites.kit.suite import NOT_ASKED, Draw, EvalSuite, PlayCounts, Setup

from ... import defects
from ...defects import BLOCK, ROOT, Row, Verdict, is_sure, played, read_defects, tried

DEFECTS = read_defects()
SOAK = os.environ.get("CTXSTEWARD_SOAK") == "1"
TRIED = [name for name, defect in DEFECTS.items() if SOAK or defect.everyday]


@pytest.mark.parametrize("name", TRIED)
def test_a_seeded_defect_turns_its_gates_red(name: str) -> None:
    defect = DEFECTS[name]
    row = Row(name, defect, tried(defect), played(defect.suite, defect.scenarios))
    assert (row.verdict.errors, row.sound.errors) == ({}, {})
    assert row.missed == [], (row.verdict.red, row.sound.red)


def test_each_stands_at_one_place() -> None:
    assert {name: defect.places() for name, defect in DEFECTS.items()} == dict.fromkeys(DEFECTS, 1)


def test_each_changes_something_and_names_gates_of_its_suite() -> None:
    gates = shipped_gates()
    assert all(defect.was != defect.now for defect in DEFECTS.values())
    assert all(set(defect.gates) <= set(gates[defect.suite]) for defect in DEFECTS.values())


def asked_of_nobody_else(suite: EvalSuite) -> set[str]:
    """Figures that no subject but our own envelope can be asked for."""
    if suite.ours_only is not None:
        return {metric.name for metric in suite.metrics}
    setup = Setup(subject=subject_named("everything"))
    found = list(suite.scores(suite.make(Draw(suite.name, "ci", 1)), setup, PlayCounts()))
    return {one.metric for one in found if one.value is None and one.why == NOT_ASKED}


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_gates_that_no_baseline_can_fail_each_have_a_defect(name: str) -> None:
    covered = {gate for defect in DEFECTS.values() if defect.suite == name for gate in defect.gates}
    gated = asked_of_nobody_else(catalogue.suite_named(name)) & set(shipped_gates()[name])
    assert gated - covered == set()
    assert gated if name in ("citations", "injection", "cache", "governance") else not gated


def test_every_suite_has_two_or_more() -> None:
    suites = [defect.suite for defect in DEFECTS.values()]
    assert {name for name in catalogue.NAMES if suites.count(name) < 2} == set()


def test_a_subset_decides_for_all_where_one_failed_check_is_too_many() -> None:
    assert is_sure("cache", "recovered")
    assert is_sure("governance", "poison_active")
    assert not is_sure("goal-continuity", "goal_drift")
    assert not is_sure("citations", "compactions")


def test_the_table_says_which_gates_fell_and_which_did_not() -> None:
    defect = next(iter(DEFECTS.values()))
    gates = dict.fromkeys(shipped_gates()[defect.suite], True)
    red = gates | dict.fromkeys(defect.gates, False)
    green, fell = Verdict(gates, {}), Verdict(red, {"x": "broke"})
    green_row, red_row = Row("a", defect, green, green), Row("b", defect, fell, green)
    assert (green_row.missed, red_row.missed) == (list(defect.gates), [])
    assert Row("c", defect, fell, fell).missed == list(defect.gates)
    table = "\n".join(defects.lines([green_row, red_row]))
    assert f"| a | {defect.suite} | none |" in table
    assert f"**{defect.gates[0]}**" in table
    assert "(1 scenarios broke off)" in table


def test_the_document_names_every_defect() -> None:
    """Else: python -m tests.defects --write benchmarks/discrimination.md"""
    block = block_of((ROOT / "benchmarks" / "discrimination.md").read_text(encoding="utf-8"), BLOCK)
    assert {name for name in DEFECTS if f"| {name} |" not in block} == set()


def test_unknown_defects_and_places_for_no_table_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        defects.main(["--only", "nothing at all"])
    assert "no such defect: nothing at all" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        defects.main(["--only", next(iter(DEFECTS)), "--write", str(tmp_path / "page.md")])
    assert "leave out --only" in capsys.readouterr().err


def test_a_choice_without_a_defect_tries_nothing_and_does_not_pass(capsys: pytest.CaptureFixture[str]) -> None:
    name, defect = next(iter(DEFECTS.items()))
    other = next(suite for suite in catalogue.NAMES if suite != defect.suite)
    assert defects.main(["--only", name, "--suite", other]) == 2
    assert f"no defect of {other} among those of --only: nothing was tried" in capsys.readouterr().err
