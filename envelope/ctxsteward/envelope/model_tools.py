"""The two tools a model reads its own conversation with: `search_context` finds, `resolve_reference` reads.

    session = store.session("s-42", tools=[*tools, *model_tools()])
    answer = answer_call(session, call.name, call.arguments)     # None: one of the application's own tools

Both are bounded, read one session and write nothing; errors are answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from typing import Any

from ctxsteward.schemas import Wire

from .references import resolve_reference, resolve_reference_tool
from .search import answer_search, search_context_tool
from .session import Session


def model_tools() -> tuple[Wire, Wire]:
    """Both schemas, in OpenAI form; `render` translates them for every provider."""
    return search_context_tool(), resolve_reference_tool()


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
