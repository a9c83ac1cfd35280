"""Making cards: entries of a session in, cards out, in ordinal order.

No card for a system or developer message, or one that was injected (it has an `origin`): it says nothing of its own. A
summarizer or embedder that fails costs the better summary or the embedding, never the card, and leaves a finding.

What needs no summarizer, or where one fails, is summarized by rule: a tool result by its error, else how many images it
holds, else the first keys of its JSON object, else its beginning and its size; a text of under 200 characters is its
own summary. Blanks and control characters become one blank each. `leading_sentences` is the default summarizer and
needs nothing else; `BulletSummarizer` puts any installed summarizer of sections to work on a single message.

Keywords are the words a message is found by: most frequent first, of equal counts the one that comes earlier. Words of
four characters and more, identifiers whole, numbers of three digits and more, character bigrams for scripts without
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

from ctxsteward.language import lists
from ctxsteward.schemas import (
    MAX_KEYWORD_CHARS,
    MAX_KEYWORDS,
    MAX_NAME_CHARS,
    MAX_SUMMARY_CHARS,
    CardRole,
    ContextCard,
    Finding,
    ImagePart,
    Message,
    OpaquePart,
    SourceMessage,
    Summarizer,
    SummarizerInput,
    ToolResultPart,
    counted,
)
from ctxsteward.store import SessionKey

from ..compaction import said_by, text_of
from ..history import LogEntry, Pin, is_user_turn
from ..recall import Embedder
from .port import CardSummarizer

FAST_PATH = "fast-path"
"""`generator_model` of these summaries."""
OWN_SUMMARY_CHARS = 200
SHOWN_CHARS = 100
"""Of a tool's error or text."""
SHOWN_KEYS = 5
MAX_JSON_CHARS = 262_144
"""A larger result is shown as text; reading it for five keys costs too much."""

_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def fast_summary(message: Message) -> str | None:
    """The summary of a tool message or a short text; None for what a summarizer is to read."""
    said = one_line(said_by(message)) if not is_long(message) else None
    if said is None:
        return None
    results = "; ".join(tool_summary(result) for result in message.tool_results)
    return shortened("; ".join(part for part in (said, results) if part) or media(message))


def is_long(message: Message) -> bool:
    """Whether what a message says (not its tool results) has 200 characters and more."""
    return len(said_by(message)) >= OWN_SUMMARY_CHARS


def tool_summary(result: ToolResultPart) -> str:
    """What a tool answered, in a line.

    >>> tool_summary(ToolResultPart(call_id="c", text='{"error": "no such table", "code": 7}'))
    'Tool error: no such table'
    >>> tool_summary(ToolResultPart(call_id="c", text='{"rows": [], "took_ms": 3}'))
    'Tool result with keys: rows, took_ms'
    """
    body = _object(result.text)
    error = body.get("error")
    if error or result.is_error:
        return f"Tool error: {_begin(_error_text(error) if error else result.text)}"
    listed = body.get("images")
    images = len(result.images) + (len(listed) if isinstance(listed, list) else 0)
    if images:
        return f"Tool returned {images} image{'s' if images > 1 else ''}"
    if body:
        return shortened(f"Tool result with keys: {', '.join(_begin(key) for key in list(body)[:SHOWN_KEYS])}")
    if len(result.text) < SHOWN_CHARS:
        return f"Tool result: {one_line(result.text) or '(empty)'}"
    return f"Tool result: {_begin(result.text)}... ({len(result.text)} characters)"


def media(message: Message) -> str:
    """What a message without text holds: ``[2 images]``, ``[document]``."""
    images = sum(isinstance(part, ImagePart) for part in message.parts)
    kinds = [part.type for part in message.parts if isinstance(part, OpaquePart)]
    named = ([f"{images} image{'s' if images > 1 else ''}"] if images else []) + kinds
    return f"[{one_line(', '.join(named))}]" if named else ""


def shortened(text: str) -> str:
    """The text, or its beginning that fits a card."""
    return text if len(text) <= MAX_SUMMARY_CHARS else text[: MAX_SUMMARY_CHARS - 1].rstrip() + "…"


def one_line(text: str) -> str:
    """The text without line breaks, control characters and repeated blanks."""
    return _BLANKS.sub(" ", text).strip()


def _begin(text: str) -> str:
    return one_line(text[: SHOWN_CHARS * 4])[:SHOWN_CHARS]


