"""The commands, one module each, in the order of the help text."""

from .build import build
from .completion import completion
from .demo import demo
from .replay import replay
from .report import report
from .resolve import resolve
from .schema import schema

COMMANDS = (demo, build, replay, resolve, report, schema, completion)

__all__ = ["COMMANDS"]
