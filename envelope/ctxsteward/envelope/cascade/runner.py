"""Playing a cascade: phases in order, each with sub-cascades, soundings and tries, continued from the logs.

    runner = CascadeRunner(store=store, cascade=cascade, player=player, builder=make_builder, run="night-7")
    outcome = runner.play()

A phase first plays its sub-cascades, each a run of its own (``RUN.sub1-1``). `context_in` and `context_out` select the
state that flows in and out: all keys (true), none (false), or the named ones. A sub-cascade's input comes from
`input_map`; it cannot name phases of its parent. Then the phase is opened (`open_phase`) and attempted (`turns`). With
`soundings` all attempts are opened before the first is played, so that none sees another. Threads play them, each with
a selection and a builder of its own. Among the attempts that their validator accepted, the player chooses
(`Player.choose`), or the model with `evaluator_instructions`, or else the first one counts. The result of
`output_extraction` becomes state. A phase with sub-cascades and without instructions calls no model.

A failed phase ends the run (its validator refused every try, required output is missing, a sub-cascade failed); a phase
cut by `max_turns` does not. A run may be killed anywhere and played again: ended phases are read, not played. It is
refused if the cascade or the input has changed.

Each attempt has a new builder, with the phase's compaction policy, corrected by the provider's reports so far. Spans
``context.run`` and ``context.phase`` are emitted if OpenTelemetry is set up.

Raises the errors of `open_phase`, the builder and ports.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ctxsteward.schemas import Finding, InputError
from ctxsteward.schemas.cascade import MANIFEST, Cascade, Phase, SubCascade
from ctxsteward.schemas.errors import InvalidCascade
from ctxsteward.schemas.message import Wire

from ..compaction.policy import Policy
from ..telemetry.spans import spanned
from .continuity import INSTRUCTIONS, PLAN_NOTE, SCRATCHPAD_NOTE
from .past import LEDGER_SUFFIX
from .run import (
    OpenedPhase,
    Profile,
    Store,
    Strategies,
    choose_attempt,
    close_phase,
    open_phase,
    read_run,
    record_state,
)
from .script import EvaluatedAttempt, ModelRequest, Player, tool_schema
from .templates import TemplateFailed, render
from .turns import (
    AttemptEnd,
    CallMeter,
    CascadeRun,
    Ended,
    MakeBuilder,
    PhaseAttempt,
    RunLedger,
    calibrated_builder,
    reply_row,
    tag_of,
)

WORKERS = 4
MAX_DEPTH = 8
"""Most levels of nested sub-cascades."""


class PhaseEnd(NamedTuple):
    """How a phase ended."""

    phase: str
    status: Ended
    text: str
    """Output of the phase."""
    calls: int
    """Model calls over all attempts, without those of sub-cascades and of the evaluator."""
    tries: int
    """Tries of the attempt that counts."""
    attempts: int
    chosen: int | None
    """Number of the chosen sounding, or None without soundings."""
    reason: str
    findings: tuple[tuple[str, str], ...] = ()
    """Kind and text of each finding."""


class RunEnd(NamedTuple):
    """How a run ended."""

    run: str
    status: Literal["done", "failed"]
    phases: tuple[PhaseEnd, ...]
    state: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class CascadeRunner:
    """A run of a cascade in a store."""

    store: Store
    cascade: Cascade
    run: str
    player: Player
    builder: MakeBuilder
    tenant: str = "default"
    input: object = None
    system: Sequence[str] = ()
    profile: Profile | None = None
    tools: Mapping[str, Callable[..., object] | None] = field(default_factory=dict)
    """Tools by name, for their schemas; None for a scripted tool."""
    strategies: Strategies | None = None
    scratchpad: bool = True
    """Whether the model gets instructions to keep a scratchpad."""
    max_calls: int | None = None
    """Most model calls by this process, those of sub-cascades and evaluators included."""
    workers: int = WORKERS
    """Attempts of one phase that play in parallel."""
    tell: Callable[[str], None] = lambda text: None

    def play(self) -> RunEnd:
        """Play the phases that have not ended."""
        return _CascadeRun(self, self.cascade, self.run, self.input, {}, CallMeter(self.max_calls), 0).play()


class _CascadeRun:
    """A cascade under way: the run's own, or a sub-cascade with a run of its own."""

    def __init__(
        self,
        runner: CascadeRunner,
        cascade: Cascade,
        run: str,
        input: object,
        state: Mapping[str, Any],
        meter: CallMeter,
        depth: int,
    ) -> None:
        """`state` flows in from outside; state set by phases overrides it."""
        self.runner, self.cascade, self.run, self.input, self.state = runner, cascade, run, input, state
        self.depth = depth
        self.store, self.tenant = runner.store, runner.tenant
        self.ledger = RunLedger(self.store, run, self.tenant)
        self.under_way = CascadeRun(
            cascade=cascade,
            store=runner.store,
            ledger=self.ledger,
            player=runner.player,
            meter=meter,
            system=(*runner.system, INSTRUCTIONS) if runner.scratchpad else tuple(runner.system),
            tell=runner.tell,
        )

    def play(self) -> RunEnd:
        self._begin()
        ends: list[PhaseEnd] = []
        with spanned("context.run", {"context.cascade": self.cascade.cascade_id}) as tell_span:
            for index, phase in enumerate(self.cascade.phases):
                with spanned("context.phase", {"context.cascade.phase": phase.name}) as tell_phase:
                    ends.append(self._phase(index, phase))
                    tell_phase({"context.status": ends[-1].status, "context.calls": ends[-1].calls})
                if ends[-1].status == "failed":
                    break
            status: Literal["done", "failed"] = "failed" if ends[-1].status == "failed" else "done"
            tell_span({"context.status": status, "context.calls": sum(end.calls for end in ends)})
        return RunEnd(self.run, status, tuple(ends), self._state())

    def _begin(self) -> None:
        """Note cascade and input, or refuse a run that began with others."""
        document = self.cascade.model_dump(mode="json", by_alias=True)
        try:
            data = json.dumps([document, self.input], sort_keys=True, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"the input is no JSON: {error}") from error
        digest = hashlib.sha256(data.encode()).hexdigest()
        begun = {"cascade": self.cascade.cascade_id, "digest": digest, "phases": list(self.cascade.names)}
        known = self.ledger.get("begun")
        if known is not None and known != begun:
            what = (
                "another input, or a cascade that was changed"
                if known["cascade"] == begun["cascade"]
                else (f"cascade {known['cascade']!r}")
            )
            raise InputError(f"run {self.run!r} was begun with {what}; give this one an id of its own")
        self.ledger.put("begun", begun)

    def _state(self) -> dict[str, Any]:
        return {**self.state, **read_run(self.store, self.cascade, self.run, tenant=self.tenant).state}

    # -- one phase ----------------------------------------------------------------------------------------------

    def _phase(self, index: int, phase: Phase) -> PhaseEnd:
        known = self.ledger.get(f"ended-{index:03}")
        if known is not None:
            return PhaseEnd(**{**known, "findings": tuple(map(tuple, known["findings"]))})
        text, failure = self._play_subs(index, phase)
        factor = phase.soundings.factor if phase.soundings else 0
        numbers: list[int | None] = [*range(1, factor + 1)] or [None]
        findings: list[Finding] = []
        if failure:
            end, chosen, calls = AttemptEnd("failed", text, 0, 1, failure), None, 0
        elif phase.sub_cascades and not phase.instructions.strip() and not factor:
            end, chosen, calls = AttemptEnd("done", text, 0, 1), None, 0
        else:
            plays = self._attempts(index, phase, numbers, findings)
            chosen = self._choose(index, phase, plays, findings) if factor else None
            end, calls = plays[chosen], sum(played.calls for played in plays.values())
        missed: Sequence[Finding] = ()
        if end.status != "failed":
            _, missed = close_phase(self.store, self.cascade, phase.name, run=self.run, tenant=self.tenant)
        status, reason = end.status, end.reason
        if any(finding.kind == "extraction_required" for finding in missed):
            status, reason = "failed", missed[0].text
        ended = PhaseEnd(
            phase.name,
            status,
            end.text,
            calls,
            end.tries,
            len(numbers),
            chosen,
            reason,
            tuple((finding.kind, finding.text) for finding in (*findings, *missed)),
        )
        self.ledger.put(f"ended-{index:03}", ended._asdict())
        return ended

    def _attempts(
        self, index: int, phase: Phase, numbers: Sequence[int | None], findings: list[Finding]
    ) -> dict[int | None, AttemptEnd]:
        """Open all attempts, then play them."""
        opened = [self._open(index, phase, number) for number in numbers]
        findings += opened[0].context.findings
        attempts = [
            self._attempt(index, phase, number, phase_opened)
            for number, phase_opened in zip(numbers, opened, strict=True)
        ]
        if len(attempts) == 1 or self.runner.workers == 1:
            return {attempt.attempt: attempt.play() for attempt in attempts}
        with ThreadPoolExecutor(max_workers=min(self.runner.workers, len(attempts))) as threads:
            futures = [threads.submit(attempt.play) for attempt in attempts]
            return {attempt.attempt: future.result() for attempt, future in zip(attempts, futures, strict=True)}

    def _open(self, index: int, phase: Phase, attempt: int | None) -> OpenedPhase:
        builder = self.runner.builder(Policy())
        opened = open_phase(
            self.store,
            self.cascade,
            phase.name,
            run=self.run,
            tenant=self.tenant,
            input=self.input,
            state=self._state() if self.state else None,
            attempt=attempt,
            profile=self.runner.profile,
            system=self.under_way.system,
            tools=self._tools(phase),
            counter=builder.counter,
            strategies=self.runner.strategies,
        )
        if not opened.context.instructions.strip():
            wire = {"role": "user", "content": f"[Phase {phase.name}]"}
            opened.session.append(wire, phase=phase.name, id=f"begin {tag_of(index, attempt)}")
        return opened

    def _attempt(self, index: int, phase: Phase, number: int | None, opened: OpenedPhase) -> PhaseAttempt:
        return PhaseAttempt(
            run=self.under_way,
            phase=phase,
            index=index,
            attempt=number,
            session=opened.session,
            builder=calibrated_builder(self.runner.builder, opened.policy, self.ledger, index),
            tools=self._tools(phase),
        )

    def _tools(self, phase: Phase) -> list[Wire]:
        names = self.runner.tools if phase.tackle == MANIFEST else phase.tackle
        return [tool_schema(name, self.runner.tools.get(name)) for name in names]

    # -- soundings ----------------------------------------------------------------------------------------------

    def _choose(
        self,
        index: int,
        phase: Phase,
        plays: Mapping[int | None, AttemptEnd],
        findings: list[Finding],
    ) -> int:
        """Choose the attempt that counts, and note it."""
        passed = [EvaluatedAttempt(n, end.text) for n, end in plays.items() if n and end.status != "failed"]
        chosen = passed[0].attempt if passed else 1
        instructions = phase.soundings.evaluator_instructions if phase.soundings else None
        wanted = self.runner.player.choose(phase.name, passed) if len(passed) > 1 else None
        if wanted is not None:
            chosen = wanted
            if chosen not in [candidate.attempt for candidate in passed]:
                raise InputError(
                    f"phase {phase.name!r}: the evaluator chose {chosen!r:.40}; "
                    f"it gives one of {', '.join(str(candidate.attempt) for candidate in passed)}"
                )
        elif len(passed) > 1 and instructions:
            reply = self._ask_evaluator(index, phase, instructions, passed)
            wanted = choice_in(reply, [candidate.attempt for candidate in passed])
            if wanted is None:
                text = f"the evaluator named no attempt that passed; attempt {chosen} counts: {reply[:100]!r}"
                findings.append(Finding(kind="evaluator_unusable", field="soundings", text=text))
            chosen = wanted or chosen
        choose_attempt(self.store, self.run, phase.name, chosen, tenant=self.tenant)
        return chosen

    def _ask_evaluator(self, index: int, phase: Phase, instructions: str, passed: Sequence[EvaluatedAttempt]) -> str:
        """Ask the model to choose, in a session of its own, and return its reply."""
        session = self.store.session(f"{self.run}.{phase.name}..evaluator", tenant=self.tenant)
        if not len(session):
            shown = "\n\n".join(f"[Attempt {candidate.attempt}]\n{candidate.text}" for candidate in passed)
            task = self._open(index, phase, passed[0].attempt).context.instructions
            ask = 'Answer with one JSON object and nothing else: {"chosen": N, "reasoning": "one sentence"}'
            text = f"{instructions}\n\n[Task]\n{task}\n\n{shown}\n\n{ask}"
            session.append({"role": "user", "content": text}, id="question")
        if session.state.last_text:
            return session.entry(session.state.last_text).message.text
        envelope = calibrated_builder(self.runner.builder, Policy(), self.ledger, index + 1).build(session)
        self.under_way.meter.take()
        self.ledger.put(
            f"call-{tag_of(index, 999)}-00001",
            {
                "phase": phase.name,
                "attempt": None,
                "number": 1,
                "session": session.id,
                "envelope": envelope.address,
                "position": envelope.position,
                "prompt_tokens": envelope.tokens,
                "compactions": 0,
                "findings": [],
            },
        )
        request = envelope.render("openai-chat")
        asked = ModelRequest(self.cascade.cascade_id, phase.name, None, 1, "evaluator", request)
        return session.append(self.runner.player.answer(asked).message, id="choice").message.text

    # -- sub-cascades -------------------------------------------------------------------------------------------

    def _play_subs(self, index: int, phase: Phase) -> tuple[str, str]:
        """Play the sub-cascades in order; return the last output, and the reason if one failed."""
        text = ""
        if self.depth >= MAX_DEPTH and phase.sub_cascades:
            raise InputError(f"phase {phase.name!r}: sub-cascades are nested deeper than {MAX_DEPTH}; flatten them")
        for place, sub in enumerate(phase.sub_cascades):
            played = self._sub_run(index, place, sub)
            end = played.play()
            if end.status == "failed":
                last = end.phases[-1]
                return last.text, f"sub-cascade {sub.ref!r} failed in {last.phase!r}: {last.reason}"
            flows = sub_state(sub.context_out, {k: v for k, v in end.state.items() if end.state[k] is not None})
            own = {key: value for key, value in flows.items() if played.state.get(key, _MISSING) != value}
            if own:
                record_state(self.store, self.run, phase.name, own, tenant=self.tenant)
            text = end.phases[-1].text
        return text, ""

    def _sub_run(self, index: int, place: int, sub: SubCascade) -> _CascadeRun:
        state, cascade = self._state(), sub_cascade_of(self.cascade, sub.ref)
        run = f"{self.run}.sub{index + 1}-{place + 1}"
        self.ledger.put(f"sub-{index:03}-{place:03}", {"run": run, "cascade": sub.ref})
        flowing = sub_state(sub.context_in, state)
        # A sub-cascade keeps the input of its first play, because its own state flows back meanwhile.
        input = self.ledger.get(f"given-{index:03}-{place:03}")
        if input is None:
            input = [sub_input(sub, input=self.input, state=state), flowing]
            self.ledger.put(f"given-{index:03}-{place:03}", input)
        return _CascadeRun(self.runner, cascade, run, input[0], input[1], self.under_way.meter, self.depth + 1)


