"""The request path: a session in, a bounded, typed, cited envelope out.

    store = open_store("file:./.ctxsteward")
    session = store.session("s-42", profile=Profile.from_text("You are …"))
    session.append({"role": "user", "content": "…"})
    envelope = EnvelopeBuilder(model="gpt-4o").build(session)
    client.chat.completions.create(model="gpt-4o", **envelope.render("openai-chat"))

Importing this reads no clock, file or environment and loads no tokenizer, model or SDK.
"""

from ctxsteward.store.profiles.text import Profile

from .building.builder import EnvelopeBuilder, rebuild
from .compaction.policy import Policy
from .envelope import PROVIDERS, Envelope, Section
from .history.new_message import NewMessage
from .history.session import Session
from .history.tool_groups import LogEntry
from .recall.model_tools import (
    Hit,
    answer_call,
    model_tools,
    resolve_reference,
    resolve_reference_tool,
    search_context,
    search_context_tool,
)
from .recall.selection import ScoredOriginal, SelectionRequest, Selector
from .recall.strategies import Heuristic, Weights
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
