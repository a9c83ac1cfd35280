"""Tool errors foreseen in unseen tasks: the measure on runs by hand, and the bars on real ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.evals.experiments.tool_error_foresight import FIRE_BAR, FORESEEN_BAR, ForesightRow, main, measure
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


def halves(path: Path) -> ForesightRow:
    (row,) = measure(path, seeds=0)
    return row


TAUGHT = (run(0, 0, FAILS, LOOKS, WORKS), run(0, 1, FAILS, LOOKS, WORKS))
CHANGE = ("change", {"order": "A-17", "payment_id": "card_2"}, "Error: payment method not found")
CHANGED = ("change", {"order": "A-17", "payment_id": "card_77412"}, "{}")


def test_a_fix_that_recovered_twice_foresees_the_error_in_other_tasks(write: Any) -> None:
    row = halves(write(*TAUGHT, run(1, 0, FAILS)))
    assert (row.splits, row.directions, row.errors) == ("halves", 2, 3)
    assert row.pooled == pytest.approx(1 / 3, abs=0.001)  # the one error of task 1; task 1 taught nothing
    assert (row.fire, row.confirmed, row.precision) == (1.0, 1.0, 1.0)


def test_a_tool_that_takes_the_same_identifier_is_foreseen_too(write: Any) -> None:
    path = write(run(0, 0, FAILS, LOOKS, WORKS, CHANGED), TAUGHT[1], run(1, 0, CHANGE))
    assert halves(path).pooled == pytest.approx(1 / 3, abs=0.001)


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param((run(0, 0, FAILS, LOOKS, WORKS), run(1, 0, FAILS)), id="a fix that recovered once"),
        pytest.param((*(run(0, trial, FAILS, LOOKS, WORKS) for trial in range(4)), run(1, 0, WORKS)),
                     id="other trials of the same task"),
        pytest.param((*TAUGHT, run(1, 0, ("book", {"user": "ann", "payment_id": "card_2"},
                                          "Error: payment_id is required"))), id="another code"),
        pytest.param((*TAUGHT, run(1, 0, ("book", {"user": "ann", "amount": 3},
                                          "Error: payment of this amount is refused"))), id="another argument"),
    ],
)  # fmt: skip
def test_nothing_else_is_foreseen(runs: Any, write: Any) -> None:
    assert halves(write(*runs)).pooled == 0.0


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
    assert main([str(good), "--seeds", "2"]) == 0
    assert [line[:11] for line in capsys.readouterr().out.splitlines()] == [
        "| splits | ", "|---|---|--", "| halves | ", "| shuffled ",
    ]  # fmt: skip
    bad = write(run(0, 0, FAILS), run(1, 0, FAILS))
    assert main([str(bad), "--seeds", "2"]) == 1


@pytest.mark.skipif(not AIRLINE.is_file(), reason="no ../shared/data/tau_bench_airline")
def test_the_bars_hold_on_airline_runs() -> None:
    for row in measure(AIRLINE, seeds=20 if SOAK else 2):
        assert row.fire >= FIRE_BAR
        assert row.pooled >= FORESEEN_BAR
        assert row.mean >= FORESEEN_BAR
