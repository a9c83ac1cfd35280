"""Play a scenario of a suite file, and judge by code what would be sent.

    result = play_job(scenario, Setup())

Every such suite has the figures of `FIGURES`, which distinguish context strategies for any question: values shown,
values outdated, sources reachable, cost of the calls. A figure that the file defines counts the asks that name it. A
message that an answer rests on is reachable if the window shows it, cites it, or one search with the question finds it
(`kit.play.reaches`); a subject with neither references nor a search is unscored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ctxsteward.envelope import Budgets

from ..canaries import normalize, shows
from ..prompt_cost import Prices, call_faults
from ..suites.kit.model_judges import JUDGED, NO_MODEL, text_digest
from ..suites.kit.play import (
    NO_LOOKUP,
    AskMoment,
    BudgetJudge,
    CallMoment,
    ConversationCost,
    EndMoment,
    play,
    reaches,
    request_of,
)
from ..suites.kit.said_texts import texts_of
from ..suites.kit.suite import (
    Ask,
    JudgeCase,
    Metric,
    PlayCounts,
    Rating,
    Scenario,
    ScenarioResult,
    Score,
    Scores,
    Setup,
    Split,
    holds,
    unscored,
)
from ..suites.results import play_made

FIGURES = (
    Metric(name="shown", about="Asks whose wanted values all stand in what would be sent."),
    Metric(name="stale", about="Asks for which an outdated value is shown as if it still held.", better="lower"),
    Metric(name="reachable", about="Messages that answers rest on: shown, cited, or found by one search."),
    Metric(name="within_budget", about="Calls within the budget, or over it only by what must be there."),
    Metric(name="valid", about="Calls that the provider would accept."),
    Metric(
        name="cost_ratio",
        about="Price of the calls with a cached prefix, against sending everything.",
        kind="ratio",
        better="lower",
    ),
)
"""Figures of every suite from a file."""
SYSTEM_SLACK_TOKENS = 64
"""Tokens of the frame around a system prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAsk(Ask):
    """A question of a suite file."""

    of: tuple[int, ...] = ()
    """1-based places of the messages that the answer rests on."""
    own: Metric | None = None
    """The file's own figure that the ask counts for."""
    number: int = 1
    """1-based number among the scenario's asks, in the order of the file."""
    asked: str = ""
    """Question for model judges; empty if they are not asked."""
    label: bool | None = None
    """Answer of a person."""

    @property
    def is_kept_out(self) -> bool:
        """Return whether the wanted values must not be shown."""
        return self.own is not None and self.own.kind == "rate" and self.own.better == "lower"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileScenario(Scenario):
    """A conversation of a suite file."""

    name: str
    metrics: tuple[Metric, ...]
    """Figures of its suite."""
    budget_tokens: int
    stale_always: bool = False
    prices: Prices = field(default_factory=Prices)

    @property
    def id(self) -> str:
        return f"{self.draw.suite}/{self.name}"

    @property
    def split(self) -> Split:
        return self.draw.split


def play_job(scenario: FileScenario, setup: Setup) -> ScenarioResult:
    """Play and judge one conversation."""
    return play_made(lambda: scenario, play_file, scenario.metrics, setup)


def play_file(scenario: Scenario, setup: Setup, counts: PlayCounts) -> Scores:
    """Play a conversation; judge each ask, and budget and validity of each call."""
    assert isinstance(scenario, FileScenario)
    setup = with_room(setup, scenario)
    costs = ConversationCost(setup.counter(), scenario.prices)
    budget = BudgetJudge(costs.sizer)
    for moment in play(scenario, setup, counts, dynamic_tokens=scenario.budget_tokens):
        match moment:
            case CallMoment():
                costs.read(moment)
                faults = budget.faults(moment)
                yield holds("within_budget", not faults, moment.at, "; ".join(faults))
                faults = call_faults(request_of(moment))
                yield holds("valid", not faults, moment.at, "; ".join(faults[:3]))
            case AskMoment(ask=FileAsk() as ask):
                scores = list(judge(ask, moment, scenario)) if ask.wants else []
                yield from scores
                yield from put_to_raters(ask, moment, scores, setup, counts)
            case EndMoment(last=CallMoment()):
                yield Score("cost_ratio", costs.ratio)
            case _:
                yield unscored("cost_ratio", "the conversation has no call: no assistant message after another")


