"""Tables of cues: every row is a pattern, compiled once."""

from __future__ import annotations

import pytest

from ctxsteward.steward.harvest.people import corrections, facts, preferences
from ctxsteward.steward.harvest.people.cue_table import CueTable

TABLES = {
    f"{module.__name__.rpartition('.')[2]}.{name}": table
    for module in (facts, corrections, preferences)
    for name, table in vars(module).items()
    if isinstance(table, CueTable)
}


def test_the_tables_are_found() -> None:
    assert len(TABLES) == 8


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_row_is_a_pattern(table: CueTable) -> None:
    """Rows are compiled when they are tried: one that is none would be noticed in somebody's night."""
    assert [cue.pattern.pattern for cue in table.cues if not cue.pattern.pattern] == []
    assert len(table.cues) > 3


def test_a_row_is_compiled_once() -> None:
    (cue,) = CueTable(["strict:tone | always | we always"]).cues
    assert (cue.label, cue.attribute, cue.pattern.pattern) == ("strict", "tone", "we always")
    assert cue.pattern is cue.pattern
