"""What a test file may not change for the files after it in the same process.

Test files run in another order each time, so whatever one leaves behind makes another fail now and then. A fixture
compares this state before and after each file (`tests/conftest.py`) and names what has changed. Filters of warnings are
not in it: pytest puts them back after each test.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

NOT_OURS = ("PYTEST_", "KMP_DUPLICATE_LIB_OK")
"""Environment variables that the test runner changes, and one that a package sets when it is imported."""
HANDLED = tuple(
    number
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "SIGALRM", "SIGUSR1")
    if (number := getattr(signal, name, None))
)


def state_of_process() -> dict[str, object]:
    """The state by name; values can be compared and shown."""
    state: dict[str, object] = {
        "working directory": Path.cwd(),
        "sys.path": tuple(sys.path),
        "sys.excepthook": sys.excepthook,
        "sys.stdout": type(sys.stdout),
        "recursion limit": sys.getrecursionlimit(),
        "tempfile.tempdir": tempfile.tempdir,
        "logging.disable": logging.root.manager.disable,
        "root logger's level": logging.root.level,
        "umask": _umask(),
    }
    state |= {
        f"environment variable {name}": value for name, value in os.environ.items() if not name.startswith(NOT_OURS)
    }
    state |= {f"handler of {number.name}": signal.getsignal(number) for number in HANDLED}
    state |= dict(_help_options())
    return state


def changes(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """What differs, a line each.

    >>> changes({"umask": 18, "a": 1}, {"umask": 0, "a": 1, "b": 2})
    ['b: nothing before, 2 after', 'umask: 18 before, 0 after']
    """
    names = sorted(before.keys() | after.keys())
    return [
        f"{name}: {before.get(name, 'nothing')!s} before, {after.get(name, 'nothing')!s} after"
        for name in names
        if before.get(name) != after.get(name)
    ]


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _help_options() -> Iterator[tuple[str, object]]:
    """Commands whose help option is not called `-h` and `--help`.

    click makes a command's help option once, at its first use, with the names that the context of this use has: a
    context without a parent knows `--help` alone, and so does the command from then on.
    """
    console = sys.modules.get("ctxsteward.console.cli")
    if console is None:
        return
    waiting: list[tuple[str, click.Command]] = [("ctxsteward", console.cli)]
    while waiting:
        path, command = waiting.pop()
        option = command._help_option
        if option is not None and option.opts != ["-h", "--help"]:
            yield f"help option of `{path}`", option.opts
        waiting += [(f"{path} {name}", further) for name, further in _imported_commands(command)]


def _imported_commands(command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """The commands of a group whose modules are imported already: looking at them imports nothing."""
    yield from command.commands.items() if isinstance(command, click.Group) else ()
    for name, lazy in getattr(command, "table", {}).items():
        module, _, attribute = lazy.target.partition(":")
        if found := sys.modules.get(f"ctxsteward.console.{module}"):
            yield name, getattr(found, attribute)
