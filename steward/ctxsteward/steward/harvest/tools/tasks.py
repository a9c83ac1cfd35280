"""Which task a run was a try at: what tools show counts by tasks, not by runs.

Tasks are given, or are those of one user, or are found by near-equal openings (`same_tasks`). It depends on the set of
runs alone.

Source: Broder 1997 (sketches of the opening).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from ...observations.transcript import ReplayedTranscript

SKETCH_WORDS = 48
SAME_OPENING = 0.6
COMMON = 0.5
"""A word of more openings than this share tells no tasks apart."""
TELLING = 0.1
"""Where most openings have fewer words of their own, they are tries at one task."""
_WORD = re.compile(r"[^\W_]+(?:[._/-][^\W_]+)*")


class RunTask(NamedTuple):
    """Which task a run was a try at."""

    name: str
    """As it was given, or of whom it is; empty: nobody says."""
    opening: tuple[str, ...] = ()
    """A sketch of the words of its opening, where nobody says."""
    is_own: bool = False
    """A run of the operator's own: nobody of the public began it."""


def task_of(replayed: ReplayedTranscript) -> RunTask:
    """The task of a run: given, or its user, or, of an operator's own runs, what its opening says."""
    if replayed.task is not None:
        return RunTask(f"task {replayed.task}")
    if replayed.principal is not None:
        return RunTask(f"of {replayed.principal}")
    return RunTask("", _sketch(replayed), is_own=True) if replayed.is_task_run else RunTask("")


def _sketch(replayed: ReplayedTranscript) -> tuple[str, ...]:
    opening = next(replayed.users(), None)
    words = set(_WORD.findall(opening.text.casefold())) if opening else set()
    digests = sorted(hashlib.blake2b(word.encode(), digest_size=3).hexdigest() for word in words)
    return tuple(digests[:SKETCH_WORDS])


def run_key(task: RunTask) -> str:
    """A task as text; the empty list at its end keeps the keys that earlier versions stored."""
    return json.dumps(
        [task.name, "".join(task.opening), int(task.is_own), []], ensure_ascii=False, separators=(",", ":")
    )


def parse_run_key(text: str) -> RunTask:
    """The inverse of `run_key`; of other text a run of which nothing is known."""
    try:
        name, opening, is_own, _ = json.loads(text)
        return RunTask(f"{name}", tuple(opening[at : at + 6] for at in range(0, len(opening), 6)), is_own == 1)
    except (ValueError, TypeError, RecursionError):
        return RunTask("")


def same_tasks(runs: Iterable[tuple[str, RunTask]]) -> dict[str, str]:
    """The task of each run, by id: as it was given, else the least id of the runs whose openings are nearly equal.

    Words of more than `COMMON` of all openings (the frame of a prompt) tell no tasks apart, unless hardly
    any others are left.
    """
    known = sorted(runs)
    told = {id_: f"={task.name}" for id_, task in known if task.name}
    sketched = [(id_, frozenset(task.opening)) for id_, task in known if not task.name]
    counts = Counter(word for _, words in sketched for word in words)
    common = {word for word, times in counts.items() if times > COMMON * len(sketched)}
    rare = [(id_, words - common) for id_, words in sketched]
    telling = sorted(len(words) / max(1, len(whole)) for (_, words), (_, whole) in zip(rare, sketched, strict=True))
    if telling and telling[len(telling) // 2] < TELLING:
        rare = sketched
    by_word: dict[str, list[int]] = defaultdict(list)
    for at, (_, words) in enumerate(rare):
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
            if root(one) != root(other) and _share(rare[one][1], rare[other][1]) >= SAME_OPENING:
                parents[max(root(one), root(other))] = min(root(one), root(other))
    return told | {id_: f"~{rare[root(at)][0]}" if rare[at][1] else "" for at, (id_, _) in enumerate(rare)}


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 1.0
