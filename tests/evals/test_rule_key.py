"""A night examined against a key of rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.evals.rule_key import KeyRule, examine, read_key
from ctxsteward.schemas import InputError

NIGHT = KeyRule(id="night", statement="Tents are not moved at night.", tools=("move",), shown_by="moved at night")
LIMIT = KeyRule(id="limit", statement="A site takes 3 tents.", tools=("pitch",), shown_by="tents a site", values=(3,))


def runs(folder: Path, count: int) -> Path:
    """So many runs in which a tool refuses in its own words, and another tells a rule besides its work."""
    lines = []
    for number in range(count):
        calls: list[dict[str, Any]] = [
            {
                "name": "move",
                "arguments": {"tent": f"T-{number}"},
                "result": {"status": "declined", "why": "Tents cannot be moved at night"},
            },
            {
                "name": "pitch",
                "arguments": {"site": f"S-{number}"},
                "result": {"site_id": f"S-{number}", "note": f"At most 3 tents a site, you have {number}."},
            },
        ]
        said = [
            {"role": "user", "content": "Please move my tent."},
            {"role": "assistant", "content": "Not now.", "tool_calls": calls},
        ]
        lines.append(json.dumps({"conversation": said, "task": f"task-{number}"}))
    path = folder / "runs.jsonl"
    path.write_text("\n".join(lines))
    return path


def test_a_night_learns_what_three_runs_show_and_says_it_of_the_right_tool(tmp_path: Path) -> None:
    report = examine([runs(tmp_path, 4)], [NIGHT, LIMIT])
    assert (report.runs, report.shown, report.shown_often, report.missed) == (4, 2, 2, ())
    night, repeats, usual = report.scores
    assert (night.learnt, night.in_force, night.false, night.named, night.examined, night.blamed) == (2, 0, 0, 2, 2, 0)
    assert (repeats.learnt, repeats.named) == (1, 1)  # nothing refuses for the other rule
    assert (usual.learnt, usual.blamed) == (0, 1)


def test_two_runs_are_not_enough(tmp_path: Path) -> None:
    report = examine([runs(tmp_path, 2)], [NIGHT, LIMIT])
    assert (report.shown, report.shown_often, report.scores[0].lines) == (2, 0, 0)


def test_a_key_that_no_run_shows_is_refused(tmp_path: Path) -> None:
    other = NIGHT.model_copy(update={"tools": ("pitch",)})
    with pytest.raises(InputError, match="show none of the 1 rules"):
        examine([runs(tmp_path, 4)], [other])


def test_an_empty_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key.yaml"
    path.write_text("# nothing\n")
    with pytest.raises(InputError, match="no rule"):
        read_key(path)


def test_a_key_may_repeat_its_tools_by_alias(tmp_path: Path) -> None:
    path = tmp_path / "key.yaml"
    path.write_text(
        "- {id: a, statement: A rule., tools: &t [move], shown_by: x, values: [3]}\n"
        "- {id: b, statement: A rule., tools: *t, shown_by: y}\n"
    )
    assert [rule.tools for rule in read_key(path)] == [("move",), ("move",)]
