"""What people say to an assistant in their own words: kept for the case that several mean the same.

No cue decides. A sentence is kept if it could hold for others: it is plain talk, no question, says enough to be
compared, and carries no identifier, address or date of its speaker's case. What its session's tools were called for is
the speaker's task, not a wish. One person's sentence makes no record; `ledger.meanings` groups what three say alike,
and a person decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ctxsteward.language.values import typed_values
from ctxsteward.language.words import STOP, stem

from ...observations.observation import Observation
from ..tools.calls import name_words
from .claims import ClaimTopic, claim, doubt, in_one_line
from .utterances import Sentence

OWN_WORDS_EXTRACTOR = "own_words/1"
OWN_WORDS = "own_words"
"""Attribute of the slot."""
MIN_WORDS, MAX_CHARS = 3, 160
MIN_CONTENT, MIN_CHINESE_CHARS = 2, 5
MAX_SENTENCES = 60
"""Of one transcript."""
TASK_SHARE = 0.6
"""Of a sentence's content words, in the names of the tools that were called, and of their arguments."""
_OF_THE_CASE = ("identifier", "email", "url", "path", "phone", "address")
SCORE = 0.3


def sentences_of_people(sentences: Sequence[Sentence]) -> list[Observation]:
    """The sentences that could hold for others, each as a claim of its own."""
    if not any(said.role == "assistant" for said in sentences[0].talk.utterances) if sentences else True:
        return []  # nobody is spoken to
    called = _called(sentences[0])
    found: list[Observation] = []
    for sentence in sentences:
        if len(found) < MAX_SENTENCES and _may_hold_for_others(sentence, called):
            line = in_one_line(sentence)
            if line is not None:
                topic = ClaimTopic(attribute=OWN_WORDS)
                found.append(
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
    return found


def _may_hold_for_others(sentence: Sentence, called: frozenset[str]) -> bool:
    if sentence.text.rstrip()[-1:] in ("?", "？") or not sentence.is_plain or len(sentence.text) > MAX_CHARS:
        return False
    if doubt(sentence, 0) not in (None, "question", "past"):
        return False
    words = sentence.low.split()
    if sentence.has_chinese:
        return len(sentence.low) >= MIN_CHINESE_CHARS and not _is_of_the_case(sentence)
    content = {stem(word) for word in sentence.words if word not in STOP}
    if len(words) < MIN_WORDS or len(content) < MIN_CONTENT or _is_of_the_case(sentence):
        return False
    return len(content & called) <= TASK_SHARE * len(content)


def _is_of_the_case(sentence: Sentence) -> bool:
    return any(value.kind in _OF_THE_CASE for value in typed_values(sentence.text))


def _called(sentence: Sentence) -> frozenset[str]:
    """Stems of the words in the names of tools, and of their arguments, that were called in a transcript."""
    calls = (call for said in sentence.talk.utterances for call in said.calls)
    return frozenset(
        _stems(
            word
            for call in calls
            for word in (call.name, *(call.arguments.replace('"', " ").replace(":", " ").split()[:40]))
        )
    )


def _stems(names: Iterable[str]) -> Iterable[str]:
    return (stem(word) for name in names for word in name_words(name))
