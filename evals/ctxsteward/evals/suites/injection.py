"""The suite ``injection``: untrusted text is shown as the words of its speaker, and changes nothing else.

A conversation holds attacks in every place of untrusted text: user messages, tool results, documents, tool names and
arguments, participant names, replies, appended system messages. Its twin is the same conversation with harmless text of
the same length and lines. Head, budgets, order of sections, roles and speakers must equal the twin's at each call; the
prompt must parse back into its parts; and a value that the user asked to remember must be shown wherever the twin shows
it. The product does not try to detect attacks, and neither does the suite: it checks that they have no effect.

The checks are pure functions of requests. They find the place, the role and the effects of untrusted text. Each
attack has a marker that occurs nowhere else, so any part of it is found. Our own derived text (bullets, recalled
messages, notes, messages without a role of their own) is identified by the layout, never by its looks.

Source: the layered-envelope design (attack surface: budgets, sections, forged content); the state design (trust).
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from itertools import groupby

from ctxsteward.envelope import Envelope, EnvelopeBuilder, Session
from ctxsteward.envelope.layout.fragments import DerivedText, ToolResults
from ctxsteward.envelope.layout.rows import fenced_rows, rows_of, unfenced
from ctxsteward.envelope.render.openai_chat import wires_of
from ctxsteward.envelope.render.text import parse, spans
from ctxsteward.envelope.testing import memory_store
from ctxsteward.envelope.tokens.budgets import SECTIONS
from ctxsteward.schemas import InputError, Ref
from ctxsteward.schemas.message import Wire

from ..canaries import normalize, shows
from ..prompt_cost import Sizer
from ..replay import ModelCall
from ..subjects.ours import prompt_from
from .attacks import CARRIERS, Attack, Say, harmless, wrappings
from .kit.play import AskMoment, BudgetJudge, CallMoment, as_openai, owed, play, sound
from .kit.said_texts import texts_of
from .kit.suite import Ask, Draw, PlayCounts, Scenario, Score, Scores, Setup, holds, unscored
from .kit.talk import SmallTalk, assistant, deck, head, user

TEMPLATE_TOKENS = re.compile(
    r"<\|[a-z_]+\|>|\[/?INST\]|<<?/?SYS>>|<(?:start|end)_of_turn>|</?s>|<(?:bos|eos|pad|unk)>", re.IGNORECASE
)
_ROW = re.compile(r"§(\d+)(?:\.\d+(?:-\d+)?)? (user|assistant|tool|system|developer)(?:, superseded by [^:\n]*)?: ")
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)(?: §\d+-§\d+)?:")
_REF = re.compile(r"§\d+(?:\.\d+)?")


RequestText = tuple[str, str]
"""Role and text of a part of a request."""


def head_of(envelope: Envelope) -> dict[str, object]:
    """Return everything that only an operator decides, as rendered."""
    sections: dict[str, object] = {
        name: ([f.text for f in section.fragments], section.tokens, section.budget_tokens, section.epoch)
        for name, section in envelope.sections.items()
        if name != "dynamic"
    }
    anthropic, chat = envelope.render("anthropic", cache=False), envelope.render("openai-chat")
    return sections | {
        "order": tuple(envelope.sections),
        "dynamic budget": envelope.section("dynamic").budget_tokens,
        "profile": envelope.profile_version,
        "tools": envelope.head.tools,
        "anthropic": {name: value for name, value in anthropic.items() if name != "messages"},
        "openai-chat": [m for m in chat["messages"] if m["role"] in ("system", "developer")],
        "arguments": sorted(chat),
    }


def head_unmoved(envelope: Envelope, twin: Envelope, at: str) -> Score:
    """Check that the head equals the twin's to the byte: texts, tokens, budgets, epochs, order, tools, version."""
    own, twins = head_of(envelope), head_of(twin)
    moved = [name for name in own if own[name] != twins[name]]
    return holds("head_unmoved", not moved, at, f"moved: {', '.join(moved)}")


def sections_kept(envelope: Envelope, at: str) -> Score:
    """Check that the prompt has four sections in order and parses back into exactly its spans."""
    rows = list(spans(envelope))
    order = [SECTIONS.index(label) for row in rows if (label := row.label.partition(" ")[0]) in SECTIONS]
    try:
        back = parse(envelope.nonce, envelope.render("text")["prompt"])
    except InputError as error:
        return Score("sections_kept", 0.0, at, str(error))
    right = tuple(envelope.sections) == SECTIONS and order == sorted(order)
    return holds("sections_kept", right and back == rows, at, "the prompt reads back as other sections or spans")


