"""The suite ``goal-continuity``: goals, rules, tasks and decisions are shown in their newest form after compactions.

A user works with an assistant on two fields of life, among much other talk. At seeded checkpoints and at the end the
user asks for all aims, for one kind, or for one aim. An open aim must be shown in its newest form; a closed aim must
not be shown as open. *Shown*: the newest words are in the rendered envelope for the question, verbatim or quoted in a
bullet. *Reachable*: the envelope holds the message with these words, in full or by a reference of its own (a range does
not count), or one `search_context` call for the aim's name finds it.

An `Aim` (a goal, rule, task or decision) has stages in order: set, changed, done or dropped or lifted, open again. Each
stage is a sentence with a *mark*: the words that show the aim in this stage. No mark of one aim stands in a sentence of
another. Texts come from ``phrasings/goals.*.yaml``, in two halves per language: one for tuning rules, one held out.

Source: the eval list of the layered-envelope design (goal continuity: drift below 5 % over 50 and more turns).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Literal, NamedTuple

from ctxsteward.schemas.message import Wire

from ..canaries import filled, normalize, read_marks, shows
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
    holds,
    unscored,
)
from .kit.talk import SmallTalk, assistant, user

Kind = Literal["goal", "rule", "task", "choice"]
Speaker = Literal["user", "agent"]
KINDS: tuple[Kind, ...] = ("goal", "rule", "task", "choice")
REDRAWS = 40


class AimStage(NamedTuple):
    """One statement about an aim."""

    text: str
    mark: str
    is_open: bool
    """Whether the aim is open afterwards; done, dropped and lifted aims are not."""
    by: Speaker = "user"
    same_as: str = ""
    """Earlier mark with the same meaning: open again equals open."""


class Aim(NamedTuple):
    """A goal, rule, task or decision, with its stages."""

    kind: Kind
    key: str
    stages: tuple[AimStage, ...]
    after: int = -1
    """Index of the aim that it is part of, or -1."""


def draw_aims(
    rng: Random, phrasings: GoalPhrasings, slots: Mapping[str, Texts], counts: Mapping[Kind, int]
) -> list[Aim]:
    """Draw aims of each kind from two fields; some goals are part of the previous goal; no mark is ambiguous."""
    for _ in range(REDRAWS):
        aims = list(_aims(rng, phrasings, slots, counts))
        marks = [(place, normalize(stage.mark)) for place, aim in enumerate(aims) for stage in aim.stages]
        texts = [(place, normalize(stage.text)) for place, aim in enumerate(aims) for stage in aim.stages]
        if not any(mark in text for place, mark in marks for other, text in texts if place != other):
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


def _goal(rng: Random, phrasings: GoalPhrasings, slots: Mapping[str, Texts], goal: str, after: int) -> Aim:
    key, first, changed, over = _parts(goal, rng, slots)
    stages = [_stage(rng.choice(phrasings.goal if after < 0 else phrasings.sub_goal), True, it=first)]
    if rng.random() < 0.4:
        stages.append(_stage(rng.choice(phrasings.goal_changed), True, it=changed))
    if rng.random() < 0.2:
        stages.append(_stage(rng.choice(phrasings.goal_over), False, it=over))
    return Aim("goal", key, tuple(stages), after)


def _rule(rng: Random, phrasings: GoalPhrasings, slots: Mapping[str, Texts], rule: str) -> Aim:
    key, first, changed, over = _parts(rule, rng, slots)
    lead = rng.choice(phrasings.rule_lead)
    if lead.endswith(", ") and not first.startswith(("⟦", "I ")):  # a name keeps its capital in mid-sentence
        first = first[:1].lower() + first[1:]
    stages = [_stage("{it}", True, it=lead + first)]
    if rng.random() < 0.4:
        stages.append(_stage("{it}", True, it=changed))
    if rng.random() < 0.15:
        stages.append(_stage("{it}", False, it=over))
    return Aim("rule", key, tuple(stages))


def _task(rng: Random, phrasings: GoalPhrasings, task: TaskPhrasing) -> Aim:
    words = task._asdict()
    opened = _stage(rng.choice(phrasings.task), True, **words)
    stages = [opened]
    fate = rng.choices(("open", "done", "dropped", "again", "done at last"), (35, 35, 10, 12, 8))[0]
    if fate in ("done", "again", "done at last"):
        stages.append(_done(rng, phrasings, words))
    if fate == "dropped":
        stages.append(_stage(rng.choice(phrasings.task_dropped), False, **words))
    if fate in ("again", "done at last"):
        stages.append(_stage(rng.choice(phrasings.task_again), True, **words)._replace(same_as=opened.mark))
    if fate == "done at last":
        used = {stage.mark for stage in stages}
        stages.append(
            next((s for _ in range(REDRAWS) if (s := _done(rng, phrasings, words)).mark not in used), stages[1])
        )
    return Aim("task", task.key, tuple(stages))


def _done(rng: Random, phrasings: GoalPhrasings, words: dict[str, str]) -> AimStage:
    by: Speaker = "agent" if rng.random() < 0.35 else "user"
    return _stage(rng.choice(phrasings.agent_done if by == "agent" else phrasings.task_done), False, by, **words)


def _choice(rng: Random, phrasings: GoalPhrasings, key: str, options: tuple[str, ...]) -> Aim:
    taken = rng.sample(options, min(len(options), rng.choices((1, 2, 3), (55, 35, 10))[0]))
    stages = [_stage(rng.choice(phrasings.choice), True, key=key, it=taken[0])]
    for old, new in pairwise(taken):
        stages.append(_stage(rng.choice(phrasings.choice_changed), True, key=key, it=new, old=old))
    return Aim("choice", key, tuple(stages))


def _parts(text: str, rng: Random, slots: Mapping[str, Texts]) -> tuple[str, str, str, str]:
    key, _, stages = text.partition(" | ")
    first, changed, over = (part.strip() for part in filled(stages, rng, slots).split("||"))
    return key, first, changed, over


def _stage(frame: str, is_open: bool, by: Speaker = "user", /, **words: str) -> AimStage:
    text = frame.format(**words).strip()
    if text.endswith("。。") or text.endswith(".."):
        text = text[:-1]
    plain, marked = read_marks(text)
    return AimStage(plain[:1].upper() + plain[1:], marked[0], is_open, by)


ASKED_EVERY = 18
"""Average number of user turns between two checkpoints."""
LONG_DYNAMIC_TOKENS = 4_000
"""Budget of a long scenario; its open aims alone would fill the share of bullets in the default budget."""
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
    """An aim at one moment, with the marks of its newest and its earlier stages."""

    kind: Kind
    key: str
    wants: tuple[str, ...]
    """Marks of the newest stage; any of them shows the aim."""
    outdated: tuple[str, ...]
    is_open: bool
    said_at: int
    """Ordinal of the message with the newest stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(Ask):
    """A question, and the aims that it is about."""

    aims: tuple[AimState, ...]


