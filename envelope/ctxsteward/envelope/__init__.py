"""The request path: a session in, a bounded, typed, cited envelope out.

    store = open_store("file:./.ctxsteward")
    session = store.session("s-42", profile=Profile.from_text("You are …"))
    session.append({"role": "user", "content": "…"})
    envelope = EnvelopeBuilder(model="gpt-4o").build(session)
    client.chat.completions.create(model="gpt-4o", **envelope.render("openai-chat"))

Importing this reads no clock, file or environment and loads no tokenizer, model or SDK.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ctxsteward.store.profiles.text import Profile

    from .building.builder import EnvelopeBuilder, rebuild
    from .compaction.policy import Policy
    from .envelope import PROVIDERS, Envelope, Section
    from .history.new_message import NewMessage
    from .history.session import Session
    from .history.tool_groups import LogEntry
    from .recall.heuristic import Heuristic
    from .recall.model_tools import (
        Hit,
        answer_call,
        model_tools,
        resolve_reference,
        resolve_reference_tool,
        search_context,
        search_context_tool,
    )
    from .recall.selection import ScoredOriginal, SelectionRequest, Selector, Weights
    from .store import Store, open_store
    from .tokens.budgets import Budgets

__all__ = [
    "PROVIDERS",
    "Budgets",
    "Envelope",
    "EnvelopeBuilder",
    "Heuristic",
    "Hit",
    "LogEntry",
    "NewMessage",
    "Policy",
    "Profile",
    "ScoredOriginal",
    "Section",
    "SelectionRequest",
    "Selector",
    "Session",
    "Store",
    "Weights",
    "answer_call",
    "model_tools",
    "open_store",
    "rebuild",
    "resolve_reference",
    "resolve_reference_tool",
    "search_context",
    "search_context_tool",
]

_BY_MODULE = {
    "ctxsteward.store.profiles.text": "Profile",
    ".building.builder": "EnvelopeBuilder rebuild",
    ".compaction.policy": "Policy",
    ".envelope": "PROVIDERS Envelope Section",
    ".history.new_message": "NewMessage",
    ".history.session": "Session",
    ".history.tool_groups": "LogEntry",
    ".recall.heuristic": "Heuristic",
    ".recall.model_tools": (
        "Hit answer_call model_tools resolve_reference resolve_reference_tool search_context search_context_tool"
    ),
    ".recall.selection": "ScoredOriginal SelectionRequest Selector Weights",
    ".store": "Store open_store",
    ".tokens.budgets": "Budgets",
}
_HOMES = {name: module for module, names in _BY_MODULE.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    # loaded at first use: who needs one module of this room does not wait for all the others
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
