"""The parts of a rendered request: each of its units with the section and the original it comes from.

A request is read by the same reader as one that was sent. Places are those of the prompt's own fragments, in their
order: bullets, closed turns, turn context, live turn, notes, and what follows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, repeat
from typing import NamedTuple

from ctxsteward.schemas.message import Wire

from ..layout.composition import PromptLayout
from ..layout.fragments import ToolResults
from ..tokens.budgets import HEAD_SECTIONS
from .request import FORMATS, read_units
from .units import Unit

BLOCKS = ("bullets", "observations", "context", "notes")
"""Fragments of the dynamic section that are a block of their own."""


Place = tuple[str, str, str | None]
"""Section, block and reference of an `ExpectedPart`."""


class ExpectedPart(NamedTuple):
    """A unit that should be there, and where in the prompt it stands."""

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


def expected_parts(prompt: PromptLayout, provider: str, payload: Wire) -> list[ExpectedPart]:
    """Return the parts of this prompt's rendering for a provider."""
    units = read_units(payload, provider, heads=head_texts(prompt), nonce=prompt.nonce)
    if provider == "text":
        return _numbered([ExpectedPart(unit, *_labelled(unit)) for unit in units])
    heads = iter([(name, f.text) for name in HEAD_SECTIONS for f in prompt.head.section(name)])
    answers = _answer_refs(prompt)
    dynamic = _dynamic_places(prompt, provider, sum(unit.channel == "dynamic" for unit in units))
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


def head_texts(prompt: PromptLayout) -> list[str]:
    """Return the texts of the operator's sections."""
    return [fragment.text for fragment in prompt.head.fragments]


def _labelled(unit: Unit) -> Place:
    """Return the place that a text prompt's own label names."""
    words = unit.frame.split(" ")
    if words[0] in (*HEAD_SECTIONS, "tools"):
        return words[0], "", None
    block = words[1] if len(words) > 1 and words[1] in BLOCKS else "messages"
    return "dynamic", block, next((word for word in words if word.startswith("§")), None)


def _dynamic_places(prompt: PromptLayout, provider: str, count: int) -> Iterator[Place]:
    """Yield a place for each of the `count` dynamic units."""
    dynamic = prompt.dynamic
    messages: Place = ("dynamic", "messages", None)
    places = list(_strip_places(prompt, provider, 0, dynamic.task_upto))
    places += [("dynamic", fragment.kind, None) for fragment in dynamic.derived]
    places += _strip_places(prompt, provider, dynamic.task_upto, dynamic.live_from)
    if dynamic.context:
        places.append(("dynamic", "context", None))
    places += _strip_places(prompt, provider, dynamic.live_from, dynamic.after_from)
    if dynamic.notes:
        places.append(("dynamic", "notes", None))
    places += _strip_places(prompt, provider, dynamic.after_from, dynamic.stop)
    opening = [messages] * (count - len(places))  # a provider may want a message of its own first
    return chain(opening, places, repeat(messages))


def _strip_places(prompt: PromptLayout, provider: str, start: int, stop: int) -> Iterator[Place]:
    strip = prompt.dynamic.strip
    wires, offsets = strip.wires[provider]
    units_of = FORMATS[provider].message_units
    assert units_of is not None
    for index in range(start, stop):
        refs = strip.fragments[index].refs
        for _ in units_of(wires[offsets[index] : offsets[index + 1]]):
            yield "dynamic", "messages", f"§{refs[0]}" if refs else None


def _answer_refs(prompt: PromptLayout) -> dict[str, str]:
    """The message that each tool result in the window came in, by the id of its call."""
    refs: dict[str, str] = {}
    for fragment in prompt.dynamic.strip.fragments[: prompt.dynamic.stop]:
        for step in fragment.steps:
            if isinstance(step, ToolResults):
                refs |= {answer.call_id: answer.entry.ref for answer in step.answers if answer.entry is not None}
    return refs
