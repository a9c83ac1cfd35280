"""The suite ``citations``: each message stays reachable under its reference, to the byte, while the session lives.

Conversations over several days hold many tool outputs (one or several a message, short, over the arrival cap, repeated,
of several kinds, in both dialects) and are compacted repeatedly. At seeded places a user asks for the n-th tool output
or a range of messages; the session is forked, and reopened cold from its store. Every bullet must cite, every citation
must resolve to the message's bytes, and every quote (bullets, losses with their spans, recalled messages, excerpts of
long results) must stand in the original.

Source: the layered-envelope design (acceptance: “引用第 3 条工具输出”; citations to full logs on demand).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from ctxsteward.envelope import Envelope, EnvelopeBuilder, Session, Store, open_store
from ctxsteward.envelope.history.tool_groups import text_of
from ctxsteward.envelope.layout.rows import fenced_rows
from ctxsteward.schemas import Bullet, Ref
from ctxsteward.schemas.message import Wire

from ..replay import window_of
from .citation_checks import (
    accounted,
    bullets_cited,
    bullets_quote,
    cited_refs,
    days_again,
    exchange,
    lines_cited,
    losses_quote,
    lost_in,
    output_again,
    outputs_of,
    outputs_resolve,
    range_again,
    recalled_quote,
    references_resolve,
    resolves,
    results_quote,
)
from .kit.play import AskMoment, CallMoment, EndMoment, accounted as accounted_for, compacted, play
from .kit.suite import Ask, Draw, PlayCounts, Scenario, Score, Scores, Setup, holds, unscored
from .kit.talk import SmallTalk, assistant, user

DAY_TURNS = (6, 15)
"""User turns of one day."""
SHOWN_TOKENS = 300
"""A message of tool outputs up to this length is shown if a user asks for one of them."""


@dataclass(slots=True)
class _CitationsRun:
    """A conversation under way."""

    scenario: Scenario
    setup: Setup
    stage: PlayCounts
    builder: EnvelopeBuilder
    session: Session
    messages: list[Wire] = field(default_factory=list)
    days: list[str] = field(default_factory=list)
    compactions: int = 0
    quoted: set[Bullet] = field(default_factory=set)
    """Bullets already checked; bullets never change."""
    lost: set[int] = field(default_factory=set)
    """Ordinals of messages that some compaction lost in part or whole."""

    @property
    def verbatim(self) -> bool:
        """Return whether bullets consist of pieces of their originals; a model may use its own words."""
        return self.setup.summarizer == "extractive"

    def build(self, session: Session) -> Envelope:
        self.stage.builds += 1
        envelope = self.builder.build(session)
        if session is self.session:
            self.compactions += len(envelope.reports)
            self.lost |= lost_in(envelope.reports)
        return envelope


def play_citations(scenario: Scenario, setup: Setup, stage: PlayCounts) -> Scores:
    """Append message by message; fork and reopen the session; judge at every compaction and every ask."""
    if setup.subject is not None:
        yield from play_messages(scenario, setup, stage)
        return
    rng = scenario.draw.random("events")
    count = len(scenario.messages)
    forks = set(rng.sample(range(count // 3, count - 2), 2))
    reopened = set(rng.sample(range(count // 3, count - 2), 2))
    asks = {ask.after: ask for ask in scenario.asks}
    dates = list(_dates(scenario))
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory()) if rng.random() < 0.3 else None
        store = open_store(f"file:{Path(folder)}") if folder else setup.store()
        run = _CitationsRun(scenario, setup, stage, setup.builder(), setup.session(scenario, store))
        for number, wire in enumerate(scenario.messages):
            if wire["role"] == "assistant" and run.messages:
                yield from _called(run, f"call at message {number}")
            run.session.append(wire, ts=f"{dates[number]}T09:00:00Z")
            run.messages.append(wire)
            run.days.append(dates[number])
            at = f"after message {len(run.messages)}"
            if len(run.messages) in asks:
                yield from _asked(run, asks[len(run.messages)], at)
            if number in forks:
                yield from _forked(run, rng, at)
            if number in reopened:
                store = yield from _reopened(run, store, folder, at)
        stack.callback(store.close)
        yield from _ended(run)


def play_messages(scenario: Scenario, setup: Setup, stage: PlayCounts) -> Scores:
    """Judge a subject by its messages only: its references, and the outputs that are asked for."""
    counter, compactions = setup.counter(), 0
    for moment in play(scenario, setup, stage):
        match moment:
            case CallMoment():
                compactions += moment.compacted
                yield from lines_cited(moment)
            case AskMoment(ask=ask) if ask.metric == "tool_outputs":
                text = ask.wants[0].strip()
                if counter.text(text) <= SHOWN_TOKENS:
                    shown = text in moment.window
                    yield holds("outputs_shown", shown, moment.at, f"{ask.question}: it is not shown whole")
            case EndMoment():
                yield from references_resolve(moment)
                yield from outputs_resolve(moment)
                yield from accounted_for("accounted", moment)
                yield compacted(compactions, moment)


def _dates(scenario: Scenario) -> Iterator[str]:
    """Yield a date for every message; a day has several turns."""
    rng = scenario.draw.random("days")
    day, left = 1, rng.randint(*DAY_TURNS)
    for wire in scenario.messages:
        if wire["role"] == "user" and isinstance(wire["content"], str):
            left -= 1
            if left < 0:
                day, left = day + rng.randint(1, 3), rng.randint(*DAY_TURNS)
        yield f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}"


def _called(run: _CitationsRun, at: str) -> Scores:
    envelope = run.build(run.session)
    if not envelope.reports:
        return
    yield from bullets_cited(envelope, run.session, at)
    yield from resolves("citations_resolve", cited_refs(run.session.state.bullets), run.session, run.messages, at)
    fresh = [bullet for bullet in run.session.state.bullets if bullet not in run.quoted]
    run.quoted.update(fresh)
    yield from bullets_quote(fresh, run.messages, at, verbatim=run.verbatim)
    for report in envelope.reports:
        refs = sorted({Ref.parse(loss.ref) for loss in report.losses})
        yield from resolves("citations_resolve", refs, run.session, run.messages, at)
        yield from losses_quote(report, run.messages, at, verbatim=run.verbatim)
    yield accounted(envelope, run.session, run.lost, at)
    yield from results_quote(envelope, run.messages, at)


def _asked(run: _CitationsRun, ask: Ask, at: str) -> Scores:
    envelope = run.builder.preview(run.session, ask.question)
    yield from recalled_quote(envelope, run.messages, run.session, at)
    yield from days_again(envelope, run.days, run.session, run.messages, at)
    if ask.metric == "ranges_resolve":
        first, last = map(int, ask.kind.split("-"))
        yield range_again(first, last, run.session, run.messages, at)
    else:
        output = outputs_of(run.messages)[int(ask.kind) - 1]
        yield _shown(run, ask, output.place, envelope, at)
        yield from output_again(int(ask.kind), ask.wants[0], output.place, run.session, at)


def _shown(run: _CitationsRun, ask: Ask, place: Ref, envelope: Envelope, at: str) -> Score:
    """Score whether the envelope for the question shows the output whole; a longer one must be read with the tool."""
    beside = text_of(run.session.resolve(place.ordinal))
    if run.builder.counter.text(beside) > SHOWN_TOKENS:
        return unscored("outputs_shown", "its message is longer than recall is sure to have room for", at)
    fragment = envelope.dynamic.context
    recalled = fenced_rows(envelope.nonce, fragment.text) if fragment else []
    shown = any(ask.wants[0].strip() in text for text in (window_of(envelope), *recalled))
    return holds("outputs_shown", shown, at, f"{ask.question}: {place} is not shown whole", str(place))


def _forked(run: _CitationsRun, rng: Random, at: str) -> Scores:
    """Fork at an earlier message and continue differently; the original session must not change."""
    before = run.session.state.outputs
    where = rng.randint(max(1, len(run.messages) // 2), len(run.messages))
    branch = run.session.fork(at=where)
    other = run.messages[:where]
    for wire in (
        user("fork?"),
        *exchange(rng, run.scenario.draw, other, anthropic=run.scenario.tags["dialect"] == "anthropic"),
    ):
        if wire["role"] == "assistant":
            run.build(branch)
        branch.append(wire)
        other = [*other, wire]
    envelope = run.build(branch)
    at = f"{at}, forked at §{where}"
    refs = [*cited_refs(branch.state.bullets), *(Ref(n) for n in range(max(1, where - 5), len(other) + 1))]
    yield from resolves("forks_resolve", refs, branch, other, at)
    outputs = outputs_of(other)
    for number in sorted({len(outputs), rng.randint(1, len(outputs))}):
        output = outputs[number - 1]
        scores = output_again(number, output.text, output.place, branch, at)
        yield from (Score("forks_resolve", *score[1:]) for score in scores)
    yield from (Score("forks_resolve", *score[1:]) for score in results_quote(envelope, other, at))
    same = run.session.state.outputs == before and len(run.session) == len(run.messages)
    yield Score("forks_resolve", float(same), at, "" if same else "the session it was forked from has grown")


def _reopened(run: _CitationsRun, store: Store, folder: str | None, at: str) -> Generator[Score, None, Store]:
    """Open a new store over the same bytes, without the old one's caches, as another process would; return it."""
    before = run.build(run.session)
    if folder is not None:
        store.close()
        store = open_store(f"file:{Path(folder)}")
    else:
        store = Store(store.journal, store.objects, store.keys, uri=store.uri)
    run.session = run.setup.session(run.scenario, store)
    again = run.build(run.session)
    same = again.address == before.address and again.render("anthropic") == before.render("anthropic")
    yield Score("reopened_resolve", float(same), at, "" if same else "the envelope is another one")
    yield from resolves("reopened_resolve", cited_refs(run.session.state.bullets), run.session, run.messages, at)
    outputs = outputs_of(run.messages)
    for number in {1, len(outputs)}:
        output = outputs[number - 1]
        scores = output_again(number, output.text, output.place, run.session, at)
        yield from (Score("reopened_resolve", *score[1:]) for score in scores)
    return store


