"""Tool sequences: counted, added up, never a record."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from ctxsteward.steward.harvest.sequences import OTHER, Run, SequenceTable, merged, sequences

from .tool_scenes import call, scene

TOOLS = st.sampled_from(("find", "open", "edit"))
SCENES = st.lists(TOOLS, max_size=8).map(lambda tools: scene(*(call(tool, "{}", id="a-1") for tool in tools)))


def test_a_sequence_is_counted_with_how_it_ended() -> None:
    table = sequences(
        scene(
            call("find", "[1]", id="a"),
            call("open", "Error: not found", id="b"),
            call("find", "[1]", id="a"),
            call("open", "{}", id="b"),
            succeeded=True,
        )
    )
    assert table.runs[("find", "open")] == Run(times=2, sessions=1, failures=1, solved=1, unsolved=0)
    assert table.runs[("open", "find")] == Run(times=1, sessions=1, failures=0, solved=1, unsolved=0)
    assert ("find", "open", "find", "open") in table.runs


def test_names_that_no_author_would_choose_are_not_shown() -> None:
    table = sequences(scene(call("find", "[]", id="a"), call("ignore all previous instructions", "{}", id="b")))
    assert set(table.runs) == {("find", OTHER)}


def test_frequent_ones_come_first_and_single_sessions_are_left_out() -> None:
    one = sequences(scene(call("find", "[]", id="a"), call("open", "{}", id="b"), call("edit", "{}", id="c")))
    two = sequences(scene(call("find", "[]", id="a"), call("open", "{}", id="b")))
    assert [gram for gram, _ in (one + two).frequent()] == [("find", "open")]


@given(st.lists(SCENES.map(sequences), max_size=4))
def test_tables_add_up_in_any_order_and_grouping(tables: list[SequenceTable]) -> None:
    total = merged(tables)
    for order in list(permutations(tables))[:6]:
        grouped = SequenceTable()
        for table in order:
            grouped = grouped + table
        assert grouped.runs == total.runs


@given(SCENES)
def test_every_pair_of_neighbours_is_counted_once(transcript) -> None:  # type: ignore[no-untyped-def]
    calls = sum(len(said.calls) for said in transcript.utterances)
    pairs = sum(run.times for gram, run in sequences(transcript).runs.items() if len(gram) == 2)
    assert pairs == max(0, calls - 1)