_MISSING = object()
_CARRIED = (SCRATCHPAD_NOTE, PLAN_NOTE)


class RunProgress(NamedTuple):
    """Progress of a run."""

    cascade: str
    ended: tuple[str, ...]
    left: tuple[str, ...]
    """Phases that have not ended; the first one is under way."""
    session: str | None
    """Session of the newest model call, or None before the first."""
    notes: Mapping[str, str]
    """The newest scratchpad and plan of its sessions."""


def progress_of(store: Store, run: str, *, tenant: str = "default") -> RunProgress | None:
    """Return the progress of a run, or None if no run of this id was begun."""
    if not store.exists(f"{run}{LEDGER_SUFFIX}", tenant=tenant):
        return None
    notes = store.at(tenant, f"{run}{LEDGER_SUFFIX}").state.notes
    if "begun" not in notes:
        return None
    begun = json.loads(notes["begun"])
    calls = [json.loads(text) for name, text in notes.items() if name.startswith("call-")]
    own = [call["session"] for call in calls if not call["session"].endswith("..evaluator")]
    newest_notes: dict[str, str] = {}
    for id in dict.fromkeys(own):
        newest_notes |= {name: text for name, text in store.at(tenant, id).state.notes.items() if name in _CARRIED}
    ended = {json.loads(text)["phase"] for name, text in notes.items() if name.startswith("ended-")}
    names = begun["phases"]
    return RunProgress(
        begun["cascade"],
        tuple(name for name in names if name in ended),
        tuple(name for name in names if name not in ended),
        own[-1] if own else None,
        newest_notes,
    )