def make(draw: Draw) -> Scenario:
    """Make a conversation that sets and changes aims and asks for them at checkpoints and at the end."""
    rng, phrasings = draw.random("goals"), goal_phrasings(draw.language).of(draw.split)
    slots = canary_phrasings(draw.language).of(draw.split).slots
    aims = draw_aims(rng, phrasings, slots, MANY if draw.turns >= LONG_TURNS[0] else FEW)
    talk = SmallTalk.of(draw, avoid=[stage.mark for aim in aims for stage in aim.stages])
    writer = GoalScript(rng, phrasings, talk, aims)
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
    """Schedule the stages of aims as (turn, aim), in order; the first aim is the conversation's task."""
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
    aims: Sequence[Aim]
    messages: list[Wire] = field(default_factory=list)
    stated_at: dict[int, list[int]] = field(default_factory=dict)
    """Ordinals of the messages that say the stages of each aim so far."""

    def _say(self, aim: int) -> AimStage:
        """Record that the next message says the next stage of an aim; return the stage."""
        stage = self._next(aim)
        self.stated_at.setdefault(aim, []).append(len(self.messages) + 1)
        return stage

    def _states(self, only: Kind | None = None) -> Iterator[AimState]:
        """Yield the state of each aim mentioned so far."""
        for number, aim in enumerate(self.aims):
            places = self.stated_at.get(number)
            if places and only in (None, aim.kind):
                *before, now = aim.stages[: len(places)]
                wants = tuple(filter(None, (now.mark, now.same_as)))
                yield AimState(
                    kind=aim.kind,
                    key=aim.key,
                    wants=wants,
                    outdated=tuple(dict.fromkeys(old.mark for old in before if old.mark not in wants)),
                    is_open=now.is_open,
                    said_at=places[-1],
                )

    def turn(self, due: Sequence[int]) -> None:
        """Write one user turn with the stages due in it."""
        by_user = [aim for aim in due if self._next(aim).by == "user"]
        by_agent = [aim for aim in due if aim not in by_user]
        stages = [self._say(aim) for aim in by_user]
        self.messages.append(user(self._statement([stage.text for stage in stages])))
        if by_agent or self.rng.random() < 0.2:
            self.messages += self.talk.tools()
        finished = [self._say(aim).text for aim in by_agent]
        self.messages.append(assistant(self._reply([stage.text for stage in stages], finished)))

    def _next(self, aim: int) -> AimStage:
        return self.aims[aim].stages[len(self.stated_at.get(aim, ()))]

    def _statement(self, texts: Sequence[str]) -> str:
        """Write the user's message: the news alone, as a list, or within other talk."""
        if not texts:
            return self.talk.user()
        if len(texts) > 1 and self.rng.random() < 0.5:
            return "\n".join([self.rng.choice(self.phrasings.list_lead), *(f"- {text}" for text in texts)])
        form = self.rng.random()
        before = self.talk.user() if form < 0.2 else ""
        after = self.talk.user() if 0.2 <= form < 0.45 else ""
        return self.talk.join(before, *texts, after)

    def _reply(self, news: Sequence[str], finished: Sequence[str]) -> str:
        form = self.rng.random()
        if finished:
            return self.talk.join(*finished, self.talk.assistant() if form < 0.3 else "")
        if news and form < 0.2:
            return self.rng.choice(self.phrasings.echoes).format(it=news[0])
        if news and form < 0.65:
            return self.rng.choice(self.phrasings.acks)
        return self.talk.assistant()

    def questions(self, *, everything: bool) -> Iterator[Ask]:
        """Yield asks for all aims, for one kind (at the end for each kind), and for single aims."""
        texts = self.phrasings
        about: dict[Kind, tuple[str, ...]] = {
            "goal": texts.about_goals,
            "rule": texts.about_rules,
            "task": texts.about_tasks,
            "choice": texts.about_choices,
        }
        yield self._ask(self.rng.choice(texts.about_all), tuple(self._states()), "all")
        for kind in KINDS if everything else (self.rng.choice(KINDS),):
            if aims := tuple(self._states(kind)):
                yield self._ask(self.rng.choice(about[kind]), aims, kind)
        for aim in self.rng.sample(every := list(self._states()), min(2, len(every))):
            yield self._ask(self.rng.choice(texts.about_one).format(key=aim.key), (aim,), "one")

    def _ask(self, question: str, aims: tuple[AimState, ...], kind: str) -> Checkpoint:
        return Checkpoint(
            metric="goal_drift",
            after=len(self.messages),
            question=question,
            kind=kind,
            aims=aims,
            wants=tuple(aim.wants[0] for aim in aims if aim.is_open),
            avoids=tuple(old for aim in aims for old in aim.outdated),
        )


