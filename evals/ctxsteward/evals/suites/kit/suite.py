"""What a suite is: how its scenarios are made, how one is played and judged, and under which settings.

    suite = EvalSuite(name="verbatim", about=…, metrics=(…), make=make, play=play)
    scenario = suite.make(Draw("verbatim", "ci", 12))
    scores = list(suite.play(scenario, Setup(), PlayCounts()))

`make` is a function of the draw alone; `play` drives the real builder over a real session and yields scores as it goes.
A `Draw` is a suite, a split and a number, so the id of a result is all that is needed to make the same conversation
again. Every ninth scenario is long. The splits share no seed: ``docs`` is what rules may be tuned on, ``ci`` is what CI
runs; suites with phrasings of their own hold some back for it. ``sealed`` has seeds, words, tools and attacks of
its own and is played rarely and on record (`ctxsteward.evals.sealed_openings`): nothing is tuned on it.

A suite yields a `Score` for what it could judge and an `UnscoredCheck` with a reason for what it could not, never 0.
`ScoreTally` adds up one metric of one scenario.

Where something varies from one playing to the next, since a model takes part, a scenario may be played several times.
It stays one scenario, whose value is the mean of its repeats (`suites.results`).

`Setup` says who is judged: our builder with a team's budgets, profile, tokenizer and summarizer, or another subject. A
suite asks for smaller budgets where its scenarios must outgrow them; budgets that the team has set itself stand.

Raises `InputError` for an id that names no scenario.
"""

from __future__ import annotations

import re
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.util import find_spec
from random import Random
from typing import Literal, NamedTuple, Self, cast

from ctxsteward.envelope import Budgets, Counter, EnvelopeBuilder, Profile, Selector, Session, Store, open_store
from ctxsteward.schemas import InputError, Message, Summarizer
from ctxsteward.schemas.eval_result import ScenarioPart
from ctxsteward.schemas.message import Wire
from ctxsteward.schemas.profile import ProfileDocument

from ...phrasings import SPLITS, Language as Language, Split as Split, Texts, texts
from ...subjects import answers
from ...subjects.ours import EnvelopeDialogue
from ...subjects.port import Dialogue, Prompt, Subject, Task
from ...subjects.registry import SUBJECTS

TURNS = (50, 90)
LONG_TURNS = (200, 400)
LONG_EVERY = 9
_ID = re.compile(rf"([a-z-]+)/({'|'.join(SPLITS)})-([0-9]{{1,6}})")


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

    def texts(self, file: str, kind: str) -> Texts:
        """What is said in this draw's language and split."""
        return texts(file, kind, self.language, self.split)

    @classmethod
    def parse(cls, id: str) -> Self:
        """The draw of an id, as results name it.

        >>> Draw.parse("verbatim/ci-12").turns
        64
        """
        found = _ID.fullmatch(id)
        if found is None:
            raise InputError(f"unknown scenario {id!r:.80}; ids look like verbatim/ci-12")
        return cls(found[1], cast(Split, found[2]), int(found[3]))


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


Kind = Literal["rate", "mean", "ratio", "count"]
"""rate: share of checks that held, 0..1; mean: of values; ratio: of two quantities, a mean of one value a scenario;
count: a sum, where every one is one too many."""

