"""The suite ``goal-continuity``: after many compactions, are goals, rules, tasks and decisions shown as they now stand?

Somebody works with an assistant on things of two fields of life, among much other talk. At seeded checkpoints and at
the end somebody asks for all of it, for one kind, or for one thing. An aim that stands must be shown as it now stands;
one that is over must not be shown as standing. Shown means: its newest words are in the rendered envelope for the
question, verbatim or quoted in a bullet. Reachable means: the envelope names the message that said so, in full or by a
reference of its own (a range does not count), or one `search_context` call for what the thing is called finds it.

What people want is an `Aim` (a goal, rule, task or decision) with its stages in order: set, changed, done or dropped or
lifted, open again. Each stage is a sentence with a *mark*, the words that must be shown for the thing to be known as it
then stands. No mark of one aim stands in a sentence of another. Texts are drawn from ``phrasings/goals.*.yaml``, in two
halves a language: one that rules may be tuned on, and one that is held out.

Source: the eval list of the layered-envelope design (goal continuity: drift below 5 % over 50 and more turns).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any, Literal, NamedTuple

from ..canaries import filled, normalize, shows
from ..phrasings import GoalPhrasings, TaskPhrasing, Texts, canary_phrasings, goal_phrasings
from ..prompt_cost import Sizer
from .kit.play import (
    NO_LOOKUP,
    AskMoment,
    BudgetJudge,
    CallMoment,
    EndMoment,
    asked_within_budget,
    compacted,
    play,
    reaches,
)
from .kit.suite import (
    DYNAMIC_TOKENS,
    LONG_TURNS,
    Ask,
    Draw,
    PlayCounts,
    Scenario,
    Score,
    Scores,
    Setup,
    UnscoredCheck,
    holds,
)
from .kit.talk import SmallTalk, assistant, user

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
    goals = rng.sample([goal for area in fields for goal in area.goals], counts["goal"])
    for place, goal in enumerate(goals):
        part = place > 0 and rng.random() < 0.5
        yield _goal(rng, phrasings, slots, goal, place - 1 if part else -1)
    for rule in rng.sample([rule for area in fields for rule in area.rules], counts["rule"]):
        yield _rule(rng, phrasings, slots, rule)
    for task in rng.sample([task for area in fields for task in area.tasks], counts["task"]):
        yield _task(rng, phrasings, task)
    for key, options in rng.sample([choice for area in fields for choice in area.choices.items()], counts["choice"]):
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


ASKED_EVERY = 18
"""User turns between two checkpoints, about."""
LONG_DYNAMIC_TOKENS = 4_000
"""Of a long scenario: what stands in it at once would by itself outgrow what bullets may take of the others' budget."""
FEW: dict[Kind, int] = {"goal": 3, "rule": 4, "task": 6, "choice": 3}
MANY: dict[Kind, int] = {"goal": 5, "rule": 6, "task": 12, "choice": 6}
SHOWN: dict[Kind, str] = {
    "goal": "goals_shown",
    "rule": "constraints_shown",
    "task": "todos_open",
    "choice": "decisions_shown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AimState:
    """An aim at one moment: what shows it as it stands, and what would show it as it stood."""

    kind: Kind
    key: str
    wants: tuple[str, ...]
    """Any of them."""
    outdated: tuple[str, ...]
    is_open: bool
    said_at: int
    """Ordinal of the message that said so last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(Ask):
    """A question, and all it is about."""

    known: tuple[AimState, ...]


class StatedAims:
    """What was said of each aim so far."""

    def __init__(self, aims: Sequence[Aim]) -> None:
        self.aims = aims
        self.at: list[list[int]] = [[] for _ in aims]

    def say(self, aim: int, ordinal: int) -> AimStage:
        """The next stage of an aim is said in this message."""
        stage = self.aims[aim].stages[len(self.at[aim])]
        self.at[aim].append(ordinal)
        return stage

    def known(self, *, only: Kind | None = None) -> Iterator[AimState]:
        """All that was said of so far, as it stands."""
        for aim, places in zip(self.aims, self.at, strict=True):
            if places and only in (None, aim.kind):
                yield _known(aim, places)


def _known(aim: Aim, places: Sequence[int]) -> AimState:
    *before, now = aim.stages[: len(places)]
    wants = tuple(filter(None, (now.mark, now.same_as)))
    outdated = tuple(dict.fromkeys(old.mark for old in before if old.mark not in wants))
    return AimState(kind=aim.kind, key=aim.key, wants=wants, outdated=outdated, is_open=now.is_open, said_at=places[-1])


def make(draw: Draw) -> Scenario:
    """A conversation in which aims are set and change, and are asked for at checkpoints and at the end."""
    rng, phrasings = draw.random("goals"), goal_phrasings(draw.language).of(draw.split)
    slots = canary_phrasings(draw.language).of(draw.split).slots
    aims = draw_aims(rng, phrasings, slots, MANY if draw.turns >= LONG_TURNS[0] else FEW)
    talk = SmallTalk.of(draw, avoid=[stage.mark for aim in aims for stage in aim.stages])
    writer = GoalScript(rng, phrasings, talk, StatedAims(aims))
    due = scheduled(rng, aims, draw.turns)
    asks: list[Ask] = []
    checkpoint = rng.randint(ASKED_EVERY // 2, ASKED_EVERY)
    for turn in range(draw.turns):
        writer.turn([aim for at, aim in due if at == turn])
        last = turn == draw.turns - 1
        if turn >= checkpoint or last:
            checkpoint = turn + rng.randint(ASKED_EVERY - 5, ASKED_EVERY + 5)
            asks += writer.questions(everything=last)
    return Scenario(draw=draw, messages=tuple(writer.messages), asks=tuple(asks))


def scheduled(rng: Random, aims: Sequence[Aim], turns: int) -> list[tuple[int, int]]:
    """Turns at which each stage of each aim is said, in order; the first aim is the conversation's task."""
    due: list[tuple[int, int]] = []
    first: list[int] = []
    for place, aim in enumerate(aims):
        early = first[aim.after] + 1 if aim.after >= 0 else 0
        at = 0 if place == 0 else rng.randint(early, max(early, int(turns * 0.75)))
        first.append(at)
        for _ in aim.stages:
            due.append((min(at, turns - 2), place))
            at += rng.randint(3, max(4, turns // 3))
    return sorted(due, key=lambda row: row[0])


@dataclass(slots=True)
class GoalScript:
    """Writes the conversation turn by turn."""

    rng: Random
    phrasings: GoalPhrasings
    talk: SmallTalk
    told: StatedAims
    messages: list[dict[str, Any]] = field(default_factory=list)

    def turn(self, due: Sequence[int]) -> None:
        """One user turn with what is due in it."""
        said = [aim for aim in due if self._next(aim).by == "user"]
        done = [aim for aim in due if aim not in said]
        stages = [self.told.say(aim, len(self.messages) + 1) for aim in said]
        self.messages.append(user(self._statement([stage.text for stage in stages])))
        if done or self.rng.random() < 0.2:
            self.messages += self.talk.tools()
        finished = [self.told.say(aim, len(self.messages) + 1).text for aim in done]
        self.messages.append(assistant(self._reply([stage.text for stage in stages], finished)))

    def _next(self, aim: int) -> AimStage:
        return self.told.aims[aim].stages[len(self.told.at[aim])]

    def _statement(self, texts: Sequence[str]) -> str:
        """What the user says: the news alone, as a list, or somewhere in other talk."""
        if not texts:
            return self.talk.user()
        if len(texts) > 1 and self.rng.random() < 0.5:
            return "\n".join([self.rng.choice(self.phrasings.list_lead), *(f"- {text}" for text in texts)])
        form = self.rng.random()
        before = self.talk.user() if form < 0.2 else ""
        after = self.talk.user() if 0.2 <= form < 0.45 else ""
        return self.talk.join(before, *texts, after)

    def _reply(self, said: Sequence[str], finished: Sequence[str]) -> str:
        form = self.rng.random()
        if finished:
            return self.talk.join(*finished, self.talk.assistant() if form < 0.3 else "")
        if said and form < 0.2:
            return self.rng.choice(self.phrasings.echoes).format(it=said[0])
        if said and form < 0.65:
            return self.rng.choice(self.phrasings.acks)
        return self.talk.assistant()

    def questions(self, *, everything: bool) -> Iterator[Ask]:
        """What is asked now: for all, for one kind, for one thing; at the end for each kind."""
        texts = self.phrasings
        about: dict[Kind, tuple[str, ...]] = {
            "goal": texts.about_goals,
            "rule": texts.about_rules,
            "task": texts.about_tasks,
            "choice": texts.about_choices,
        }
        yield self._ask(self.rng.choice(texts.about_all), tuple(self.told.known()), "all")
        for kind in KINDS if everything else (self.rng.choice(KINDS),):
            if known := tuple(self.told.known(only=kind)):
                yield self._ask(self.rng.choice(about[kind]), known, kind)
        for aim in self.rng.sample(every := list(self.told.known()), min(2, len(every))):
            yield self._ask(self.rng.choice(texts.about_one).format(key=aim.key), (aim,), "one")

    def _ask(self, question: str, known: tuple[AimState, ...], kind: str) -> Checkpoint:
        return Checkpoint(
            metric="goal_drift",
            after=len(self.messages),
            question=question,
            kind=kind,
            known=known,
            wants=tuple(one.wants[0] for one in known if one.is_open),
            avoids=tuple(old for one in known for old in one.outdated),
        )


def play_goal_continuity(scenario: Scenario, setup: Setup, stage: PlayCounts) -> Scores:
    """Play it; judge every aim at every checkpoint."""
    compactions, budget = 0, BudgetJudge(Sizer(setup.counter()))
    dynamic_tokens = LONG_DYNAMIC_TOKENS if scenario.draw.turns >= LONG_TURNS[0] else DYNAMIC_TOKENS
    for moment in play(scenario, setup, stage, dynamic_tokens=dynamic_tokens):
        match moment:
            case AskMoment(ask=Checkpoint() as ask):
                yield asked_within_budget("within_budget", moment, budget)
                for known in ask.known:
                    yield from judge(known, moment)
            case CallMoment():
                compactions += moment.compacted
            case EndMoment():
                yield compacted(compactions, moment)


def judge(known: AimState, asked: AskMoment) -> Scores:
    """One aim in the prompt for one question."""
    shown = any(shows(asked.normalized, mark) for mark in known.wants)
    stale = [] if shown else [mark for mark in known.outdated if shows(asked.normalized, mark)]
    is_reachable = reaches(asked, known.said_at, known.key, known.wants[0])
    at, of = f"{asked.at} ({asked.ask.kind})", f"{known.kind} {known.key}"
    why = f"{known.kind} {known.key}: " + (f"outdated: {stale}" if stale else f"not shown: {known.wants[0]!r}")
    if known.is_open:
        yield holds(SHOWN[known.kind], shown, at, why, of)
    else:
        yield holds("done_stays_done", not stale, at, why, of)
    if is_reachable is None:
        yield UnscoredCheck("reachable", NO_LOOKUP, at)
    else:
        yield holds("reachable", is_reachable, at, f"{known.kind} {known.key}: nothing leads to §{known.said_at}", of)
    yield Score("stale", float(bool(stale)), at, why if stale else "")
    drifted = bool(stale) or is_reachable is False or (known.is_open and not shown)
    yield Score("goal_drift", float(drifted), at, why if drifted else "", of)
