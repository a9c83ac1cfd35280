"""``ctxsteward evals run``: play long-horizon suites, and hold them to gates.

A run plays scenarios in several processes, judges them, writes the results, and compares them with the previous run.
Wrong options raise `InputError` before anything is played.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import click

from ctxsteward.envelope import Budgets
from ctxsteward.evals import result_history as history
from ctxsteward.evals.model_runs import MEANT, ModelRun, price_of, run_model
from ctxsteward.evals.phrasings import SPLITS, Split
from ctxsteward.evals.subjects.registry import BASELINES, OURS, SUBJECTS, subject_named, try_out
from ctxsteward.evals.suite_files.file_scenarios import play_job
from ctxsteward.evals.suite_files.run_record import RunHead, RunRecord, Shard, run_head
from ctxsteward.evals.suite_files.suite_reader import FileSuite
from ctxsteward.evals.suites import catalogue, gates
from ctxsteward.evals.suites.catalogue import NAMES, suite_named
from ctxsteward.evals.suites.gates import Gates
from ctxsteward.evals.suites.kit import EvalSuite
from ctxsteward.evals.suites.kit.model_judges import PROMPT_VERSION, ModelJudge, judge_model
from ctxsteward.evals.suites.kit.suite import Draw, ScenarioResult, Setup, drawn, refuse_sealed
from ctxsteward.evals.suites.results import Job, play_one, played
from ctxsteward.schemas import InputError, UnknownModel
from ctxsteward.schemas.eval_result import EvalResult

from ..terminal.options import (
    DEFAULT_MODEL,
    budget_option,
    completer,
    json_option,
    model_option,
    read_budgets,
    read_profile,
    telemetry,
    unknown_model,
)
from ..terminal.output import note, progress
from .own_suites import SHIPPED_GATES, KeptRun, is_suite_file, judge_panel, own_suite, read_shard
from .results import (
    SuiteOutputs,
    conclude,
    exit_by,
    output_options,
    print_model_run,
    print_result,
    write_results,
)

ALL = "all"
FULL = 4
"""Factor of `--full` for the number of scenarios."""
JUDGE_KEY_VARIABLE = "CTXSTEWARD_JUDGE_KEY"
"""Environment variable with the key of the judging endpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteOptions:
    """Options of a run."""

    suite: str
    gates: str | None
    """``shipped``, or a file of gates, or None to hold no gates."""
    split: Split
    scenarios: int | None
    full: bool
    only: tuple[str, ...]
    workers: int | None
    revision: str | None
    setup: Setup
    given: tuple[str, ...]
    """Options that shaped the setup, as the user wrote them."""
    judges: tuple[ModelJudge, ...] = ()
    shard: Shard | None = None
    resume: Path | None = None
    model_run: ModelRun | None = None
    """A model that summarizes and selects; each suite is played without it first."""


def read_setup(
    model: str | None, budgets: Sequence[str], summarizer: str, profile: str | None, subject: str = OURS
) -> Setup:
    """Return a setup of subject, model, budgets, summarizer and profile; raise `InputError` for an unknown name."""
    governed = read_profile(profile)
    setup = Setup(
        subject=subject_named(subject),
        model=model,
        budgets=read_budgets(budgets) if budgets else Budgets(),
        summarizer=summarizer,
        profile=governed,
    )
    if setup.subject is not None and subject not in BASELINES:
        try_out(setup.subject)
    try:
        setup.builder()
    except UnknownModel as error:
        raise unknown_model(error) from error
    return setup


