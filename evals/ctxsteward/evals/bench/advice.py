"""Whether the steward's advice about tool errors is right, and whether it does harm: on runs whose outcome is known.

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

`written_runs` makes labelled runs of a small world of our own (seeded): seven causes of errors, with tools whose wrong
fixes are accepted as readily as the right one, and then fail the task. Some of its causes end rightly in a stop.

Data: sierra-research/tau-bench, airline; any file of tau-bench runs.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ctxsteward.envelope import Store
from ctxsteward.schemas import InvalidTranscript, MetaRecommendation
from ctxsteward.steward.artifacts import Artifact
from ctxsteward.steward.harvest import foresees, tool_trigger
from ctxsteward.steward.harvest.tools import (
    ArgumentFix,
    ErrorEpisode,
    FixTrigger,
    as_it_happened,
    done_instead,
    episodes,
    parse_action,
)
from ctxsteward.steward.ingest import LoadedItem, ingest
from ctxsteward.steward.ledger import JudgementContext, Ledger
from ctxsteward.steward.night import HarvestWorker
from ctxsteward.steward.observations import ReplayedTranscript
from ctxsteward.store import MasterKeys, MemoryJournal, MemoryObjects

from ..intervals import wilson

ADVICE = "advice"
"""Of the block in a document."""
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
"""Width of an interval that decides nothing."""
IN_FORCE = ("active", "vetted")
"""A person is taken to approve what is fit for use."""
TENANT = "eval"
KEYS = MasterKeys(b"evals of advice".ljust(32, b"."))
"""The same in every run: ids decide between equals."""
Advice = frozenset[ArgumentFix]
Advisor = Callable[[ErrorEpisode], Advice]
"""What is advised about an error; empty: nothing."""


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
    """Share of them about which something is advised."""
    correct: float
    """Of errors; a mean where the advisor draws."""
    low: float
    high: float
    obeyed_failed: tuple[int, int]
    """Tries that did as advised, of tries after an error with advice, in runs that failed."""
    obeyed_succeeded: tuple[int, int]
    verdict: str = ""
    """better | worse | undecided, beside the best baseline; empty for baselines."""


def read_runs(path: Path) -> list[AdviceRun]:
    """The runs of a file whose outcome is known, as a night reads them. Raises `InvalidTranscript`."""
    runs = list(runs_of(path.name, path.read_bytes()))
    if len({run.task for run in runs}) < 2 or not any(run.errors for run in runs):
        tasks = len({run.task for run in runs})
        raise InvalidTranscript(
            str(path), "", f"{tasks} tasks with a known outcome", "pass runs of two tasks and more, with tool errors"
        )
    return runs


def runs_of(name: str, data: bytes) -> Iterator[AdviceRun]:
    """The runs in the bytes of a file, those whose outcome is known."""
    worker = HarvestWorker(key=KEYS.address_key(TENANT))
    loaded = LoadedItem(source=name, name=name, data=data)
    artifacts: dict[str, list[Artifact]] = {}
    for artifact in worker.artifacts(loaded):
        artifacts.setdefault(artifact.session, []).append(artifact)
    for found in ingest(loaded, worker.settings):
        if isinstance(found, ReplayedTranscript) and found.succeeded is not None:
            kept = tuple(artifacts.get(found.session, ()))
            task = found.task or found.principal
            yield AdviceRun(task, found.succeeded, found, tuple(episodes(found)), kept)


# -- advisors -----------------------------------------------------------------------------------------------


def records_of(learned: Iterable[AdviceRun], context: JudgementContext | None = None) -> list[MetaRecommendation]:
    """The records about tools that a night makes of these runs."""
    with (
        Store(MemoryJournal(), MemoryObjects(), KEYS, uri="memory:") as store,
        Ledger.open(":memory:", store, TENANT, "agent") as ledger,
    ):
        ledger.absorb(*(artifact for run in learned for artifact in run.artifacts))
        return [one for one in ledger.records(context or JudgementContext()) if tool_trigger(one) is not None]


def steward(records: Iterable[MetaRecommendation], statuses: Iterable[str]) -> Advisor:
    """What the record says that applies, the best supported one; what is reported to fail more is no advice."""
    kept: list[tuple[FixTrigger, Advice]] = []
    for record in sorted(records, key=lambda one: (-one.support.principals, one.id)):
        trigger, advice = tool_trigger(record), frozenset(parse_action(record.action or ""))
        is_advice = any(fix.verb != "check" for fix in advice) and "fails_more" not in record.reasons
        if trigger is not None and is_advice and record.status in statuses:
            kept.append((trigger, advice))
    return lambda error: next((advice for trigger, advice in kept if foresees(trigger, error)), frozenset())


def accepted_fix(error: ErrorEpisode) -> Advice:
    """What was different about the call that was accepted."""
    return frozenset(fix for _, fixes in error.fixes for fix in fixes)


def as_before(learned: Iterable[AdviceRun]) -> Advisor:
    """What was accepted most often after the same error of the same tool."""
    counts: dict[tuple[str, str], Counter[Advice]] = {}
    for run in learned:
        for error in run.errors:
            found = counts.setdefault((error.failed.tool, error.code), Counter())
            found[accepted_fix(error)] += error.worked is not None
    best = {key: min(found, key=lambda one: (-found[one], sorted(map(repr, one)))) for key, found in counts.items()}
    return lambda error: best.get((error.failed.tool, error.code), frozenset())


def constants() -> dict[str, Advisor]:
    """The same fix for every error, of the parameter that it blames."""

    def of(verb: str, source: str | None = None) -> Advisor:
        def advise(error: ErrorEpisode) -> Advice:
            what = None if verb in ("repeat", "stop", "first") else next(iter(error.parameters), "arguments")
            return frozenset((ArgumentFix(verb=verb, what=what, source=source),))  # type: ignore[arg-type]

        return advise

    verbs = ("repeat", "stop", "supply", "omit", "change", "ask", "fewer", "total", "check")
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
    """Its task has runs that failed and runs that succeeded."""


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
    """Whether advice says something, and nothing but what a run that succeeded did."""
    return bool(advice) and advice <= truth


def _directions(runs: Sequence[AdviceRun]) -> Iterator[tuple[list[AdviceRun], list[AdviceRun]]]:
    tasks = sorted({run.task for run in runs}, key=lambda name: (len(name), name))
    half = set(tasks[::2])
    sides = [run for run in runs if run.task in half], [run for run in runs if run.task not in half]
    yield from (sides, sides[::-1])


def measure_advice(name: str, runs: Sequence[AdviceRun]) -> list[AdviceRow]:
    """A row of each advisor over both directions; the baselines first."""
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
        "constant": fixed[best], "as before": as_before(learned), OURS: steward(records, IN_FORCE),
        OURS_HELD: steward(records, (*IN_FORCE, "candidate")),
    }  # fmt: skip


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
        runs=name, advice=advice, errors=total, told=sum(bool(told) for *_, told in found) / total,
        correct=correct / total, low=span.low, high=span.high,
        obeyed_failed=(obeyed[False][0], obeyed[False][1]), obeyed_succeeded=(obeyed[True][0], obeyed[True][1]),
    )  # fmt: skip


def _with_verdict(row: AdviceRow, best: AdviceRow) -> AdviceRow:
    verdict = "undecided"
    if row.high - row.low <= UNDECIDED:
        verdict = "better" if row.low > best.high else "worse" if row.high < best.low else "undecided"
    fields = {name: getattr(row, name) for name in AdviceRow.__slots__}
    return AdviceRow(**fields | {"verdict": verdict})


def advice_cells(rows: Iterable[AdviceRow]) -> Iterator[tuple[str, ...]]:
    """The rows in words, in the order of `ADVICE_HEAD`."""
    for row in rows:
        told = "" if row.advice == "random" else f"{100 * row.told:.0f}"
        obeyed = (f"{part} of {whole}" if whole else "" for part, whole in (row.obeyed_failed, row.obeyed_succeeded))
        span = f"{100 * row.low:.0f} to {100 * row.high:.0f}"
        yield (row.runs, row.advice, f"{row.errors}", told, f"{100 * row.correct:.1f}", span, *obeyed, row.verdict)


# -- a world of our own -------------------------------------------------------------------------------------


class _Values(NamedTuple):
    """The values of one task."""

    order: str
    payment: str
    other: str
    day: int
    price: int


class _Cause(NamedTuple):
    """Why a call fails, what mends it, and what is accepted as readily and fails the task."""

    name: str
    right: Callable[[_Values], list[dict[str, Any]]]
    wrong: Callable[[_Values], list[dict[str, Any]]]
    first: Callable[[_Values], list[dict[str, Any]]]


def _call(tool: str, answer: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "answer": answer, "arguments": arguments}


def _looks(v: _Values) -> dict[str, Any]:
    return _call("get_order", json.dumps({"order_id": v.order, "payment_id": v.payment}), order_id=v.order)


def _dates(v: _Values) -> list[dict[str, Any]]:
    return [_call("book", "Error: invalid pickup_day, wrong format", order_id=v.order, pickup_day=f"{v.day}/11/2026")]


def _flights(v: _Values, count: int, amount: int, answer: str) -> dict[str, Any]:
    legs = [{"flight": f"HX{v.day}{leg}"} for leg in range(count)]
    return _call("rebook", answer, order_id=v.order, flights=legs, amount=amount)


_CAUSES = (
    _Cause("a date in another format",
           lambda v: [_call("book", "{}", order_id=v.order, pickup_day=f"2026-11-{v.day}")],
           lambda v: [_call("book", "{}", order_id=v.order)], _dates),
    _Cause("a value of another tool",
           lambda v: [_looks(v), _call("refund", "{}", order_id=v.order, payment_id=v.payment)],
           lambda v: [_call("get_user", json.dumps({"payment_id": v.other}), name="ann"),
                      _call("refund", "{}", order_id=v.order, payment_id=v.other)],
           lambda v: [_call("refund", "Error: payment method not found", order_id=v.order, payment_id="card_0001")]),
    _Cause("a sum that does not add up",
           lambda v: [_flights(v, 2, v.price, "{}")],
           lambda v: [_flights(v, 1, v.price - 40, "{}")],
           lambda v: [_flights(v, 2, v.price - 40, f"Error: payment amount does not add up, total is {v.price}")]),
    _Cause("an argument that is required",
           lambda v: [_call("ship", "{}", order_id=v.order, address="14 Mill Lane", insured=True)],
           lambda v: [_call("ship", "{}", order_id=v.order)],
           lambda v: [_call("ship", "Error: missing required argument: insured", order_id=v.order,
                            address="14 Mill Lane")]),
    _Cause("a call that comes first",
           lambda v: [_call("unlock", "{}", order_id=v.order), _call("cancel", "{}", order_id=v.order, reason="late")],
           lambda v: [_call("cancel", "{}", order_id=v.order, reason="test")],
           lambda v: [_call("cancel", "Error: order is locked", order_id=v.order, reason="late")]),
    _Cause("what is not allowed",
           lambda v: [],
           lambda v: [_call("compensate", "{}", order_id=v.order, amount=v.price // 2)],
           lambda v: [_call("compensate", "Error: permission denied: amount over the limit", order_id=v.order,
                            amount=v.price)]),
    _Cause("a service that is down for a moment",
           lambda v: [_call("track", "{}", order_id=v.order)],
           lambda v: [_call("track", "{}", order_id=v.other)],
           lambda v: [_call("track", "Error: timeout, service unavailable", order_id=v.order)]),
)  # fmt: skip
TASKS, TRIALS, FAILING = 56, 4, 0.5


def written_runs(*, seed: int, tasks: int = TASKS, trials: int = TRIALS) -> bytes:
    """Runs of the world, a line each, in the form of tau-bench; the same seed gives the same bytes."""
    draw = random.Random(seed)
    lines = []
    for task in range(tasks):
        cause, number = _CAUSES[draw.randrange(len(_CAUSES))], draw.randrange(10_000, 99_999)
        values = _Values(
            f"W-{number}", f"pay_{number * 7}", f"gift_{number * 3}", draw.randint(10, 28), draw.randint(300, 900)
        )
        for trial in range(trials):
            fails = draw.random() < FAILING
            calls = [*cause.first(values), *(cause.wrong if fails else cause.right)(values)]
            lines.append(json.dumps(_run(task, trial, not fails, calls, values)))
    return "\n".join(lines).encode()


def _run(task: int, trial: int, passed: bool, calls: Sequence[dict[str, Any]], values: _Values) -> dict[str, Any]:
    traj: list[dict[str, Any]] = [{"role": "user", "content": f"Please see to my order {values.order}."}]
    for number, call in enumerate(calls):
        function = {"name": call["tool"], "arguments": json.dumps(call["arguments"])}
        asked = [{"id": f"c{number}", "type": "function", "function": function}]
        traj.append({"role": "assistant", "content": None, "tool_calls": asked})
        traj.append({"role": "tool", "tool_call_id": f"c{number}", "name": call["tool"], "content": call["answer"]})
    traj.append({"role": "assistant", "content": "Is there anything else?"})
    return {"task_id": task, "trial": trial, "reward": float(passed), "info": {}, "traj": traj}


def own_runs(*, seed: int) -> list[AdviceRun]:
    """The runs of the world, as a night reads them."""
    return list(runs_of(f"world-{seed}.jsonl", written_runs(seed=seed)))