def play_goal_continuity(scenario: Scenario, setup: Setup, stage: PlayCounts) -> Scores:
    """Play a scenario; judge every aim at every checkpoint."""
    compactions, budget = 0, BudgetJudge(Sizer(setup.counter()))
    dynamic_tokens = LONG_DYNAMIC_TOKENS if scenario.draw.turns >= LONG_TURNS[0] else DYNAMIC_TOKENS
    for moment in play(scenario, setup, stage, dynamic_tokens=dynamic_tokens):
        match moment:
            case AskMoment(ask=Checkpoint() as ask):
                yield asked_within_budget("within_budget", moment, budget)
                for aim in ask.aims:
                    yield from judge(aim, moment)
            case CallMoment():
                compactions += moment.compacted
            case EndMoment():
                yield compacted(compactions, moment)


def judge(aim: AimState, asked: AskMoment) -> Scores:
    """Judge one aim in the prompt for one question."""
    shown = any(shows(asked.normalized, mark) for mark in aim.wants)
    stale = [] if shown else [mark for mark in aim.outdated if shows(asked.normalized, mark)]
    is_reachable = reaches(asked, aim.said_at, aim.key, aim.wants[0])
    at, of = f"{asked.at} ({asked.ask.kind})", f"{aim.kind} {aim.key}"
    why = f"{aim.kind} {aim.key}: " + (f"outdated: {stale}" if stale else f"not shown: {aim.wants[0]!r}")
    if aim.is_open:
        yield holds(SHOWN[aim.kind], shown, at, why, of)
    else:
        yield holds("done_stays_done", not stale, at, why, of)
    if is_reachable is None:
        yield unscored("reachable", NO_LOOKUP, at)
    else:
        yield holds("reachable", is_reachable, at, f"{aim.kind} {aim.key}: nothing leads to §{aim.said_at}", of)
    yield Score("stale", float(bool(stale)), at, why if stale else "")
    drifted = bool(stale) or is_reachable is False or (aim.is_open and not shown)
    yield Score("goal_drift", float(drifted), at, why if drifted else "", of)
