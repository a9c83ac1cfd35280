"""Advice is judged by what runs that succeeded did: constants and "failed like this before" do not pass for advice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.advice import (
    ADVICE_HEAD,
    OURS,
    OURS_HELD,
    AdviceRow,
    advice_cells,
    constants,
    done_instead,
    is_correct,
    measure_advice,
    own_runs,
    own_worded_runs,
    read_runs,
)
from benchmarks.written_runs import worded_runs, written_runs
from ctxsteward.schemas.errors import InvalidTranscript
from ctxsteward.steward.harvest.tools.calls import steps
from ctxsteward.steward.harvest.tools.templates import ArgumentFix

from ..steward.harvest.tools.scenes import call, scene

FAILED = call("pay", "Error: invalid day", order="A17", day="1/2/2026")
WORKED = call("pay", "{}", order="A17", day="2026-02-01")
LOOKS = call("get_order", '{"card": "c_88121"}', order="A17")


def fix(verb: str, what: str | None = None, source: str | None = None) -> ArgumentFix:
    return ArgumentFix(verb=verb, what=what, source=source)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("failed", "passing", "truth"),
    [
        (FAILED, [WORKED], {fix("write", "day", "YYYY-MM-DD")}),
        (FAILED, [FAILED, WORKED], {fix("write", "day", "YYYY-MM-DD")}),
        (FAILED, [LOOKS], {fix("stop")}),  # it did without the call
        (FAILED, [FAILED], {fix("stop")}),  # it tried once, and let it be
        (FAILED, [call("pay", "{}", order="A17")], {fix("omit", "day")}),
        (
            call("pay", "Error: card not found", order="A17", card_id="x_1"),
            [LOOKS, call("pay", "{}", order="A17", card_id="c_88121")],
            {fix("take", "card_id", "get_order")},
        ),
        (
            call("pay", "Error: locked", order="A17"),
            [LOOKS, call("pay", "{}", order="A17")],
            {fix("first", None, "get_order"), fix("repeat")},
        ),
        (call("pay", "Error: timeout", order="A17"), [call("pay", "{}", order="A17")], {fix("repeat")}),
        (FAILED, [call("pay", "{}", order="B9", day="2026-03-03"), WORKED], {fix("write", "day", "YYYY-MM-DD")}),
    ],
)
def test_the_truth_is_what_a_run_that_succeeded_did(failed: Any, passing: list[Any], truth: set[ArgumentFix]) -> None:
    (step,) = steps(scene(failed))
    assert done_instead(step, scene("Please pay.", *passing)) == truth


@pytest.mark.parametrize(
    ("advice", "correct"),
    [
        (set(), False),
        ({fix("check", "day")}, False),
        ({fix("write", "day", "YYYY-MM-DD")}, True),
        ({fix("write", "day", "integer")}, False),
        ({fix("write", "day", "YYYY-MM-DD"), fix("omit", "order")}, False),  # right and wrong together
    ],
)
def test_advice_is_correct_where_it_says_nothing_else(advice: set[ArgumentFix], correct: bool) -> None:
    assert is_correct(frozenset(advice), frozenset((fix("write", "day", "YYYY-MM-DD"),))) is correct


@pytest.fixture(scope="module")
def rows() -> dict[str, AdviceRow]:
    return {row.advice: row for row in measure_advice("world", own_runs(seed=3))}


def test_no_constant_passes_for_advice(rows: dict[str, AdviceRow]) -> None:
    assert list(rows) == ["random", "constant", "as before", OURS, OURS_HELD]
    assert len(constants()) == 14
    assert rows["constant"].told == 1.0
    assert rows["constant"].correct < 0.5, "it foresees every error, and is seldom right"
    assert rows["random"].correct < rows["constant"].correct < rows["as before"].correct


def test_what_is_in_force_is_obeyed_no_more_where_runs_fail(rows: dict[str, AdviceRow]) -> None:
    failed, succeeded = rows[OURS].obeyed_failed, rows[OURS].obeyed_succeeded
    assert failed[1] > 10
    assert succeeded[1] > 10
    assert failed[0] / failed[1] < succeeded[0] / succeeded[1]


def test_what_was_accepted_in_whatever_run_does_more_harm_than_what_counts_only_in_runs_that_succeeded(
    rows: dict[str, AdviceRow],
) -> None:
    shares = {name: rows[name].obeyed_failed for name in ("as before", OURS)}
    assert shares["as before"][0] / shares["as before"][1] > shares[OURS][0] / shares[OURS][1]


def test_the_same_seed_gives_the_same_runs_and_figures(rows: dict[str, AdviceRow]) -> None:
    assert written_runs(seed=3) == written_runs(seed=3) != written_runs(seed=4)
    assert {row.advice: row for row in measure_advice("world", own_runs(seed=3))} == rows


def test_the_table_has_a_row_of_each(rows: dict[str, AdviceRow]) -> None:
    lines = list(advice_cells(rows.values()))
    assert [line[:2] for line in lines] == [("world", name) for name in rows]
    assert {len(line) for line in lines} == {len(ADVICE_HEAD)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "0 tasks"),
        (
            json.dumps(
                {"task_id": 1, "trial": 0, "reward": 1.0, "info": {}, "traj": [{"role": "user", "content": "Hi"}]}
            ),
            "1 tasks",
        ),
        (json.dumps({"messages": [{"role": "user", "content": "Hi"}]}), "0 tasks"),
    ],
)
def test_a_file_without_runs_of_known_outcome_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(text)
    with pytest.raises(InvalidTranscript, match=says):
        read_runs(path)


# -- several causes -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def worded() -> dict[str, AdviceRow]:
    return {row.advice: row for row in measure_advice("worded", own_worded_runs(seed=3))}


def test_causes_under_one_code_are_told_apart(worded: dict[str, AdviceRow]) -> None:
    best = max(worded[name].correct for name in ("random", "constant", "as before"))
    assert worded[OURS].correct >= max(0.5, 1.5 * best)
    assert worded[OURS].obeyed_failed[0] == 0
    assert worded[OURS].correct == worded[OURS].told, "what is told is right"


@pytest.mark.parametrize("written", [written_runs, worded_runs])
def test_the_same_seed_gives_the_same_runs_of_every_world(written: Any) -> None:
    assert written(seed=3) == written(seed=3) != written(seed=4)
