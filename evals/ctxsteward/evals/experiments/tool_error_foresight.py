"""Tool errors foreseen: records harvested on half of the tasks, scored on the other half, and the other way round.

``python -m ctxsteward.evals.experiments.tool_error_foresight DATA``: transcripts with tools, such as tau-bench runs;
exit 1 below a bar.

*anticipated*: errors in unseen tasks that an active record foresaw: same tool, same error code, same parameter where
the record names one (`hits.foresees`). *fire*: active records that apply to a call in unseen tasks (`hits.fires`).
*confirmed*: active records that foresaw an error there. *precision*: calls in unseen tasks to which a record applied
that did come back with its error. A record counts as active when its fix recovered twice in the harvested tasks:
what then waits for a person (a fix that changes what a call does, or that helped one task alone) is approved by one.
Observations of one slot (tool, code, parameter) are one record.

Three ways without a ledger: `own`: a record for the tool at which it was learned; `seen`: also for tools that failed at
the same argument in the harvested tasks; `known`: also for tools that were called with that argument there. The fourth,
`night`, is what a night does, and the one that is judged: the file is ingested and redacted, harvested into artifacts,
those of the harvested tasks are absorbed by a ledger, a person approves what waits, and what is in force is scored on
the redacted rest.

The tasks are split alternately once, then by seeded shuffles; each split is scored in both directions. `pooled`: over
all errors of all splits; `mean`: over directions that have errors. Trials of one task are never on both sides.

Data: sierra-research/tau-bench, airline.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from ctxsteward.envelope.store import Store
from ctxsteward.schemas import ContextError, InvalidTranscript
from ctxsteward.schemas.recommendation import Review
from ctxsteward.steward.admission import AdmissionPolicy
from ctxsteward.steward.artifacts import Artifact
from ctxsteward.steward.harvest.tools.calls import ToolStep, steps
from ctxsteward.steward.harvest.tools.episodes import ErrorEpisode, episodes
from ctxsteward.steward.harvest.tools.errors import tool_errors
from ctxsteward.steward.harvest.tools.siblings import siblings, takes
from ctxsteward.steward.harvest.tools.templates import FixTrigger, parse_trigger
from ctxsteward.steward.harvest.usage import fires, foresees, tool_trigger
from ctxsteward.steward.ingest import LoadedItem, ingest
from ctxsteward.steward.ingest.replayer import TranscriptOrigin, replay, said_in
from ctxsteward.steward.ingest.transcripts import FileTranscript, transcripts_of
from ctxsteward.steward.ledger import JudgementContext, Ledger
from ctxsteward.steward.night.batch_harvest import HarvestWorker
from ctxsteward.steward.observation import Observation
from ctxsteward.steward.transcript import ReplayedTranscript
from ctxsteward.store.crypto.addresses import AddressKey
from ctxsteward.store.crypto.keyring import Keys, memory_keys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.objects.memory import MemoryObjects

Way = Literal["own", "seen", "known", "night"]
WAYS: tuple[Way, ...] = ("own", "seen", "known", "night")
JUDGED: tuple[Way, ...] = ("known", "night")
ANTICIPATED_BAR, FIRE_BAR = 0.75, 0.70
WAITING = frozenset(("needs_person", "needs_principals"))
"""Reasons for which a fix that recovered often enough is not in force by itself."""
SEEDS = 50
TENANT = "eval"


class _ForesightRun(NamedTuple):
    """One transcript with what was read from it."""

    replayed: ReplayedTranscript
    calls: tuple[ToolStep, ...]
    errors: tuple[ErrorEpisode, ...]
    observations: tuple[Observation, ...]
    artifacts: tuple[Artifact, ...] = ()
    """What a night keeps of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForesightScore:
    """One direction of one split."""

    errors: int
    anticipated: int
    records: int
    firing: int
    confirmed: int
    applied: int
    """Calls to which a record applied."""
    came: int
    """Of those, the ones that came back with its error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForesightRow:
    """Figures of one way over many splits; shares of 1."""

    way: Way
    splits: str
    """``halves`` or ``shuffled``."""
    directions: int
    errors: int
    """Of all directions."""
    pooled: float
    mean: float
    fire: float
    confirmed: float
    precision: float
    records: float
    """Active ones, on average."""


def measure(data: str | Path, *, seeds: int = SEEDS) -> tuple[ForesightRow, ...]:
    """Score a file of transcripts: two rows for each way, of the alternate halves and of shuffled ones."""
    path, keys = Path(data), memory_keys()
    runs = _runs(path)
    read = _read(path, keys.address_key(TENANT))
    tasks = sorted({run.replayed.principal for run in runs}, key=lambda name: (len(name), name))
    if len(tasks) < 2 or not any(run.errors for run in runs):
        raise InvalidTranscript(
            str(data), "", f"{len(tasks)} tasks", "pass runs of two tasks and more, with tool errors"
        )
    shuffled = []
    for seed in range(seeds):
        order = list(tasks)
        random.Random(seed).shuffle(order)
        shuffled.append(frozenset(order[: len(order) // 2]))
    rows = []
    for way in WAYS:
        for name, splits in (("halves", [frozenset(tasks[::2])]), ("shuffled", shuffled)):
            scores = [score for half in splits for score in _both(read if way == "night" else runs, half, way, keys)]
            if scores:
                rows.append(_row(way, name, scores))
    return tuple(rows)


def _runs(path: Path) -> list[_ForesightRun]:
    runs = []
    for found in transcripts_of(path.read_bytes(), path.name):
        if isinstance(found, FileTranscript):
            transcript = found.transcript
            origin = TranscriptOrigin(
                source=path.name, session=transcript.session, format=transcript.format, digest=found.digest,
                task=found.task, reward=found.reward,
            )  # fmt: skip
            one = replay(said_in(transcript), origin)
            runs.append(_ForesightRun(one, steps(one), episodes(one), tool_errors(one)))
    return runs


def _read(path: Path, key: AddressKey) -> list[_ForesightRun]:
    """The same runs as a night reads them: redacted, with their artifacts."""
    reaper = HarvestWorker(key=key)
    loaded = LoadedItem(source=path.name, name=path.name, data=path.read_bytes())
    artifacts: dict[str, list[Artifact]] = {}
    for artifact in reaper(loaded).artifacts:
        artifacts.setdefault(artifact.session, []).append(artifact)
    return [
        _ForesightRun(one, steps(one), episodes(one), (), tuple(artifacts.get(one.session, ())))
        for one in ingest(loaded, reaper.settings)
        if isinstance(one, ReplayedTranscript)
    ]


def _both(runs: Sequence[_ForesightRun], half: frozenset[str], way: Way, keys: Keys) -> Iterator[ForesightScore]:
    sides = (
        [run for run in runs if run.replayed.principal in half],
        [run for run in runs if run.replayed.principal not in half],
    )
    for harvested, unseen in (sides, sides[::-1]):
        yield _score(in_force(harvested, keys) if way == "night" else active(harvested, way), unseen)


def in_force(harvested: Iterable[_ForesightRun], keys: Keys) -> frozenset[FixTrigger]:
    """The triggers of the records in force after a night of these runs, and after a person approved what waits."""
    with (
        Store(MemoryJournal(), MemoryObjects(), keys, uri="memory:") as store,
        Ledger.open(":memory:", store, TENANT, "agent") as ledger,
    ):
        ledger.absorb(*(artifact for run in harvested for artifact in run.artifacts))
        waits = (record.id for record in ledger.records() if WAITING.intersection(record.reasons))
        approved = dict.fromkeys(waits, Review(state="approved", who=("reviewer",)))
        records = ledger.judged(JudgementContext(reviews=approved)).shared
    return frozenset(trigger for record in records if (trigger := tool_trigger(record)) is not None)


def active(
    harvested: Iterable[_ForesightRun], way: Way, policy: AdmissionPolicy | None = None
) -> frozenset[FixTrigger]:
    """The triggers of records whose fix recovered often enough."""
    runs = list(harvested)
    rows = [observation for run in runs for observation in run.observations]
    known = takes(run.replayed for run in runs) if way == "known" else {}
    told: Mapping[Observation, tuple[Observation, ...]] = {} if way == "own" else siblings(rows, known)
    every = [*rows, *(other for row in rows for other in told.get(row, ()))]
    recovered = Counter(parse_trigger(one.trigger or "") for one in every if one.strength == "recovered")
    needed = (policy or AdmissionPolicy()).recoveries
    return frozenset(trigger for trigger, times in recovered.items() if trigger is not None and times >= needed)


def _score(records: frozenset[FixTrigger], unseen: Sequence[_ForesightRun]) -> ForesightScore:
    errors = [error for run in unseen for error in run.errors]
    calls = [call for run in unseen for call in run.calls]
    applied = [[trigger for trigger in records if fires(trigger, call)] for call in calls]
    came = sum(
        call.failure is not None and any(trigger.code == call.failure.code for trigger in triggers)
        for call, triggers in zip(calls, applied, strict=True)
    )
    return ForesightScore(
        errors=len(errors),
        anticipated=sum(any(foresees(trigger, error) for trigger in records) for error in errors),
        records=len(records),
        firing=len({trigger for triggers in applied for trigger in triggers}),
        confirmed=sum(any(foresees(trigger, error) for error in errors) for trigger in records),
        applied=sum(map(bool, applied)),
        came=came,
    )


def _row(way: Way, splits: str, scores: Sequence[ForesightScore]) -> ForesightRow:
    def total(name: str) -> int:
        return sum(getattr(score, name) for score in scores)

    shares = [score.anticipated / score.errors for score in scores if score.errors]
    return ForesightRow(
        way=way,
        splits=splits,
        directions=len(scores),
        errors=total("errors"),
        pooled=_share(total("anticipated"), total("errors")),
        mean=_share(sum(shares), len(shares)),
        fire=_share(total("firing"), total("records")),
        confirmed=_share(total("confirmed"), total("records")),
        precision=_share(total("came"), total("applied")),
        records=_share(total("records"), len(scores)),
    )


def _share(part: float, whole: int) -> float:
    return round(part / whole, 3) if whole else 0.0


def main(argv: list[str] | None = None) -> int:
    """Print the figures; 1 where `known` or `night` misses a bar, 2 for bad input."""
    parser = argparse.ArgumentParser(
        prog="python -m ctxsteward.evals.experiments.tool_error_foresight", description=__doc__
    )
    parser.add_argument("data", type=Path, help="a file of transcripts")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="shuffled splits; default: %(default)s")
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    options = parser.parse_args(argv)
    try:
        rows = measure(options.data, seeds=options.seeds)
    except (ContextError, OSError) as error:
        print(f"{options.data}: {error}", file=sys.stderr)
        return 2
    for line in [json.dumps(asdict(row)) for row in rows] if options.json else table(rows):
        print(line)
    judged = [row for row in rows if row.way in JUDGED]
    return int(any(row.pooled < ANTICIPATED_BAR or row.fire < FIRE_BAR for row in judged))


def table(rows: Iterable[ForesightRow]) -> list[str]:
    """The figures as a Markdown table."""
    names = ("way", "splits", "directions", "errors", "pooled", "mean", "fire", "confirmed", "precision", "records")
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    return lines + [f"| {' | '.join(str(getattr(row, name)) for name in names)} |" for row in rows]


if __name__ == "__main__":
    sys.exit(main())
