"""Making cards: messages of a session in, cards out, in order.

A system, developer or injected message (one with an `origin`) has no card. The summary of a tool result is its error,
else the number of its images, else the first keys of its JSON object, else its beginning and size. A text under 200
characters is its own summary; a longer one goes to a summarizer. If that fails, the card has only the beginning of the
text, and there is a finding.

Keywords are the words by which a message is found, most frequent first, and by position among equal counts: words of
four characters and more, whole identifiers, numbers of three digits and more, character bigrams for scripts without
blanks; no stop words.

>>> keywords("The deploy failed: deploy_id 4711 is unknown, deploy again")
('deploy', 'failed', 'deploy_id', '4711', 'unknown')
>>> keywords("部署失败")
('部署', '署失', '失败')

Source: the auto-context design (fast paths of the card generator).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

from ctxsteward.language.words import lists
from ctxsteward.schemas import Finding, ImagePart, Message, SummarizerInput, ToolResultPart
from ctxsteward.schemas.cards import (
    MAX_KEYWORD_CHARS,
    MAX_KEYWORDS,
    MAX_NAME_CHARS,
    MAX_SUMMARY_CHARS,
    CardRole,
    ContextCard,
)
from ctxsteward.schemas.message import OpaquePart
from ctxsteward.schemas.summary import SourceMessage
from ctxsteward.store.journal.port import SessionKey

from ..compaction.compactor import load_summarizer
from ..compaction.losses import said_by, text_of
from ..history.state import Pin
from ..history.tool_groups import LogEntry, is_user_turn

CardSummarizer = Callable[[SourceMessage], str]
"""Makes one or two sentences about one message; text over 300 characters is cut. Its `name` or `__name__` is written
into each card. It may raise: the card then contains the beginning of the text."""

FAST_PATH = "fast-path"
"""`generator_model` of summaries made by rule."""
OWN_SUMMARY_CHARS = 200
SHOWN_CHARS = 100
"""Most characters of a tool's error or text."""
SHOWN_KEYS = 5
MAX_JSON_CHARS = 262_144
"""A larger result is shown as text, because parsing it for five keys costs too much."""
READ_CHARS = 2_000
"""Characters read of a message that is summarized by its first sentences."""
KEYWORD_CHARS = 20_000
"""Characters of one message that are searched for keywords."""

_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s)|[。！？]|$)", re.DOTALL)
_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+")
_IS_CJK = re.compile(rf"[{_CJK}]")


def fast_summary(message: Message) -> str | None:
    """Return the summary of a tool message or short text, or None if a summarizer must read the text."""
    text = said_by(message)
    if len(text) >= OWN_SUMMARY_CHARS:
        return None
    parts = [one_line(text), "; ".join(tool_summary(result) for result in message.tool_results)]
    if any(parts):
        return shortened("; ".join(filter(None, parts)))
    images = sum(isinstance(part, ImagePart) for part in message.parts)
    names = [f"{images} image{'s' if images > 1 else ''}"] if images else []
    names += [part.type for part in message.parts if isinstance(part, OpaquePart)]
    return shortened(f"[{one_line(', '.join(names))}]") if names else ""


def tool_summary(result: ToolResultPart) -> str:
    """Return a tool result in one line.

    >>> tool_summary(ToolResultPart(call_id="c", text='{"error": "no such table", "code": 7}'))
    'Tool error: no such table'
    >>> tool_summary(ToolResultPart(call_id="c", text='{"rows": [], "took_ms": 3}'))
    'Tool result with keys: rows, took_ms'
    """
    body: Any = None
    if len(result.text) <= MAX_JSON_CHARS and result.text.lstrip().startswith("{"):
        try:
            body = json.loads(result.text)
        except (ValueError, RecursionError):
            body = None
    body = body if isinstance(body, dict) else {}
    error = body.get("error")
    if error or result.is_error:
        text = error.get("message") if isinstance(error, dict) else error or result.text
        return f"Tool error: {_begin(text if isinstance(text, str) else json.dumps(error, ensure_ascii=False))}"
    listed = body.get("images")
    images = len(result.images) + (len(listed) if isinstance(listed, list) else 0)
    if images:
        return f"Tool returned {images} image{'s' if images > 1 else ''}"
    if body:
        return shortened(f"Tool result with keys: {', '.join(_begin(key) for key in list(body)[:SHOWN_KEYS])}")
    if len(result.text) < SHOWN_CHARS:
        return f"Tool result: {one_line(result.text) or '(empty)'}"
    return f"Tool result: {_begin(result.text)}... ({len(result.text)} characters)"


def shortened(text: str) -> str:
    """Return the text, or as much of its beginning as fits a card."""
    return text if len(text) <= MAX_SUMMARY_CHARS else text[: MAX_SUMMARY_CHARS - 1].rstrip() + "…"


def one_line(text: str) -> str:
    """Return the text without line breaks, control characters and repeated blanks."""
    return _BLANKS.sub(" ", text).strip()


def _begin(text: str) -> str:
    return one_line(text[: SHOWN_CHARS * 4])[:SHOWN_CHARS]


def leading_sentences(source: SourceMessage) -> str:
    """Return the first whole sentences of a message that fit a card.

    >>> from ctxsteward.schemas import Message
    >>> said = {"role": "user", "content": "Move the job to 02:00. It clashes with the backup. " + "So " * 200}
    >>> leading_sentences(SourceMessage(ref="§1", message=Message.from_wire(said)))
    'Move the job to 02:00. It clashes with the backup.'
    """
    text = one_line(said_by(source.message)[:READ_CHARS])
    taken = ""
    for sentence in _SENTENCE.findall(text):
        if len(taken) + len(sentence) > MAX_SUMMARY_CHARS:
            break
        taken += sentence
    return taken.strip() or shortened(text)


