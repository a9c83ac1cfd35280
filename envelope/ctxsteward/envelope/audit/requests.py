"""What was really sent, and what should have been: a request with its provider and seal, and the expected parts.

``{"payload": {…}, "provider": "anthropic", "seal": {…}}`` is what a service logs (`sealed_request` makes it); the bare
arguments do as well. A provider that is not named is recognized by the shape of the request.

The expected payload is read by the same reader as the one that was sent. Each of its units becomes an `ExpectedPart`,
with the section and the original it comes from. These places are those of the envelope's own fragments, in their order:
bullets, closed turns, turn context, live turn, notes, and what follows them.

Raises `InputError`, one line, where something is no request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import NamedTuple

from ctxsteward.schemas import InputError
from ctxsteward.schemas.documents import SealDocument
from ctxsteward.schemas.message import Wire

from ..envelope import PROVIDERS, Envelope, Provider, read_seal
from ..layout.fragments import ToolResults
from ..render.request import FORMATS, read_units
from ..render.units import Unit, context_of, governed_arguments, ungoverned
from ..tokens.budgets import HEAD_SECTIONS

_ANTHROPIC_BLOCKS = frozenset(("tool_use", "tool_result", "thinking", "redacted_thinking"))
_OPENAI_ROLES = frozenset(("system", "developer", "tool", "function"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """A request as it left."""

    payload: Wire
    context: Wire
    """Its arguments that are context."""
    providers: tuple[Provider, ...]
    """Whose request it is; several where the shape alone does not tell."""
    seal: SealDocument | None
    logged: bool
    """It is what a service logs: a payload with its provider and its seal."""


def sealed_request(envelope: Envelope, provider: Provider, *, cache: bool = True) -> Wire:
    """What a service logs of a call, for a later audit: the rendered payload, the provider and the envelope's seal."""
    seal = None if envelope.seal is None else envelope.seal.model_dump(mode="json")
    return {"payload": envelope.render(provider, cache=cache), "provider": provider, "seal": seal}


def not_governed(sent: object, *, provider: str | None = None) -> tuple[str, ...]:
    """Arguments of a request that an envelope says nothing about, so that `audit` does not compare them.

    >>> not_governed({"model": "gpt-4o", "messages": [], "temperature": 0.2})
    ('model', 'temperature')
    """
    return ungoverned(read_sent(sent, provider=provider).payload)


def read_sent(sent: object, *, provider: str | None = None, seal: object = None) -> SentRequest:
    """Read what was sent; what the caller names counts more than what the log says."""
    if not isinstance(sent, dict):
        raise InputError(f"sent: found {_kind(sent)}; expected a request's arguments as an object")
    logged = "payload" in sent and set(sent).isdisjoint(governed_arguments()["context"])
    if logged:
        payload = sent["payload"]
        provider = sent.get("provider") if provider is None else provider
        seal = sent.get("seal") if seal is None else seal
        if not isinstance(payload, dict):
            raise InputError(f"sent: `payload` is {_kind(payload)}; expected a request's arguments as an object")
    else:
        payload = sent
    if provider is not None and provider not in PROVIDERS:
        raise InputError(f"sent: unknown provider {provider!r:.40}; one of: {', '.join(PROVIDERS)}")
    context = context_of(payload)
    providers = _recognized(context) if provider is None else (provider,)
    return SentRequest(
        payload=payload,
        context=context,
        providers=providers,
        seal=None if seal is None else read_seal(seal),
        logged=logged,
    )


def _recognized(context: Wire) -> tuple[Provider, ...]:
    if "contents" in context:
        return ("gemini",)
    if "messages" in context:
        messages = context["messages"]
        wires = [wire for wire in messages if isinstance(wire, dict)] if isinstance(messages, list) else []
        blocks = [b for w in wires if isinstance(w.get("content"), list) for b in w["content"] if isinstance(b, dict)]
        anthropic = "system" in context or any(block.get("type") in _ANTHROPIC_BLOCKS for block in blocks)
        openai = any(wire.get("role") in _OPENAI_ROLES or "tool_calls" in wire for wire in wires)
        if anthropic == openai:
            return ("anthropic", "openai-chat")
        return ("anthropic",) if anthropic else ("openai-chat",)
    if "input" in context or "instructions" in context:
        return ("openai-responses",)
    if isinstance(context.get("prompt"), str):
        return ("text",)
    if "system" in context:
        return ("anthropic",)
    if "system_instruction" in context or "systemInstruction" in context:
        return ("gemini",)
    raise InputError(
        "sent: no request of a known provider; expected `messages`, `input`, `contents` or `prompt` "
        '(or {"payload": …, "provider": …, "seal": …})'
    )


def _kind(value: object) -> str:
    return {list: "a list", str: "text", type(None): "nothing"}.get(type(value), type(value).__name__)


