"""Corrections: a person says that something is wrong, and what is right.

Corrections with two sides ("X, not Y", 不是Y是X, "I said X"), and "that's wrong" with the right value in the next
sentence, are strict; "actually" alone is broad. The slot is the subject of the sentence. A correction of the task at
hand ("the second ticket") or of the speaker is for the session; a correction about the world, without "I" and "it", may
be for everybody, and then needs many voices.

A sentence may give the value of a thing ("The desk closes at 19:30, not 18:00": desk, 19:30). The thing is not a
person and not part of the talk ("it", "this one", 我的). A statement is general (`is_general`) if its verb ("closes",
"takes", 关门) or its noun ("deadline", 期限) shows that it holds for everybody, and it is not about the speaker's case
("the flight leaves at 8").

>>> entity_value_in("Actually, refunds take 5 days, not 3.")
EntityValue(name='refund', value='5 days', is_general=True)
>>> entity_value_in("更正：退货期限是14天，不是30天")
EntityValue(name='退货期限', value='14天', is_general=True)
>>> entity_value_in("No, it's Thursday, not Tuesday.")

Only the person's words are cited, never the words that were corrected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ctxsteward.language.values import NUMBER_WORDS
from ctxsteward.language.words import STOP, lists, stem

from ...observations.observation import Observation, Reach, Strength
from .claims import ClaimTopic, claim, doubt, in_one_line, is_local, is_of_project, value_of
from .utterances import CueMatch, CueTable, Sentence, matches

MAX_VALUE_WORDS = 6


class EntityValue(NamedTuple):
    """A thing and its right value."""

    name: str
    value: str
    is_general: bool


_ENTITIES = lists("entities")
_HABIT = re.compile("|".join(_ENTITIES.words("verbs")))
_OUT = _ENTITIES.pattern("out", re.IGNORECASE)
_NOT = re.compile(r"(?:,? (?:and )?not| instead of| rather than|, never) .*$", re.IGNORECASE)
_THING_CLAUSE = _ENTITIES.pattern("clause")
_PERSON = frozenset(_ENTITIES.words("person"))
_CASE_WORDS = frozenset(_ENTITIES.words("case"))
_STANDING = frozenset(_ENTITIES.words("standing"))
_OUT_ZH = _ENTITIES.pattern("out_zh")
_NOT_ZH = re.compile(r"[，,]?(?:而)?(?:不是|并非|不叫|不在|而非).*$")
_NUMBER_ZH = r"[\d零一二两三四五六七八九十百千万]+"
_CLAUSE_ZH = _ENTITIES.pattern("clause_zh")
_PERSON_ZH = _ENTITIES.pattern("person_zh")
_HABIT_ZH = frozenset(_ENTITIES.words("habit_zh"))
_STANDING_ZH = _ENTITIES.pattern("standing_zh")
_TELLING = _ENTITIES.pattern("telling")
_COUNTED = re.compile(rf"^(?:{'|'.join(sorted(NUMBER_WORDS, key=len, reverse=True))})\b(?=[ %])", re.IGNORECASE)
_NUMERAL_ZH = re.compile(rf"{_NUMBER_ZH}|周[一二三四五六日天]|[早中下晚][上午]")
_NAME = re.compile(r"\b[A-Z][\w.+-]*")


def entity_value_in(text: str) -> EntityValue | None:
    """Return the thing that a sentence is about and its value, or None if it is about a person or the talk."""
    return _chinese(text) if re.search(r"[\u3400-\u9fff]", text) else _english(text)


def is_corrective(text: str) -> bool:
    """Whether a text begins with words that say that something was wrong: "No,", "Actually", 更正."""
    plain = text.lstrip(" \"'“")
    return _OUT.match(f"{plain} ".replace("’", "'")) is not None or _OUT_ZH.match(plain) is not None


def are_of_one_sort(right: str, wrong: str) -> bool:
    """Whether two sides both have a number or date, or both a name in capitals, so that one can replace the other."""
    if right.lower().startswith("about "):
        return False
    return any(
        pattern.search(one) and pattern.search(other)
        for pattern, one, other in (
            (_TELLING, right.lower(), wrong.lower()),
            (_NUMERAL_ZH, right, wrong),
            (_NAME, right, wrong),
        )
    )


def _english(text: str) -> EntityValue | None:
    plain = " ".join(text.replace("’", "'").split()).strip(" .!\"'")
    lead = _OUT.match(plain)
    plain = _NOT.sub("", plain[lead.end() :] if lead else plain)
    found = _THING_CLAUSE.match(plain.lower())
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
    is_case = found["d"] == "the " and (content[-1] in _CASE_WORDS or name in _CASE_WORDS)
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


_LISTS = lists("corrections")
ENGLISH = CueTable(_LISTS.rows("english"))
CHINESE = CueTable(_LISTS.rows("chinese"), chinese=True)
BARE_WORDS = frozenset(_LISTS.words("bare"))
BARE_ENGLISH, BARE_CHINESE = _LISTS.pattern("bare"), _LISTS.pattern("zh_bare")
CORRECTIONS_EXTRACTOR = "corrections/4"
MIN_CHARS, MAX_CHARS = 6, 400
SCORES: dict[Strength, float] = {"strict": 0.9, "broad": 0.4}
_CASE = _LISTS.pattern("case")
"""Things of the task at hand: 订单号, 明天的会议."""
_PROTEST = _LISTS.pattern("protest")
"""Words that only say that something is wrong: "you got it wrong, …", 你说错了，…"""
_VAGUE = _LISTS.pattern("vague")
_CLAUSE = _LISTS.pattern("clause")
_CHINESE_CLAUSE = _LISTS.pattern("chinese_clause")
_IS = re.compile(r"^(?:应该|应当)?是(?=[^要不])")
_SPEAKING = frozenset(
    ("我说的", "我要的", "我指的", "我订的", "我问的", "我的意思", "不对", "应该", "这个", "那个", "我的")
)
_CLEFT = _LISTS.pattern("cleft")
"""Contrasts that tell or report something and correct nothing: 他是医生，不是律师; 他们去的是海边，不是山里."""
_NO = re.compile(r"\W*(?:no|nope|not quite|不是|不对)(?:\W+|$)")
_ABOUT = re.compile(r"[a-z][a-z'-]{2,}")
_CUES = frozenset(_LISTS.words("cues"))


def corrections(sentences: Sequence[Sentence]) -> list[Observation]:
    """Return the corrections of a transcript."""
    found: list[Observation] = []
    objection: Sentence | None = None
    for sentence in sentences:
        if _is_objection(sentence):
            objection = sentence
            continue
        if len(sentence.text) <= MAX_CHARS:
            before = objection if objection is not None and objection.said is sentence.said else None
            correction = _correction(sentence, before)
            if correction is not None:
                found.append(correction)
        objection = None
    return found


def _is_objection(sentence: Sentence) -> bool:
    """Whether a sentence is only "That's wrong." or the like; "no" counts unless it answers a question."""
    if sentence.is_question or (sentence.asked and _NO.fullmatch(sentence.low)):
        return False
    if not sentence.words.isdisjoint(BARE_WORDS) and BARE_ENGLISH.fullmatch(sentence.low):
        return True
    return sentence.has_chinese and BARE_CHINESE.fullmatch(sentence.low) is not None


def _correction(sentence: Sentence, objection: Sentence | None) -> Observation | None:
    """Return the correction in a sentence; after an objection in the same message, it needs no cue."""
    match = _match(sentence)
    if match is None and (objection is None or doubt(sentence, 0) is not None or len(sentence.text) < MIN_CHARS):
        return None
    is_strict = objection is not None or (match is not None and match.label == "strict")
    strength: Strength = "strict" if is_strict else "broad"
    line = in_one_line(sentence) if match is None else in_one_line(sentence, match.found.start(), match.found.end())
    if line is None:
        return None
    thing = entity_value_in(sentence.heard)
    if thing is None:
        topic = _topic(match, sentence)
    else:
        value = value_of(thing.value)
        topic = ClaimTopic(attribute=f"correction:{thing.name}", subject=thing.name, value=value, polarity="positive")
    observation = claim(
        sentence,
        kind="correction",
        text=line,
        topic=topic,
        strength=strength,
        score=SCORES[strength],
        reach=_reach(sentence, topic, thing),
        extractor=CORRECTIONS_EXTRACTOR,
    )
    if objection is None:
        return observation
    return replace(observation, places=(*observation.places, objection.place()._replace(relation="corrects")))


def _match(sentence: Sentence) -> CueMatch | None:
    """Return the first cue of a correction that is neither doubtful nor a mere contrast."""
    for match in matches(sentence, ENGLISH, CHINESE):
        if _is_contrast(match, sentence):
            continue
        if sentence.has_chinese and doubt(sentence, match.start_of("v")) not in (None, "past"):
            continue
        is_answer = match.label == "broad" and sentence.asked and _NO.match(sentence.low)
        if not is_answer and doubt(sentence, match.found.start()) in (None, "past"):
            return match
    return None


def _is_contrast(match: CueMatch, sentence: Sentence) -> bool:
    """Whether "X is V, not W" corrects nothing: "the key is quality, not quantity"; 重要的是过程，不是结果.

    It corrects after "no", "actually" or 更正, and otherwise if both sides are of one sort.
    """
    right, wrong = match.text_of("v", sentence.text), match.text_of("w", sentence.text)
    thing = entity_value_in(sentence.heard)
    if match.attribute == "thing" and thing is None:
        return True
    if right is None or wrong is None or match.label != "strict" or is_corrective(sentence.heard):
        return False
    if thing is not None:
        return not are_of_one_sort(right, wrong) and not (sentence.has_chinese and thing.is_general)
    return _CLEFT.search(sentence.low) is not None


def _topic(match: CueMatch | None, sentence: Sentence) -> ClaimTopic:
    """Return the topic: the subject of the right side, or else the first word that stands on neither side."""
    right = (match.text_of("v", sentence.text) if match else sentence.text) or ""
    clause = _CLAUSE.match(right.lower()) or _CHINESE_CLAUSE.match(right.lower())
    if clause is not None and clause["s"] not in _SPEAKING:
        about, value = _head(clause["s"]), right[clause.start("v") :]
    else:
        wrong = (match.text_of("w", sentence.low) if match else None) or ""
        skipped = STOP | _CUES | {*_ABOUT.findall(right.lower()), *_ABOUT.findall(wrong)}
        words = [word for word in _ABOUT.findall(sentence.low) if word not in skipped]
        about, value = (stem(words[0]) if words else ""), _IS.sub("", right)
    return ClaimTopic(
        attribute=f"correction:{about or 'said'}", value=value_of(value) if value else None, polarity="positive"
    )


def _head(subject: str) -> str:
    words = [word for word in _ABOUT.findall(subject) if word not in STOP]
    if words:
        return stem(words[-1])
    return "" if subject.isascii() else subject


def _reach(sentence: Sentence, topic: ClaimTopic, thing: EntityValue | None) -> Reach:
    # The words of a protest say nothing about what is right: "you" and "it" there do not make it local.
    protest = _PROTEST.match(sentence.low)
    sentence = sentence._replace(low=sentence.low[protest.end() :]) if protest else sentence
    if sentence.talk.project and is_of_project(sentence):
        return "session"
    if thing is not None and thing.is_general and not is_local(sentence, strictly=True):
        return "shared"
    if sentence.is_task or is_local(sentence, strictly=False) or (thing is not None and _CASE.search(thing.name)):
        return "session"
    about = topic.attribute.removeprefix("correction:")
    return "session" if about == "said" or _VAGUE.search(sentence.low) else "shared"