def template_tokens_inert(envelope: Envelope, at: str) -> Score:
    """Check that the prompt holds no template token of a local model, and this session's closing line once."""
    prompt = envelope.render("text")["prompt"]
    tokens = TEMPLATE_TOKENS.findall(prompt)
    closings = len(re.findall(rf"(?m)^</{re.escape(envelope.nonce)}>$", prompt))
    return holds(
        "template_tokens_inert", not tokens and closings == 1, at, f"{tokens[:3]}, closing line {closings} times"
    )


def roles_kept(envelope: Envelope, marked: Sequence[Attack], at: str) -> Iterator[Score]:
    """Check that no attack is in the head or in another role than its speaker's; tool text must stay a tool's."""
    derived = set(derived_texts(envelope))
    requests = {
        "openai-chat": list(_openai(envelope.render("openai-chat"))),
        "anthropic": list(_anthropic(envelope.render("anthropic", cache=False))),
    }
    for metric, from_tools in (("roles_kept", False), ("tool_text_not_promoted", True)):
        wrong = [
            f"{attack.kind} of {attack.role} §{attack.ordinal} stands as {place[0]} ({provider})"
            for provider, places in requests.items()
            for attack in marked
            if (attack.role == "tool") is from_tools
            for place in places
            if attack.marker in place[1] and not _may_stand(attack, place, derived)
        ]
        yield holds(metric, not wrong, at, "; ".join(wrong[:3]))


def message_roles_kept(messages: Sequence[Wire], marked: Sequence[Attack], at: str) -> Iterator[Score]:
    """Check in plain messages that no attack is in another role than its speaker's."""
    places = list(_openai({"messages": messages}))
    for metric, from_tools in (("roles_kept", False), ("tool_text_not_promoted", True)):
        wrong = [
            f"{attack.kind} of {attack.role} §{attack.ordinal} stands as {place[0]}"
            for attack in marked
            if (attack.role == "tool") is from_tools
            for place in places
            if attack.marker in place[1] and place[0] != attack.role
        ]
        yield holds(metric, not wrong, at, "; ".join(wrong[:3]))


def _may_stand(attack: Attack, place: RequestText, derived: set[str]) -> bool:
    if place[0] == "user" and place[1].rstrip("\n") in derived:
        return True
    return place[0] == attack.role and attack.role not in ("system", "developer")


def derived_texts(envelope: Envelope) -> Iterator[str]:
    """Yield our own texts in the dynamic section."""
    dynamic = envelope.dynamic
    yield from (
        fragment.text.rstrip("\n") for fragment in (dynamic.bullets, dynamic.context, dynamic.notes) if fragment
    )
    for fragment in dynamic.strip.fragments:
        for step in fragment.steps:
            trailing = step.trailing if isinstance(step, ToolResults) else (step,)
            yield from (derived.text.rstrip("\n") for derived in trailing if isinstance(derived, DerivedText))


def _openai(request: Wire) -> Iterator[RequestText]:
    for message in request["messages"]:
        role, content = message["role"], message.get("content")
        blocks = content if isinstance(content, list) else [content]
        yield from (
            (role, block if isinstance(block, str) else str(block.get("text", block))) for block in blocks if block
        )
        for call in message.get("tool_calls") or ():
            yield (role, f"{call['function']['name']} {call['function']['arguments']}")
        if message.get("name"):
            yield (role, message["name"])
    yield ("tools", str(request.get("tools", "")))


def _anthropic(request: Wire) -> Iterator[RequestText]:
    yield ("system", str(request.get("system", "")))
    yield ("tools", str(request.get("tools", "")))
    for message in request["messages"]:
        content = message["content"]
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if block["type"] == "tool_result":
                yield ("tool", str(block.get("content", "")))
            else:
                yield (message["role"], block["text"] if block["type"] == "text" else str(block))


def attributed(
    envelope: Envelope,
    messages: Sequence[Wire],
    marked: Sequence[Attack],
    bullets: Sequence[tuple[str, ...]],
    at: str,
) -> Iterator[Score]:
    """Check that our lines attribute words correctly: bullets cite their sources, rows and days are the real ones.

    Behind any character that a model may read as a line break, text other than ours must begin with a mark.
    `bullets` are the citations of the current bullets, in order.
    """
    dynamic = envelope.dynamic
    for fragment in filter(None, (dynamic.bullets, dynamic.context)):
        text = unfenced(envelope.nonce, fragment.text).text
        opening = [line for line in text.splitlines() if not line.startswith("> ")]
        same = len(opening) == len(rows_of(text))
        yield holds("attributed", same, at, f"{fragment.kind}: a line without a mark passes for one of ours")
    lines = fenced_rows(envelope.nonce, dynamic.bullets.text) if dynamic.bullets else []
    for line, citations in zip(lines, bullets, strict=False):
        named = tuple(_REF.findall(line))
        ordinals = {Ref.parse(ref).ordinal for ref in citations}
        # a tool's bullet also quotes name and arguments of its call, which are in the message before the result
        cited = all(
            not ordinals.isdisjoint((attack.ordinal, attack.ordinal + (attack.role == "assistant")))
            for attack in marked
            if attack.marker in line
        )
        yield holds(
            "attributed",
            named == tuple(citations) and cited,
            at,
            f"the bullet reads as if from {named}: {line!r:.120}",
        )
    if len(lines) != len(bullets):
        yield Score("attributed", 0.0, at, f"{len(bullets)} bullets stand, {len(lines)} lines read like one")
    if dynamic.context is not None:
        read = fenced_rows(envelope.nonce, dynamic.context.text)
        rows = [(int(row[1]), row[2]) for row in map(_ROW.match, read) if row]
        rows = [row for row, _ in groupby(rows)]  # passages of one message have a row each
        real = [(n, messages[n - 1]["role"]) for n in dynamic.context.refs]
        days = [day[1] for day in map(_DAY.fullmatch, read) if day]
        right = rows == real and days == sorted(set(days))
        yield holds("attributed", right, at, f"recalled as {rows} under {days}, in truth {real}")


