# ruff: noqa: E501  -- a pattern reads better in one line than wrapped
"""The cue score: how likely a sentence is a durable fact of its speaker. Hand-set weights; nothing is trained.

    .35 first person + .9 event or time + .45 liking + .8 "my / our <relation, job, home>" + .25 · min(names, 4)
    + .4 digit + .5 · ln(1 + words) + .25 · rarity / 10 + .4 answers a question − .4 acknowledgement − .3 ends in "?"
    − 2 nothing but a question

`rarity` is `RARITY` for each content word: the same sentence has the same score in every transcript. A Chinese
sentence counts `CHARS_PER_WORD` characters as a word. Linear in the sentence.

Source: weights measured on dated conversations (durable turns found with an AUC of .85; the longest turn .78).

Facts of a person: named ones (home, birthday, kin) and whatever scores as durable.

A named fact ("my daughter is called Mia") has a slot and a value, and is strict. Any other sentence whose cue score
reaches `MIN_SCORE` is a scored fact: its slot is the theme of its rarest word, of which many can hold. What is
supposed, denied or meant in irony is left out, as are requests and small talk (`chatter`); questions lose by their score.

Source: the measured cue score (`scoring`); the state design (within one user's own scope a cue-scored fact suffices).
"""

from __future__ import annotations

import math
import re

from ctxsteward.summarizers.language import STOP, stem
from ctxsteward.summarizers.values import chinese_number

from ...observation import Observation
from .claims import claim, in_one_line
from .cue_table import CueMatch, matches
from .cues import ATTRIBUTES_EN as ENGLISH
from .cues import ATTRIBUTES_ZH as CHINESE
from .informativeness import has_detail, is_errand, is_small_talk, is_vague
from .qualifiers import doubt, is_local
from .slots import ONE, ClaimTopic, value_for
from .utterances import Conversation, Sentence, listed

RARITY = 5.0
"""ln of one in 150: a content word of everyday talk."""
CHARS_PER_WORD = 1.7
LIKING = 0.45
FLOOR, CEILING = 1.0, 5.0
"""Scores are told on 0..1 between these."""


_FIRST_PERSON = listed("i i'm i've i'd i'll my me mine we we're we've we'd we'll our us ours myself")
_EVENT = listed(
    "yesterday today tonight tomorrow ago since recently lately weekend monday tuesday wednesday thursday friday saturday sunday "
    "january february march april june july august september october november december "
    "went moved started joined bought signed planning got won visited attended graduated born adopted finished lost quit began "
    "sold married divorced retired opened launched broke hired fired met flew passed enrolled registered volunteered built made "
    "painted wrote published performed ran hiked camped traveled travelled celebrated received booked planted learned"
)
_PERIOD = re.compile(
    r"\b(?:last|next|this|past|every) (?:week|weekend|month|year|summer|winter|spring|fall|autumn|night|mon|tues|wednes|thurs|fri|satur|sun)|\bfor (?:\w+ ){0,2}(?:years|months|weeks|decades)\b|\byears? old\b|\bin may\b"
)
_LIKING = listed(
    "love loves enjoy enjoys prefer hate favorite favourite passion passionate dream keen fond allergic hobby hobbies fan into interested inspired inspires"
)
_RELATION = listed(
    "wife husband son daughter kid kids child children mom mum dad mother father parents family sister brother friend friends partner girlfriend boyfriend boss team coach job work "
    "business company school home house apartment dog dogs cat cats pet pets puppy car grandma grandpa grandmother grandfather fiancé fiancée aunt uncle cousin neighbor neighbour hometown "
    "country birthday wedding class band studio store shop bakery art painting career landlord office garden degree thesis"
)
_OWNED = re.compile(r"\b(?:my|our) (?:[\w'-]+ ){0,2}?([a-zé]+)")
_ACKNOWLEDGED = re.compile(
    r"(?:wow|thanks|thank you|yeah|yep|yup|hey|hi|hello|cool|nice|great|awesome|that's|that is|congrats|congratulations|sounds|glad|oh|aw+|absolutely|definitely|totally|sure|no problem|"
    r"of course|good|ok|okay|bye|take care|you're|you are|you|your|well done|so|i know|i agree|i'm glad|can't wait|wishing|keep|let me know|it's|really|exactly|right|haha|hope|enjoy|have)\b"
)
_NAME = re.compile(r"(?<=[a-z,;:] )(?!I\b)[A-Z][a-z]+")
_DIGIT = re.compile(r"\d")
_CHINESE_ACKNOWLEDGED = re.compile(
    r"(?:哇|谢谢|感谢|好的|嗯|哈|嗨|你好|不客气|没问题|没事|当然|是的|对|好棒|太好|太棒|真棒|恭喜|祝|知道了|不错|听起来|很高兴|加油|保重|同意|真的|可以|行|好)"
)
_CHINESE_EVENT = re.compile(
    r"昨天|今天|明天|前天|后天|[上下本这]个?(?:周|月|星期|礼拜)|[去今明前]年|最近|刚(?:刚|才)?|(?<![一二三四五六七八九十\d])[一二三四五六七八九十\d]++月|(?<![一二三四五六七八九十两\d])[一二三四五六七八九十两\d]++(?:年|天|周|个月)[前后]|已经|春天|夏天|秋天|冬天|周末"
    r"|搬|买了|卖了|开始|参加|报名|毕业|出生|收养|领养|结婚|离婚|辞|入职|摔|坏了|赢|考上|完成|读完|拜访|旅行|生宝宝|怀孕|装修"
)
_CHINESE_LIKING = re.compile(r"喜欢|热爱|爱好|讨厌|偏好|迷上|梦想|感兴趣|最爱|过敏|习惯")
_CHINESE_RELATION = re.compile(
    r"(?:我|我们|咱)(?:的|家|们)?(?:老婆|妻子|太太|爱人|老公|丈夫|儿子|女儿|闺女|孩子|妈|爸|母亲|父亲|姐|妹|哥|弟|奶奶|爷爷|外婆|外公|朋友|老板|公司|团队|学校|工作|家|老家|房子|房东|狗|猫|车|生日|婚礼|同事|邻居|办公室|店|专业)"
    r"|和(?:老婆|丈夫|妻子|老公|女朋友|男朋友|孩子|朋友|家人)"
)
_CHINESE_NUMBER = re.compile(
    r"\d|(?<![一二三四五六七八九十百千两])[一二三四五六七八九十百千两]++(?:岁|年|个|只|月|号|次|公斤|公里|块|元|天|周|人|口)"
)
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
    if not words.isdisjoint(_FIRST_PERSON):
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
    """Whether something said inside a task is of the person's life: first person, strongly cued, no request of the task."""
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
