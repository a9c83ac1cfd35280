"""The suite ``agents``: with tools, every request is valid and in budget, the task stays, results stay reachable.

Turns of talk alternate with tool use of every shape: up to 60 steps in one turn, parallel calls, answers that come late
(behind the user's next words), never, or far too large, errors with retries, repeated results, images, interruptions.
Ids are unique in a conversation except in turns of the kind ``reused ids``.

At every third call (every fifth in long scenarios), and wherever a history needed repair, both providers' payloads are
checked against their published rules. A call may exceed its budget only by the part that is always verbatim. Results
that the model has not seen are verbatim, or excerpts with their reference; each result is available whole under its
number, whatever was compacted.

Source: `prompt_cost`, `replay`; issues of well-known projects (orphaned pairs, wedged sessions, lost tasks).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from random import Random

from ctxsteward.schemas.message import Wire

from ..phrasings import table
from ..prompt_cost import anthropic_faults, call_faults
from ..replay import budget_faults
from ..subjects.port import Archive, Outputs
from .kit import pasted_content as pasted
from .kit.play import (
    AskMoment,
    BudgetJudge,
    CallMoment,
    ConversationCost,
    EndMoment,
    PrefixJudge,
    PromptMoment,
    asked_within_budget,
    compacted,
    last_turn_missing,
    play,
    request_of,
)
from .kit.suite import LONG_TURNS, Ask, Draw, PlayCounts, Scenario, Score, Scores, Setup, holds, unscored
from .kit.talk import SmallTalk, answer, assistant, user

STEPS = (3, 12)
LONG_STEPS = (20, 60)
HUGE_ROWS = (300, 1_500)


class Loops:
    """Write turns; remember the results of tools."""

    def __init__(self, rng: Random, talk: SmallTalk, draw: Draw) -> None:
        self.rng, self.talk = rng, talk
        self.phrasings = {kind: draw.texts("agents", kind) for kind in table("agents")}
        self.results: list[str] = []
        self._ids = 0
        self._kinds: dict[str, Callable[[], Iterator[Wire]]] = {
            "talk": self._talk,
            "single": lambda: self._loop(1),
            "parallel": self._parallel,
            "loop": lambda: self._loop(rng.randint(*STEPS)),
            "long loop": lambda: self._loop(rng.randint(*LONG_STEPS)),
            "retry": self._retry,
            "late": self._late,
            "never": self._never,
            "interrupted": self._interrupted,
            "huge": self._huge,
            "duplicate": self._duplicate,
            "images": self._images,
            "reused ids": self._reused,
        }

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds of turns."""
        return tuple(self._kinds)

    def play(self, kind: str) -> list[Wire]:
        """Return the messages of one turn."""
        return list(self._kinds[kind]())

    # -- turns ----------------------------------------------------------------------------------------------------

    def _talk(self) -> Iterator[Wire]:
        yield user(self.talk.user())
        yield assistant(self.talk.assistant())

    def _loop(self, steps: int) -> Iterator[Wire]:
        yield self._order()
        for _ in range(steps):
            yield from self._step(1 if self.rng.random() < 0.85 else self.rng.randint(2, 3))
        yield assistant(self.talk.assistant())

    def _parallel(self) -> Iterator[Wire]:
        yield self._order()
        yield from self._step(self.rng.randint(2, 5))
        yield assistant(self.talk.assistant())

    def _retry(self) -> Iterator[Wire]:
        """Yield failed calls, then the same call with success."""
        yield self._order()
        name, arguments, result = self._output()
        for _ in range(self.rng.randint(1, 3)):
            id = self._id()
            yield pasted.calls((id, name, arguments), text=self._says())
            yield self._answer(id, self.rng.choice(self.phrasings["errors"]).format(n=self.rng.randint(100, 9_999)))
        id = self._id()
        yield pasted.calls((id, name, arguments))
        yield self._answer(id, result)
        yield assistant(self.talk.assistant())

    def _late(self) -> Iterator[Wire]:
        """Yield a turn in which the user speaks before the results arrive."""
        yield self._order()
        ids, rows = self._calls(self.rng.randint(1, 3))
        yield pasted.calls(*((id, name, arguments) for id, (name, arguments, _) in zip(ids, rows, strict=True)))
        yield self._break()
        yield assistant(self.talk.assistant())
        yield from (self._answer(id, result) for id, (_, _, result) in zip(ids, rows, strict=True))
        yield assistant(self.talk.assistant())

    def _never(self) -> Iterator[Wire]:
        """Yield a turn with unanswered calls; the user or the agent speaks next."""
        yield self._order()
        ids, rows = self._calls(self.rng.randint(2, 4))
        yield pasted.calls(*((id, name, arguments) for id, (name, arguments, _) in zip(ids, rows, strict=True)))
        answered = self.rng.randint(0, len(ids) - 1)
        yield from (self._answer(id, result) for id, (_, _, result) in list(zip(ids, rows, strict=True))[:answered])
        if self.rng.random() < 0.5:
            yield self._break()
        yield assistant(self.talk.assistant())

    def _interrupted(self) -> Iterator[Wire]:
        """Yield a loop that the user interrupts and the agent continues."""
        yield self._order()
        for _ in range(self.rng.randint(1, 4)):
            yield from self._step(1)
        yield self._break()
        for _ in range(self.rng.randint(1, 4)):
            yield from self._step(1)
        yield assistant(self.talk.assistant())

    def _huge(self) -> Iterator[Wire]:
        yield self._order()
        yield from self._step(1, rows=self.rng.randint(*HUGE_ROWS))
        yield from self._step(1)
        yield assistant(self.talk.assistant())

    def _duplicate(self) -> Iterator[Wire]:
        """Yield calls with the same result word for word."""
        yield self._order()
        name, arguments, result = self._output()
        again = self.rng.choice(self.results[-20:]) if self.results and self.rng.random() < 0.5 else result
        for _ in range(self.rng.randint(2, 3)):
            id = self._id()
            yield pasted.calls((id, name, arguments), text=self._says())
            yield self._answer(id, again)
        yield assistant(self.talk.assistant())

    def _images(self) -> Iterator[Wire]:
        text = {"type": "text", "text": self.talk.user()}
        yield {"role": "user", "content": [text, *(self._image() for _ in range(self.rng.randint(1, 2)))]}
        if self.rng.random() < 0.5:
            yield from self._step(1)
        yield assistant(self.talk.assistant())

    def _reused(self) -> Iterator[Wire]:
        """Yield calls of an agent that reuses an id."""
        yield self._order()
        for _ in range(2):
            name, arguments, result = self._output()
            yield pasted.calls(("call_1", name, arguments))
            yield self._answer("call_1", result)
        yield assistant(self.talk.assistant())

    # -- parts ----------------------------------------------------------------------------------------------------

    def _order(self) -> Wire:
        order = self.rng.choice(self.phrasings["orders"]).format(thing=self.rng.choice(self.talk.subject.things))
        where = self.rng.choice(self.phrasings["where"]).format(path=pasted.path_of(self.rng))
        form = self.rng.random()
        return user(self.talk.join(self.talk.user() if form < 0.4 else "", order, where if form > 0.3 else ""))

    def _break(self) -> Wire:
        interruption = self.rng.choice(self.phrasings["breaks"])
        return user(self.talk.join(interruption, self.talk.user() if self.rng.random() < 0.7 else ""))

    def _step(self, calls: int, rows: int | None = None) -> Iterator[Wire]:
        ids, outputs = self._calls(calls, rows)
        named = ((id, name, arguments) for id, (name, arguments, _) in zip(ids, outputs, strict=True))
        yield pasted.calls(*named, text=self._says())
        yield from (self._answer(id, result) for id, (_, _, result) in zip(ids, outputs, strict=True))

    def _calls(self, count: int, rows: int | None = None) -> tuple[list[str], list[pasted.PastedOutput]]:
        return [self._id() for _ in range(count)], [self._output(rows) for _ in range(count)]

    def _output(self, rows: int | None = None) -> pasted.PastedOutput:
        return self.talk.fresh(lambda: pasted.tool_output(self.rng, self.talk.subject.things, rows, self.talk.split))

    def _says(self) -> str | None:
        return self.rng.choice(self.phrasings["steps"]) or None

    def _answer(self, id: str, result: str) -> Wire:
        self.results.append(result)
        return answer(id, result)

    def _id(self) -> str:
        self._ids += 1
        return f"call_{self._ids}_{self.rng.randrange(16**5):05x}"

    def _image(self) -> Wire:
        """Return an image part with a size; only the header of the image matters."""
        head = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
        size = self.rng.choice((64, 200, 512, 900)).to_bytes(4, "big") + self.rng.choice((64, 300, 768)).to_bytes(
            4, "big"
        )
        data = base64.b64encode(head + size + b"\x08\x06\x00\x00\x00" + self.rng.randbytes(60)).decode()
        return {
            "type": "image_url",
            "image_url": {"url": f"data:image/png;base64,{data}", "detail": self.rng.choice(("low", "high"))},
        }


