"""``ctxsteward evals list`` and ``run``: long-horizon suites, held to gates.

A run is played over processes, judged, written, and compared with the run before. Raises `InputError` before anything
is played for whatever was asked wrongly.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from ctxsteward.envelope import Budgets
from ctxsteward.evals import result_history as history
from ctxsteward.evals.intervals import promise_detects
from ctxsteward.evals.result_formats import delta, figure, interval, junit, markdown, tally
from ctxsteward.evals.result_history import ResultDifference, append
from ctxsteward.evals.suites import NAMES, Gates, catalogue, gates, played, shipped_gates, suite_named
from ctxsteward.evals.suites.kit import Draw, Setup, Split, drawn
from ctxsteward.schemas import EvalResult, GateResult, InputError, UnknownModel, Verdict

from ..pages import page
from ..terminal import (
    DEFAULT_MODEL,
    budget_option,
    common,
    completer,
    grid,
    model_option,
    note,
    print_document,
    print_json,
    progress,
    read_budgets,
    read_profile,
    shown,
    table_console,
    telemetry,
    unknown_model,
)


def describe_suites() -> list[dict[str, Any]]:
    """Each suite with its figures and shipped gates, as JSON values."""
    gates = shipped_gates()
    return [
        {
            "suite": name,
            "about": suite_named(name).about,
            "scenarios": suite_named(name).scenarios,
            "promise_detects": promise_detects(suite_named(name).scenarios),
            "metrics": {metric.name: metric.about for metric in suite_named(name).metrics},
            "gates": {metric: [str(gate) for gate in each] for metric, each in gates.get(name, {}).items()},
        }
        for name in NAMES
    ]


MISSES = 3
COLOURS: dict[Verdict, str] = {"passed": "green", "failed": "bold red", "undecided": "yellow", "unscored": "yellow"}


def suites_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """A row a figure, below its suite."""
    table = grid("suite, figures", "gate")
    for row in rows:
        rare = f"a promise notices a fault of {100 * row['promise_detects']:.0f} % of such"
        table.add_row(Text(f"{row['suite']}  ({row['scenarios']} scenarios: {rare})", style="bold"), "")
        table.add_row(shown(f"  {row['about']}", style="dim"), "")
        for name in row["metrics"]:
            table.add_row(f"  {name}", ", ".join(row["gates"].get(name, ())))
    return table


def result_table(result: EvalResult, difference: ResultDifference | None) -> Table:
    """The figures of one result with intervals and gates; a rate of things checked again and again has a second row."""
    table = grid(result.suite, "value", "95 %", "gate", *(("since",) if difference else ()), numbers=("value",))
    was = {one.metric: one.before for one in difference.changes} if difference else {}
    for metric in result.metrics:
        gates = [gate for gate in result.gates if gate.metric == metric.name]
        before = was.get(metric.name)
        since = [delta(metric, before) if before is not None else ""] if difference else []
        table.add_row(metric.name, figure(metric, metric.value), interval(metric), _gate_text(gates), *since)
        if metric.distinct is not None:
            once = f"{metric.distinct:,} distinct things"
            table.add_row(
                "  each once", figure(metric, metric.distinct_value), once, "", *(("",) if difference else ())
            )
    return table


def miss_lines(result: EvalResult) -> list[Text]:
    """What failed, and where: the first few of each gate."""
    lines = [shown(f"  {id} broke off: {error}", style="red") for id, error in result.errors.items()]
    for gate in result.gates:
        if gate.passed:
            continue
        lines.append(shown(f"  {gate.metric}: {gate.why}", style=COLOURS[gate.verdict]))
        missed = [miss for miss in result.misses if miss.metric == gate.metric][:MISSES]
        lines += [shown(f"    {miss.scenario}, {miss.at}: {miss.why}") for miss in missed]
    return lines


def _gate_text(gates: Sequence[GateResult]) -> Text:
    text = Text()
    for gate in gates:
        verdict = {"passed": "ok", "failed": "FAILED"}.get(gate.verdict, gate.verdict)
        text.append(f"{verdict} {gate.rule}", style=COLOURS[gate.verdict])
    return text


FULL = 4
"""Times the scenarios of CI."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteOptions:
    """What is to be run."""

    suite: str
    gates: str | None
    """None: no gates; ``shipped``, or a file."""
    split: Split
    scenarios: int | None
    full: bool
    only: tuple[str, ...]
    workers: int | None
    revision: str | None
    setup: Setup
    given: tuple[str, ...]
    """Options that shaped the setup, as they were written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteOutputs:
    """Files to write."""

    junit: Path | None
    markdown: Path | None
    html: Path | None
    history: Path | None

    def check(self) -> None:
        """Refuse places that cannot be written before an hour of work is lost."""
        for name, path in (("junit", self.junit), ("markdown", self.markdown), ("html", self.html)):
            if path is not None and (path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK)):
                raise InputError(f"--{name} {path}: not a file in a folder that exists and may be written")
        if self.history is not None:  # its folder is made
            there = next(folder for folder in self.history.absolute().parents if os.path.lexists(folder))
            if not there.is_dir() or not os.access(there, os.W_OK):
                raise InputError(f"--history {self.history}: {there} is no folder that may be written")


def read_setup(model: str | None, budgets: Sequence[str], summarizer: str, profile: str | None) -> Setup:
    """Model, budgets, summarizer and profile under test; raises `InputError` for an unknown name."""
    governed = read_profile(profile)
    setup = Setup(
        model=model, budgets=read_budgets(budgets) if budgets else Budgets(), summarizer=summarizer,
        profile=governed,
    )  # fmt: skip
    try:
        setup.builder()
    except UnknownModel as error:
        raise unknown_model(model or "") from error
    return setup


def run_suites(asked: SuiteOptions, outputs: SuiteOutputs, *, as_json: bool) -> list[EvalResult]:
    """Run what was asked, write and print what came of it."""
    names = catalogue.NAMES if asked.suite == "all" else (asked.suite,)
    for name in names:
        catalogue.suite_named(name)  # each is there, with what it needs, before any is played
    gates = _gates(asked.gates, names)
    draws = {name: drawn_for(asked, name) for name in names}
    draws = {name: each for name, each in draws.items() if each}
    outputs.check()
    earlier_results = history.read(outputs.history) if outputs.history else ()
    results: list[EvalResult] = []
    differences: dict[str, ResultDifference] = {}
    incomparable: dict[str, tuple[str, ...]] = {}
    with progress("evals", shown=not as_json) as tell:
        for name, each in draws.items():
            result = _played(name, each, asked, gates.get(name, {}), tell)
            earlier = history.before(earlier_results, result)
            if earlier is not None:
                differences[name] = history.difference(result, earlier)
            elif differs := history.incomparable(earlier_results, result):
                incomparable[name] = differs
            results.append(result)
            _print(result, differences.get(name), as_json)
            if name in incomparable:
                note(f"{name}: not compared; the last run differs in {'; '.join(incomparable[name])}")
    _write(outputs, results, differences, incomparable, (*earlier_results, *results))
    if not as_json:
        _conclude(results)
    return results


def drawn_for(asked: SuiteOptions, name: str) -> tuple[Draw, ...]:
    """The scenarios of one suite that were asked for; raises `InputError` for the id of another suite's scenario."""
    if asked.only:
        only = [Draw.parse(id) for id in asked.only]
        for draw in only:
            suite_named(draw.suite)
            if asked.suite not in ("all", draw.suite):
                raise InputError(f"--only {draw.id}: a scenario of {draw.suite}, not of {asked.suite}")
        return tuple(draw for draw in only if draw.suite == name)
    count = asked.scenarios or suite_named(name).scenarios * (FULL if asked.full else 1)
    return tuple(drawn(name, asked.split, count))


