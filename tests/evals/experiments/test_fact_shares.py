"""Which share of recall's room facts may take: evidence known from earlier talks against messages of this one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ctxsteward.envelope import Budgets
from ctxsteward.evals.experiments.fact_shares import lines, main, measure

from .test_fact_recall import LOCOMO, sample, written

SOAK = os.environ.get("CTXSTEWARD_SOAK") == "1"


def test_without_room_for_facts_only_this_session_s_evidence_is_there(tmp_path: Path) -> None:
    none, some = measure(written(tmp_path, [sample()]), cases=("halves",), fractions=(0.0, 1.0), budgets_tokens=(500,))
    assert (none.questions, none.past, none.facts_mean) == (2, 0.0, 0.0)
    assert (some.past, some.now) == (0.5, none.now), "of one question's past evidence; D1:2 is small talk, no fact"
    assert some.shown > none.shown


def test_a_session_that_says_it_all_is_told_no_fact_twice(tmp_path: Path) -> None:
    rows = measure(written(tmp_path, [sample()]), cases=("whole",), fractions=(0.0, 1.0), budgets_tokens=(500,))
    assert [(row.shown, row.facts_mean) for row in rows] == [(1.0, 0.0)] * 2


def test_the_table_has_a_line_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, [sample()])
    assert len({line.count("|") for line in lines(measure(path, budgets_tokens=(500,)))}) == 1
    assert main([str(path)]) == 0
    assert capsys.readouterr().out.startswith("| case | tokens | share |")
    assert main([]) == 2
    assert main([str(written(tmp_path, json.dumps({})))]) == 2


@pytest.mark.skipif(not LOCOMO.exists(), reason="needs ../shared/data/locomo")
def test_the_default_share_is_no_worse_than_its_neighbours(tmp_path: Path) -> None:
    """By the evidence shown of halved conversations, at the default room; one of them unless tests run long."""
    path = LOCOMO if SOAK else written(tmp_path, json.loads(LOCOMO.read_text(encoding="utf-8"))[:1])
    fractions = (0.25, Budgets().facts_fraction, 0.75)
    rows = measure(path, cases=("halves",), fractions=fractions, budgets_tokens=(500,))
    least = {row.facts_fraction: min(row.shown, row.words) for row in rows}
    assert least[Budgets().facts_fraction] >= max(least.values()) - 0.01