CHECKED_EVERY = 5
"""Interval of the calls of a long scenario that are rendered for both providers, besides calls with repairs."""
CHECKED_EVERY_SHORT = 3
ASKS = 4
WEIGHTS = {
    "talk": 44,
    "single": 16,
    "parallel": 8,
    "loop": 6,
    "retry": 5,
    "late": 4,
    "never": 4,
    "interrupted": 4,
    "huge": 3,
    "duplicate": 3,
    "images": 3,
    "reused ids": 2,
}
"""Weights of the kinds, about 100 in all; long loops are placed separately."""
LONG_LOOPS = 1


def make(draw: Draw) -> Scenario:
    """Make an agent's work on one task, turn by turn."""
    rng = draw.random("agents")
    code = f"{rng.choice(('JOB', 'CHG', 'REQ', 'WO'))}-{rng.randint(1_000, 99_999)}"
    talk = SmallTalk.of(draw, avoid=(code,))
    loops = Loops(rng, talk, draw)
    task = rng.choice(loops.phrasings["tasks"]).format(thing=rng.choice(talk.subject.things), code=code)
    kinds = _kinds(rng, draw.turns)
    turns = [loops.play(kind) for kind in kinds]
    turns[0][0] = {"role": "user", "content": task}
    messages = _until([message for turn in turns for message in turn], draw.turns)
    asks = (
        Ask(
            metric="task_shown",
            after=at,
            question=rng.choice(loops.phrasings["about_task"]),
            wants=(code,),
            kind="task",
        )
        for at in [*sorted(rng.sample(range(2, len(messages)), ASKS - 1)), len(messages)]
    )
    return Scenario(
        draw=draw,
        messages=tuple(messages),
        asks=tuple(asks),
        tags={kind: str(kinds.count(kind)) for kind in sorted(set(kinds))},
    )


