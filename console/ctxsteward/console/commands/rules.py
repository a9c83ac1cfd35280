"""``ctxsteward evals rules``: count the known rules of an environment that a night and two baselines learn."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from ctxsteward.evals.rule_key import OFTEN, examine, read_key

from ..terminal.options import json_option
from ..terminal.output import note, print_json, progress, table_console
from ..terminal.tables import grid, say


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUNS...")
@click.option("--key", required=True, type=click.Path(path_type=Path), metavar="FILE", help="The known rules (YAML).")
@click.option("--lines", is_flag=True, help="Also show the lines of the night.")
@json_option
def rules(runs: tuple[Path, ...], key: Path, lines: bool, as_json: bool) -> None:
    """Compare what a night learns from agent runs with a key of the rules that their environment enforces.

    RUNS: transcripts in any format that `build` reads, or runs {"conversation": […], "task"} whose tool calls hold
    their results. Nothing is stored, and no model is called. A key is refused if it has no rule, or if no run shows
    one of its rules.
    """
    known = read_key(key)
    with progress("rules", shown=not as_json):
        report = examine(runs, known)
    if as_json:
        print_json({"suite": "rules", **asdict(report), "lines": [line._asdict() for line in report.lines]})
        return
    console = table_console()
    columns = [score.strategy for score in report.scores]
    often = report.shown_often
    rows = [
        (f"learnt, of {often} that {OFTEN} runs show", *(f"{s.learnt}" for s in report.scores)),
        ("  by a line in force", *(f"{s.in_force}" for s in report.scores)),
        ("  held back only", *(f"{s.held}" for s in report.scores)),
        ("false lines in force", *(f"{s.false}" for s in report.scores)),
        ("lines that rest on a rule", *(f"{s.examined}" for s in report.scores)),
        ("  that name it", *(f"{s.named}" for s in report.scores)),
        ("  that blame an argument", *(f"{s.blamed}" for s in report.scores)),
        ("lines beside the key", *(f"{s.beside}" for s in report.scores)),
    ]
    console.print(
        grid(f"{report.runs} runs, {report.shown} of {report.rules} rules shown", *columns, rows=rows, numbers=columns)
    )
    if report.missed:
        note(f"not learnt: {', '.join(report.missed)}")
    for line in report.lines if lines else ():
        say(console, f"{line.standing}: {line.text}")
