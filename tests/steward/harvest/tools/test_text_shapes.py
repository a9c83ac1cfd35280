"""What a change did to the shape of a text, and that nothing else passes for a change of shape."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ctxsteward.steward.harvest.tools.error_codes import ERROR_CODES
from ctxsteward.steward.harvest.tools.errors import tool_errors
from ctxsteward.steward.harvest.tools.patterns import SHAPES, TextShape, reshaped
from ctxsteward.steward.harvest.tools.templates import ArgumentFix, FixTrigger, is_repair, parse_action, sentence

from .scenes import call, scene

LINE = st.text(st.sampled_from("abc d(:=#1"), min_size=1, max_size=12).filter(str.strip)
LINES = st.lists(LINE, min_size=2, max_size=6)


@pytest.mark.parametrize(
    ("before", "after", "shape"),
    [
        ("   12\tdef f():\n   13\t    return 1", "def f():\n    return 1", ("drop", "line numbers")),
        ("12: x = 1\n13: y = 2", "x = 1\ny = 2", ("drop", "line numbers")),
        ("1475:    return int(x)", "   return int(x)", ("drop", "line numbers")),
        ("return x", "    return x", ("keep", "indentation")),
        ("edit 3:3\nreturn x\nend", "edit 3:3\n\treturn x\nend", ("keep", "indentation")),
        ("    a = 1\n    b = 2", "a = 1\nb = 2", ("drop", "indentation")),
        ("'ann lee'", "ann lee", ("drop", "quotes")),
        ("W17", "#W17", ("begin", "#")),
        ("12 apples", "apples", None),  # the number may be a part of the value
        ("10:30", "30", None),
        ("2024-05", "05", None),
        ("3\tx", "x", None),
        ("7\tx = 1\n5\ty = 2", "x = 1\ny = 2", None),  # numbers that do not count on
        ("1\tx = 1\ny = 2", "x = 1\ny = 2", None),  # one line of two
        ("W17", "W18", None),
        ("W17", "orders/W17", None),
        ("a\nb", "a", None),
        ("", "x", None),
        ("x", "x", None),
    ],
)
def test_the_shape_of_a_change(before: str, after: str, shape: tuple[str, str] | None) -> None:
    assert reshaped(before, after) == (None if shape is None else TextShape(*shape))  # type: ignore[arg-type]


@given(LINES, st.integers(1, 900), st.sampled_from(("\t", ": ", " | ")))
def test_numbered_lines_are_told_from_the_lines(lines: list[str], first: int, sign: str) -> None:
    numbered = "\n".join(f"{first + at}{sign}{line}" for at, line in enumerate(lines))
    found = reshaped(numbered, "\n".join(lines))
    assert found == TextShape("drop", "line numbers")


@given(st.text(max_size=40), st.text(max_size=40))
def test_nothing_but_a_shape_is_told(before: str, after: str) -> None:
    found = reshaped(before, after)
    assert found is None or found.what in SHAPES or (found.do == "begin" and after == found.what + before)


def test_who_had_added_line_numbers_is_told_and_the_fix_is_a_repair() -> None:
    lines = (
        call("view", "   41\ttotal = price * count\n   42\treturn total", path="m.py"),
        call("replace", "Error: old_str not found in m.py", path="m.py", old_str="   41\ttotal = price * count"),
        call("replace", "done", path="m.py", old_str="total = price * count"),
    )
    (one,) = tool_errors(scene(*lines))
    assert one.action == "drop the line numbers that view adds from old_str"
    assert parse_action(one.action)[0].plain.source == "line numbers"
    assert is_repair(one.trigger, one.action)


FIXES: dict[Any, Any] = {
    "take": {"what": "day", "source": "get_order"},
    "write": {"what": "day", "source": "YYYY-MM-DD"},
    "first": {"source": "open"},
    "drop": {"what": "day", "source": "line numbers that view adds"},
    "repeat": {},
    "begin": {"what": "day", "source": "#"},
}


def test_every_error_and_every_fix_is_a_sentence_that_fits_a_record() -> None:
    sentences = [
        sentence(FixTrigger("book", code, parameter), [ArgumentFix(verb=verb, **fix)])
        for code, (verb, fix), parameter in product(ERROR_CODES, FIXES.items(), ("day", None))
    ]
    assert len(sentences) == 2 * len(ERROR_CODES) * len(FIXES) > 0
    assert [told for told in sentences if not re.fullmatch(r"`book` (?!.*None)[^{]{0,272}\.", told, re.DOTALL)] == []
