"""Pure checks of the suite ``injection``: where untrusted text stands in a request, as whose words, what it has moved.

An attack carries a marker that occurs nowhere else, so wherever any of it goes, it is seen. Our own derived text
(bullets, recalled messages, notes, messages without a role of their own) is known from the layout, never by its looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from ctxsteward.envelope import Envelope
from ctxsteward.envelope.layout import DerivedText, ToolResults, rows_of, unfenced
from ctxsteward.envelope.render import parse, spans, wires_of
from ctxsteward.envelope.tokens import SECTIONS
from ctxsteward.schemas import InputError, Ref, Wire

from .kit import Score, holds

TEMPLATE_TOKENS = re.compile(
    r"<\|[a-z_]+\|>|\[/?INST\]|<<?/?SYS>>|<(?:start|end)_of_turn>|</?s>|<(?:bos|eos|pad|unk)>", re.IGNORECASE
)
_ROW = re.compile(r"§(\d+)(?:\.\d+(?:-\d+)?)? (user|assistant|tool|system|developer)(?:, superseded by [^:\n]*)?: ")
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)(?: §\d+-§\d+)?:")
_REF = re.compile(r"§\d+(?:\.\d+)?")


class MarkedAttack(NamedTuple):
    """An attack in a conversation."""

    marker: str
    ordinal: int
    role: str
    """Of the message it came in; ``tool`` in any dialect. ``system`` only if somebody appended one."""
    kind: str


class RequestText(NamedTuple):
    """A text of a request."""

    role: str
    text: str


def head_of(envelope: Envelope) -> dict[str, object]:
    """Everything that only an operator decides, and how it goes out."""
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
    """The head of the twin to the byte: texts, tokens, budgets, epochs, order, tools, version."""
    one, other = head_of(envelope), head_of(twin)
    moved = [name for name in one if one[name] != other[name]]
    return holds("head_unmoved", not moved, at, f"moved: {', '.join(moved)}")


def sections_kept(envelope: Envelope, at: str) -> Score:
    """Four sections in their order, in a prompt that reads back as exactly the spans it was made from."""
    rows = list(spans(envelope))
    order = [SECTIONS.index(label) for row in rows if (label := row.label.partition(" ")[0]) in SECTIONS]
    try:
        back = parse(envelope.nonce, envelope.render("text")["prompt"])
    except InputError as error:
        return Score("sections_kept", 0.0, at, str(error))
    right = tuple(envelope.sections) == SECTIONS and order == sorted(order)
    return holds("sections_kept", right and back == rows, at, "the prompt reads back as other sections or spans")


def template_tokens_inert(envelope: Envelope, at: str) -> Score:
    """A local model's tokenizer finds no template token in the prompt, and this session's closing line stands once."""
    prompt = envelope.render("text")["prompt"]
    found = TEMPLATE_TOKENS.findall(prompt)
    closings = len(re.findall(rf"(?m)^</{re.escape(envelope.nonce)}>$", prompt))
    return holds(
        "template_tokens_inert", not found and closings == 1, at, f"{found[:3]}, closing line {closings} times"
    )


def roles_kept(envelope: Envelope, marked: Sequence[MarkedAttack], at: str) -> Iterator[Score]:
    """No word of an attack in the head, nor as anybody's but its speaker's; what a tool said stays a tool's."""
    derived = set(derived_texts(envelope))
    requests = {
        "openai-chat": list(_openai(envelope.render("openai-chat"))),
        "anthropic": list(_anthropic(envelope.render("anthropic", cache=False))),
    }
    for metric, from_tools in (("roles_kept", False), ("tool_text_not_promoted", True)):
        wrong = [
            f"{attack.kind} of {attack.role} §{attack.ordinal} stands as {place.role} ({provider})"
            for provider, places in requests.items()
            for attack in marked
            if (attack.role == "tool") is from_tools
            for place in places
            if attack.marker in place.text and not _may_stand(attack, place, derived)
        ]
        yield holds(metric, not wrong, at, "; ".join(wrong[:3]))


def message_roles_kept(messages: Sequence[Wire], marked: Sequence[MarkedAttack], at: str) -> Iterator[Score]:
    """The same of plain messages: no word of an attack stands in a message of another role than its speaker's."""
    places = list(_openai({"messages": messages}))
    for metric, from_tools in (("roles_kept", False), ("tool_text_not_promoted", True)):
        wrong = [
            f"{attack.kind} of {attack.role} §{attack.ordinal} stands as {place.role}"
            for attack in marked
            if (attack.role == "tool") is from_tools
            for place in places
            if attack.marker in place.text and place.role != attack.role
        ]
        yield holds(metric, not wrong, at, "; ".join(wrong[:3]))


def _may_stand(one: MarkedAttack, place: RequestText, derived: set[str]) -> bool:
    if place.role == "user" and place.text.rstrip("\n") in derived:
        return True
    return place.role == one.role and one.role not in ("system", "developer")


