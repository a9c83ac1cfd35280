"""Parts: the units of the expected request, each with the section and the original it comes from.

The expected payload is read by the same reader as the one that was sent; sections and references come from the
envelope's own fragments, in their order: bullets, closed turns, turn context, live turn, notes, and what follows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import NamedTuple

from ctxsteward.schemas import Wire

from ..budgets import HEAD_SECTIONS
from ..envelope import Envelope
from ..fragments import Fragment
from ..steps import Results
from .reading import OWN_ARGUMENTS, read_messages, read_units
from .units import Unit

BLOCKS = ("bullets", "context", "notes")
"""Fragments of the dynamic section that are a block of their own."""


class Place(NamedTuple):
    """Where in an envelope something stands."""

    section: str
    """system, static, meta, tools or dynamic."""
    block: str = ""
    """bullets, context, notes or messages; in a head section of several texts ``text 2``; else empty."""
    ref: str | None = None

    @property
    def region(self) -> tuple[str, str]:
        """The smallest named stretch it belongs to."""
        return (self.section, self.block)


@dataclass(frozen=True, slots=True)
class Part:
    """A unit that should be there."""

    unit: Unit
    place: Place


def expected_parts(envelope: Envelope, provider: str, payload: Wire) -> list[Part]:
    """The parts of this envelope's rendering for a provider."""
    units = read_units(payload, provider, heads=head_texts(envelope), nonce=envelope.nonce)
    if provider == "text":
        return _numbered([Part(unit, _labelled(unit)) for unit in units])
    heads = iter([(name, f.text) for name in HEAD_SECTIONS for f in envelope.head.section(name)])
    answers = _answer_refs(envelope)
    dynamic = _dynamic_places(envelope, provider, sum(unit.channel == "dynamic" for unit in units))
    parts: list[Part] = []
    section = HEAD_SECTIONS[0]
    for unit in units:
        match unit.channel:
            case "tools":
                place = Place("tools")
            case "head":
                section = next((name for name, text in heads if text == unit.text), section)
                place = Place(section)
            case _:
                place = next(dynamic)
                if unit.call_id and place.ref is not None:
                    place = place._replace(ref=answers.get(unit.call_id, place.ref))
        parts.append(Part(unit, place))
    return _numbered(parts)


def _numbered(parts: list[Part]) -> list[Part]:
    """Tell the texts of one head section apart: each is there or missing by itself."""
    counts = Counter(part.place.section for part in parts)
    seen: Counter[str] = Counter()
    made: list[Part] = []
    for part in parts:
        section = part.place.section
        seen[section] += 1
        several = section in HEAD_SECTIONS and counts[section] > 1
        made.append(Part(part.unit, Place(section, f"text {seen[section]}")) if several else part)
    return made


def head_texts(envelope: Envelope) -> list[str]:
    """The texts of the operator's sections."""
    return [fragment.text for fragment in envelope.head.fragments]


def _labelled(unit: Unit) -> Place:
    """Section, block and reference as a text prompt's own label says them."""
    words = unit.frame.split(" ")
    if words[0] in (*HEAD_SECTIONS, "tools"):
        return Place(words[0])
    block = words[1] if len(words) > 1 and words[1] in BLOCKS else "messages"
    return Place("dynamic", block, next((word for word in words if word.startswith("§")), None))


def _dynamic_places(envelope: Envelope, provider: str, count: int) -> Iterator[Place]:
    """A place for each dynamic unit; `count` is how many there are."""
    dynamic = envelope.dynamic
    places: list[Place] = []
    if dynamic.bullets:
        places.append(Place("dynamic", "bullets"))
    places += _strip_places(envelope, provider, 0, dynamic.live_from)
    if dynamic.context:
        places.append(Place("dynamic", "context"))
    places += _strip_places(envelope, provider, dynamic.live_from, dynamic.after_from)
    if dynamic.notes:
        places.append(Place("dynamic", "notes"))
    places += _strip_places(envelope, provider, dynamic.after_from, dynamic.stop)
    opening = [Place("dynamic", "messages")] * (count - len(places))  # what a provider wants said first
    return chain(opening, places, repeat(Place("dynamic", "messages")))


def _strip_places(envelope: Envelope, provider: str, start: int, stop: int) -> Iterator[Place]:
    strip = envelope.dynamic.strip
    wires, offsets = strip.wires[provider]
    name = next(one for one in OWN_ARGUMENTS[provider] if one in ("messages", "input", "contents"))
    for index in range(start, stop):
        place = Place("dynamic", "messages", _first_ref(strip.fragments[index]))
        for _ in read_messages(wires[offsets[index] : offsets[index + 1]], name):
            yield place


def _first_ref(fragment: Fragment) -> str | None:
    return f"§{fragment.refs[0]}" if fragment.refs else None


def _answer_refs(envelope: Envelope) -> dict[str, str]:
    """The message that each tool result in the window came in, by the id of its call."""
    refs: dict[str, str] = {}
    for fragment in envelope.dynamic.strip.fragments[: envelope.dynamic.stop]:
        for step in fragment.steps:
            if isinstance(step, Results):
                refs |= {answer.call_id: answer.entry.ref for answer in step.answers if answer.entry is not None}
    return refs