def _gates(asked: str | None, names: Sequence[str]) -> Mapping[str, Gates]:
    """The gates by suite; those of the suites that will run are over figures that these have."""
    if asked is None:
        return {}
    gates_by_suite = gates.shipped_gates() if asked == "shipped" else gates.load_gates(Path(asked))
    try:
        for name, each in gates_by_suite.items():
            if name not in catalogue.NAMES:
                catalogue.suite_named(name)
            elif name in names:
                gates.check(each, name, (metric.name for metric in catalogue.suite_named(name).metrics))
    except InputError as error:
        raise InputError(f"{asked}: {error}") from error
    return gates_by_suite


def _played(
    name: str, draws: Sequence[Draw], asked: SuiteOptions, gates: Gates, tell: Callable[[str], None]
) -> EvalResult:
    return played(
        name, draws, asked.setup, workers=asked.workers or os.cpu_count() or 1, gates=gates,
        when=datetime.now(UTC).isoformat(timespec="seconds"), revision=asked.revision,
        reproduce=_command(name, asked, len(draws)), tell=lambda done: tell(f"{name} {done} of {len(draws)}"),
    )  # fmt: skip


def _command(name: str, asked: SuiteOptions, count: int) -> str:
    which = [f"--only {id}" for id in asked.only if id.startswith(f"{name}/")]
    which = which or [f"--split {asked.split} --scenarios {count}"]
    return " ".join([f"ctxsteward evals run {name}", *which, *asked.given])


def _print(result: EvalResult, difference: ResultDifference | None, as_json: bool) -> None:
    if as_json:
        print_document("eval_result", result.model_dump(mode="json"))
        return

    console = table_console()
    console.print(result_table(result, difference))
    for line in miss_lines(result):
        console.print(line)


def _conclude(results: Sequence[EvalResult]) -> None:
    scenarios, turns = sum(one.scenarios for one in results), sum(one.turns for one in results)
    gates = [gate for one in results for gate in one.gates]
    held = tally(gates) if gates else "no gates (--gate holds them)"
    long = sum(one.long_scenarios for one in results)
    seconds = sum(one.cpu_seconds for one in results)
    many = "scenario" if scenarios == 1 else "scenarios"
    note(f"{scenarios:,} {many}, {long} of 200 and more turns, {turns:,} turns, {seconds:.0f} s of CPU; {held}")