def _kinds(rng: Random, turns: int) -> list[str]:
    """Draw the kind of each turn: every kind at least once, long loops at places of their own."""
    places = [*WEIGHTS, *rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=turns - len(WEIGHTS))]
    rng.shuffle(places)
    for _ in range(LONG_LOOPS):
        places[rng.randrange(1, turns)] = "long loop"
    places[0] = rng.choice(("single", "loop"))
    return places


def _until(messages: Sequence[Wire], turns: int) -> list[Wire]:
    """Return the first `turns` user turns, up to a text of the assistant; interruptions count as turns."""
    beginning: list[Wire] = []
    user_turns = 0
    for message in messages:
        user_turns += message["role"] == "user"
        if user_turns > turns:
            break
        beginning.append(message)
    while beginning[-1]["role"] != "assistant" or beginning[-1].get("tool_calls"):
        beginning.pop()
    return beginning


def play_agents(scenario: Scenario, setup: Setup, stage: PlayCounts) -> Scores:
    """Play a scenario; judge every call, the asks, and every result at the end."""
    costs, prefix, compactions = ConversationCost(setup.counter()), PrefixJudge(), 0
    budget = BudgetJudge(costs.sizer)
    every = CHECKED_EVERY if scenario.turns >= LONG_TURNS[0] else CHECKED_EVERY_SHORT
    for moment in play(scenario, setup, stage):
        match moment:
            case CallMoment():
                compactions += moment.compacted
                if moment.number % every == 0 or _is_odd(moment, every):
                    yield from valid(moment)
                yield from kept(moment, budget)
                yield from prefix.read("prefix_stable", moment)
                costs.read(moment)
            case AskMoment():
                yield from valid(moment)
                yield asked_within_budget("within_budget", moment, budget)
                shown = moment.ask.wants[0] in moment.window
                yield holds("task_shown", shown, moment.at, f"{moment.ask.wants[0]} is not shown", "task")
            case EndMoment():
                yield from resolvable(moment)
                yield compacted(compactions, moment)
    yield Score("cost_ratio", costs.ratio)


