"""The two tools a model reads its own conversation with: `search_context` finds, `resolve_reference` reads.

    session = store.session("s-42", tools=[*tools, *model_tools()])       # rendered for whichever provider
    answer = answer_call(session, call.name, call.arguments)              # None: one of the application's own tools
    client.messages.create(model=…, tools=[*model_tools("anthropic")], …)  # or straight into a client

Both are bounded, read one session and write nothing; errors are answers. Raises `InputError` for an unknown provider.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from typing import Any

from ctxsteward.schemas import InputError, Wire

from .references import resolve_reference, resolve_reference_tool
from .search import answer_search, search_context_tool
from .session import Session


def model_tools(provider: str = "openai-chat") -> tuple[Wire, ...]:
    """Both schemas as this provider's client takes them in `tools`; Gemini's are one tool with two declarations.

    A session is given those of `openai-chat`: each renderer translates them.

    >>> [tool["name"] for tool in model_tools("anthropic")]
    ['search_context', 'resolve_reference']
    """
    from .render import tools

    ours = (search_context_tool(), resolve_reference_tool())
    forms: dict[str, tools.Translate] = {
        "openai-chat": tools.as_openai_tool,
        "openai-responses": tools.as_responses_tool,
        "anthropic": tools.as_anthropic_tool,
        "gemini": tools.as_gemini_tool,
    }
    if provider not in forms:
        raise InputError(f"no tool schemas for provider {provider!r}; one of: {', '.join(forms)}")
    schemas = tools.translated(ours, forms[provider])
    return ({"function_declarations": schemas},) if provider == "gemini" else tuple(schemas)


def answer_call(
    session: Session, name: str, arguments: str | Mapping[str, Any], *, shown: Set[int] | None = None
) -> str | None:
    """The result of a model's call of one of the two tools; None where the call is of another tool.

    `shown`: ordinals that a search leaves out, by default those that the session's window shows now.
    """
    if name not in ("search_context", "resolve_reference"):
        return None
    try:
        values = json.loads(arguments) if isinstance(arguments, str) else dict(arguments)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        return "error: the arguments are a JSON object"
    known = {"query", "k"} if name == "search_context" else {"ref", "offset", "limit", "grep"}
    if not values.keys() <= known:
        return f"error: the arguments are {', '.join(f'`{one}`' for one in sorted(known))}"
    return (
        answer_search(session, **values, shown=shown)
        if name == "search_context"
        else resolve_reference(session, **values)
    )