MISSES_KEPT = 5
"""Of one metric of one scenario."""
WHY_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure that a suite gives."""

    name: str
    about: str
    """One sentence: what is counted."""
    kind: Kind = "rate"
    better: Literal["higher", "lower"] = "higher"
    unit: str = ""


class Score(NamedTuple):
    """One check."""

    metric: str
    value: float
    """1 or 0 of a rate."""
    at: str = ""
    """Where: ``turn 41``, ``§17``."""
    why: str = ""
    """What was found, where it is not what is wanted."""
    of: str = ""
    """The distinct thing it is about, where one thing is checked again and again: an aim, a planted value, a result."""


class UnscoredCheck(NamedTuple):
    """A check that could not be made."""

    metric: str
    reason: str
    at: str = ""


@dataclass(slots=True)
class ScoreTally:
    """One metric of one scenario."""

    count: int = 0
    total: float = 0.0
    misses: list[Score] = field(default_factory=list)
    """Checks that did not hold, the first few."""
    unscored: Tally[str] = field(default_factory=Tally)
    things: dict[str, ScenarioPart] = field(default_factory=dict)
    """The checks of each distinct thing that scores name; those that name none stand under the empty text."""
    repeats: tuple[ScenarioPart, ...] = ()
    """What each playing gave, where there were several."""

    def add(self, score: Score, metric: Metric) -> None:
        self.count += 1
        self.total += score.value
        total, checks = self.things.get(score.of, (0.0, 0))
        self.things[score.of] = ScenarioPart(total + score.value, checks + 1)
        missed = score.why if metric.kind != "rate" else score.value < 1 and metric.better == "higher"
        missed = missed or (metric.kind == "rate" and metric.better == "lower" and score.value > 0)
        if missed and len(self.misses) < MISSES_KEPT:
            self.misses.append(score._replace(why=score.why[:WHY_CHARS]))

    @property
    def mean(self) -> float:
        return self.total / self.count

    @property
    def distinct(self) -> ScenarioPart:
        """The sum over distinct things of the share of their checks that held, and how many they are.

        The mean of a thing's checks, not the worst of them: that would fall with the number of times it is checked. A
        check that names no thing is one of its own.
        """
        named = [part for of, part in self.things.items() if of]
        alone = self.things.get("", ScenarioPart(0.0, 0))
        return ScenarioPart(alone.total + sum(p.total / p.checks for p in named), alone.checks + len(named))


class JudgeCase(NamedTuple):
    """A statement or a question about the text that would be sent at one place."""

    ask: int
    """Which ask of its scenario, from 1."""
    at: str
    asked: str
    """What is to be answered with yes or no."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """One rater's answer about one case."""

    ask: int
    at: str
    rater: str
    """``code``, ``label``, or the name of a model."""
    text: str
    """Digest of the text that it was shown."""
    answer: bool | None
    """None: it could not be had, for this `reason`."""
    reason: str = ""
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    """None: no model, or no price was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """What one scenario came to."""

    id: str
    turns: int
    messages: int
    builds: int
    """Envelopes that were made for model calls."""
    cpu_seconds: float
    tallies: dict[str, ScoreTally]
    """By metric."""
    error: str | None = None
    """Why it ended early: an exception of the product is a failed scenario, not a failed run."""
    cases: tuple[JudgeCase, ...] = ()
    """What is still to be put to model judges; empty once it was."""
    ratings: tuple[Rating, ...] = ()
    """What each rater said of each case, in every repeat."""


def tallied(found: Iterable[Score | UnscoredCheck], metrics: Iterable[Metric]) -> dict[str, ScoreTally]:
    """Scores added up by metric; a metric that nothing was said of has an empty tally."""
    known = {metric.name: metric for metric in metrics}
    tallies = {name: ScoreTally() for name in known}
    add_to(tallies, found, known)
    return tallies


def add_to(tallies: dict[str, ScoreTally], found: Iterable[Score | UnscoredCheck], known: dict[str, Metric]) -> None:
    """Add scores to tallies as they come."""
    for one in found:
        if isinstance(one, UnscoredCheck):
            tallies[one.metric].unscored[one.reason] += 1
        else:
            tallies[one.metric].add(one, known[one.metric])


def holds(metric: str, ok: bool, at: str = "", why: str = "", of: str = "") -> Score:
    """A check that holds or not.

    >>> holds("verbatim", False, "turn 3", "the last user message is cut").value
    0.0
    """
    return Score(metric, float(ok), at, "" if ok else why, of)


DYNAMIC_TOKENS = 2_000
"""Of a scenario: 50 turns outgrow it several times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Who is judged, and the settings of our builder where it is."""

    subject: Subject | None = None
    """None: our builder, with the settings below."""

    model: str | None = None
    tokenizer: str = "o200k_base"
    budgets: Budgets = field(default_factory=Budgets)
    """Fields that were set count for every suite; `dynamic_tokens` is the suite's where it was not set."""
    summarizer: str | Summarizer = "extractive"
    selector: Selector | Literal["heuristic"] | None = "heuristic"
    profile: ProfileDocument | None = None
    """Stands in every scenario that brings none of its own."""
    repeat: int = 1
    """How often a scenario is played, and put to each model judge."""
    judges: tuple[str, ...] = ()
    """Names of model judges that are asked, with the version of the prompt they get."""
    in_loop: str | None = None
    """Name of the model that summarizes and selects (`model_runs`)."""

    @property
    def may_vary(self) -> bool:
        """Whether two playings of a scenario may differ before a judge is asked: other people's code takes part."""
        foreign = self.subject is not None and self.subject.name not in SUBJECTS
        return foreign or self.summarizer != "extractive"

    def builder(self, *, dynamic_tokens: int = DYNAMIC_TOKENS) -> EnvelopeBuilder:
        """A new builder; `dynamic_tokens` where the setup says nothing."""
        budgets = self.budgets
        if "dynamic_tokens" not in budgets.model_fields_set:
            budgets = Budgets(**(budgets.model_dump(exclude_unset=True) | {"dynamic_tokens": dynamic_tokens}))
        tokenizer = None if self.model else self.tokenizer
        return EnvelopeBuilder(
            self.model, tokenizer=tokenizer, budgets=budgets, summarizer=self.summarizer, selector=self.selector
        )

    def counter(self) -> Counter:
        """Counts tokens as the judge does."""
        return self.builder(dynamic_tokens=DYNAMIC_TOKENS).counter

    def task(self, scenario: Scenario, *, dynamic_tokens: int = DYNAMIC_TOKENS) -> Task:
        """The scenario's conversation as any subject is given it."""
        given = "dynamic_tokens" in self.budgets.model_fields_set
        budget_tokens = self.budgets.dynamic_tokens if given else dynamic_tokens
        id = sha256(scenario.id.encode()).hexdigest()[:16]  # a scenario's own id is all that its answers are made from
        return Task(id, budget_tokens, scenario.system, scenario.tools)

    @contextmanager
    def dialogue(self, scenario: Scenario, task: Task, *, store: Store | None = None) -> Iterator[Dialogue]:
        """The subject's dialogue for a scenario; what it opened is closed afterwards. A given store stays open."""
        with ExitStack() as stack:
            if self.subject is None:
                opened = store if store is not None else stack.enter_context(self.store())
                builder = self.builder(dynamic_tokens=task.budget_tokens)
                yield EnvelopeDialogue(builder, self.session(scenario, opened))
                return
            counter = self.counter()
            dialogue = self.subject.open(task, lambda wire: counter.message(Message.from_wire(wire)))
            stack.callback(getattr(dialogue, "close", lambda: None))
            yield dialogue

    def say(self, dialogue: Dialogue, wire: Wire) -> None:
        """Tell the subject's dialogue what was said."""
        dialogue.add(wire) if self.subject is None else answers.say(dialogue, wire)

    def prompt(self, dialogue: Dialogue, question: str | None = None) -> Prompt:
        """What the subject's dialogue would send; raises what the subject raises, and `InputError`."""
        if isinstance(dialogue, EnvelopeDialogue) and self.subject is None:
            return dialogue.prompt(question)
        return answers.ask(self.subject.name if self.subject else "", dialogue, question)

    def session(self, scenario: Scenario, store: Store, *, tenant: str = "evals") -> Session:
        """The scenario's session in a store, with its head."""
        document = scenario.profile or self.profile
        profile = None if document is None else Profile.from_document(document)
        return store.session(
            scenario.id, tenant=tenant, profile=profile, tools=list(scenario.tools), system=scenario.system
        )

    def store(self) -> Store:
        """A new store in memory."""
        return open_store("memory:")

    def describe(self) -> dict[str, str | int | float | None]:
        """The settings by name, for results: scalars only."""
        named = self.summarizer if isinstance(self.summarizer, str) else getattr(self.summarizer, "__name__", "own")
        selector = self.selector if self.selector is None or isinstance(self.selector, str) else "own"
        set_budgets = {f"budgets.{name}": getattr(self.budgets, name) for name in sorted(self.budgets.model_fields_set)}
        subject = {} if self.subject is None else {"subject": self.subject.name}
        repeat = {"repeat": self.repeat} if self.repeat > 1 else {}
        judges = {"judges": ", ".join(self.judges)} if self.judges else {}
        in_loop = {"in_loop": self.in_loop} if self.in_loop else {}
        return (
            subject
            | repeat
            | judges
            | in_loop
            | {
                "model": self.model,
                "tokenizer": self.tokenizer,
                "summarizer": named,
                "selector": selector,
            }
            | set_budgets
        )