def run_suites(asked: SuiteOptions, outputs: SuiteOutputs, *, as_json: bool) -> list[EvalResult]:
    """Run the chosen suites, print and write their results."""
    chosen = [one for one in chosen_suites(asked) if one.jobs]
    outputs.check()
    record = RunRecord.open(asked.resume, [each.head(asked) for each in chosen]) if asked.resume else None
    run = KeptRun(asked.shard, record)
    earlier = outputs.recorded()
    results: list[EvalResult] = []
    with progress("evals", shown=not as_json) as tell:
        for one in chosen:
            jobs = run.part(one.jobs)
            if not jobs:
                continue
            plain = _played(one, jobs, run, asked, tell) if asked.model_run else None
            with_model = asked
            if asked.model_run is not None:  # one process, so that the bound on dollars counts all calls
                with_model = replace(asked, setup=asked.model_run.setup(asked.setup, one.suite.name), workers=1)
            result = _played(one, jobs, run, with_model, tell)
            results.append(result)
            print_result(result, earlier, as_json)
            if plain is not None and asked.model_run is not None:
                compared = history.compare(plain, result, meant=MEANT)
                print_model_run(compared, asked.model_run.told(one.suite.name), as_json)
    if not results:
        parts = f"part {asked.shard.number} of {asked.shard.of}" if asked.shard else "this run"
        raise InputError(f"{asked.suite}: {parts} has no scenario; ask for fewer parts or more scenarios")
    write_results(outputs, results, earlier)
    conclude(results)
    return results


@dataclass(frozen=True, slots=True)
class ChosenSuite:
    """A suite to run, with all of its chosen scenarios, and its gates."""

    suite: EvalSuite
    jobs: Sequence[Job]
    gates: Gates
    file: FileSuite | None = None
    """File of the suite; None for a shipped suite."""

    def head(self, asked: SuiteOptions) -> RunHead:
        """Return the head of this suite's run record."""
        content, gates = (self.file.digest, self.file.gates) if self.file else ("", {})
        return run_head(
            self.suite,
            [job.id for job in self.jobs],
            asked.setup,
            split=self.jobs[0].split,
            content=content,
            gates=gates,
            revision=asked.revision,
            reproduce=_command(self, asked),
        )


def chosen_suites(asked: SuiteOptions) -> list[ChosenSuite]:
    """Return the suites to run; raise `InputError` before any is played if one is unknown or lacks what it needs."""
    if is_suite_file(asked.suite):
        if asked.split != "ci":
            raise InputError(f"{asked.suite} has the conversations that it has: leave out --split")
        file, jobs, gates = own_suite(asked.suite, asked.gates, asked.only, asked.scenarios, asked.full)
        judge_panel(file, jobs, asked.judges, asked.setup, asked.shard)  # raises if no ask is for a model
        return [ChosenSuite(file.eval_suite, jobs, gates, file)]
    if asked.judges:
        raise InputError(f"--judge-model: {asked.suite} is judged by code alone; a suite file has asks for models")
    names = catalogue.NAMES if asked.suite == "all" else (asked.suite,)
    suites = [catalogue.suite_named(name) for name in names]
    for suite in suites:
        suite.check(asked.setup)
    by_suite = _gates(asked.gates, names)
    return [ChosenSuite(suite, drawn_for(asked, suite.name), by_suite.get(suite.name, {})) for suite in suites]


def drawn_for(asked: SuiteOptions, name: str) -> tuple[Draw, ...]:
    """Return the chosen scenarios of one suite; raise `InputError` if `--only` names a scenario outside of SUITE."""
    if asked.only:
        only = [Draw.parse(id) for id in asked.only]
        for draw in only:
            suite_named(draw.suite)
            refuse_sealed(draw.split)
            if asked.suite not in ("all", draw.suite):
                raise InputError(f"--only {draw.id}: a scenario of {draw.suite}, not of {asked.suite}")
        return tuple(draw for draw in only if draw.suite == name)
    count = asked.scenarios or suite_named(name).scenarios * (FULL if asked.full else 1)
    return tuple(drawn(name, asked.split, count))


def _gates(asked: str | None, names: Sequence[str]) -> Mapping[str, Gates]:
    """Return the gates by suite; raise `InputError` if a suite to run lacks a figure that its gates name."""
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
    if not set(names) & gates_by_suite.keys():
        known = ", ".join(gates_by_suite)
        raise InputError(f"{asked}: no gate over {', '.join(names)}; there are gates over: {known}")
    return gates_by_suite


