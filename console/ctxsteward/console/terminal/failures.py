"""What a failed command says: one line on stderr ``ctxsteward: where: what; what to do``, and an exit code.

Only errors that the user can do something about get such a line; any other keeps its traceback.
"""

from __future__ import annotations

import re
import sys

import click

from ctxsteward.schemas import ContextError, without_secrets

from .extras import EXTRAS

FOUND = 1
BAD_INPUT = 2
BLOCKED = 3
ROLLED_BACK = 4

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def failure_line(error: Exception) -> str | None:
    """The line for an error that the user can do something about; None for any other."""
    if isinstance(error, click.UsageError):
        path = _command(error)
        where = f"ctxsteward: {path.partition(' ')[2]}".rstrip(": ")
        return f"{where}: {_usage(error)}; see `{path} --help`"
    if isinstance(error, click.ClickException):
        return f"ctxsteward: {error.format_message()}"
    if isinstance(error, ContextError):
        return f"ctxsteward: {error}"
    if isinstance(error, OSError):
        what = (error.strerror or type(error).__name__).lower()
        return f"ctxsteward: {error.filename or 'file'}: {what}; check the path and its permissions"
    if isinstance(error, ModuleNotFoundError):
        return _missing_package(error)
    return None


def report_failure(line: str) -> int:
    """Print the line and return the exit code of bad input."""
    print(one_line(without_secrets(line)), file=sys.stderr)
    return BAD_INPUT


def one_line(text: str) -> str:
    """The text without line breaks and without anything that moves a terminal's cursor."""
    return visible(" ".join(text.split()))


def visible(text: str, *, keep: str = "") -> str:
    """The text with control and direction characters written out, except those in `keep`.

    >>> visible("red: \\x1b[31m")
    'red: \\\\x1b[31m'
    """
    return _UNPRINTABLE.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _usage(error: click.UsageError) -> str:
    """What was wrong; click's own answer to a group without a command is its whole help."""
    context = error.ctx
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and context and isinstance(context.command, click.Group):
        return f"Missing command; one of: {', '.join(context.command.list_commands(context))}"
    return error.format_message().rstrip(".?")


def _missing_package(error: ModuleNotFoundError) -> str | None:
    """Which extra brings what is missing; None where none does."""
    module = (error.name or "").partition(".")[0]
    found = next((package for package in EXTRAS if package.module == module), None)
    if found is None:
        return None
    needed = f"this needs {found.distribution}, which the extra `{found.extra}` brings"
    return f"ctxsteward: {needed}; pip install 'ctxsteward[{found.extra}]'"


def _command(error: click.UsageError) -> str:
    return error.ctx.command_path if error.ctx is not None else "ctxsteward"
