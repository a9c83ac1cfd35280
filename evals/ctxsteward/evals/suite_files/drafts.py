"""Draft asks from a conversation by rule: a value that a person said early, and a question that leaves it out.

    for ask in drafted(messages, stated, most=5): ask.question, ask.value, ask.place, ask.after

No model and no list of phrases. A value is typed by `language.values.typed_values` (identifiers, dates, amounts, …),
or is a capitalized word inside a sentence that is nowhere written in lower case. An ask must tell context strategies
apart and have one answer:

- a person said the value first, and nobody has repeated it for long when it is asked for;
- the value and some words of its sentence are rare in the conversation, so they lead to this message and no other;
- no other sentence with much the same words has another value of the same kind.

The question is the sentence with a gap. Asks are ranked by kind (distinctive kinds, then values with a unit or a date,
then bare numbers and names), then by length of the value, then by rarity of the words. In five public chats a drafted
value stands in another chat by chance in 4.5 % of cases; ranked by kind alone, with numbers of two digits, in 11.4 %.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import log
from typing import NamedTuple

from ctxsteward.language.values import DISTINCTIVE, typed_values
from ctxsteward.language.words import sentences, terms
from ctxsteward.schemas.message import Wire

from ..canaries import normalize, shows
from ..suites.kit.said_texts import texts_of

QUIET_FRACTION, QUIET_MESSAGES = 0.25, 6
"""Least part of the conversation, and least messages, without the value before it is asked for."""
RARE_MESSAGES = 6
"""A value in more messages than this is not asked for."""
SENTENCE_CHARS = (20, 240)
FRAME_TERMS = 3
"""Least number of words that lead to a message; `RARE_TERMS` of them are in no other message of a person."""
RARE_TERMS = 1
PROSE_WORDS = 0.8
"""Least share of plain words in a sentence without its values."""
ALIKE = 0.5
"""Two sentences that share this part of their words say the same of different values."""
PRIVATE = frozenset(("email", "phone", "address"))
"""Kinds that belong in no suite file, even where redaction missed them."""
LEAST_CHARS, LONG_VALUE_CHARS = 3, 12
GAP = "____"
_HAN = re.compile(r"[㐀-鿿]")
_MARKS = '.,;:!?"()*“”'
_WORD = re.compile(r"\b[a-z][a-z'’-]+\b")
_PROPER = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: (?:& )?[A-Z][a-z]{2,})*\b(?!['’])")
"""Capitalized words inside a sentence."""
PROPER = "proper name"
_ASKS = ("?", "？")
_IN_IDENTIFIERS = re.compile(r"[0-9_/.@#]")
_MARKED = "[redacted:"


class DraftedAsk(NamedTuple):
    """A drafted ask."""

    question: str
    value: str
    kind: str
    place: int
    """1-based place of the message that says the value."""
    after: int
    """Number of messages before the ask."""
    norm: str
    """The value in the form in which two values are compared."""
    frame: frozenset[str]
    """Index terms of the sentence without its values."""

    def is_alike(self, other: DraftedAsk) -> bool:
        """Return whether both sentences use much the same words."""
        return len(self.frame & other.frame) >= ALIKE * len(self.frame | other.frame)


def drafted(messages: Sequence[Wire], stated: Sequence[bool], *, most: int) -> list[DraftedAsk]:
    """Return at most `most` asks for a conversation, best first.

    `stated` says for each message whether it may be asked about: a person said it, and it is no demonstration.
    """
    texts = ["\n".join(texts_of(wire)) for wire in messages]
    rows = [(place, text) for place, (text, may) in enumerate(zip(texts, stated, strict=True), 1) if may]
    candidates = [ask for place, text in rows for ask in gap_questions(text, place)]
    normalized = [normalize(text) for text in texts]
    words = {word for text in texts for word in _WORD.findall(text)}
    frequency = Counter(term for _, text in rows for term in set(terms(text)))
    ranked: list[tuple[float, DraftedAsk]] = []
    for ask in candidates:
        wanted = normalize(ask.value)
        places = [place for place, text in enumerate(normalized, 1) if wanted in text and shows(text, ask.value)]
        if not places:  # normalizing has joined it to other digits: 5² becomes 52
            continue
        after = _quiet_until(places, messages)
        if places[0] != ask.place or len(places) > RARE_MESSAGES or after is None:
            continue
        if ask.kind == PROPER and ask.value.split()[0].lower() in words:  # an ordinary word with a capital
            continue
        rare_terms = sum(frequency[term] <= 1 for term in ask.frame)
        if len(ask.frame) < FRAME_TERMS or rare_terms < RARE_TERMS or shows(normalize(ask.question), ask.value):
            continue
        if any(other.kind == ask.kind and other.norm != ask.norm and ask.is_alike(other) for other in candidates):
            continue
        rarity = sum(log(1 + len(messages) / max(1, frequency[term])) for term in ask.frame) / len(ask.frame)
        # A short value often occurs elsewhere by chance, so its length counts besides its kind.
        kind_score = 2.0 if ask.kind in DISTINCTIVE else 0.0 if ask.kind in (PROPER, "number") else 1.0
        worth = kind_score + min(len(ask.value), LONG_VALUE_CHARS) / LONG_VALUE_CHARS
        ranked.append((10 * worth + rarity, ask._replace(after=after)))
    ranked.sort(key=lambda row: (-row[0], row[1][:5]))
    chosen: list[DraftedAsk] = []
    for _, ask in ranked:
        # Each value once, and one value of a sentence: two gaps of one sentence ask nearly the same.
        if not any(ask.norm == c.norm or (ask.place == c.place and ask.is_alike(c)) for c in chosen):
            chosen.append(ask)
    return chosen[:most]


def _quiet_until(places: Sequence[int], messages: Sequence[Wire]) -> int | None:
    """Return the end of the longest stretch in which nobody repeats a value, or None if no stretch is long enough.

    Nothing is asked between a tool call and its result.
    """
    stretches = list(zip(places, (*places[1:], len(messages) + 1), strict=True))
    start, stop = max(stretches, key=lambda stretch: stretch[1] - stretch[0])
    after = stop - 1
    while after < len(messages) and messages[after]["role"] == "tool":
        after -= 1
    return after if after - start >= max(QUIET_MESSAGES, QUIET_FRACTION * len(messages)) else None


def gap_questions(text: str, place: int) -> Iterator[DraftedAsk]:
    """Yield an ask with `after` 0 for each value that a statement of a message holds; questions hold none."""
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
            question = _question(sentence, match.start(), match.end())
            own = frame - frozenset(terms(match[0]))
            yield DraftedAsk(question, match[0], PROPER, place, 0, normalize(match[0]), own)
        for value in values:
            raw = sentence[value.start : value.stop]
            if value.kind not in PRIVATE and _is_value(raw, value.kind):
                question = _question(sentence, value.start, value.stop)
                yield DraftedAsk(question, raw, value.kind, place, 0, value.norm, frame)


def _is_value(raw: str, kind: str) -> bool:
    """Return whether a typed value is more than a word.

    One or two digits occur everywhere, and capitals or hyphens are often emphasis.
    """
    if len(raw) < LEAST_CHARS and _HAN.search(raw) is None:
        return False
    if kind == "identifier":
        return _IN_IDENTIFIERS.search(raw) is not None
    return kind != "name" or (raw[:1].isalnum() and "." not in raw)


def _is_prose(sentence: str) -> bool:
    """Return whether a sentence is made of words, as code, logs and tables are not."""
    if _HAN.search(sentence):
        return True
    words = [re.sub("['’-]", "", word.strip(_MARKS)) for word in sentence.split()]
    return sum(word.isalpha() for word in words) >= PROSE_WORDS * len(words)


def _question(sentence: str, start: int, stop: int) -> str:
    gapped = " ".join(f"{sentence[:start]}{GAP}{sentence[stop:]}".split())
    if _HAN.search(gapped):
        return f"前面说过：“{gapped}”。空格处是什么？"
    return f'Earlier it was said: "{gapped}" What stands in the gap?'
