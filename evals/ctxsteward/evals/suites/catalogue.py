"""The suites by name. A suite's module is imported when it is asked for.

Raises `InputError` for a name that is none, and for a suite whose extra is not installed.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ctxsteward.schemas import InputError

from .kit.suite import EvalSuite

NAMES = (
    "goal-continuity", "compression", "verbatim", "citations", "cache", "injection", "governance", "agents",
)  # fmt: skip


@cache
def suite_named(name: str) -> EvalSuite:
    """One suite."""
    if name not in NAMES:
        raise InputError(f"eval suite {name!r:.60} is none; one of: {', '.join(NAMES)}")
    try:
        suite: EvalSuite = import_module(f".{name.replace('-', '_')}", __package__).SUITE
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ctxsteward"):
            raise
        what = f"eval suite {name} needs {error.name}"
        raise InputError(f"{what}, which the extra `steward` brings: pip install 'ctxsteward[steward]'") from error
    return suite
