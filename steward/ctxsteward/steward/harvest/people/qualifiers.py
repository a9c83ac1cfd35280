"""Why a sentence that holds a cue says nothing lasting, and how far its words reach.

The harvesters of this folder ask before they make a claim. `doubt` names the first reason that holds (it asks,
supposes, reports, denies, jokes or remembers), or None. Irony, indifference and the past are looked for in the whole
sentence; supposition, report and denial in what stands before the cue, in its clause. A doubted sentence gives nothing
that needs no company; a question, a document and the past leave room for something weak.

`is_local` and `is_of_project` tell whether a wish is about the task at hand or the project rather than its speaker.
Most wishes in task-oriented talk are about the task ("this one", a date, a booking's code), so doubt means the session.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ctxsteward.language import lists

from .utterances import AnchorWords, Sentence

Doubt = Literal["question", "document", "irony", "indifference", "supposition", "report", "denial", "past"]

WEAKENS: frozenset[Doubt] = frozenset(("question", "document", "past"))
"""With these a wish is broad instead of nothing: it counts if others say the same."""


@dataclass(frozen=True, slots=True)
class _DoubtSign:
    """A reason's wordings in both languages; the English ones hold one of `anchors`."""

    anchors: AnchorWords
    english: re.Pattern[str]
    chinese: re.Pattern[str]

    def marks(self, sentence: Sentence, text: str) -> bool:
        """Whether the text, of this sentence, holds it."""
        if self.anchors.are_in(sentence.words) and self.english.search(text):
            return True
        return sentence.has_chinese and self.chinese.search(text) is not None


_LISTS = lists("doubts")


def _sign(name: str) -> _DoubtSign:
    anchors = AnchorWords(" ".join(_LISTS.words(name)))
    return _DoubtSign(anchors, _LISTS.pattern(name), _LISTS.pattern(f"zh_{name}"))


_FACES = re.compile("🙄|😒|😏|🙃")
_IRONY = _sign("irony")
_INDIFFERENCE = _sign("indifference")
_PAST = _sign("past")
_SUPPOSED_WHOLE = _LISTS.pattern("supposed_whole")
_SUPPOSED_WHOLE_CHINESE = _LISTS.pattern("supposed_whole_chinese")
_SUPPOSITION = _sign("supposition")
_REPORT = _sign("report")
_REPORTED_FIRST = re.compile(
    r"\b(?:i|we|i'd|you) (?:would |have |had |'ve )?(?:say|said|told you|mentioned|asked you|wrote)\b[^.;!]{0,60}$"
)
_DENIAL = _sign("denial")


def doubt(sentence: Sentence, start: int) -> Doubt | None:
    """Why the cue that begins at character `start` may mean nothing lasting."""
    low, before = sentence.low, sentence.low[:start]
    if _IRONY.marks(sentence, low) or (not low.isascii() and _FACES.search(low)):
        return "irony"
    if _INDIFFERENCE.marks(sentence, low):
        return "indifference"
    if _SUPPOSED_WHOLE.match(low) or (sentence.has_chinese and _SUPPOSED_WHOLE_CHINESE.search(low)):
        return "supposition"
    if before and _SUPPOSITION.marks(sentence, before):
        return "supposition"
    if before and _REPORT.marks(sentence, before) and not _REPORTED_FIRST.search(before):
        return "report"
    if before and _DENIAL.marks(sentence, before):
        return "denial"
    if sentence.is_question:
        return "question"
    if not sentence.is_plain:
        return "document"
    return "past" if _PAST.marks(sentence, low) else None


_EXPLICIT = _LISTS.pattern("explicit")
_DEICTIC = _LISTS.pattern("deictic")
_PROJECT = _LISTS.pattern("project")


def is_local(sentence: Sentence, *, strictly: bool) -> bool:
    """Whether it is about the task at hand; `strictly`: only where the words say so outright."""
    if _EXPLICIT.search(sentence.low):
        return True
    return not strictly and _DEICTIC.search(sentence.low) is not None


def is_of_project(sentence: Sentence) -> bool:
    """Whether it speaks of the project rather than of its speaker."""
    return _PROJECT.search(sentence.low) is not None
