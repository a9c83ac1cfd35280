"""Find suites by name; a suite's module is imported on first use.

The module of a suite has its name (`goal_continuity` for ``goal-continuity``) and two functions: `make` makes a
scenario from a draw, and `play_NAME` (`play_goal_continuity`) plays and judges one. Its figures stand in
``suites.yaml``.

A suite is listed even if its extra is not installed; `EvalSuite.unplayable` says why it cannot be played. Raises
`InputError` for an unknown name.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any

from ruamel.yaml import YAML

from ctxsteward.schemas import InputError

from .kit.suite import EvalSuite, Metric

NAMES = (
    "goal-continuity",
    "compression",
    "verbatim",
    "citations",
    "cache",
    "injection",
    "governance",
    "agents",
)


@cache
def suite_named(name: str) -> EvalSuite:
    """Return the suite of this name."""
    if name not in NAMES:
        names = f"one of: {', '.join(NAMES)}; or a file of your own that ends in .yaml"
        raise InputError(f"unknown eval suite {name!r:.60}; {names}")
    module_name = name.replace("-", "_")
    module = import_module(f".{module_name}", __package__)
    entry = _suites()[name]
    metrics = tuple(Metric(**row) for row in entry["metrics"])
    play = getattr(module, f"play_{module_name}")
    needed = entry.get("extra", {})
    return EvalSuite(
        name=name,
        about=entry["about"],
        metrics=metrics,
        make=module.make,
        play=play,
        ours_only=entry.get("ours_only"),
        extra=needed.get("name"),
        modules=tuple(needed.get("modules", ())),
    )


@cache
def _suites() -> Any:
    return YAML(typ="safe").load((files(__package__) / "suites.yaml").read_text(encoding="utf-8"))
