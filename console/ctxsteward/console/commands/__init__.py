"""The commands, one module each, in the order of the help text."""

from .audit import audit
from .backfill import backfill
from .build import build
from .cards import cards
from .completion import completion
from .context import context
from .demo import demo
from .evals import evals
from .mcp import mcp
from .replay import replay
from .report import report
from .resolve import resolve
from .schema import schema
from .steward import steward
from .store import store

COMMANDS = (
    demo,
    build,
    replay,
    resolve,
    report,
    audit,
    store,
    backfill,
    context,
    cards,
    steward,
    evals,
    mcp,
    schema,
    completion,
)

__all__ = ["COMMANDS"]
