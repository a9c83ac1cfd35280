"""What was really sent: a request with its provider and seal.

``{"payload": {…}, "provider": "anthropic", "seal": {…}}`` is what a service logs (`sealed_request` makes it); the bare
arguments do as well. A provider that is not named is recognized by the shape of the request.

Raises `InputError`, one line, where something is no request.
"""

from __future__ import annotations

from dataclasses import dataclass

from ctxsteward.schemas import InputError
from ctxsteward.schemas.documents import SealDocument
from ctxsteward.schemas.message import Wire

from ..envelope import PROVIDERS, Envelope, Provider, read_seal
from ..render.units import context_of, governed_arguments, ungoverned

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
