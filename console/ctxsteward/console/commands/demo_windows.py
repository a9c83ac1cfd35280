"""Other ways to keep a prompt small, which the demo applies to the same calls for comparison.

    sliding window         the newest whole messages that fit; a tool result leaves with its call
    summary                over the budget, one summary replaces all but the newest `KEPT_MESSAGES`, as LangChain's
                           `SummarizationMiddleware` does by default; the cost includes its calls of a model
    tool results cleared   over the budget, a placeholder replaces all tool results but the newest `KEPT_RESULTS`, as
                           Anthropic's context editing does by default; other texts stay, and may exceed the budget

The summarizing model is scripted: it keeps the first sentence of each user message, the newest within
`SUMMARY_TOKENS`. All ways have the same head. The builder's tokenizer counts; prices are arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ctxsteward.envelope import Counter, Prices, Session
from ctxsteward.envelope.history.tool_groups import text_of
from ctxsteward.language.words import sentences

KEPT_MESSAGES, KEPT_RESULTS = 20, 3
SUMMARY_TOKENS = 400
SUMMARIZED_TOKENS = 4_000
"""Most tokens that the summarizing model reads in one call."""
SUMMARY, CLEARED = "Here is a summary of the conversation to date:", "[cleared to save context]"
MARK_TOKENS = 8
"""Tokens of a placeholder message; also those of a summary message besides its text."""


class WindowRow(NamedTuple):
    """One message of a window."""

    key: str
    role: str
    text: str
    tokens: int


class ReducedWindow(NamedTuple):
    """A shortened window, and the tokens that a model read to shorten it."""

    rows: Sequence[WindowRow]
    model_tokens: int = 0


Reduce = Callable[[Sequence[WindowRow], int, Counter], ReducedWindow]


@dataclass(slots=True, kw_only=True)
class PromptWindow:
    """The prompt window under one of these ways, with the tokens and cost of all calls so far."""

    name: str
    reduce: Reduce
    budget_tokens: int
    prices: Prices
    rows: Sequence[WindowRow] = ()
    """Messages in the window at the newest call."""
    read: int = 0
    """Number of the session's messages added so far."""
    prompt_tokens: int = 0
    """Tokens of the newest prompt, head included."""
    sent_tokens: int = 0
    sent_priced: float = 0.0
    """Cost of all prompts, in tokens at full price."""
    model_tokens: int = 0
    """Tokens of the calls of a summarizing model."""

    def move(self, session: Session, counter: Counter, head_tokens: int) -> None:
        """Make the next call: add the session's new messages, shorten the window, count tokens and cost."""
        before = self.rows
        new = [
            WindowRow(entry.ref, entry.message.role, text_of(entry.message), entry.tokens(counter))
            for entry in session.entries(self.read + 1)
        ]
        self.read += len(new)
        self.rows, model_tokens = self.reduce((*before, *new), self.budget_tokens, counter)
        shared = head_tokens if self.sent_tokens else 0
        for old, row in zip(before, self.rows, strict=False):
            if old.key != row.key:
                break
            shared += row.tokens
        self.prompt_tokens = head_tokens + sum(row.tokens for row in self.rows)
        self.sent_priced += self.prices.of(self.prompt_tokens, shared)
        self.model_tokens += model_tokens
        self.sent_tokens += self.prompt_tokens

    @property
    def paid(self) -> float:
        """In tokens at full price, calls of a summarizing model included."""
        return self.sent_priced + self.model_tokens

    @property
    def text(self) -> str:
        return "\n".join(f"{row.key} {row.role}: {row.text}" for row in self.rows)


def slide(rows: Sequence[WindowRow], budget_tokens: int, counter: Counter) -> ReducedWindow:
    """Keep the newest messages that fit, and always the newest message, or the newest call with its results."""
    step = next((back for back, row in enumerate(reversed(rows), 1) if row.role != "tool"), 0)
    start, tokens = 0, sum(row.tokens for row in rows)
    while len(rows) - start > step and (tokens > budget_tokens or rows[start].role == "tool"):
        tokens -= rows[start].tokens  # a result leaves with its call
        start += 1
    return ReducedWindow(rows[start:])


def summarize(rows: Sequence[WindowRow], budget_tokens: int, counter: Counter) -> ReducedWindow:
    """Replace all but the newest messages by one summary if the messages exceed the budget."""
    if sum(row.tokens for row in rows) <= budget_tokens or len(rows) <= KEPT_MESSAGES:
        return ReducedWindow(rows)
    start = len(rows) - KEPT_MESSAGES
    while start and rows[start].role == "tool":
        start -= 1
    said: list[str] = []
    for row in rows[:start]:
        if row.key.startswith("summary"):
            said += row.text.splitlines()[1:]
        elif row.role == "user" and (first := next(iter(sentences(row.text)), None)):
            said.append(f"- {row.text[first.start : first.stop]}")
    while said and counter.text("\n".join(said)) > SUMMARY_TOKENS:
        said.pop(0)
    text = "\n".join((SUMMARY, *said))
    summary = WindowRow(f"summary {rows[start].key}", "user", text, counter.text(text) + MARK_TOKENS)
    shown = min(SUMMARIZED_TOKENS, sum(row.tokens for row in rows[:start]))
    return ReducedWindow((summary, *rows[start:]), shown)


def clear(rows: Sequence[WindowRow], budget_tokens: int, counter: Counter) -> ReducedWindow:
    """Replace all but the newest tool results by a placeholder if the messages exceed the budget."""
    if sum(row.tokens for row in rows) <= budget_tokens:
        return ReducedWindow(rows)
    results = [at for at, row in enumerate(rows) if row.role == "tool"]
    cleared = frozenset(results[:-KEPT_RESULTS])
    return ReducedWindow(
        [
            WindowRow(f"{row.key} cleared", row.role, CLEARED, MARK_TOKENS)
            if at in cleared and row.text != CLEARED
            else row
            for at, row in enumerate(rows)
        ]
    )


WAYS: dict[str, Reduce] = {"sliding window": slide, "summary": summarize, "tool results cleared": clear}
"""Ways by name. The first keeps to the budget of ctxsteward's window at every call."""
