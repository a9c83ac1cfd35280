# ruff: noqa: E501  -- a pattern reads better in one line than wrapped
"""What a sentence says of a thing: which thing, and its value. "The desk closes at 19:30, not 18:00": desk, 19:30.

The thing is no person and nothing of the talk ("it", "this one", 我的). `is_general`: it is so for everybody who asks,
by its verb ("closes", "takes", 关门) or its noun ("deadline", 期限), and not of one's own case ("the flight leaves at 8").

>>> thing_in("Actually, refunds take 5 days, not 3.")
Thing(name='refund', value='5 days', is_general=True)
>>> thing_in("更正：退货期限是14天，不是30天")
Thing(name='退货期限', value='14天', is_general=True)
>>> thing_in("No, it's Thursday, not Tuesday.")
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxsteward.summarizers.language import NUMBER_WORDS, STOP, stem

from .utterances import listed

MAX_VALUE_WORDS = 6


class EntityValue(NamedTuple):
    """A thing and what is right of it."""

    name: str
    value: str
    is_general: bool


VERBS = "closes? opens? takes? costs? lasts? starts? begins? ends? runs? returns? ships? expires? includes? contains? covers? supports? uses? requires? needs? goes go allows? accepts? charges? comes? has have weighs? holds? applies apply renews? resets? shuts? serves? offers? sells? permits? delivers? arrives? departs? leaves? operates? earns? pays? gets? listens? points? belongs? meets? happens? equals? measures? counts? allots?"
_HABIT = re.compile(f"(?:{'|'.join(VERBS.split())})")
_OUT = re.compile(
    r"(?:(?:no|nope|wrong|incorrect|sorry|wait|actually|correction|note|fyi|well|but|and|hey|oh|hi|hello|just so you know|for the record|(?:please )?note(?: that)?"
    r"|(?:that's|that is|this is|it's|you're|you are|that was)(?: still)? (?:wrong|incorrect|not right|not correct|not true|mistaken|outdated|false)|you got (?:that|it|this) wrong|a (?:small |quick )?correction|i think|in fact|to be clear|to correct (?:you|that))[,.:;!—–-]* +)+",
    re.IGNORECASE,
)
_NOT = re.compile(r"(?:,? (?:and )?not| instead of| rather than|, never) .*$", re.IGNORECASE)
_CLAUSE = re.compile(
    r"(?P<d>the |our |my |your |its |their |an? )?(?P<s>[a-z][\w'/-]*(?: (?!(?:is|are|was|were|should|will|now|actually|only)\b)[\w'/-]+){0,4}?) (?:(?:now|actually|really|only|always|usually|normally|currently|will|should|can|must) )*"
    rf"(?P<k>is|are|was|were|be|{'|'.join(VERBS.split())})(?: (?:now|actually|only|always|set|listed|located|due|held|called|up|down|back|out))*"
    r" (?:(?:at|on|in|by|after|until|till|to|for|within|from|up to|about|around) )?(?P<v>[^,;!?]+(?:[,.:](?=\d)[^,;!?]+)*)"
)
_PERSON = listed(
    """
    i i'm i've i'd i'll me my mine we we're we've our us you you're he she they them him her his their it it's its that that's
    this these those one ones there there's who what which everyone everybody someone somebody people nobody anyone
    if when while because although though so
    """
)
_CASE = listed(
    "flight trip booking reservation order ticket bag suitcase payment appointment file draft paragraph train room seat card account invoice parcel package item meeting balance option passenger"
)
_STANDING = listed(
    """
    limit deadline window policy fee price rate hour hours warranty deposit discount threshold minimum maximum quota cap cost
    period term version port endpoint address number hotline url site capital default schedule allowance surcharge tax
    timeout currency format office store shop desk gym museum library plan tier guarantee shipping delivery
    """
)
_OUT_ZH = re.compile(
    r"(?:(?:不对|错了|不正确|有误|不是|其实|等等|更正|纠正|订正|说明|注意|补充|你?(?:说|写|记|弄|搞|理解)错了|这(?:个)?(?:不对|错了|有误)|我(?:说|写|记)错了)(?:一下|一点)?[，,：:。！!；;\s]*)+"
)
_NOT_ZH = re.compile(r"[，,]?(?:而)?(?:不是|并非|不叫|不在|而非).*$")
_NUMBER_ZH = r"[\d零一二两三四五六七八九十百千万]+"
_TIME_ZH = rf"(?:(?:每天|工作日|周末|周[一二三四五六日天]|星期[一二三四五六日天])?(?:早上|上午|中午|下午|傍晚|晚上|夜里|凌晨)?(?:{_NUMBER_ZH}点(?:半|一刻|{_NUMBER_ZH}分?)?|\d{{1,2}}[:：]\d{{2}}))"
_CLAUSE_ZH = re.compile(
    rf"(?P<s>[\u3400-\u9fffA-Za-z]{{2,10}}?)(?:现在|目前|应该|应当|其实|已经|都|也|一般|通常|只|才|就)*"
    rf"(?:(?:在|到|是)?(?P<t>{_TIME_ZH})(?:才|就|准时)?(?P<h>开门|关门|开放|开始|结束|营业|下班|上班|打烊|发车|出发|截止|关闭)"
    rf"|(?P<k>需要|改成了?|改为|变成了?|返回|支持|包括|包含|收取|只收|不超过|最多|最少|至少|延长到|截止到?|位于|免费送到|是|为|要|需|到|在|叫|花|收|含|满|用|有)(?P<v>[^，,。；;！!？?\s]{{1,16}}))"
)
_PERSON_ZH = re.compile(
    r"[我你您他她它咱]|这|那|谁|什么|哪|大家|如果|要是|时候|因为|所以|但是|不过|问题|意思|应该|应当|第[一二三四五六七八九十\d]|[是先]"
)
_HABIT_ZH = frozenset(
    ("需要", "要", "需", "返回", "支持", "包括", "包含", "收取", "只收", "花", "收", "含", "满", "不超过", "最多", "最少", "至少", "到", "用")
)  # fmt: skip
_STANDING_ZH = re.compile(
    r"(?:期限|期|上限|下限|额度|门槛|政策|规定|时间|运费|邮费|费用?|价格?|税率?|利率|电话|热线|地址|版本|端口|折扣|押金|定金|名额|比例|首都|日期|标准|周期|时限|有效期|质保|保修|保质期|网址|邮箱)$"
)
_TELLING = re.compile(
    r"\d|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:january|february|march|april|may|june|july|august|september|october|november|december|noon|midnight|"
    rf"{'|'.join(sorted(NUMBER_WORDS))})\b"
)
_COUNTED = re.compile(rf"^(?:{'|'.join(sorted(NUMBER_WORDS, key=len, reverse=True))})\b(?=[ %])", re.IGNORECASE)
_NUMERAL_ZH = re.compile(rf"{_NUMBER_ZH}|周[一二三四五六日天]|[早中下晚][上午]")
_NAME = re.compile(r"\b[A-Z][\w.+-]*")


def entity_value_in(text: str) -> EntityValue | None:
    """The thing that a sentence is about, as written; None where it is about a person, the talk, or nothing plain."""
    return _chinese(text) if re.search(r"[\u3400-\u9fff]", text) else _english(text)


def is_corrective(text: str) -> bool:
    """Whether it begins by saying that something was wrong: "No,", "Actually", 更正."""
    plain = text.lstrip(" \"'“")
    return _OUT.match(f"{plain} ".replace("’", "'")) is not None or _OUT_ZH.match(plain) is not None


def is_telling(right: str, wrong: str) -> bool:
    """Whether two sides are values of one sort, as written: both with a number or a date, or both names."""
    low, other = right.lower(), wrong.lower()
    if low.startswith("about "):
        return False
    if (_TELLING.search(low) and _TELLING.search(other)) or (_NUMERAL_ZH.search(right) and _NUMERAL_ZH.search(wrong)):
        return True
    return _NAME.search(right) is not None and _NAME.search(wrong) is not None


def _english(text: str) -> EntityValue | None:
    plain = " ".join(text.replace("’", "'").split()).strip(" .!\"'")
    lead = _OUT.match(plain)
    plain = _NOT.sub("", plain[lead.end() :] if lead else plain)
    found = _CLAUSE.match(plain.lower())
    if found is None:
        return None
    words = found["s"].split()
    if found["d"] in ("my ", "our ", "their ", "its ") or not _PERSON.isdisjoint(words):
        return None
    content = [word for word in words if word not in STOP]
    value = plain[found.start("v") : found.end("v")].strip(" .")
    if not content or not value or len(value.split()) > MAX_VALUE_WORDS:
        return None
    value = _COUNTED.sub(lambda word: str(NUMBER_WORDS[word[0].lower()]), value)
    name = stem(content[-1])
    is_case = found["d"] == "the " and (content[-1] in _CASE or name in _CASE)
    is_standing = content[-1] in _STANDING or name in _STANDING or _HABIT.fullmatch(found["k"]) is not None
    return EntityValue(name, value, is_standing and not is_case)


def _chinese(text: str) -> EntityValue | None:
    plain = text.strip(' 。.！!“”"')
    lead = _OUT_ZH.match(plain)
    plain = _NOT_ZH.sub("", plain[lead.end() :] if lead else plain)
    found = _CLAUSE_ZH.match(plain)
    if found is None or _PERSON_ZH.search(found["s"]) or found["s"].endswith(("的", "说", "了")):
        return None
    value = found["t"] or found["v"]
    is_standing = _STANDING_ZH.search(found["s"]) is not None
    return EntityValue(found["s"].lower(), value, is_standing or found["h"] is not None or found["k"] in _HABIT_ZH)
