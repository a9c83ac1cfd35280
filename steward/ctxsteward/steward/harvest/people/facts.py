"""Facts of a person: named ones (home, birthday, kin) and whatever is worth keeping of what they say of themselves.

A named fact ("my daughter is called Mia") has a slot and a value, and is strict. Any other sentence is weighed
(`worth`): from `SURE` on it is a scored fact, from `POSSIBLE` on a broad one, which people may be shown and prompts
are not. Its slot is the theme of its longest word, of which many can hold. What is supposed, denied or meant in irony
is left out, as are questions and what is said to an assistant to get something done. Inside a task only what is of
the speaker's life is kept.

A fact stands alone. One that begins with "it" or "they", or says "he" of nobody it names, is kept with the sentence
before it where that names somebody, and not at all otherwise. What asks or agrees around a statement is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from ctxsteward.language import STOP, chinese_number, lists, stem

from ...observations import Observation
from .claims import MAX_TEXT_CHARS, claim, in_one_line
from .cue_table import CueMatch, CueTable, matches
from .qualifiers import doubt, is_local
from .slots import ONE, ClaimTopic, value_for
from .utterances import HeardConversation, Sentence, listed, words_of
from .worth import POSSIBLE, SURE, is_chinese_errand, names_something, needs_another, stated, states_nothing, worth

ENGLISH = CueTable(lists("attributes").rows("english"))
CHINESE = CueTable(lists("attributes").rows("chinese"), chinese=True)
FACTS_EXTRACTOR = "facts/5"
NAMED_SCORE = 0.9
_LISTS = lists("facts")
_REQUEST = _LISTS.pattern("request")
"""Words of requests, and of what tasks are about."""
_ADDRESSED = _LISTS.pattern("addressed")
"""Said to an assistant or a clerk: a request, in every kind of session."""
_PERSONAL = listed("birthday birth_year age home home_address phone email marital_status children name kin")
_FIRST = listed("i i'm i've i'd i'll my we we're we've our")
MAX_NAME_ROOM = 80
_QUOTED = "_" * 8
"""Words of somebody else, as they are heard."""
_THEME = re.compile(r"[a-z][a-z'-]{2,}")
_CHINESE_THEME = re.compile(r"[\u3400-\u9fff]{2,}")
_CHINESE_COMMON = re.compile(r"[我你他她的了在是有和就都也很这那个们吗呢吧还要会去来说到上下]+")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = re.compile(r"\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)")
_DAY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\b(?!\d)")
_CHINESE_DATE = re.compile(r"([\d一二三四五六七八九十]{1,3})\s*月\s*([\d一二三四五六七八九十]{1,3})")
_NO_THEME = STOP | frozenset(_LISTS.words("times"))
_KIN = {word: name for name, *words in _LISTS.classes("kin") for word in words}
"""One name for a relation."""


def facts(conversation: HeardConversation) -> list[Observation]:
    """The facts of a transcript."""
    found: list[Observation] = []
    for one in _facts(conversation):
        if found and _holds(one, found[-1]):
            found.pop()
        found.append(one)
    return found


def _holds(one: Observation, before: Observation) -> bool:
    """Whether a fact holds the sentence of the one before it, which is none beside it then."""
    mine, other = one.places[0], before.places[0]
    return before.strength != "strict" and mine.ref == other.ref and mine.start <= other.start < mine.stop


def _facts(conversation: HeardConversation) -> Iterator[Observation]:
    before: Sentence | None = None
    for sentence in conversation.sentences:
        if sentence.is_plain:
            found = _named_in(sentence) or _weighed(sentence, before, conversation)
            if found is not None and doubt(_stated(sentence), 0) in (None, "past"):
                yield found
        before = sentence


def _named_in(sentence: Sentence) -> Observation | None:
    topic = named_fact(sentence)
    part = sentence if topic is None else _stated(sentence)
    line = None if topic is None else in_one_line(part)
    if topic is None or line is None:
        return None
    return claim(
        part, kind="fact", text=line, topic=topic, strength="strict",
        score=NAMED_SCORE, reach="user", extractor=FACTS_EXTRACTOR,
    )  # fmt: skip


def _weighed(sentence: Sentence, before: Sentence | None, conversation: HeardConversation) -> Observation | None:
    """The fact that a sentence is by its worth."""
    if states_nothing(sentence):
        return None
    if not conversation.between_people and _ADDRESSED.search(sentence.low):
        return None
    part = _stated(sentence)
    if part.is_question or (part is not sentence and states_nothing(part)):
        return None
    score = worth(part, between_people=conversation.between_people)
    if score < (SURE if conversation.between_people else POSSIBLE):
        return None
    if needs_another(part):
        if (joined := _joined(part, before)) is None:
            return None
        part = joined
    if conversation.is_task and not _is_of_life(part, score):
        return None
    line = None if _QUOTED in part.heard else in_one_line(part)
    if line is None:
        return None
    return claim(
        part, kind="fact", text=line, topic=_theme(part), strength="scored" if score >= SURE else "broad",
        score=1 / (1 + math.exp(-score)), reach="user", extractor=FACTS_EXTRACTOR,
    )  # fmt: skip


def _is_of_life(sentence: Sentence, score: float) -> bool:
    """Whether something said inside a task is of the speaker's life: surely a fact, first person, no request."""
    if score < SURE or (sentence.words.isdisjoint(_FIRST) and "我" not in sentence.low):
        return False
    if sentence.has_chinese and is_chinese_errand(sentence.low):
        return False
    return not _REQUEST.search(sentence.low) and not is_local(sentence, strictly=False)


