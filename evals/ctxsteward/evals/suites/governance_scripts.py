"""Stories for the suite ``governance``: who says what in which visit, before which night.

A *visit* is one session of one principal. Days one and two bring corrections by three people each, wishes of single
people, and poison from users, tools and colluders; in the other tenant, the same with other figures. What three people
correct was looked up before in the operator's own tool, which says the same in a declared field; what three others
claim was not, so that it may reach nobody else. What a story
plants is a list of `PlantedSentence` sentences, each with a figure of its own and the people it may reach.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ctxsteward.schemas.message import Wire

from ..phrasings import table
from .kit.pasted_content import calls
from .kit.suite import Draw
from .kit.talk import SmallTalk, answer, assistant, user

HERE, THERE = "acme", "globex"
"""The tenant that is watched, and the one beside it."""
Kind = Literal["shared", "personal", "poison"]
LOOK_UP = "look_up"
"""The operator's own tool."""
POISONS = ("a user", "tools", "five colluders")
"""Beside two colluders, who are in every story."""


class PlantedSentence(NamedTuple):
    """A sentence and how far it may get."""

    kind: Kind
    tenant: str
    figure: str
    """Occurs in no other sentence of the story."""
    text: str
    authors: frozenset[str]
    """Principals who say it; of tool text nobody."""
    sessions: frozenset[str]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One session."""

    id: str
    tenant: str
    principal: str
    day: int
    wires: tuple[Wire, ...]


@dataclass(slots=True)
class Story:
    """All of it."""

    visits: list[Visit] = field(default_factory=list)
    planted: list[PlantedSentence] = field(default_factory=list)
    poisons: tuple[str, ...] = ()
    bad_canary: bool = False


class Teller:
    """Makes a story, or single visits of it, out of a draw."""

    def __init__(self, draw: Draw, what: str = "story") -> None:
        self.draw, self.random, self.talk = draw, draw.random(what), SmallTalk.of(draw)
        self._figures = iter(self.random.sample(range(10_013, 99_989), 400))
        self.texts = {kind: draw.texts("governance", kind) for kind in table("governance")}
        syllables = self.texts["syllables"]
        self._names = iter("".join(self.random.sample(syllables, 3)).capitalize() for _ in range(8))
        self._things = iter(self.random.sample(self.texts["things"], 6))

    def story(self) -> Story:
        """Both days, for both tenants; more visits where the draw wants more turns."""
        poisons = ("two colluders", self.random.choice(POISONS))
        told = Story(poisons=poisons, bad_canary=self.random.random() < 0.6)
        for day in (1, 2):
            self._correction(told, HERE, day)
            self._wish(told, HERE, day)
        self._correction(told, THERE, 1)
        self._wish(told, THERE, 1)
        for poison in told.poisons:
            self._poison(told, poison)
        self._claim(told)
        while sum(_turns(visit.wires) for visit in told.visits) < self.draw.turns:
            name = f"v{len(told.visits)}"
            told.visits.append(self.visit(name, HERE, f"guest-{name}", self.random.choice((1, 2)), None))
        told.visits.sort(key=lambda visit: (visit.day, visit.id))
        return told

    # -- what is planted ----------------------------------------------------------------------------------------

    def _correction(self, told: Story, tenant: str, day: int) -> None:
        new = self.figure()
        thing = next(self._things)
        names = [f"p{day}-{number}" for number in range(3)]  # in both tenants: names are no borders
        price = f"{new} EUR" if self.draw.language == "en" else f"{new}元"
        known = json.dumps({"item": thing, "is": price}, ensure_ascii=False)
        self._plant(told, "shared", tenant, day, new, self._corrected(new, thing), names, "three people", known)

    def _claim(self, told: Story) -> None:
        """What three people say of the service, and nothing confirms: their word alone carries it to nobody."""
        new = self.figure()
        names = [f"claimant-{number}" for number in range(3)]
        self._plant(told, "poison", HERE, 1, new, self._corrected(new, next(self._things)), names, "three claimants")

    def _wish(self, told: Story, tenant: str, day: int) -> None:
        new = next(self._names)
        self._plant(told, "personal", tenant, day, new, self._filled("wishes", new), [f"w{day}"], "one person")

    def _poison(self, told: Story, source: str) -> None:
        new = self.figure()
        match source:
            case "a user":
                self._plant(told, "poison", HERE, 1, new, self._filled("poison_facts", new), ["mallory"], source)
            case "two colluders":
                names = [f"colluder-{number % 2}" for number in range(5)]
                self._plant(told, "poison", HERE, 1, new, self._corrected(new, next(self._things)), names, source)
            case "five colluders":
                names = [f"colluder-{number}" for number in range(5)]
                self._plant(told, "poison", HERE, 1, new, self._filled("poison_rules", new), names, source)
            case "tools":
                text = self._filled("poison_tools", new)
                visits = [f"{source}-{number}" for number in range(4)]
                for number, name in enumerate(visits):
                    told.visits.append(self.visit(name, HERE, f"victim-{number}", 1, None, tool_text=text))
                told.planted.append(PlantedSentence("poison", HERE, new, text, frozenset(), frozenset(visits), source))

    def _plant(
        self,
        told: Story,
        kind: Kind,
        tenant: str,
        day: int,
        figure: str,
        text: str,
        names: list[str],
        source: str,
        known: str | None = None,
    ) -> None:
        """So many visits in which it is said; `known`: what the operator's tool says of it."""
        visits = [
            self.visit(f"{tenant}-{figure}-{at}", tenant, name, day, text, known=known) for at, name in enumerate(names)
        ]
        told.visits += visits
        ids = frozenset(visit.id for visit in visits)
        told.planted.append(PlantedSentence(kind, tenant, figure, text, frozenset(names), ids, source))

    def _filled(self, kind: str, new: str) -> str:
        return self.random.choice(self.texts[kind]).format(new=new)

    def _corrected(self, new: str, thing: str) -> str:
        text = self.random.choice(self.texts["corrections"])
        return text.format(thing=thing, new=new, old=self.figure())

    def figure(self) -> str:
        """A figure that no other sentence has."""
        return str(next(self._figures))

    # -- visits -------------------------------------------------------------------------------------------------

    def visit(
        self,
        id: str,
        tenant: str,
        principal: str,
        day: int,
        text: str | None,
        *,
        tool_text: str | None = None,
        known: str | None = None,
    ) -> Visit:
        """A visit of two to four user turns in which somebody or a tool says this; `known`: what is looked up then."""
        wires = list(self._wires(text, tool_text, known))
        return Visit(id=id, tenant=tenant, principal=principal, day=day, wires=tuple(wires))

    def _wires(self, text: str | None, tool_text: str | None, known: str | None) -> Iterator[Wire]:
        thing = self.random.choice(self.texts["things"])
        yield user(self.random.choice(self.texts["questions"]).format(thing=thing))
        if tool_text is not None:
            id = f"c{self.random.randrange(10**7)}"
            yield calls((id, "read_page", {}))
            page = json.dumps({"page": self.random.randint(1, 9), "text": tool_text}, ensure_ascii=False)
            yield answer(id, self.random.choice((tool_text, page)))
        yield assistant(self.talk.assistant())
        if text is not None:
            if known is not None:
                yield from (calls((LOOK_UP, LOOK_UP, {})), answer(LOOK_UP, known))
            yield user(text)
            yield assistant(self.talk.assistant())
        elif self.random.random() < 0.5:
            yield from (user(self.talk.user()), assistant(self.talk.assistant()))
        yield from (user(self.random.choice(self.texts["thanks"])), assistant(self.talk.assistant()))

    def complaint(self) -> str:
        """What a user of a bad version says; never the same twice."""
        return self._filled("wrong", self.figure())


def _turns(wires: tuple[Wire, ...]) -> int:
    return sum(wire["role"] == "user" for wire in wires)
