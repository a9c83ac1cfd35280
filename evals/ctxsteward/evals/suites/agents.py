"""Agents with tools: every request valid and in budget, the task kept, results shown when new and whole for ever.

Turns of talk and of tool use of every shape (`loops`): up to 60 steps in one turn, calls at once, answers late or
never, errors and retries, results larger than the budget, the same results again, images, people who break in. At every
third call (of long scenarios every fifth), and wherever a history needed repair, both providers' payloads are held to
their published rules. A call may be over budget only by what is always verbatim. Results that the model has not seen
are verbatim, or an excerpt with their reference; any result is there whole under its number, whatever was compacted.

Source: `validity`, `transcripts`; issues of well-known projects (orphaned pairs, wedged sessions, lost tasks).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from ctxsteward.envelope import Envelope, Session
from ctxsteward.schemas import Wire

from ..transcripts import Call, Prefix, budget_faults
from ..validity import anthropic_faults, openai_faults
from .judging import dynamic_of, named, prefix_kept
from .loops import Loops
from .playing import Asked, Called, Ended, play
from .pricing import COST_RATIO, Costs
from .scenario import LONG_TURNS, Ask, Draw, Scenario
from .scoring import Metric, Score, holds
from .setup import Setup
from .suite import Scores, Stage, Suite
from .talk import Talk
from .texts_agents import DEV, HELD_OUT

CHECKED_EVERY = 5
"""Calls of a long scenario of which one is rendered for both providers, beside those after something odd."""
CHECKED_EVERY_SHORT = 3
ASKS = 4
WEIGHTS = {
    "talk": 44, "single": 16, "parallel": 8, "loop": 6, "retry": 5, "late": 4, "never": 4, "interrupted": 4, "huge": 3,
    "duplicate": 3, "images": 3, "reused ids": 2,
}  # fmt: skip
"""Of 100 turns or so; long loops are placed apart."""
LONG_LOOPS = 1
METRICS = (
    Metric(name="valid_openai", about="Requests that OpenAI's published rules accept."),
    Metric(name="valid_anthropic", about="Requests that Anthropic's published rules accept."),
    Metric(name="within_budget", about="Calls in every budget, or over it only by what is always verbatim."),
    Metric(name="over_budget", about="Calls over the dynamic budget.", better="lower"),
    Metric(name="over_budget_legitimate", about="Of these, those over it only by what is always verbatim."),
    Metric(name="task_kept", about="Calls that show the task, or cite it."),
    Metric(name="task_shown", about="Questions for the task whose envelope shows its reference number."),
    Metric(name="results_shown", about="Results not seen yet: verbatim, or an excerpt with their reference."),
    Metric(name="results_resolvable", about="Results that are there whole under their number at the end."),
    Metric(name="last_turn", about="Calls that show the newest user and assistant texts word for word."),
    Metric(name="prefix_stable", about="Calls whose bytes extend the last one's, where nothing was compacted."),
    Metric(name="compactions", about="Compactions of a scenario.", kind="mean"),
    COST_RATIO,
)  # fmt: skip


def make(draw: Draw) -> Scenario:
    """An agent's work on one task, turn by turn."""
    rng = draw.random("agents")
    phrasings = (DEV if draw.split == "docs" else HELD_OUT)[draw.language]
    code = f"{rng.choice(('JOB', 'CHG', 'REQ', 'WO'))}-{rng.randint(1_000, 99_999)}"
    talk = Talk.of(draw, avoid=(code,))
    loops = Loops(rng, talk, phrasings)
    task = rng.choice(phrasings.tasks).format(thing=rng.choice(talk.subject.things), code=code)
    kinds = _kinds(rng, draw.turns)
    turns = [loops.play(kind) for kind in kinds]
    turns[0][0] = {"role": "user", "content": task}
    messages = _until([message for turn in turns for message in turn], draw.turns)
    asks = (
        Ask(metric="task_shown", after=at, question=rng.choice(phrasings.about_task), wants=(code,), kind="task")
        for at in [*sorted(rng.sample(range(2, len(messages)), ASKS - 1)), len(messages)]
    )
    return Scenario(
        draw=draw,
        messages=tuple(messages),
        asks=tuple(asks),
        tags={kind: str(kinds.count(kind)) for kind in sorted(set(kinds))},
    )


def _kinds(rng: Random, turns: int) -> list[str]:
    """Every kind at least once, long loops at places of their own."""
    places = [*WEIGHTS, *rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=turns - len(WEIGHTS))]
    rng.shuffle(places)
    for _ in range(LONG_LOOPS):
        places[rng.randrange(1, turns)] = "long loop"
    places[0] = rng.choice(("single", "loop"))
    return places


