"""What runs of one task do that succeed, and what those do that fail: practices, contrasted task by task.

A run whose outcome is known gives one observation for each tool that worked in it, and one for the run as a whole. Each
tells in its key (`run_key`, never shown) what the run had done by then: its *practices*.

    first TOOL         before this tool, that one had worked (a read before a write)
    take LEAF TOOL     an identifier of the call was held by that tool's answer
    supply PARAMETER   the call has it
    confirm            the user spoke right before the call, after the assistant had
    call TOOL          of the whole run: it worked at all

`contrast` compares the runs of each task: of all practices the one whose runs succeed more often, by the exact test for
stratified tables: given how many runs of each task did it and how many succeeded, how likely is a count as high as
this by chance; times the practices compared (Bonferroni). Of the whole run, doing without a tool is a practice too.
Tasks are given, or found by near-equal openings and common tools (`same_tasks`). It depends on the set of runs alone.

Source: Fisher 1935; Mantel and Haenszel 1959 (strata); Broder 1997 (sketches of the opening).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb, erfc, sqrt
from typing import NamedTuple

from ctxsteward.schemas.recommendation import Slot

from ...observations.observation import MessageSpan, Observation
from ...observations.transcript import ReplayedTranscript, ReplayedUtterance
from .calls import ToolStep, is_identifier, is_name, is_tool, leaves, steps
from .episodes import ValueOrigins, value_origins
from .templates import ArgumentFix

PRACTICES_EXTRACTOR = "practices/1"
MAX_TOOLS = 24
"""Told of one run."""
SPAN_CHARS = 160
MAX_ANSWER_CHARS = 4_000
"""A longer answer is not cited: citing keeps the whole of it."""
SKETCH_WORDS = 48
SAME_OPENING = 0.6
SAME_TOOLS = 0.3
"""Of the tools that two runs call, those that both do: a try that fails calls others, too."""
COMMON = 0.5
"""A word of more openings than this share tells no tasks apart."""
TELLING = 0.1
"""Where most openings have fewer words of their own, they are tries at one task."""
MAX_CHANCE = 0.05
LEAST_TASKS = 2
EXACT_TASKS = 60
_PRACTICE = re.compile(r"confirm|(?:first|call|supply) \S+|take \S+ \S+")
_WORD = re.compile(r"[^\W_]+(?:[._/-][^\W_]+)*")


class RunTask(NamedTuple):
    """Which task a run was a try at."""

    name: str
    """As it was given, or of whom it is; empty: nobody says."""
    opening: tuple[str, ...] = ()
    """A sketch of the words of its opening, where nobody says."""
    is_own: bool = False
    """A run of the operator's own: nobody of the public began it."""


class PracticeRun(NamedTuple):
    """One run, as a practice's contrast sees it."""

    id: str
    task: RunTask
    did: frozenset[str]
    succeeded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PracticeContrast:
    """What runs that succeed do more often."""

    fixes: tuple[ArgumentFix, ...]
    """The surest, and one more that is beyond chance among runs alike in the first. What follows is of the first."""
    chance: float
    """How likely so much is by chance; 0..1, for all practices compared."""
    tasks: int
    """In which a larger share of the runs that succeeded did so than of those that failed."""
    succeeded: tuple[int, int]
    """Runs that did so, of runs that succeeded, in tasks that have both."""
    failed: tuple[int, int]
    for_it: tuple[str, ...]
    """Ids of runs that succeeded and did so."""
    against: tuple[str, ...]
    """Ids of runs that failed and did not."""


def task_of(replayed: ReplayedTranscript) -> RunTask:
    """The task of a run: given, or its user, or, of an operator's own runs, what its opening says."""
    if replayed.task is not None:
        return RunTask(f"task {replayed.task}")
    if replayed.principal is not None:
        return RunTask(f"of {replayed.principal}")
    return _opened(replayed) if replayed.is_task_run else RunTask("")


def _opened(replayed: ReplayedTranscript) -> RunTask:
    return RunTask("", _sketch(replayed), replayed.is_task_run)


