"""Makes an observation of a sentence: one line of text, its place, and whose claim it is.

The harvesters of this folder call `in_one_line` and `claim`. The line is the speaker's own, with the speaker's name
before it where the transcript gives one, so that "I" has a referent; a sentence too short to stand alone is quoted in a
few words of ours, one too long is cut at clauses around the claim. The bytes of the place are the line's words, white
space apart.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from ctxsteward.language import clause_spans, lists
from ctxsteward.schemas import RecommendationKind, Slot

from ...observations import Observation, Reach, Strength
from .slots import ClaimTopic
from .utterances import Sentence, speaker_of

MIN_TEXT_CHARS, MAX_TEXT_CHARS = 8, 280
MAX_NAME_CHARS = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_LISTS = lists("talk")
_SENSITIVE = _LISTS.pattern("sensitive")
_HEAD_CHARS = 5
_HEADS = frozenset(word[:_HEAD_CHARS] for word in re.findall("[a-z]+", _SENSITIVE.pattern))
"""First letters of the English words in that list. Some harmless words begin so, too: the list decides."""
_JOINT = re.compile("[-']")


class ClaimLine(NamedTuple):
    """A claim's text and the characters of its sentence that it rests on."""

    text: str
    start: int
    stop: int


def in_one_line(sentence: Sentence, start: int = 0, stop: int | None = None) -> ClaimLine | None:
    """The sentence as a line, or the clauses around characters `start` to `stop`; None where it cannot be one."""
    stop = len(sentence.text) if stop is None else stop
    name = speaker_of(sentence.said)
    lead = f"{name}: " if name else ""
    room = MAX_TEXT_CHARS - len(lead)
    first, last = (0, len(sentence.text)) if len(sentence.text) <= room else _clauses(sentence.text, start, stop, room)
    words = " ".join(sentence.text[first:last].split())
    if not words or len(words) > room or (not words.isprintable() and _CONTROL.search(words)):
        return None
    text = lead + words
    if len(text) < MIN_TEXT_CHARS:
        text = f"用户说：「{words}」" if sentence.has_chinese else f'The user said: "{words}"'
    return ClaimLine(text, first, last)


def _clauses(text: str, start: int, stop: int, room: int) -> tuple[int, int]:
    """The run of clauses from the one that holds `start`, as long as it fits."""
    first, last = -1, -1
    for clause in clause_spans(text):
        if first < 0 and clause.stop > start:
            first = clause.start
        if first >= 0 and clause.stop - first <= room and (last < 0 or clause.start < stop):
            last = clause.stop
    return (first, last) if 0 <= first < last else (0, len(text))


def claim(
    sentence: Sentence,
    *,
    kind: RecommendationKind,
    text: ClaimLine,
    topic: ClaimTopic,
    strength: Strength,
    score: float,
    reach: Reach,
    extractor: str,
) -> Observation:
    """The observation that this person made this claim."""
    said = sentence.said
    return Observation(
        kind=kind,
        text=text.text,
        slot=Slot(
            subject=_subject(sentence, topic), attribute=topic.attribute[:MAX_NAME_CHARS], cardinality=topic.cardinality
        ),
        places=(sentence.place(text.start, text.stop),),
        strength=strength,
        score=score,
        reach=reach,
        principal=principal_of(sentence),
        value=topic.value,
        unit=topic.unit,
        polarity=topic.polarity,
        modality=topic.modality,
        answers=sentence.asked,
        ts=said.ts,
        sensitivity=_sensitivity(sentence, topic),
        extractor=extractor,
    )


def principal_of(sentence: Sentence) -> str:
    """Who answers for it: of two people who talk, the speaker."""
    said = sentence.said
    return said.principal if said.trust in ("operator", "user") else speaker_of(said) or said.principal


def _subject(sentence: Sentence, topic: ClaimTopic) -> str:
    if topic.subject:
        return topic.subject
    if sentence.said.role == "user":
        return "user"
    return (speaker_of(sentence.said) or "user").lower()


def _may_be_sensitive(sentence: Sentence) -> bool:
    """Whether a word begins as one of the list does: a look-up a word, where the list costs a search for each."""
    if sentence.has_chinese:
        return True
    for word in sentence.words:
        if word[:_HEAD_CHARS] in _HEADS:
            return True
        if not word.isalpha() and any(part[:_HEAD_CHARS] in _HEADS for part in _JOINT.split(word)):
            return True
    return False


def _sensitivity(sentence: Sentence, topic: ClaimTopic) -> Literal["none", "personal", "sensitive"]:
    if _may_be_sensitive(sentence) and _SENSITIVE.search(sentence.low):
        return "sensitive"
    return "personal" if topic.is_personal else "none"
