"""What the suites are, as plain values: names, figures, gates.

Tables of eval suites and their results for people; no numbers are made here.

A run of suites from the command line: played over processes, judged, written, compared with the run before.

Raises `InputError` before anything is played for whatever was asked wrongly.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from ctxsteward.evals.result_formats import delta, figure, interval
from ctxsteward.evals.result_history import ResultDifference
from ctxsteward.schemas.eval_result import EvalResult, GateResult

from .options import read_budgets, read_profile, unknown_model
from .output import note, print_document, progress, table_console
from .tables import grid, shown

if TYPE_CHECKING:
    from ctxsteward.evals.result_history import ResultDifference
    from ctxsteward.evals.suites.gates import Gates
    from ctxsteward.evals.suites.kit.suite import Draw, Setup, Split
    from ctxsteward.schemas.eval_result import EvalResult


def describe_suites() -> list[dict[str, Any]]:
    """Each suite with its figures and shipped gates, as JSON values."""
    from ctxsteward.evals.suites.catalogue import NAMES, suite_named
    from ctxsteward.evals.suites.gates import shipped_gates

    gates = shipped_gates()
    return [
        {
            "suite": name,
            "about": suite_named(name).about,
            "scenarios": suite_named(name).scenarios,
            "metrics": {metric.name: metric.about for metric in suite_named(name).metrics},
            "gates": {metric: [str(gate) for gate in each] for metric, each in gates.get(name, {}).items()},
        }
        for name in NAMES
    ]


MISSES = 3


def suites_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """A row a figure, below its suite."""
    table = grid("suite, figures", "gate")
    for row in rows:
        table.add_row(Text(f"{row['suite']}  ({row['scenarios']} scenarios)", style="bold"), "")
        table.add_row(shown(f"  {row['about']}", style="dim"), "")
        for name in row["metrics"]:
            table.add_row(f"  {name}", ", ".join(row["gates"].get(name, ())))
    return table


def result_table(result: EvalResult, difference: ResultDifference | None) -> Table:
    """The figures of one result with intervals and gates."""
    table = grid(result.suite, "value", "95 %", "gate", *(("since",) if difference else ()), numbers=("value",))
    was = {one.metric: one.before for one in difference.changes} if difference else {}
    for metric in result.metrics:
        gates = [gate for gate in result.gates if gate.metric == metric.name]
        before = was.get(metric.name)
        since = [delta(metric, before) if before is not None else ""] if difference else []
        table.add_row(metric.name, figure(metric, metric.value), interval(metric), _gate_text(gates), *since)
    return table


def miss_lines(result: EvalResult) -> list[Text]:
    """What failed, and where: the first few of each gate."""
    lines = [shown(f"  {id} broke off: {error}", style="red") for id, error in result.errors.items()]
    for gate in result.gates:
        if gate.passed:
            continue
        lines.append(shown(f"  {gate.metric}: {gate.why}", style="red"))
        missed = [miss for miss in result.misses if miss.metric == gate.metric][:MISSES]
        lines += [shown(f"    {miss.scenario}, {miss.at}: {miss.why}") for miss in missed]
    return lines


def _gate_text(gates: Sequence[GateResult]) -> Text:
    text = Text()
    for gate in gates:
        text.append(f"{'ok' if gate.passed else 'FAILED'} {gate.rule}", style="green" if gate.passed else "bold red")
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
        from ctxsteward.schemas import InputError

        for name, path in (("junit", self.junit), ("markdown", self.markdown), ("html", self.html)):
            if path is not None and (path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK)):
                raise InputError(f"--{name} {path}: not a file in a folder that exists and may be written")
        if self.history is not None:  # its folder is made
            there = next(folder for folder in self.history.absolute().parents if os.path.lexists(folder))
            if not there.is_dir() or not os.access(there, os.W_OK):
                raise InputError(f"--history {self.history}: {there} is no folder that may be written")


def setup(model: str | None, budgets: Sequence[str], summarizer: str, profile: str | None) -> Setup:
    """What is under test; raises `InputError` for names that are none."""
    from ctxsteward.envelope import Budgets
    from ctxsteward.evals.suites.kit.suite import Setup
    from ctxsteward.schemas import UnknownModel

    governed = read_profile(profile)
    made = Setup(
        model=model, budgets=read_budgets(budgets) if budgets else Budgets(), summarizer=summarizer,
        profile=governed,
    )  # fmt: skip
    try:
        made.builder()
    except UnknownModel as error:
        raise unknown_model(model or "") from error
    return made


def run_suites(asked: SuiteOptions, outputs: SuiteOutputs, *, as_json: bool) -> list[EvalResult]:
    """Run what was asked, write and print what came of it."""
    from ctxsteward.evals import result_history as history
    from ctxsteward.evals.suites import catalogue

    names = catalogue.NAMES if asked.suite == "all" else (asked.suite,)
    for name in names:
        catalogue.suite_named(name)  # each is there, with what it needs, before any is played
    gates = _gates(asked.gates, names)
    draws = {name: drawn_for(asked, name) for name in names}
    draws = {name: each for name, each in draws.items() if each}
    outputs.check()
    known = history.read(outputs.history) if outputs.history else ()
    results: list[EvalResult] = []
    differences: dict[str, ResultDifference] = {}
    with progress("evals", shown=not as_json) as tell:
        for name, each in draws.items():
            result = _played(name, each, asked, gates.get(name, {}), tell)
            earlier = history.before(known, result)
            if earlier is not None:
                differences[name] = history.difference(result, earlier)
            results.append(result)
            _print(result, differences.get(name), as_json)
    _write(outputs, results, differences, (*known, *results))
    if not as_json:
        _conclude(results)
    return results


def drawn_for(asked: SuiteOptions, name: str) -> tuple[Draw, ...]:
    """The scenarios of one suite that were asked for; raises `InputError` for an id that is none of them."""
    from ctxsteward.evals.suites.catalogue import suite_named
    from ctxsteward.evals.suites.kit.suite import Draw, drawn
    from ctxsteward.schemas import InputError

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
    from ctxsteward.evals.suites import catalogue, gates
    from ctxsteward.schemas import InputError

    if asked is None:
        return {}
    found = gates.shipped_gates() if asked == "shipped" else gates.load_gates(Path(asked))
    try:
        for name, each in found.items():
            if name not in catalogue.NAMES:
                catalogue.suite_named(name)
            elif name in names:
                gates.check(each, name, (metric.name for metric in catalogue.suite_named(name).metrics))
    except InputError as error:
        raise InputError(f"{asked}: {error}") from error
    return found


def _played(
    name: str, draws: Sequence[Draw], asked: SuiteOptions, gates: Gates, tell: Callable[[str], None]
) -> EvalResult:
    from datetime import UTC, datetime

    from ctxsteward.evals.suites.results import played

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
    failed = sum(not gate.passed for gate in gates)
    held = f"{len(gates) - failed} of {len(gates)} gates passed" if gates else "no gates (--gate holds them)"
    long = sum(one.long_scenarios for one in results)
    seconds = sum(one.cpu_seconds for one in results)
    many = "scenario" if scenarios == 1 else "scenarios"
    note(f"{scenarios:,} {many}, {long} of 200 and more turns, {turns:,} turns, {seconds:.0f} s of CPU; {held}")


def _write(
    outputs: SuiteOutputs,
    results: Sequence[EvalResult],
    differences: Mapping[str, ResultDifference],
    known: Sequence[EvalResult],
) -> None:
    """Write every file that can be; raises `InputError` for the first that cannot."""
    from ctxsteward.evals.result_formats import junit, markdown
    from ctxsteward.evals.result_history import append
    from ctxsteward.schemas import InputError

    from .evals_page import page

    texts: list[tuple[Path | None, Callable[[], str]]] = [
        (outputs.junit, lambda: junit(results)),
        (outputs.markdown, lambda: markdown(results, differences)),
        (outputs.html, lambda: page(results, differences, known)),
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
    from ctxsteward.schemas import InputError

    try:
        path.write_text(text(), encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