SCENARIOS = 26
"""Of a suite in CI; three of them long."""


CpuSeconds = Callable[[], float]


@dataclass(slots=True)
class PlayCounts:
    """What a playing counts as it goes."""

    builds: int = 0
    cpu_seconds: CpuSeconds = time.process_time
    build_cpu_seconds: list[float] = field(default_factory=list)
    """Of each build, in order."""
    cases: list[JudgeCase] = field(default_factory=list)
    ratings: list[Rating] = field(default_factory=list)


NOT_ASKED = "only our own envelope tells"

Scores = Iterator[Score | UnscoredCheck]
Make = Callable[[Draw], Scenario]
Play = Callable[[Scenario, Setup, PlayCounts], Scores]


def _is_there(module: str) -> bool:
    """Whether a top-level module is installed; it is not imported."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


class SuiteExtra(NamedTuple):
    """An extra that a suite is played with."""

    name: str
    modules: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalSuite:
    """One suite."""

    name: str
    about: str
    """One sentence: what it holds to numbers."""
    metrics: tuple[Metric, ...]
    make: Make
    play: Play
    scenarios: int = SCENARIOS
    """How many CI runs."""
    ours_only: str | None = None
    """Why no other subject can be asked; None: any can."""
    extra: SuiteExtra | None = None
    """What has to be installed to play it."""

    def unplayable(self) -> str | None:
        """Return why it cannot be played here and what to install, or None if it can."""
        gone = [module for module in self.extra.modules if not _is_there(module)] if self.extra else []
        if self.extra is None or not gone:
            return None
        names = ", ".join(gone)
        return f"it needs the extra `{self.extra.name}` ({names}); pip install 'ctxsteward[{self.extra.name}]'"

    def check(self, setup: Setup) -> None:
        """Raise `InputError` where it cannot be played here; another subject than ours is not asked, then."""
        reason = self.unplayable() if setup.subject is None or self.ours_only is None else None
        if reason is not None:
            raise InputError(f"eval suite {self.name}: {reason}")

    def scores(self, scenario: Scenario, setup: Setup, counts: PlayCounts) -> Scores:
        """Play and judge a scenario; a figure that the subject could not be asked for is unscored, with the reason."""
        if setup.subject is not None and self.ours_only is not None:
            yield from (UnscoredCheck(metric.name, self.ours_only) for metric in self.metrics)
            return
        told: set[str] = set()
        for score in self.play(scenario, setup, counts):
            told.add(score.metric)
            yield score
        if setup.subject is not None:
            yield from (UnscoredCheck(metric.name, NOT_ASKED) for metric in self.metrics if metric.name not in told)
