"""Where output goes: JSON and tables to stdout, notes and progress to stderr.

JSON is one value a line, in the order of its making. Text of transcripts may hold anything, so what people
see has its control characters written out; JSON has the exact text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import click

from .failures import one_line

if TYPE_CHECKING:
    from rich.console import Console


def print_json(value: object, *, indent: int | None = None) -> None:
    """One JSON value on stdout; escaped where the terminal or pipe cannot take Unicode."""
    click.echo(json.dumps(value, ensure_ascii=not _takes_unicode(sys.stdout), indent=indent))


def print_document(name: str, value: object, *, indent: int | None = None) -> None:
    """A published document, checked against its schema; a list: each of them. Raises `InputError`."""
    from ctxsteward.schemas.publish import validate

    for one in value if isinstance(value, list) else [value]:
        validate(name, one)
    print_json(value, indent=indent)


def note(text: str) -> None:
    """One line for a person, on stderr."""
    click.echo(f"ctxsteward: {one_line(text)}", err=True)


def table_console(stderr: bool = False) -> Console:
    """A console without markup, emoji or highlighting: text of transcripts is shown as it is."""
    from rich.console import Console

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    stream = sys.stderr if stderr else sys.stdout
    if not _takes_unicode(stream) and hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")
    return Quiet(file=stream, markup=False, emoji=False, highlight=False)


def unicode_console(console: Console) -> bool:
    """Whether sparkline blocks and check marks can be shown."""
    return console.encoding.lower().startswith("utf")


@contextmanager
def progress(label: str, *, shown: bool) -> Iterator[Callable[[str], None]]:
    """A line on stderr that tells how far a long job is; nothing where stderr is no terminal."""
    if not (shown and sys.stderr.isatty()):
        yield lambda text: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns: tuple[Any, ...] = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=table_console(stderr=True), transient=True) as bar:
        task = bar.add_task(label)
        yield lambda text: bar.update(task, description=f"{label} {one_line(text)}", advance=1)


def _takes_unicode(stream: IO[str]) -> bool:
    return (getattr(stream, "encoding", None) or "utf-8").lower().replace("_", "-").startswith("utf")
