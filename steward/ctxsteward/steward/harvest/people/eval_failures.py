"""Failed scorers of an eval, as claims about the agent.

The claim is a template over the scorer's name and reason (`ReplayedTranscript.eval_failures`: ``SCORER: REASON`` or
``SCORER``), with the user's last sentence as its evidence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxsteward.schemas.recommendation import Slot

from ...observations.observation import Observation
from .claims import MAX_TEXT_CHARS
from .utterances import Sentence

EVAL_FAILURES_EXTRACTOR = "eval_failures/1"
MAX_NAME_CHARS = 80
_NOT_NAME = re.compile(r"[^\w.@/-]+")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff<>`\[\]{}]+")


def eval_failures(sentences: Sequence[Sentence]) -> list[Observation]:
    """Return an observation for each failed scorer, if a user said anything to cite."""
    if not sentences:
        return []
    observations: dict[str, Observation] = {}
    for failure in sentences[-1].talk.eval_failures:
        name, _, reason = failure.partition(":")
        scorer = _NOT_NAME.sub("-", name.strip()).strip("-")[:MAX_NAME_CHARS].lower()
        if scorer and scorer not in observations:
            observations[scorer] = _observation(scorer, " ".join(_UNSAFE.sub(" ", reason).split()), sentences[-1])
    return list(observations.values())


def _observation(scorer: str, reason: str, cited: Sentence) -> Observation:
    text = f"The eval {scorer} failed" + (f": {reason}" if reason else ".")
    return Observation(
        kind="eval_failure",
        text=text if len(text) <= MAX_TEXT_CHARS else text[: MAX_TEXT_CHARS - 1].rstrip() + "…",
        slot=Slot(subject="agent", attribute=f"eval:{scorer}", cardinality="many"),
        places=(cited.place(),),
        strength="strict",
        score=1.0,
        reach="shared",
        principal=cited.talk.principal,
        polarity="negative",
        trigger=f"eval:{scorer}",
        ts=cited.said.ts or cited.talk.started,
        extractor=EVAL_FAILURES_EXTRACTOR,
    )
