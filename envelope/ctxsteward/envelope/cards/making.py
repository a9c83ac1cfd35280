"""Making cards: entries of a session in, cards out, in ordinal order.

No card for a system or developer message, or one that was injected (it has an `origin`): it says nothing of its own. A
summarizer or embedder that fails costs the better summary or the embedding, never the card, and leaves a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from ctxsteward.schemas import Finding, SourceMessage
from ctxsteward.schemas.cards import MAX_NAME_CHARS, CardRole, ContextCard
from ctxsteward.schemas.violations import counted

from ..accounting import text_of
from ..groups import Entry, is_user_turn
from ..state import Pin
from ..stores.port import SessionKey
from .fast_path import FAST_PATH, fast_summary, one_line, shortened
from .keywords import keywords
from .port import CardSummarizer, Embedder
from .summaries import Bulleted, leading_sentences

EXTRACTIVE = "extractive"
"""The summarizer of cards, where no other is named."""
LEADING = "leading"
"""Names `leading_sentences`."""


class Standing(NamedTuple):
    """Where in its phases a session stands after a message."""

    phase: str | None = None
    turns: int = 0
    """User turns of the phase so far."""

    def after(self, entry: Entry) -> Standing:
        """Where it stands after this message."""
        phase, turns = self
        own = _name(entry.event.phase)
        if own is not None and own != phase:
            phase, turns = own, 0
        speaks = entry.event.origin is None and is_user_turn(entry.message)
        return Standing(phase, turns + 1 if speaks else turns)


class Made(NamedTuple):
    cards: list[ContextCard]
    standing: Standing
    """After the last entry."""
    findings: list[Finding]


class _Summary(NamedTuple):
    text: str
    generator: str


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
        entries: Sequence[Entry],
        standing: Standing,
        pins: Mapping[int, Pin],
        between: Callable[[], None] = lambda: None,
    ) -> Made:
        """Cards of those entries that are to have one; `between` is called after each."""
        findings: list[Finding] = []
        cards: list[ContextCard] = []
        for entry in entries:
            standing = standing.after(entry)
            if has_card(entry):
                summary = self._summary(entry, findings)
                cards.append(_card(key, entry, summary, standing, pins.get(entry.ordinal), self.now()))
            between()
        return Made(self._embedded(cards, findings), standing, findings)

    def _summary(self, entry: Entry, findings: list[Finding]) -> _Summary:
        fast = fast_summary(entry.message)
        if fast is not None:
            return _Summary(fast, FAST_PATH)
        try:
            said = one_line(self.summarize(SourceMessage(ref=entry.ref, message=entry.message)))
            said.encode()
            if said:
                return _Summary(shortened(said), _generator(self.summarize))
            problem = "gave no text"
        except (Exception, SystemExit) as error:  # it is somebody else's code: whatever it raises
            problem = f"failed: {type(error).__name__}: {error}"[:200]
        text = f"the summarizer {problem}; the card holds the beginning of the message"
        findings.append(Finding(kind="card_not_summarized", ref=entry.ref, text=one_line(text)))
        return _Summary(shortened(one_line(text_of(entry.message)[:4_000])), FAST_PATH)

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
    from ..installed import load_summarizer

    return CardMaker(now=now, summarize=Bulleted(load_summarizer(summarizer), summarizer), embed=embed)


def has_card(entry: Entry) -> bool:
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
    key: SessionKey, entry: Entry, summary: _Summary, standing: Standing, pin: Pin | None, now: datetime
) -> ContextCard:
    text = text_of(entry.message)
    return ContextCard.model_validate({
        "tenant": key.tenant,
        "session": key.session,
        "ref": entry.ref,
        "address": entry.event.address,
        "summary": summary.text,
        "keywords": keywords(text),
        "estimated_tokens": max(entry.event.tokens.values(), default=len(text) // 4 + 1),
        "role": _role(entry),
        "phase_name": standing.phase,
        "turn_number": standing.turns or None,
        **_marks(pin),
        "generated_at": now,
        "generator_model": summary.generator,
        "message_timestamp": _name(entry.event.ts),
    })  # fmt: skip


def _with_embedding(card: ContextCard, vector: tuple[float, ...], model: str) -> ContextCard:
    return ContextCard.model_validate({**card.model_dump(), "embedding": vector, "embedding_model": model})


def _role(entry: Entry) -> CardRole:
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
