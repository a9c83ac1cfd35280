"""Generate parts of documents: lines between two markers, ``<!-- NAME -->`` and ``<!-- /NAME -->``.

The cost and recall evals, the benchmarks and the comparison with other libraries write their tables into `docs/` with
it. They call `check_markers` before they measure, and commands that write a file of results call `check_output`, so
that a missing place for the output fails before minutes of work, not after.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ctxsteward.schemas import InputError


def markers(name: str) -> tuple[str, str]:
    """Return the markers before and after a block."""
    return f"<!-- {name} -->", f"<!-- /{name} -->"


def check_markers(path: Path, *names: str) -> None:
    """Raise `InputError` if the document lacks the markers of a block."""
    if not path.is_file():
        raise InputError(f"--write {path}: no such file; name a Markdown page with a place for the table")
    text = path.read_text(encoding="utf-8")
    for begin, end in map(markers, names):
        if not 0 <= text.find(begin) < text.find(end):
            raise InputError(f"{path}: no {begin} followed by {end}; write them where the table belongs")


def check_output(option: str, path: Path, *, makes_folder: bool = False) -> None:
    """Raise `InputError` if a file cannot be written; `makes_folder` if the writer creates its folder."""
    parents = path.absolute().parents
    folder = next(filter(os.path.lexists, parents)) if makes_folder else parents[0]
    if path.is_dir():
        why = "it is a folder; name a file in it"
    elif not folder.is_dir():
        why = f"{folder} is no folder; name one that is there"
    elif not os.access(path if path.exists() else folder, os.W_OK):
        why = "no permission; name another"
    else:
        return
    raise InputError(f"{option} {path}: not a file that may be written: {why}")


def block_of(text: str, name: str) -> str:
    """Return the text between a block's markers."""
    begin, end = markers(name)
    return text[text.index(begin) + len(begin) : text.index(end)]


def table_rows(text: str) -> list[list[str]]:
    """Return the cells of all tables in a text, heads included, without bold marks."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip(" *") for cell in line.strip("| ").split("|")] for line in lines]


def with_block(text: str, name: str, lines: Iterable[str]) -> str:
    """Replace the lines between a block's markers."""
    begin, end = markers(name)
    return "\n".join([text[: text.index(begin) + len(begin)], *lines, text[text.index(end) :]])


def write_blocks(path: Path, blocks: Mapping[str, Iterable[str]]) -> None:
    """Write lines into their blocks of a document."""
    text = path.read_text(encoding="utf-8")
    for name, lines in blocks.items():
        text = with_block(text, name, lines)
    path.write_text(text, encoding="utf-8", newline="\n")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> Iterator[str]:
    """Yield a Markdown table; the first `texts` columns are texts, the others right-aligned figures."""
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * texts + "---:|" * (len(head) - texts)
    yield from (f"| {' | '.join(row)} |" for row in rows)
