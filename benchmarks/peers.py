"""``python -m benchmarks.peers``: ours beside other libraries, on the same inputs, by the same judge.

Needs the peers' environment (``make peers`` builds it) and a folder of public transcripts. ``--write
docs/benchmarks.md`` puts the table between that file's markers.

Everybody is a subject (`subjects`), is given the same `Inputs`, and is judged by what it sent (`PeerFigures`). No
model, no key, no network: where a library would ask a model for a summary, it does what it does without.

Agent runs: cost (`prompt_cost`), calls over budget, calls a provider would refuse, whether the task survives. Planted
canaries at a fifth of the tokens: shown in the last window; reachable, that is shown or behind a reference in that
window; the same when an hour has passed. Dated conversations with questions: mean share of evidence turns shown word
for word (`recall`). Long small talk: CPU of a call, median. Where a subject fails, the figure is unscored, with the
subject's own message.

Messages are in one canonical form (role, text, calls, call id), so that every subject starts from the same bytes. What
`read_inputs` takes by default is what the table is measured on; tests take less.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from ctxsteward.envelope import Budgets, Counter, EnvelopeBuilder, load_tokenizer
from ctxsteward.envelope.testing import memory_store
from ctxsteward.envelope.transcripts.files import read_transcripts
from ctxsteward.envelope.transcripts.transcript import TranscriptEntry
from ctxsteward.evals.documents import table
from ctxsteward.evals.prompt_cost import Bill, PricedPrompt, Prices, PromptJudge, Sizer
from ctxsteward.evals.recall import RECALL_FRACTION, Question, read_questions
from ctxsteward.evals.replay import AgentRun, reachable_ordinals, read_runs
from ctxsteward.evals.subjects import Answer, Dialogue, Prompt, Subject, Task
from ctxsteward.evals.subjects.ours import EnvelopeDialogue
from ctxsteward.evals.subjects.port import Archive
from ctxsteward.evals.subjects.registry import NamedSubject
from ctxsteward.schemas import ContextError, Message
from ctxsteward.schemas.message import Wire

from .canary_chats import CanaryScenario, found_in, scenario, stories
from .conversations import conversation
from .libraries import PEERS_PYTHON, AdapterProcess, canonical
from .peer_adapter import PEERS
from .report import progress, publish, script

RUNS = ("tau_bench_airline", "swe_agent")
QUESTIONS = "locomo/locomo_dev.json"
Said = tuple[TranscriptEntry, ...]


@runtime_checkable
class Clock(Protocol):
    """A dialogue whose clock can be set; the clock dates messages and expires references."""

    def set_time(self, now: str) -> None:
        """Set the current time in ISO 8601, UTC without a zone; before the first call the real time holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeSubject:
    """Our builder as a `Subject`, with these budgets besides the task's and a store in memory per conversation."""

    name: str = "ours"
    budgets: Mapping[str, float] = field(default_factory=dict)
    model: str = "gpt-4o"

    def open(self, task: Task, tokens: Callable[[Wire], int]) -> EnvelopeDialogue:
        budgets = Budgets.model_validate({"dynamic_tokens": task.budget_tokens, **self.budgets})
        session = memory_store().session(task.id, system=task.system, tools=list(task.tools))
        return EnvelopeDialogue(EnvelopeBuilder(self.model, budgets=budgets), session)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that a subject is given."""

    runs: tuple[AgentRun, ...]
    scenarios: tuple[CanaryScenario, ...]
    talks: tuple[tuple[Said, tuple[Question, ...]], ...]
    """Conversations, and the questions about them."""
    timed: tuple[Said, ...]
    timed_calls: int

    @property
    def timed_sizes(self) -> list[int]:
        """Numbers of messages before the timed calls."""
        return [len(said) - 2 * self.timed_calls for said in self.timed]


def read_inputs(
    data: Path,
    sizer: Sizer,
    *,
    every_run: int = 1,
    seeds: int = 2,
    every_question: int = 3,
    sizes: Sequence[int] = (50, 5_000),
    timed_calls: int = 20,
) -> Inputs:
    """Read the public transcripts of a folder and make the rest.

    `seeds`: canary scenarios of each language and half. `sizes`: messages before the timed calls.
    """
    runs = tuple(read_runs([data / name for name in RUNS], {}, sizer))[::every_run]
    path = data / QUESTIONS
    read = zip(read_questions(path), read_transcripts(path, format="locomo"), strict=True)
    return Inputs(
        runs=runs,
        scenarios=tuple(_scenarios(seeds)),
        talks=tuple(
            (
                tuple(
                    TranscriptEntry(wire=canonical(row.wire), id=row.id, ts=row.ts) for row in transcript.open_entries()
                ),
                tuple(questions[::every_question]),
            )
            for questions, transcript in read
        ),
        timed=tuple(_entries(conversation(size + 2 * timed_calls)) for size in sizes),
        timed_calls=timed_calls,
    )


def calls_of(run: AgentRun) -> Iterator[Said]:
    """Return the messages that each call of an agent run adds to the history."""
    entries = _entries([canonical(piece.wire) for piece in run.messages])
    return (entries[start:stop] for start, stop in zip((0, *run.seen), run.seen, strict=False))


def _entries(wires: Sequence[Wire]) -> Said:
    return tuple(TranscriptEntry(wire=wire) for wire in wires)


def _scenarios(seeds: int) -> Iterator[CanaryScenario]:
    for split in ("dev", "held_out"):
        for language in ("en", "zh"):
            yield from (scenario(seed, language, split=split) for seed in range(seeds))
    if seeds:
        yield from stories()


RUN_BUDGET_TOKENS = 4_000
RECALL_BUDGET_TOKENS = 1_000
WINDOW_FRACTION = 0.2
EXPIRY = timedelta(hours=1)


@dataclass(slots=True, kw_only=True)
class PeerFigures:
    """One subject's figures; a missing figure was not scored."""

    name: str
    note: str = ""
    """Settings of the subject."""
    version: str = ""
    """Version of a library."""
    figures: dict[str, float] = field(default_factory=dict)
    """By name: those of `Bill`; ``canaries shown``, ``reachable``, ``later`` and ``recall``, in percent; ``canaries
    fill`` and ``recall fill``, tokens of a window to the budget, mean; ``ms at SIZE``, CPU of a call, median.
    """
    unscored: dict[str, str] = field(default_factory=dict)
    """Missing figures, and the reason of each."""