def _played(
    chosen: ChosenSuite, jobs: Sequence[Job], run: KeptRun, asked: SuiteOptions, tell: Callable[[str], None]
) -> EvalResult:
    name, count = chosen.suite.name, len(jobs)
    play: Callable[..., ScenarioResult] = play_job if chosen.file else play_one
    finished = run.finished(name, jobs)
    return played(
        chosen.suite,
        jobs,
        asked.setup,
        workers=asked.workers or os.cpu_count() or 1,
        gates=chosen.gates,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        revision=asked.revision,
        reproduce=_command(chosen, asked),
        tell=lambda done: tell(f"{name} {done} of {count}"),
        finished=finished,
        keep=lambda scenario: run.keep(name, scenario),
        play=play,
        judge=judge_panel(chosen.file, chosen.jobs, asked.judges, asked.setup, asked.shard, finished)
        if chosen.file
        else None,
    )


def _command(chosen: ChosenSuite, asked: SuiteOptions) -> str:
    name = chosen.suite.name
    which = [f"--only {id}" for id in asked.only if id.startswith(f"{name}/")]
    if not which and chosen.file is None:
        which = [f"--scenarios {len(chosen.jobs)}"]
        which.insert(0, f"--split {asked.split}")
    elif not which and asked.scenarios:
        which = [f"--scenarios {asked.scenarios}"]
    return " ".join([f"ctxsteward evals run {asked.suite if chosen.file else name}", *which, *asked.given])


@click.command()
@click.argument("suite", shell_complete=completer((*NAMES, ALL)))
@click.option(
    "--gate",
    "gates",
    is_flag=False,
    flag_value=SHIPPED_GATES,
    metavar="[FILE]",
    help="Check the figures against the shipped gates, or against those in your YAML file; put it after SUITE.",
)
@click.option(
    "--split",
    type=click.Choice([split for split in SPLITS if split != "sealed"]),
    default="ci",
    show_default=True,
    metavar="[ci|docs]",
    help="Set of seeds and words; only `docs` may be used for tuning.",
)
@click.option("--scenarios", type=click.IntRange(1, 10000), metavar="N", help="Scenarios per suite; default: as in CI.")
@click.option("--full", is_flag=True, help="Run four times as many scenarios.")
@click.option("--only", multiple=True, metavar="ID", help="Run only the scenario with this name; repeatable.")
@click.option(
    "--subject",
    default=OURS,
    show_default=True,
    metavar="NAME",
    shell_complete=completer(SUBJECTS),
    help="Subject to evaluate: a name from `evals subjects`, module:function, FILE.py:function, or a URL.",
)
@click.option(
    "--judge-model",
    "judges",
    multiple=True,
    metavar="NAME",
    help="Judge for questions that ask for one: module:name, FILE.py:name, https://HOST/v1#MODEL; repeatable.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 100),
    default=1,
    metavar="N",
    help="Times to play each scenario if a strategy or judge may vary; the mean counts.",
)
@click.option("--shard", metavar="N/M", help="Run only part N of M; use with --resume and `evals merge`.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Save finished scenarios here (JSON lines); an interrupted run continues from them.",
)
@click.option("--workers", type=click.IntRange(1, 256), metavar="N", help="Number of processes; default: one per core.")
@model_option(f"Model whose tokens and window count; default: tokens of {DEFAULT_MODEL}, no window.", default=None)
@budget_option("Set a field of Budgets; repeatable. What is not given is as each suite needs it.")
@click.option("--summarizer", default="extractive", show_default=True, metavar="NAME", help="Installed summarizer.")
@click.option("--profile", type=click.Path(), metavar="FILE", help="Profile (YAML) of the head in every scenario.")
@click.option(
    "--model-url",
    metavar="NAME",
    help="Model that summarizes and selects, compared with the built-in rules: https://HOST/v1#MODEL, openai:MODEL, "
    "anthropic:MODEL, module:name, FILE.py:name.",
)
@click.option("--model-price", metavar="P,C,R", help="Dollars per million tokens read, cached, written.")
@click.option("--max-cost", type=click.FloatRange(0), metavar="DOLLARS", help="Most dollars of --model-url per suite.")
@output_options
@click.option("--revision", metavar="TEXT", help="Revision of your repository, stored with the results.")
@telemetry
@json_option
def run(
    suite: str,
    gates: str | None,
    split: Split,
    scenarios: int | None,
    full: bool,
    only: tuple[str, ...],
    subject: str,
    judges: tuple[str, ...],
    repeat: int,
    shard: str | None,
    resume: Path | None,
    workers: int | None,
    model: str | None,
    budgets: tuple[str, ...],
    summarizer: str,
    profile: str | None,
    model_url: str | None,
    model_price: str | None,
    max_cost: float | None,
    junit: Path | None,
    markdown: Path | None,
    html: Path | None,
    history: Path | None,
    revision: str | None,
    as_json: bool,
) -> None:
    """Play the scenarios of SUITE through our builder or another subject, and score what would be sent.

    `ctxsteward evals list` names the suites; `all` plays every suite; FILE.yaml is your own suite.

    No model, key or network is needed, except with --model-url and --judge-model. Exit code 1: a gate failed, a
    scenario broke off, or nothing could be scored. A gate whose bound lies inside the 95 % interval is undecided
    and also gives exit code 1, unless the gates file says `allow_undecided: true`.
    """
    models = tuple(judge_model(name, os.environ.get(JUDGE_KEY_VARIABLE) or None) for name in judges)
    asked = SuiteOptions(
        suite=suite,
        gates=gates,
        split=split,
        scenarios=scenarios,
        full=full,
        only=only,
        workers=workers,
        revision=revision,
        setup=_repeating(read_setup(model, budgets, summarizer, profile, subject), models, repeat),
        given=(
            *_given(model, budgets, summarizer, profile, subject),
            *(f"--judge-model {name}" for name in judges),
            *([f"--repeat {repeat}"] if repeat > 1 else []),
            *([f"--model-url {model_url}"] if model_url else []),
        ),
        judges=models,
        model_run=_model_run(model_url, model_price, max_cost, subject, summarizer, resume),
        resume=resume,
        shard=read_shard(shard, resume, {"gate": gates, "junit": junit, "history": history}),
    )
    outputs = SuiteOutputs(junit=junit, markdown=markdown, html=html, history=history)
    results = run_suites(asked, outputs, as_json=as_json)
    exit_by(results)


