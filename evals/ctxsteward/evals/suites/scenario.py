"""Scenarios: long conversations made from a seed, and what is asked in them.

A `Draw` names a scenario before it is made: a suite, a split and a number say everything, so the id of a result is all
that is needed to make the same conversation again. Every ninth scenario is long. The splits share no seed, and suites
with phrasings of their own hold some back: ``docs`` is what figures in the docs are made from and what rules may be
tuned on, ``ci`` is what CI runs.

Raises `InputError` for an id that names none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Literal, NamedTuple, Self

from ctxsteward.schemas import InputError, Wire
from ctxsteward.schemas.profile import ProfileDocument

Language = Literal["en", "zh"]
Split = Literal["docs", "ci"]

TURNS = (50, 90)
LONG_TURNS = (200, 400)
LONG_EVERY = 9
_ID = re.compile(r"([a-z-]+)/(docs|ci)-([0-9]{1,6})")


class Draw(NamedTuple):
    """Which scenario: all that its making may depend on."""

    suite: str
    split: Split
    number: int

    @property
    def id(self) -> str:
        return f"{self.suite}/{self.split}-{self.number}"

    @property
    def language(self) -> Language:
        """English and Chinese in turn, long scenarios as well."""
        return "en" if self.number % 2 == 0 else "zh"

    @property
    def turns(self) -> int:
        """User turns: 50 to 90, 200 to 400 in every ninth."""
        return self.random("turns").randint(*(LONG_TURNS if self.number % LONG_EVERY == 0 else TURNS))

    def random(self, what: str = "") -> Random:
        """A source of randomness that this draw, and what it is for, determine."""
        return Random(f"{self.id} {what}")

    @classmethod
    def parse(cls, id: str) -> Self:
        """The draw of an id, as results name it.

        >>> Draw.parse("verbatim/ci-12").turns
        64
        """
        found = _ID.fullmatch(id)
        if found is None:
            raise InputError(f"scenario {id!r:.80} is none; ids look like verbatim/ci-12")
        return cls(found[1], "docs" if found[2] == "docs" else "ci", int(found[3]))


def drawn(suite: str, split: Split, count: int) -> Iterator[Draw]:
    """The first `count` scenarios of a suite; a larger count has the smaller one's in it."""
    return (Draw(suite, split, number) for number in range(count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question at one place of a conversation, and what its answer needs.

    Without a model, the envelope for the question is looked at; with one, its answer is.
    """

    metric: str
    """Which figure it counts for."""
    after: int
    """How many messages were said before."""
    question: str
    wants: tuple[str, ...]
    """Every one of them must be shown."""
    avoids: tuple[str, ...] = ()
    """Outdated or foreign values: none may be shown unless what is wanted is shown too."""
    kind: str = ""
    """What sort of thing is asked for, for the report."""
    answer: tuple[str, ...] = ()
    """What a model's answer says, where that is less than what it must be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One conversation of OpenAI chat messages, with what is asked at places of it."""

    draw: Draw
    messages: tuple[Wire, ...]
    asks: tuple[Ask, ...] = ()
    system: str | None = None
    tools: tuple[Wire, ...] = ()
    profile: ProfileDocument | None = None
    tags: dict[str, str] = field(default_factory=dict)
    """What was drawn for it, for the report: kinds of attacks, faults, …"""

    @property
    def id(self) -> str:
        return self.draw.id

    @property
    def turns(self) -> int:
        """User turns."""
        return sum(message["role"] == "user" for message in self.messages)