def _error_text(error: Any) -> str:
    said = error.get("message") if isinstance(error, dict) else error
    return said if isinstance(said, str) else json.dumps(error, ensure_ascii=False)


def _object(text: str) -> dict[str, Any]:
    """The JSON object a text is; empty where it is none, or too large to look into."""
    if len(text) > MAX_JSON_CHARS or not text.lstrip().startswith("{"):
        return {}
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


READ_CHARS = 2_000
"""Of a message; what comes after is not looked at."""

_SENTENCE = re.compile(r".+?(?:[.!?](?=\s)|[。！？]|$)", re.DOTALL)


def leading_sentences(source: SourceMessage) -> str:
    """The sentences a message begins with, whole ones as far as they fit.

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


class BulletSummarizer:
    """A `CardSummarizer`: the bullets a summarizer of sections makes of one message, best first as it gives them."""

    def __init__(self, summarizer: Summarizer, name: str) -> None:
        self._summarizer = summarizer
        self.name = name

    def __call__(self, source: SourceMessage) -> str:
        summary = self._summarizer(
            SummarizerInput(messages=(source,)), budget_tokens=MAX_SUMMARY_CHARS
        )  # a token: a character
        return " ".join(bullet.text for bullet in summary.bullets) or leading_sentences(source)


MAX_TEXT_CHARS = 20_000
"""Of one message; what comes after is not looked at."""

_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+")
_IS_CJK = re.compile(rf"[{_CJK}]")


@cache
def _stop_words() -> frozenset[str]:
    """English ones that are long enough to be looked at."""
    return frozenset(lists("words").words("keyword_stop"))


def keywords(text: str) -> tuple[str, ...]:
    """At most 20, lower case."""
    stop_words = _stop_words()
    counts: Counter[str] = Counter()
    for word in _WORD.findall(text[:MAX_TEXT_CHARS].lower()):
        if _IS_CJK.match(word):
            counts.update([word[at : at + 2] for at in range(len(word) - 1)] or [word])
        elif len(word) >= 4 or (len(word) == 3 and word.isdigit()):
            name = word.strip("_")[:MAX_KEYWORD_CHARS]
            if name and name not in stop_words:
                counts[name] += 1
    return tuple(word for word, _ in counts.most_common(MAX_KEYWORDS))


EXTRACTIVE = "extractive"
"""The summarizer of cards, where no other is named."""
LEADING = "leading"
"""Names `leading_sentences`."""


class PhasePosition(NamedTuple):
    """Where in its phases a session stands after a message."""

    phase: str | None = None
    turns: int = 0
    """User turns of the phase so far."""

    def after(self, entry: LogEntry) -> PhasePosition:
        """Where it stands after this message."""
        phase, turns = self
        own = _name(entry.event.phase)
        if own is not None and own != phase:
            phase, turns = own, 0
        speaks = entry.event.origin is None and is_user_turn(entry.message)
        return PhasePosition(phase, turns + 1 if speaks else turns)


class CardBatch(NamedTuple):
    cards: list[ContextCard]
    standing: PhasePosition
    """After the last entry."""
    findings: list[Finding]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardMaker:
    """How cards are made; may serve several threads if its parts may."""

    now: Callable[[], datetime]
    """With a time zone; written into each card."""
    summarize: CardSummarizer = field(default=leading_sentences)
    embed: Embedder | None = None

    def make(
        self,
        key: SessionKey,
        entries: Sequence[LogEntry],
        standing: PhasePosition,
        pins: Mapping[int, Pin],
        between: Callable[[], None] = lambda: None,
    ) -> CardBatch:
        """Cards of those entries that are to have one; `between` is called after each."""
        findings: list[Finding] = []
        cards: list[ContextCard] = []
        for entry in entries:
            standing = standing.after(entry)
            if has_card(entry):
                summary = self._summary(entry, findings)
                cards.append(_card(key, entry, *summary, standing, pins.get(entry.ordinal), self.now()))
            between()
        return CardBatch(self._embedded(cards, findings), standing, findings)

    def _summary(self, entry: LogEntry, findings: list[Finding]) -> tuple[str, str]:
        """The summary, and what made it."""
        fast = fast_summary(entry.message)
        if fast is not None:
            return fast, FAST_PATH
        try:
            summary = one_line(self.summarize(SourceMessage(ref=entry.ref, message=entry.message)))
            summary.encode()
            if summary:
                return shortened(summary), _generator(self.summarize)
            problem = "gave no text"
        except (Exception, SystemExit) as error:  # it is somebody else's code: whatever it raises
            problem = f"failed: {type(error).__name__}: {error}"[:200]
        text = f"the summarizer {problem}; the card holds the beginning of the message"
        findings.append(Finding(kind="card_not_summarized", ref=entry.ref, text=one_line(text)))
        return shortened(one_line(text_of(entry.message)[:4_000])), FAST_PATH

    def _embedded(self, cards: list[ContextCard], findings: list[Finding]) -> list[ContextCard]:
        if self.embed is None or not cards:
            return cards
        try:
            vectors = [tuple(map(float, vector)) for vector in self.embed([card.summary for card in cards])]
            sizes = {len(vector) for vector in vectors}
            if len(vectors) != len(cards) or sizes != {self.embed.dimensions}:
                raise ValueError(
                    f"{len(vectors)} vectors of {sorted(sizes)} dimensions for {len(cards)} texts, "
                    f"not of {self.embed.dimensions}"
                )
            pairs = zip(cards, vectors, strict=True)
            with counted("context_card"):
                return [_with_embedding(card, vector, self.embed.name) for card, vector in pairs]
        except (Exception, SystemExit) as error:
            text = f"the embedder failed: {type(error).__name__}: {error}"[:200]
            findings.append(
                Finding(kind="card_not_embedded", ref=cards[0].ref, text=f"{one_line(text)}; these cards have none")
            )
            return cards


def system_time() -> datetime:
    return datetime.now(UTC)


def card_maker(
    summarizer: str = EXTRACTIVE, *, now: Callable[[], datetime] = system_time, embed: Embedder | None = None
) -> CardMaker:
    """A maker with an installed summarizer of sections, or with `leading`: the first sentences, at a third of the time.

    Raises `InputError` where there is none of this name.
    """
    if summarizer == LEADING:
        return CardMaker(now=now, embed=embed)
    from ..compaction import load_summarizer

    return CardMaker(now=now, summarize=BulletSummarizer(load_summarizer(summarizer), summarizer), embed=embed)


def has_card(entry: LogEntry) -> bool:
    """Whether a message is to have a card."""
    return entry.event.origin is None and entry.message.role not in ("system", "developer")


def without_embedding(card: ContextCard) -> ContextCard:
    return card.model_copy(update={"embedding": None, "embedding_model": None})


def pinned(card: ContextCard, pin: Pin | None) -> ContextCard:
    """The card with the marks of this pin; itself where it has them."""
    if pin is None and not card.is_callout:
        return card
    marks = _marks(pin)
    return card if marks == {name: getattr(card, name) for name in marks} else card.model_copy(update=marks)


def _marks(pin: Pin | None) -> dict[str, object]:
    return {
        "is_anchor": pin is not None and pin.strength == "keep",
        "is_callout": pin is not None,
        "callout_name": _name(pin.name) if pin is not None else None,
    }


def _card(
    key: SessionKey,
    entry: LogEntry,
    summary: str,
    generator: str,
    standing: PhasePosition,
    pin: Pin | None,
    now: datetime,
) -> ContextCard:
    text = text_of(entry.message)
    return ContextCard.model_validate(
        {
            "tenant": key.tenant,
            "session": key.session,
            "ref": entry.ref,
            "address": entry.event.address,
            "summary": summary,
            "keywords": keywords(text),
            "estimated_tokens": max(entry.event.tokens.values(), default=len(text) // 4 + 1),
            "role": _role(entry),
            "phase_name": standing.phase,
            "turn_number": standing.turns or None,
            **_marks(pin),
            "generated_at": now,
            "generator_model": generator,
            "message_timestamp": _name(entry.event.ts),
        }
    )


def _with_embedding(card: ContextCard, vector: tuple[float, ...], model: str) -> ContextCard:
    return ContextCard.model_validate({**card.model_dump(), "embedding": vector, "embedding_model": model})


def _role(entry: LogEntry) -> CardRole:
    message = entry.message
    if message.role == "assistant":
        return "assistant"
    return "user" if is_user_turn(message) else "tool"


def _generator(summarize: CardSummarizer) -> str:
    name = getattr(summarize, "name", None) or getattr(summarize, "__name__", None) or type(summarize).__name__
    return one_line(str(name))[:MAX_NAME_CHARS] or FAST_PATH


def _name(text: str | None) -> str | None:
    """A text of the log as a card may hold it: NUL cannot be stored everywhere."""
    return None if text is None else text.replace("\x00", "\ufffd")
