"""Messages as a client sends them, and builders and sessions that count characters, for the tests of this folder.

A message of our own costs its text and 4, so that a reader can do the arithmetic.
"""

from __future__ import annotations

from typing import Any

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Session, Store
from ctxsteward.envelope.testing import CharTokenizer, FirstLine, memory_store
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.schemas.message import Wire

CHARS = Counter(CharTokenizer())


def user(text: str) -> Wire:
    return {"role": "user", "content": text}


def reply(text: str) -> Wire:
    return {"role": "assistant", "content": text}


def call(*ids: str, text: str | None = None, name: str = "f", arguments: Any = "{}") -> Wire:
    """An assistant message with a call of each id."""
    calls = [{"id": id, "type": "function", "function": {"name": name, "arguments": arguments}} for id in ids]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def result(id: str, text: Any) -> Wire:
    return {"role": "tool", "tool_call_id": id, "content": text}


def tool(name: str) -> Wire:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}


def opened(store: Store | None = None, id: str = "s", **more: Any) -> Session:
    return (store or memory_store()).session(id, counter=CHARS, **more)


def session_of(*messages: Any, **more: Any) -> Session:
    """A session, in a store of its own where none is given, that holds these messages."""
    session = opened(**more)
    session.extend(messages)
    return session


def char_builder(budgets: Budgets | None = None, **more: Any) -> EnvelopeBuilder:
    """A builder that counts characters; what is compacted away becomes the first lines."""
    budgets = budgets or Budgets(dynamic_tokens=900)
    return EnvelopeBuilder(**{"tokenizer": CharTokenizer(), "budgets": budgets, "summarizer": FirstLine()} | more)
