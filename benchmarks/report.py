"""Common parts of the scripts: options, the table printer, and the place of a table in a document."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ctxsteward.evals.documents import check_markers, write_blocks
from ctxsteward.schemas import ContextError


def script(doc: str | None) -> ArgumentParser:
    """Return a parser with the option that all scripts have."""
    parser = ArgumentParser(description=doc, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="put the tables between the markers of this Markdown"
    )
    return parser


def publish(parser: ArgumentParser, options: Namespace, blocks: Mapping[str, Callable[[], Iterable[str]]]) -> int:
    """Print each block, or write all of them into the document; exit 2 on invalid input.

    The document is checked before anything is measured.
    """
    page: Path | None = options.write
    try:
        if page is None:
            for lines in blocks.values():
                print(*lines(), sep="\n")
        else:
            check_markers(page, *blocks)
            write_blocks(page, {name: list(lines()) for name, lines in blocks.items()})
    except (ContextError, OSError) as error:
        parser.error(str(error))
    return 0


def progress(*parts: str) -> None:
    """Print the current benchmark to standard error."""
    print(*parts, sep=": ", file=sys.stderr, flush=True)