def _is_odd(moment: CallMoment, every: int) -> bool:
    """Return whether this call repaired or compacted something, so that it is checked in any case."""
    envelope = moment.prompt.envelope
    return bool(envelope and envelope.findings) or bool(moment.prompt.compacted and every < CHECKED_EVERY)


def valid(moment: PromptMoment) -> Scores:
    """Check both providers' payloads; Anthropic's only if the subject makes one."""
    faults = call_faults(request_of(moment))
    yield holds("valid_openai", not faults, moment.at, "; ".join(faults[:3]))
    if moment.prompt.anthropic is None:
        yield unscored("valid_anthropic", "the subject makes no request to Anthropic", moment.at)
        return
    faults = anthropic_faults(moment.prompt.anthropic())
    yield holds("valid_anthropic", not faults, moment.at, "; ".join(faults[:3]))


def kept(moment: CallMoment, budget: BudgetJudge) -> Scores:
    """Check budget, task, new results and last raw turn of one call."""
    over = budget.is_over(moment)
    yield Score("over_budget", float(over), moment.at, f"{budget.tokens(moment)} tokens" if over else "")
    faults = budget.faults(moment)
    if moment.ours is not None:
        faults += budget_faults(moment.ours.envelope, moment.ours.session)
    yield holds("within_budget", not faults, moment.at, "; ".join(faults))
    if over:
        yield holds("over_budget_legitimate", not faults, moment.at, "; ".join(faults))
    task = next(n for n, wire in enumerate(moment.wires, 1) if wire["role"] == "user")
    is_kept = moment.text_at(task) in moment.window or moment.leads(task)
    yield holds("task_kept", is_kept, moment.at, f"the task, message {task}, is neither shown nor cited", "task")
    for ordinal in _unseen(moment.wires):
        text = moment.wires[ordinal - 1]["content"]
        shown = text in moment.window or moment.leads(ordinal)
        why = f"§{ordinal} of {len(text)} characters: neither verbatim nor named"
        yield holds("results_shown", shown, moment.at, why)
    missing = last_turn_missing(moment)
    yield holds("last_turn", not missing, moment.at, f"not word for word: {missing}")


def _unseen(wires: Sequence[Wire]) -> Iterator[int]:
    """Yield the ordinals of tool results behind the newest assistant message."""
    for ordinal in range(len(wires), 0, -1):
        role = wires[ordinal - 1]["role"]
        if role == "assistant":
            return
        if role == "tool":
            yield ordinal


def resolvable(ended: EndMoment) -> Scores:
    """Check at the end that each tool result is available: by number, in the last window, or by a shown reference."""
    places = [n for n, message in enumerate(ended.wires, 1) if message["role"] == "tool"]
    if not isinstance(ended.dialogue, (Archive, Outputs)) or ended.last is None:
        yield unscored("results_resolvable", "the subject has no references that resolve")
        return
    references = {place: reference for reference, place in ended.references.items()}
    for number, place in enumerate(places, 1):
        text = ended.wires[place - 1]["content"]
        if isinstance(ended.dialogue, Outputs):
            is_there = ended.output(number) == text
        else:
            is_there = text in ended.last.window or ended.resolved(references.get(place, "")) == text
        yield holds("results_resolvable", is_there, f"tool output {number} of {len(places)}", "not there, or not whole")
