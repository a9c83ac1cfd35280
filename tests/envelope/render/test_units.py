"""A head that arrives as one text: the sections that were expected in it, and what stands between them."""

from __future__ import annotations

import pytest

from ctxsteward.envelope.render.units import head_units

RULES, WORD = "Be kind to everybody.", "kind"


@pytest.mark.parametrize(
    ("value", "heads", "units"),
    [
        pytest.param(RULES, (RULES,), [RULES], id="one"),
        pytest.param(RULES, (WORD, RULES), [RULES], id="a section within another one is that one"),
        pytest.param(f"{WORD}\n\n{RULES}", (WORD, RULES), [WORD, RULES], id="and before it itself"),
        pytest.param(f"{RULES}\n\n{WORD}", (WORD, RULES), [RULES, WORD], id="and behind it"),
        pytest.param("abcdef", ("abcd", "cdef"), ["abcd", "ef"], id="two that overlap: the first one"),
        pytest.param("a\n\nx\n\na", ("a",), ["a", "x", "a"], id="something between"),
        pytest.param("aa", ("a",), ["a", "", "a"], id="the joint is missing"),
        pytest.param("x", ("a",), ["x"], id="none of them"),
        pytest.param("", ("a",), [], id="nothing"),
        pytest.param(None, ("a",), [], id="no head"),
        pytest.param(["x"], ("a",), ['["x"]'], id="no text"),
    ],
)
def test_a_head_is_cut_into_the_sections_that_stand_in_it(
    value: object, heads: tuple[str, ...], units: list[str]
) -> None:
    found = list(head_units(value, "system", heads))
    assert [unit.text for unit in found] == units
    assert {(unit.channel, unit.path) for unit in found} <= {("head", "system")}
