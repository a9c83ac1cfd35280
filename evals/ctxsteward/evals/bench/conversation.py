"""A seeded conversation for timing: believable sentences with numbers and names, no two messages alike."""

from __future__ import annotations

import random

from ctxsteward.schemas import Wire

_SUBJECTS = (
    "The checkout service",
    "Our staging cluster",
    "The nightly import",
    "The invoice queue",
    "That customer's order",
)
_VERBS = ("returned", "logged", "retried", "dropped", "reported", "handled", "queued", "rejected")
_OBJECTS = (
    "a timeout",
    "the wrong total",
    "duplicate rows",
    "a stale price",
    "an empty page",
    "two warnings",
    "a 502",
)
_ENDS = (
    "after the deploy",
    "before lunch",
    "since the migration",
    "on the second node",
    "while I watched",
    "again",
)


def conversation(messages: int, *, sentences: int = 3, seed: int = 7) -> list[Wire]:
    """`messages` wire dicts, user and assistant in turn, about 15 tokens a sentence."""
    rng = random.Random(seed)
    return [_message(index, sentences, rng) for index in range(messages)]


def _message(index: int, sentences: int, rng: random.Random) -> Wire:
    said = [
        f"{rng.choice(_SUBJECTS)} {rng.choice(_VERBS)} {rng.choice(_OBJECTS)} {rng.randrange(2, 900)} times "
        f"{rng.choice(_ENDS)} (run {index}-{rng.randrange(10**4)})."
        for _ in range(sentences)
    ]
    return {"role": "user" if index % 2 == 0 else "assistant", "content": " ".join(said)}
