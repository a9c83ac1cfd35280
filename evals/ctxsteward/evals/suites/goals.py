"""What people want, and how it changes: the goals, rules, tasks and decisions of a scenario of ``goal-continuity``.

Each of them is an `Aim` with its stages in order: set, changed, done or dropped or lifted, open again. Each stage is a
sentence with a *mark*, the words that must be shown for the thing to be known as it then stands. No mark of one aim
stands in a sentence of another. Texts are drawn from ``phrasings/goals.*.yaml``, in two halves a language: one that
rules may be tuned on, and one that is held out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from random import Random
from typing import Literal, NamedTuple

from ..canaries import filled, normalize
from ..phrasings import GoalPhrasings, TaskPhrasing, Texts

Kind = Literal["goal", "rule", "task", "choice"]
Speaker = Literal["user", "agent"]
KINDS: tuple[Kind, ...] = ("goal", "rule", "task", "choice")
MARKED = re.compile(r"⟦(.+?)⟧")
REDRAWS = 40


class AimStage(NamedTuple):
    """One thing said of an aim."""

    text: str
    mark: str
    is_open: bool
    """Whether the aim stands after it: done, dropped and lifted ones do not."""
    by: Speaker = "user"
    same_as: str = ""
    """An earlier mark that says the same of it: open again is as good as open."""


class Aim(NamedTuple):
    """Something wanted, ruled, to do or decided."""

    kind: Kind
    key: str
    stages: tuple[AimStage, ...]
    after: int = -1
    """Which aim of the scenario it is a part of; -1: none."""


def draw_aims(
    rng: Random, phrasings: GoalPhrasings, slots: Mapping[str, Texts], counts: Mapping[Kind, int]
) -> list[Aim]:
    """So many aims of each kind, of two fields; some goals are part of the one before; no mark is ambiguous."""
    for _ in range(REDRAWS):
        aims = list(_aims(rng, phrasings, slots, counts))
        if not _ambiguous(aims):
            return aims
    raise ValueError(f"{REDRAWS} draws of aims were ambiguous; the texts share too many words")


def _aims(
    rng: Random, phrasings: GoalPhrasings, slots: Mapping[str, Texts], counts: Mapping[Kind, int]
) -> Iterator[Aim]:
    fields = [phrasings.fields[name] for name in rng.sample(sorted(phrasings.fields), 2)]
    goals = rng.sample([goal for field in fields for goal in field.goals], counts["goal"])
    for place, goal in enumerate(goals):
        part = place > 0 and rng.random() < 0.5
        yield _goal(rng, phrasings, slots, goal, place - 1 if part else -1)
    for rule in rng.sample([rule for field in fields for rule in field.rules], counts["rule"]):
        yield _rule(rng, phrasings, slots, rule)
    for task in rng.sample([task for field in fields for task in field.tasks], counts["task"]):
        yield _task(rng, phrasings, task)
    for key, options in rng.sample([choice for field in fields for choice in field.choices.items()], counts["choice"]):
        yield _choice(rng, phrasings, key, options)


def _goal(rng: Random, said: GoalPhrasings, slots: Mapping[str, Texts], goal: str, after: int) -> Aim:
    key, first, changed, over = _parts(goal, rng, slots)
    stages = [_stage(rng.choice(said.goal if after < 0 else said.sub_goal), True, it=first)]
    if rng.random() < 0.4:
        stages.append(_stage(rng.choice(said.goal_changed), True, it=changed))
    if rng.random() < 0.2:
        stages.append(_stage(rng.choice(said.goal_over), False, it=over))
    return Aim("goal", key, tuple(stages), after)


def _rule(rng: Random, said: GoalPhrasings, slots: Mapping[str, Texts], rule: str) -> Aim:
    key, first, changed, over = _parts(rule, rng, slots)
    lead = rng.choice(said.rule_lead)
    stages = [_stage("{it}", True, it=lead + (_uncapital(first) if lead.endswith(", ") else first))]
    if rng.random() < 0.4:
        stages.append(_stage("{it}", True, it=changed))
    if rng.random() < 0.15:
        stages.append(_stage("{it}", False, it=over))
    return Aim("rule", key, tuple(stages))


def _task(rng: Random, said: GoalPhrasings, task: TaskPhrasing) -> Aim:
    words = task._asdict()
    opened = _stage(rng.choice(said.task), True, **words)
    stages = [opened]
    fate = rng.choices(("open", "done", "dropped", "again", "done at last"), (35, 35, 10, 12, 8))[0]
    if fate in ("done", "again", "done at last"):
        stages.append(_done(rng, said, words))
    if fate == "dropped":
        stages.append(_stage(rng.choice(said.task_dropped), False, **words))
    if fate in ("again", "done at last"):
        stages.append(_stage(rng.choice(said.task_again), True, **words)._replace(same_as=opened.mark))
    if fate == "done at last":
        used = {stage.mark for stage in stages}
        stages.append(next((s for _ in range(REDRAWS) if (s := _done(rng, said, words)).mark not in used), stages[1]))
    return Aim("task", task.key, tuple(stages))


def _done(rng: Random, said: GoalPhrasings, words: dict[str, str]) -> AimStage:
    by: Speaker = "agent" if rng.random() < 0.35 else "user"
    return _stage(rng.choice(said.agent_done if by == "agent" else said.task_done), False, by, **words)


def _choice(rng: Random, said: GoalPhrasings, key: str, options: tuple[str, ...]) -> Aim:
    taken = rng.sample(options, min(len(options), rng.choices((1, 2, 3), (55, 35, 10))[0]))
    stages = [_stage(rng.choice(said.choice), True, key=key, it=taken[0])]
    for old, new in pairwise(taken):
        stages.append(_stage(rng.choice(said.choice_changed), True, key=key, it=new, old=old))
    return Aim("choice", key, tuple(stages))


def _parts(text: str, rng: Random, slots: Mapping[str, Texts]) -> tuple[str, str, str, str]:
    key, _, stages = text.partition(" | ")
    first, changed, over = (part.strip() for part in filled(stages, rng, slots).split("||"))
    return key, first, changed, over


def _stage(frame: str, is_open: bool, by: Speaker = "user", /, **words: str) -> AimStage:
    text = frame.format(**words).strip()
    if text.endswith("。。") or text.endswith(".."):
        text = text[:-1]
    mark = MARKED.findall(text)[0]
    plain = MARKED.sub(r"\1", text)
    return AimStage(plain[:1].upper() + plain[1:], mark, is_open, by)


def _uncapital(text: str) -> str:
    """A sentence in the middle of another; a name at its beginning stays."""
    return text if text.startswith(("⟦", "I ")) else text[:1].lower() + text[1:]


def _ambiguous(aims: list[Aim]) -> bool:
    """Whether a mark of one aim stands in what is said of another."""
    marks = [(place, normalize(stage.mark)) for place, aim in enumerate(aims) for stage in aim.stages]
    texts = [(place, normalize(stage.text)) for place, aim in enumerate(aims) for stage in aim.stages]
    return any(mark in text for place, mark in marks for other, text in texts if place != other)
