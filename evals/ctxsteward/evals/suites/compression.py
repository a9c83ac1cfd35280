"""The suite ``compression``: far more is said than fits; planted values survive, and no message is unaccounted for.

Typed values (`canaries`: safety rules, constraints, decisions, identifiers, numbers, updated values, near-duplicates)
are planted in a conversation with a budget of about a fifth of its tokens. Around them: repetitions and slight
variations of earlier messages, tool results of many sizes, some larger than the whole budget. At checkpoints and at the
end the values said so far are looked for in the envelope for a question that names none of them. What is not shown must
be reachable by a reference of its own or by one search with its sentence's other words. Costs are prompt tokens with
the provider's prefix cache priced at a tenth, against sending everything.

Source: `canaries`, `prompt_cost`; the layered-envelope design (re-compaction, losses, prefix).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median

from ctxsteward.schemas.message import Wire

from ..canaries import TypedCanary, filled, normalize, planted_values, shows
from ..phrasings import Texts, canary_phrasings
from ..replay import budget_faults
from .kit import pasted_content as pasted
from .kit.play import (
    AskMoment,
    BudgetJudge,
    CallMoment,
    ConversationCost,
    EndMoment,
    PrefixJudge,
    accounted,
    asked_within_budget,
    compacted,
    play,
    reachable,
    sound,
)
from .kit.said_texts import texts_of
from .kit.suite import TURNS, Ask, Draw, PlayCounts, Scenario, Score, Scores, Setup, holds, unscored
from .kit.talk import SmallTalk, answer, assistant, user

TOKENS_A_TURN = 26
"""Dynamic budget per turn: about a fifth of a turn's tokens."""
TURNS_A_CANARY = 5
CHECKPOINTS = 3
"""Checkpoints before the end."""
OWED_EVERY = 5
"""Interval of the calls of a long scenario that are checked for all promises; in others each call is."""


