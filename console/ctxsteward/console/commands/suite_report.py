"""What a run of suites prints and writes: tables, misses, reports, the comparison with the run before."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rich.table import Table
from rich.text import Text

from ctxsteward.evals import result_history as history
from ctxsteward.evals.result_formats import delta, figure, interval, junit, markdown, tally
from ctxsteward.evals.result_history import ResultDifference, append
from ctxsteward.schemas import EvalResult, GateResult, InputError, Verdict

from ..pages import page
from ..terminal import grid, note, print_document, shown, table_console

MISSES = 3
COLOURS: dict[Verdict, str] = {"passed": "green", "failed": "bold red", "undecided": "yellow", "unscored": "yellow"}


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


@dataclass(slots=True)
class RunReport:
    """Tells results as they come, beside those that were there before, and writes all of them at the end."""

    outputs: SuiteOutputs
    as_json: bool
    earlier: Sequence[EvalResult] = field(init=False)
    results: list[EvalResult] = field(default_factory=list)
    differences: dict[str, ResultDifference] = field(default_factory=dict)
    incomparable: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.earlier = history.read(self.outputs.history) if self.outputs.history else ()

    def add(self, result: EvalResult) -> None:
        """Tell one result."""
        name = result.suite
        earlier = history.before(self.earlier, result)
        if earlier is not None:
            self.differences[name] = history.difference(result, earlier)
        elif differs := history.incomparable(self.earlier, result):
            self.incomparable[name] = differs
        self.results.append(result)
        _print(result, self.differences.get(name), self.as_json)
        if name in self.incomparable:
            note(f"{name}: not compared; the last run differs in {'; '.join(self.incomparable[name])}")

    def write(self) -> None:
        """Write every file that was asked for."""
        known = (*self.earlier, *self.results)
        _write(self.outputs, self.results, self.differences, self.incomparable, known)

    def conclude(self) -> None:
        """One line about all of them, for people."""
        if not self.as_json:
            _conclude(self.results)


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
