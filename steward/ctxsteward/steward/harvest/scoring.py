# ruff: noqa: E501  -- a pattern reads better in one line than wrapped
"""The cue score: how likely a sentence is a durable fact of its speaker. Hand-set weights; nothing is trained.

    .35 first person + .9 event or time + .45 liking + .8 "my / our <relation, job, home>" + .25 · min(names, 4)
    + .4 digit + .5 · ln(1 + words) + .25 · rarity / 10 + .4 answers a question − .4 acknowledgement − .3 ends in "?"
    − 2 nothing but a question

`rarity` is `RARITY` for each content word: the same sentence has the same score in every transcript. A Chinese
sentence counts `CHARS_PER_WORD` characters as a word. Linear in the sentence.

Source: weights measured on dated conversations (durable turns found with an AUC of .85; the longest turn .78).
"""

from __future__ import annotations

import math
import re

from ctxsteward.summarizers.words import STOP

from .hearing import Sentence
from .wordlists import listed

RARITY = 5.0
"""ln of one in 150: a content word of everyday talk."""
CHARS_PER_WORD = 1.7
LIKING = 0.45
FLOOR, CEILING = 1.0, 5.0
"""Scores are told on 0..1 between these."""


_FIRST = listed("i i'm i've i'd i'll my me mine we we're we've we'd we'll our us ours myself")
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
    if not words.isdisjoint(_FIRST):
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
