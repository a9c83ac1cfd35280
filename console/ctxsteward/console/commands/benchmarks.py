"""``ctxsteward evals bench``, ``survival``, ``advice``, ``notes``, ``worth``: figures of this project's own pages.

Time and memory, what outlives compaction, whether the steward's advice about tools is right, whether it learns what
people wrote down, and what readers say of what it keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from ctxsteward.evals.bench import (
    ADVICE,
    ADVICE_HEAD,
    BENCHES,
    BLOCK,
    HEAD,
    NOTED,
    NOTED_HEAD,
    PRACTICES,
    PRACTICES_HEAD,
    RIGHT_PRACTICES,
    WORTH,
    WORTH_HEAD,
    AdviceRow,
    BenchmarkRow,
    NotedRow,
    PracticeRow,
    SurvivalRow,
    WorthRow,
    advice_cells,
    cells,
    line_of,
    lines_of,
    measure as measure_survival,
    measure_advice,
    measure_noted,
    measure_practices,
    measure_worth,
    noted_cells,
    own_practised_runs,
    own_runs,
    own_worded_runs,
    practice_cells,
    read_noted,
    read_runs,
    run as run_benches,
    survival_block,
    worth_cells,
)
from ctxsteward.evals.documents import check_markers, table as markdown, write_blocks

from ..terminal import common, completer, grid, note, print_json, progress, table_console


@click.command()
@click.option("--beam", type=click.Path(), metavar="FOLDER", help="BEAM chats; without it that generator is left out.")
@click.option("--held-out", is_flag=True, help="The words and seeds to look at once, when all is done.")
@click.option("--seeds", type=click.IntRange(1, 100), default=3, show_default=True, help="Sessions of each kind.")
@click.option("--write", type=click.Path(), metavar="FILE", help="Put the table between the markers of this Markdown.")
@common
def survival(
    beam: str | None, held_out: bool, seeds: int, write: str | None, as_json: bool, store: str, tenant: str
) -> None:
    """Measure what survives compaction in talk with a statement worth keeping every few messages.

    Ours beside the most that fits, the rarest words per token, the newest, any, and lines with numbers or
    words of obligation; at budgets from 200 tokens to 40 % of the session. Nothing is stored.
    """

    if write is not None:
        check_markers(Path(write), BLOCK)
    if beam is None:
        note("survival: no --beam, the generator of real chats is left out")
    with progress("survival", shown=not as_json) as tell:
        rows = measure_survival(
            half="held_out" if held_out else "dev", seeds=seeds, beam=Path(beam) if beam else None, tell=tell
        )
    if write is not None:
        write_blocks(Path(write), {BLOCK: survival_block(rows)})
    elif as_json:
        for row in rows:
            print_json({"suite": "survival", **row._asdict()})
    else:
        _print_survival(rows)


def _print_survival(rows: Sequence[SurvivalRow]) -> None:
    columns = [*HEAD[1:], *dict.fromkeys(row.generator for row in rows)]
    table = grid("", *columns, numbers=columns)
    for line in cells(rows):
        table.add_row(*line)
    table_console().print(table)


@click.command()
@click.argument("data", type=click.Path(exists=True, dir_okay=False, path_type=Path), nargs=-1)
@click.option(
    "--seed", "seeds", type=int, multiple=True, default=(1,), show_default=True, help="Of a world of our own."
)
@click.option("--write", type=click.Path(), metavar="FILE", help="Put the table between the markers of this Markdown.")
@common
def advice(
    data: tuple[Path, ...], seeds: tuple[int, ...], write: str | None, as_json: bool, store: str, tenant: str
) -> None:
    """Measure whether advice about tools is right, and whether it does harm.

    Runs of small seeded worlds of our own, and files of tau-bench runs (DATA): a night learns from half of the
    tasks, and of each error in the others the runs that succeeded say what was right. Beside constants, any
    fix, and what was accepted before. What runs that succeed do beside errors is held to the same halves. Nothing
    is stored.
    """
    if write is not None:
        check_markers(Path(write), ADVICE)
        check_markers(Path(write), PRACTICES)
    rows: list[AdviceRow] = []
    practices: list[PracticeRow] = []
    lines: list[str] = []
    with progress("advice", shown=not as_json) as tell:
        for seed in seeds:
            tell(f"our worlds, seed {seed}")
            rows += measure_advice(f"our world, seed {seed}", own_runs(seed=seed))
            rows += measure_advice(f"several causes, seed {seed}", own_worded_runs(seed=seed))
            practised = own_practised_runs(seed=seed)
            practices += measure_practices(f"practices, seed {seed}", practised, RIGHT_PRACTICES)
            lines += [*lines_of(own_worded_runs(seed=seed)), *lines_of(practised)]
        for path in data:
            tell(path.parent.name)
            name, runs = f"{path.parent.name}/{path.name}", read_runs(path)
            rows += measure_advice(name, runs)
            practices += measure_practices(name, runs)
            lines += lines_of(runs)
    if write is not None:
        blocks = {
            ADVICE: markdown(ADVICE_HEAD, advice_cells(rows), texts=2),
            PRACTICES: markdown(PRACTICES_HEAD, practice_cells(practices), texts=2),
        }
        write_blocks(Path(write), blocks)
    elif as_json:
        for row in rows:
            print_json({"suite": "advice", **asdict(row)})
        for practice in practices:
            print_json({"suite": "practices", **practice._asdict()})
    else:
        tables = (
            (ADVICE_HEAD, ADVICE_HEAD[2:-1], advice_cells(rows)),
            (PRACTICES_HEAD, PRACTICES_HEAD[2:], practice_cells(practices)),
        )
        for head, numbers, cells in tables:
            table = grid("", *head, numbers=numbers)
            for line in cells:
                table.add_row("", *line)
            table_console().print(table)
        for told in lines:
            click.echo(f"  {told}")


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--held-out", is_flag=True, help="The people to look at once, when all is done.")
@click.option(
    "--write", type=click.Path(), metavar="FILE", help="Put both halves between the markers of this Markdown."
)
@common
def notes(folder: Path, held_out: bool, write: str | None, as_json: bool, store: str, tenant: str) -> None:
    """Measure how much of what people wrote down about chats the steward learns from them.

    FOLDER holds dated chats with notes (RealMem). Beside ours: as many sentences of what users said, chosen
    without knowledge. Nothing is stored.
    """
    if write is not None:
        check_markers(Path(write), NOTED)
    halves = ("development", "held out") if write is not None else ("held out" if held_out else "development",)
    rows: list[NotedRow] = []
    with progress("notes", shown=not as_json) as tell:
        for half in halves:
            rows += measure_noted(read_noted(folder, half), half, tell)
    if write is not None:
        write_blocks(Path(write), {NOTED: markdown(NOTED_HEAD, noted_cells(rows), texts=2)})
    elif as_json:
        for row in rows:
            print_json({"suite": "notes", **row._asdict()})
    else:
        table = grid("", *NOTED_HEAD[1:], numbers=NOTED_HEAD[2:])
        for _, *line in noted_cells(rows):
            table.add_row("", *line)
        table_console().print(table)


@click.command()
@click.argument("talks", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="TALK...")
@click.option("--held-out", is_flag=True, help="The other half, to look at once, when all is done.")
@click.option(
    "--write", type=click.Path(), metavar="FILE", help="Put both halves between the markers of this Markdown."
)
@common
def worth(talks: tuple[Path, ...], held_out: bool, write: str | None, as_json: bool, store: str, tenant: str) -> None:
    """Tell what two readers said of the records that a night over TALK makes active.

    A TALK is a folder of chats (RealMem, BEAM) or a file of chats or runs (LoCoMo, tau-bench), which has one half.
    Lines that nobody judged are counted apart. Nothing is stored.
    """
    if write is not None:
        check_markers(Path(write), WORTH)
    halves = ("development", "held out") if write is not None else ("held out" if held_out else "development",)
    rows: list[WorthRow] = []
    with progress("worth", shown=not as_json) as tell:
        for half in halves:
            for talk in talks:
                if half == "development" or talk.is_dir():
                    tell(f"{talk.name}, {half}")
                    rows += measure_worth(talk, half)
    if write is not None:
        write_blocks(Path(write), {WORTH: markdown(WORTH_HEAD, worth_cells(rows), texts=3)})
        return
    if as_json:
        for row in rows:
            print_json({"suite": "worth", **row._asdict()})
        return
    table = grid("", *WORTH_HEAD[1:], numbers=WORTH_HEAD[3:])
    for line in worth_cells(rows):
        table.add_row(*line)
    table_console().print(table)
    for row in rows:
        noticed = ", ".join(f"{count} {name}" for name, count in row.checks.items() if count)
        if row.checks:
            click.echo(f"  {row.talk}, without a reader: {noticed or 'nothing'}")


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completer(tuple(BENCHES)))
@click.option("--data", type=click.Path(path_type=Path), metavar="FOLDER", help="Public transcripts, for some of them.")
@click.option(
    "--write",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Put the table between the markers of this Markdown.",
)
@common
def bench(
    names: tuple[str, ...], data: Path | None, write: Path | None, as_json: bool, store: str, tenant: str
) -> None:
    """Run the benchmarks with these names, or all of them, which takes minutes.

    All input is seeded, or from --data. Nothing is stored.
    """
    rows = run_benches(names, data, write, (lambda row: print_json(asdict(row))) if as_json else _echo_row)
    if any(row.ok is False for row in rows):
        raise SystemExit(1)


def _echo_row(row: BenchmarkRow) -> None:
    click.echo(line_of(row))
