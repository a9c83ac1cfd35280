"""A hint is said right after the very error, marked with how often it was seen."""

from __future__ import annotations

import pytest

from ctxsteward.schemas import MetaRecommendation
from ctxsteward.steward import Ledger, hint_after
from ctxsteward.steward.artifacts.artifact import build_artifact
from ctxsteward.steward.harvest.tools.errors import tool_errors

from ..harvest.tools.scenes import call, scene
from ..scenes import AGENT, TENANT, memory_store

REFUSED = "Error: invalid sku, it must match ^[A-Z]{3}-[0-9]{4}$"


def records(runs: int) -> list[MetaRecommendation]:
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        for number in range(runs):
            lines = call("save", REFUSED, sku="abc1234", box="B-1"), call("save", "{}", sku="ABC-1234", box="B-1")
            run = scene(*lines, session=f"s{number}", principal=f"t{number}", succeeded=None)
            key = store.keys.address_key(TENANT)
            ledger.absorb(*build_artifact(run, tool_errors(run), extractor="harvest/1", key=key))
        return list(ledger.records())


@pytest.mark.parametrize(("runs", "seen"), [(1, "seen once"), (2, "seen in 2 runs")])
def test_the_hint_says_what_the_argument_takes_and_how_often_it_was_seen(runs: int, seen: str) -> None:
    said = hint_after(records(runs), "save", ("sku", "box"), REFUSED)
    assert said == f"`save` rejects `sku`: write it as `^[A-Z]{{3}}-[0-9]{{4}}$`. ({seen})"


@pytest.mark.parametrize(
    ("tool", "arguments", "answer"),
    [
        ("save", ("sku",), '{"saved": true}'),  # it worked
        ("load", ("sku",), REFUSED),
        ("save", ("box",), REFUSED),
        ("save", ("sku",), "Error: permission denied"),
    ],
)
def test_after_anything_else_nothing_is_said(tool: str, arguments: tuple[str, ...], answer: str) -> None:
    assert hint_after(records(1), tool, arguments, answer) is None
