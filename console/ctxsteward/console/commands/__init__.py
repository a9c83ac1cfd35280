"""The commands, one module each, in the order of the help text."""

from .audit import audit
from .backfill import backfill
from .build import build
from .completion import completion
from .demo import demo
from .replay import replay
from .report import report
from .resolve import resolve
from .schema import schema
from .store import store

COMMANDS = (demo, build, replay, resolve, report, audit, store, backfill, schema, completion)

__all__ = ["COMMANDS"]
