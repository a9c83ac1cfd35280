"""A suite of the team's own: what `ctxsteward evals run` plays where SUITE is a file, how a run is kept and split; and
``ctxsteward evals from-transcripts``, by which conversations become a suite that people read and keep.

Raises `InputError` for what was asked wrongly.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.table import Table

from ctxsteward.evals.suite_files import (
    DraftSettings,
    FileJob,
    FileSuite,
    RunHead,
    RunRecord,
    Shard,
    SuiteDraft,
    draft_suite,
    load_suite,
)
from ctxsteward.evals.suites import Gates, Job, gates
from ctxsteward.evals.suites.kit import JudgeModel, JudgePanel, ScenarioResult, Setup
from ctxsteward.schemas import InputError

from ..terminal import common, grid, note, print_json, progress, shown, table_console

SHIPPED_GATES = "shipped"
"""`--gate` without a file: the gates that the suite itself has."""


def is_suite_file(suite: str) -> bool:
    """Whether a SUITE argument is a file and no name."""
    return suite.endswith((".yaml", ".yml"))


@dataclass(frozen=True, slots=True)
class OwnSuite:
    """A suite file that was asked for, with what of it is to be played."""

    file: FileSuite
    jobs: tuple[FileJob, ...]
    gates: Gates

    @property
    def name(self) -> str:
        return self.file.eval_suite.name

    def panel(
        self, judges: Sequence[JudgeModel], setup: Setup, shard: Shard | None, finished: Iterable[ScenarioResult] = ()
    ) -> JudgePanel | None:
        """The models that judge it, less what an earlier part of the run has spent; a shard has its share of bounds."""
        if not judges:
            return None
        if not any(ask.asked for job in self.jobs for ask in job.asks):
            raise InputError(
                f"--judge-model: no ask of {self.file.path} is put to a model; add `judge: {{kind: model}}`"
            )
        held, parts = self.file.document.judge, shard.of if shard else 1
        panel = JudgePanel(
            judges, setup.counter().text, held.prices,
            max_calls=None if held.max_calls is None else held.max_calls // parts,
            max_cost=None if held.max_cost is None else held.max_cost / parts,
        )  # fmt: skip
        panel.spend(finished)
        return panel


def own_suite(path: str, asked_gates: str | None, only: Sequence[str], scenarios: int | None, full: bool) -> OwnSuite:
    """The suite of a file; `asked_gates` None: none are held."""
    if full:
        raise InputError(f"--full: {path} has the conversations that it has; leave the option out")
    file = load_suite(path)
    return OwnSuite(file, _jobs(file, only, scenarios), _gates(file, asked_gates))


def _jobs(file: FileSuite, only: Sequence[str], scenarios: int | None) -> tuple[FileJob, ...]:
    by_id = {job.id: job for job in file.jobs}
    for id in only:
        if id not in by_id:
            told = ", ".join(list(by_id)[:5]) + (", …" if len(by_id) > 5 else "")
            raise InputError(f"--only {id}: {file.path} has no such conversation; there are: {told}")
    return tuple(by_id[id] for id in only) or file.jobs[:scenarios]


def _gates(file: FileSuite, asked: str | None) -> Gates:
    if asked is None:
        return {}
    if file.is_draft:
        what = "a draft is held to no gates"
        raise InputError(f"{file.path}: {what}; read its asks, drop what makes no sense, and write `status: kept`")
    held = file.gates if asked == SHIPPED_GATES else gates.load_gates(Path(asked)).get(file.document.name, {})
    if not held:
        raise InputError(f"{file.path if asked == SHIPPED_GATES else asked}: no gates for {file.document.name}; "
                         "write some under `gates`")  # fmt: skip
    try:
        gates.check(held, file.document.name, (metric.name for metric in file.eval_suite.metrics))
    except InputError as error:
        raise InputError(f"{asked}: {error}") from error
    return held


@dataclass(frozen=True, slots=True)
class KeptRun:
    """Which part of a run is played, and where finished scenarios are kept."""

    shard: Shard | None
    record: RunRecord | None

    def part(self, jobs: Sequence[Job]) -> list[Job]:
        """The scenarios of this part, in order."""
        ids = self.shard.of_ids([job.id for job in jobs]) if self.shard else {job.id for job in jobs}
        return [job for job in jobs if job.id in ids]

    def finished(self, suite: str, jobs: Sequence[Job]) -> list[ScenarioResult]:
        """What an earlier run left of these."""
        return self.record.finished(suite, (job.id for job in jobs)) if self.record else []

    def keep(self, suite: str, scenario: ScenarioResult) -> None:
        """Keep one that has ended."""
        if self.record is not None:
            self.record.keep(suite, scenario)


def read_shard(text: str | None, resume: Path | None, forbidden: Mapping[str, object]) -> Shard | None:
    """The part that was asked for; what is over the whole run is `forbidden` beside it, where it was given."""
    if text is None:
        return None
    shard = Shard.parse(text)
    if resume is None:
        raise InputError(f"--shard {text}: add --resume FILE, where its scenarios are kept for `evals merge`")
    for name, value in forbidden.items():
        if value is not None:
            raise InputError(f"--{name} beside --shard: a part tells too little; give it to `evals merge`")
    return shard


def kept_run(shard: Shard | None, resume: Path | None, heads: Sequence[RunHead]) -> KeptRun:
    """Begin a run, or go on with one."""
    return KeptRun(shard, None if resume is None else RunRecord.open(resume, heads))


# -- drafts ---------------------------------------------------------------------------------------------------------

_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


def suite_name(out: Path) -> str:
    """A suite's name from its file's.

    >>> suite_name(Path("My_suite 2.yaml"))
    'my-suite-2'
    """
    name = _NOT_IN_NAMES.sub("-", out.stem.lower()).strip("-")[:50]
    return name if name[:1].isalpha() else f"suite-{name}".strip("-")


def check_out(out: Path, overwrite: bool, read: Sequence[Path]) -> None:
    """Refuse a place that is no suite's, one that is taken, and one where a transcript lies that is to be read."""
    if out.suffix not in (".yaml", ".yml"):
        raise InputError(f"--out {out}: not a suite's name; write one that ends in .yaml")
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: no folder {out.parent}")
    for path in (out, out.with_suffix(".jsonl")):
        if path.exists() and not overwrite:
            raise InputError(f"--out {out}: {path} is there already; name another, or add --overwrite")
        if path.exists() and any(one.resolve() in (path.resolve(), path.resolve().parent) for one in read):
            raise InputError(f"--out {out}: {path} is among the transcripts that are read; name another")