Planted = tuple[TypedCanary, str]
"""A planted value, and its newest sentence without the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryQuestion(Ask):
    """A question, and the values planted before it."""

    planted: tuple[Planted, ...]


def make(draw: Draw) -> Scenario:
    """Make a conversation that outgrows its budget several times."""
    rng, texts = draw.random("compression"), canary_phrasings(draw.language).of(draw.split)
    planted = list(_unambiguous(rng, texts.kinds, texts.slots, draw.turns))
    talk = SmallTalk.of(draw, avoid=[value for _, _, values in planted for value in values])
    due: dict[int, list[tuple[int, int]]] = {}
    for place, (_, sentences, _) in enumerate(planted):
        for number, (turn, _) in enumerate(sentences):
            due.setdefault(turn, []).append((place, number))
    said_at: list[list[int]] = [[] for _ in planted]
    messages: list[Wire] = []
    asks: list[Ask] = []
    checkpoints = {int(draw.turns * (part + 1) / (CHECKPOINTS + 1)) for part in range(CHECKPOINTS)} | {draw.turns - 1}
    for turn in range(draw.turns):
        due_now = due.get(turn, [])
        news = [planted[place][1][number][1] for place, number in due_now]
        if news:
            before = talk.user() if rng.random() < 0.25 else ""
            after = talk.user() if not before and rng.random() < 0.25 else ""
            messages.append(user(talk.join(before, *news, after)))
        else:
            messages.append(user(_chatter(rng, talk, messages)))
        for place, _ in due_now:
            said_at[place].append(len(messages))
        if rng.random() < 0.3:
            messages += _tools(rng, talk)
        acked = news and rng.random() < 0.5
        messages.append(assistant(filled(rng.choice(texts.replies), rng, texts.slots) if acked else talk.assistant()))
        if turn in checkpoints:
            asks.append(_ask(rng, draw, len(messages), [*_planted(planted, said_at)]))
    return Scenario(
        draw=draw, messages=tuple(messages), asks=tuple(asks), system=draw.texts("compression", "system")[0]
    )


Found = tuple[str, list[tuple[int, str]], list[str]]


def _unambiguous(
    rng: Random, phrasings: Mapping[str, Texts], slots: Mapping[str, Texts], turns: int
) -> Iterator[Found]:
    """Yield values to plant; no value occurs in the sentences of another."""
    texts: list[str] = []
    values: list[str] = []
    for kind, sentences, marked in planted_values(rng, phrasings, slots, turns, max(14, turns // TURNS_A_CANARY)):
        own_values = [normalize(value) for value in marked]
        own_texts = [normalize(sentence) for _, sentence in sentences]
        clash = any(value in text for value in own_values for text in texts) or any(
            value in text for value in values for text in own_texts
        )
        if clash:
            continue
        texts += own_texts
        values += own_values
        yield kind, sentences, marked


def _chatter(rng: Random, talk: SmallTalk, before: Sequence[Wire]) -> str:
    """Return new small talk, or an earlier message in nearly the same words."""
    earlier = [m["content"] for m in before[-60:] if m["role"] == "user" and talk.is_idle(m["content"])]
    if not earlier or rng.random() > 0.2:
        return talk.user()
    again = rng.choice(earlier)
    return again if rng.random() < 0.3 else talk.join(again, talk.user())


def _tools(rng: Random, talk: SmallTalk) -> list[Wire]:
    """Return a tool call and its result; every sixth result is far larger than the budget."""
    if rng.random() > 1 / 6:
        return talk.tools()
    name, arguments, result = talk.fresh(
        lambda: pasted.tool_output(rng, talk.subject.things, rows=rng.randint(150, 400), split=talk.split)
    )
    call_id = f"call_large_{rng.randrange(16**8):08x}"
    return [pasted.calls((call_id, name, arguments)), answer(call_id, result)]


def _planted(drawn: Sequence[Found], said_at: Sequence[Sequence[int]]) -> Iterator[Planted]:
    """Yield the values said so far, each in its newest form."""
    for (kind, sentences, values), places in zip(drawn, said_at, strict=True):
        if not places:
            continue
        now = len(places) - 1
        value, sentence = values[now], sentences[now][1]
        canary = TypedCanary(kind=kind, value=value, ordinals=tuple(places), stale=tuple(values[:now]))  # type: ignore[arg-type]
        yield canary, " ".join(sentence.replace(value, " ").split()) or sentence


def _ask(rng: Random, draw: Draw, after: int, planted: Sequence[Planted]) -> CanaryQuestion:
    return CanaryQuestion(
        metric="canaries_shown",
        after=after,
        question=rng.choice(draw.texts("compression", "questions")),
        planted=tuple(planted),
        wants=tuple(canary.value for canary, _ in planted),
        avoids=tuple(old for canary, _ in planted for old in canary.stale),
    )


def play_compression(scenario: Scenario, setup: Setup, stage: PlayCounts) -> Scores:
    """Play a scenario; judge values at checkpoints, the promises of every call, and the totals at the end."""
    costs, prefix = ConversationCost(setup.counter()), PrefixJudge()
    budget = BudgetJudge(costs.sizer)
    compactions = first = 0
    every = 1 if scenario.turns <= TURNS[1] else OWED_EVERY
    for moment in play(scenario, setup, stage, dynamic_tokens=TOKENS_A_TURN * scenario.turns):
        match moment:
            case CallMoment():
                yield from _call_scores(moment, budget)
                yield from prefix.read("prefix_stable", moment)
                compactions += moment.compacted
                costs.read(moment)
                if not first and costs.said_tokens > moment.task.budget_tokens:
                    first = moment.number
                if moment.number % every == 0:
                    yield sound("sound", moment, budget)
            case AskMoment(ask=CanaryQuestion() as ask):
                yield asked_within_budget("within_budget", moment, budget)
                for planted in ask.planted:
                    yield from judge(planted, moment)
            case EndMoment():
                yield from accounted("accounted", moment)
                yield compacted(compactions, moment)
                yield Score("cost_ratio", costs.ratio)
    yield late_cpu(stage.build_cpu_seconds, first)


def _call_scores(moment: CallMoment, budget: BudgetJudge) -> Scores:
    """Judge the budget of a call and the depth of its compactions."""
    faults = budget.faults(moment)
    if moment.ours is not None:
        faults += budget_faults(moment.ours.envelope, moment.ours.session)
        for report in moment.ours.envelope.reports:
            yield Score("depth", (report.pre_tokens - report.post_tokens) / report.pre_tokens)
    yield holds("within_budget", not faults, moment.at, "; ".join(faults))


def judge(planted: Planted, asked: AskMoment) -> Scores:
    """Judge one planted value in the prompt for one question."""
    canary, query = planted
    said_at = canary.ordinals[-1]
    shown = shows(asked.normalized, canary.value)
    stale = [] if shown else [old for old in canary.stale if shows(asked.normalized, old)]
    what = f"{canary.kind}: {canary.value!r} of §{said_at}"
    why, of = f"{what} is not shown", (*canary.stale, canary.value)[0]
    yield holds("canaries_shown", shown, asked.at, why, of)
    if canary.kind == "safety_rule":
        yield holds("safety_rules", shown, asked.at, why, of)
    yield Score("stale", float(bool(stale)), asked.at, f"{why}, but {stale} is" if stale else "")
    if canary.stale:
        yield _follows(canary, asked, of)
    yield reachable("reachable", asked, said_at, query, canary.value, what, of)


def _follows(canary: TypedCanary, asked: AskMoment, of: str) -> Score:
    """Check that no line of the subject's own still gives an old value without the new one."""
    if asked.prompt.summary is None:
        return unscored("updates_followed", "the subject does not mark its own lines", asked.at)
    alone = [
        old
        for line in dict.fromkeys(asked.own_lines())
        for old in canary.stale
        if shows(normalize(line), old) and not shows(normalize(line), canary.value) and not _is_quote(line, old, asked)
    ]
    why = f"a bullet still says {alone}; since then {canary.value!r}"
    return holds("updates_followed", not alone, asked.at, why, of)


def _is_quote(line: str, value: str, asked: AskMoment) -> bool:
    """Return whether a line outside the summary holds a whole line of a message that shows the value."""
    if line in (asked.prompt.summary or "").splitlines():
        return False
    rows = (row.strip() for wire in asked.wires for text in texts_of(wire) for row in text.splitlines())
    return any(row in line and shows(normalize(row), value) for row in rows if row)


def late_cpu(seconds: Sequence[float], first: int) -> Score:
    """Compare median CPU of the last fifth of the builds with the first fifth, counted from the first compaction."""
    rows = seconds[first - 1 :] if first else ()
    part = len(rows) // 5
    if part < 3 or median(rows[:part]) <= 0:
        return unscored("late_cpu_ratio", "too few builds after the first compaction")
    return Score("late_cpu_ratio", median(rows[-part:]) / median(rows[:part]))