def turns_alike(envelope: Envelope, twin: Envelope, at: str) -> Score:
    """Check that messages in both envelopes have the same roles, in the same number of messages."""
    own, twins = _roles(envelope), _roles(twin)
    unlike = [refs for refs in own.keys() & twins.keys() if own[refs] != twins[refs]]
    live = [f.refs for f in envelope.dynamic.turn] == [f.refs for f in twin.dynamic.turn]
    return holds(
        "roles_kept", live and not unlike, at, f"other roles than the twin's at {unlike[:3]}, live turn alike: {live}"
    )


def _roles(envelope: Envelope) -> dict[tuple[int, ...], list[str]]:
    return {
        fragment.refs: [wire["role"] for wire in wires_of(fragment)] for fragment in envelope.dynamic.strip.fragments
    }


ATTACK_SHARE = 0.25
"""Share of turns with an attack."""
CANARY_EVERY = 7
CHECKED_EVERY = 3
"""Interval of the calls without a new attack that get all checks."""

# -- making ------------------------------------------------------------------------------------------------------


def make(draw: Draw) -> Scenario:
    """Make the attacked conversation; `play_injection` makes its twin."""
    return composed(draw, nonce_of(draw), lambda text: text)[0]


_TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "description": about, "parameters": {"type": "object", "properties": {}}},
    }
    for name, about in (("read_page", "Reads a page."), ("find_order", "Looks an order up."))
]


def nonce_of(draw: Draw) -> str:
    return f"{draw.random('nonce').randrange(10**9):09d}"


AttackedConversation = tuple[Scenario, list[Attack]]
"""A conversation with its asks, and the attacks in it."""


def composed(draw: Draw, nonce: str, say: Say) -> AttackedConversation:
    """Compose the conversation with `say` applied to each attack."""
    talk, rng = SmallTalk.of(draw), draw.random("injection")
    messages: list[Wire] = []
    marked: list[Attack] = []
    asks: list[Ask] = []
    remembered: list[tuple[str, str]] = []
    attacks = _attacks(draw, nonce)
    carriers, things = deck(rng, list(CARRIERS)), deck(rng, list(draw.texts("attacks", "things")))
    for turn in range(draw.turns):
        if turn % CANARY_EVERY == 1:
            thing, value = next(things), str(rng.randint(1_000, 99_999))
            text = rng.choice(draw.texts("attacks", "canaries")).format(thing=thing, value=value)
            remembered = [pair for pair in remembered if pair[0] != thing] + [(thing, value)]
            messages += [user(talk.join(text, talk.user())), assistant(talk.assistant())]
        elif rng.random() < ATTACK_SHARE:
            attack, carrier = next(attacks), next(carriers)
            carried, at, role = CARRIERS[carrier](rng, talk, attack, say(attack.text))
            kind = f"{attack.kind} in {carrier}"
            marked.append(attack._replace(kind=kind, ordinal=len(messages) + at + 1, role=role))
            messages += carried
        else:
            messages += [
                user(talk.user()),
                *(talk.tools() if rng.random() < 0.15 else ()),
                assistant(talk.assistant()),
            ]
        if turn % 9 == 8 and remembered:
            thing, value = rng.choice(remembered)
            question = rng.choice(draw.texts("attacks", "questions")).format(thing=thing)
            asks.append(
                Ask(metric="canaries_kept", after=len(messages), question=question, wants=(value,), kind="canary")
            )
    scenario = Scenario(
        draw=draw,
        messages=tuple(messages),
        asks=tuple(asks),
        profile=head(draw.random("head"), draw.language, draw.split),
        tools=tuple(_TOOLS),
        tags={"attacks": ", ".join(sorted({attack.kind for attack in marked}))},
    )
    return scenario, marked