def recording_of(store: Store, cascade: Cascade, run: str, *, tenant: str = "default") -> Iterator[Wire]:
    """Yield script rows that play this run again, sub-cascades included."""
    ledger = RunLedger(store, run, tenant)
    places = {phase.name: at for at, phase in enumerate(cascade.phases)}
    for sub in ledger.all("sub-").values():
        yield from recording_of(store, sub_cascade_of(cascade, sub["cascade"]), sub["run"], tenant=tenant)
    for call in ledger.all("call-").values():
        entries = store.at(tenant, call["session"]).entries()
        if call["session"].endswith("..evaluator"):
            yield {**reply_row(call, cascade.cascade_id, entries[-1:], None), "evaluator": True}
            continue
        tag = tag_of(places[call["phase"]], call["attempt"])
        place = f"{tag}-{call['number']:05}"
        at = next((n for n, entry in enumerate(entries) if entry.event.id == f"reply {place} 0"), None)
        if at is None:
            continue  # killed before the reply
        until = next((n for n in range(at + 1, len(entries)) if not entries[n].message.tool_results), len(entries))
        refused = [
            failure["reason"]
            for failure in ledger.all(f"refused-{tag}-").values()
            if failure["calls"] == call["number"]
        ]
        used = ledger.get(f"used-{place}")
        yield reply_row(call, cascade.cascade_id, entries[at:until], refused[0] if refused else None, used)


