"""`ctxsteward evals run` with a suite file of the team's own; runs that are resumed, and runs in parts.

Wrong options raise `InputError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxsteward.evals.suite_files.file_scenarios import FileAsk, FileScenario
from ctxsteward.evals.suite_files.run_record import RunRecord, Shard
from ctxsteward.evals.suite_files.suite_reader import FileSuite, load_suite
from ctxsteward.evals.suites import gates
from ctxsteward.evals.suites.gates import Gates
from ctxsteward.evals.suites.kit.model_judges import JudgePanel, ModelJudge
from ctxsteward.evals.suites.kit.suite import ScenarioResult, Setup
from ctxsteward.evals.suites.results import Job
from ctxsteward.schemas import InputError

SHIPPED_GATES = "shipped"
"""Value of `--gate` without a file: the suite's own gates."""


def is_suite_file(suite: str) -> bool:
    """Return whether a SUITE argument names a file instead of a shipped suite."""
    return suite.endswith((".yaml", ".yml"))


def own_suite(
    path: str, asked_gates: str | None, only: Sequence[str], scenarios: int | None, full: bool
) -> tuple[FileSuite, tuple[FileScenario, ...], Gates]:
    """Return a file's suite, its scenarios to play, and its gates (empty without `asked_gates`)."""
    if full:
        raise InputError(f"--full: {path} has the conversations that it has; leave the option out")
    file = load_suite(path)
    by_id = {job.id: job for job in file.jobs}
    for id in only:
        if id not in by_id:
            known = ", ".join(list(by_id)[:5]) + (", …" if len(by_id) > 5 else "")
            raise InputError(f"--only {id}: {file.path} has no such conversation; there are: {known}")
    jobs = tuple(by_id[id] for id in only) or file.jobs[:scenarios]
    if asked_gates is None:
        return file, jobs, {}
    if file.is_draft:
        what = "a draft is held to no gates"
        raise InputError(f"{file.path}: {what}; read its asks, drop what makes no sense, and write `status: kept`")
    is_shipped, name = asked_gates == SHIPPED_GATES, file.document.name
    held = file.gates if is_shipped else gates.load_gates(Path(asked_gates)).get(name, {})
    if not held:
        raise InputError(f"{file.path if is_shipped else asked_gates}: no gates for {name}; write some under `gates`")
    try:
        gates.check(held, name, (metric.name for metric in file.eval_suite.metrics))
    except InputError as error:
        raise InputError(f"{asked_gates}: {error}") from error
    return file, jobs, held


def judge_panel(
    file: FileSuite,
    jobs: Sequence[Job],
    judges: Sequence[ModelJudge],
    setup: Setup,
    shard: Shard | None,
    finished: Iterable[ScenarioResult] = (),
) -> JudgePanel | None:
    """Return the models that judge a suite, or None, with the bounds that `finished` left; a shard has its share."""
    if not judges:
        return None
    asks = (ask for job in jobs if isinstance(job, FileScenario) for ask in job.asks)
    if not any(isinstance(ask, FileAsk) and ask.asked for ask in asks):
        raise InputError(f"--judge-model: no ask of {file.path} is put to a model; add `judge: {{kind: model}}`")
    held, parts = file.document.judge, shard.of if shard else 1
    panel = JudgePanel(
        judges,
        setup.counter().text,
        held.prices,
        max_calls=None if held.max_calls is None else held.max_calls // parts,
        max_cost=None if held.max_cost is None else held.max_cost / parts,
    )
    panel.spend(finished)
    return panel


@dataclass(frozen=True, slots=True)
class KeptRun:
    """The part of a run to play, and the file that keeps finished scenarios."""

    shard: Shard | None
    record: RunRecord | None

    def part(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the scenarios of this part, in order."""
        ids = self.shard.of_ids([job.id for job in jobs]) if self.shard else {job.id for job in jobs}
        return [job for job in jobs if job.id in ids]

    def finished(self, suite: str, jobs: Sequence[Job]) -> list[ScenarioResult]:
        """Return results of these scenarios that an earlier run has kept."""
        return self.record.finished(suite, (job.id for job in jobs)) if self.record else []

    def keep(self, suite: str, scenario: ScenarioResult) -> None:
        """Keep the result of a finished scenario."""
        if self.record is not None:
            self.record.keep(suite, scenario)


def read_shard(text: str | None, resume: Path | None, forbidden: Mapping[str, object]) -> Shard | None:
    """Return the part that `--shard` names, or None; it excludes the `forbidden` options, which need a whole run."""
    if text is None:
        return None
    shard = Shard.parse(text)
    if resume is None:
        raise InputError(f"--shard {text}: add --resume FILE, where its scenarios are kept for `evals merge`")
    for name, value in forbidden.items():
        if value is not None:
            raise InputError(f"--{name} beside --shard: a part tells too little; give it to `evals merge`")
    return shard
