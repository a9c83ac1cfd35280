"""``ctxsteward evals compare`` compares two runs; ``merge`` joins the parts of one run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from ctxsteward.evals import result_history as history
from ctxsteward.evals.documents import check_output
from ctxsteward.evals.result_formats import (
    REPEATS,
    compared_runs,
    comparison,
    delta,
    deviations,
    figure,
    figure_cells,
    gate_change,
    has_repeats,
    interval,
    judging_lines,
    junit,
    markdown,
    nothing_scored,
    summary,
    tally,
    wholly_unscored,
)
from ctxsteward.evals.result_history import ResultComparison, append, compare_runs
from ctxsteward.evals.suite_files.run_record import RunHead, merged, merged_result
from ctxsteward.evals.suites import gates
from ctxsteward.evals.suites.catalogue import NAMES, suite_named
from ctxsteward.evals.suites.gates import Gates, shipped_gates
from ctxsteward.schemas import InputError
from ctxsteward.schemas.eval_result import EvalResult, GateResult, Verdict

from ..pages.evals import page
from ..terminal.options import completer, json_option
from ..terminal.output import note, print_document, print_json, table_console, write_text
from ..terminal.tables import grid, shown
from .own_suites import SHIPPED_GATES

MISSES = 3
_COUNT = re.compile(r" \([\d,]+\)$")
VERDICT_COLOURS: dict[Verdict, str] = {
    "passed": "green",
    "failed": "bold red",
    "undecided": "yellow",
    "unscored": "yellow",
}


def result_table(result: EvalResult, earlier: EvalResult | None) -> Table:
    """Return a table of figures with intervals and gates; a rate over repeated things has a second row, each once."""
    more = ((REPEATS,) if has_repeats(result) else ()) + (("since",) if earlier else ())
    table = grid(result.suite, "value", "95 %", "gate", *more, numbers=("value",))
    for metric in result.metrics:
        gates = [gate for gate in result.gates if gate.metric == metric.name]
        cells = [deviations(metric)] if has_repeats(result) else []
        cells += [delta(metric, earlier)] if earlier else []
        table.add_row(metric.name, figure(metric, metric.value), interval(metric), _gate_text(gates), *cells)
        if metric.distinct is not None:
            once = f"{metric.distinct:,} distinct things"
            table.add_row("  each once", figure(metric, metric.distinct_value), once, "", *("" for _ in more))
    return table


def miss_lines(result: EvalResult) -> list[Text]:
    """Return lines that say what failed and where, with at most `MISSES` misses for each gate."""
    lines = [shown(f"  {id} broke off: {error}", style="red") for id, error in result.errors.items()]
    unscored: dict[str, list[str]] = {}
    for gate in result.gates:
        if gate.verdict == "unscored":
            unscored.setdefault(_COUNT.sub("", gate.why), []).append(gate.metric)
    for why, metrics in unscored.items():  # one line for each reason
        lines.append(shown(f"  {', '.join(metrics)}: {why}", style=VERDICT_COLOURS["unscored"]))
    for gate in result.gates:
        if gate.verdict in ("passed", "unscored"):
            continue
        lines.append(shown(f"  {gate.metric}: {gate.why}", style=VERDICT_COLOURS[gate.verdict]))
        missed = [miss for miss in result.misses if miss.metric == gate.metric][:MISSES]
        lines += [shown(f"    {miss.scenario}, {miss.at}: {miss.why}") for miss in missed]
    return lines


def _gate_text(gates: Sequence[GateResult]) -> Text:
    text = Text()
    for gate in gates:
        verdict = {"passed": "ok", "failed": "FAILED"}.get(gate.verdict, gate.verdict)
        text.append(f"{verdict} {gate.rule}", style=VERDICT_COLOURS[gate.verdict])
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteOutputs:
    """Files into which results are written; None for a file that is not wanted."""

    junit: Path | None
    markdown: Path | None
    html: Path | None
    history: Path | None

    def check(self) -> None:
        """Raise `InputError` for a file that cannot be written, before the work of a long run is lost."""
        for option, path in (("--junit", self.junit), ("--markdown", self.markdown), ("--html", self.html)):
            if path is not None:
                check_output(option, path)
        if self.history is not None:
            check_output("--history", self.history, makes_folder=True)

    def recorded(self) -> Sequence[EvalResult]:
        """Return the results in the history file, oldest first."""
        return history.read(self.history) if self.history else ()


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the files of `SuiteOutputs` to a command as options."""
    file = click.Path(path_type=Path)
    for option in (  # the option that is added last comes first in the help
        click.option(
            "--history",
            type=file,
            metavar="FILE",
            help="Append to this file (JSON lines), and compare with the last run that had the same settings.",
        ),
        click.option("--html", type=file, metavar="FILE", help="Write one self-contained page with plots."),
        click.option("--markdown", type=file, metavar="FILE", help="Write the results as Markdown."),
        click.option("--junit", type=file, metavar="FILE", help="Write the results as JUnit XML."),
    ):
        command = option(command)
    return command


