"""What a phase is shown: its configuration and the past in, wire messages with their origins out.

    snowball    everything earlier, in order (no `context`)
    inject      what `inject_from` names, in its order, then the snowball
    selective   the input, then what `context.from` names, in its order
    auto        the input and the other anchors, then what a selector picks (`auto`)

Labels are exact: ``[Original Input]:``, ``[Images from P]:``, ``[Output from P]:``, ``[Conversation from P]:``,
``[State from P]:``; the input and state are JSON, indented by 2. Everything here is pure: the past, input and state are
frozen values as far as it is concerned, so what it returns is the context at the phase's start.

Raises `InvalidCascade` (unknown phase, a template that fails) and `InputError` (input or state that is no JSON).
Source: the context-injection design.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ctxsteward.schemas import Finding, Wire
from ctxsteward.schemas.cascade import AutoContext, Cascade
from ctxsteward.schemas.documents import SelectionLog
from ctxsteward.schemas.message import sent

from ..counting import Counter
from ..selection import Selector
from .auto import Choosing, select_automatically
from .building import Building, PhaseMessage
from .config import phase_named
from .past import Past
from .strategies import Strategies
from .templates import Rendered, plain

Mode = Literal["snowball", "inject", "selective", "auto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseContext:
    """What a phase is shown at its start, before its own instructions."""

    phase: str
    mode: Mode
    messages: tuple[PhaseMessage, ...]
    injected: int
    """How many of the messages, from the first one on, were injected; the others are the snowball's."""
    log: SelectionLog
    findings: tuple[Finding, ...]
    rendering: Callable[[], Rendered] = field(repr=False, compare=False)

    @property
    def wires(self) -> list[Wire]:
        """The messages as a provider's dicts."""
        return [sent(message.wire) for message in self.messages]

    @property
    def tokens(self) -> int:
        return sum(message.tokens for message in self.messages)

    def instructions(self) -> str:
        """The phase's instructions with input and state filled in; rendered when asked for."""
        return self.rendering().text


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
    budget_tokens: int | None = None,
    defaults: AutoContext | None = None,
    trusted: Collection[str] = (),
) -> PhaseContext:
    """The context of a phase.

    `state` is what templates see, by default all that the past recorded. `strategies` is what the configured names of
    `mode: auto` stand for, by default what needs nothing but installed extras; a `selector` of the caller's own takes
    the configured one's place. `budget_tokens` limits `mode: auto` further, and is reported where another mode exceeds
    it. `trusted` names phases whose content is the operator's own; only they may speak as system.
    """
    phase = phase_named(cascade, phase_name)
    building = Building(
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
    chosen, injected = None, None
    if context is not None and context.mode == "auto":
        mode = "auto"
        choosing = Choosing(
            strategies=strategies or Strategies(), selector=selector, budget_tokens=budget_tokens, defaults=defaults
        )
        chosen = select_automatically(building, choosing)
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
    used = sum(message.tokens for message in building.messages)
    if budget_tokens is not None and mode != "auto" and used > budget_tokens:
        text = f"the context has {used} tokens, the budget is {budget_tokens}; name fewer sources, or use `mode: auto`"
        building.note("context_over_budget", text)
    return PhaseContext(
        phase=phase.name,
        mode=mode,
        messages=tuple(building.messages),
        injected=len(building.messages) if injected is None else injected,
        log=building.selection_log(*chosen) if chosen is not None else building.selection_log(mode),
        findings=tuple(building.findings),
        rendering=building.instructions,
    )
