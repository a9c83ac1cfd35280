"""The mutation run: which mistakes are made of a piece of source, in which place, and what a run is drawn from."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from .house import ROOT
from .mutants import AREAS, EQUIVALENT, drawn
from .mutations import is_other_code, mutants_of

SOURCES = {
    "return n < 3": {"n <= 3", "n >= 3", "n < 4", "n < 2", "None"},
    "return a and (not b)": {"a or not b", "a", "not b", "a and b", "None"},
    "return n[1:-1]": {"n[1 + 1:-1]", "n[1:-1 - 1]", "n[2:-1]", "n[0:-1]", "n[1:-2]", "n[1:-0]", "None"},
    "return min((x for x in n if x))": {"max((x for x in n if x))", "min((x for x in n if True))", "None"},
    "return f'{n + 1}' if a else b": {"f'{n + 1}'", "b", "None"},
    "return x.a + x.b": {"x.b + x.b", "x.a + x.a", "x.a - x.b", "None"},
    "return f(a, b, key=n)": {"f(b, a, key=n)", "f(a, b, key=None)", "None"},
    "return [x for x in ('§grüße', n)]": {"None"},
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_piece_of_source_has_these_mistakes_each_in_its_place(source: str, tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text(f"def f(a, b, n, x):\n    '§'; {source}\n\nLIMIT = 3 + 4\n", encoding="utf-8")
    text = path.read_bytes()
    mutants = [mutant for mutant in mutants_of(path, "m.py") if is_other_code(mutant, text)]
    made = [ast.parse(text[: one.start] + one.now.encode() + text[one.stop :]).body for one in mutants]
    returned = {ast.unparse(body[0].body[-1]).removeprefix("return ") for body in made}  # type: ignore[attr-defined]
    assert returned == SOURCES[source]


def test_statements_and_guards_are_dropped_and_messages_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text(
        "def f(a: int) -> None:\n    if a:\n        raise ValueError(1 + 2)\n    log(a)\n    assert a > 3\n"
    )
    made = [(mutant.what, mutant.was, mutant.now) for mutant in mutants_of(path, "m.py")]
    assert ("guard dropped", "a", "False") in made
    assert ("statement dropped", "log(a)", "pass") in made
    assert {was for _, was, _ in made} == {"a", "log(a)"}


def test_a_seed_draws_the_same_mutants_of_every_area_in_turn() -> None:
    first = drawn(7, 2 * len(AREAS), "")
    assert first[:5] == drawn(7, 5, "") != drawn(8, 5, "")
    assert [area for area, _ in first] == [*AREAS, *AREAS]
    assert {area for area, _ in drawn(7, 5, "drift/rules")} == {"drift"}


def test_the_tests_of_every_area_are_there() -> None:
    assert [name for area in AREAS.values() for name in (*area.near, *area.far) if not (ROOT / name).exists()] == []


def test_what_is_said_of_an_equivalent_mutant_is_of_source_that_is_there() -> None:
    known = {
        mutant.key
        for module in {key.partition(" ")[0] for key in EQUIVALENT}
        for mutant in mutants_of(ROOT / module, module)
    }
    assert sorted(set(EQUIVALENT) - known) == []
    assert all(EQUIVALENT.values())