def report(results: Sequence[EvalResult], outputs: SuiteOutputs, *, as_json: bool) -> None:
    """Print finished results, and write them into files."""
    earlier = outputs.recorded()
    for result in results:
        print_result(result, earlier, as_json)
    write_results(outputs, results, earlier)
    conclude(results)


def print_result(result: EvalResult, earlier: Sequence[EvalResult], as_json: bool) -> None:
    if as_json:
        print_document("eval_result", result.model_dump(mode="json"))
        return

    console = table_console()
    if why := wholly_unscored(result):
        console.print(shown(f"{result.suite}: {why}", style="yellow"))
        return
    console.print(result_table(result, history.before(earlier, result)))
    for line in miss_lines(result):
        console.print(line)
    for text in judging_lines(result):
        console.print(shown(f"  {text}"))
    if differs := history.incomparable(earlier, result):
        note(f"{result.suite}: not compared; the last run differs in {'; '.join(differs)}")


def exit_by(results: Sequence[EvalResult]) -> None:
    """Exit with 1 if a gate fails the run, a scenario broke off, or no figure could be scored."""
    if nothing_scored(results):
        what = "gate" if any(result.gates for result in results) else "figure"
        note(f"not one {what} could be scored: this run says nothing of the subject")
    undecided = [gate for result in results for gate in result.gates if gate.verdict == "undecided" and gate.fails_run]
    if undecided:
        note(
            f"{len(undecided)} undecided {'gate fails' if len(undecided) == 1 else 'gates fail'} this run: play more "
            "scenarios, make it a point gate (`scenarios: N`), or write `allow_undecided: true` in the gates file"
        )
    if nothing_scored(results) or not all(result.passed for result in results):
        raise SystemExit(1)


def conclude(results: Sequence[EvalResult]) -> None:
    scenarios, turns = sum(each.scenarios for each in results), sum(each.turns for each in results)
    gates = [gate for each in results for gate in each.gates]
    held = tally(gates) if gates else "no gates (--gate holds them)"
    if broken := sum(len(each.errors) for each in results):
        held += f"; {broken} {'scenario' if broken == 1 else 'scenarios'} broke off"
    long = sum(each.long_scenarios for each in results)
    seconds = sum(each.cpu_seconds for each in results)
    many = "scenario" if scenarios == 1 else "scenarios"
    note(f"{scenarios:,} {many}, {long} of 200 and more turns, {turns:,} turns, {seconds:.0f} s of CPU; {held}")


def write_results(outputs: SuiteOutputs, results: Sequence[EvalResult], earlier: Sequence[EvalResult]) -> None:
    """Write every file that can be written, then raise `InputError` for the first that could not."""
    writes: list[tuple[Path | None, Callable[[Path], None]]] = [
        (outputs.junit, lambda path: write_text(path, junit(results))),
        (outputs.markdown, lambda path: write_text(path, markdown(results, earlier))),
        (outputs.html, lambda path: write_text(path, page(results, earlier))),
        (outputs.history, lambda path: append(path, results)),
    ]
    failed: list[InputError] = []
    for path, write in writes:
        try:
            if path is not None:
                write(path)
        except InputError as error:
            failed.append(error)
    if failed:
        raise failed[0]


COLOURS = {"better": "green", "worse": "bold red", "": ""}


def comparison_table(compared: ResultComparison) -> Table:
    """Return a table with a row for each figure."""
    numbers = ("before", "after", "differs", "p")
    table = grid(compared.suite, "before", "after", "differs", "95 %", "p", "", numbers=numbers)
    for cells in map(figure_cells, compared.figures):
        *values, between, p, surely = cells
        table.add_row(*values, between.replace(" to ", "…"), p, shown(surely, style=COLOURS[surely]))
    return table


def print_model_run(compared: ResultComparison, lines: Sequence[str], as_json: bool) -> None:
    """Print how a run with a model differs from one by rules; with --json on stderr, since stdout has the results."""
    console = table_console(stderr=as_json)
    console.print(comparison_table(compared))
    for line in (*compared_runs(compared), *lines):
        console.print(shown(f"  {line}"))
    console.print(shown(f"  {summary((compared,))}"))


