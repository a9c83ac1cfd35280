"""Define suites: make scenarios, play and judge them, under the settings of a run.

    suite = EvalSuite(name="verbatim", about=…, metrics=(…), make=make, play=play)
    scenario = suite.make(Draw("verbatim", "ci", 12))
    scores = list(suite.play(scenario, Setup(), PlayCounts()))

`make` is a function of the draw alone; `play` drives the real builder over a real session and yields scores as it goes.
A `Draw` is a suite, a split and a number, so the id of a result suffices to make the same conversation again. Every
ninth scenario is long. The splits share no seed: rules may be tuned on ``docs``, CI runs ``ci``, and suites with
phrasings of their own hold some back for it. ``sealed`` has its own seeds, words, tools and attacks; it is played
rarely, each time on record (`benchmarks.sealed`), and nothing is tuned on it.

A suite yields a `Score` for each check. A check that it could not make has no value, never 0, and a reason
(`unscored`). `ScoreTally` adds up one metric of one scenario.

A scenario may be played several times if a model takes part, so that playings vary. It stays one scenario, whose value
is the mean of its repeats (`suites.results`).

`Setup` selects the subject: our builder with a team's budgets, profile, tokenizer and summarizer, or another subject. A
suite uses smaller budgets if its scenarios must outgrow them; budgets that the team has set are not changed.

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


SEALED_EDITION = 2
"""Edition of the sealed split. Raise it with new words, so that numbers and lengths are drawn anew, too."""


class Draw(NamedTuple):
    """Identity of a scenario: suite, split and number, the only inputs of its making."""

    suite: str
    split: Split
    number: int

    @property
    def id(self) -> str:
        return f"{self.suite}/{self.split}-{self.number}"

    @property
    def language(self) -> Language:
        """Return English for even numbers and Chinese for odd ones, so long scenarios alternate, too."""
        return "en" if self.number % 2 == 0 else "zh"

    @property
    def turns(self) -> int:
        """Return the number of user turns: 50 to 90, or 200 to 400 in every ninth scenario."""
        return self.random("turns").randint(*(LONG_TURNS if self.number % LONG_EVERY == 0 else TURNS))

    def random(self, purpose: str = "") -> Random:
        """Return a source of randomness seeded by this draw and a purpose."""
        edition = f" {SEALED_EDITION}" if self.split == "sealed" else ""
        return Random(f"{self.id}{edition} {purpose}")

    def texts(self, file: str, kind: str) -> Texts:
        """Return the phrasings of one kind in this draw's language and split."""
        return texts(file, kind, self.language, self.split)

    @classmethod
    def parse(cls, id: str) -> Self:
        """Parse the id of a scenario, as results name it.

        >>> Draw.parse("verbatim/ci-12").turns
        64
        """
        match = _ID.fullmatch(id)
        if match is None:
            raise InputError(f"unknown scenario {id!r:.80}; ids look like verbatim/ci-12")
        return cls(match[1], cast(Split, match[2]), int(match[3]))


def refuse_sealed(split: str) -> None:
    """Raise `InputError` for the sealed split, for callers that record no opening."""
    if split == "sealed":
        raise InputError("split 'sealed' is opened on record only (`python -m benchmarks.sealed`); use docs or ci")


