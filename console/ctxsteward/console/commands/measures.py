"""``ctxsteward evals cost``, ``recall``, ``survival``, ``advice``, ``notes``, ``worth``.

Prompt cost, recall, what outlives compaction, whether the steward's advice about tools is right, whether it learns what
people wrote down, and what readers say of what it keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from ctxsteward.envelope.tokens import Prices, model_info
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
    Half,
    NotedRow,
    PracticeRow,
    SurvivalRow,
    WorthRow,
    advice_cells,
    cells,
    is_chat_folder,
    line_of,
    lines_of,
    measure as measure_survival,
    measure_advice,
    measure_chats,
    measure_noted,
    measure_practices,
    measure_worth,
    noted_cells,
    own_practised_runs,
    own_runs,
    own_worded_runs,
    practice_cells,
    read_chats,
    read_noted,
    read_runs,
    run as run_benches,
    survival_block,
    worth_cells,
    write_chats_table,
)
from ctxsteward.evals.cost import (
    NAME,
    OURS,
    OURS_WITHOUT_RECALL,
    CostRow,
    cost_block,
    grouped,
    measure,
    missed_bars,
    policy_builders,
    title,
)
from ctxsteward.evals.documents import check_markers, table as markdown, write_blocks
from ctxsteward.evals.recall import BLOCKS, RecallRow, measure as measure_recall, write_tables as write_recall_tables
from ctxsteward.evals.selectors import rankings_on
from ctxsteward.schemas import InputError

from ..terminal import (
    FOUND,
    budget_option,
    common,
    completer,
    grid,
    model_option,
    note,
    print_json,
    progress,
    read_builder,
    table_console,
)

WRITTEN_BUDGETS = ("dynamic_tokens=900", "dynamic_tokens=4000", "dynamic_tokens=16000")


@click.command()
@click.argument("data", type=click.Path(), nargs=-1, required=True)
@model_option("Whose tokens and cache count.")
@budget_option("A field of Budgets, such as dynamic_tokens=4000; repeatable.")
@click.option("--cached-price", type=float, default=0.1, show_default=True, help="Of a token that the cache served.")
@click.option(
    "--write-price", type=float, default=1.0, show_default=True, help="Of one that it did not; Anthropic 1.25."
)
@click.option("--cache-block", type=int, metavar="TOKENS", help="The shortest cached prefix; default: the model's.")
@click.option("--write", type=click.Path(), metavar="FILE", help="Put the tables between the markers of this Markdown.")
@click.option("--gate", is_flag=True, help="Exit 1 where our default does not hold its bars.")
@common
def cost(
    data: tuple[str, ...],
    model: str,
    budgets: tuple[str, ...],
    cached_price: float,
    write_price: float,
    cache_block: int | None,
    write: str | None,
    gate: bool,
    as_json: bool,
    store: str,
    tenant: str,
) -> int:
    """Measure prompt tokens on DATA: files of agent runs, in any format that is read, or folders of them.

    Ours as it is by default and without recall, and under each policy by price; masking tool results never,
    at every step, at every tenth; a window of five steps; and the cheapest masking schedules there were, known
    in hindsight. Nothing is stored. --write measures at 900, 4,000 and 16,000 tokens, unless --budget says
    otherwise.
    """

    prices = _prices(model, cached_price, write_price, cache_block)
    if write is not None:
        check_markers(Path(write), NAME)
    budget_sets = [(one,) for one in WRITTEN_BUDGETS] if write is not None and not budgets else [budgets]
    with progress("cost", shown=not as_json) as tell:
        measured = dict(_measure(data, model, chosen, prices, tell) for chosen in budget_sets)
    if write is not None:
        write_blocks(Path(write), {NAME: cost_block(measured, prices)})
    for dynamic_tokens, rows in measured.items():
        if as_json:
            for row in rows:
                print_json({"suite": "cost", "dynamic_tokens": dynamic_tokens, **row._asdict()})
        elif write is None:
            _print_tables(dynamic_tokens, rows)
    missed = [text for rows in measured.values() for text in missed_bars(rows)] if gate else []
    for text in missed:
        note(f"gate: {text}")
    return FOUND if missed else 0


def _prices(model: str, cached: float, write: float, block: int | None) -> Prices:
    read_builder(model, ())  # an unknown model says so with its nearest names
    if block is not None and block < 0:
        raise InputError(f"--cache-block {block}: expected 0 or more tokens")
    return Prices(
        cached=cached, write=write, block_tokens=model_info(model).cache_block_tokens if block is None else block
    )


def _measure(
    data: Sequence[str], model: str, budgets: Sequence[str], prices: Prices, tell: Callable[[str], None]
) -> tuple[int, list[CostRow]]:
    """The dynamic budget, and the rows at it."""
    builder = read_builder(model, budgets)
    builders = {OURS: builder, OURS_WITHOUT_RECALL: read_builder(model, (*budgets, "recall_fraction=0"))}
    builders |= policy_builders(builder, prices)
    return builder.budgets.dynamic_tokens, measure(data, builders, prices=prices, tell=tell)


def _print_tables(dynamic_tokens: int, measured: Sequence[CostRow]) -> None:
    columns: dict[str, Callable[[CostRow], str]] = {
        "raw": lambda row: f"{row.raw_ratio:.2f}",
        "priced": lambda row: f"{row.priced_ratio:.2f}",
        "best": lambda row: f"{row.hindsight_ratio:.2f}",
        "cached": lambda row: f"{row.prefix_reuse:.0%}",
        "cuts": lambda row: f"{row.compactions:,}",
        "over": lambda row: f"{row.over_budget:.0%}",
        "bad": lambda row: f"{row.invalid:.0%}",
        "task": lambda row: f"{row.task_reachable:.0%}",
    }
    console = table_console()
    for rows in grouped(measured).values():
        table = grid("", *columns, numbers=list(columns))
        for row in rows:
            table.add_row(row.strategy, *(show(row) for show in columns.values()))
        console.print(title(rows, dynamic_tokens))
        console.print(table)
    console.print("raw, priced: tokens to sending everything, plain and with the cached prefix at its price;\n"
                  "best: priced, to the best masking in hindsight; cached: tokens that the cache served;\n"
                  "cuts: compactions; over: calls over budget; bad: calls a provider would refuse;\n"
                  "task: runs that keep their task at every call, shown or by reference")  # fmt: skip


STRATEGIES = rankings_on("talk")
MOST_BUDGET_TOKENS = 1_000_000


@click.command()
@click.argument("data", type=click.Path())
@click.option("--budgets", default="500,900,2000,4000", show_default=True, metavar="N,…", help="Tokens for recall.")
@click.option(
    "--strategy", default="heuristic", show_default=True, metavar="NAME", shell_complete=completer(tuple(STRATEGIES)),
    help="How originals are ranked: recency, heuristic, semantic, hybrid.",
)  # fmt: skip
@click.option("--defaults", is_flag=True, help="The budgets are of the whole window, recall has its default share.")
@click.option("--held-out", is_flag=True, help="Of a folder of chats: the half that nothing was tuned by.")
@click.option("--write", type=click.Path(), metavar="FILE", help="Put all tables between the markers of this Markdown.")
@common
def recall(
    data: str,
    budgets: str,
    strategy: str,
    defaults: bool,
    held_out: bool,
    write: str | None,
    as_json: bool,
    store: str,
    tenant: str,
) -> None:
    """Measure recall on DATA: a LoCoMo file with questions, or a folder of chats with probing questions (BEAM).

    For each question: the share of the turns that answer it which the envelope shows word for word, at several
    budgets: of recall alone, or with --defaults of the window. Nothing is stored. --write measures every
    strategy and every variant, which takes minutes. Of a folder, ours stands beside rankings that need no
    judgement and the most that fits; its second half is played with --held-out alone, and by --write.
    """

    budgets_tokens = _budgets(budgets)
    if is_chat_folder(Path(data)):
        _recall_chats(Path(data), budgets_tokens, write, held_out=held_out, as_json=as_json)
        return
    if held_out:
        raise InputError("--held-out: only a folder of chats has a half that is held out")
    if strategy not in STRATEGIES:
        raise InputError(f"--strategy {strategy}: no such strategy; one of: {'; '.join(STRATEGIES)}")
    ranking = STRATEGIES[strategy]
    defaults = defaults or ranking.defaults
    if write is not None:
        check_markers(Path(write), *BLOCKS)
    with progress("recall", shown=not as_json) as tell:
        if write is not None:
            write_recall_tables(Path(write), Path(data), budgets_tokens, tell)
            return
        rows = measure_recall(data, selector=ranking.make, budgets_tokens=budgets_tokens, defaults=defaults, tell=tell)
    if as_json:
        for row in rows:
            print_json({"suite": "recall", "strategy": strategy, "defaults": defaults, **row._asdict()})
    else:
        _print_table(rows)


def _recall_chats(
    folder: Path, budgets_tokens: tuple[int, ...], write: str | None, *, held_out: bool, as_json: bool
) -> None:
    with progress("recall", shown=not as_json) as tell:
        if write is not None:
            write_chats_table(Path(write), folder, tell)
            return
        half: Half = "held-out" if held_out else "development"
        if held_out:
            click.echo("ctxsteward: the held-out half; whoever tunes by it has none left", err=True)
        chats = read_chats(folder, half)
        rows = {
            name: measure_chats(
                chats, ranking.make, budgets_tokens=budgets_tokens, defaults=ranking.defaults, tell=tell
            )
            for name, ranking in rankings_on("chats").items()
        }
    if as_json:
        for name, found in rows.items():
            for row in found:
                print_json({"suite": "recall", "half": half, "strategy": name, **row._asdict()})
        return
    columns = [f"{role}, {size:,}" for role in ("user", "assistant") for size in budgets_tokens]
    whole, passages = (grid(f"{half} half, {what}", *columns, numbers=columns)
                       for what in ("evidence shown, %", "by the passage that answers, %"))  # fmt: skip
    for name, found in rows.items():
        whole.add_row(name, *(f"{row.user:.1f}" for row in found), *(f"{row.assistant:.1f}" for row in found))
        shares = (*(row.user_passages for row in found), *(row.assistant_passages for row in found))
        passages.add_row(name, *(f"{share:.1f}" for share in shares))
    table_console().print(whole)
    table_console().print(passages)


def _budgets(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(
        part.isascii() and part.isdecimal() and len(part) < 8 and 0 < int(part) <= MOST_BUDGET_TOKENS for part in parts
    ):
        raise InputError(
            f"--budgets {text:.60}: not numbers of tokens from 1 to {MOST_BUDGET_TOKENS:,}, such as 500,900"
        )
    return tuple(map(int, parts))


def _print_table(rows: list[RecallRow]) -> None:
    budgets = [f"{row.budget_tokens:,}" for row in rows]
    table = grid(f"{rows[0].questions:,} questions", *budgets, numbers=budgets)
    table.add_row("evidence shown, %", *(f"{row.mean:.1f}" for row in rows))
    table.add_row("all of it shown, %", *(f"{row.all_shown:.1f}" for row in rows))
    table.add_row("reachable, %", *(f"{row.reachable:.1f}" for row in rows))
    for name in rows[0].by_category:
        table.add_row(f"shown, {name}, %", *(f"{row.by_category[name]:.1f}" for row in rows))
    table.add_row("tokens recalled", *(f"{row.context_tokens_mean:,.0f}" for row in rows))
    table.add_row("ranking p50, ms of CPU", *(f"{row.select_ms_p50:.2f}" for row in rows))
    table_console().print(table)


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
        tables = ((ADVICE_HEAD, ADVICE_HEAD[2:-1], advice_cells(rows)),
                  (PRACTICES_HEAD, PRACTICES_HEAD[2:], practice_cells(practices)))  # fmt: skip
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
    "--write", type=click.Path(path_type=Path), metavar="FILE",
    help="Put the table between the markers of this Markdown.",
)  # fmt: skip
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
