"""Which task a run was a try at."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ctxsteward.steward.harvest.tools.tasks import RunTask, parse_run_key, run_key, same_tasks


@given(st.text(max_size=20), st.lists(st.from_regex(r"[0-9a-f]{6}", fullmatch=True), max_size=4))
def test_a_run_s_key_can_be_read_back(name: str, opening: list[str]) -> None:
    task = RunTask(name, tuple(opening), bool(opening))
    assert parse_run_key(run_key(task)) == task


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "3", '["a"]', '["a", 3, 0, []]', "[1, 2, 3, 4]", "[" * 9_999])
def test_a_key_that_is_none_tells_nothing_and_stops_nobody(text: str) -> None:
    assert parse_run_key(text) == RunTask("")


def test_the_key_of_an_earlier_version_is_read() -> None:
    assert parse_run_key('["t", "", 0, ["confirm", "first look"]]') == RunTask("t")


def test_tasks_that_nobody_names_are_told_by_their_openings() -> None:
    words = [tuple(f"{task}{n:05x}" for n in range(12)) for task in "abc"]
    near = (*words[0][:10], "fffff1", "fffff2")
    openings = {"1": words[0], "2": near, "3": words[1], "4": words[2], "6": ()}
    rows = [*((id_, RunTask("", opening)) for id_, opening in openings.items()), ("5", RunTask("told"))]
    found = same_tasks(rows)
    assert found == same_tasks(rows[::-1])
    assert found["1"] == found["2"]
    assert len({found[id_] for id_ in "1345"}) == 4
    assert found["6"] == "", "of whom nothing is known there is no task"
