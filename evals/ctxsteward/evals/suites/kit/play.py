"""Playing a scenario through the real builder, and checks of what came of it that several suites share.

    for moment in play(scenario, setup, counts):
        match moment:
            case CallMoment(): …     before each assistant message: the envelope of the call that produced it
            case AskMoment(): …      a question, with the envelope as if it were the next user message; writes nothing
            case EndMoment(): …      the last one: the session as the conversation left it

`play` judges nothing and raises what the builder raises. The checks are pure: what an envelope shows, what a question
finds, what every call owes, what a conversation's calls cost against sending everything (`ConversationCost`; a prefix
that the call before has sent costs a tenth). Values are searched in normalized text, never inside a longer number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from ctxsteward.envelope import Envelope, EnvelopeBuilder, Session, Store, search_context
from ctxsteward.envelope.render import fragment_spans, spans
from ctxsteward.envelope.tokens import Counter
from ctxsteward.schemas import Wire

from ...prompt_cost import Prices, PromptPiece, Sizer
from ...replay import CallTally, ModelCall, Prefix, check
from .suite import DYNAMIC_TOKENS, Ask, PlayCounts, Scenario, Score, Setup, holds


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMoment:
    """One model call."""

    call: ModelCall
    builder: EnvelopeBuilder

    @property
    def at(self) -> str:
        return f"call {self.call.number}, {len(self.call.wires)} messages said"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskMoment:
    """One question."""

    ask: Ask
    envelope: Envelope
    session: Session
    wires: Sequence[Wire]

    @property
    def at(self) -> str:
        return f"after message {self.ask.after}: {self.ask.question}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndMoment:
    """The conversation is over; its store closes after this moment."""

    session: Session
    builder: EnvelopeBuilder
    wires: Sequence[Wire]


Moment = CallMoment | AskMoment | EndMoment


def play(
    scenario: Scenario,
    setup: Setup,
    stage: PlayCounts,
    *,
    dynamic_tokens: int = DYNAMIC_TOKENS,
    store: Store | None = None,
) -> Iterator[Moment]:
    """Say a scenario's messages one by one; the moments in order. A given store stays open."""
    asks = sorted(scenario.asks, key=lambda ask: ask.after)
    builder = setup.builder(dynamic_tokens=dynamic_tokens)
    with ExitStack() as stack:
        opened = store if store is not None else stack.enter_context(setup.store())
        session = setup.session(scenario, opened)
        wires: list[Wire] = []
        for wire in scenario.messages:
            if wire["role"] == "assistant" and wires:
                stage.builds += 1
                started = stage.cpu_seconds()
                envelope = builder.build(session)
                stage.build_cpu_seconds.append(stage.cpu_seconds() - started)
                call = ModelCall(number=stage.builds, session=session, envelope=envelope, wires=wires)
                yield CallMoment(call=call, builder=builder)
            session.append(wire)
            wires.append(wire)
            while asks and asks[0].after == len(wires):
                ask = asks.pop(0)
                envelope = builder.preview(session, ask.question)
                yield AskMoment(ask=ask, envelope=envelope, session=session, wires=wires)
        yield EndMoment(session=session, builder=builder, wires=wires)


def dynamic_of(envelope: Envelope) -> str:
    """What the model is shown of the conversation; of the head, nothing."""
    return "\n".join(span.text for span in spans(envelope) if span.label.startswith("dynamic "))


def bullets_of(envelope: Envelope) -> str:
    """The compacted part of what the model is shown."""
    return "\n".join(span.text for f in envelope.dynamic.fragments if f.kind == "bullets" for span in fragment_spans(f))


def named(envelope: Envelope) -> frozenset[int]:
    """Ordinals that an envelope shows in full, or cites one by one; a range names none."""
    return frozenset(ordinal for fragment in envelope.dynamic.fragments for ordinal in fragment.refs)


def reaches(asked: AskMoment, ordinal: int, query: str) -> bool:
    """Whether the envelope for a question names a message, or one search of the model's finds it."""
    shown = named(asked.envelope)
    if ordinal in shown:
        return True
    return any(hit.ordinal == ordinal for hit in search_context(asked.session, query, shown=shown))


def owed(metric: str, call: ModelCall) -> Score:
    """What every call owes: valid for both providers, in budget, cited, newest and last raw turn verbatim."""
    tally = CallTally()
    check(call, tally)
    return holds(metric, not tally.faults, f"call {call.number}", "; ".join(tally.faults[:3]))


def prefix_kept(metric: str, prefix: Prefix, call: ModelCall) -> Iterator[Score]:
    """Whether this call's bytes extend the last one's; silent where a compaction lies between."""
    before = prefix.compared
    kept = prefix.check(call)
    if prefix.compared > before:
        yield holds(metric, kept, f"call {call.number}", "bytes before the turn changed without a compaction")


@dataclass(slots=True)
class ConversationCost:
    """Adds up calls."""

    counter: Counter
    prices: Prices = field(default_factory=Prices)
    ours: float = 0.0
    everything: float = 0.0
    _sizer: Sizer = field(init=False)
    _before: Sequence[PromptPiece] = ()
    _said: int = 0
    _said_tokens: int = 0

    def __post_init__(self) -> None:
        self._sizer = Sizer(self.counter)

    def read(self, call: ModelCall) -> None:
        """Count one call."""
        pieces = self._sizer.pieces(call.envelope.render("openai-chat", cache=False)["messages"])
        shared = self._sizer.shared_tokens(self._before, pieces)
        self.ours += self.prices.of(sum(piece.tokens for piece in pieces), shared)
        self._before, before = pieces, self._said_tokens
        self._said_tokens += sum(self._sizer.piece(wire).tokens for wire in call.wires[self._said :])
        self._said = len(call.wires)
        self.everything += self.prices.of(self._said_tokens, before)

    @property
    def ratio(self) -> float:
        """Ours against everything; below 1 is cheaper."""
        return self.ours / max(1.0, self.everything)
