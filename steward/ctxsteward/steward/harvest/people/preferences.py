"""Wishes and decisions: how somebody wants to be served, what they never want, what was settled.

A standing wish ("from now on", "never", "call me", 以后都) is strict and holds for the speaker everywhere; one that is
about the form of answers alone ("never use emojis") may hold for everybody, where enough others say the same. A plain
preference is strict too, but inside a task it is taken as meant for that task. A liking or a request is broad: it needs
company. So does a complaint ("stop asking"), which is about what was just done, but for one about form. What is asked,
supposed, reported, denied or meant in irony gives nothing strict, and mostly nothing at all.

An outright decision ("we decided", 敲定, "let's go with B") is strict. It is for its session, unless it is the
project's or the person's own. Questions, what is still open, and what others decided are none.

Source: the state design (gates by kind and scope); the measured cue lists of the layered-envelope design.
"""

from __future__ import annotations

import re

from ctxsteward.language import STOP, lists, stem

from ...observations import Observation, Reach, Strength
from .claims import claim, in_one_line
from .cue_table import CueMatch, CueTable, matches
from .facts import named_fact
from .qualifiers import WEAKENS, doubt, is_local, is_of_project
from .slots import FORM, ClaimTopic, is_form_alone, topic_of
from .utterances import HeardConversation, Sentence

ENGLISH = CueTable(lists("preferences").rows("english"))
CHINESE = CueTable(lists("preferences").rows("chinese"), chinese=True)
DECISIONS_EN = CueTable(lists("decisions").rows("english"))
DECISIONS_ZH = CueTable(lists("decisions").rows("chinese"), chinese=True)
PREFERENCES_EXTRACTOR = "preferences/5"
MAX_CHARS = 400
"""A longer sentence is not searched for wishes."""
_JOINED = re.compile(r"(?:and|so|but|because|to|then|also)\b")
_TOLD = re.compile(r"(?:\w+,? )?(?:they|it|he|she|we|we'll|those|these|this|that|the|people|who|i'll)\b")
"""A sentence about others: "they … and always remind me" wishes for nothing."""
_LIKING = re.compile(r"\b(?:like|love|enjoy|prefer|hate|dislike|favou?rite|rather)|喜欢|爱|讨厌|偏|宁")
"""What is asked for without a liking, and of no known topic, is wanted now."""
SCORES = {"standing": 0.95, "stated": 0.8, "weak": 0.4}


def preferences(conversation: HeardConversation) -> list[Observation]:
    """The wishes of a transcript."""
    found = []
    for sentence in conversation.sentences:
        if len(sentence.text) > MAX_CHARS:
            continue
        observation = _wish(sentence, conversation)
        if observation is not None:
            found.append(observation)
    return found


def _wish(sentence: Sentence, conversation: HeardConversation) -> Observation | None:
    for match in matches(sentence, ENGLISH, CHINESE):
        observation = _read(match, sentence, conversation)
        if observation is not None:
            return observation
    return None


def _read(match: CueMatch, sentence: Sentence, conversation: HeardConversation) -> Observation | None:
    reason = doubt(sentence, match.cue_start)
    label = "standing" if match.label == "complaint" else match.label
    if reason is not None and (reason not in WEAKENS or (label == "standing" and reason == "document")):
        return None
    if _JOINED.match(match.found.group()) and _TOLD.match(sentence.low):
        return None
    topic = topic_of(match, sentence)
    is_weak = label == "weak" or (match.label == "complaint" and topic.attribute not in FORM)
    strength: Strength = "broad" if reason or is_weak else "strict"
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
        score=SCORES["weak" if strength == "broad" else label],
        reach=_reach(label, topic, sentence, conversation, strength),
        extractor=PREFERENCES_EXTRACTOR,
    )


def _reach(
    label: str, topic: ClaimTopic, sentence: Sentence, conversation: HeardConversation, strength: Strength
) -> Reach:
    if topic.is_fact or topic.is_lasting:
        return "user"
    if strength == "broad" and topic.attribute.startswith("likes") and not _LIKING.search(sentence.low):
        return "session"
    if conversation.replayed.project and is_of_project(sentence):
        return "project"
    if is_local(sentence, strictly=label == "standing") or (label != "standing" and conversation.is_task):
        return "session"
    is_told = strength == "strict" and topic.modality in ("must", "must_not")
    return "shared" if is_told and is_form_alone(topic, sentence) else "user"


DECISIONS_EXTRACTOR = "decisions/1"
DECISION_MAX_CHARS = 400
DECISION_SCORES: dict[Strength, float] = {"strict": 0.85, "broad": 0.4}
_OPEN = lists("decisions").pattern("open")
_ABOUT = re.compile(r"[a-z][a-z'-]{2,}")
_CHINESE_ABOUT = re.compile(r"[\u3400-\u9fffA-Za-z0-9]{2,8}")
_OWN = re.compile(
    r"\b(?:i|i've|i have)(?: \w+)? (?:decided|made up my mind|chosen|opted)\b|我(?!们)[^，,。]{0,4}(?:决定|想好)"
)


def decisions(conversation: HeardConversation) -> list[Observation]:
    """The decisions of a transcript."""
    found = (_decision(sentence, conversation) for sentence in conversation.sentences)
    return [observation for observation in found if observation is not None]


def _decision(sentence: Sentence, conversation: HeardConversation) -> Observation | None:
    if len(sentence.text) > DECISION_MAX_CHARS or sentence.is_question:
        return None
    match = next(iter(matches(sentence, DECISIONS_EN, DECISIONS_ZH)), None)
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
        topic=ClaimTopic(attribute=f"decision:{_about(match, sentence)}", polarity="positive"),
        strength=strength,
        score=DECISION_SCORES[strength],
        reach=_decision_reach(sentence, conversation),
        extractor=DECISIONS_EXTRACTOR,
    )


def _about(match: CueMatch, sentence: Sentence) -> str:
    region = sentence.low[match.start_of("o") :]
    words = [word for word in _ABOUT.findall(region) if word not in STOP]
    if words:
        return stem(words[0])
    found = _CHINESE_ABOUT.search(region)
    return found.group() if found else "other"


def _decision_reach(sentence: Sentence, conversation: HeardConversation) -> Reach:
    if conversation.is_task or is_local(sentence, strictly=False):
        return "session"
    if conversation.replayed.project:
        return "project"
    return "user" if _OWN.search(sentence.low) else "session"