def comparison_json(compared: ResultComparison) -> dict[str, Any]:
    """Return the comparison of one suite as JSON values."""

    def run(result: EvalResult) -> dict[str, Any]:
        names = ("product", "revision", "when", "scenarios", "reproduce")
        return {name: getattr(result, name) for name in names}

    figures = [{name: getattr(figure, name) for name in figure.__slots__} for figure in compared.figures]
    return {
        "suite": compared.suite,
        "split": compared.split,
        "before": run(compared.before),
        "after": run(compared.after),
        "scenario_ids": compared.scenario_ids,
        "broke_off": compared.broke_off,
        "meant": [each._asdict() for each in compared.meant],
        "figures": figures,
        "gates": [gate._asdict() for gate in compared.gates],
    }


def _metric_names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    names = {metric.name for name in NAMES for metric in suite_named(name).metrics}
    return sorted(name for name in names if name.startswith(incomplete))


def _settings(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the settings of the newest result in the first file, for tab completion."""
    file = ctx.params.get("before") or next(iter(ctx.args), "")  # arguments are unparsed while an option is unfinished
    try:
        *_, line = Path(file).read_text(encoding="utf-8").splitlines()
        names = json.loads(line)["setup"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [name for name in names if name.startswith(incomplete)]


@click.command()
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@click.option("--suite", metavar="NAME", shell_complete=completer(NAMES), help="Only this suite.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    shell_complete=_metric_names,
    help="Only this figure; repeatable.",
)
@click.option(
    "--meant",
    multiple=True,
    metavar="SETTING",
    shell_complete=_settings,
    help="Setting that differs on purpose, such as budgets.dynamic_tokens; repeatable.",
)
@click.option(
    "--markdown", type=click.Path(path_type=Path), metavar="FILE", help="Write the comparison as Markdown as well."
)
@json_option
def compare(
    before: str,
    after: str,
    suite: str | None,
    metrics: tuple[str, ...],
    meant: tuple[str, ...],
    markdown: Path | None,
    as_json: bool,
) -> None:
    """Compare two eval runs, metric by metric, over the scenarios that both played.

    BEFORE and AFTER are result files: the output of `evals run --json`, or a history. The newest result of each
    suite counts; FILE@WHICH selects a revision, or a time by its first characters.

    Both runs need the same split, budgets, model and summarizer. Product version and revision may differ.
    """
    if markdown is not None:
        check_output("--markdown", markdown)
    compared = compare_runs(before, after, suite=suite, metrics=metrics, meant=meant)
    if markdown is not None:
        write_text(markdown, comparison(compared))
    if as_json:
        for each in compared:
            print_json(comparison_json(each))
        return

    console = table_console()
    for each in compared:
        console.print(comparison_table(each))
        for line in (*compared_runs(each), *map(gate_change, each.gates)):
            console.print(shown(f"  {line}"))
    note(summary(compared))


def held(head: RunHead, asked: str | None) -> Gates:
    """Return the gates for one suite; none if `asked` is None."""
    if asked is None:
        return {}
    if asked != SHIPPED_GATES:
        return gates.load_gates(Path(asked)).get(head.name, {})
    return head.gates or shipped_gates().get(head.name, {})


@click.command()
@click.argument("records", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "--gate",
    "asked_gates",
    is_flag=False,
    flag_value=SHIPPED_GATES,
    metavar="[GATES]",
    help="Check the figures against the suites' own gates, or against those in your YAML file; put it after the files.",
)
@output_options
@json_option
def merge(
    records: tuple[Path, ...],
    asked_gates: str | None,
    junit: Path | None,
    markdown: Path | None,
    html: Path | None,
    history: Path | None,
    as_json: bool,
) -> None:
    """Merge the parts of a run: FILEs written by `evals run --shard N/M --resume FILE`.

    Together the files must cover every scenario of one run: same suite, settings, subject and version. Exit code 1:
    a gate failed or is undecided, or a scenario broke off.
    """
    outputs = SuiteOutputs(junit=junit, markdown=markdown, html=html, history=history)
    outputs.check()
    when = datetime.now(UTC).isoformat(timespec="seconds")
    runs = merged(records)
    if asked_gates is not None and not any(held(head, asked_gates) for head, _ in runs):
        names = ", ".join(head.name for head, _ in runs)
        raise InputError(f"--gate {asked_gates}: no gate over {names}; write some, or merge without --gate")
    try:
        results = [merged_result(run, held(run[0], asked_gates), when) for run in runs]
    except InputError as error:
        if asked_gates is None or asked_gates == SHIPPED_GATES or not str(error).startswith("gate over"):
            raise
        raise InputError(f"{asked_gates}: {error}") from error
    report(results, outputs, as_json=as_json)
    exit_by(results)
