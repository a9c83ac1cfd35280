"""Output: JSON and tables on stdout, notes and progress on stderr.

JSON is printed one value a line, in the order in which values are made. Text of transcripts may contain anything, so
output for people has its control characters written out; JSON has the exact text.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ctxsteward.schemas import InputError
from ctxsteward.schemas.publish import validate

from .failures import one_line

_Result = TypeVar("_Result")


def print_json(value: object, *, indent: int | None = None) -> None:
    """Print a JSON value; it is escaped if stdout does not take Unicode."""
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("_", "-")
    text = json.dumps(value, ensure_ascii=not encoding.startswith("utf"), indent=indent)
    has_surrogates = text != text.encode(errors="replace").decode()  # from file names that are not UTF-8
    click.echo(json.dumps(value, indent=indent) if has_surrogates else text)


def print_document(name: str, value: object, *, indent: int | None = None) -> None:
    """Print a published document, or a list of them, checked against the schema; raise `InputError` on a misfit."""
    for document in value if isinstance(value, list) else [value]:
        validate(name, document)
    print_json(value, indent=indent)


def print_result(result: _Result, show: Callable[[Console, _Result], None], *, as_json: bool) -> None:
    """Print a result as JSON, or as `show` prints it for a person."""
    print_json(result) if as_json else show(table_console(), result)


def write_text(path: str | Path, text: str) -> None:
    """Write a report to a file; raise `InputError` if it cannot be written."""
    try:
        Path(path).write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")  # non-UTF-8 file names
    except OSError as error:
        what = (error.strerror or "cannot be written").lower()
        raise InputError(f"{path}: {what}; check the path and its permissions") from error


def note(text: str) -> None:
    """Print one line for a person, on stderr."""
    click.echo(f"ctxsteward: {one_line(text)}", err=True)


PIPED_COLUMNS = 200
"""Width of a table that goes to a file or a pipe, so that nothing is cut for a screen."""


class QuietConsole(Console):
    """Console that raises `BrokenPipeError`, so that the command line's root sets the exit code."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def table_console(stderr: bool = False) -> Console:
    """Return a console without markup, emoji and highlighting, which shows text of transcripts unchanged."""
    stream = sys.stderr if stderr else sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPED_COLUMNS
    return QuietConsole(file=stream, markup=False, emoji=False, highlight=False, width=width)


def unicode_console(console: Console) -> bool:
    """Return whether the console can show sparkline blocks and check marks."""
    return console.encoding.lower().startswith("utf")


@contextmanager
def progress(label: str, *, shown: bool) -> Iterator[Callable[[str], None]]:
    """Show the progress of a long job on one line of stderr; nothing if stderr is no terminal."""
    if not (shown and sys.stderr.isatty()):
        yield lambda text: None
        return

    columns: tuple[Any, ...] = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=table_console(stderr=True), transient=True) as bar:
        task = bar.add_task(label)
        yield lambda text: bar.update(task, description=f"{label} {one_line(text)}", advance=1)


@contextmanager
def share_bar(label: str, *, shown: bool) -> Iterator[Callable[[str, float], None]]:
    """Show the finished share of a job and the time left as a bar on stderr; nothing if stderr is no terminal."""
    if not (shown and sys.stderr.isatty()):
        yield lambda text, share: None
        return

    columns: tuple[Any, ...] = (
        TextColumn(label, markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=table_console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda text, share: bar.update(task, description=one_line(text), completed=share)
