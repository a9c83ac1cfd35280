"""Windows that the demo is compared with: the same calls under other ways to keep a prompt small.

    sliding window         the newest whole messages that fit, a result with its call
    summary                beyond the budget all but the newest `KEPT_MESSAGES` become one summary, as LangChain's
                           `SummarizationMiddleware` does by default; its calls of a model are paid, too
    tool results cleared   beyond the budget all tool results but the newest `KEPT_RESULTS` become a placeholder, as
                           Anthropic's context editing does by default; texts stay, so the budget does not hold

The model of the summary is scripted: it keeps first sentences of what the user said, the newest within
`SUMMARY_TOKENS`. Heads are the same everywhere. Tokens are the builder's, prices those that are given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ctxsteward.envelope import Counter, LogEntry, Prices, Session
from ctxsteward.envelope.history.tool_groups import text_of
from ctxsteward.language.words import sentences

KEPT_MESSAGES, KEPT_RESULTS = 20, 3
SUMMARY_TOKENS = 400
SUMMARIZED_TOKENS = 4_000
"""Most that the summarizing model is shown."""
SUMMARY, CLEARED = "Here is a summary of the conversation to date:", "[cleared to save context]"
MARK_TOKENS = 8
"""Frame and words of a placeholder."""


class WindowRow(NamedTuple):
    """A message of a window."""

    key: str
    role: str
    text: str
    tokens: int


class ReducedWindow(NamedTuple):
    """A window that was made to fit, and what a model was shown for it."""

    rows: Sequence[WindowRow]
    model_tokens: int = 0


Reduce = Callable[[Sequence[WindowRow], int, Counter], ReducedWindow]


@dataclass(slots=True, kw_only=True)
class PromptWindow:
    """What the calls are sent, and cost, under one of these ways."""

    name: str
    reduce: Reduce
    budget_tokens: int
    prices: Prices
    rows: Sequence[WindowRow] = ()
    """In the window at the call that was made last."""
    read: int = 0
    """Messages of the session that came in."""
    prompt_tokens: int = 0
    """Of the call that was made last, with the head."""
    sent_tokens: int = 0
    sent_priced: float = 0.0
    """In tokens at full price."""
    model_tokens: int = 0
    """Of calls of a summarizing model."""

    def move(self, session: Session, counter: Counter, head_tokens: int) -> None:
        """Make the next call: new messages come in, and the window is made to fit."""
        before = self.rows
        new = [_row(entry, counter) for entry in session.entries(self.read + 1)]
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


def _row(entry: LogEntry, counter: Counter) -> WindowRow:
    return WindowRow(entry.ref, entry.message.role, text_of(entry.message), entry.tokens(counter))


def slide(rows: Sequence[WindowRow], budget_tokens: int, counter: Counter) -> ReducedWindow:
    """Keep the newest messages that fit; the newest, or the newest call with its results, whatever its size."""
    step = next((back for back, row in enumerate(reversed(rows), 1) if row.role != "tool"), 0)
    start, tokens = 0, sum(row.tokens for row in rows)
    while len(rows) - start > step and (tokens > budget_tokens or rows[start].role == "tool"):
        tokens -= rows[start].tokens  # a result leaves with its call
        start += 1
    return ReducedWindow(rows[start:])


def summarize(rows: Sequence[WindowRow], budget_tokens: int, counter: Counter) -> ReducedWindow:
    """Put one summary in the place of all but the newest messages, where all do not fit."""
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
    """Put a placeholder in the place of all but the newest tool results, where all messages do not fit."""
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
"""By name; the first has the same budget as ours at every call."""