def _sketch(replayed: ReplayedTranscript) -> tuple[str, ...]:
    opening = next(replayed.users(), None)
    words = set(_WORD.findall(opening.text.casefold())) if opening else set()
    digests = sorted(hashlib.blake2b(word.encode(), digest_size=3).hexdigest() for word in words)
    return tuple(digests[:SKETCH_WORDS])


def run_key(task: RunTask, did: Iterable[str] = ()) -> str:
    """Task and practices as text."""
    fields = [task.name, "".join(task.opening), int(task.is_own), sorted(did)]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def parse_run_key(text: str) -> tuple[RunTask, frozenset[str]]:
    """The inverse of `run_key`; of other text a run of which nothing is known."""
    try:
        name, opening, is_own, did = json.loads(text)
        words = tuple(opening[at : at + 6] for at in range(0, len(opening), 6))
        return RunTask(f"{name}", words, is_own == 1), frozenset(one for one in did if _PRACTICE.fullmatch(one))
    except (ValueError, TypeError, RecursionError):
        return RunTask(""), frozenset()


def practices(replayed: ReplayedTranscript) -> tuple[Observation, ...]:
    """One observation of each tool that worked, at its first call that did, and one of the run; in order."""
    if replayed.succeeded is None:
        return ()
    calls = [step for step in steps(replayed) if step.works and is_tool(step.tool)]
    first: dict[str, ToolStep] = {}
    for step in calls:
        first.setdefault(step.tool, step)
    task = _opened(replayed) if replayed.task is None else task_of(replayed)  # one user has many tasks
    sources = value_origins(replayed)
    found = [
        _observation(replayed, tool, step.answer, run_key(task, _did(replayed, step, calls, sources)))
        for tool, step in list(first.items())[:MAX_TOOLS]
    ]
    whole = run_key(task, {f"call {tool}" for tool in list(first)[:MAX_TOOLS]})
    ending = (said for said in reversed(replayed.utterances) if said.role in ("tool", "assistant"))
    found.append(_observation(replayed, None, next(filter(_place, ending), None), whole))
    return tuple(observation for observation in found if observation is not None)


def _did(
    replayed: ReplayedTranscript, step: ToolStep, calls: Sequence[ToolStep], sources: ValueOrigins
) -> Iterator[str]:
    """The practices of the first call of a tool that worked."""
    earlier = [one for one in calls if one.position < step.position]
    yield from {f"first {one.tool}" for one in earlier if one.tool != step.tool and one.utterance < step.utterance}
    before = earlier[-1].answered if earlier else 0
    spoken = [replayed.utterances[at].role for at in range(before + 1, step.utterance)]
    if spoken[-1:] == ["user"] and "assistant" in (said.role for said in replayed.utterances[: step.utterance]):
        yield "confirm"
    for name, value in (step.arguments or {}).items():
        if not is_name(name):
            continue
        yield f"supply {name}"
        for path, leaf in leaves(value, name):
            if is_identifier(path):
                origin = sources.origin(leaf, failed=step.utterance, worked=step.utterance, tool=step.tool)
                if origin is not None and origin.tool is not None:
                    yield f"take {path} {origin.tool}"


def _place(said: ReplayedUtterance | None) -> MessageSpan | None:
    if said is None or len(said.text) > MAX_ANSWER_CHARS:
        return None
    return MessageSpan.opening(said.ref, said.text, SPAN_CHARS)


def _observation(
    replayed: ReplayedTranscript, tool: str | None, said: ReplayedUtterance | None, key: str
) -> Observation | None:
    place = _place(said)
    if place is None or said is None:
        return None
    ended = "succeeded" if replayed.succeeded else "failed"
    return Observation(
        kind="practice",
        text=f"A run that {ended} called {tool}." if tool else f"A run {ended}.",
        slot=Slot(subject=tool.lower() if tool else "run", attribute="practice"),
        places=(place if replayed.succeeded else place._replace(relation="contradicts"),),
        strength="recovered" if replayed.succeeded else "failed",
        score=0.5,
        reach="shared",
        principal=replayed.principal,
        tool=tool,
        trigger=f"tool:{tool}" if tool else None,
        ts=said.ts,
        run=key,
        extractor=PRACTICES_EXTRACTOR,
    )