def _stated(sentence: Sentence) -> Sentence:
    """The part of it that states something: no question, if one stands behind it."""
    part = _part(sentence, *stated(sentence.text))
    return part if part is sentence else part._replace(is_question=False)


def _part(sentence: Sentence, start: int, stop: int) -> Sentence:
    """The sentence from one character to another."""
    text = sentence.text
    if (start, stop) == (0, len(text)):
        return sentence
    low = sentence.low[start:stop]
    return sentence._replace(
        text=text[start:stop],
        heard=sentence.heard[start:stop],
        low=low,
        words=words_of(low),
        first_byte=sentence.first_byte + len(text[:start].encode()),
    )


def _joined(sentence: Sentence, before: Sentence | None) -> Sentence | None:
    """The sentence with the one before it, which says of whom it speaks; None where none before it states that."""
    if before is None or before.said is not sentence.said or before.is_question or not before.is_plain:
        return None
    if needs_another(before) or not names_something(before):
        return None
    if doubt(before, 0) not in (None, "past") or _ADDRESSED.search(before.low):
        return None
    text = sentence.said.text.encode()[before.first_byte : sentence.first_byte].decode() + sentence.text
    gap = text[len(before.text) : len(text) - len(sentence.text)]
    if len(text) > MAX_TEXT_CHARS - MAX_NAME_ROOM or gap.strip() or "\n" in gap:
        return None
    return sentence._replace(
        text=text, heard=before.heard + gap + sentence.heard, low=before.low + gap + sentence.low,
        words=before.words | sentence.words, first_byte=before.first_byte,
    )  # fmt: skip


def named_fact(sentence: Sentence) -> ClaimTopic | None:
    """The named fact that a sentence states of its speaker."""
    if sentence.words.isdisjoint(_FIRST) and not (
        sentence.has_chinese and ("我" in sentence.low or "咱" in sentence.low)
    ):
        return None
    for match in matches(sentence, ENGLISH, CHINESE):
        if doubt(sentence, match.found.start()) is None and (topic := _named(match, sentence)) is not None:
            return topic
    return None


def _named(match: CueMatch, sentence: Sentence) -> ClaimTopic | None:
    value = match.text_of("v", sentence.text) or match.text_of("w", sentence.text)
    if value is None:
        return None
    attribute = match.label
    if (
        attribute in ("name", "kin", "employer")
        and value.isascii()
        and value.islower()
        and sentence.text != sentence.low
    ):
        return None
    if (
        attribute in ("home", "origin")
        and value.isascii()
        and not any(char.isupper() for char in value)
        and sentence.text != sentence.low
    ):
        return None
    if attribute == "kin":
        kind = match.text_of("t", sentence.low) or "kin"
        attribute = _KIN.get(kind, kind)
    elif attribute == "birthday":
        value = _birthday(value)
    return ClaimTopic(
        attribute=attribute,
        cardinality="one" if attribute in ONE else "many",
        value=value_for(attribute, value),
        polarity="positive",
        is_fact=True,
        is_lasting=True,
        is_personal=match.label in _PERSONAL,
    )


def _birthday(text: str) -> str:
    """``3rd of May 1988``, ``May 3`` and ``5月3日`` as ``05-03``; a month alone as ``05``."""
    low = text.lower()
    if (chinese := _CHINESE_DATE.search(low)) is not None:
        return f"{_number(chinese[1]):02d}-{_number(chinese[2]):02d}"
    name, day = _MONTH.search(low), _DAY.search(low)
    month = _MONTHS.index(name[1]) + 1 if name else 0
    return (f"{month:02d}-{int(day[1]):02d}" if day else f"{month:02d}") if month else low


def _number(numeral: str) -> int:
    return int(numeral) if numeral.isdecimal() else int(chinese_number(numeral))


def _theme(sentence: Sentence) -> ClaimTopic:
    """What it is about: its longest word that is no everyday one, the first of several."""
    words = [word for word in _THEME.findall(sentence.low) if word not in _NO_THEME]
    if words:
        theme = stem(max(words, key=len))
    else:
        runs = [
            run for part in _CHINESE_THEME.findall(sentence.low) for run in _CHINESE_COMMON.split(part) if len(run) > 1
        ]
        theme = max(runs, key=len)[:8] if runs else "other"
    return ClaimTopic(attribute=f"about:{theme}", is_fact=True, is_personal=True)
