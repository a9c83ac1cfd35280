"""Tables of cues: every row is a pattern, compiled once."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from ctxsteward.steward.harvest.people.utterances import CueTable

TABLES = {
    f"{module}.{name}": table
    for module in ("preferences", "corrections")
    for name, table in vars(import_module(f"ctxsteward.steward.harvest.people.{module}")).items()
    if isinstance(table, CueTable)
}


def test_the_tables_are_found() -> None:
    assert len(TABLES) == 4


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_row_is_a_pattern(table: CueTable) -> None:
    """Rows are compiled when they are tried: one that is none would be noticed in somebody's night."""
    assert [pattern for *_, pattern in table.rows if not re.compile(pattern).pattern] == []
    assert len(table.rows) > 3


def test_a_row_says_what_it_is_about() -> None:
    assert CueTable(["strict:tone | always | we always"]).rows == [("strict", "tone", "we always")]
