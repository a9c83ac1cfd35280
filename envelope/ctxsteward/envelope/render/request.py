"""Render an envelope as the arguments of a provider's client, and read such a request back.

Each provider has one module, whose `FORMAT` is its entry in `FORMATS`. It turns fragments into the provider's messages,
assembles the request, and splits a request into units for the auditor. A provider gets its own wire dicts back
unchanged. Other providers get the typed view; content that it cannot represent is a `field_dropped` finding
(`dropped_fields`). Rendered messages are cached on the fragment, so a render costs one list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ctxsteward.schemas import Finding, InputError, ThinkingPart
from ctxsteward.schemas.findings import fixed_finding
from ctxsteward.schemas.message import OpaquePart, Wire, gemini_field, sent

from ..history.tool_groups import LogEntry
from ..layout.composition import PromptLayout
from ..layout.fragments import MessageStep, ToolResults
from . import anthropic, gemini, openai_chat, openai_responses, text
from .cache_plan import CachePlan
from .units import ProviderFormat, Unit, canonical, context_of, snake_keys, tool_units

FORMATS: dict[str, ProviderFormat] = {
    module.NAME: module.FORMAT for module in (openai_chat, openai_responses, anthropic, gemini, text)
}
"""Formats by provider."""


def render(prompt: PromptLayout, provider: str, *, cache: CachePlan | None = None) -> Wire:
    """Return the request's arguments for this provider; raise `InputError` if it is unknown, or cannot be prewarmed.

    Without a plan the request says nothing to the provider's cache.
    """
    if provider not in FORMATS:
        raise InputError(f"unknown provider {provider!r}; one of: {', '.join(FORMATS)}")
    if cache is not None and cache.is_prewarm and not (provider == openai_responses.NAME and cache.key):
        hint = f"render {openai_responses.NAME!r} of an envelope for GPT-5.6 or later"
        raise InputError(f"{provider} has no request that only fills the prompt cache; {hint}, or send nothing")
    return FORMATS[provider].render(prompt, cache)


def read_units(payload: Wire, provider: str, *, heads: Iterable[str] = (), nonce: str = "") -> list[Unit]:
    """Return the units of a request; `heads` are sections expected in a head that is one text, `nonce` the session's.

    Context that has no place in this provider's request becomes a unit of the channel ``argument``.
    """
    form = FORMATS[provider]
    context = snake_keys(context_of(payload))
    tools = list(tool_units(context.get("tools")))
    units = [*(tools if form.as_tool is not None else ()), *form.parse(context, heads, nonce)]
    for name, value in context.items():
        if name not in form.arguments and value not in (None, "", [], {}):
            units.append(Unit("argument", name, value if isinstance(value, str) else canonical(value), name))
    return units


_KNOWN = frozenset(("role", "content", "tool_calls", "tool_call_id", "name"))


def dropped_fields(prompt: PromptLayout, provider: str) -> tuple[Finding, ...]:
    """Return a finding for each field, block or tool in the window that this provider cannot be given."""
    return tuple(_dropped(prompt, provider, FORMATS[provider]))


def _dropped(prompt: PromptLayout, provider: str, form: ProviderFormat) -> Iterator[Finding]:
    if form.as_tool is None:
        return
    home = form.dialect
    for index, tool in enumerate(prompt.head.tools):
        if form.as_tool(tool) is None:
            text = f"{provider} has no form for this tool; it is left out"
            yield Finding(kind="field_dropped", field=f"tools[{index}]", text=text)
    seen: set[int] = set()
    for entry in _entries(prompt):
        message = entry.message
        if entry.ordinal in seen:
            continue
        seen.add(entry.ordinal)
        for field in entry.controls:
            yield fixed_finding("control_field", entry.ref, field)
        if message.dialect == home or (message.dialect == "shared" and home in ("openai", "anthropic")):
            continue
        field = message.content_field
        for key in sent(message.wire):
            if key not in _KNOWN and key != field:
                yield _finding(entry, key, provider)
        for index, part in enumerate(message.parts):
            if isinstance(part, (OpaquePart, ThinkingPart)):
                what = part.type if isinstance(part, OpaquePart) else "thinking"
                yield _finding(entry, f"{field}[{index}] ({what})", provider)
            elif message.dialect == "gemini":
                held = message.wire[field][index]
                for key in held:
                    if key != gemini_field(held).key:
                        yield _finding(entry, f"{field}[{index}].{key}", provider)


def _entries(prompt: PromptLayout) -> Iterator[LogEntry]:
    for fragment in prompt.dynamic.fragments:
        for step in fragment.steps:
            if isinstance(step, MessageStep):
                yield step.entry
            elif isinstance(step, ToolResults):
                yield from (answer.entry for answer in step.answers if answer.entry is not None)
                yield from (rest.entry for rest in step.trailing if isinstance(rest, MessageStep))


def _finding(entry: LogEntry, field: str, provider: str) -> Finding:
    text = f"{provider} has no place for it; the original keeps it"
    return Finding(kind="field_dropped", ref=entry.ref, field=field, text=text)
