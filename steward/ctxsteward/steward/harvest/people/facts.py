"""Facts of a person: named ones (home, birthday, kin) and whatever scores as durable.

A named fact ("my daughter is called Mia") has a slot and a value, and is strict. Any other sentence whose cue score
reaches `MIN_SCORE` is a scored fact: its slot is the theme of its rarest word, of which many can hold. What is
supposed, denied or meant in irony is left out, as are requests and small talk (`informativeness`); questions lose by
their score.

The score is how likely a sentence is a durable fact of its speaker, by weights that were measured on dated
conversations (durable turns found with an AUC of .85; the longest turn: .78):

    .35 first person + .9 event or time + .45 liking + .8 "my / our <relation, job, home>" + .25 · min(names, 4)
    + .4 digit + .5 · ln(1 + words) + .25 · rarity / 10 + .4 answers a question − .4 acknowledgement − .3 ends in "?"
    − 2 nothing but a question

Said to an assistant, most sentences are of the moment. What lasts is taken up: the reply says its words again. So there
the score gets `ECHOED` times the share of its content words that the reply repeats. It loses `TURNED` where it speaks
to the assistant ("you") and where it points at what stands elsewhere ("it", "that"), and `IMPERSONAL` where nothing in
its message speaks of the speaker: a task that is handed over, a text that is pasted. Weights were chosen on the
development half of dated chats with notes that people wrote down; `docs/steward.md` has the figures.

`rarity` is `RARITY` for each content word: the same sentence has the same score in every transcript. A Chinese
sentence counts `CHARS_PER_WORD` characters as a word. Linear in the sentence.
"""

from __future__ import annotations

import math
import re

from ctxsteward.language import STOP, chinese_number, lists, stem

from ...observations import Observation
from .claims import claim, in_one_line
from .cue_table import CueMatch, CueTable, matches
from .informativeness import addresses, has_detail, is_errand, is_small_talk, is_vague, points_elsewhere
from .qualifiers import doubt, is_local
from .slots import ONE, ClaimTopic, value_for
from .utterances import FIRST_PERSON, HeardConversation, Sentence, listed

ENGLISH = CueTable(lists("attributes").rows("english"))
CHINESE = CueTable(lists("attributes").rows("chinese"), chinese=True)
RARITY = 5.0
"""ln of one in 150: a content word of everyday talk."""
CHARS_PER_WORD = 1.7
LIKING = 0.45
FLOOR, CEILING = 1.0, 5.0
"""`share_of` maps scores between these to 0..1."""


_LISTS = lists("facts")
_EVENT = frozenset(_LISTS.words("event"))
_PERIOD = _LISTS.pattern("period")
_LIKING = frozenset(_LISTS.words("liking"))
_RELATION = frozenset(_LISTS.words("relation"))
_OWNED = re.compile(r"\b(?:my|our) (?:[\w'-]+ ){0,2}?([a-zé]+)")
_ACKNOWLEDGED = _LISTS.pattern("acknowledged")
_NAME = re.compile(r"(?<=[a-z,;:] )(?!I\b)[A-Z][a-z]+")
_DIGIT = re.compile(r"\d")
_CHINESE_ACKNOWLEDGED = _LISTS.pattern("chinese_acknowledged")
_CHINESE_EVENT = _LISTS.pattern("chinese_event")
_CHINESE_LIKING = re.compile(r"喜欢|热爱|爱好|讨厌|偏好|迷上|梦想|感兴趣|最爱|过敏|习惯")
_CHINESE_RELATION = _LISTS.pattern("chinese_relation")
_CHINESE_NUMBER = _LISTS.pattern("chinese_number")
_CHINESE_CHAR = re.compile(r"[\u3400-\u9fff]")
_CHINESE_NAME = re.compile(
    r"叫(?!什么|我|你|他|她)[^，,。；;！!？?\s]{1,8}|《[^》]{1,20}》|在[\u3400-\u9fff]{2,4}(?=[，,。；;]|$)|老家在|来自"
)


def cue_score(sentence: Sentence) -> float:
    """The score of one sentence; about -1.5 to 6."""
    if not sentence.has_chinese:
        return _english(sentence)
    return _chinese(sentence)


def share_of(score: float) -> float:
    """The score on 0..1."""
    return min(1.0, max(0.0, (score - FLOOR) / (CEILING - FLOOR)))


def _english(sentence: Sentence) -> float:
    low, words = sentence.low, sentence.words
    content = len(words - STOP)
    score = 0.5 * math.log(1 + low.count(" ") + 1) + 0.25 * RARITY * content / 10
    if not words.isdisjoint(FIRST_PERSON):
        score += 0.35
    if not words.isdisjoint(_EVENT) or _PERIOD.search(low):
        score += 0.9
    if not words.isdisjoint(_LIKING) or "like to" in low or "always wanted" in low:
        score += LIKING
    if (
        ("my" in words or "our" in words)
        and not words.isdisjoint(_RELATION)
        and not _RELATION.isdisjoint(_OWNED.findall(low))
    ):
        score += 0.8
    score += 0.25 * min(4, len(_NAME.findall(sentence.heard)))
    if _DIGIT.search(low):
        score += 0.4
    return _turned(sentence, score, acknowledged=_ACKNOWLEDGED.match(low) is not None)


