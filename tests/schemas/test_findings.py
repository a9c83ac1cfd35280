"""The closed table of finding kinds: what is raised stands in it, and what stands in it is raised."""

from __future__ import annotations

import ast
from pathlib import Path

from ctxsteward.schemas.findings import FINDING_KINDS

from ..house import Module, modules

ROOM = Path(__file__).parents[2] / "envelope"
OTHER_TABLES = ("audit", "maintenance")


def _room() -> list[Module]:
    """Modules whose findings are in the table: the request path, the store, the steward's part of an erasure."""
    return [
        module
        for module in modules()
        if module.name == "steward.erasure"
        or (ROOM in module.path.parents and not set(module.path.parts) & set(OTHER_TABLES))
    ]


def _raised(module: Module) -> set[str]:
    calls = [node for node in module.nodes if isinstance(node, ast.Call)]
    words = [word for call in calls if ast.unparse(call.func) == "Finding" for word in call.keywords]
    return {
        ast.literal_eval(word.value) for word in words if word.arg == "kind" and isinstance(word.value, ast.Constant)
    }


def test_every_kind_that_is_raised_is_in_the_table() -> None:
    assert set().union(*map(_raised, _room())) <= set(FINDING_KINDS)


def test_every_kind_in_the_table_is_raised() -> None:
    texts = {
        node.value
        for module in _room()
        for node in module.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }

    assert set(FINDING_KINDS) - texts == set()
