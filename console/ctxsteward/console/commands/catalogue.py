"""``ctxsteward evals list`` shows the suites, ``subjects`` the context strategies that suites can judge;
``from-transcripts`` drafts a suite from a team's own conversations, for people to read and keep."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from ctxsteward.evals.intervals import promise_detects
from ctxsteward.evals.subjects.registry import described
from ctxsteward.evals.suite_files.suite_reader import load_suite
from ctxsteward.evals.suite_files.transcript_suite import SuiteDraft, draft_suite
from ctxsteward.evals.suites.catalogue import NAMES, suite_named
from ctxsteward.evals.suites.gates import shipped_gates
from ctxsteward.schemas import InputError

from ..terminal.options import json_option
from ..terminal.output import note, print_json, progress, table_console
from ..terminal.tables import grid, shown


def suites_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return a table of suites, each followed by a row for every figure."""
    table = grid("suite, figures", "gate")
    for row in rows:
        rare = f"a promise notices a fault of {100 * row['promise_detects']:.0f} % of such"
        table.add_row(Text(f"{row['suite']}  ({row['scenarios']} scenarios: {rare})", style="bold"), "")
        table.add_row(shown(f"  {row['about']}", style="dim"), "")
        if row["unplayable"] is not None:
            table.add_row(shown(f"  It cannot be played here: {row['unplayable']}", style="bold red"), "")
        for name, about in row["metrics"].items():
            table.add_row(f"  {name}", ", ".join(row["gates"].get(name, ())))
            table.add_row(shown(f"    {about}", style="dim"), "")
    return table


@click.command("list")
@json_option
def list_suites(as_json: bool) -> None:
    """List the suites with their metrics and gates, and what a suite needs that is not installed here."""
    gates = shipped_gates()
    rows = [
        {
            "suite": suite.name,
            "about": suite.about,
            "scenarios": suite.scenarios,
            "promise_detects": promise_detects(suite.scenarios),
            "metrics": {metric.name: metric.about for metric in suite.metrics},
            "unplayable": suite.unplayable(),
            "gates": {metric: [str(gate) for gate in each] for metric, each in gates.get(suite.name, {}).items()},
        }
        for suite in map(suite_named, NAMES)
    ]
    if as_json:
        for row in rows:
            print_json(row)
    else:
        table_console().print(suites_table(rows))


@click.command("subjects")
@json_option
def list_subjects(as_json: bool) -> None:
    """List the context strategies that suites can evaluate, and how to name your own."""
    rows = described()
    if as_json:
        for name, about in rows:
            print_json({"subject": name, "about": about})
        return
    table_console().print(grid("subject", "what it does", rows=rows))


# -- from-transcripts -------------------------------------------------------------------------------------------------

_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


def suite_name(out: Path) -> str:
    """Return a suite's name, made from its file name.

    >>> suite_name(Path("My_suite 2.yaml"))
    'my-suite-2'
    """
    name = _NOT_IN_NAMES.sub("-", out.stem.lower()).strip("-")[:50]
    return name if name[:1].isalpha() else f"suite-{name}".strip("-")


def check_out(out: Path, overwrite: bool, read: Sequence[Path]) -> None:
    """Raise `InputError` if `out` is not named as a suite, exists already, or would overwrite a transcript to read."""
    if out.suffix not in (".yaml", ".yml"):
        raise InputError(f"--out {out}: not a suite's name; write one that ends in .yaml")
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: no folder {out.parent}")
    for path in (out, out.with_suffix(".jsonl")):
        if path.exists() and not overwrite:
            raise InputError(f"--out {out}: {path} is there already; name another, or add --overwrite")
        if path.exists() and any(one.resolve() in (path.resolve(), path.resolve().parent) for one in read):
            raise InputError(f"--out {out}: {path} is among the transcripts that are read; name another")


def drafted_table(draft: SuiteDraft) -> Table:
    """Return a table that counts what was drafted, redacted and left out."""
    kinds = Counter(ask.kind for scenario in draft.scenarios for ask in scenario.asks)
    rows = [("files", draft.files), ("transcripts", draft.transcripts), ("conversations", len(draft.scenarios))]
    rows += [("  that fit their budget whole: nothing is told apart", draft.fit)] if draft.fit else []
    rows += [("asks", sum(kinds.values())), *((f"  {kind}", count) for kind, count in sorted(kinds.items()))]
    rows += [("asks that transcripts share, dropped", draft.shared)]
    rows += [("redacted", draft.redacted.total()), *((f"  {kind}", n) for kind, n in sorted(draft.redacted.items()))]
    rows += [(f"left out: {reason}", count) for reason, count in sorted(draft.left_out.items())]
    return grid("drafted", "", rows=((name, f"{count:,}") for name, count in rows), numbers=("",))


@click.command("from-transcripts")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Suite file to write (YAML); conversations go to the same folder.",
)
@click.option("--name", metavar="NAME", help="Name of the suite; default: from the file name.")
@click.option(
    "--max-messages",
    type=click.IntRange(10, 10_000),
    default=200,
    show_default=True,
    metavar="N",
    help="Most messages of a conversation; longer transcripts are cut before a user message.",
)
@click.option(
    "--min-turns",
    type=click.IntRange(1, 1_000),
    default=3,
    show_default=True,
    metavar="N",
    help="Least user turns; shorter conversations are left out.",
)
@click.option(
    "--asks",
    type=click.IntRange(1, 50),
    default=5,
    show_default=True,
    metavar="N",
    help="Most questions about one conversation.",
)
@click.option(
    "--redact/--no-redact",
    default=True,
    show_default=True,
    help="Remove secrets, mail addresses, and phone, card and id numbers. Names are not recognized.",
)
@click.option("--overwrite", is_flag=True, help="Replace existing files.")
@json_option
def from_transcripts(
    paths: tuple[Path, ...],
    out: Path,
    name: str | None,
    max_messages: int,
    min_turns: int,
    asks: int,
    redact: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Draft a suite from transcripts: files in any format that `build` reads, or folders of them.

    The suite holds the conversations, and questions about what people said early: identifiers, dates, amounts.
    Rules write the questions; no model is called. Read them, delete those that make no sense, and set `status:
    kept`.
    """
    check_out(out, overwrite, paths)
    with progress("transcripts", shown=not as_json) as tell:
        draft = draft_suite(
            paths,
            name=name or suite_name(out),
            max_messages=max_messages,
            min_turns=min_turns,
            asks=asks,
            redacts=redact,
            tell=tell,
        )
    written = draft.write(out)
    suite = load_suite(out)  # check that the written file can be read
    if as_json:
        print_json(
            {
                "suite": suite.document.name,
                "files": [str(path) for path in written],
                "transcripts": draft.transcripts,
                "conversations": len(draft.scenarios),
                "asks": sum(len(one.asks) for one in draft.scenarios),
                "shared_asks": draft.shared,
                "redacted": dict(sorted(draft.redacted.items())),
                "left_out": dict(sorted(draft.left_out.items())),
            }
        )
        return
    table_console().print(drafted_table(draft))
    asked = any(one.asks for one in draft.scenarios)
    what = "read its asks, drop what makes no sense" if asked else "no ask could be drafted; write asks of your own"
    note(f"{out}: {what}, and write `status: kept`")