@cache
def _stop_words() -> frozenset[str]:
    """Return the English stop words that are long enough to be keywords."""
    return frozenset(lists("words").words("keyword_stop"))


def keywords(text: str) -> tuple[str, ...]:
    """Return at most 20 keywords, in lower case."""
    stop_words = _stop_words()
    counts: Counter[str] = Counter()
    for word in _WORD.findall(text[:KEYWORD_CHARS].lower()):
        if _IS_CJK.match(word):
            counts.update([word[at : at + 2] for at in range(len(word) - 1)] or [word])
        elif len(word) >= 4 or (len(word) == 3 and word.isdigit()):
            name = word.strip("_")[:MAX_KEYWORD_CHARS]
            if name and name not in stop_words:
                counts[name] += 1
    return tuple(word for word, _ in counts.most_common(MAX_KEYWORDS))


class PhasePosition(NamedTuple):
    """Phase of a session after a message, and the user turns in it."""

    phase: str | None = None
    turns: int = 0
    """User turns of the phase so far."""

    def after(self, entry: LogEntry) -> PhasePosition:
        phase, turns = self
        own = _storable(entry.event.phase)
        if own is not None and own != phase:
            phase, turns = own, 0
        speaks = entry.event.origin is None and is_user_turn(entry.message)
        return PhasePosition(phase, turns + 1 if speaks else turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardMaker:
    """Makes cards. Threads may share it if they may share its parts."""

    now: Callable[[], datetime]
    """Returns the time with its zone, for each card."""
    summarize: CardSummarizer = field(default=leading_sentences)

    def make(
        self,
        key: SessionKey,
        entries: Sequence[LogEntry],
        position: PhasePosition,
        pins: Mapping[int, Pin],
        findings: list[Finding],
        between: Callable[[], None] = lambda: None,
    ) -> tuple[list[ContextCard], PhasePosition]:
        """Return cards of the entries that get one, and the position after the last; faults go to `findings`.

        `between` is called after each entry.
        """
        cards: list[ContextCard] = []
        for entry in entries:
            position = position.after(entry)
            if entry.event.origin is None and entry.message.role not in ("system", "developer"):
                cards.append(self._card(key, entry, position, pins.get(entry.ordinal), findings))
            between()
        return cards, position

    def _card(
        self,
        key: SessionKey,
        entry: LogEntry,
        position: PhasePosition,
        pin: Pin | None,
        findings: list[Finding],
    ) -> ContextCard:
        message, text = entry.message, text_of(entry.message)
        role: CardRole = "user" if is_user_turn(message) else "tool"
        summary, generator = self._summary(entry, findings)
        return ContextCard(
            tenant=key.tenant,
            session=key.session,
            ref=entry.ref,
            address=entry.event.address,
            summary=summary,
            keywords=keywords(text),
            estimated_tokens=max(entry.event.tokens.values(), default=len(text) // 4 + 1),
            role="assistant" if message.role == "assistant" else role,
            phase_name=position.phase,
            turn_number=position.turns or None,
            generated_at=self.now(),
            generator_model=generator,
            message_timestamp=_storable(entry.event.ts),
            **_marks(pin),
        )

    def _summary(self, entry: LogEntry, findings: list[Finding]) -> tuple[str, str]:
        """Return the summary, and the name of its generator."""
        fast = fast_summary(entry.message)
        if fast is not None:
            return fast, FAST_PATH
        try:
            summary = one_line(self.summarize(SourceMessage(ref=entry.ref, message=entry.message)))
            summary.encode()
            if summary:
                made_by = getattr(self.summarize, "name", None) or getattr(self.summarize, "__name__", None)
                name = one_line(str(made_by or type(self.summarize).__name__))[:MAX_NAME_CHARS]
                return shortened(summary), name or FAST_PATH
            problem = "gave no text"
        except (Exception, SystemExit) as error:  # foreign code may raise anything
            problem = f"failed: {type(error).__name__}: {error}"[:200]
        text = f"the summarizer {problem}; the card holds the beginning of the message"
        findings.append(Finding(kind="card_not_summarized", ref=entry.ref, text=one_line(text)))
        return shortened(one_line(text_of(entry.message)[:4_000])), FAST_PATH


def card_maker(summarizer: str = "extractive") -> CardMaker:
    """Return a maker with an installed summarizer, or with `leading`: the first sentences, in a third of the time.

    Raises `InputError` for an unknown name.
    """
    if summarizer == "leading":
        return CardMaker(now=_now)
    of_section = load_summarizer(summarizer)

    def summarize(source: SourceMessage) -> str:
        # without a counter a token is a character, so the budget is in characters
        summary = of_section(SummarizerInput(messages=(source,)), budget_tokens=MAX_SUMMARY_CHARS)
        return " ".join(bullet.text for bullet in summary.bullets) or leading_sentences(source)

    summarize.__name__ = summarizer
    return CardMaker(now=_now, summarize=summarize)


def _now() -> datetime:
    return datetime.now(UTC)


def pinned(card: ContextCard, pin: Pin | None) -> ContextCard:
    """Return the card with the marks of this pin; the card itself if it has them."""
    if pin is None and not card.is_callout:
        return card
    marks = _marks(pin)
    return card if marks == {name: getattr(card, name) for name in marks} else card.model_copy(update=marks)


def _marks(pin: Pin | None) -> dict[str, Any]:
    return {
        "is_anchor": pin is not None and pin.strength == "keep",
        "is_callout": pin is not None,
        "callout_name": _storable(pin.name) if pin is not None else None,
    }


def _storable(text: str | None) -> str | None:
    """Return a text of the log without NUL, because PostgreSQL cannot store it."""
    return None if text is None else text.replace("\x00", "\ufffd")