def _model_run(
    named: str | None,
    price: str | None,
    max_cost: float | None,
    subject: str,
    summarizer: str,
    resume: Path | None,
) -> ModelRun | None:
    """Return the model of `--model-url`, or None; raise `InputError` for options that exclude it or need it."""
    if named is None:
        for option, given in (("--model-price", price), ("--max-cost", max_cost)):
            if given is not None:
                raise InputError(f"{option}: an option of --model-url, which was not given")
        return None
    if subject != OURS or summarizer != "extractive":
        raise InputError("--model-url: compared with our builder by rules; leave out --subject and --summarizer")
    if resume is not None:
        raise InputError("--model-url: plays each suite twice, in one process; leave out --resume and --shard")
    model = run_model(named)
    return ModelRun(model, price=price_of(price) if price else None, max_dollars=max_cost)


def _repeating(setup: Setup, judges: Sequence[ModelJudge], repeat: int) -> Setup:
    """Return the setup with its judges and repeats; if nothing in it varies, print a note and play once."""
    setup = replace(setup, judges=tuple(f"{model.name} (prompt {PROMPT_VERSION})" for model in judges))
    if repeat > 1 and not (setup.may_vary or setup.judges):
        note(f"--repeat {repeat}: nothing varies here, every playing is the same; each scenario is played once")
        return setup
    return replace(setup, repeat=repeat)


def _given(
    model: str | None, budgets: tuple[str, ...], summarizer: str, profile: str | None, subject: str
) -> tuple[str, ...]:
    """Return the options that a command needs to reproduce a result."""
    options = [f"--budget {budget}" for budget in budgets]
    if subject != OURS:
        options.append(f"--subject {subject}")
    if model is not None:
        options.append(f"--model {model}")
    if summarizer != "extractive":
        options.append(f"--summarizer {summarizer}")
    if profile is not None:
        options.append(f"--profile {profile}")
    return tuple(options)
