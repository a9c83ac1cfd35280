"""Context cards: one line and some keywords for each message of a session.

    made = cards_of(session)                                    # all cards, made when they are asked for
    made = cards_of(session, phase="research", refs=["§3"])     # or some of them
    made = cards_of(session, ModelCardSummarizer(model))        # summaries by a model
    made.cards, made.findings

A card is a view of its original: its role, phase, turn, pin and tokens are read from the log. Only summary and keywords
cost time, so they are kept in the session's derived data (`DerivedFile`), one file for each summarizer, and are made
once. An erasure deletes that file; an erased message has no card.

A system, developer or injected message (one with an `origin`) has no card. The summary of a tool result is its error,
else the number of its images, else the first keys of its JSON object, else its beginning and size. A text under 200
characters is its own summary; a longer one goes to a summarizer. If that fails, the card has only the beginning of the
text, there is a finding, and the next reading tries again.

Keywords are the words by which a message is found, most frequent first, and by position among equal counts: words of
four characters and more, whole identifiers, numbers of three digits and more, character bigrams for scripts without
blanks; no stop words.

>>> keywords("The deploy failed: deploy_id 4711 is unknown, deploy again")
('deploy', 'failed', 'deploy_id', '4711', 'unknown')
>>> keywords("部署失败")
('部署', '署失', '失败')

Source: the auto-context design (table of context cards, fast paths of their generator).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ctxsteward.language.words import lists
from ctxsteward.schemas import ContextError, Finding, ImagePart, Message, StoreError, SummarizerInput, ToolResultPart
from ctxsteward.schemas.cards import (
    MAX_KEYWORD_CHARS,
    MAX_KEYWORDS,
    MAX_NAME_CHARS,
    MAX_SUMMARY_CHARS,
    CardRole,
    ContextCard,
)
from ctxsteward.schemas.errors import Damaged
from ctxsteward.schemas.findings import Ref
from ctxsteward.schemas.message import OpaquePart
from ctxsteward.schemas.summary import SourceMessage

from .compaction.compactor import load_summarizer
from .compaction.losses import said_by, text_of
from .history.session import Session
from .history.state import Pin
from .history.tool_groups import LogEntry, is_user_turn

CardSummarizer = Callable[[SourceMessage], str]
"""Makes one or two sentences about one message; text over 300 characters is cut. Its `name` or `__name__` is written
into each card, and its summaries are kept under it. It may raise: the card then has the beginning of the text."""

BATCH_MESSAGES = 64
"""Originals that are read at a time."""
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


def keywords(text: str) -> tuple[str, ...]:
    """Return at most 20 keywords, in lower case."""
    stop_words = frozenset(lists("words").words("keyword_stop"))
    counts: Counter[str] = Counter()
    for word in _WORD.findall(text[:KEYWORD_CHARS].lower()):
        if _IS_CJK.match(word):
            counts.update([word[at : at + 2] for at in range(len(word) - 1)] or [word])
        elif len(word) >= 4 or (len(word) == 3 and word.isdigit()):
            name = word.strip("_")[:MAX_KEYWORD_CHARS]
            if name and name not in stop_words:
                counts[name] += 1
    return tuple(word for word, _ in counts.most_common(MAX_KEYWORDS))


class _PhasePosition(NamedTuple):
    """Phase of a session after a message, and the user turns in it."""

    phase: str | None = None
    turns: int = 0
    """User turns of the phase so far."""

    def after(self, entry: LogEntry) -> _PhasePosition:
        phase, turns = self
        own = _storable(entry.event.phase)
        if own is not None and own != phase:
            phase, turns = own, 0
        speaks = entry.event.origin is None and is_user_turn(entry.message)
        return _PhasePosition(phase, turns + 1 if speaks else turns)


class SessionCards(NamedTuple):
    """Cards in the order of their messages, and what went wrong while they were made."""

    cards: list[ContextCard]
    findings: list[Finding]


def cards_of(
    session: Session,
    summarize: CardSummarizer | str = "extractive",
    *,
    phase: str | None = None,
    refs: Collection[str] | None = None,
    anew: bool = False,
) -> SessionCards:
    """Return the cards of a session, those of the part that a fork shares included.

    `summarize` is a `CardSummarizer`, or the name of an installed summarizer; `leading` takes the first sentences.
    `phase` and `refs` (``§12``) limit the cards. `anew` makes summaries again that are there. A message that cannot be
    read gets no card, and a finding. Raises `InputError` for an unknown summarizer or a bad reference; `StoreError` if
    the store does not answer.
    """
    make = card_summarizer(summarize) if isinstance(summarize, str) else summarize
    wanted = None if refs is None else {Ref.parse(ref).ordinal for ref in refs}
    findings: list[Finding] = []
    cards: list[ContextCard] = []
    with _KeptSummaries(session, make, anew=anew) as kept:
        position = _PhasePosition()
        for owner, entry in _entries(session, max(wanted, default=0) if wanted is not None else None, findings):
            position = position.after(entry)
            is_listed = (wanted is None or entry.ordinal in wanted) and phase in (None, position.phase)
            if is_listed and entry.event.origin is None and entry.message.role not in ("system", "developer"):
                summary = kept.of(entry, findings)
                cards.append(
                    _card(session.tenant, owner, entry, position, session.state.pins.get(entry.ordinal), summary)
                )
    return SessionCards(cards, findings)


def _entries(session: Session, last: int | None, findings: list[Finding]) -> Iterator[tuple[str, LogEntry]]:
    """Yield the originals up to `last` that have words, each with the session whose log has it."""
    owners, name = [], session.id
    for origin in session.origins():
        owners.append((origin.ordinal, name))
        name = origin.session
    owners.append((0, name))
    stop = len(session) if last is None else min(last, len(session))
    for start in range(1, stop + 1, BATCH_MESSAGES):
        for entry in _readable(session, start, min(start + BATCH_MESSAGES - 1, stop), findings):
            if not entry.event.erased:
                yield next(owner for after, owner in owners if entry.ordinal > after), entry


def _readable(session: Session, start: int, stop: int, findings: list[Finding]) -> list[LogEntry]:
    """Return the originals from `start` to `stop`, without those that cannot be read."""
    try:
        entries = session.entries(start, stop)
        for entry in entries:
            _ = entry.message  # it may be read only now
        return entries
    except ContextError as error:
        if isinstance(error, StoreError) and not isinstance(error, Damaged):
            raise
        if start == stop:
            findings.append(Finding(kind="card_not_made", ref=f"§{start}", text=str(error)))
            return []
    return [entry for n in range(start, stop + 1) for entry in _readable(session, n, n, findings)]


class _Summary(NamedTuple):
    """Parts of a card that are made and kept."""

    address: str
    """Address of the original."""
    text: str
    keywords: list[str]
    generator: str
    made_at: str


class _KeptSummaries:
    """Summaries of a session by one summarizer; new ones are written to its derived data at the end."""

    def __init__(self, session: Session, summarize: CardSummarizer, *, anew: bool) -> None:
        name = getattr(summarize, "name", None) or getattr(summarize, "__name__", None) or type(summarize).__name__
        self._summarize, self._name = summarize, one_line(str(name))[:MAX_NAME_CHARS] or FAST_PATH
        self._file = session.derived_file()
        stored = None if self._file is None or anew else self._file.read(self._part)
        self._known = {ordinal: _Summary(*fields) for ordinal, *fields in stored or ()}
        self._is_changed = False

    @property
    def _part(self) -> str:
        return f"cards.{self._name}"

    def of(self, entry: LogEntry, findings: list[Finding]) -> _Summary:
        known = self._known.get(entry.ordinal)
        if known is not None and known.address == entry.event.address:
            return known
        text, generator = fast_summary(entry.message), FAST_PATH
        problem = ""
        if text is None:
            text, problem = self._summary(entry)
            generator = self._name if not problem else FAST_PATH
        words = list(keywords(text_of(entry.message)))
        made = _Summary(entry.event.address, text, words, generator, datetime.now(UTC).isoformat())
        if problem:
            text = f"the summarizer {problem}; the card has the beginning of the message"
            findings.append(Finding(kind="card_not_summarized", ref=entry.ref, text=one_line(text)))
        else:
            self._known[entry.ordinal], self._is_changed = made, True
        return made

    def _summary(self, entry: LogEntry) -> tuple[str, str]:
        """Return the summarizer's text, or the beginning of the message and why there is none."""
        try:
            text = one_line(self._summarize(SourceMessage(ref=entry.ref, message=entry.message)))
            text.encode()
            if text:
                return shortened(text), ""
            problem = "gave no text"
        except (Exception, SystemExit) as error:  # foreign code may raise anything
            problem = f"failed: {type(error).__name__}: {error}"[:200]
        return shortened(one_line(text_of(entry.message)[:4_000])), problem

    def __enter__(self) -> _KeptSummaries:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None and self._is_changed:
            self._file.write(self._part, [[ordinal, *summary] for ordinal, summary in self._known.items()])


