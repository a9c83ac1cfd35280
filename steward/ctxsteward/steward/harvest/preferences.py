"""Wishes: how somebody wants to be served, what they like, what they never want.

A standing wish ("from now on", "never", "call me", 以后都) is strict and holds for the speaker everywhere. A plain
preference is strict too, but inside a task it is taken as meant for that task. A liking or a request is broad: it needs
company. What is asked, supposed, reported, denied or meant in irony gives nothing strict, and mostly nothing at all.

Source: the state design (gates by kind and scope); the measured cue lists of the layered-envelope design.
"""

from __future__ import annotations

import re

from ..observation import Observation, Reach, Strength
from .claims import claim, in_one_line
from .cues_en import PREFERENCES as ENGLISH
from .cues_zh import PREFERENCES as CHINESE
from .facts import named_fact
from .guards import WEAKENS, doubt
from .hearing import Conversation, Sentence
from .locality import is_local, is_of_project
from .matching import Match, matches
from .slots import Topic, topic_of

EXTRACTOR = "preferences/3"
MAX_CHARS = 400
"""A longer sentence is not searched for wishes."""
_JOINED = re.compile(r"(?:and|so|but|because|to|then|also)\b")
_TOLD = re.compile(r"(?:\w+,? )?(?:they|it|he|she|we|we'll|those|these|this|that|the|people|who|i'll)\b")
"""A sentence about others: "they … and always remind me" wishes for nothing."""
SCORES = {"standing": 0.95, "stated": 0.8, "weak": 0.4}


def preferences(conversation: Conversation) -> list[Observation]:
    """The wishes of a transcript."""
    found = []
    for sentence in conversation.sentences:
        if len(sentence.text) > MAX_CHARS:
            continue
        observation = _wish(sentence, conversation)
        if observation is not None:
            found.append(observation)
    return found


def _wish(sentence: Sentence, conversation: Conversation) -> Observation | None:
    for match in matches(sentence, ENGLISH, CHINESE):
        observation = _read(match, sentence, conversation)
        if observation is not None:
            return observation
    return None


def _read(match: Match, sentence: Sentence, conversation: Conversation) -> Observation | None:
    reason = doubt(sentence, match.cue_start)
    if reason is not None and (reason not in WEAKENS or (match.label == "standing" and reason == "document")):
        return None
    if _JOINED.match(match.found.group()) and _TOLD.match(sentence.low):
        return None
    strength: Strength = "broad" if reason or match.label == "weak" else "strict"
    topic = topic_of(match, sentence)
    if topic.attribute.startswith("likes"):
        topic = named_fact(sentence) or topic
    text = in_one_line(sentence, match.found.start(), match.found.end())
    if text is None:
        return None
    return claim(
        sentence,
        kind="fact" if topic.is_fact else "preference",
        text=text,
        topic=topic,
        strength=strength,
        score=SCORES["weak" if strength == "broad" else match.label],
        reach=_reach(match.label, topic, sentence, conversation),
        extractor=EXTRACTOR,
    )


def _reach(label: str, topic: Topic, sentence: Sentence, conversation: Conversation) -> Reach:
    if topic.is_fact or topic.is_lasting:
        return "user"
    if conversation.replayed.project and is_of_project(sentence):
        return "project"
    if is_local(sentence, strictly=label == "standing") or (label != "standing" and conversation.is_task):
        return "session"
    return "user"
