# ruff: noqa: E501  -- a pattern reads better in one line than wrapped
"""Decisions: what was settled ("let's go with B", 就选方案二).

An outright one ("we decided", 敲定) is strict. It is for its session, unless it is the project's or the person's own.
Questions, what is still open, and what others decided are none.
"""

from __future__ import annotations

import re

from ctxsteward.summarizers.words import STOP, stem

from ..observation import Observation, Reach, Strength
from .claims import claim, in_one_line
from .cues_decisions import CHINESE, ENGLISH
from .guards import doubt
from .hearing import Conversation, Sentence
from .locality import is_local
from .matching import Match, matches
from .slots import Topic

DECISIONS_EXTRACTOR = "decisions/1"
MAX_CHARS = 400
SCORES: dict[Strength, float] = {"strict": 0.85, "broad": 0.4}
_OPEN = re.compile(
    r"\b(?:haven't|hasn't|have not|not yet|can't|cannot|couldn't|didn't|don't|still (?:need|have|deciding)|need to decide|to be decided|yet to|hard to|before we|until we|let me know|wonder|yours|up to you)\b"
    r"|还没|没有?决定|没定|难以|很难|拿不定|还得|还要|待定|再决定|决定不|再定|告诉我|你来|你决定|由你|要不要|考虑"
)
_ABOUT = re.compile(r"[a-z][a-z'-]{2,}")
_CHINESE_ABOUT = re.compile(r"[\u3400-\u9fffA-Za-z0-9]{2,8}")
_OWN = re.compile(
    r"\b(?:i|i've|i have)(?: \w+)? (?:decided|made up my mind|chosen|opted)\b|我(?!们)[^，,。]{0,4}(?:决定|想好)"
)


def decisions(conversation: Conversation) -> list[Observation]:
    """The decisions of a transcript."""
    found = (_decision(sentence, conversation) for sentence in conversation.sentences)
    return [observation for observation in found if observation is not None]


def _decision(sentence: Sentence, conversation: Conversation) -> Observation | None:
    if len(sentence.text) > MAX_CHARS or sentence.is_question:
        return None
    match = next(iter(matches(sentence, ENGLISH, CHINESE)), None)
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
        topic=Topic(attribute=f"decision:{_about(match, sentence)}", polarity="positive"),
        strength=strength,
        score=SCORES[strength],
        reach=_reach(sentence, conversation),
        extractor=DECISIONS_EXTRACTOR,
    )


def _about(match: Match, sentence: Sentence) -> str:
    region = sentence.low[match.start_of("o") :]
    words = [word for word in _ABOUT.findall(region) if word not in STOP]
    if words:
        return stem(words[0])
    found = _CHINESE_ABOUT.search(region)
    return found.group() if found else "other"


def _reach(sentence: Sentence, conversation: Conversation) -> Reach:
    if conversation.is_task or is_local(sentence, strictly=False):
        return "session"
    if conversation.replayed.project:
        return "project"
    return "user" if _OWN.search(sentence.low) else "session"
