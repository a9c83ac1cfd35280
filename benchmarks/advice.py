"""Whether the steward's advice about tool errors is right, and whether it does harm: on runs whose outcome is known.

    python -m benchmarks.advice [DATA...] [--write docs/steward.md]   # our own worlds, and files of tau-bench runs

A night learns from the runs of half of the tasks; the others are held out, and the other way round. Of each error in a
held-out run that failed or succeeded, the *truth* is what the runs of the same task that succeeded did with the same
tool (`done_instead`): how the arguments differ, where a value came from, which call came first, or that they did
without the call. Advice is asked of the error as it was when it happened. Trials of one task are never on both sides.

    correct   errors whose advice says nothing but what a run that succeeded did; "check it" says nothing, so is wrong
    harm      of errors where advice applied, how often the run's own next try was what it says, in runs that failed and
              in runs that succeeded, of tasks that have both: advice that is obeyed more where runs fail does harm

Beside it stand answers that need no steward:

    random       any fix that was accepted after any error of the learned half; the mean over all of them
    constant     one fix for all (repeat, stop, leave out or change what is blamed, …): the best one on the learned half
    as before    what was accepted most often after the same error of the same tool, whether the run succeeded or not

An interval is Wilson's at 95 % over errors. Where it is wider than `UNDECIDED`, or meets that of the best baseline, the
verdict is *undecided*: errors of one task are not independent, so it is narrower than it should be.

Worlds of our own (`written_runs`): one wording a cause, and several causes under one code with several wordings each.
In the second the tools are the operator's own, so records quote what errors say, and advice about an error is what the
record says that quotes most of its words.

Data: sierra-research/tau-bench, airline; any file of tau-bench runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from ctxsteward.envelope import Store
from ctxsteward.evals.documents import table
from ctxsteward.evals.intervals import wilson
from ctxsteward.schemas import MetaRecommendation
from ctxsteward.schemas.errors import InvalidTranscript
from ctxsteward.schemas.recommendation import RecommendationKind
from ctxsteward.steward import Ledger
from ctxsteward.steward.artifacts.artifact import Artifact
from ctxsteward.steward.harvest.tools.calls import ToolStep, is_tool, name_words, steps
from ctxsteward.steward.harvest.tools.episodes import (
    ErrorEpisode,
    ValueOrigins,
    blamed_parameters,
    changed_parameters,
    episodes,
    fixes,
    paired_values,
)
from ctxsteward.steward.harvest.tools.templates import ArgumentFix, FixTrigger, parse_action
from ctxsteward.steward.harvest.usage import WatchedRecord, foresees
from ctxsteward.steward.ingest.items import LoadedItem
from ctxsteward.steward.ingest.pipeline import IngestSettings, ingest
from ctxsteward.steward.ledger.records import JudgementContext
from ctxsteward.steward.night.batch_harvest import HarvestWorker
from ctxsteward.steward.observations.transcript import ReplayedTranscript
from ctxsteward.store import MasterKeys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.objects.memory import MemoryObjects

from .report import progress, publish, script
from .written_runs import worded_runs, written_runs

ADVICE = "advice"
"""Name of the block in a document."""
ADVICE_HEAD = (
    "runs",
    "advice",
    "errors",
    "told",
    "correct, %",
    "95 %",
    "obeyed, failed",
    "obeyed, succeeded",
    "verdict",
)
OURS, OURS_HELD = "ours, in force", "ours, with what waits for people"
UNDECIDED = 0.3
"""An interval wider than this decides nothing."""
IN_FORCE = ("active", "vetted")
"""Statuses in force: a person is assumed to approve records that are fit for use."""
TENANT = "eval"
KEYS = MasterKeys(b"evals of advice".ljust(32, b"."))
"""The same in every run, because ids decide between equals."""
Advice = frozenset[ArgumentFix]
Advisor = Callable[[ErrorEpisode], Advice]
"""Returns the advice about an error; empty for none."""


class AdviceRun(NamedTuple):
    """One run as a night reads it."""

    task: str
    succeeded: bool
    replayed: ReplayedTranscript
    errors: tuple[ErrorEpisode, ...]
    artifacts: tuple[Artifact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceRow:
    """One advisor on one set of runs."""

    runs: str
    advice: str
    errors: int
    """Held-out errors of tasks that some run solved."""
    told: float
    """Share of these errors for which there is advice."""
    correct: float
    """Share of errors with correct advice; a mean if the advisor draws."""
    low: float
    high: float
    obeyed_failed: tuple[int, int]
    """Tries that followed the advice, and tries after an error with advice, in runs that failed."""
    obeyed_succeeded: tuple[int, int]
    verdict: str = ""
    """better | worse | undecided, compared with the best baseline; empty for baselines."""


def read_runs(path: Path) -> list[AdviceRun]:
    """Read the runs with a known outcome from a file, as a night reads them. Raises `InvalidTranscript`."""
    runs = list(runs_of(path.name, path.read_bytes()))
    if len({run.task for run in runs}) < 2 or not any(run.errors for run in runs):
        tasks = len({run.task for run in runs})
        raise InvalidTranscript(
            str(path), "", f"{tasks} tasks with a known outcome", "pass runs of two tasks and more, with tool errors"
        )
    return runs


def runs_of(name: str, data: bytes, settings: IngestSettings | None = None) -> Iterator[AdviceRun]:
    """Yield the runs with a known outcome from the bytes of a file."""
    worker = HarvestWorker(key=KEYS.address_key(TENANT), settings=settings or IngestSettings())
    loaded = LoadedItem(source=name, name=name, data=data)
    artifacts: dict[str, list[Artifact]] = {}
    for artifact in worker.artifacts(loaded):
        artifacts.setdefault(artifact.session, []).append(artifact)
    for found in ingest(loaded, worker.settings):
        if isinstance(found, ReplayedTranscript) and found.succeeded is not None:
            kept = tuple(artifacts.get(found.session, ()))
            task = found.task or found.principal or found.session
            yield AdviceRun(task, found.succeeded, found, tuple(episodes(found)), kept)


# -- errors ------------------------------------------------------------------------------------------------


def as_it_happened(error: ErrorEpisode) -> ErrorEpisode:
    """Return an error as it was when it happened, without what the run did later."""
    return replace(error, parameters=blamed_parameters(error.failed), worked=None, fixes=())


def done_instead(failed: ToolStep, passing: ReplayedTranscript) -> frozenset[ArgumentFix]:
    """Return the fixes that a successful run of the same task shows for this failed call.

    The call is compared with the working call of the same tool there that shares most with it. A run that never made
    that tool work has stopped.
    """
    calls = steps(passing)
    worked = [step for step in calls if step.tool == failed.tool and step.works and step.arguments is not None]
    if not worked or failed.arguments is None:
        return frozenset((ArgumentFix(verb="stop"),) if not worked else ())
    mine = Counter(paired_values(failed.arguments))
    nearest = max(
        worked, key=lambda step: ((mine & Counter(paired_values(step.arguments or {}))).total(), -step.position)
    )
    sources = ValueOrigins(passing, calls)
    before = replace(failed, utterance=-1, answered=-1)  # all that the other run knew came after this error
    names = changed_parameters(failed, nearest)
    if names:
        return frozenset(fix for name in names for fix in fixes(name, before, nearest, sources))
    earlier = [step.tool for step in calls[: nearest.position] if step.works and step.tool != failed.tool]
    first = [ArgumentFix(verb="first", source=tool) for tool in earlier if is_tool(tool)]
    return frozenset((*first, ArgumentFix(verb="repeat")))


# -- advisors -----------------------------------------------------------------------------------------------


def records_of(
    learned: Iterable[AdviceRun], context: JudgementContext | None = None, kind: RecommendationKind = "tool_fix"
) -> list[MetaRecommendation]:
    """Return the records of a kind that a night makes of these runs."""
    artifacts = (artifact for run in learned for artifact in run.artifacts)
    return [one for one in records_made_of(artifacts, context) if one.kind == kind]


def records_made_of(artifacts: Iterable[Artifact], context: JudgementContext | None = None) -> list[MetaRecommendation]:
    """Return the records that a night makes of artifacts under `KEYS` and `TENANT`; nothing is stored."""
    with (
        Store(MemoryJournal(), MemoryObjects(), KEYS, uri="memory:") as store,
        Ledger.open(":memory:", store, TENANT, "agent") as ledger,
    ):
        ledger.absorb(*artifacts)
        return list(ledger.records(context or JudgementContext()))


def steward(records: Iterable[MetaRecommendation], statuses: Iterable[str]) -> Advisor:
    """Return an advisor by records: the one that quotes most of the error, then the best supported one.

    A record that quotes another error does not apply, and one reported to fail more is no advice.
    """
    kept: list[tuple[FixTrigger, Advice, frozenset[str]]] = []
    for record in sorted(records, key=lambda one: (-one.support.principals, one.id)):
        trigger, advice = WatchedRecord.of(record).tool_trigger, frozenset(parse_action(record.action or ""))
        is_advice = bool(advice) and "fails_more" not in record.reasons
        if trigger is not None and is_advice and record.status in statuses:
            kept.append((trigger, advice, _quoted(record.text) - name_words(str(trigger))))

    def advise(error: ErrorEpisode) -> Advice:
        said = name_words(error.failed.failure.message if error.failed.failure else "")
        fits = [
            (len(words & said), advice)
            for trigger, advice, words in kept
            if foresees(trigger, error) and (not words or words & said)
        ]
        return max(fits, key=lambda fit: fit[0])[1] if fits else frozenset()

    return advise


def _quoted(text: str) -> frozenset[str]:
    """Return the words of an error that a record quotes."""
    return name_words(text.split('"')[1]) if text.count('"') > 1 else frozenset()


def accepted_fix(error: ErrorEpisode) -> Advice:
    """Return the difference of the accepted call from the failed one."""
    return frozenset(fix for _, fixes in error.fixes for fix in fixes)


def as_before(learned: Iterable[AdviceRun]) -> Advisor:
    """Return an advisor by the fix accepted most often after the same error of the same tool."""
    counts: dict[tuple[str, str], Counter[Advice]] = {}
    for run in learned:
        for error in run.errors:
            found = counts.setdefault((error.failed.tool, error.code), Counter())
            found[accepted_fix(error)] += error.worked is not None
    best = {key: min(found, key=lambda one: (-found[one], sorted(map(repr, one)))) for key, found in counts.items()}
    return lambda error: best.get((error.failed.tool, error.code), frozenset())


def constants() -> dict[str, Advisor]:
    """Return advisors that give the same fix for every error, for the parameter that it blames."""

    def of(verb: str, source: str | None = None) -> Advisor:
        def advise(error: ErrorEpisode) -> Advice:
            what = None if verb in ("repeat", "stop", "first") else next(iter(error.parameters), "arguments")
            return frozenset((ArgumentFix(verb=verb, what=what, source=source),))  # type: ignore[arg-type]

        return advise

    verbs = ("repeat", "stop", "supply", "omit", "change", "ask", "fewer", "total")
    plain = {verb: of(verb) for verb in verbs}
    kinds = ("YYYY-MM-DD", "integer", "number", "text", "identifier", "list of objects")
    return plain | {f"write as {kind}": of("write", kind) for kind in kinds}


# -- scores -------------------------------------------------------------------------------------------------


class _JudgedError(NamedTuple):
    """One held-out error."""

    error: ErrorEpisode
    truth: Advice
    succeeded: bool
    is_mixed: bool
    """Whether its task has both failed and successful runs."""


def _judged(held_out: Sequence[AdviceRun]) -> list[_JudgedError]:
    found = []
    for run in held_out:
        mates = [one for one in held_out if one.task == run.task]
        passing = [one for one in mates if one.succeeded]
        for error in run.errors:
            truth = frozenset(fix for one in passing for fix in done_instead(error.failed, one.replayed))
            if truth:
                found.append(_JudgedError(error, truth, run.succeeded, len(passing) < len(mates)))
    return found


def is_correct(advice: Advice, truth: Advice) -> bool:
    """Return whether there is advice, and all of it is what a successful run did."""
    return bool(advice) and {fix.plain for fix in advice} <= {fix.plain for fix in truth}


def _directions(runs: Sequence[AdviceRun]) -> Iterator[tuple[list[AdviceRun], list[AdviceRun]]]:
    tasks = sorted({run.task for run in runs}, key=lambda name: (len(name), name))
    half = set(tasks[::2])
    sides = [run for run in runs if run.task in half], [run for run in runs if run.task not in half]
    yield from (sides, sides[::-1])


def measure_advice(name: str, runs: Sequence[AdviceRun]) -> list[AdviceRow]:
    """Return a row of each advisor over both directions; the baselines first."""
    scores: dict[str, list[tuple[_JudgedError, float, Advice]]] = {}
    for learned, held_out in _directions(runs):
        judged = _judged(held_out)
        seen = [accepted_fix(error) for run in learned for error in run.errors if error.worked is not None]
        for one in judged:
            share = sum(is_correct(advice, one.truth) for advice in seen) / len(seen) if seen else 0.0
            scores.setdefault("random", []).append((one, share, frozenset()))
        for advice, advisor in _advisors(learned).items():
            for one in judged:
                told = advisor(as_it_happened(one.error))
                scores.setdefault(advice, []).append((one, float(is_correct(told, one.truth)), told))
    rows = [_row(name, advice, found) for advice, found in scores.items()]
    best = max((row for row in rows if not row.advice.startswith("ours")), key=lambda row: row.correct)
    return [_with_verdict(row, best) if row.advice.startswith("ours") else row for row in rows]


def _advisors(learned: Sequence[AdviceRun]) -> dict[str, Advisor]:
    own = _judged(learned)
    fixed = constants()
    right = {
        verb: sum(is_correct(advise(as_it_happened(one.error)), one.truth) for one in own)
        for verb, advise in fixed.items()
    }
    best = max(right, key=lambda verb: right[verb])
    records = records_of(learned)
    return {
        "constant": fixed[best],
        "as before": as_before(learned),
        OURS: steward(records, IN_FORCE),
        OURS_HELD: steward(records, (*IN_FORCE, "candidate")),
    }


def _row(name: str, advice: str, found: Sequence[tuple[_JudgedError, float, Advice]]) -> AdviceRow:
    total = len(found)
    correct = sum(score for _, score, _ in found)
    span = wilson(correct, total)
    obeyed = {True: [0, 0], False: [0, 0]}
    for one, _, told in found:
        if told and one.is_mixed:
            obeyed[one.succeeded][1] += 1
            obeyed[one.succeeded][0] += one.error.worked is not None and told <= accepted_fix(one.error)
    return AdviceRow(
        runs=name,
        advice=advice,
        errors=total,
        told=sum(bool(told) for *_, told in found) / total,
        correct=correct / total,
        low=span.low,
        high=span.high,
        obeyed_failed=(obeyed[False][0], obeyed[False][1]),
        obeyed_succeeded=(obeyed[True][0], obeyed[True][1]),
    )


def _with_verdict(row: AdviceRow, best: AdviceRow) -> AdviceRow:
    verdict = "undecided"
    if row.high - row.low <= UNDECIDED:
        verdict = "better" if row.low > best.high else "worse" if row.high < best.low else "undecided"
    fields = {name: getattr(row, name) for name in AdviceRow.__slots__}
    return AdviceRow(**fields | {"verdict": verdict})


def advice_cells(rows: Iterable[AdviceRow]) -> Iterator[tuple[str, ...]]:
    """Yield the rows in words, in the order of `ADVICE_HEAD`."""
    for row in rows:
        told = "" if row.advice == "random" else f"{100 * row.told:.0f}"
        obeyed = (f"{part} of {whole}" if whole else "" for part, whole in (row.obeyed_failed, row.obeyed_succeeded))
        span = f"{100 * row.low:.0f} to {100 * row.high:.0f}"
        yield (row.runs, row.advice, f"{row.errors}", told, f"{100 * row.correct:.1f}", span, *obeyed, row.verdict)


def own_runs(*, seed: int) -> list[AdviceRun]:
    """Return the runs of the world, as a night reads them."""
    return list(runs_of(f"world-{seed}.jsonl", written_runs(seed=seed)))


def own_worded_runs(*, seed: int) -> list[AdviceRun]:
    """Return the runs of the world with several causes and wordings; its tools are the operator's own."""
    settings = IngestSettings(internal_tools=frozenset(("charge", "patch")))
    return list(runs_of(f"worded-{seed}.jsonl", worded_runs(seed=seed), settings))


def _blocks(data: Sequence[Path], seeds: Sequence[int]) -> Mapping[str, Callable[[], Iterable[str]]]:
    def measured() -> Iterator[AdviceRow]:
        for seed in seeds:
            progress(f"our worlds, seed {seed}")
            yield from measure_advice(f"our world, seed {seed}", own_runs(seed=seed))
            yield from measure_advice(f"several causes, seed {seed}", own_worded_runs(seed=seed))
        for path in data:
            progress(f"{path.parent.name}/{path.name}")
            yield from measure_advice(f"{path.parent.name}/{path.name}", read_runs(path))

    # A random or a constant fix is right less often than "as before", as a test holds: the page has the best baseline.
    shown = (row for row in measured() if row.advice not in ("random", "constant"))
    return {ADVICE: lambda: table(ADVICE_HEAD, advice_cells(shown), texts=2)}


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, or write it into the page."""
    parser = script(__doc__)
    parser.add_argument("data", type=Path, nargs="*", help="files of tau-bench runs")
    parser.add_argument("--seed", type=int, nargs="+", default=[77, 78], help="of the worlds of our own")
    options = parser.parse_args(argv)
    return publish(parser, options, _blocks(options.data, options.seed))


if __name__ == "__main__":
    raise SystemExit(main())
