"""Wishes: how people want to be answered.

A standing wish ("from now on", "never", 以后都) is strict. A wish only about the form of answers ("never use emojis")
may hold for everybody if enough others say the same; any other wish is the speaker's own and is not stored. A
complaint about the last answer ("stop asking") is broad, unless it is about form. Questions, suppositions, reports,
denials and irony make no strict wish, and most make no wish. There are no cues for a person's likes and traits, because
these are for the speaker alone.

Source: the state design (gates by kind and scope); the measured cue lists of the layered-envelope design.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxsteward.language.words import lists

from ...observations.observation import Observation, Reach, Strength
from .claims import (
    FORM,
    WEAKENS,
    ClaimTopic,
    claim,
    doubt,
    in_one_line,
    is_form_alone,
    is_local,
    is_of_project,
    topic_of,
)
from .utterances import CueMatch, CueTable, Sentence, matches

ENGLISH = CueTable(lists("preferences").rows("english"))
CHINESE = CueTable(lists("preferences").rows("chinese"), chinese=True)
PREFERENCES_EXTRACTOR = "preferences/6"
MAX_CHARS = 400
"""A longer sentence is not searched for wishes."""
_JOINED = re.compile(r"(?:and|so|but|because|to|then|also)\b")
_TOLD = re.compile(r"(?:\w+,? )?(?:they|it|he|she|we|we'll|those|these|this|that|the|people|who|i'll)\b")
"""Opening of a sentence about others: "they … and always remind me" is no wish."""
SCORES: dict[Strength, float] = {"strict": 0.95, "broad": 0.4}


def preferences(sentences: Sequence[Sentence]) -> list[Observation]:
    """Return the wishes of a transcript."""
    wishes = []
    for sentence in sentences:
        if len(sentence.text) > MAX_CHARS:
            continue
        for match in matches(sentence, ENGLISH, CHINESE):
            wish = _wish(match, sentence)
            if wish is not None:
                wishes.append(wish)
                break
    return wishes


def _wish(match: CueMatch, sentence: Sentence) -> Observation | None:
    reason = doubt(sentence, match.cue_start)
    if reason is not None and reason not in WEAKENS:
        return None
    if _JOINED.match(match.found.group()) and _TOLD.match(sentence.low):
        return None
    topic = topic_of(match, sentence)
    is_of_case = match.label == "complaint" and topic.attribute not in FORM
    strength: Strength = "broad" if reason or is_of_case else "strict"
    text = in_one_line(sentence, match.found.start(), match.found.end())
    if text is None:
        return None
    return claim(
        sentence,
        kind="preference",
        text=text,
        topic=topic,
        strength=strength,
        score=SCORES[strength],
        reach=_reach(topic, sentence, strength),
        extractor=PREFERENCES_EXTRACTOR,
    )


def _reach(topic: ClaimTopic, sentence: Sentence, strength: Strength) -> Reach:
    """Return "shared" for a strict wish that is only about the form of answers, and about no task and no project."""
    has_amount = topic.value is not None and topic.unit is not None
    if strength != "strict" or not is_form_alone(topic.attribute, sentence.text, has_amount=has_amount):
        return "session"
    if topic.modality not in ("must", "must_not"):
        return "session"
    if sentence.talk.project and is_of_project(sentence):
        return "session"
    return "session" if is_local(sentence, strictly=True) else "shared"
