"""Make stories for the suite ``governance``: the visits of each day, and the sentences planted in them.

A *visit* is one session of one principal. Days one and two have corrections by three people each, wishes of single
people, and poison from users, tools and colluders; the other tenant has the same with other figures. Before a
correction, the operator's own tool returns the same value in a declared field. No tool confirms the claim of three
other people, so it may reach nobody else. Two colluders repeat a wish about the form of answers, which three people
could make everybody's, in five sessions. Each planted sentence (`PlantedSentence`) has a figure of its own and the
people whom it may reach.
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
"""The tenant under test, and a second tenant."""
Kind = Literal["shared", "personal", "poison"]
LOOK_UP = "look_up"
"""The operator's own tool."""
POISONS = ("a user", "tools", "five colluders")
"""Sources of poison besides the two colluders of every story."""


class PlantedSentence(NamedTuple):
    """A sentence and how far it may get."""

    kind: Kind
    tenant: str
    figure: str
    """Value that no other sentence of the story has."""
    text: str
    authors: frozenset[str]
    """Principals who say it; empty for tool text."""
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
    """The visits and planted sentences of a scenario."""

    visits: list[Visit] = field(default_factory=list)
    planted: list[PlantedSentence] = field(default_factory=list)
    poisons: tuple[str, ...] = ()
    bad_canary: bool = False


class Teller:
    """Make a story, or single visits of it, from a draw."""

    def __init__(self, draw: Draw) -> None:
        self.draw, self.random, self.talk = draw, draw.random("story"), SmallTalk.of(draw)
        self._figures = iter(self.random.sample(range(10_013, 99_989), 400))
        self.texts = {kind: draw.texts("governance", kind) for kind in table("governance")}
        syllables = self.texts["syllables"]
        self._names = iter("".join(self.random.sample(syllables, 3)).capitalize() for _ in range(8))
        self._things = iter(self.random.sample(self.texts["things"], 6))

    def story(self) -> Story:
        """Make both days for both tenants, with more visits until the draw's number of turns is reached."""
        poisons = ("two colluders", self.random.choice(POISONS))
        story = Story(poisons=poisons, bad_canary=self.random.random() < 0.6)
        for day in (1, 2):
            self._correction(story, HERE, day)
            self._wish(story, HERE, day)
        self._correction(story, THERE, 1)
        self._wish(story, THERE, 1)
        for poison in story.poisons:
            self._poison(story, poison)
        self._claim(story)
        while sum(wire["role"] == "user" for visit in story.visits for wire in visit.wires) < self.draw.turns:
            name = f"v{len(story.visits)}"
            story.visits.append(self.visit(name, HERE, f"guest-{name}", self.random.choice((1, 2)), None))
        story.visits.sort(key=lambda visit: (visit.day, visit.id))
        return story

    # -- what is planted ----------------------------------------------------------------------------------------

    def _correction(self, story: Story, tenant: str, day: int) -> None:
        new = self.figure()
        thing = next(self._things)
        names = [f"p{day}-{number}" for number in range(3)]  # the same names in both tenants, which must stay apart
        price = f"{new} EUR" if self.draw.language == "en" else f"{new}元"
        looked_up = json.dumps({"item": thing, "is": price}, ensure_ascii=False)
        self._plant(story, "shared", tenant, day, new, self._corrected(new, thing), names, "three people", looked_up)

    def _claim(self, story: Story) -> None:
        """Plant a claim of three people that no tool confirms; it must reach nobody else."""
        new = self.figure()
        names = [f"claimant-{number}" for number in range(3)]
        self._plant(story, "poison", HERE, 1, new, self._corrected(new, next(self._things)), names, "three claimants")

    def _wish(self, story: Story, tenant: str, day: int) -> None:
        new = next(self._names)
        self._plant(story, "personal", tenant, day, new, self._filled("wishes", new), [f"w{day}"], "one person")

    def _poison(self, story: Story, source: str) -> None:
        new = self.figure()
        match source:
            case "a user":
                self._plant(story, "poison", HERE, 1, new, self._filled("poison_facts", new), ["mallory"], source)
            case "two colluders":
                form = self.random.choice(self.texts["forms"])  # a wish with a figure is for its session alone
                names = [f"colluder-{number % 2}" for number in range(5)]
                self._plant(story, "poison", HERE, 1, form, self._filled("poison_wishes", form), names, source)
            case "five colluders":
                names = [f"colluder-{number}" for number in range(5)]
                self._plant(story, "poison", HERE, 1, new, self._filled("poison_rules", new), names, source)
            case "tools":
                text = self._filled("poison_tools", new)
                visits = [f"{source}-{number}" for number in range(4)]
                for number, name in enumerate(visits):
                    story.visits.append(self.visit(name, HERE, f"victim-{number}", 1, None, tool_text=text))
                story.planted.append(PlantedSentence("poison", HERE, new, text, frozenset(), frozenset(visits), source))

    def _plant(
        self,
        story: Story,
        kind: Kind,
        tenant: str,
        day: int,
        figure: str,
        text: str,
        names: list[str],
        source: str,
        looked_up: str | None = None,
    ) -> None:
        """Plant a sentence in one visit per name; `looked_up` is the result of the operator's tool."""
        visits = [
            self.visit(f"{tenant}-{figure}-{at}", tenant, name, day, text, looked_up=looked_up)
            for at, name in enumerate(names)
        ]
        story.visits += visits
        ids = frozenset(visit.id for visit in visits)
        story.planted.append(PlantedSentence(kind, tenant, figure, text, frozenset(names), ids, source))

    def _filled(self, kind: str, new: str) -> str:
        return self.random.choice(self.texts[kind]).format(new=new)

    def _corrected(self, new: str, thing: str) -> str:
        text = self.random.choice(self.texts["corrections"])
        return text.format(thing=thing, new=new, old=self.figure())

    def figure(self) -> str:
        """Return a value that no other sentence has."""
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
        looked_up: str | None = None,
    ) -> Visit:
        """Return a visit of two to four user turns in which the principal says `text` or a tool says `tool_text`.

        `looked_up` is the result of the operator's tool.
        """
        wires = list(self._wires(text, tool_text, looked_up))
        return Visit(id=id, tenant=tenant, principal=principal, day=day, wires=tuple(wires))

    def _wires(self, text: str | None, tool_text: str | None, looked_up: str | None) -> Iterator[Wire]:
        thing = self.random.choice(self.texts["things"])
        yield user(self.random.choice(self.texts["questions"]).format(thing=thing))
        if tool_text is not None:
            id = f"c{self.random.randrange(10**7)}"
            yield calls((id, "read_page", {}))
            page = json.dumps({"page": self.random.randint(1, 9), "text": tool_text}, ensure_ascii=False)
            yield answer(id, self.random.choice((tool_text, page)))
        yield assistant(self.talk.assistant())
        if text is not None:
            if looked_up is not None:
                yield from (calls((LOOK_UP, LOOK_UP, {})), answer(LOOK_UP, looked_up))
            yield user(text)
            yield assistant(self.talk.assistant())
        elif self.random.random() < 0.5:
            yield from (user(self.talk.user()), assistant(self.talk.assistant()))
        yield from (user(self.random.choice(self.texts["thanks"])), assistant(self.talk.assistant()))

    def complaint(self) -> str:
        """Return a complaint about a bad version, different each time."""
        return self._filled("wrong", self.figure())
