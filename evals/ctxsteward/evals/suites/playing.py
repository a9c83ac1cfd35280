"""Playing a scenario through the real builder: every model call is built, every question is previewed.

    for moment in play(scenario, setup, stage):
        match moment:
            case Called(): …      before each assistant message: the envelope of the call that produced it
            case Asked(): …       an ask, with the envelope as if it were the next user message; writes nothing
            case Ended(): …       the last moment: the session as the conversation left it

Nothing here judges. Raises what the builder raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from ctxsteward.envelope import Envelope, EnvelopeBuilder, Session, Store
from ctxsteward.schemas import Wire

from ..transcripts import Call
from .scenario import Ask, Scenario
from .setup import DYNAMIC_TOKENS, Setup
from .suite import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """One model call."""

    call: Call
    builder: EnvelopeBuilder

    @property
    def at(self) -> str:
        return f"call {self.call.number}, {len(self.call.wires)} messages said"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question."""

    ask: Ask
    envelope: Envelope
    session: Session
    wires: Sequence[Wire]

    @property
    def at(self) -> str:
        return f"after message {self.ask.after}: {self.ask.question}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The conversation is over; its store closes after this moment."""

    session: Session
    builder: EnvelopeBuilder
    wires: Sequence[Wire]


Moment = Called | Asked | Ended


def play(
    scenario: Scenario, setup: Setup, stage: Stage, *, dynamic_tokens: int = DYNAMIC_TOKENS, store: Store | None = None
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
                call = Call(number=stage.builds, session=session, envelope=envelope, wires=wires)
                yield Called(call=call, builder=builder)
            session.append(wire)
            wires.append(wire)
            while asks and asks[0].after == len(wires):
                ask = asks.pop(0)
                envelope = builder.preview(session, ask.question)
                yield Asked(ask=ask, envelope=envelope, session=session, wires=wires)
        yield Ended(session=session, builder=builder, wires=wires)
