"""Simple strategies as baselines; each has known failures that the suites must detect.

The functions are typical first attempts. `SummaryDialogue` and `OffloadDialogue` imitate frameworks: a summary in a
system message that cites nothing, and tool results behind references that stop resolving.

Source: the issues of well-known agent projects (orphaned pairs, rewritten prefixes, expired references).
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from random import Random

from ctxsteward.schemas import Message
from ctxsteward.schemas.message import Wire

from .port import Conversation, Prompt, Task

WINDOW_MESSAGES = 20
HITS = 5
KEPT_RESULTS = 8
SUMMARY_FRACTION = 0.3
OMITTED = "[output omitted]"
_HAN = re.compile(r"([㐀-鿿])")
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s)|[。！？]|\n|$)")


def everything(conversation: Conversation) -> Prompt:
    """Sends all messages; to Anthropic one by one, without repairs."""
    return Prompt(messages=conversation.messages, anthropic=partial(as_it_stands, conversation.messages))


def as_it_stands(messages: Sequence[Wire]) -> Wire:
    """Convert messages to a request to Anthropic without repairs."""
    return {"messages": [_block_message(wire) for wire in messages if wire["role"] != "system"]}


def _block_message(wire: Wire) -> Wire:
    if wire["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": wire["tool_call_id"], "content": wire["content"]}
        return {"role": "user", "content": [result]}
    blocks: list[Wire] = [{"type": "text", "text": text}] if (text := text_of(wire)) else []
    for call in wire.get("tool_calls") or ():
        arguments = json.loads(call["function"]["arguments"] or "{}")
        blocks.append({"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": arguments})
    return {"role": wire["role"], "content": blocks}


def window(conversation: Conversation) -> Sequence[Wire]:
    """Sends the newest messages, even if that separates tool results from their calls."""
    return conversation.messages[-WINDOW_MESSAGES:]


def newest_tokens(conversation: Conversation) -> Sequence[Wire]:
    """Sends the newest messages that fit the budget, cut so that no tool result lacks its call."""
    return _newest(conversation.messages, conversation.budget_tokens, conversation.tokens)


def masking(conversation: Conversation) -> Prompt:
    """Sends all messages, each tool result but the newest as one line; so each step rewrites the sent prefix."""
    newest = max((n for n, wire in enumerate(conversation.messages) if wire["role"] == "tool"), default=-1)
    masked = [
        {**wire, "content": OMITTED} if wire["role"] == "tool" and n < newest else wire
        for n, wire in enumerate(conversation.messages)
    ]
    return Prompt(messages=masked, compacted=False)


def _newest(messages: Sequence[Wire], budget_tokens: int, tokens: Callable[[Wire], int]) -> Sequence[Wire]:
    start, left = len(messages), budget_tokens
    while start and (left := left - tokens(messages[start - 1])) >= 0:
        start -= 1
    while start < len(messages) and messages[start]["role"] != "user":
        start += 1
    return messages[start:] or messages[-1:]


def text_of(wire: Wire) -> str:
    """Return the text of a message, tool results included."""
    return Message.from_wire(wire).text or str(wire.get("content") or "")


class KeptMessages:
    """Keeps the messages of the conversation; base of the dialogues below."""

    def __init__(self, task: Task, tokens: Callable[[Wire], int]) -> None:
        self.task, self.tokens = task, tokens
        self.said: list[Wire] = []

    def add(self, message: Wire) -> None:
        self.said.append(message)

    def with_question(self, question: str | None) -> list[Wire]:
        return [*self.said, *([] if question is None else [{"role": "user", "content": question}])]


class RecallDialogue(KeptMessages):
    """Half the budget for the newest messages, half for earlier ones that `pick` finds, before the last message."""

    recalled_fraction = 0.5
    """Fraction of the budget for recalled messages."""

    def prompt(self, question: str | None = None) -> Prompt:
        room = int(self.task.budget_tokens * self.recalled_fraction)
        messages = self.with_question(question)
        newest = _newest(messages, self.task.budget_tokens - room, self.tokens)
        earlier = self.said[: len(messages) - len(newest)]
        last_user = next((text_of(wire) for wire in reversed(messages) if wire["role"] == "user"), "")
        rows: list[str] = []
        for place in self.pick(last_user, len(earlier)):
            row = f"{earlier[place]['role']}: {text_of(earlier[place])}"
            if (cost := self.tokens({"role": "user", "content": row})) <= room:
                rows.append(row)
                room -= cost
        recalled: list[Wire] = [{"role": "user", "content": "\n".join(["Said earlier:", *rows])}] if rows else []
        if newest[-1]["role"] == "tool":  # nothing may stand between a call and its result
            return Prompt(messages=[*recalled, *newest])
        return Prompt(messages=[*newest[:-1], *recalled, newest[-1]])

    def search(self, query: str) -> Sequence[str]:
        return [text_of(self.said[place]) for place in list(self.pick(query, len(self.said)))[:HITS]]

    def pick(self, query: str, before: int) -> Sequence[int]:
        """Return 0-based places below `before`, best first."""
        raise NotImplementedError


class Bm25Dialogue(RecallDialogue):
    """Half the newest messages, half those that BM25 finds for the last user message. Source: SQLite's FTS5."""

    def __init__(self, task: Task, tokens: Callable[[Wire], int]) -> None:
        super().__init__(task, tokens)
        self._index = sqlite3.connect(":memory:")
        self._index.execute("CREATE VIRTUAL TABLE said USING fts5(words)")

    def add(self, message: Wire) -> None:
        super().add(message)
        self._index.execute("INSERT INTO said (rowid, words) VALUES (?, ?)", (len(self.said), _words(text_of(message))))

    def pick(self, query: str, before: int) -> Sequence[int]:
        wanted = " OR ".join(dict.fromkeys(f'"{word}"' for word in re.findall(r"\w+", _words(query))))
        if not wanted:
            return ()
        rows = self._index.execute(
            "SELECT rowid - 1 FROM said WHERE said MATCH ? AND rowid <= ? ORDER BY rank", (wanted, before)
        )
        return [row[0] for row in rows]


