"""Facts, wishes and decisions of a person: what is worth keeping of what they say of themselves.

A named fact (home, birthday, kin: "my daughter is called Mia") has a slot and a value, and is strict. Any other
sentence is weighed (`worth`): from `SURE` on it is a scored fact, from `POSSIBLE` on a broad one, which people may be
shown and prompts are not. Its slot is the theme of its longest word, of which many can hold. What is supposed, denied
or meant in irony is left out, as are questions and what is said to an assistant to get something done. Inside a task
only what is of the speaker's life is kept.

A fact stands alone. One that begins with "it" or "they", or says "he" of nobody it names, is kept with the sentence
before it where that names somebody, and not at all otherwise. What asks or agrees around a statement is left out.

A standing wish ("from now on", "never", "call me", 以后都) is strict and holds for the speaker everywhere; one that is
about the form of answers alone ("never use emojis") may hold for everybody, where enough others say the same. A plain
preference is strict too, but inside a task it is taken as meant for that task. A liking or a request is broad: it needs
company. So does a complaint ("stop asking"), which is about what was just done, but for one about form. What is asked,
supposed, reported, denied or meant in irony gives nothing strict, and mostly nothing at all.

An outright decision ("we decided", 敲定, "let's go with B") is strict. It is for its session, unless it is the
project's or the person's own. Questions, what is still open, and what others decided are none.

Source: the state design (gates by kind and scope); the measured cue lists of the layered-envelope design.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from ctxsteward.language.values import chinese_number
from ctxsteward.language.words import STOP, lists, stem

from ...observations.observation import Observation, Reach, Strength
from .claims import (
    FORM,
    MAX_TEXT_CHARS,
    ONE,
    WEAKENS,
    ClaimTopic,
    claim,
    doubt,
    in_one_line,
    is_form_alone,
    is_local,
    is_of_project,
    topic_of,
    value_for,
)
from .utterances import CueMatch, CueTable, Sentence, listed, matches, words_of
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


def facts(sentences: Sequence[Sentence]) -> list[Observation]:
    """The facts of a transcript."""
    found: list[Observation] = []
    for one in _facts(sentences):
        if found and _holds(one, found[-1]):
            found.pop()
        found.append(one)
    return found


def _holds(one: Observation, before: Observation) -> bool:
    """Whether a fact holds the sentence of the one before it, which is none beside it then."""
    mine, other = one.places[0], before.places[0]
    return before.strength != "strict" and mine.ref == other.ref and mine.start <= other.start < mine.stop


def _facts(sentences: Sequence[Sentence]) -> Iterator[Observation]:
    before: Sentence | None = None
    for sentence in sentences:
        if sentence.is_plain:
            found = _named_in(sentence) or _weighed(sentence, before)
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
        part,
        kind="fact",
        text=line,
        topic=topic,
        strength="strict",
        score=NAMED_SCORE,
        reach="user",
        extractor=FACTS_EXTRACTOR,
    )


def _weighed(sentence: Sentence, before: Sentence | None) -> Observation | None:
    """The fact that a sentence is by its worth."""
    if states_nothing(sentence):
        return None
    if not sentence.talk.is_between_people and _ADDRESSED.search(sentence.low):
        return None
    part = _stated(sentence)
    if part.is_question or (part is not sentence and states_nothing(part)):
        return None
    score = worth(part, between_people=sentence.talk.is_between_people)
    if score < (SURE if sentence.talk.is_between_people else POSSIBLE):
        return None
    if needs_another(part):
        if (joined := _joined(part, before)) is None:
            return None
        part = joined
    if sentence.is_task and not _is_of_life(part, score):
        return None
    line = None if _QUOTED in part.heard else in_one_line(part)
    if line is None:
        return None
    return claim(
        part,
        kind="fact",
        text=line,
        topic=_theme(part),
        strength="scored" if score >= SURE else "broad",
        score=1 / (1 + math.exp(-score)),
        reach="user",
        extractor=FACTS_EXTRACTOR,
    )


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
        text=text,
        heard=before.heard + gap + sentence.heard,
        low=before.low + gap + sentence.low,
        words=before.words | sentence.words,
        first_byte=before.first_byte,
    )


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


ENGLISH_WISHES = CueTable(lists("preferences").rows("english"))
CHINESE_WISHES = CueTable(lists("preferences").rows("chinese"), chinese=True)
DECISIONS_EN = CueTable(lists("decisions").rows("english"))
DECISIONS_ZH = CueTable(lists("decisions").rows("chinese"), chinese=True)
PREFERENCES_EXTRACTOR = "preferences/5"
MAX_CHARS = 400
"""A longer sentence is not searched for wishes."""
_JOINED = re.compile(r"(?:and|so|but|because|to|then|also)\b")
_TOLD = re.compile(r"(?:\w+,? )?(?:they|it|he|she|we|we'll|those|these|this|that|the|people|who|i'll)\b")
"""A sentence about others: "they … and always remind me" wishes for nothing."""
_LIKING = re.compile(r"\b(?:like|love|enjoy|prefer|hate|dislike|favou?rite|rather)|喜欢|爱|讨厌|偏|宁")
"""What is asked for without a liking, and of no known topic, is wanted now."""
SCORES = {"standing": 0.95, "stated": 0.8, "weak": 0.4}


def preferences(sentences: Sequence[Sentence]) -> list[Observation]:
    """The wishes of a transcript."""
    found = []
    for sentence in sentences:
        if len(sentence.text) > MAX_CHARS:
            continue
        observation = _wish(sentence)
        if observation is not None:
            found.append(observation)
    return found


def _wish(sentence: Sentence) -> Observation | None:
    for match in matches(sentence, ENGLISH_WISHES, CHINESE_WISHES):
        observation = _read(match, sentence)
        if observation is not None:
            return observation
    return None


def _read(match: CueMatch, sentence: Sentence) -> Observation | None:
    reason = doubt(sentence, match.cue_start)
    label = "standing" if match.label == "complaint" else match.label
    if reason is not None and (reason not in WEAKENS or (label == "standing" and reason == "document")):
        return None
    if _JOINED.match(match.found.group()) and _TOLD.match(sentence.low):
        return None
    topic = topic_of(match, sentence)
    is_weak = label == "weak" or (match.label == "complaint" and topic.attribute not in FORM)
    strength: Strength = "broad" if reason or is_weak else "strict"
    if topic.attribute.startswith("likes"):
        topic = named_fact(sentence) or topic
    text = in_one_line(sentence, match.found.start(), match.found.end())
    if text is None:
        return None
    return claim(
        sentence,
        kind="fact" if topic.is_fact else "preference",
        text=text,
        topic=topic,
        strength=strength,
        score=SCORES["weak" if strength == "broad" else label],
        reach=_reach(label, topic, sentence, strength),
        extractor=PREFERENCES_EXTRACTOR,
    )


def _reach(label: str, topic: ClaimTopic, sentence: Sentence, strength: Strength) -> Reach:
    if topic.is_fact or topic.is_lasting:
        return "user"
    if strength == "broad" and topic.attribute.startswith("likes") and not _LIKING.search(sentence.low):
        return "session"
    if sentence.talk.project and is_of_project(sentence):
        return "project"
    if is_local(sentence, strictly=label == "standing") or (label != "standing" and sentence.is_task):
        return "session"
    is_told = strength == "strict" and topic.modality in ("must", "must_not")
    return "shared" if is_told and is_form_alone(topic, sentence) else "user"


DECISIONS_EXTRACTOR = "decisions/1"
DECISION_MAX_CHARS = 400
DECISION_SCORES: dict[Strength, float] = {"strict": 0.85, "broad": 0.4}
_OPEN = lists("decisions").pattern("open")
_ABOUT = re.compile(r"[a-z][a-z'-]{2,}")
_CHINESE_ABOUT = re.compile(r"[\u3400-\u9fffA-Za-z0-9]{2,8}")
_OWN = re.compile(
    r"\b(?:i|i've|i have)(?: \w+)? (?:decided|made up my mind|chosen|opted)\b|我(?!们)[^，,。]{0,4}(?:决定|想好)"
)


def decisions(sentences: Sequence[Sentence]) -> list[Observation]:
    """The decisions of a transcript."""
    found = (_decision(sentence) for sentence in sentences)
    return [observation for observation in found if observation is not None]


def _decision(sentence: Sentence) -> Observation | None:
    if len(sentence.text) > DECISION_MAX_CHARS or sentence.is_question:
        return None
    match = next(iter(matches(sentence, DECISIONS_EN, DECISIONS_ZH)), None)
    if match is None or _OPEN.search(sentence.low) or doubt(sentence, match.found.start()) is not None:
        return None
    text = in_one_line(sentence, match.found.start(), match.found.end())
    if text is None:
        return None
    strength: Strength = "strict" if match.label == "strict" else "broad"
    return claim(
        sentence,
        kind="decision",
        text=text,
        topic=ClaimTopic(attribute=f"decision:{_about(match, sentence)}", polarity="positive"),
        strength=strength,
        score=DECISION_SCORES[strength],
        reach=_decision_reach(sentence),
        extractor=DECISIONS_EXTRACTOR,
    )


def _about(match: CueMatch, sentence: Sentence) -> str:
    region = sentence.low[match.start_of("o") :]
    words = [word for word in _ABOUT.findall(region) if word not in STOP]
    if words:
        return stem(words[0])
    found = _CHINESE_ABOUT.search(region)
    return found.group() if found else "other"


def _decision_reach(sentence: Sentence) -> Reach:
    if sentence.is_task or is_local(sentence, strictly=False):
        return "session"
    if sentence.talk.project:
        return "project"
    return "user" if _OWN.search(sentence.low) else "session"
