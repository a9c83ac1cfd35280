"""What a provider is not shown: of another provider's messages what it has no place for, of any the control fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ctxsteward.schemas import Finding, OpaquePart, ThinkingPart
from ctxsteward.schemas.message import sent

from ..groups import FINDING_TEXTS, Entry
from ..steps import Results, Say
from .tools import Translate, as_anthropic_tool, as_gemini_tool, as_openai_tool, as_responses_tool, is_gemini_tool

if TYPE_CHECKING:
    from ..envelope import Envelope

_TOOLS: dict[str, Translate] = {
    "openai-chat": as_openai_tool,
    "openai-responses": as_responses_tool,
    "anthropic": as_anthropic_tool,
    "gemini": as_gemini_tool,
}
_KNOWN = frozenset(("role", "content", "tool_calls", "tool_call_id", "name"))
_HOME = {"openai-chat": "openai", "anthropic": "anthropic"}


def findings(envelope: Envelope, provider: str) -> Iterator[Finding]:
    """One finding a field or block that the typed view does not carry to this provider."""
    if provider == "text":
        return
    home = _HOME.get(provider)
    for index, tool in enumerate(envelope.head.tools):
        if _TOOLS[provider](tool) is None and not (provider == "gemini" and is_gemini_tool(tool)):
            text = f"{provider} has no form for this tool; it is left out"
            yield Finding(kind="field_dropped", field=f"tools[{index}]", text=text)
    seen: set[int] = set()
    for entry in _entries(envelope):
        message = entry.message
        if entry.ordinal in seen:
            continue
        seen.add(entry.ordinal)
        for field in entry.controls:
            yield Finding(kind="control_field", ref=entry.ref, field=field, text=FINDING_TEXTS["control_field"])
        if message.dialect == home or (message.dialect == "shared" and home is not None):
            continue
        for key in sent(message.wire):
            if key not in _KNOWN:
                yield _finding(entry, key, provider)
        for index, part in enumerate(message.parts):
            if isinstance(part, (OpaquePart, ThinkingPart)):
                what = part.type if isinstance(part, OpaquePart) else "thinking"
                yield _finding(entry, f"content[{index}] ({what})", provider)


def _entries(envelope: Envelope) -> Iterator[Entry]:
    for fragment in envelope.dynamic.fragments:
        for step in fragment.steps:
            if isinstance(step, Say):
                yield step.entry
            elif isinstance(step, Results):
                yield from (answer.entry for answer in step.answers if answer.entry is not None)
                yield from (rest.entry for rest in step.trailing if isinstance(rest, Say))


def _finding(entry: Entry, field: str, provider: str) -> Finding:
    text = f"{provider} has no place for it; the original keeps it"
    return Finding(kind="field_dropped", ref=entry.ref, field=field, text=text)
