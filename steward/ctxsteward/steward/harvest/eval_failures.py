"""Eval failures: scorers that failed on a transcript, as records about the agent.

A template over the scorer's name and its reason, never over what the transcript says; the last thing that its user
asked is the evidence. Equal failures of several transcripts become one record. `Replayed.eval_failures` holds
``SCORER: REASON`` or ``SCORER``.
"""

from __future__ import annotations

import re

from ctxsteward.schemas.recommendation import Slot

from ..observation import Observation
from .claims import MAX_TEXT_CHARS
from .hearing import Conversation, Sentence

EVAL_FAILURES_EXTRACTOR = "eval_failures/1"
MAX_NAME_CHARS = 80
_NOT_NAME = re.compile(r"[^\w.@/-]+")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff<>`\[\]{}]+")


def eval_failures(conversation: Conversation) -> list[Observation]:
    """One observation for each scorer that failed; none without a user's words to cite."""
    sentences = [sentence for sentence in conversation.sentences if sentence.said.role == "user"]
    if not sentences:
        return []
    seen: dict[str, Observation] = {}
    for failure in conversation.replayed.eval_failures:
        name, _, reason = failure.partition(":")
        scorer = _NOT_NAME.sub("-", name.strip()).strip("-")[:MAX_NAME_CHARS].lower()
        if scorer and scorer not in seen:
            seen[scorer] = _observation(scorer, " ".join(_UNSAFE.sub(" ", reason).split()), sentences[-1], conversation)
    return list(seen.values())


def _observation(scorer: str, reason: str, cited: Sentence, conversation: Conversation) -> Observation:
    text = f"The eval {scorer} failed" + (f": {reason}" if reason else ".")
    replayed = conversation.replayed
    return Observation(
        kind="eval_failure",
        text=text if len(text) <= MAX_TEXT_CHARS else text[: MAX_TEXT_CHARS - 1].rstrip() + "…",
        slot=Slot(subject="agent", attribute=f"eval:{scorer}", cardinality="many"),
        places=(cited.place(),),
        strength="strict",
        score=1.0,
        reach="shared",
        principal=replayed.principal,
        polarity="negative",
        trigger=f"eval:{scorer}",
        ts=cited.said.ts or replayed.started,
        extractor=EVAL_FAILURES_EXTRACTOR,
    )
