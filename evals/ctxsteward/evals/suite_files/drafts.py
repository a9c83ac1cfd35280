"""Asks drafted from a conversation by rule: a value that a person said early, and a question that leaves it out.

    for ask in drafted(messages, stated, most=5): ask.question, ask.value, ask.place, ask.after

No model and no list of phrases: a value is what `language.values.typed_values` types (identifiers, dates, amounts, …),
or a word with a capital inside a sentence that is nowhere written without. It is asked for where it tells context
strategies apart and has one answer:

- a person said it first, and it is asked for when nobody has come back to it for long;
- it is rare in the conversation, and so are words of its sentence: they lead to this message and no other;
- no other sentence with much the same words has another value of its kind.

The question is the sentence with a gap. Best come first: kinds of which one mention names one thing, then values with a
unit or a date, then bare numbers and names; longer values before shorter ones, then rare words. Of five public
chats a drafted value stands in another chat by chance in 4.5 % of cases; with kind alone, and numbers of two digits, in
11.4 %.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

from ctxsteward.language.values import DISTINCTIVE, typed_values
from ctxsteward.language.words import sentences, terms
from ctxsteward.schemas.message import Wire

from ..canaries import normalize, shows
from ..suites.kit.said_texts import texts_of

QUIET_FRACTION, QUIET_MESSAGES = 0.25, 6
"""So long, at least, nobody came back to a value when it is asked for: a part of the conversation, and messages."""
RARE_MESSAGES = 6
"""A value that more messages than these hold is not asked for."""
SENTENCE_CHARS = (20, 240)
FRAME_TERMS = 3
"""Words that lead to a message, at least; of them `RARE_TERMS` in no other message of a person."""
RARE_TERMS = 1
PROSE_WORDS = 0.8
"""Of a sentence without its values, at least."""
ALIKE = 0.5
"""Of the words of two sentences: with so many in common they say the same of different values."""
PRIVATE = frozenset(("email", "phone", "address"))
"""Kinds that belong in no suite file, whatever redaction found."""
LEAST_CHARS, LONG_VALUE_CHARS = 3, 12
GAP = "____"
_HAN = re.compile(r"[㐀-鿿]")
_MARKS = '.,;:!?"()*“”'
_WORD = re.compile(r"\b[a-z][a-z'’-]+\b")
_PROPER = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: (?:& )?[A-Z][a-z]{2,})*\b(?!['’])")
"""Words with a capital inside a sentence."""
PROPER = "proper name"
_ASKS = ("?", "？")
_IN_IDENTIFIERS = re.compile(r"[0-9_/.@#]")
_MARKED = "[redacted:"


class DraftedAsk(NamedTuple):
    """An ask that was drafted."""

    question: str
    value: str
    kind: str
    place: int
    """Of the message that says it, from 1."""
    after: int
    """How many messages were said before the ask."""


@dataclass(frozen=True, slots=True)
class SaidValue:
    """A typed value in a sentence of a person."""

    value: str
    norm: str
    kind: str
    place: int
    question: str
    frame: frozenset[str]
    """Index terms of the sentence without values."""


def drafted(messages: Sequence[Wire], stated: Sequence[bool], *, most: int) -> list[DraftedAsk]:
    """The best asks for a conversation, best first, at most `most`.

    `stated` says of each message whether its statements may be asked for: a person's, and no demonstration.
    """
    texts = ["\n".join(texts_of(wire)) for wire in messages]
    rows = [(place, text) for place, (text, may) in enumerate(zip(texts, stated, strict=True), 1) if may]
    said = [one for place, text in rows for one in said_values(text, place)]
    normalized = [normalize(text) for text in texts]
    words = {word for text in texts for word in _WORD.findall(text)}
    frequency = Counter(term for _, text in rows for term in set(terms(text)))
    ranked: list[tuple[float, DraftedAsk, SaidValue]] = []
    for one in said:
        places = [place for place, text in enumerate(normalized, 1) if shows(text, one.value)]
        after = _quiet_until(places, messages)
        if places[0] != one.place or len(places) > RARE_MESSAGES or after is None:
            continue
        if one.kind == PROPER and one.value.split()[0].lower() in words:  # a word like others, with a capital
            continue
        if not _leads(one, frequency) or _is_ambiguous(one, said) or shows(normalize(one.question), one.value):
            continue
        rarity = sum(log(1 + len(messages) / max(1, frequency[term])) for term in one.frame) / len(one.frame)
        ranked.append((10 * _worth(one) + rarity, DraftedAsk(one.question, one.value, one.kind, one.place, after), one))
    ranked.sort(key=lambda row: (-row[0], row[1]))
    return _one_a_value(ranked)[:most]


def _worth(one: SaidValue) -> float:
    """How much a value tells apart, by its kind and its length: what is short stands elsewhere by chance."""
    kind = 2.0 if one.kind in DISTINCTIVE else 0.0 if one.kind in (PROPER, "number") else 1.0
    return kind + min(len(one.value), LONG_VALUE_CHARS) / LONG_VALUE_CHARS


def _quiet_until(places: Sequence[int], messages: Sequence[Wire]) -> int | None:
    """After how many messages to ask: at the end of the longest stretch in which nobody says a value again.

    None where no stretch is long enough. Nothing is asked between a tool call and its result.
    """
    stretches = list(zip(places, (*places[1:], len(messages) + 1), strict=True))
    start, stop = max(stretches, key=lambda stretch: stretch[1] - stretch[0])
    after = stop - 1
    while after < len(messages) and messages[after]["role"] == "tool":
        after -= 1
    return after if after - start >= max(QUIET_MESSAGES, QUIET_FRACTION * len(messages)) else None


def said_values(text: str, place: int) -> Iterator[SaidValue]:
    """The values that sentences of a message state; of a question, none."""
    for span in sentences(text):
        sentence = text[span.start : span.stop]
        if (
            not SENTENCE_CHARS[0] <= len(sentence) <= SENTENCE_CHARS[1]
            or sentence.endswith(_ASKS)
            or sentence.startswith("[")
            or _MARKED in sentence
        ):
            continue
        values = typed_values(sentence)
        rest = "".join(" " if any(v.start <= n < v.stop for v in values) else char for n, char in enumerate(sentence))
        if not _is_prose(rest):
            continue
        frame = frozenset(terms(rest))
        for match in _PROPER.finditer(rest):
            question = _question(_with_gap(sentence, match.start(), match.end()))
            own = frame - frozenset(terms(match[0]))
            yield SaidValue(match[0], normalize(match[0]), PROPER, place, question, own)
        for value in values:
            raw = sentence[value.start : value.stop]
            if value.kind in PRIVATE or not _is_telling(raw, value.kind):
                continue
            question = _question(_with_gap(sentence, value.start, value.stop))
            yield SaidValue(raw, value.norm, value.kind, place, question, frame)


def _with_gap(sentence: str, start: int, stop: int) -> str:
    return " ".join(f"{sentence[:start]}{GAP}{sentence[stop:]}".split())


def _is_telling(raw: str, kind: str) -> bool:
    """Whether it is a value and no word: a digit or two stand anywhere, capitals and hyphens are often emphasis."""
    if len(raw) < LEAST_CHARS and _HAN.search(raw) is None:
        return False
    if kind == "identifier":
        return _IN_IDENTIFIERS.search(raw) is not None
    if kind == "name":
        return raw[:1].isalnum() and "." not in raw
    return True


def _is_prose(sentence: str) -> bool:
    """Whether it is made of words: code, logs and tables are not."""
    if _HAN.search(sentence):
        return True
    words = [word.strip(_MARKS) for word in sentence.split()]
    return sum(
        word.replace("'", "").replace("’", "").replace("-", "").isalpha() for word in words
    ) >= PROSE_WORDS * len(words)


def _question(gapped: str) -> str:
    if _HAN.search(gapped):
        return f"前面说过：“{gapped}”。空格处是什么？"
    return f'Earlier it was said: "{gapped}" What stands in the gap?'


def _leads(one: SaidValue, frequency: Counter[str]) -> bool:
    return len(one.frame) >= FRAME_TERMS and sum(frequency[term] <= 1 for term in one.frame) >= RARE_TERMS


def _is_ambiguous(one: SaidValue, said: Sequence[SaidValue]) -> bool:
    return any(
        other.kind == one.kind
        and other.norm != one.norm
        and len(one.frame & other.frame) >= ALIKE * len(one.frame | other.frame)
        for other in said
    )


def _one_a_value(ranked: Sequence[tuple[float, DraftedAsk, SaidValue]]) -> list[DraftedAsk]:
    """Each value once, and one value of a sentence: two gaps of one sentence ask nearly the same."""
    kept: list[SaidValue] = []
    asks: list[DraftedAsk] = []
    for _, ask, one in ranked:
        if not any(one.norm == other.norm or _in_one_sentence(one, other) for other in kept):
            kept.append(one)
            asks.append(ask)
    return asks


def _in_one_sentence(one: SaidValue, other: SaidValue) -> bool:
    return one.place == other.place and len(one.frame & other.frame) >= ALIKE * len(one.frame | other.frame)