def _card(
    tenant: str, owner: str, entry: LogEntry, position: _PhasePosition, pin: Pin | None, summary: _Summary
) -> ContextCard:
    role: CardRole = "user" if is_user_turn(entry.message) else "tool"
    return ContextCard(
        tenant=tenant,
        session=owner,
        ref=entry.ref,
        address=entry.event.address,
        summary=summary.text,
        keywords=tuple(summary.keywords),
        estimated_tokens=max(entry.event.tokens.values(), default=len(text_of(entry.message)) // 4 + 1),
        role="assistant" if entry.message.role == "assistant" else role,
        phase_name=position.phase,
        turn_number=position.turns or None,
        is_anchor=pin is not None and pin.strength == "keep",
        is_callout=pin is not None,
        callout_name=_storable(pin.name) if pin is not None else None,
        generated_at=datetime.fromisoformat(summary.made_at),
        generator_model=summary.generator,
        message_timestamp=_storable(entry.event.ts),
    )


def card_summarizer(name: str) -> CardSummarizer:
    """Return an installed summarizer as one of cards, or for `leading` the first sentences, in a third of the time.

    Raises `InputError` for an unknown name.
    """
    if name == "leading":
        return leading_sentences
    of_section = load_summarizer(name)

    def summarize(source: SourceMessage) -> str:
        # without a counter a token is a character, so the budget is in characters
        summary = of_section(SummarizerInput(messages=(source,)), budget_tokens=MAX_SUMMARY_CHARS)
        return " ".join(bullet.text for bullet in summary.bullets) or leading_sentences(source)

    summarize.__name__ = name
    return summarize


def _storable(text: str | None) -> str | None:
    """Return a text of the log without NUL, which a card's schema forbids."""
    return None if text is None else text.replace("\x00", "\ufffd")