def with_room(setup: Setup, scenario: FileScenario) -> Setup:
    """Enlarge the system section to fit the scenario's prompt, unless the team set its size."""
    if scenario.system is None or "system_tokens" in setup.budgets.model_fields_set:
        return setup
    needed = setup.counter().text(scenario.system) + SYSTEM_SLACK_TOKENS
    if needed <= setup.budgets.system_tokens:
        return setup
    budgets = Budgets(**(setup.budgets.model_dump(exclude_unset=True) | {"system_tokens": needed}))
    return replace(setup, budgets=budgets)


def judge(ask: FileAsk, moment: AskMoment, scenario: FileScenario) -> Scores:
    """Judge one ask: values shown, values outdated, sources reachable."""
    missing = [value for value in ask.wants if not shows(moment.normalized, value)]
    why = f"{ask.kind + ': ' if ask.kind else ''}not shown: {', '.join(map(repr, missing))}"
    if not ask.is_kept_out:
        yield holds("shown", not missing, moment.at, why)
    if ask.own is not None:
        yield own_score(ask, ask.own, moment, missing)
    if ask.avoids:
        old = [value for value in ask.avoids if shows(moment.normalized, value)]
        stale = bool(old) and (scenario.stale_always or bool(missing))
        yield Score("stale", float(stale), moment.at, f"outdated, and shown: {', '.join(old)}" if stale else "")
    yield from sources(ask, moment)


def put_to_raters(ask: FileAsk, moment: AskMoment, scores: Sequence[Score], setup: Setup, counts: PlayCounts) -> Scores:
    """Record the answers of code and of a person, and queue the case for model judges.

    Code answers yes if the ask is `shown` and not `stale`.
    """
    if not ask.asked and ask.label is None:
        return
    text = "\n\n".join(f"[{wire['role']}]\n" + "\n".join(texts_of(wire)) for wire in request_of(moment)["messages"])
    figures = {score.metric: score.value for score in scores if score.value is not None}
    answers = {"label": ask.label}
    if "shown" in figures:
        answers = {"code": figures["shown"] == 1 and not figures.get("stale"), **answers}
    for rater, answer in answers.items():
        if answer is not None:
            rating = Rating(ask=ask.number, at=moment.at, rater=rater, text=text_digest(text), answer=answer)
            counts.ratings.append(rating)
    if ask.asked and setup.judges:
        counts.cases.append(JudgeCase(ask.number, moment.at, ask.asked, text))
    elif ask.asked:
        yield unscored(JUDGED.name, NO_MODEL, moment.at)


def own_score(ask: FileAsk, metric: Metric, moment: AskMoment, missing: list[str]) -> Score:
    """Score the file's own figure that an ask counts for."""
    shown = len(ask.wants) - len(missing)
    why = f"not shown: {', '.join(map(repr, missing))}" if missing else ""
    if metric.kind == "count":
        return Score(metric.name, len(missing), moment.at, why)
    if metric.kind == "mean":
        return Score(metric.name, shown / len(ask.wants), moment.at, why)
    if metric.better == "lower":
        is_shown = not missing
        return Score(metric.name, float(is_shown), moment.at, f"shown: {', '.join(ask.wants)}" if is_shown else "")
    return holds(metric.name, not missing, moment.at, why)


def sources(ask: FileAsk, moment: AskMoment) -> Iterator[Score]:
    """Score whether each message that an answer rests on can be reached."""
    for place in ask.of:
        text = normalize(moment.text_at(place))
        value = next((value for value in ask.wants if shows(text, value)), ask.wants[0])
        reached = reaches(moment, place, ask.question, value)
        if reached is None:
            yield unscored("reachable", NO_LOOKUP, moment.at)
        else:
            yield holds("reachable", reached, moment.at, f"nothing leads to message {place}")