def measure(
    name: str,
    subject: Callable[[], Subject],
    inputs: Inputs,
    sizer: Sizer,
    *,
    note: str = "",
    prices: Prices | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> PeerFigures:
    """Measure one subject on all inputs, and `close` it if it has that method."""
    made = PeerFigures(name=name, note=note)
    with ExitStack() as stack:
        try:
            asked = subject()
            stack.callback(getattr(asked, "close", lambda: None))
            opened = partial(_opened, asked, sizer)
            made.version = str(getattr(opened(RUN_BUDGET_TOKENS), "version", ""))
        except ContextError as error:
            made.unscored["all"] = str(error)
            return made
        jobs: dict[str, Callable[[], dict[str, float]]] = {
            "cost": lambda: _cost(opened, inputs.runs, sizer, prices or Prices()),
            "canaries": lambda: _canaries(opened, inputs.scenarios, sizer),
            "cpu": lambda: _timed(opened, inputs),
            "recall": lambda: _recall(opened, inputs.talks, sizer),
        }
        for what, job in jobs.items():
            tell(f"{name}: {what}")
            try:
                made.figures |= job()
            except ContextError as error:
                made.unscored[what] = str(error)
    return made


Opener = Callable[[int], Dialogue]
"""Begins a conversation at this budget in tokens."""


def _opened(subject: Subject, sizer: Sizer, budget_tokens: int) -> Dialogue:
    return subject.open(Task("peers", budget_tokens), lambda wire: sizer.piece(wire).tokens)


def _sent(dialogue: Dialogue, said: Iterable[TranscriptEntry]) -> Prompt:
    """Add messages and return the prompt. Its CPU time is the dialogue's own figure, or else measured here."""
    started = time.process_time()
    for row in said:
        if row.ts is not None and isinstance(dialogue, Clock):
            dialogue.set_time(row.ts)
        dialogue.add(row.wire)
    prompt = _prompt_of(dialogue.prompt())
    seconds = time.process_time() - started
    return prompt if prompt.cpu_seconds is not None else replace(prompt, cpu_seconds=seconds)


def _prompt_of(answer: Answer) -> Prompt:
    return answer if isinstance(answer, Prompt) else Prompt(messages=list(answer))


def _reachable(prompt: Prompt) -> frozenset[int]:
    """Return 1-based places to which the prompt leads; for ours, ranges of references count, too."""
    return frozenset(prompt.references.values()) if prompt.envelope is None else reachable_ordinals(prompt.envelope)


def _expanded(dialogue: Dialogue, prompt: Prompt) -> Iterator[str]:
    """Yield the texts to which references in a prompt lead."""
    if isinstance(dialogue, Archive):
        ours = prompt.envelope is not None
        for reference in [f"§{n}" for n in sorted(_reachable(prompt))] if ours else prompt.references:
            with suppress(LookupError):
                yield dialogue.resolve(reference)


def _cost(opened: Opener, runs: Sequence[AgentRun], sizer: Sizer, prices: Prices) -> dict[str, float]:
    bill = Bill()
    for run in runs:
        dialogue = opened(RUN_BUDGET_TOKENS)
        judge = PromptJudge(
            sizer=sizer,
            prices=prices,
            budget_tokens=RUN_BUDGET_TOKENS,
            task=run.task,
            tools_tokens=run.tools_tokens,
        )
        for said in calls_of(run):
            sent = _sent(dialogue, said)
            pieces = (*run.system, *sizer.pieces(sent.messages))
            judge.read(PricedPrompt(pieces, reachable=_reachable(sent)))
        bill.add(judge.bill)
    return asdict(bill)


def _canaries(opened: Opener, scenarios: Sequence[CanaryScenario], sizer: Sizer) -> dict[str, float]:
    found = [0, 0, 0]
    fills: list[float] = []
    for case in scenarios:
        budget_tokens = int(WINDOW_FRACTION * _tokens(case.messages, sizer))
        dialogue = opened(budget_tokens)
        waiting: list[TranscriptEntry] = []
        sent = Prompt(messages=())
        for wire in case.messages:
            waiting.append(TranscriptEntry(wire=wire))
            if wire["role"] != "assistant":
                sent, waiting = _sent(dialogue, waiting), []
        window = "\n".join(map(_said, sent.messages))
        now = "\n".join((window, *_expanded(dialogue, sent)))
        if isinstance(dialogue, Clock):
            dialogue.set_time((datetime.now(UTC) + EXPIRY).isoformat())
        later = "\n".join((window, *_expanded(dialogue, sent)))
        for place, text in enumerate((window, now, later)):
            found[place] += len(found_in(case, text))
        fills.append(_tokens(sent.messages, sizer) / budget_tokens)
    total = sum(len(case.canaries) for case in scenarios)
    if not total:
        return {}
    shares = [100 * count / total for count in found]
    return dict(zip(("canaries shown", "reachable", "later"), shares, strict=True)) | {
        "canaries fill": statistics.fmean(fills)
    }


def _tokens(messages: Sequence[Wire], sizer: Sizer) -> int:
    return sum(piece.tokens for piece in sizer.pieces(messages))


def _said(wire: Wire) -> str:
    """Return all text of a message, with the arguments of its calls."""
    calls = [str(call["function"]["arguments"]) for call in wire.get("tool_calls") or ()]
    return "\n".join((Message.from_wire(wire).text or str(wire.get("content") or ""), *calls))


def _recall(opened: Opener, talks: Sequence[tuple[Said, tuple[Question, ...]]], sizer: Sizer) -> dict[str, float]:
    shares: list[float] = []
    fills: list[float] = []
    for said, questions in talks:
        texts: Mapping[str | None, str] = {row.id: str(row.wire["content"]) for row in said}
        dialogue = opened(RECALL_BUDGET_TOKENS)
        _sent(dialogue, said)
        for question in questions:
            wanted = [texts[id] for id in question.evidence if id in texts]
            if wanted:
                messages = _prompt_of(dialogue.prompt(question.text)).messages
                window = "\n".join(map(_said, messages))
                shares.append(sum(text in window for text in wanted) / len(wanted))
                fills.append(_tokens(messages, sizer) / RECALL_BUDGET_TOKENS)
    return {"recall": 100 * statistics.fmean(shares), "recall fill": statistics.fmean(fills)} if shares else {}


def _timed(opened: Opener, inputs: Inputs) -> dict[str, float]:
    medians = {}
    for said, before in zip(inputs.timed, inputs.timed_sizes, strict=True):
        dialogue = opened(RUN_BUDGET_TOKENS)
        _sent(dialogue, said[: before - 1])
        steps = (said[start - 1 : start + 1] for start in range(before, len(said), 2))
        medians[f"ms at {before:,}"] = (
            statistics.median(_sent(dialogue, step).cpu_seconds or 0 for step in steps) * 1000
        )
    return medians


NAME = "peers"
EVERYTHING = "everything"
UNSCORED = "-"


class PeerSetup(NamedTuple):
    """A subject, and how it is measured."""

    make: Callable[[], Subject]
    note: str


def peers(python: Path) -> dict[str, PeerSetup]:
    """Return all measured subjects, by name."""
    fractions = (("ours, recall 0.9", RECALL_FRACTION), ("ours, no recall", 0))
    return {
        EVERYTHING: PeerSetup(lambda: NamedSubject(EVERYTHING), "all messages"),
        "ours": PeerSetup(EnvelopeSubject, "defaults at this budget"),
        **{
            name: PeerSetup(
                partial(EnvelopeSubject, budgets={"recall_fraction": fraction}), f"`recall_fraction={fraction}`"
            )
            for name, fraction in fractions
        },
        **{name: PeerSetup(partial(AdapterProcess, name, python), library_note(name)) for name in PEERS},
    }


class Column(NamedTuple):
    """A figure of each subject."""

    title: str
    figure: str
    shown: str
    best: Callable[[Sequence[float]], float] | None = None
    """Returns the winning value of a column; None if there is no winner."""
    per: str = ""
    """Name of the figure that divides this one, in percent; ``everything``: the same figure of sending everything."""

    def value(self, one: PeerFigures, everything: PeerFigures) -> float | None:
        """Return a subject's value; None if not scored."""
        amount = one.figures.get(self.figure)
        if amount is None or not self.per:
            return amount
        if self.per == EVERYTHING:
            whole = everything.figures.get(self.figure)
            return None if whole is None else amount / whole
        return 100 * amount / max(1, one.figures[self.per])


COLUMNS = (
    Column("raw to everything", "tokens", "{:.2f}", min, EVERYTHING),
    Column("cache-priced to everything", "priced", "{:.2f}", min, EVERYTHING),
    Column("over budget, %", "over_budget", "{:.1f}", min, "calls"),
    Column("refused, %", "invalid", "{:.1f}", min, "calls"),
    Column("task shown, %", "task_shown", "{:.0f}", max, "runs"),
    Column("task reachable, %", "task_reachable", "{:.0f}", max, "runs"),
    Column("canaries shown, %", "canaries shown", "{:.0f}", max),
    Column("reachable, %", "reachable", "{:.0f}", max),
    Column("an hour later, %", "later", "{:.0f}", max),
    Column("window to budget", "canaries fill", "{:.1f}"),
    Column("recall, %", "recall", "{:.1f}", max),
    Column("window to budget", "recall fill", "{:.1f}"),
)


def columns(inputs: Inputs) -> tuple[Column, ...]:
    """Return all columns, with CPU at each length of history."""
    timed = (f"ms at {size:,}" for size in inputs.timed_sizes)
    return (*COLUMNS, *(Column(title, title, "{:.2f}", min) for title in timed))


def peers_block(measured: Sequence[PeerFigures], inputs: Inputs, seconds: float) -> Iterator[str]:
    """Yield the table, its inputs, and the settings of each subject."""
    calls = sum(len(run.seen) for run in inputs.runs)
    canaries = sum(len(case.canaries) for case in inputs.scenarios)
    questions = sum(len(asked) for _, asked in inputs.talks)
    yield (
        f"One run, {seconds / 60:.0f} minutes. Python {platform.python_version()}, {platform.machine()}, "
        f"{os.cpu_count()} cores. {len(inputs.runs):,} agent runs, {calls:,} calls; {canaries:,} canaries in "
        f"{len(inputs.scenarios)} scenarios; {questions:,} questions about {len(inputs.talks)} conversations. "
        "Bold: the best of a column, everything itself apart."
    )
    yield ""
    yield from figures_table(measured, columns(inputs))
    yield ""
    for one in measured:
        yield f"- {' '.join(filter(None, (one.name, one.version)))}: {one.note}"
        yield from (f"  - {what} not scored: {why}" for what, why in one.unscored.items())


def figures_table(measured: Sequence[PeerFigures], shown: Sequence[Column]) -> Iterator[str]:
    """Yield a row per subject. Winners of a column are bold, by the text shown, so that equal texts win alike."""
    everything = next((one for one in measured if one.name == EVERYTHING), PeerFigures(name=EVERYTHING))
    cells = {one.name: [one.name] for one in measured}
    for column in shown:
        values = {one.name: column.value(one, everything) for one in measured}
        rivals = [value for name, value in values.items() if name != EVERYTHING and value is not None]
        best = column.shown.format(column.best(rivals)) if column.best and rivals else None
        for name, value in values.items():
            text = UNSCORED if value is None else column.shown.format(value)
            cells[name].append(f"**{text}**" if text == best and name != EVERYTHING else text)
    yield from table(["sent by", *(column.title for column in shown)], cells.values())


def library_note(name: str) -> str:
    """Return the settings of a library's strategy."""
    return str(getattr(PEERS[name], "keywords", {}).get("note") or getattr(PEERS[name], "note", ""))


def main(argv: list[str] | None = None) -> int:
    """Measure and print the table; exit 2 on invalid options."""
    parser = script(__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of: {', '.join(peers(PEERS_PYTHON))}; default: all"
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of public transcripts")
    parser.add_argument(
        "--python", type=Path, default=PEERS_PYTHON, help="of the peers' environment; default: %(default)s"
    )
    options = parser.parse_args(argv)
    known = peers(options.python)
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"unknown subject {unknown[0]!r}; one of: {', '.join(known)}")
    missing = [name for name in RUNS if not (options.data / name).is_dir()]
    if missing:
        parser.error(f"--data {options.data}: no folder {missing[0]}; pass the folder of public transcripts")
    if not options.python.is_file():
        parser.error(f"--python {options.python}: no such file; run `make peers` first")

    def block() -> Iterator[str]:
        sizer = Sizer(Counter(load_tokenizer("o200k_base")))
        started = time.monotonic()
        progress("peers: reading inputs")
        inputs = read_inputs(options.data, sizer)
        wanted = dict.fromkeys((EVERYTHING, *(options.names or known)))
        measured = [
            measure(name, known[name].make, inputs, sizer, note=known[name].note, tell=progress) for name in wanted
        ]
        return peers_block(measured, inputs, time.monotonic() - started)

    return publish(parser, options, {NAME: block})


if __name__ == "__main__":
    raise SystemExit(main())
