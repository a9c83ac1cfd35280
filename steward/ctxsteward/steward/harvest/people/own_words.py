"""Sentences of people without a cue, stored in case several people mean the same.

A sentence is stored if it could hold for others: plain talk, not a question, long enough to compare, and without an
identifier or address of the speaker's case. If the assistant works with tools, messages that it acts on, answers to
its questions and the last message belong to the speaker's task and are left out (`_of_the_task`). One person's
sentence makes no record; `ledger.meanings` groups sentences that three people say alike, and a person decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxsteward.language.values import typed_values
from ctxsteward.language.words import STOP, stem

from ...observations.observation import Observation
from ...observations.transcript import ReplayedTranscript
from .claims import ClaimTopic, claim, doubt, in_one_line
from .utterances import Sentence

OWN_WORDS_EXTRACTOR = "own_words/2"
OWN_WORDS = "own_words"
"""Attribute of the slot, and name of the harvester in `extractor`."""
MIN_WORDS, MAX_CHARS = 3, 160
MIN_CONTENT, MIN_CHINESE_CHARS = 2, 5
MAX_SENTENCES = 60
"""Most sentences of one transcript."""
_OF_THE_CASE = ("identifier", "email", "url", "path", "phone", "address")
SCORE = 0.3


def sentences_of_people(sentences: Sequence[Sentence]) -> list[Observation]:
    """Return the sentences that could hold for others, each as a claim of its own."""
    if not sentences or all(said.role != "assistant" for said in sentences[0].talk.utterances):
        return []
    of_the_task = _of_the_task(sentences[0].talk) if sentences[0].is_task else frozenset[int]()
    claims: list[Observation] = []
    for sentence in sentences:
        if sentence.said.ordinal in of_the_task or (sentence.is_task and sentence.asked):
            continue
        line = in_one_line(sentence) if _may_hold_for_others(sentence) else None
        if line is not None:
            topic = ClaimTopic(attribute=OWN_WORDS)
            claims.append(
                claim(
                    sentence,
                    kind="preference",
                    text=line,
                    topic=topic,
                    strength="broad",
                    score=SCORE,
                    reach="shared",
                    extractor=OWN_WORDS_EXTRACTOR,
                )
            )
        if len(claims) == MAX_SENTENCES:
            break
    return claims


def _may_hold_for_others(sentence: Sentence) -> bool:
    if sentence.text.rstrip()[-1:] in ("?", "？") or not sentence.is_plain or len(sentence.text) > MAX_CHARS:
        return False
    if doubt(sentence, 0) not in (None, "question", "past"):
        return False
    if sentence.has_chinese:
        is_long_enough = len(sentence.low) >= MIN_CHINESE_CHARS
    else:
        content = {stem(word) for word in sentence.words if word not in STOP}
        is_long_enough = len(sentence.low.split()) >= MIN_WORDS and len(content) >= MIN_CONTENT
    return is_long_enough and all(value.kind not in _OF_THE_CASE for value in typed_values(sentence.text))


def _of_the_task(talk: ReplayedTranscript) -> frozenset[int]:
    """Return the ordinals of user messages that the assistant acts on with tool calls, and of the last one."""
    newest, ordinals = 0, set[int]()
    for said in talk.utterances:
        if said.role == "user":
            newest = said.ordinal
        elif said.calls:
            ordinals.add(newest)
    return frozenset(ordinals | {newest})
