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
from ..layout.fragments import Fragment, ToolResults
from ..render.request import FORMATS, read_units
from ..render.units import CONTEXT_ARGUMENTS, Unit, context_of, ungoverned
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
    logged = "payload" in sent and not CONTEXT_ARGUMENTS & set(sent)
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
        return _of_messages(context)
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


def _of_messages(context: Wire) -> tuple[Provider, ...]:
    messages = context["messages"]
    wires = [wire for wire in messages if isinstance(wire, dict)] if isinstance(messages, list) else []
    blocks = [b for w in wires if isinstance(w.get("content"), list) for b in w["content"] if isinstance(b, dict)]
    anthropic = "system" in context or any(block.get("type") in _ANTHROPIC_BLOCKS for block in blocks)
    openai = any(wire.get("role") in _OPENAI_ROLES or "tool_calls" in wire for wire in wires)
    if anthropic == openai:
        return ("anthropic", "openai-chat")
    return ("anthropic",) if anthropic else ("openai-chat",)


def _kind(value: object) -> str:
    return {list: "a list", str: "text", type(None): "nothing"}.get(type(value), type(value).__name__)


BLOCKS = ("bullets", "observations", "context", "notes")
"""Fragments of the dynamic section that are a block of their own."""


class EnvelopePlace(NamedTuple):
    """Where in an envelope something stands."""

    section: str
    """system, static, meta, tools or dynamic."""
    block: str = ""
    """bullets, observations, context, notes or messages; in a head section of several texts ``text 2``; else empty."""
    ref: str | None = None

    @property
    def region(self) -> tuple[str, str]:
        """The smallest named stretch it belongs to."""
        return (self.section, self.block)


@dataclass(frozen=True, slots=True)
class ExpectedPart:
    """A unit that should be there."""

    unit: Unit
    place: EnvelopePlace


def expected_parts(envelope: Envelope, provider: str, payload: Wire) -> list[ExpectedPart]:
    """The parts of this envelope's rendering for a provider."""
    units = read_units(payload, provider, heads=head_texts(envelope), nonce=envelope.nonce)
    if provider == "text":
        return _numbered([ExpectedPart(unit, _labelled(unit)) for unit in units])
    heads = iter([(name, f.text) for name in HEAD_SECTIONS for f in envelope.head.section(name)])
    answers = _answer_refs(envelope)
    dynamic = _dynamic_places(envelope, provider, sum(unit.channel == "dynamic" for unit in units))
    parts: list[ExpectedPart] = []
    section = HEAD_SECTIONS[0]
    for unit in units:
        match unit.channel:
            case "tools":
                place = EnvelopePlace("tools")
            case "head":
                section = next((name for name, text in heads if text == unit.text), section)
                place = EnvelopePlace(section)
            case _:
                place = next(dynamic)
                if unit.call_id and place.ref is not None:
                    place = place._replace(ref=answers.get(unit.call_id, place.ref))
        parts.append(ExpectedPart(unit, place))
    return _numbered(parts)


def _numbered(parts: list[ExpectedPart]) -> list[ExpectedPart]:
    """Tell the texts of one head section apart: each is there or missing by itself."""
    counts = Counter(part.place.section for part in parts)
    seen: Counter[str] = Counter()
    numbered: list[ExpectedPart] = []
    for part in parts:
        section = part.place.section
        seen[section] += 1
        several = section in HEAD_SECTIONS and counts[section] > 1
        numbered.append(ExpectedPart(part.unit, EnvelopePlace(section, f"text {seen[section]}")) if several else part)
    return numbered


def head_texts(envelope: Envelope) -> list[str]:
    """The texts of the operator's sections."""
    return [fragment.text for fragment in envelope.head.fragments]


def _labelled(unit: Unit) -> EnvelopePlace:
    """Section, block and reference as a text prompt's own label says them."""
    words = unit.frame.split(" ")
    if words[0] in (*HEAD_SECTIONS, "tools"):
        return EnvelopePlace(words[0])
    block = words[1] if len(words) > 1 and words[1] in BLOCKS else "messages"
    return EnvelopePlace("dynamic", block, next((word for word in words if word.startswith("§")), None))


def _dynamic_places(envelope: Envelope, provider: str, count: int) -> Iterator[EnvelopePlace]:
    """A place for each dynamic unit; `count` is how many there are."""
    dynamic = envelope.dynamic
    places = list(_strip_places(envelope, provider, 0, dynamic.task_upto))
    places += [EnvelopePlace("dynamic", fragment.kind) for fragment in dynamic.derived]
    places += _strip_places(envelope, provider, dynamic.task_upto, dynamic.live_from)
    if dynamic.context:
        places.append(EnvelopePlace("dynamic", "context"))
    places += _strip_places(envelope, provider, dynamic.live_from, dynamic.after_from)
    if dynamic.notes:
        places.append(EnvelopePlace("dynamic", "notes"))
    places += _strip_places(envelope, provider, dynamic.after_from, dynamic.stop)
    opening = [EnvelopePlace("dynamic", "messages")] * (count - len(places))  # what a provider wants said first
    return chain(opening, places, repeat(EnvelopePlace("dynamic", "messages")))


def _strip_places(envelope: Envelope, provider: str, start: int, stop: int) -> Iterator[EnvelopePlace]:
    strip = envelope.dynamic.strip
    wires, offsets = strip.wires[provider]
    units_of = FORMATS[provider].message_units
    assert units_of is not None
    for index in range(start, stop):
        place = EnvelopePlace("dynamic", "messages", _first_ref(strip.fragments[index]))
        for _ in units_of(wires[offsets[index] : offsets[index + 1]]):
            yield place


def _first_ref(fragment: Fragment) -> str | None:
    return f"§{fragment.refs[0]}" if fragment.refs else None


def _answer_refs(envelope: Envelope) -> dict[str, str]:
    """The message that each tool result in the window came in, by the id of its call."""
    refs: dict[str, str] = {}
    for fragment in envelope.dynamic.strip.fragments[: envelope.dynamic.stop]:
        for step in fragment.steps:
            if isinstance(step, ToolResults):
                refs |= {answer.call_id: answer.entry.ref for answer in step.answers if answer.entry is not None}
    return refs
