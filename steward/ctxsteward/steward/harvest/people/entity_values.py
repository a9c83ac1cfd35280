"""What a sentence says of a thing: which thing, and its value. "The desk closes at 19:30, not 18:00": desk, 19:30.

The thing is no person and nothing of the talk ("it", "this one", 我的). A statement is general (`is_general`) when it
holds for everybody who asks, by its verb ("closes", "takes", 关门) or its noun ("deadline", 期限), and is not about
one's own case ("the flight leaves at 8").

>>> entity_value_in("Actually, refunds take 5 days, not 3.")
EntityValue(name='refund', value='5 days', is_general=True)
>>> entity_value_in("更正：退货期限是14天，不是30天")
EntityValue(name='退货期限', value='14天', is_general=True)
>>> entity_value_in("No, it's Thursday, not Tuesday.")
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxsteward.language import NUMBER_WORDS, STOP, lists, stem

MAX_VALUE_WORDS = 6


class EntityValue(NamedTuple):
    """A thing and what is right of it."""

    name: str
    value: str
    is_general: bool


_LISTS = lists("entities")
_HABIT = re.compile("|".join(_LISTS.words("verbs")))
_OUT = _LISTS.pattern("out", re.IGNORECASE)
_NOT = re.compile(r"(?:,? (?:and )?not| instead of| rather than|, never) .*$", re.IGNORECASE)
_CLAUSE = _LISTS.pattern("clause")
_PERSON = frozenset(_LISTS.words("person"))
_CASE = frozenset(_LISTS.words("case"))
_STANDING = frozenset(_LISTS.words("standing"))
_OUT_ZH = _LISTS.pattern("out_zh")
_NOT_ZH = re.compile(r"[，,]?(?:而)?(?:不是|并非|不叫|不在|而非).*$")
_NUMBER_ZH = r"[\d零一二两三四五六七八九十百千万]+"
_CLAUSE_ZH = _LISTS.pattern("clause_zh")
_PERSON_ZH = _LISTS.pattern("person_zh")
_HABIT_ZH = frozenset(_LISTS.words("habit_zh"))
_STANDING_ZH = _LISTS.pattern("standing_zh")
_TELLING = _LISTS.pattern("telling")
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
