"""The request path: a session in, a bounded, typed, cited envelope out.

    store = open_store("file:./.ctxsteward")
    session = store.session("s-42", profile=Profile.from_text("You are …"))
    session.append({"role": "user", "content": "…"})
    envelope = EnvelopeBuilder(model="gpt-4o").build(session)
    client.chat.completions.create(model="gpt-4o", **envelope.render("openai-chat"))

Importing this reads no clock, file or environment and loads no tokenizer, model or SDK.
"""

from .budgets import Budgets
from .builder import EnvelopeBuilder, rebuild
from .envelope import PROVIDERS, Envelope, Section
from .groups import Entry
from .incoming import NewMessage
from .model_tools import answer_call, model_tools
from .policy import Policy
from .profile import Profile
from .ranking import Heuristic, Weights
from .references import resolve_reference, resolve_reference_tool
from .search import Hit, search_context, search_context_tool
from .selection import Scored, SelectionRequest, Selector
from .session import Session
from .store import Store, open_store

__all__ = [
    "PROVIDERS",
    "Budgets",
    "Entry",
    "Envelope",
    "EnvelopeBuilder",
    "Heuristic",
    "Hit",
    "NewMessage",
    "Policy",
    "Profile",
    "Scored",
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
