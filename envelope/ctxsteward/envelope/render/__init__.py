"""Rendering: an envelope as the arguments of a provider's client.

One module a provider; each turns fragments into that provider's messages and assembles the request. The same provider
gets its own wire dicts back unchanged; another one gets the typed view, and what that cannot carry is a
`field_dropped` finding (`dropped_fields`). Rendered messages are cached on the fragment, so a render costs one list.
"""

from __future__ import annotations

from ctxsteward.schemas import Finding, InputError, Wire

from ..layout.composition import PromptLayout
from . import anthropic, gemini, openai_chat, openai_responses, text

_RENDERERS = {
    "openai-chat": openai_chat.render,
    "openai-responses": openai_responses.render,
    "anthropic": anthropic.render,
    "gemini": gemini.render,
    "text": text.render,
}


def render(prompt: PromptLayout, provider: str, *, cache: bool = True) -> Wire:
    """The request's arguments for this provider; raises `InputError` for an unknown one."""
    renderer = _RENDERERS.get(provider)
    if renderer is None:
        raise InputError(f"unknown provider {provider!r}; one of: {', '.join(_RENDERERS)}")
    return renderer(prompt, cache)


def dropped_fields(prompt: PromptLayout, provider: str) -> tuple[Finding, ...]:
    """What this provider cannot be shown of the messages in the window."""
    from .tools import findings

    return tuple(findings(prompt, provider))