def _ended(run: _CitationsRun) -> Scores:
    """Check every reference and output again at the end."""
    envelope = run.build(run.session)
    every = (Ref(ordinal) for ordinal in range(1, len(run.messages) + 1))
    yield from resolves("citations_resolve", every, run.session, run.messages, "end")
    yield accounted(envelope, run.session, lost_in(event.report for event in run.session.compactions()), "end")
    for number, output in enumerate(outputs_of(run.messages), 1):
        yield from output_again(number, output.text, output.place, run.session, "end")
    yield Score("compactions", float(run.compactions), "end")


ASKED_EVERY = 8
"""Average number of user turns between two asks."""
ANTHROPIC_SHARE = 0.4
"""Share of scenarios in Anthropic's dialect."""
TOOL_SHARE = 0.4
"""Share of turns with tool calls."""


def make(draw: Draw) -> Scenario:
    """Make a conversation with many tool outputs and questions for them, in either provider's dialect."""
    talk, rng = SmallTalk.of(draw), draw.random("citations")
    anthropic = rng.random() < ANTHROPIC_SHARE
    messages: list[Wire] = []
    asks: list[Ask] = []
    until = rng.randint(4, ASKED_EVERY)
    for turn in range(draw.turns):
        messages.append(user(talk.user()))
        if rng.random() < TOOL_SHARE or turn < 2:
            messages += exchange(rng, draw, messages, anthropic=anthropic)
        elif not anthropic and rng.random() < 0.1:
            messages += talk.tools()
        messages.append(assistant(talk.assistant()))
        if turn == until:
            until += rng.randint(ASKED_EVERY - 3, ASKED_EVERY + 3)
            asks.append(_ask(rng, draw, messages))
    return Scenario(
        draw=draw, messages=tuple(messages), asks=tuple(asks), tags={"dialect": "anthropic" if anthropic else "openai"}
    )


def _ask(rng: Random, draw: Draw, messages: Sequence[Wire]) -> Ask:
    outputs = outputs_of(messages)
    if rng.random() < 0.25:
        first = rng.randint(1, max(1, len(messages) - 12))
        last = first + rng.randint(1, 11)
        question = rng.choice(draw.texts("citations", "stretches")).format(a=first, b=min(last, len(messages)))
        return Ask(
            metric="ranges_resolve",
            after=len(messages),
            question=question,
            wants=(),
            kind=f"{first}-{min(last, len(messages))}",
        )
    number = rng.choice((rng.randint(1, len(outputs)), min(3, len(outputs)), len(outputs)))
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    question = rng.choice(draw.texts("citations", "outputs")).format(n=number, nth=f"{number}{ending}")
    return Ask(
        metric="tool_outputs",
        after=len(messages),
        question=question,
        wants=(outputs[number - 1].text,),
        kind=str(number),
    )
