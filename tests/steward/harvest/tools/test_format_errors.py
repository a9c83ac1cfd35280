"""Errors about the form or the value of one argument, as APIs word them: the line, or the hint, names what it takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ruamel.yaml import YAML

from ctxsteward.schemas import MetaRecommendation
from ctxsteward.steward import Ledger
from ctxsteward.steward.admission import is_hint
from ctxsteward.steward.artifacts.artifact import build_artifact
from ctxsteward.steward.harvest.tools.errors import tool_errors

from ...scenes import AGENT, TENANT, memory_store
from .scenes import call, scene

SHARE = 0.8


class FormatError(NamedTuple):
    """A call that is refused, the one that passes, the answer, and texts of which a line must have one."""

    name: str
    argument: str
    before: Any
    after: Any
    answer: str
    says: list[str]


def errors_of(half: str) -> list[FormatError]:
    rows = YAML(typ="safe").load(Path(__file__).with_name(f"format_errors_{half}.yaml"))
    return [FormatError(*row) for row in rows]


def lines(error: FormatError, runs: int, succeeded: bool | None) -> list[MetaRecommendation]:
    """What so many runs of as many tasks bring into force, or into a hint."""
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        key = store.keys.address_key(TENANT)
        for number in range(runs):
            order = f"A-{17 + number}"
            failed = call("save_item", error.answer, order=order, **{error.argument: error.before})
            passed = call("save_item", '{"saved": 3}', order=order, **{error.argument: error.after})
            run = scene(failed, passed, session=f"s{number}", principal=f"t{number}", succeeded=succeeded)
            ledger.absorb(*build_artifact(run, tool_errors(run), extractor="harvest/1", key=key))
        return [one for one in ledger.records() if one.status == "active" or is_hint(one)]


def is_right(error: FormatError, found: list[MetaRecommendation]) -> bool:
    loose = [re.sub(r"\{\d+\}", "+", text) for text in (*error.says, *(one.text for one in found))]
    says, told = loose[: len(error.says)], loose[len(error.says) :]  # how often a sign comes is not known of one value
    return any(f"`{error.argument}`" in line and any(text in line for text in says) for line in told)


@pytest.mark.parametrize("half", ["dev", "held_out"])
@pytest.mark.parametrize(("runs", "succeeded"), [(1, None), (3, True)])
def test_four_of_five_are_told_with_their_pattern(half: str, runs: int, succeeded: bool | None) -> None:
    every = errors_of(half)
    right = [error.name for error in every if is_right(error, lines(error, runs, succeeded))]
    assert len(every) == 25
    assert len(right) >= SHARE * len(every), sorted({error.name for error in every} - set(right))


@pytest.mark.parametrize("half", ["dev", "held_out"])
def test_no_line_is_about_another_argument(half: str) -> None:
    for error in errors_of(half):
        assert all(f"`{error.argument}`" in one.text for one in lines(error, 3, True))
