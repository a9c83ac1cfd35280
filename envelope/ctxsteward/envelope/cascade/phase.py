"""The context of a cascade's phase: configuration and past go in, wire messages with their origins come out.

`phase_context` is the pure function behind `open_phase` (`run`), and works without a store. A phase has one of four
modes:

    snowball    everything earlier, in order (no `context`)
    inject      the sources of `inject_from`, in its order, then the snowball
    selective   the input, then the sources of `context.from`, in its order
    auto        the input and the other anchors, then the choice of a selector (`auto_selection`)

Labels are exact: ``[Original Input]:``, ``[Images from P]:``, ``[Output from P]:``, ``[Conversation from P]:``,
``[State from P]:``; the input and state are JSON, indented by 2. Past, input and state are read as frozen values, so
the result is the context at the phase's start.

Raises `InvalidCascade` (unknown phase, a template that fails) and `InputError` (input or state that is no JSON).
Source: the context-injection design.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ctxsteward.schemas import Finding
from ctxsteward.schemas.cascade import Cascade
from ctxsteward.schemas.documents import SelectionLog
from ctxsteward.schemas.message import Wire, sent

from ..recall.selection import Selector
from ..tokens.tokenizer import Counter
from .auto_selection import Strategies, select_automatically
from .config import phase_named
from .context import ContextBuilder, PhaseMessage
from .past import Past
from .templates import plain

Mode = Literal["snowball", "inject", "selective", "auto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseContext:
    """The messages of a phase at its start, before its own instructions."""

    phase: str
    mode: Mode
    messages: tuple[PhaseMessage, ...]
    injected: int
    """Number of injected messages at the beginning; the others are the snowball's."""
    log: SelectionLog
    findings: tuple[Finding, ...]
    instructions: str
    """Instructions of the phase with input and state filled in."""

    @property
    def wires(self) -> list[Wire]:
        """Messages as a provider's dicts."""
        return [sent(message.wire) for message in self.messages]

    @property
    def tokens(self) -> int:
        return sum(message.tokens for message in self.messages)


def phase_context(
    cascade: Cascade,
    phase_name: str,
    past: Past,
    *,
    input: object = None,
    state: Mapping[str, Any] | None = None,
    counter: Counter,
    strategies: Strategies | None = None,
    selector: Selector | None = None,
    trusted: Collection[str] = (),
) -> PhaseContext:
    """Return the context of a phase.

    Templates see `state`, by default all that the past recorded. `strategies` makes the selector that `mode: auto`
    configures, by default from installed extras alone; a `selector` of the caller's own replaces it. `trusted` names
    phases whose content is the operator's own; only they may speak as system.
    """
    phase = phase_named(cascade, phase_name)
    building = ContextBuilder(
        cascade=cascade,
        phase=phase,
        past=past,
        input=plain(input, "input"),
        state=plain(dict(past.state if state is None else state), "state"),
        counter=counter,
        trusted=frozenset(trusted),
    )
    context = phase.context
    mode: Mode = "snowball"
    log, injected = None, None
    if context is not None and context.mode == "auto":
        mode = "auto"
        log = select_automatically(building, strategies or Strategies(), selector)
    elif context is not None:
        mode = "selective"
        if context.include_input:
            building.add_input()
        building.add_sources()
    else:
        mode = "inject" if phase.inject_from is not None else mode
        building.add_sources()
        injected = len(building.messages)
        building.add_snowball()
    return PhaseContext(
        phase=phase.name,
        mode=mode,
        messages=tuple(building.messages),
        injected=len(building.messages) if injected is None else injected,
        log=log or building.selection_log(mode),
        findings=tuple(building.findings),
        instructions=building.instructions(),
    )