def sub_input(sub: SubCascade, *, input: object, state: Mapping[str, Any]) -> object:
    """Return a sub-cascade's input: its rendered `input_map`, else the parent's input."""
    if not sub.input_map:
        return input
    filled: dict[str, str] = {}
    for key, template in sub.input_map.items():
        try:
            filled[key] = render(template, input=input, state=state)
        except TemplateFailed as error:
            raise InvalidCascade(f"sub-cascade {sub.ref!r}", f"input_map.{key}", error.found, error.hint) from error
    return filled


def sub_state(passes: bool | tuple[str, ...], state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the state that `context_in` or `context_out` passes.

    >>> sub_state(("plan",), {"plan": "tea", "budget": 3})
    {'plan': 'tea'}
    """
    if isinstance(passes, bool):
        return dict(state) if passes else {}
    return {key: value for key, value in state.items() if key in passes}


def sub_cascade_of(cascade: Cascade, ref: str) -> Cascade:
    """Return the sub-cascade of this id, with the cascades that it may name."""
    known = {defined.cascade_id: defined for defined in every_cascade(cascade)}
    if ref not in known:
        raise InputError(f"no cascade {ref!r}; defined: {', '.join(known)}")
    others = tuple(defined for id, defined in known.items() if id not in (ref, cascade.cascade_id))
    return known[ref].model_copy(
        update={"cascades": tuple(defined.model_copy(update={"cascades": ()}) for defined in others)}
    )


def every_cascade(cascade: Cascade) -> Iterator[Cascade]:
    """Yield the cascade and all cascades defined in it."""
    yield cascade
    for further in cascade.cascades:
        yield from every_cascade(further)


def choice_in(text: str, allowed: Sequence[int]) -> int | None:
    """Return the attempt that an evaluator's reply names in a JSON object or as its only number.

    >>> choice_in('{"chosen": 2, "reasoning": "it names the port"}', [1, 2])
    2
    """
    try:
        value = json.loads(text[text.index("{") : text.rindex("}") + 1])
        chosen = value.get("chosen") if isinstance(value, dict) else None
    except (ValueError, RecursionError):
        numbers = set(re.findall(r"\d+", text))
        only = numbers.pop() if len(numbers) == 1 else ""
        chosen = int(only) if 0 < len(only) <= 3 else None
    return chosen if isinstance(chosen, int) and not isinstance(chosen, bool) and chosen in allowed else None