def _chinese(sentence: Sentence) -> float:
    low = sentence.low
    words = len(_CHINESE_CHAR.findall(low)) / CHARS_PER_WORD + len(sentence.words)
    score = 0.5 * math.log(1 + words) + 0.25 * RARITY * 0.6 * words / 10
    if "我" in low or "咱" in low:
        score += 0.35
    if _CHINESE_EVENT.search(low):
        score += 0.9
    if _CHINESE_LIKING.search(low):
        score += LIKING
    if _CHINESE_RELATION.search(low):
        score += 0.8
    score += 0.25 * min(4, len(_CHINESE_NAME.findall(low)))
    if _CHINESE_NUMBER.search(low):
        score += 0.4
    return _turned(sentence, score, acknowledged=_CHINESE_ACKNOWLEDGED.match(low) is not None)


def _turned(sentence: Sentence, score: float, *, acknowledged: bool) -> float:
    score += 0.4 if sentence.asked else 0.0
    score -= 0.4 if acknowledged else 0.0
    return score - 2.3 if sentence.is_question else score


FACTS_EXTRACTOR = "facts/4"
MIN_SCORE = 2.1
MIN_TALK_SCORE = 3.0
"""Of what an assistant has replied to, with what its reply says again."""
ECHOED, TURNED, IMPERSONAL = 1.5, 0.8, 1.0
MIN_TASK_SCORE = 2.6
"""Inside a task most sentences are of the task."""
NAMED_SCORE = 0.9
_REQUEST = _LISTS.pattern("request")
"""Words of requests, and of what tasks are about."""
_ADDRESSED = _LISTS.pattern("addressed")
"""Said to an assistant or a clerk: a request, in every kind of session."""
_PERSONAL = listed("birthday birth_year age home home_address phone email marital_status children name kin")
_FIRST = listed("i i'm i've i'd i'll my we we're we've our")
_THEME = re.compile(r"[a-z][a-z'-]{2,}")
_CHINESE_THEME = re.compile(r"[\u3400-\u9fff]{2,}")
_CHINESE_COMMON = re.compile(r"[我你他她的了在是有和就都也很这那个们吗呢吧还要会去来说到上下]+")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = re.compile(r"\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)")
_DAY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\b(?!\d)")
_CHINESE_DATE = re.compile(r"([\d一二三四五六七八九十]{1,3})\s*月\s*([\d一二三四五六七八九十]{1,3})")
_TIMES = frozenset(_LISTS.words("times"))
_NO_THEME = STOP | _TIMES
_KIN = {word: name for name, *words in _LISTS.classes("kin") for word in words}
"""One name for a relation."""


def facts(conversation: HeardConversation) -> list[Observation]:
    """The facts of a transcript."""
    found = (_fact(sentence, conversation) for sentence in conversation.sentences)
    return [observation for observation in found if observation is not None]


def _fact(sentence: Sentence, conversation: HeardConversation) -> Observation | None:
    if not sentence.is_plain:
        return None
    named = named_fact(sentence)
    score = cue_score(sentence)
    if named is None and not _lasts(sentence, score):
        return None
    if doubt(sentence, 0) not in (None, "past") or (named is None and _is_talk(sentence, conversation)):
        return None
    local = named is None and conversation.is_task and not _is_of_life(sentence, score)
    if local and not has_detail(sentence):
        return None
    text = in_one_line(sentence)
    if text is None:
        return None
    return claim(
        sentence,
        kind="fact",
        text=text,
        topic=named or _theme(sentence),
        strength="strict" if named else "scored",
        score=NAMED_SCORE if named else share_of(score),
        reach="session" if local else "user",
        extractor=FACTS_EXTRACTOR,
    )


def _lasts(sentence: Sentence, score: float) -> bool:
    """Whether its score is that of a fact, where an assistant replied together with what the reply says again."""
    if sentence.echoed is None:
        return score >= MIN_SCORE
    score += ECHOED * sentence.echoed - TURNED * (addresses(sentence) + points_elsewhere(sentence))
    return score - IMPERSONAL * (not sentence.of_speaker) >= MIN_TALK_SCORE


def _is_talk(sentence: Sentence, conversation: HeardConversation) -> bool:
    """Whether it only keeps the talk going: small talk, an errand of the task, a request."""
    if conversation.is_task and is_errand(sentence):
        return True
    if not conversation.between_people and _ADDRESSED.search(sentence.low):
        return True
    return is_small_talk(sentence) or is_vague(sentence.heard)


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


def _is_of_life(sentence: Sentence, score: float) -> bool:
    """Whether something said inside a task is of the speaker's life: first person, strong cues, no request."""
    if score < MIN_TASK_SCORE or (sentence.words.isdisjoint(_FIRST) and "我" not in sentence.low):
        return False
    return not _REQUEST.search(sentence.low) and not is_local(sentence, strictly=False)


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
