"""Tool errors foreseen: records harvested on half of the tasks, scored on the other half, and the other way round.

``python -m ctxsteward.evals.experiments.tool_error_foresight DATA``: transcripts with tools, such as tau-bench runs;
exit 1 below a bar.

It is done as a night does it: the file is ingested and redacted, harvested into artifacts, those of the harvested tasks
are absorbed by a ledger, a person approves what waits, and what is in force is scored on the redacted rest. It looks at
tool, code and parameter and never at the advice, so every call that was accepted counts as a fix here, whether its run
succeeded or not, and two of them suffice; whether the advice is right is `ctxsteward.evals.bench.advice`'s to say.

    pooled      errors in unseen tasks that a record in force foresaw (`usage.foresees`), over all directions
    mean        the same, over directions that have errors
    fire        records that apply to a call in unseen tasks (`usage.fires`)
    confirmed   records that foresaw an error there
    precision   calls there to which a record applied that did come back with its error

The tasks are split alternately once, then by seeded shuffles; each split is scored in both directions. Trials of one
task are never on both sides.

Data: sierra-research/tau-bench, airline.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ctxsteward.schemas import FULL_REWARD, ContextError, InvalidTranscript, Review
from ctxsteward.steward.admission import AdmissionPolicy
from ctxsteward.steward.harvest import fires, foresees, tool_trigger
from ctxsteward.steward.harvest.tools import FixTrigger, steps
from ctxsteward.steward.ledger import JudgementContext

from ..bench import AdviceRun, records_of, runs_of

FORESEEN_BAR, FIRE_BAR = 0.75, 0.70
WAITING = frozenset(("needs_person", "needs_principals"))
"""Reasons for which a fix that recovered often enough is not in force by itself."""
SEEDS = 50
Split = frozenset[str]
"""Tasks of one half."""


class ForesightRow(NamedTuple):
    """Figures over many splits; shares of 1."""

    splits: str
    """``halves`` or ``shuffled``."""
    directions: int
    errors: int
    """Of all directions."""
    records: float
    """In force, on average."""
    pooled: float
    mean: float
    fire: float
    confirmed: float
    precision: float


def measure(data: str | Path, *, seeds: int = SEEDS) -> list[ForesightRow]:
    """Score a file of transcripts: a row of the alternate halves and one of shuffled ones."""
    path = Path(data)
    runs = list(runs_of(path.name, b"\n".join(map(_succeeded, path.read_bytes().splitlines()))))
    tasks = sorted({run.task for run in runs}, key=lambda name: (len(name), name))
    if len(tasks) < 2 or not any(run.errors for run in runs):
        raise InvalidTranscript(
            str(data), "", f"{len(tasks)} tasks", "pass runs of two tasks and more, with tool errors"
        )
    shuffled = []
    for seed in range(seeds):
        order = list(tasks)
        random.Random(seed).shuffle(order)
        shuffled.append(frozenset(order[: len(order) // 2]))
    named = {"halves": [frozenset(tasks[::2])], "shuffled": shuffled}
    return [_row(name, runs, splits) for name, splits in named.items() if splits]


def _succeeded(line: bytes) -> bytes:
    """A line of a file of runs, its run taken to have succeeded."""
    try:
        run = json.loads(line)
    except ValueError:
        return line
    return json.dumps(run | {"reward": FULL_REWARD}).encode() if isinstance(run, dict) and "reward" in run else line


def in_force(harvested: Sequence[AdviceRun]) -> frozenset[FixTrigger]:
    """The triggers of the records in force after a night of these runs, and after a person approved what waits."""
    policy = AdmissionPolicy(recoveries=2)
    waits = (
        one.id for one in records_of(harvested, JudgementContext(policy=policy)) if WAITING.intersection(one.reasons)
    )
    approved = dict.fromkeys(waits, Review(state="approved", who=("reviewer",)))
    records = records_of(harvested, JudgementContext(reviews=approved, policy=policy))
    triggers = (tool_trigger(record) for record in records if record.status == "active" and record.scope.is_shared)
    return frozenset(trigger for trigger in triggers if trigger is not None)


def _row(name: str, runs: Sequence[AdviceRun], splits: Sequence[Split]) -> ForesightRow:
    scores = []
    for half in splits:
        sides = [run for run in runs if run.task in half], [run for run in runs if run.task not in half]
        scores += [_score(in_force(harvested), unseen) for harvested, unseen in (sides, sides[::-1])]
    errors, foreseen, records, firing, confirmed, applied, came = map(sum, zip(*scores, strict=True))
    shares = [score[1] / score[0] for score in scores if score[0]]
    return ForesightRow(
        splits=name, directions=len(scores), errors=errors, records=_share(records, len(scores)),
        pooled=_share(foreseen, errors), mean=_share(sum(shares), len(shares)), fire=_share(firing, records),
        confirmed=_share(confirmed, records), precision=_share(came, applied),
    )  # fmt: skip


def _score(records: frozenset[FixTrigger], unseen: Sequence[AdviceRun]) -> tuple[int, ...]:
    """Counts of one direction: errors, those foreseen; records, those that fire, those confirmed; calls to which one
    applied, those of them that came back with its error.
    """
    errors = [error for run in unseen for error in run.errors]
    calls = [call for run in unseen for call in steps(run.replayed)]
    applied = [[trigger for trigger in records if fires(trigger, call)] for call in calls]
    came = sum(
        call.failure is not None and any(trigger.code == call.failure.code for trigger in triggers)
        for call, triggers in zip(calls, applied, strict=True)
    )
    return (
        len(errors),
        sum(any(foresees(trigger, error) for trigger in records) for error in errors),
        len(records),
        len({trigger for triggers in applied for trigger in triggers}),
        sum(any(foresees(trigger, error) for error in errors) for trigger in records),
        sum(map(bool, applied)),
        came,
    )


def _share(part: float, whole: int) -> float:
    return round(part / whole, 3) if whole else 0.0


def main(argv: list[str] | None = None) -> int:
    """Print the figures; 1 where a bar is missed, 2 for bad input."""
    parser = argparse.ArgumentParser(
        prog="python -m ctxsteward.evals.experiments.tool_error_foresight", description=__doc__
    )
    parser.add_argument("data", type=Path, help="a file of transcripts")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="shuffled splits; default: %(default)s")
    options = parser.parse_args(argv)
    try:
        rows = measure(options.data, seeds=options.seeds)
    except (ContextError, OSError) as error:
        print(f"{options.data}: {error}", file=sys.stderr)
        return 2
    print(f"| {' | '.join(ForesightRow._fields)} |\n{'|---' * len(ForesightRow._fields)}|")
    print("\n".join(f"| {' | '.join(map(str, row))} |" for row in rows))
    return int(any(row.pooled < FORESEEN_BAR or row.fire < FIRE_BAR for row in rows))


if __name__ == "__main__":
    sys.exit(main())
