"""The commands, one module each, in the order of the help text."""

from .audit import audit
from .backfill import backfill
from .build import build
from .cards import cards
from .context import context
from .demo import demo
from .evals import evals
from .inspection import report, resolve
from .integration import completion, mcp, schema
from .replay import replay
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