BLOCKS = ("bullets", "observations", "context", "notes")
"""Fragments of the dynamic section that are a block of their own."""


Place = tuple[str, str, str | None]
"""Section, block and reference of an `ExpectedPart`."""


class ExpectedPart(NamedTuple):
    """A unit that should be there, and where in the envelope it stands."""

    unit: Unit
    section: str
    """system, static, meta, tools or dynamic."""
    block: str = ""
    """bullets, observations, context, notes or messages; in a head section of several texts ``text 2``; else empty."""
    ref: str | None = None

    @property
    def region(self) -> tuple[str, str]:
        """The smallest named stretch it belongs to."""
        return (self.section, self.block)


def expected_parts(envelope: Envelope, provider: str, payload: Wire) -> list[ExpectedPart]:
    """Return the parts of this envelope's rendering for a provider."""
    units = read_units(payload, provider, heads=head_texts(envelope), nonce=envelope.nonce)
    if provider == "text":
        return _numbered([ExpectedPart(unit, *_labelled(unit)) for unit in units])
    heads = iter([(name, f.text) for name in HEAD_SECTIONS for f in envelope.head.section(name)])
    answers = _answer_refs(envelope)
    dynamic = _dynamic_places(envelope, provider, sum(unit.channel == "dynamic" for unit in units))
    parts: list[ExpectedPart] = []
    head = HEAD_SECTIONS[0]
    for unit in units:
        if unit.channel == "tools":
            parts.append(ExpectedPart(unit, "tools"))
        elif unit.channel == "head":
            head = next((name for name, text in heads if text == unit.text), head)
            parts.append(ExpectedPart(unit, head))
        else:
            section, block, ref = next(dynamic)
            ref = answers.get(unit.call_id, ref) if unit.call_id and ref else ref
            parts.append(ExpectedPart(unit, section, block, ref))
    return _numbered(parts)


def _numbered(parts: list[ExpectedPart]) -> list[ExpectedPart]:
    """Tell the texts of one head section apart: each is there or missing by itself."""
    counts = Counter(part.section for part in parts)
    seen: Counter[str] = Counter()
    numbered: list[ExpectedPart] = []
    for part in parts:
        seen[part.section] += 1
        is_one_of_several = part.section in HEAD_SECTIONS and counts[part.section] > 1
        numbered.append(part._replace(block=f"text {seen[part.section]}") if is_one_of_several else part)
    return numbered


def head_texts(envelope: Envelope) -> list[str]:
    """Return the texts of the operator's sections."""
    return [fragment.text for fragment in envelope.head.fragments]


def _labelled(unit: Unit) -> Place:
    """Return the place that a text prompt's own label names."""
    words = unit.frame.split(" ")
    if words[0] in (*HEAD_SECTIONS, "tools"):
        return words[0], "", None
    block = words[1] if len(words) > 1 and words[1] in BLOCKS else "messages"
    return "dynamic", block, next((word for word in words if word.startswith("§")), None)


def _dynamic_places(envelope: Envelope, provider: str, count: int) -> Iterator[Place]:
    """Yield a place for each of the `count` dynamic units."""
    dynamic = envelope.dynamic
    messages: Place = ("dynamic", "messages", None)
    places = list(_strip_places(envelope, provider, 0, dynamic.task_upto))
    places += [("dynamic", fragment.kind, None) for fragment in dynamic.derived]
    places += _strip_places(envelope, provider, dynamic.task_upto, dynamic.live_from)
    if dynamic.context:
        places.append(("dynamic", "context", None))
    places += _strip_places(envelope, provider, dynamic.live_from, dynamic.after_from)
    if dynamic.notes:
        places.append(("dynamic", "notes", None))
    places += _strip_places(envelope, provider, dynamic.after_from, dynamic.stop)
    opening = [messages] * (count - len(places))  # a provider may want a message of its own first
    return chain(opening, places, repeat(messages))


def _strip_places(envelope: Envelope, provider: str, start: int, stop: int) -> Iterator[Place]:
    strip = envelope.dynamic.strip
    wires, offsets = strip.wires[provider]
    units_of = FORMATS[provider].message_units
    assert units_of is not None
    for index in range(start, stop):
        refs = strip.fragments[index].refs
        for _ in units_of(wires[offsets[index] : offsets[index + 1]]):
            yield "dynamic", "messages", f"§{refs[0]}" if refs else None


def _answer_refs(envelope: Envelope) -> dict[str, str]:
    """The message that each tool result in the window came in, by the id of its call."""
    refs: dict[str, str] = {}
    for fragment in envelope.dynamic.strip.fragments[: envelope.dynamic.stop]:
        for step in fragment.steps:
            if isinstance(step, ToolResults):
                refs |= {answer.call_id: answer.entry.ref for answer in step.answers if answer.entry is not None}
    return refs
