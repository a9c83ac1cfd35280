"""What small talk is made of: subjects with their words, and what goes around a sentence. Shapes only; texts beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallTalkSubject:
    """One field of life: nouns, questions and remarks of users, answers of assistants."""

    things: tuple[str, ...]
    asks: tuple[str, ...]
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallTalkPool:
    """Phrasings of one language and one split."""

    subjects: Mapping[str, SmallTalkSubject]
    openings: tuple[str, ...]
    closings: tuple[str, ...]
    replies: tuple[str, ...]
    """A few words that answer anything."""
    captions: tuple[str, ...]
    """What stands above something pasted."""