def drafted_table(draft: SuiteDraft) -> Table:
    """What became of the transcripts."""
    report = draft.report
    table = grid("drafted", "", numbers=("",))
    kinds = Counter(ask.kind for scenario in draft.scenarios for ask in scenario.asks)
    rows = [("files", report.files), ("transcripts", report.transcripts), ("conversations", len(draft.scenarios))]
    rows += [("  that fit their budget whole: nothing is told apart", report.fit)] if report.fit else []
    rows += [("asks", sum(kinds.values())), *((f"  {kind}", count) for kind, count in sorted(kinds.items()))]
    rows += [("asks that transcripts share, dropped", report.shared)]
    rows += [("redacted", report.redacted.total()), *((f"  {kind}", n) for kind, n in sorted(report.redacted.items()))]
    rows += [(f"left out: {reason}", count) for reason, count in sorted(report.left_out.items())]
    for name, count in rows:
        table.add_row(shown(name), f"{count:,}")
    return table


@click.command("from-transcripts")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="FILE",
    help="The suite (YAML); its conversations are written beside it.",
)  # fmt: skip
@click.option("--name", metavar="NAME", help="Of the suite; default: from the file's.")
@click.option(
    "--max-messages", type=click.IntRange(10, 10_000), default=200, show_default=True, metavar="N",
    help="Of a conversation; longer transcripts are cut before a user message.",
)  # fmt: skip
@click.option(
    "--min-turns", type=click.IntRange(1, 1_000), default=3, show_default=True, metavar="N",
    help="User turns; shorter conversations are left out.",
)  # fmt: skip
@click.option(
    "--asks", type=click.IntRange(1, 50), default=5, show_default=True, metavar="N",
    help="Of a conversation, at most.",
)  # fmt: skip
@click.option(
    "--redact/--no-redact", default=True, show_default=True,
    help="Take secrets, mail addresses, numbers of phones, cards and ids out. Names are not found.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace files that are there.")
@common
def from_transcripts(
    paths: tuple[Path, ...], out: Path, name: str | None, max_messages: int, min_turns: int, asks: int, redact: bool,
    overwrite: bool, as_json: bool, store: str, tenant: str,
) -> None:  # fmt: skip
    """Draft a suite from transcripts: files in any format that `build` reads, or folders of them.

    Conversations, and questions by rule for what people stated early: identifiers, dates, amounts. No model is asked.
    Read the asks, drop what makes no sense, and write `status: kept`.
    """
    check_out(out, overwrite, paths)
    settings = DraftSettings(
        name=name or suite_name(out), max_messages=max_messages, min_turns=min_turns, asks=asks, redacts=redact
    )
    with progress("transcripts", shown=not as_json) as tell:
        draft = draft_suite(paths, settings, tell)
    written = draft.write(out)
    suite = load_suite(out)  # what is written can be read
    report = draft.report
    if as_json:
        print_json({
            "suite": suite.document.name, "files": [str(path) for path in written], "transcripts": report.transcripts,
            "conversations": len(draft.scenarios), "asks": sum(len(one.asks) for one in draft.scenarios),
            "shared_asks": report.shared, "redacted": dict(sorted(report.redacted.items())),
            "left_out": dict(sorted(report.left_out.items())),
        })  # fmt: skip
        return
    table_console().print(drafted_table(draft))
    asked = any(one.asks for one in draft.scenarios)
    what = "read its asks, drop what makes no sense" if asked else "no ask could be drafted; write asks of your own"
    note(f"{out}: {what}, and write `status: kept`")
