"""Tool errors foreseen in unseen tasks: the measure on runs by hand, and the bars on real ones."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.evals.experiments.tool_error_foresight import (
    ANTICIPATED_BAR,
    FIRE_BAR,
    JUDGED,
    ForesightRow,
    main,
    measure,
)
from ctxsteward.schemas import InvalidTranscript

AIRLINE = Path(__file__).parents[3] / "../shared/data/tau_bench_airline/runs_even_tasks.jsonl"
SOAK = os.environ.get("CTXSTEWARD_SOAK") == "1"


def run(task: int, trial: int, *steps: tuple[str, dict[str, Any], str]) -> dict[str, Any]:
    """A run: calls of tools with their answers."""
    traj: list[dict[str, Any]] = [{"role": "user", "content": f"please help with order {task}"}]
    for number, (tool, arguments, answer) in enumerate(steps):
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"id": f"c{number}", "type": "function", "function": function}
        traj.append({"role": "assistant", "content": None, "tool_calls": [call]})
        traj.append({"role": "tool", "tool_call_id": f"c{number}", "name": tool, "content": answer})
    return {"task_id": task, "trial": trial, "reward": 1.0, "info": {}, "traj": traj}


def book(payment_id: str, answer: str) -> tuple[str, dict[str, Any], str]:
    return "book", {"user": "ann", "payment_id": payment_id}, answer


FAILS = book("card_1", "Error: payment method not found")
LOOKS = ("get_user", {"user": "ann"}, '["card_77412"]')
WORKS = book("card_77412", "{}")


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(*runs: dict[str, Any]) -> Path:
        path = tmp_path / "runs.jsonl"
        path.write_text("\n".join(json.dumps(one) for one in runs), encoding="utf-8")
        return path

    return write


def rows(path: Path, seeds: int = 0) -> dict[tuple[str, str], ForesightRow]:
    return {(row.way, row.splits): row for row in measure(path, seeds=seeds)}


def test_a_fix_that_recovered_twice_foresees_the_error_in_other_tasks(write: Any) -> None:
    path = write(run(0, 0, FAILS, LOOKS, WORKS), run(0, 1, FAILS, LOOKS, WORKS), run(1, 0, FAILS))
    row = rows(path)["own", "halves"]
    assert (row.directions, row.errors) == (2, 3)
    assert row.pooled == pytest.approx(1 / 3, abs=0.001)  # the one error of task 1; task 1 taught nothing
    assert (row.fire, row.confirmed, row.precision) == (1.0, 1.0, 1.0)


def test_a_fix_that_recovered_once_is_no_record(write: Any) -> None:
    path = write(run(0, 0, FAILS, LOOKS, WORKS), run(1, 0, FAILS))
    assert (rows(path)["own", "halves"].pooled, rows(path)["own", "halves"].records) == (0.0, 0.0)


def test_trials_of_one_task_never_teach_each_other(write: Any) -> None:
    path = write(*(run(0, trial, FAILS, LOOKS, WORKS) for trial in range(4)), run(1, 0, WORKS))
    assert rows(path)["known", "halves"].pooled == 0.0


def test_another_code_or_argument_is_not_foreseen(write: Any) -> None:
    taught = (run(0, 0, FAILS, LOOKS, WORKS), run(0, 1, FAILS, LOOKS, WORKS))
    other_code = ("book", {"user": "ann", "payment_id": "card_2"}, "Error: payment_id is required")
    other_argument = ("book", {"user": "ann", "amount": 3}, "Error: payment of this amount is refused")
    for other in (other_code, other_argument):
        assert rows(write(*taught, run(1, 0, other)))["known", "halves"].pooled == 0.0


def test_a_tool_that_takes_the_same_identifier_is_foreseen_only_with_siblings(write: Any) -> None:
    change = ("change", {"order": "A-17", "payment_id": "card_2"}, "Error: payment method not found")
    fine = ("change", {"order": "A-17", "payment_id": "card_77412"}, "{}")
    path = write(run(0, 0, FAILS, LOOKS, WORKS, fine), run(0, 1, FAILS, LOOKS, WORKS), run(1, 0, change))
    figures = rows(path)
    assert figures["own", "halves"].pooled == figures["seen", "halves"].pooled == 0.0
    assert figures["known", "halves"].pooled == pytest.approx(1 / 3, abs=0.001)


def test_a_night_foresees_what_the_records_it_would_admit_foresee(write: Any) -> None:
    change = ("change", {"order": "A-17", "payment_id": "card_2"}, "Error: payment method not found")
    fine = ("change", {"order": "A-17", "payment_id": "card_77412"}, "{}")
    path = write(run(0, 0, FAILS, LOOKS, WORKS, fine), run(0, 1, FAILS, LOOKS, WORKS), run(1, 0, change))
    figures = rows(path)
    assert figures["night", "halves"] == replace(figures["known", "halves"], way="night")


def test_the_same_seeds_give_the_same_figures(write: Any) -> None:
    runs = [run(task, 0, FAILS, LOOKS, WORKS) for task in range(6)]
    assert measure(write(*runs), seeds=5) == measure(write(*runs[::-1]), seeds=5)


def test_runs_without_errors_or_of_one_task_are_refused(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (write(run(0, 0, WORKS), run(1, 0, WORKS)), write(run(0, 0, FAILS))):
        with pytest.raises(InvalidTranscript):
            measure(path)
        assert main([str(path)]) == 2
    assert "pass runs of two tasks" in capsys.readouterr().err


def test_the_command_prints_a_line_a_row_and_says_whether_the_bars_hold(
    write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    good = write(*(run(task, trial, FAILS, LOOKS, WORKS) for task in range(4) for trial in range(2)))
    assert main([str(good), "--seeds", "2", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 8
    bad = write(run(0, 0, FAILS), run(1, 0, FAILS))
    assert main([str(bad), "--seeds", "2"]) == 1
    assert capsys.readouterr().out.startswith("| way |")


@pytest.mark.skipif(not AIRLINE.is_file(), reason="no ../shared/data/tau_bench_airline")
def test_the_bars_hold_on_airline_runs() -> None:
    for row in measure(AIRLINE, seeds=20 if SOAK else 4):
        assert row.fire >= FIRE_BAR
        if row.way in JUDGED:
            assert row.pooled >= ANTICIPATED_BAR
            assert row.mean >= ANTICIPATED_BAR
