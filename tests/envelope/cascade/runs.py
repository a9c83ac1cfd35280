"""Runs of cascades for the tests in this folder: phases in, a past out, and what a phase is shown of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxsteward.envelope import Budgets, EnvelopeBuilder
from ctxsteward.envelope.cascade import phase_context
from ctxsteward.envelope.cascade.config import cascade_of
from ctxsteward.envelope.cascade.past import Past, PhaseLog, read_past
from ctxsteward.envelope.cascade.phase import PhaseContext
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.envelope.testing import CharTokenizer, memory_store
from ctxsteward.schemas.cascade import Cascade
from ctxsteward.schemas.message import Wire

from ..messages import CHARS

ROOMY = Budgets(dynamic_tokens=1_000_000)
PIXELS = {
    name: f"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ{name}AAAADUlEQVR42mNk" for name in ("red0", "blue", "gold")
}


def user(text: str) -> Wire:
    return {"role": "user", "content": text}


def says(text: str) -> Wire:
    return {"role": "assistant", "content": text}


def calls(name: str, id: str = "call_1") -> Wire:
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def answers(text: str, id: str = "call_1") -> Wire:
    return {"role": "tool", "tool_call_id": id, "content": text}


def openai_image(name: str) -> Wire:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXELS[name]}", "detail": "low"}}


def anthropic_image(name: str) -> Wire:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXELS[name]}}


def with_image(*names: str, text: str = "see") -> Wire:
    return {"role": "user", "content": [{"type": "text", "text": text}, *map(openai_image, names)]}


def message(short: str) -> Wire:
    """A message as the tables of this folder write it: `user: hi`, `call a: look | I look.`, `images: red0 | see`."""
    kind, _, text = short.partition(": ")
    kind, _, id = kind.partition(" ")
    first, _, second = text.partition(" | ")
    match kind:
        case "call":
            return {**calls(first, id or "call_1"), "content": second or None}
        case "result":
            return answers(text, id or "call_1")
        case "images":
            return with_image(*first.split(), text=second or "see")
        case _:
            return {"role": kind, "content": text}


def cascade(*phases: Mapping[str, Any], **more: Any) -> Cascade:
    return cascade_of({"cascade_id": "c", "phases": list(phases), **more})


def past_of(
    rows: Sequence[tuple[str | None, Wire]],
    states: Mapping[str, Mapping[str, Any]] | None = None,
    pins: Sequence[int] = (),
    order: Sequence[str] = (),
    attempts: Mapping[tuple[str, int], Sequence[Wire]] | None = None,
    chosen: Mapping[str, int] | None = None,
) -> Past:
    """The past of one log ``s`` (and of a log for each attempt); `pins` are ordinals."""
    store = memory_store()
    session = store.session("s", counter=CHARS)
    session.extend(NewMessage(message=wire, phase=phase) for phase, wire in rows)
    for ordinal in pins:
        session.pin(f"§{ordinal}")
    logs = [PhaseLog(session)]
    for (phase, number), wires in (attempts or {}).items():
        own = store.session(f"s.{phase}.{number}", counter=CHARS)
        own.extend(NewMessage(message=wire, phase=phase) for wire in wires)
        logs.append(PhaseLog(own, number, phase))
    return read_past(*logs, order=order, states=states, chosen=chosen)


def context(cascade: Cascade, phase: str, past: Past, **more: Any) -> PhaseContext:
    return phase_context(cascade, phase, past, counter=CHARS, **more)


def rendered(shown: PhaseContext, provider: str) -> list[Wire]:
    """The messages of a phase's context as the builder lays them out for a provider, cache marks left out."""
    system = [str(wire["content"]) for wire in shown.wires if wire["role"] == "system"]
    session = memory_store().session("phase", system=system, counter=CHARS)
    session.extend(wire for wire in shown.wires if wire["role"] != "system")
    builder = EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=ROOMY)
    messages = builder.build(session).render(provider)["messages"]  # type: ignore[arg-type]
    return [_unmarked(message) for message in messages]


def _unmarked(message: Wire) -> Wire:
    content = message["content"]
    if not isinstance(content, list):
        return message
    return {**message, "content": [{k: v for k, v in block.items() if k != "cache_control"} for block in content]}


def kinds(shown: PhaseContext) -> list[str]:
    return [finding.kind for finding in shown.findings]


def texts(shown: PhaseContext) -> list[str]:
    """Contents that are text, and the first text of those that are blocks; empty where there is none."""
    contents = [wire["content"] or [{}] for wire in shown.wires]
    return [content if isinstance(content, str) else str(content[0].get("text", "")) for content in contents]


SIBLINGS = cascade_of(
    {
        "cascade_id": "c",
        "phases": [{"name": "main", "sub_cascades": [{"ref": "a"}]}],
        "cascades": [
            {"cascade_id": "a", "phases": [{"name": "pa", "sub_cascades": [{"ref": "b"}]}]},
            {"cascade_id": "b", "phases": [{"name": "pb", "instructions": "Go."}]},
        ],
    }
)
"""One sub-cascade names its sibling."""