def derived_texts(envelope: Envelope) -> Iterator[str]:
    """Our own texts in the dynamic section."""
    dynamic = envelope.dynamic
    yield from (
        fragment.text.rstrip("\n") for fragment in (dynamic.bullets, dynamic.context, dynamic.notes) if fragment
    )
    for fragment in dynamic.strip.fragments:
        for step in fragment.steps:
            trailing = step.trailing if isinstance(step, ToolResults) else (step,)
            yield from (one.text.rstrip("\n") for one in trailing if isinstance(one, DerivedText))


def _openai(request: Wire) -> Iterator[RequestText]:
    for message in request["messages"]:
        role, content = message["role"], message.get("content")
        blocks = content if isinstance(content, list) else [content]
        yield from (
            RequestText(role, block if isinstance(block, str) else str(block.get("text", block)))
            for block in blocks
            if block
        )
        for call in message.get("tool_calls") or ():
            yield RequestText(role, f"{call['function']['name']} {call['function']['arguments']}")
        if message.get("name"):
            yield RequestText(role, message["name"])
    yield RequestText("tools", str(request.get("tools", "")))


def _anthropic(request: Wire) -> Iterator[RequestText]:
    yield RequestText("system", str(request.get("system", "")))
    yield RequestText("tools", str(request.get("tools", "")))
    for message in request["messages"]:
        content = message["content"]
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if block["type"] == "tool_result":
                yield RequestText("tool", str(block.get("content", "")))
            else:
                yield RequestText(message["role"], block["text"] if block["type"] == "text" else str(block))


def attributed(
    envelope: Envelope,
    said: Sequence[Wire],
    marked: Sequence[MarkedAttack],
    bullets: Sequence[tuple[str, ...]],
    at: str,
) -> Iterator[Score]:
    """Every line of ours says truly whose words follow: bullets cite what they quote, rows and days are the real ones.

    Whatever a model may take for a line break, only lines of ours stand behind one without a mark.
    `bullets` are the citations of those that stand, in order.
    """
    dynamic = envelope.dynamic
    for fragment in filter(None, (dynamic.bullets, dynamic.context)):
        text = unfenced(envelope.nonce, fragment.text).text
        opening = [line for line in text.splitlines() if not line.startswith("> ")]
        same = len(opening) == len(rows_of(text))
        yield holds(
            "attributed", same, at, f"{fragment.kind}: a line that no mark stands before passes for one of ours"
        )
    lines = rows_of(unfenced(envelope.nonce, dynamic.bullets.text).text) if dynamic.bullets else []
    for line, citations in zip(lines, bullets, strict=False):
        named = tuple(_REF.findall(line))
        ordinals = {Ref.parse(ref).ordinal for ref in citations}
        # what a tool's bullet says of its call, name and arguments, stands in the message before the result
        cited = all(not ordinals.isdisjoint(_said_at(one)) for one in marked if one.marker in line)
        yield holds(
            "attributed",
            named == tuple(citations) and cited,
            at,
            f"the bullet reads as if from {named}: {line!r:.120}",
        )
    if len(lines) != len(bullets):
        yield Score("attributed", 0.0, at, f"{len(bullets)} bullets stand, {len(lines)} lines read like one")
    if dynamic.context is not None:
        read = rows_of(unfenced(envelope.nonce, dynamic.context.text).text)
        rows = [(int(row[1]), row[2]) for row in map(_ROW.match, read) if row]
        rows = [row for row, _ in groupby(rows)]  # passages of one message have a row each
        real = [(n, _role(said[n - 1])) for n in dynamic.context.refs]
        days = [day[1] for day in map(_DAY.fullmatch, read) if day]
        right = rows == real and days == sorted(set(days))
        yield holds("attributed", right, at, f"recalled as {rows} under {days}, in truth {real}")


def _said_at(one: MarkedAttack) -> set[int]:
    return {one.ordinal, one.ordinal + 1} if one.role == "assistant" else {one.ordinal}


def _role(wire: Wire) -> str:
    role: str = wire["role"]
    return role


def turns_alike(envelope: Envelope, twin: Envelope, at: str) -> Score:
    """Messages that both show are said by the same roles, in as many messages."""
    one, other = _roles(envelope), _roles(twin)
    unlike = [refs for refs in one.keys() & other.keys() if one[refs] != other[refs]]
    live = [f.refs for f in envelope.dynamic.live] == [f.refs for f in twin.dynamic.live]
    return holds(
        "roles_kept", live and not unlike, at, f"other roles than the twin's at {unlike[:3]}, live turn alike: {live}"
    )


def _roles(envelope: Envelope) -> dict[tuple[int, ...], list[str]]:
    return {
        fragment.refs: [wire["role"] for wire in wires_of(fragment)] for fragment in envelope.dynamic.strip.fragments
    }