def _until(messages: Sequence[Wire], turns: int) -> list[Wire]:
    """The first so many user turns, to an assistant's text: interruptions are turns too."""
    kept: list[Wire] = []
    said = 0
    for message in messages:
        said += message["role"] == "user"
        if said > turns:
            break
        kept.append(message)
    while kept[-1]["role"] != "assistant" or kept[-1].get("tool_calls"):
        kept.pop()
    return kept


def play_agents(scenario: Scenario, setup: Setup, stage: Stage) -> Scores:
    """Play it; judge every call, the asks, and every result at the end."""
    costs, prefix, compactions = Costs(setup.builder().counter), Prefix(), 0
    every = CHECKED_EVERY if scenario.turns >= LONG_TURNS[0] else CHECKED_EVERY_SHORT
    for moment in play(scenario, setup, stage):
        match moment:
            case Called(call=call):
                compactions += len(call.envelope.reports)
                at = f"call {call.number}, {len(call.wires)} messages said"
                if (
                    call.number % every == 0
                    or call.envelope.findings
                    or (call.envelope.reports and every < CHECKED_EVERY)
                ):
                    yield from valid(call.envelope, at)
                yield from kept(call, at)
                yield from prefix_kept("prefix_stable", prefix, call)
                costs.read(call)
            case Asked():
                yield from valid(moment.envelope, moment.at)
                shown = moment.ask.wants[0] in dynamic_of(moment.envelope)
                yield holds("task_shown", shown, moment.at, f"{moment.ask.wants[0]} is not shown")
            case Ended():
                yield from resolvable(moment.session, moment.wires)
    yield Score("compactions", compactions)
    yield Score("cost_ratio", costs.ratio)


def valid(envelope: Envelope, at: str) -> Iterator[Score]:
    """Both providers' payloads."""
    found = {
        "valid_openai": openai_faults(envelope.render("openai-chat")),
        "valid_anthropic": anthropic_faults(envelope.render("anthropic")),
    }
    for metric, faults in found.items():
        yield holds(metric, not faults, at, "; ".join(faults[:3]))


def kept(call: Call, at: str) -> Iterator[Score]:
    """Budget, task, new results, last raw turn of one call."""
    envelope, state, window = call.envelope, call.session.state, dynamic_of(call.envelope)
    over = envelope.section("dynamic").overflow_tokens > 0
    yield Score(
        "over_budget", float(over), at, f"by {envelope.section('dynamic').overflow_tokens} tokens" if over else ""
    )
    faults = list(budget_faults(envelope, call.session))
    yield holds("within_budget", not faults, at, "; ".join(faults))
    if over:
        yield holds("over_budget_legitimate", not faults, at, "; ".join(faults))
    yield holds("task_kept", state.task in named(envelope), at, f"the task §{state.task} is neither shown nor cited")
    for ordinal in _unseen(call.wires):
        text = call.wires[ordinal - 1]["content"]
        shown = text in window or (ordinal in named(envelope) and f"§{ordinal}" in window)
        yield holds("results_shown", shown, at, f"§{ordinal} of {len(text)} characters: neither verbatim nor named")
    said = [call.session.entry(ordinal).message.text for ordinal in (state.last_user, state.last_text) if ordinal]
    missing = [text for text in said if text not in window]
    yield holds("last_turn", not missing, at, f"not word for word: {missing}")


def _unseen(wires: Sequence[Wire]) -> Iterator[int]:
    """Ordinals of the tool results behind the newest assistant message."""
    for ordinal in range(len(wires), 0, -1):
        role = wires[ordinal - 1]["role"]
        if role == "assistant":
            return
        if role == "tool":
            yield ordinal


def resolvable(session: Session, wires: Sequence[Wire]) -> Iterator[Score]:
    """Every tool result by its number, 1-based."""
    said = [message["content"] for message in wires if message["role"] == "tool"]
    for number, text in enumerate(said, 1):
        try:
            found: str | None = session.tool_output(number).tool_results[0].text
        except KeyError:
            found = None
        yield holds(
            "results_resolvable", found == text, f"tool output {number} of {len(said)}", "not there, or not whole"
        )


SUITE = Suite(
    name="agents",
    about="Agents with tools: requests stay valid and in budget, the task is kept, results stay whole.",
    metrics=METRICS,
    make=make,
    play=play_agents,
)
