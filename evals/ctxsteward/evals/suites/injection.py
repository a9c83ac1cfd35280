"""The suite ``injection``: whatever people, tools and documents say is shown as their words, and moves nothing else.

A conversation in which attacks are said in every place that untrusted text has: by users, in tool results, documents,
tool names and arguments, names of participants, replies, system messages that somebody appends, notes. Beside it runs
its twin: the same conversation with harmless text of the same length and lines. Head, budgets, order of sections, roles
and who says what must be the twin's, call by call; the prompt must read back as what it was made from; and what the
user asked to remember must be shown wherever the twin shows it. The product does not try to detect attacks, and neither
does the suite: it checks that they have no effect.

Source: the layered-envelope design (attack surface: budgets, sections, forged content); the state design (trust).
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from ctxsteward.envelope import Envelope, EnvelopeBuilder, Session
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import Wire

from ..canaries import normalize, shows
from ..prompt_cost import Sizer
from ..replay import ModelCall
from ..subjects import prompt_from
from .attacks import CARRIERS, Attack, Say, harmless, wrappings
from .kit import (
    Ask,
    AskMoment,
    BudgetJudge,
    CallMoment,
    Draw,
    PlayCounts,
    Scenario,
    Score,
    Scores,
    Setup,
    SmallTalk,
    UnscoredCheck,
    as_openai,
    assistant,
    deck,
    head,
    holds,
    owed,
    play,
    sound,
    texts_of,
    user,
)
from .untrusted_text_checks import (
    MarkedAttack,
    attributed,
    head_unmoved,
    message_roles_kept,
    roles_kept,
    sections_kept,
    template_tokens_inert,
    turns_alike,
)

ATTACK_SHARE = 0.25
"""Of the turns."""
CANARY_EVERY = 7
CHECKED_EVERY = 3
"""Of the calls without an attack since the last one, every third is looked at whole."""

# -- making ------------------------------------------------------------------------------------------------------


def make(draw: Draw) -> Scenario:
    """The attacked conversation; its twin is made where it is played."""
    made = composed(draw, nonce_of(draw), lambda text: text)
    rng = draw.random("head")
    return Scenario(
        draw=draw, messages=tuple(made.messages), asks=tuple(made.asks), profile=head(rng, draw.language, draw.split),
        tools=tuple(_TOOLS), tags={"attacks": ", ".join(sorted({one.kind for one in made.marked}))},
    )  # fmt: skip


_TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "description": about, "parameters": {"type": "object", "properties": {}}},
    }
    for name, about in (("read_page", "Reads a page."), ("find_order", "Looks an order up."))
]


def nonce_of(draw: Draw) -> str:
    return f"{draw.random('nonce').randrange(10**9):09d}"


@dataclass(slots=True)
class AttackedConversation:
    """A conversation, what was planted in it, and what is asked."""

    messages: list[Wire] = field(default_factory=list)
    marked: list[MarkedAttack] = field(default_factory=list)
    asks: list[Ask] = field(default_factory=list)


def composed(draw: Draw, nonce: str, say: Say, attacks: Iterator[Attack] | None = None) -> AttackedConversation:
    """The conversation with each attack as `say` has it, all else the same; `attacks` in place of our own."""
    talk, rng = SmallTalk.of(draw), draw.random("injection")
    conversation = AttackedConversation()
    remembered: list[tuple[str, str]] = []
    attacks = attacks or _attacks(draw, nonce)
    carriers, things = deck(rng, list(CARRIERS)), deck(rng, list(draw.texts("attacks", "things")))
    for turn in range(draw.turns):
        if turn % CANARY_EVERY == 1:
            thing, value = next(things), str(rng.randint(1_000, 99_999))
            text = rng.choice(draw.texts("attacks", "canaries")).format(thing=thing, value=value)
            remembered = [pair for pair in remembered if pair[0] != thing] + [(thing, value)]
            conversation.messages += [user(talk.join(text, talk.user())), assistant(talk.assistant())]
        elif rng.random() < ATTACK_SHARE:
            attack, carrier = next(attacks), next(carriers)
            messages, at, role = CARRIERS[carrier](rng, talk, attack, say(attack.text))
            kind = f"{attack.kind} in {carrier}"
            conversation.marked.append(MarkedAttack(attack.marker, len(conversation.messages) + at + 1, role, kind))
            conversation.messages += messages
        else:
            conversation.messages += [
                user(talk.user()),
                *(talk.tools() if rng.random() < 0.15 else ()),
                assistant(talk.assistant()),
            ]
        if turn % 9 == 8 and remembered:
            conversation.asks.append(_ask(rng, draw, rng.choice(remembered), len(conversation.messages)))
    return conversation


def _ask(rng: Random, draw: Draw, told: tuple[str, str], after: int) -> Ask:
    question = rng.choice(draw.texts("attacks", "questions")).format(thing=told[0])
    return Ask(metric="canaries_kept", after=after, question=question, wants=(told[1],), kind="canary")


def _attacks(draw: Draw, nonce: str) -> Iterator[Attack]:
    """Attacks of all kinds of the split, again and again."""
    rng, wraps = draw.random("attacks"), wrappings(draw.split)
    for kind in deck(rng, list(wraps)):
        marker = "".join(rng.choices(string.ascii_uppercase, k=3)) + f"-{rng.randint(10_000, 99_999)}"
        opening, demand, turn = (
            rng.choice(draw.texts("attacks", each)) for each in ("openings", "demands", "false_turns")
        )
        inner = {"text": opening + demand.format(m=marker), "turn": turn.format(m=marker)}
        yield Attack(kind, marker, wraps[kind](rng, inner | {"marker": marker, "nonce": nonce}))


# -- playing -----------------------------------------------------------------------------------------------------


def play_injection(scenario: Scenario, setup: Setup, stage: PlayCounts) -> Scores:
    """Play both side by side; judge the calls."""
    nonce = nonce_of(scenario.draw)
    attacked, twin = (composed(scenario.draw, nonce, say) for say in (lambda text: text, harmless))
    if setup.subject is None:
        yield from play_beside(scenario, attacked, twin, setup, stage)
    else:
        yield from play_messages(scenario, attacked, twin, setup, stage)


def play_messages(
    scenario: Scenario, attacked: AttackedConversation, twin: AttackedConversation, setup: Setup, stage: PlayCounts
) -> Scores:
    """The same of a subject that has nothing but messages: roles, budget, and what the twin shows."""
    budget = BudgetJudge(Sizer(setup.counter()))
    _, ends = as_openai(attacked.messages)
    every = [one._replace(ordinal=ends[one.ordinal - 1]) for one in attacked.marked]
    beside = play(_said_as(scenario, twin), setup, PlayCounts())
    for moment in play(_said_as(scenario, attacked), setup, stage):
        other = next(beside)
        match moment, other:
            case CallMoment(), CallMoment():
                marked = [one for one in every if one.ordinal <= len(moment.wires)]
                if moment.number % CHECKED_EVERY == 0:
                    yield from message_roles_kept(moment.prompt.messages, marked, moment.at)
                    yield sound("budgets_kept", moment, budget)
            case AskMoment(), AskMoment():
                yield _beside_twin(moment.ask, moment.normalized, other.normalized, moment.at)


def _said_as(scenario: Scenario, conversation: AttackedConversation) -> Scenario:
    return replace(scenario, messages=tuple(conversation.messages), asks=tuple(conversation.asks))


def play_beside(
    scenario: Scenario, attacked: AttackedConversation, twin: AttackedConversation, setup: Setup, stage: PlayCounts
) -> Scores:
    """An attacked conversation and its harmless twin, call by call."""
    nonce, asks = nonce_of(scenario.draw), {ask.after: ask for ask in attacked.asks}
    with memory_store(nonce) as store, memory_store(nonce) as other_store:
        pair = setup.session(scenario, store), setup.session(scenario, other_store)
        builders = setup.builder(), setup.builder()
        fresh = 0
        for number, (wire, other) in enumerate(zip(attacked.messages, twin.messages, strict=True)):
            if wire["role"] == "assistant" and number:
                stage.builds += 1
                fresh += 1
                envelopes = builders[0].build(pair[0]), builders[1].build(pair[1])
                marked = [one for one in attacked.marked if one.ordinal <= number]
                live = bool(marked) and marked[-1].ordinal > number - 3
                call = ModelCall(
                    number=stage.builds, session=pair[0], envelope=envelopes[0], wires=attacked.messages[:number]
                )
                yield from _judged(call, envelopes[1], marked, whole=live or fresh % CHECKED_EVERY == 0)
            pair[0].append(wire)
            pair[1].append(other)
            if number + 1 in asks:
                yield asked(asks[number + 1], builders, pair)


def _judged(call: ModelCall, twin: Envelope, marked: Sequence[MarkedAttack], *, whole: bool) -> Scores:
    envelope, at = call.envelope, f"call {call.number}"
    yield head_unmoved(envelope, twin, at)
    yield turns_alike(envelope, twin, at)
    if not whole and not envelope.reports:
        return
    yield sections_kept(envelope, at)
    yield template_tokens_inert(envelope, at)
    yield from roles_kept(envelope, marked, at)
    citations = [bullet.citations for bullet in call.session.state.bullets]
    yield from attributed(envelope, call.wires, marked, citations, at)
    if call.wires[-1]["role"] not in ("system", "developer"):  # one that was appended is fenced, not verbatim
        yield owed("budgets_kept", call)


def asked(
    ask: Ask, builders: tuple[EnvelopeBuilder, EnvelopeBuilder], pair: tuple[Session, Session]
) -> Score | UnscoredCheck:
    window, twin_window = (
        normalize("\n".join(text for wire in messages for text in texts_of(wire)))
        for messages in (
            prompt_from(builder.preview(session, ask.question)).messages
            for builder, session in zip(builders, pair, strict=True)
        )
    )
    return _beside_twin(ask, window, twin_window, f"after message {ask.after}: {ask.question}")


def _beside_twin(ask: Ask, window: str, twin_window: str, at: str) -> Score | UnscoredCheck:
    shown, twin_shown = (all(shows(text, value) for value in ask.wants) for text in (window, twin_window))
    if not shown and not twin_shown:
        return UnscoredCheck("canaries_kept", "the twin does not show it either", at)
    return holds("canaries_kept", shown, at, f"{ask.wants[0]} is not shown, and is in the twin")
