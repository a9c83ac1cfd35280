"""A run of suites from the command line: played over processes, judged, written, compared with the run before.

Raises `InputError` before anything is played for whatever was asked wrongly.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .options import read_budgets, read_profile, unknown_model
from .output import note, print_document, progress, table_console

if TYPE_CHECKING:
    from ctxsteward.evals.reports.history import Difference
    from ctxsteward.evals.suites.gates import Gates
    from ctxsteward.evals.suites.scenario import Draw, Split
    from ctxsteward.evals.suites.setup import Setup
    from ctxsteward.schemas.eval_result import EvalResult

FULL = 4
"""Times the scenarios of CI."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
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
class Outputs:
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
    from ctxsteward.evals.suites.setup import Setup
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


def run_suites(asked: Asked, outputs: Outputs, *, as_json: bool) -> list[EvalResult]:
    """Run what was asked, write and print what came of it."""
    from ctxsteward.evals.reports import history
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
    differences: dict[str, Difference] = {}
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


def drawn_for(asked: Asked, name: str) -> tuple[Draw, ...]:
    """The scenarios of one suite that were asked for; raises `InputError` for an id that is none of them."""
    from ctxsteward.evals.suites.catalogue import suite_named
    from ctxsteward.evals.suites.scenario import Draw, drawn
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
    found = gates.shipped() if asked == "shipped" else gates.load_gates(Path(asked))
    try:
        for name, each in found.items():
            if name not in catalogue.NAMES:
                catalogue.suite_named(name)
            elif name in names:
                gates.check(each, name, (metric.name for metric in catalogue.suite_named(name).metrics))
    except InputError as error:
        raise InputError(f"{asked}: {error}") from error
    return found


def _played(name: str, draws: Sequence[Draw], asked: Asked, gates: Gates, tell: Callable[[str], None]) -> EvalResult:
    from datetime import UTC, datetime

    from ctxsteward.evals.suites.results import played

    return played(
        name, draws, asked.setup, workers=asked.workers or os.cpu_count() or 1, gates=gates,
        when=datetime.now(UTC).isoformat(timespec="seconds"), revision=asked.revision,
        reproduce=_command(name, asked, len(draws)), tell=lambda done: tell(f"{name} {done} of {len(draws)}"),
    )  # fmt: skip


def _command(name: str, asked: Asked, count: int) -> str:
    which = [f"--only {id}" for id in asked.only if id.startswith(f"{name}/")]
    which = which or [f"--split {asked.split} --scenarios {count}"]
    return " ".join([f"ctxsteward evals run {name}", *which, *asked.given])


def _print(result: EvalResult, difference: Difference | None, as_json: bool) -> None:
    if as_json:
        print_document("eval_result", result.model_dump(mode="json"))
        return
    from .evals_tables import miss_lines, result_table

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
    outputs: Outputs, results: Sequence[EvalResult], differences: Mapping[str, Difference], known: Sequence[EvalResult]
) -> None:
    """Write every file that can be; raises `InputError` for the first that cannot."""
    from ctxsteward.evals.reports.history import append
    from ctxsteward.evals.reports.junit import junit
    from ctxsteward.evals.reports.markdown import markdown
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