# -- runs of one task -----------------------------------------------------------------------------------------


def same_tasks(runs: Iterable[tuple[str, RunTask, frozenset[str]]]) -> dict[str, str]:
    """The task of each run, by id: as it was given, else the least id of the runs whose openings are nearly equal.

    Words of more than `COMMON` of all openings (the frame of a prompt) tell no tasks apart, unless hardly
    any others are left.
    """
    known = sorted(runs)
    told = {id_: f"={task.name}" for id_, task, _ in known if task.name}
    sketched = [(id_, frozenset(task.opening), did) for id_, task, did in known if not task.name]
    counts = Counter(word for _, words, _ in sketched for word in words)
    common = {word for word, times in counts.items() if times > COMMON * len(sketched)}
    rare = [(id_, words - common, did) for id_, words, did in sketched]
    telling = sorted(
        len(words) / max(1, len(whole)) for (_, words, _), (_, whole, _) in zip(rare, sketched, strict=True)
    )
    if telling and telling[len(telling) // 2] < TELLING:
        rare = sketched
    by_word: dict[str, list[int]] = defaultdict(list)
    for at, (_, words, _) in enumerate(rare):
        for word in sorted(words)[:8]:
            by_word[word].append(at)
    parents = list(range(len(rare)))

    def root(at: int) -> int:
        while parents[at] != at:
            parents[at] = at = parents[parents[at]]
        return at

    for mates in by_word.values():
        for one in mates[1:]:
            other = mates[0]
            if root(one) != root(other) and _is_same(rare[one], rare[other]):
                parents[max(root(one), root(other))] = min(root(one), root(other))
    return told | {id_: f"~{rare[root(at)][0]}" if rare[at][1] else "" for at, (id_, _, _) in enumerate(rare)}


def _is_same(
    one: tuple[str, frozenset[str], frozenset[str]], other: tuple[str, frozenset[str], frozenset[str]]
) -> bool:
    tools = [frozenset(practice for practice in did if practice.startswith("call ")) for _, _, did in (one, other)]
    return _share(one[1], other[1]) >= SAME_OPENING and (not all(tools) or _share(*tools) >= SAME_TOOLS)


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 1.0


# -- contrast -------------------------------------------------------------------------------------------------


class _Stratum(NamedTuple):
    """The runs of one task, of which some succeeded and some failed."""

    succeeded: tuple[PracticeRun, ...]
    failed: tuple[PracticeRun, ...]


def contrast(runs: Iterable[PracticeRun], least_tasks: int = LEAST_TASKS) -> PracticeContrast | None:
    """The practice in which runs that succeeded differ most surely from runs that failed; None: no such one."""
    known = sorted(runs)
    tasks = same_tasks((run.id, run.task, run.did) for run in known)
    by_task: dict[str, list[PracticeRun]] = defaultdict(list)
    for run in known:
        by_task[tasks[run.id]].append(run)
    strata = [
        _Stratum(tuple(r for r in mates if r.succeeded), tuple(r for r in mates if not r.succeeded))
        for task, mates in sorted(by_task.items())
        if task
    ]
    mixed = [stratum for stratum in strata if stratum.succeeded and stratum.failed]
    every = {practice for stratum in mixed for side in stratum for run in side for practice in run.did}
    ways = [(one, does) for one in every if _differs(one, mixed) for does in (True, False)]
    raw = {key: _chance(key[0], mixed, does=key[1]) for key in ways if key[1] or key[0].startswith("call ")}
    if not raw:
        return None
    order = sorted(raw, key=lambda key: (raw[key], not key[1], key[0]))
    found = _drawn(order[0], mixed, chance=min(1.0, raw[order[0]] * len(raw)))
    if raw[order[0]] > MAX_CHANCE or found.tasks < least_tasks:
        return None
    apart = [part for stratum in mixed for part in _parted(order[0][0], stratum)]
    beside = {key: _chance(key[0], apart, does=key[1]) for key in order[1:]}
    second = min(beside, key=lambda key: (beside[key], key), default=order[0])
    if beside.get(second, 1.0) * len(raw) > MAX_CHANCE:
        return found
    return replace(found, fixes=(*found.fixes, fix_of(second[0], does=second[1])))


def _parted(practice: str, stratum: _Stratum) -> Iterator[_Stratum]:
    """The runs of a task that did so, and those that did not: what goes with a practice is no other one."""
    for does in (True, False):
        succeeded, failed = (tuple(run for run in side if (practice in run.did) == does) for side in stratum)
        if succeeded and failed:
            yield _Stratum(succeeded, failed)


def fix_of(practice: str, *, does: bool = True) -> ArgumentFix:
    """A practice as advice."""
    verb, *rest = practice.split(" ")
    match verb:
        case "first":
            return ArgumentFix(verb="first", source=rest[0])
        case "take":
            return ArgumentFix(verb="take", what=rest[0], source=rest[1])
        case "supply":
            return ArgumentFix(verb="supply", what=rest[0])
        case "call":
            return ArgumentFix(verb="call" if does else "avoid", source=rest[0])
        case _:
            return ArgumentFix(verb="confirm")


def _differs(practice: str, strata: Iterable[_Stratum]) -> bool:
    """Whether in some task some runs do so and some do not."""
    return any(len({practice in run.did for side in stratum for run in side}) == 2 for stratum in strata)


class _Table(NamedTuple):
    """One task: its runs, those that succeeded, those that did so, and those that did and succeeded."""

    whole: int
    succeeded: int
    did: int
    both: int


def _tables(practice: str, strata: Iterable[_Stratum], *, does: bool) -> Iterator[_Table]:
    """The tasks in which some runs did so and some did not; the others say nothing."""
    for succeeded, failed in strata:
        both = sum((practice in run.did) == does for run in succeeded)
        did = both + sum((practice in run.did) == does for run in failed)
        whole = len(succeeded) + len(failed)
        if 0 < did < whole:
            yield _Table(whole, len(succeeded), did, both)


def _chance(practice: str, strata: Iterable[_Stratum], *, does: bool) -> float:
    """How likely as many runs did so and succeeded by chance, given each task's totals.

    Exact up to `EXACT_TASKS`; of more the normal distribution of the same mean and variance, corrected for continuity.
    """
    tables = list(_tables(practice, strata, does=does))
    seen = sum(one.both for one in tables)
    if len(tables) > EXACT_TASKS:
        mean = sum(one.did * one.succeeded / one.whole for one in tables)
        variance = sum(
            one.did
            * one.succeeded
            * (one.whole - one.did)
            * (one.whole - one.succeeded)
            / (one.whole**2 * (one.whole - 1))
            for one in tables
        )
        return 0.5 * erfc((seen - 0.5 - mean) / sqrt(2 * variance))
    counts: Mapping[int, float] = {0: 1.0}
    for one in tables:
        least, most = max(0, one.succeeded - (one.whole - one.did)), min(one.did, one.succeeded)
        ways = {
            k: comb(one.did, k) * comb(one.whole - one.did, one.succeeded - k) / comb(one.whole, one.succeeded)
            for k in range(least, most + 1)
        }
        after: dict[int, float] = defaultdict(float)
        for total, likely in counts.items():
            for k, way in ways.items():
                after[total + k] += likely * way
        counts = after
    return min(1.0, sum(likely for total, likely in counts.items() if total >= seen))


def _drawn(key: tuple[str, bool], strata: Sequence[_Stratum], *, chance: float) -> PracticeContrast:
    practice, does = key
    sides = [[run for stratum in strata for run in stratum[side]] for side in (0, 1)]
    did = [[run for run in side if (practice in run.did) == does] for side in sides]
    shares = [
        [sum((practice in run.did) == does for run in side) / len(side) for side in stratum] for stratum in strata
    ]
    return PracticeContrast(
        fixes=(fix_of(practice, does=does),),
        chance=chance,
        tasks=sum(here > there for here, there in shares),
        succeeded=(len(did[0]), len(sides[0])),
        failed=(len(did[1]), len(sides[1])),
        for_it=tuple(run.id for run in did[0]),
        against=tuple(run.id for run in sides[1] if (practice in run.did) != does),
    )