def _write(
    outputs: SuiteOutputs,
    results: Sequence[EvalResult],
    differences: Mapping[str, ResultDifference],
    incomparable: Mapping[str, Sequence[str]],
    known: Sequence[EvalResult],
) -> None:
    """Write every file that can be; raises `InputError` for the first that cannot."""
    texts: list[tuple[Path | None, Callable[[], str]]] = [
        (outputs.junit, lambda: junit(results)),
        (outputs.markdown, lambda: markdown(results, differences, incomparable)),
        (outputs.html, lambda: page(results, differences, known, incomparable)),
    ]
    writes = [partial(_write_text, path, text) for path, text in texts if path is not None]
    if outputs.history:
        writes.append(partial(append, outputs.history, results))
    failed: list[InputError] = []
    for write in writes:
        try:
            write()
        except InputError as error:
            failed.append(error)
    if failed:
        raise failed[0]


def _write_text(path: Path, text: Callable[[], str]) -> None:
    try:
        path.write_text(text(), encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error


ALL = "all"
SHIPPED_GATES = "shipped"


@click.command("list")
@common
def list_suites(as_json: bool, store: str, tenant: str) -> None:
    """List the suites with their figures and the shipped gates."""
    rows = describe_suites()
    if as_json:
        for row in rows:
            print_json(row)
    else:
        table_console().print(suites_table(rows))


@click.command()
@click.argument("suite", shell_complete=completer((*NAMES, ALL)))
@click.option(
    "--gate", "gates", is_flag=False, flag_value=SHIPPED_GATES, metavar="[FILE]",
    help="Hold the figures to the shipped gates, or to those of a YAML file of yours; goes behind SUITE.",
)  # fmt: skip
@click.option(
    "--split", type=click.Choice(("ci", "docs")), default="ci", show_default=True,
    help="Which seeds: docs are those that figures in the docs come from.",
)  # fmt: skip
@click.option("--scenarios", type=click.IntRange(1, 10_000), metavar="N", help="Of each suite; default: what CI runs.")
@click.option("--full", is_flag=True, help="Four times as many scenarios.")
@click.option("--only", multiple=True, metavar="ID", help="Just this scenario, as a result names it; repeatable.")
@click.option("--workers", type=click.IntRange(1, 256), metavar="N", help="Processes; default: one a core.")
@model_option(f"Model whose tokens and window count; default: tokens of {DEFAULT_MODEL}, no window.", default=None)
@budget_option("A field of Budgets; repeatable. What is not given is as each suite needs it.")
@click.option("--summarizer", default="extractive", show_default=True, metavar="NAME", help="By its installed name.")
@click.option("--profile", type=click.Path(), metavar="FILE", help="Profile (YAML) of the head in every scenario.")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write the results as JUnit XML.")
@click.option("--markdown", type=click.Path(path_type=Path), metavar="FILE", help="Write the results as Markdown.")
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="FILE", help="Write one self-contained page with plots."
)
@click.option(
    "--history", type=click.Path(path_type=Path), metavar="FILE",
    help="Append to this file (JSON lines), and compare with the last run that asked the same.",
)  # fmt: skip
@click.option("--revision", metavar="TEXT", help="Of your repository, to keep with the results.")
@telemetry
@common
def run(
    suite: str, gates: str | None, split: str, scenarios: int | None, full: bool, only: tuple[str, ...],
    workers: int | None, model: str | None, budgets: tuple[str, ...], summarizer: str, profile: str | None,
    junit: Path | None, markdown: Path | None, html: Path | None, history: Path | None, revision: str | None,
    as_json: bool, store: str, tenant: str,
) -> None:  # fmt: skip
    """Play the scenarios of SUITE through the real builder, and judge them.

    `ctxsteward evals list` names the suites; `all` plays each of them.

    No model, key or network is needed. Exit 1 where a gate fails or a scenario breaks off. A gate that so few
    scenarios cannot decide is told as undecided, and fails nothing.
    """
    asked = SuiteOptions(
        suite=suite, gates=gates, split="docs" if split == "docs" else "ci", scenarios=scenarios, full=full, only=only,
        workers=workers, revision=revision, setup=read_setup(model, budgets, summarizer, profile),
        given=_given(model, budgets, summarizer, profile),
    )  # fmt: skip
    outputs = SuiteOutputs(junit=junit, markdown=markdown, html=html, history=history)
    results = run_suites(asked, outputs, as_json=as_json)
    if not all(result.passed for result in results):
        raise SystemExit(1)


def _given(model: str | None, budgets: tuple[str, ...], summarizer: str, profile: str | None) -> tuple[str, ...]:
    """The options that a command to make a result again repeats."""
    options = [f"--budget {budget}" for budget in budgets]
    if model is not None:
        options.append(f"--model {model}")
    if summarizer != "extractive":
        options.append(f"--summarizer {summarizer}")
    if profile is not None:
        options.append(f"--profile {profile}")
    return tuple(options)
