# ruff: noqa: E501  -- a pattern reads better in one line than wrapped
"""Facts of a person: named ones (home, birthday, kin) and whatever scores as durable.

A named fact ("my daughter is called Mia") has a slot and a value, and is strict. Any other sentence whose cue score
reaches `MIN_SCORE` is a scored fact: its slot is the theme of its rarest word, of which many can hold. What is
supposed, denied or meant in irony is left out, as are requests and small talk (`chatter`); questions lose by their score.

Source: the measured cue score (`scoring`); the state design (within one user's own scope a cue-scored fact suffices).
"""

from __future__ import annotations

import re

from ctxsteward.summarizers.values import chinese_number
from ctxsteward.summarizers.words import STOP, stem

from ..observation import Observation
from .attributes_en import ATTRIBUTES as ENGLISH
from .attributes_zh import ATTRIBUTES as CHINESE
from .chatter import has_detail, is_errand, is_small_talk
from .claims import claim, in_one_line
from .guards import doubt
from .hearing import Conversation, Sentence
from .locality import is_local
from .matching import Match, matches
from .scoring import cue_score, share_of
from .slots import Topic, value_for
from .substance import is_vague
from .topics import ONE
from .wordlists import listed

EXTRACTOR = "facts/3"
MIN_SCORE = 2.1
MIN_TASK_SCORE = 2.6
"""Inside a task most sentences are of the task."""
NAMED_SCORE = 0.9
_REQUEST = re.compile(
    r"\b(?:want|need|like to|like you|please|hoping|wondering|looking|trying|let's|i'll|could|can|would|should|proceed|cancel|refund|book|booked|booking|upgrade|"
    r"reservations?|flights?|orders?|tickets?|baggage|bags?|suitcases?|insurance|certificates?|cards?|policy|policies|payment|id|issue|error|file|test)\b"
    r"|请|想|要|需要|希望|帮|麻烦|订单|航班|退款|取消|预订|行李|支付|报错"
)
"""Words of requests, and of what tasks are about."""
_ADDRESSED = re.compile(
    r"^(?:(?:yes|ok|okay|sure|hi|hello|hey|and|so|then|also|now)[,.!]? )*(?:please|can you|could you|would you|will you|help me|let me know|tell me|show me|give me|i(?:'d| would) like (?:you|to (?:know|ask|see|hear|speak|talk))|i need (?:you|help|some help|assistance)|i want you|(?:transfer|connect) me)\b"
    r"|\b(?:please|(?:transfer|connect) me)\b|^(?:请|麻烦|拜托|帮我|给我|能不能|可以帮|告诉我)|转人工"
)
"""Said to whoever serves: a request, in whatever session."""
_PERSONAL = listed("birthday birth_year age home home_address phone email marital_status children name kin")
_FIRST = listed("i i'm i've i'd i'll my we we're we've our")
_THEME = re.compile(r"[a-z][a-z'-]{2,}")
_CHINESE_THEME = re.compile(r"[\u3400-\u9fff]{2,}")
_CHINESE_COMMON = re.compile(r"[我你他她的了在是有和就都也很这那个们吗呢吧还要会去来说到上下]+")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = re.compile(r"\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)")
_DAY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\b(?!\d)")
_CHINESE_DATE = re.compile(r"([\d一二三四五六七八九十]{1,3})\s*月\s*([\d一二三四五六七八九十]{1,3})")
_TIMES = listed(
    """
    yesterday today tonight tomorrow monday tuesday wednesday thursday friday saturday sunday january february
    march april june july august september october november december weekend originally recently finally
    actually definitely really absolutely amazing awesome
    """
)
_NO_THEME = STOP | _TIMES
_KIN = {
    "mom": "mother", "mum": "mother", "dad": "father", "kid": "child", "baby": "child", "grandma": "grandmother", "grandpa": "grandfather",
    "puppy": "dog", "kitten": "cat", "妻子": "wife", "老婆": "wife", "太太": "wife", "爱人": "spouse", "丈夫": "husband", "老公": "husband",
    "儿子": "son", "女儿": "daughter", "闺女": "daughter", "孩子": "child", "宝宝": "child", "妈妈": "mother", "母亲": "mother", "妈": "mother",
    "爸爸": "father", "父亲": "father", "爸": "father", "狗": "dog", "小狗": "dog", "猫": "cat", "小猫": "cat", "姐姐": "sister", "妹妹": "sister",
    "哥哥": "brother", "弟弟": "brother", "姐": "sister", "妹": "sister", "哥": "brother", "弟": "brother", "公司": "company", "老板": "boss",
}  # fmt: skip
"""One name for a relation."""


def facts(conversation: Conversation) -> list[Observation]:
    """The facts of a transcript."""
    found = (_fact(sentence, conversation) for sentence in conversation.sentences)
    return [observation for observation in found if observation is not None]


def _fact(sentence: Sentence, conversation: Conversation) -> Observation | None:
    if not sentence.is_plain:
        return None
    named = named_fact(sentence)
    score = cue_score(sentence)
    if named is None and score < MIN_SCORE:
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
        extractor=EXTRACTOR,
    )


def _is_talk(sentence: Sentence, conversation: Conversation) -> bool:
    """Whether it only keeps the talk going: small talk, an errand of the task, a request."""
    if conversation.is_task and is_errand(sentence):
        return True
    if not conversation.between_people and _ADDRESSED.search(sentence.low):
        return True
    return is_small_talk(sentence) or is_vague(sentence.heard)


def named_fact(sentence: Sentence) -> Topic | None:
    """The named fact that a sentence states of its speaker."""
    if sentence.words.isdisjoint(_FIRST) and not (
        sentence.has_chinese and ("我" in sentence.low or "咱" in sentence.low)
    ):
        return None
    for match in matches(sentence, ENGLISH, CHINESE):
        if doubt(sentence, match.found.start()) is None and (topic := _named(match, sentence)) is not None:
            return topic
    return None


def _named(match: Match, sentence: Sentence) -> Topic | None:
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
    return Topic(
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
    """Whether something said inside a task is of the person's life: first person, strongly cued, no request of the task."""
    if score < MIN_TASK_SCORE or (sentence.words.isdisjoint(_FIRST) and "我" not in sentence.low):
        return False
    return not _REQUEST.search(sentence.low) and not is_local(sentence, strictly=False)


def _theme(sentence: Sentence) -> Topic:
    """What it is about: its longest word that is no everyday one, the first of several."""
    words = [word for word in _THEME.findall(sentence.low) if word not in _NO_THEME]
    if words:
        theme = stem(max(words, key=len))
    else:
        runs = [
            run for part in _CHINESE_THEME.findall(sentence.low) for run in _CHINESE_COMMON.split(part) if len(run) > 1
        ]
        theme = max(runs, key=len)[:8] if runs else "other"
    return Topic(attribute=f"about:{theme}", is_fact=True, is_personal=True)