def drawn(suite: str, split: Split, count: int) -> Iterator[Draw]:
    """Yield the first `count` draws of a suite; a larger count includes those of a smaller one."""
    return (Draw(suite, split, number) for number in range(count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question at one place of a conversation, and the values that its answer needs.

    Without a model, the suite judges the envelope for the question; with a model, its answer.
    """

    metric: str
    """Figure that the ask counts for."""
    after: int
    """Number of messages before the question."""
    question: str
    wants: tuple[str, ...]
    """Values that must all be shown."""
    avoids: tuple[str, ...] = ()
    """Outdated or foreign values; showing one is a fault unless all wanted values are shown, too."""
    kind: str = ""
    """Kind of the wanted value, for the report."""
    answer: tuple[str, ...] = ()
    """Values that a model's answer must say; empty for `wants`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A conversation of OpenAI chat messages, with questions at places of it."""

    draw: Draw
    messages: tuple[Wire, ...]
    asks: tuple[Ask, ...] = ()
    system: str | None = None
    tools: tuple[Wire, ...] = ()
    profile: ProfileDocument | None = None
    tags: dict[str, str] = field(default_factory=dict)
    """Drawn properties for the report: kinds of attacks, faults, …"""

    @property
    def id(self) -> str:
        return self.draw.id

    @property
    def turns(self) -> int:
        """Return the number of user turns."""
        return sum(message["role"] == "user" for message in self.messages)


Kind = Literal["rate", "mean", "ratio", "count"]
"""rate: share of checks that held, 0..1; mean: mean of values; ratio: mean over scenarios of a ratio of two quantities;
count: a sum of faults."""

MISSES_KEPT = 5
"""Misses kept of one metric of one scenario."""
WHY_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure of a suite."""

    name: str
    about: str
    """One sentence on the checks that are counted."""
    kind: Kind = "rate"
    better: Literal["higher", "lower"] = "higher"
    unit: str = ""


class Score(NamedTuple):
    """One check."""

    metric: str
    value: float | None
    """1 or 0 for a rate; None if the check could not be made."""
    at: str = ""
    """Place: ``turn 41``, ``§17``."""
    why: str = ""
    """Fault that was found, or reason why the check could not be made; empty if the check held."""
    of: str = ""
    """Distinct thing that is checked repeatedly: an aim, a planted value, a tool result."""


@dataclass(slots=True)
class ScoreTally:
    """Sum of one metric over one scenario."""

    count: int = 0
    total: float = 0.0
    misses: list[Score] = field(default_factory=list)
    """The first checks that did not hold."""
    unscored: Tally[str] = field(default_factory=Tally)
    things: dict[str, ScenarioPart] = field(default_factory=dict)
    """Sum of each distinct thing that scores name; the empty text collects scores that name nothing."""
    repeats: tuple[ScenarioPart, ...] = ()
    """Sum of each playing if there were several."""

    def add(self, score: Score, metric: Metric) -> None:
        if score.value is None:
            self.unscored[score.why] += 1
            return
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
        """Return the sum over distinct things of the share of their checks that held, and the number of things.

        A thing counts with the mean of its checks, since the worst check would fall with the number of checks. A check
        that names nothing counts as a thing.
        """
        named = [part for of, part in self.things.items() if of]
        alone = self.things.get("", ScenarioPart(0.0, 0))
        return ScenarioPart(alone.total + sum(p.total / p.checks for p in named), alone.checks + len(named))


class JudgeCase(NamedTuple):
    """A statement or question for a model judge about the text that would be sent at one place."""

    ask: int
    """1-based number of the ask in its scenario."""
    at: str
    asked: str
    """Statement or question to answer with yes or no."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """One rater's answer about one case."""

    ask: int
    at: str
    rater: str
    """``code``, ``label``, or the name of a model."""
    text: str
    """Digest of the text that the rater was shown."""
    answer: bool | None
    """None if there is no answer, for this `reason`."""
    reason: str = ""
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    """None without a model or a price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """Result of playing one scenario."""

    id: str
    turns: int
    messages: int
    builds: int
    """Number of envelopes built for model calls."""
    cpu_seconds: float
    tallies: dict[str, ScoreTally]
    """Tallies by metric."""
    error: str | None = None
    """Exception that ended the scenario early; it fails the scenario, not the run."""
    cases: tuple[JudgeCase, ...] = ()
    """Cases that still wait for model judges."""
    ratings: tuple[Rating, ...] = ()
    """Answers of each rater about each case, in every repeat."""


def tallied(scores: Iterable[Score], metrics: Iterable[Metric]) -> dict[str, ScoreTally]:
    """Add up scores by metric; a metric without scores has an empty tally."""
    by_name = {metric.name: metric for metric in metrics}
    tallies = {name: ScoreTally() for name in by_name}
    add_to(tallies, scores, by_name)
    return tallies


def add_to(tallies: dict[str, ScoreTally], scores: Iterable[Score], metrics: dict[str, Metric]) -> None:
    """Add scores to tallies as they come."""
    for score in scores:
        tallies[score.metric].add(score, metrics[score.metric])


def holds(metric: str, ok: bool, at: str = "", why: str = "", of: str = "") -> Score:
    """Make the score of a check that held or not.

    >>> holds("verbatim", False, "turn 3", "the last user message is cut").value
    0.0
    """
    return Score(metric, float(ok), at, "" if ok else why, of)


def unscored(metric: str, reason: str, at: str = "") -> Score:
    """Make the score of a check that could not be made."""
    return Score(metric, None, at, reason)


DYNAMIC_TOKENS = 2_000
"""Default budget of a scenario; 50 turns outgrow it several times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The subject to judge, or the settings of our builder."""

    subject: Subject | None = None
    """None for our builder with the settings below."""

    model: str | None = None
    tokenizer: str = "o200k_base"
    budgets: Budgets = field(default_factory=Budgets)
    """Fields that were set hold for every suite; the suite chooses `dynamic_tokens` if it was not set."""
    summarizer: str | Summarizer = "extractive"
    selector: Selector | Literal["heuristic"] | None = "heuristic"
    profile: ProfileDocument | None = None
    """Profile of every scenario that has no profile of its own."""
    repeat: int = 1
    """Number of times that a scenario is played and put to each model judge."""
    judges: tuple[str, ...] = ()
    """Names of the model judges, with the version of their prompt."""
    in_loop: str | None = None
    """Name of the model that summarizes and selects (`model_runs`)."""

    @property
    def may_vary(self) -> bool:
        """Return whether playings of a scenario may differ: a foreign subject or summarizer may be random."""
        foreign = self.subject is not None and self.subject.name not in SUBJECTS
        return foreign or self.summarizer != "extractive"

    def builder(self, *, dynamic_tokens: int = DYNAMIC_TOKENS) -> EnvelopeBuilder:
        """Return a new builder; `dynamic_tokens` holds if the setup does not set it."""
        budgets = self.budgets
        if "dynamic_tokens" not in budgets.model_fields_set:
            budgets = Budgets(**(budgets.model_dump(exclude_unset=True) | {"dynamic_tokens": dynamic_tokens}))
        tokenizer = None if self.model else self.tokenizer
        return EnvelopeBuilder(
            self.model, tokenizer=tokenizer, budgets=budgets, summarizer=self.summarizer, selector=self.selector
        )

    def counter(self) -> Counter:
        """Return the counter of the judge."""
        return self.builder(dynamic_tokens=DYNAMIC_TOKENS).counter

    def task(self, scenario: Scenario, *, dynamic_tokens: int = DYNAMIC_TOKENS) -> Task:
        """Return the scenario's task as every subject gets it."""
        given = "dynamic_tokens" in self.budgets.model_fields_set
        budget_tokens = self.budgets.dynamic_tokens if given else dynamic_tokens
        id = sha256(scenario.id.encode()).hexdigest()[:16]  # from the id itself a subject could make the answers
        return Task(id, budget_tokens, scenario.system, scenario.tools)

    @contextmanager
    def dialogue(self, scenario: Scenario, task: Task, *, store: Store | None = None) -> Iterator[Dialogue]:
        """Open the subject's dialogue for a scenario and close it afterwards. A given store stays open."""
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
        """Add a message to the subject's dialogue."""
        dialogue.add(wire) if self.subject is None else answers.say(dialogue, wire)

    def prompt(self, dialogue: Dialogue, question: str | None = None) -> Prompt:
        """Return what the subject would send; raise the subject's exceptions and `InputError`."""
        if isinstance(dialogue, EnvelopeDialogue) and self.subject is None:
            return dialogue.prompt(question)
        return answers.ask(self.subject.name if self.subject else "", dialogue, question)

    def session(self, scenario: Scenario, store: Store, *, tenant: str = "evals") -> Session:
        """Open the scenario's session in a store, with its head."""
        document = scenario.profile or self.profile
        profile = None if document is None else Profile.from_document(document)
        return store.session(
            scenario.id, tenant=tenant, profile=profile, tools=list(scenario.tools), system=scenario.system
        )

    def store(self) -> Store:
        """Return a new store in memory."""
        return open_store("memory:")

    def describe(self) -> dict[str, str | int | float | None]:
        """Return the settings by name as scalars, for results."""
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
"""Number of scenarios of a suite in CI; three of them are long."""


CpuSeconds = Callable[[], float]


@dataclass(slots=True)
class PlayCounts:
    """Counts of a playing."""

    builds: int = 0
    cpu_seconds: CpuSeconds = time.process_time
    build_cpu_seconds: list[float] = field(default_factory=list)
    """CPU seconds of each build, in order."""
    cases: list[JudgeCase] = field(default_factory=list)
    ratings: list[Rating] = field(default_factory=list)


NOT_ASKED = "only our own envelope reports it"

Scores = Iterator[Score]
Make = Callable[[Draw], Scenario]
Play = Callable[[Scenario, Setup, PlayCounts], Scores]


def _is_installed(module: str) -> bool:
    """Return whether a top-level module is installed, without importing it."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # an import hook may refuse; a module that is half loaded has no spec
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalSuite:
    """One suite."""

    name: str
    about: str
    """One sentence on the promises that the suite measures."""
    metrics: tuple[Metric, ...]
    make: Make
    play: Play
    scenarios: int = SCENARIOS
    """Number of scenarios in CI."""
    ours_only: str | None = None
    """Reason why only our builder can be judged; None if any subject can."""
    extra: str | None = None
    """Extra that must be installed to play it."""
    modules: tuple[str, ...] = ()
    """Modules of the extra."""

    def unplayable(self) -> str | None:
        """Return why it cannot be played here and what to install, or None if it can."""
        missing = ", ".join(module for module in self.modules if not _is_installed(module))
        if not missing:
            return None
        return f"it needs the extra `{self.extra}` ({missing}); pip install 'ctxsteward[{self.extra}]'"

    def check(self, setup: Setup) -> None:
        """Raise `InputError` if an extra is missing that our builder needs to play it."""
        reason = self.unplayable() if setup.subject is None or self.ours_only is None else None
        if reason is not None:
            raise InputError(f"eval suite {self.name}: {reason}")

    def scores(self, scenario: Scenario, setup: Setup, counts: PlayCounts) -> Scores:
        """Play and judge a scenario; figures that do not apply to the subject are unscored, with the reason."""
        if setup.subject is not None and self.ours_only is not None:
            yield from (unscored(metric.name, self.ours_only) for metric in self.metrics)
            return
        scored: set[str] = set()
        for score in self.play(scenario, setup, counts):
            scored.add(score.metric)
            yield score
        if setup.subject is not None:
            yield from (unscored(metric.name, NOT_ASKED) for metric in self.metrics if metric.name not in scored)
