"""Which task a run was a try at."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ctxsteward.steward.harvest.tools.statements import run_key, task_in

from .scenes import scene


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_runs_are_of_one_task_where_their_task_is(one: str, other: str) -> None:
    keys = [run_key(scene("Hello", task=task, principal=who), ()) for task, who in ((one, "ann"), (other, "ben"))]
    assert (task_in(keys[0]) == task_in(keys[1])) == (one == other)


@pytest.mark.parametrize(
    ("opening", "same"), [("Fix  the bug!", True), ("fix the bug", True), ("Fix the other bug.", False)]
)
def test_own_runs_that_nobody_names_are_told_by_their_openings(opening: str, same: bool) -> None:
    one, other = (run_key(scene(text, is_task_run=True, principal=None), ()) for text in ("Fix the bug.", opening))
    assert (task_in(one) == task_in(other)) == same


def test_of_what_the_public_says_nothing_tells_the_task() -> None:
    assert task_in(run_key(scene("Fix the bug.", principal=None), ())) == ""


def test_what_an_answer_is_about_comes_first() -> None:
    keys = [run_key(scene("Hello", task="t"), things) for things in (("b=1", "a=2"), ("a=2", "b=1"), ())]
    assert task_in(keys[0]) == task_in(keys[1]) != task_in(keys[2])


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "3", '["a"]', "[" * 9_999])
def test_a_key_that_is_none_tells_nothing_and_stops_nobody(text: str) -> None:
    assert task_in(text) == ""


def test_the_keys_of_earlier_versions_are_read() -> None:
    assert task_in('["t", "", 0, ["confirm", "first look"]]') == "=t"
    assert task_in('["", "0a1b2c0d0e0f", 1, []]') == "0a1b2c0d0e0f"
