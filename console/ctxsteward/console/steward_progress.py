"""A bar on stderr that tells how far a night is, stage by stage; nothing where stderr is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .output import table_console

STAGES = (
    "due", "harvested", "absorbed", "reconciled", "admitted", "fitted", "staged", "drift", "gate", "promoted", "linked",
    "canary",
)  # fmt: skip
"""Boundaries of a night, in order (`ctxsteward.steward.night`)."""


@contextmanager
def night_bar(*, shown: bool) -> Iterator[Callable[[str], object]]:
    """Told each boundary as it is passed."""
    if not (shown and sys.stderr.isatty()):
        yield lambda boundary: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=table_console(stderr=True), transient=True) as bar:
        task = bar.add_task("night", total=len(STAGES))
        batches = 0

        def tell(boundary: str) -> None:
            nonlocal batches
            if boundary == "batch":
                batches += 1
                bar.update(task, description=f"night: {batches:,} batches")
            else:
                bar.update(task, description=f"night: {boundary}", advance=1)

        yield tell