class RetrievalDialogue(Bm25Dialogue):
    """Only messages that BM25 finds for the last user message: a chat over an index."""

    recalled_fraction = 1.0


def _words(text: str) -> str:
    """Split Chinese into bigrams, so that it can be searched without a dictionary."""
    spaced = _HAN.sub(r" \1 ", text)
    pieces = spaced.split()
    bigrams = [a + b for a, b in pairwise(pieces) if _HAN.fullmatch(a) and _HAN.fullmatch(b)]
    return " ".join([*(piece for piece in pieces if not _HAN.fullmatch(piece)), *bigrams])


class RandomDialogue(RecallDialogue):
    """Half the newest messages, half earlier ones at random, as a lower bound."""

    def pick(self, query: str, before: int) -> Sequence[int]:
        return Random(f"{self.task.id} {query} {before}").sample(range(before), before)


class SummaryDialogue(KeptMessages):
    """A summary in a system message: first sentences of the messages that do not fit, without citations or updates.

    It drops the oldest sentences and reports no loss.
    """

    def prompt(self, question: str | None = None) -> Prompt:
        room = int(self.task.budget_tokens * SUMMARY_FRACTION)
        messages = self.with_question(question)
        newest = _newest(messages, self.task.budget_tokens - room, self.tokens)
        rows: list[str] = []
        for wire in reversed(messages[: len(messages) - len(newest)]):
            row = f"- {(_SENTENCE.match(text_of(wire).strip()) or ('',))[0]}"
            room -= self.tokens({"role": "user", "content": row})
            if room < 0:
                break
            rows.append(row)
        summary = "\n".join(reversed(rows))
        lead: list[Wire] = [{"role": "system", "content": f"Summary of the conversation:\n{summary}"}] if rows else []
        return Prompt(messages=[*lead, *newest], summary=summary, lost=frozenset())


class OffloadDialogue(KeptMessages):
    """Sends all messages, older tool results behind references; only the newest few references resolve."""

    def prompt(self, question: str | None = None) -> Prompt:
        results = self._results()
        references = {f"[result-{n}]": n for n in results[:-1]}
        messages = [
            {**wire, "content": f"[result-{n}]"} if f"[result-{n}]" in references else wire
            for n, wire in enumerate(self.with_question(question), 1)
        ]
        return Prompt(messages=messages, references=references, summary="", lost=frozenset(), compacted=False)

    def resolve(self, reference: str) -> str:
        place = int(re.sub(r"\D", "", reference) or 0)
        if place not in self._results()[-KEPT_RESULTS:]:
            raise LookupError(f"{reference} has expired")
        return text_of(self.said[place - 1])

    def _results(self) -> list[int]:
        """Return the 1-based places of tool results."""
        return [n for n, wire in enumerate(self.said, 1) if wire["role"] == "tool"]
