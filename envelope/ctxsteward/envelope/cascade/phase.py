"""What a phase of a cascade is shown: its configuration and the past go in, wire messages with their origins come out.

`phase_context` is the pure function behind `open_phase` (`run`), and works without a store. A phase has one of four
modes:

    snowball    everything earlier, in order (no `context`)
    inject      what `inject_from` names, in its order, then the snowball
    selective   the input, then what `context.from` names, in its order
    auto        the input and the other anchors, then what a selector picks (`auto_selection`)

Labels are exact: ``[Original Input]:``, ``[Images from P]:``, ``[Output from P]:``, ``[Conversation from P]:``,
``[State from P]:``; the input and state are JSON, indented by 2. Past, input and state are read as frozen values, so
the result is the context at the phase's start.

Two smaller subjects stand in the same module because `phase_context` is configured beside them:

- *Inside a phase* (`intra_context`). `intra_policy` gives the builder a compaction policy. When a compaction is due,
  tool results older than `mask_observations_after` steps become one line; if that is not enough, what is older than the
  newest `window` steps leaves, oldest first, messages that mention errors and plain reasoning last; if that is not
  enough either, the builder's own order holds. Between compactions nothing changes, so a provider's cache keeps what it
  has. `retry_messages` is what the next attempt of a loop is shown: the task, the newest attempts (of each at most
  `MAX_OUTPUT_CHARS`) and why they failed.
- *Sub-cascades* (`sub_input`, `sub_state`). A sub-cascade has a run and a context of its own; it names none of its
  parent's phases. Its input comes from `input_map`; `context_in` and `context_out` say which keys of the state pass:
  all (true), none (false), or those named.

Raises `InvalidCascade` (unknown phase, a template that fails) and `InputError` (input or state that is no JSON).
Source: the context-injection design; the auto-context design (intra-phase).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

from ctxsteward.schemas import (
    AutoContext,
    Cascade,
    Finding,
    IntraContext,
    InvalidCascade,
    Message,
    SelectionLog,
    SubCascade,
    Wire,
    sent,
)

from ..compaction import CompactionCandidate, CompactionChoice, Policy as Policy, Window, choose
from ..recall import Selector
from ..tokens import Counter
from .auto_selection import Strategies, mentions_error, select_automatically
from .config import phase_named
from .context import ContextBuilder, PhaseMessage
from .past import Past
from .templates import RenderedTemplate, TemplateFailed, plain, render

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
    rendering: Callable[[], RenderedTemplate] = field(repr=False, compare=False)

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
        log = select_automatically(building, strategies or Strategies(), selector, budget_tokens, defaults)
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
        log=log or building.selection_log(mode),
        findings=tuple(building.findings),
        rendering=building.instructions,
    )


MAX_OUTPUT_CHARS = 500


class RefusedAttempt(NamedTuple):
    """An attempt that its validator refused."""

    output: str
    reason: str


def intra_policy(settings: IntraContext | None) -> Policy:
    """The builder's policy for a phase; the default one where `intra_context` is off."""
    if settings is None or not settings.enabled:
        return Policy()
    name = f"intra-phase/1 window={settings.window} mask={settings.mask_observations_after}"
    return Policy(name=name, choose=partial(_choose, settings))


def retry_messages(settings: IntraContext, task: str, failures: Sequence[RefusedAttempt]) -> list[Wire]:
    """The whole context of the attempt after these; without `compress_loops`, what is added to a history that goes on.

    >>> texts = retry_messages(IntraContext(), "Mend it.", [RefusedAttempt("done", "2 tests fail")])
    >>> [wire["content"].splitlines()[0] for wire in texts]
    ['[Original Task]', '[Attempt #1]', '[Validation Failed]', 'Attempt #2: mend what the validation found.']
    """
    numbered = list(enumerate(failures, 1))
    go: Wire = {"role": "user", "content": f"Attempt #{len(failures) + 1}: mend what the validation found."}
    if not settings.compress_loops:
        return [*(_refused(failure) for _, failure in numbered[-1:]), go]
    messages: list[Wire] = [{"role": "user", "content": f"[Original Task]\n{task}"}]
    for number, failure in numbered[-settings.loop_history_limit :] if settings.loop_history_limit else []:
        output = failure.output
        if len(output) > MAX_OUTPUT_CHARS:
            output = f"{output[: MAX_OUTPUT_CHARS - 1]}…"
        messages += [{"role": "assistant", "content": f"[Attempt #{number}]\n{output}"}, _refused(failure)]
    return [*messages, go]


def _refused(failure: RefusedAttempt) -> Wire:
    return {"role": "user", "content": f"[Validation Failed]\n{failure.reason}"}


def _choose(settings: IntraContext, window: Window, need_tokens: int) -> CompactionChoice:
    ages = _ages(window.candidates)
    rows = [row for row in window.candidates if not row.must and not row.task]
    masked = {row.group.first: row for row in rows if _is_masked(settings, row, ages[row.group.first])}
    left = need_tokens - sum(row.tokens - row.masked_tokens for row in masked.values())
    older = sorted(
        (row for row in rows if ages[row.group.first] >= settings.window),
        key=lambda row: (row.soft, _is_preserved(settings, row), row.group.first),
    )
    dropped: list[CompactionCandidate] = []
    for row in older:
        if left <= 0:
            break
        dropped.append(row)
        left -= row.tokens if masked.pop(row.group.first, None) is None else row.masked_tokens
    if left > 0:
        return choose(window, need_tokens)
    return CompactionChoice(drop=tuple(row.group for row in dropped), mask=tuple(row.group for row in masked.values()))


def _is_masked(settings: IntraContext, row: CompactionCandidate, age: int) -> bool:
    saves = age > settings.mask_observations_after and row.masked_tokens < row.tokens
    return saves and not (settings.preserve_errors and _tells_of_error(row))


def _ages(rows: Sequence[CompactionCandidate]) -> dict[int, int]:
    """Steps (assistant messages with their results) from each group on, itself left out, by its first ordinal."""
    ages: dict[int, int] = {}
    steps = 0
    for row in reversed(rows):
        ages[row.group.first] = steps
        steps += row.group.entries[0].message.role == "assistant"
    return ages


def _is_preserved(settings: IntraContext, row: CompactionCandidate) -> bool:
    first = row.group.entries[0].message
    reasons = first.role == "assistant" and not first.tool_calls
    return (settings.preserve_reasoning and reasons) or (settings.preserve_errors and _tells_of_error(row))


def _tells_of_error(row: CompactionCandidate) -> bool:
    messages: list[Message] = [entry.message for entry in row.group.entries]
    return any(map(mentions_error, messages))


def sub_input(sub: SubCascade, *, input: object, state: Mapping[str, Any]) -> object:
    """The sub-cascade's input: each template of `input_map` filled in; without one, the parent's input."""
    if not sub.input_map:
        return input
    filled: dict[str, str] = {}
    for key, template in sub.input_map.items():
        try:
            filled[key] = render(template, input=input, state=state).text
        except TemplateFailed as error:
            raise InvalidCascade(f"sub-cascade {sub.ref!r}", f"input_map.{key}", error.found, error.hint) from error
    return filled


def sub_state(passes: bool | tuple[str, ...], state: Mapping[str, Any]) -> dict[str, Any]:
    """The state that `context_in` lets in, or `context_out` out.

    >>> sub_state(("plan",), {"plan": "tea", "budget": 3})
    {'plan': 'tea'}
    """
    if isinstance(passes, bool):
        return dict(state) if passes else {}
    return {key: value for key, value in state.items() if key in passes}