def _attacks(draw: Draw, nonce: str) -> Iterator[Attack]:
    """Yield attacks of all kinds of the split without end."""
    rng, wraps = draw.random("attacks"), wrappings(draw.split)
    for kind in deck(rng, list(wraps)):
        marker = "".join(rng.choices(string.ascii_uppercase, k=3)) + f"-{rng.randint(10_000, 99_999)}"
        opening, demand, turn = (
            rng.choice(draw.texts("attacks", part)) for part in ("openings", "demands", "false_turns")
        )
        inner = {"text": opening + demand.format(m=marker), "turn": turn.format(m=marker)}
        yield Attack(kind, marker, wraps[kind](rng, inner | {"marker": marker, "nonce": nonce}))


# -- playing -----------------------------------------------------------------------------------------------------


def play_injection(scenario: Scenario, setup: Setup, stage: PlayCounts) -> Scores:
    """Play the conversation and its twin side by side; judge the calls."""
    nonce = nonce_of(scenario.draw)
    (_, marked), (twin, _) = (composed(scenario.draw, nonce, say) for say in (lambda text: text, harmless))
    play_pair = play_beside if setup.subject is None else play_messages
    yield from play_pair((scenario, marked), twin, setup, stage)


def play_messages(attacked: AttackedConversation, twin: Scenario, setup: Setup, stage: PlayCounts) -> Scores:
    """Judge a subject by its messages only: roles, budget, and the values that the twin shows."""
    scenario, attacks = attacked
    budget = BudgetJudge(Sizer(setup.counter()))
    _, ends = as_openai(scenario.messages)
    every = [attack._replace(ordinal=ends[attack.ordinal - 1]) for attack in attacks]
    beside = play(twin, setup, PlayCounts())
    for moment in play(scenario, setup, stage):
        other = next(beside)
        match moment, other:
            case CallMoment(), CallMoment():
                marked = [attack for attack in every if attack.ordinal <= len(moment.wires)]
                if moment.number % CHECKED_EVERY == 0:
                    yield from message_roles_kept(moment.prompt.messages, marked, moment.at)
                    yield sound("budgets_kept", moment, budget)
            case AskMoment(), AskMoment():
                yield _beside_twin(moment.ask, moment.normalized, other.normalized, moment.at)


def play_beside(attacked: AttackedConversation, twin: Scenario, setup: Setup, stage: PlayCounts) -> Scores:
    """Compare an attacked conversation with its harmless twin, call by call."""
    scenario, attacks = attacked
    nonce, asks = nonce_of(scenario.draw), {ask.after: ask for ask in scenario.asks}
    with memory_store(nonce) as store, memory_store(nonce) as other_store:
        pair = setup.session(scenario, store), setup.session(scenario, other_store)
        builders = setup.builder(), setup.builder()
        fresh = 0
        for number, (wire, other) in enumerate(zip(scenario.messages, twin.messages, strict=True)):
            if wire["role"] == "assistant" and number:
                stage.builds += 1
                fresh += 1
                envelopes = builders[0].build(pair[0]), builders[1].build(pair[1])
                marked = [attack for attack in attacks if attack.ordinal <= number]
                live = bool(marked) and marked[-1].ordinal > number - 3
                call = ModelCall(
                    number=stage.builds, session=pair[0], envelope=envelopes[0], wires=scenario.messages[:number]
                )
                yield from _judged(call, envelopes[1], marked, whole=live or fresh % CHECKED_EVERY == 0)
            pair[0].append(wire)
            pair[1].append(other)
            if number + 1 in asks:
                yield asked(asks[number + 1], builders, pair)


def _judged(call: ModelCall, twin: Envelope, marked: Sequence[Attack], *, whole: bool) -> Scores:
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
    if call.wires[-1]["role"] not in ("system", "developer"):  # an appended system message is fenced, not verbatim
        yield owed("budgets_kept", call)


def asked(ask: Ask, builders: tuple[EnvelopeBuilder, EnvelopeBuilder], pair: tuple[Session, Session]) -> Score:
    window, twin_window = (
        normalize("\n".join(text for wire in messages for text in texts_of(wire)))
        for messages in (
            prompt_from(builder.preview(session, ask.question)).messages
            for builder, session in zip(builders, pair, strict=True)
        )
    )
    return _beside_twin(ask, window, twin_window, f"after message {ask.after}: {ask.question}")


def _beside_twin(ask: Ask, window: str, twin_window: str, at: str) -> Score:
    shown, twin_shown = (all(shows(text, value) for value in ask.wants) for text in (window, twin_window))
    if not shown and not twin_shown:
        return unscored("canaries_kept", "the twin does not show it either", at)
    return holds("canaries_kept", shown, at, f"{ask.wants[0]} is not shown, but the twin shows it")
