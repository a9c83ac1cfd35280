"""One attempt at a phase: model calls, tool results, the validator's verdict, and retries after a refusal.

A *turn* is one call of the model with the results of its tool calls. A reply without calls ends a try. With
`loop_until` a validator judges that reply. A refused reply is tried again, at most `max_attempts` times, each try with
at most `max_turns` turns. With `compress_loops` each later try has a session of its own (``PHASE-SESSION.try-2``) with
the phase's context, the task and the newest attempts with the reasons for their failure (`retry_messages`). Its notes
have the scratchpad, and sentences in which earlier tries decided something. The accepted reply is copied into the
phase's session. Without `compress_loops` the refusal is appended and the history continues.

The logs contain everything: before a call its envelope's address is noted in the run's ledger; after it the reply is
appended. A process that continues a killed one therefore reads the run's place, builds the same envelope and asks
again. A model, tool or validator may be called twice for one step.

Raises the errors of ports; `InputError` at a limit on calls, or if nobody plays a tool or validator.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ctxsteward.schemas import ContextError, InputError, Message
from ctxsteward.schemas.cascade import Cascade, IntraContext, Phase
from ctxsteward.schemas.message import Wire

from ..building.builder import EnvelopeBuilder
from ..compaction.policy import Policy, phase_log
from ..history.session import Session
from ..history.tool_groups import LogEntry, NewMessage
from .config import intra_context
from .continuity import (
    CHECKPOINT_INTERVAL,
    DECISIONS_NOTE,
    QUALITY_NOTE,
    SCRATCHPAD_NOTE,
    Store,
    checkpoint_of,
    decisions_of,
    sanitized,
    signals_in,
)
from .intra_phase import retry_messages
from .past import LEDGER_SUFFIX
from .script import ModelRequest, PhaseOutput, Player, ToolAnswer, ToolUse

DEFAULT_TURNS = 50
DEFAULT_ATTEMPTS = 3
"""Tries of a phase with `loop_until` that names no `max_attempts`."""
Ended = Literal["done", "cut", "failed"]
"""done: the model ended its turn, and the validator accepted it. cut: `max_turns` was reached first."""


MakeBuilder = Callable[[Policy], EnvelopeBuilder]
"""A new builder with a phase's compaction policy."""


class RunLedger:
    """Notes of a run, kept out of every envelope: JSON values by name. Threads may share it."""

    def __init__(self, store: Store, run: str, tenant: str) -> None:
        self._session = store.session(f"{run}{LEDGER_SUFFIX}", tenant=tenant)
        self._lock = threading.RLock()

    def get(self, name: str) -> Any:
        """Return the value of this name, or None."""
        with self._lock:
            self._session.refresh()
            text = self._session.state.notes.get(name)
        return None if text is None else json.loads(text)

    def put(self, name: str, value: object) -> None:
        """Set a value; an equal value is not written again."""
        text = json.dumps(value, ensure_ascii=False)
        with self._lock:
            self._session.refresh()
            if self._session.state.notes.get(name) != text:
                self._session.note(name, text)

    def all(self, prefix: str) -> dict[str, Any]:
        """Return the values whose names have this prefix, sorted by name."""
        with self._lock:
            self._session.refresh()
            notes = dict(self._session.state.notes)
        return {name: json.loads(notes[name]) for name in sorted(notes) if name.startswith(prefix)}


class CallMeter:
    """Counts the model calls of a run and its sub-cascades against a limit."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit: int | None = limit
        self.calls: int = 0
        self._lock = threading.Lock()

    def take(self) -> None:
        """Count one call; raise `InputError` over the limit."""
        with self._lock:
            if self.limit is not None and self.calls >= self.limit:
                hint = "resume it with a higher one"
                raise InputError(f"the run has made {self.calls} calls of the model, which is its limit; {hint}")
            self.calls += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeRun:
    """A run under way: its cascade, store, ledger, player and limits."""

    cascade: Cascade
    store: Store
    ledger: RunLedger
    player: Player
    meter: CallMeter
    system: Sequence[str]
    tell: Callable[[str], None]


class AttemptEnd(NamedTuple):
    """How an attempt at a phase ended."""

    status: Ended
    text: str
    """Last text of the attempt."""
    calls: int
    tries: int
    reason: str = ""
    """Reason why it was cut or failed."""


@dataclass(slots=True, kw_only=True)
class PhaseAttempt:
    """One attempt, continued from its logs."""

    run: CascadeRun
    phase: Phase
    index: int
    """Position of the phase in its cascade."""
    attempt: int | None
    session: Session
    """Opened session of the phase."""
    builder: EnvelopeBuilder
    tools: Sequence[Wire]
    """Schemas of the tools that the model may call."""
    _is_calibrated: bool = False
    _sent: dict[str, int] = field(default_factory=dict)
    """Prompt tokens of this attempt, by call."""
    _received: dict[str, int] = field(default_factory=dict)
    """Completion tokens of this attempt, by call."""

    def play(self) -> AttemptEnd:
        """Play until the attempt has ended."""
        ledger, ended = self.run.ledger, f"end-{self.tag}"
        known = ledger.get(ended)
        if known is not None:
            return AttemptEnd(**known)
        failures = [failure for _, failure in sorted(ledger.all(f"refused-{self.tag}-").items())]
        tries = self.phase.rules.max_attempts or DEFAULT_ATTEMPTS
        while True:
            if len(failures) >= tries:
                last = failures[-1]
                why = f"{self.phase.rules.loop_until!r} refused {tries} attempts, the last one: {last['reason']}"
                end = AttemptEnd("failed", last["output"], last["calls"], tries, why)
                self._accept(end, last.get("notes", {}))
                break
            session = self._session_of_try(failures)
            before = failures[-1]["calls"] if failures else 0
            compressed = self._intra.compress_loops and bool(failures)
            number, text, is_whole = self._turns(session, before, compressed)
            most = self.phase.rules.max_turns or DEFAULT_TURNS
            reason = None if is_whole else f"no answer within {most} turns"
            validator = self.phase.rules.loop_until
            if validator is None:
                end = AttemptEnd("done" if is_whole else "cut", text, number, 1, reason or "")
                break
            if reason is None:
                cascade_id = self.run.cascade.cascade_id
                output = PhaseOutput(cascade_id, self.phase.name, self.attempt, number, validator, text)
                reason = self.run.player.verdict(output)
            if reason is None:
                end = AttemptEnd("done", text, number, len(failures) + 1)
                self._accept(end, _carried(session))
                break
            failures.append({"output": text, "reason": reason, "calls": number})
            if self._intra.compress_loops:
                failures[-1] |= {"decisions": decisions_of(session), "notes": _carried(session)}
            ledger.put(f"refused-{self.tag}-{len(failures):03}", failures[-1])
        ledger.put(ended, end._asdict())
        return end

    @property
    def tag(self) -> str:
        """Name of the attempt in the ledger's notes."""
        return tag_of(self.index, self.attempt)

    # -- tries --------------------------------------------------------------------------------------------------

    @property
    def _intra(self) -> IntraContext:
        """Intra context of the phase; if it is off, retries are not compressed."""
        intra = intra_context(self.run.cascade, self.phase)
        return intra if intra is not None and intra.enabled else IntraContext(compress_loops=False)

    def _session_of_try(self, failures: Sequence[Mapping[str, Any]]) -> Session:
        """Return the session of the next try, with the earlier failures that the try shows."""
        if not failures:
            return self.session
        refused = [(failure["output"], failure["reason"]) for failure in failures]
        number = len(failures) + 1
        if not self._intra.compress_loops:
            self._append(self.session, retry_messages(self._intra, "", refused), f"again {self.tag} {number}")
            return self.session
        shown, task = self._task()
        name = f"{self.session.id}.try-{number}"
        tenant = self.session.tenant
        if shown and not self.run.store.exists(name, tenant=tenant):
            session = self.session.fork(shown, id=name)
        else:
            session = self.run.store.session(
                name, tenant=tenant, system=self.run.system, tools=self.tools, counter=self.session.counter
            )
        origin = f"{self.session.id}§{shown + 1}"[:200]
        self._append(session, retry_messages(self._intra, task, refused), f"try {self.tag} {number}", origin)
        notes = dict(failures[-1]["notes"])
        decisions = dict.fromkeys(decision for failure in failures for decision in failure["decisions"])
        if decisions:
            notes[DECISIONS_NOTE] = "\n".join(f"- {sanitized(decision)}" for decision in decisions)
        _note(session, notes)
        return session

    def _task(self) -> tuple[int, str]:
        """Return the number of messages before the phase's instructions, and the instructions."""
        for entry in self.session.entries():
            if self._is_own(entry):
                return entry.ordinal - 1, entry.message.text
        return len(self.session), self.phase.name

    def _accept(self, end: AttemptEnd, notes: Mapping[str, str]) -> None:
        """Copy the result of a try in its own session into the phase's session."""
        if end.tries == 1 or not self._intra.compress_loops:
            return
        is_refused = end.status == "failed"
        label = f"[Refused attempt #{end.tries}]\n{end.reason}" if is_refused else f"[Accepted attempt #{end.tries}]"
        wires: list[Wire] = [{"role": "user", "content": label}, {"role": "assistant", "content": end.text}]
        self._append(self.session, wires, f"accepted {self.tag}")
        _note(self.session, notes)

    # -- turns --------------------------------------------------------------------------------------------------

    def _turns(self, session: Session, before: int, is_fresh: bool) -> tuple[int, str, bool]:
        """Take turns until the model ends its turn; return the calls so far, the last text, and whether it ended."""
        own = [entry for entry in session.entries() if self._is_own(entry) and entry.message.role == "assistant"]
        number = len(own) + (before if is_fresh else 0)
        last = own[-1] if own and number > before else None
        self._calibrate(number)
        most = self.phase.rules.max_turns or DEFAULT_TURNS
        while True:
            if last is not None:
                self._take_signals(session, last.message.text)
                if not last.message.tool_calls:
                    return number, last.message.text, True
                self._answer_calls(session, last.message, number)
            if number - before >= most:
                return number, last.message.text if last else "", False
            number += 1
            last = self._call(session, number)

    def _call(self, session: Session, number: int) -> LogEntry:
        """Build an envelope, note its address, ask the model and append the reply."""
        run, place = self.run, f"{self.tag}-{number:05}"
        envelope = self.builder.build(session)
        request = envelope.render("openai-chat")
        log = phase_log(session, envelope.dynamic, self.builder.policy.name)
        record = {
            "phase": self.phase.name,
            "attempt": self.attempt,
            "number": number,
            "session": session.id,
            "envelope": envelope.address,
            "position": envelope.position,
            "prompt_tokens": envelope.tokens,
            "compactions": len(envelope.reports),
            "findings": sorted({f.kind for f in envelope.findings}),
            "selection": log.model_copy(update={"candidates": ()}).model_dump(mode="json", exclude_defaults=True),
        }
        known = run.ledger.get(f"call-{place}")
        if known is not None and known["envelope"] == envelope.address:  # the same call was asked before the kill
            record = known
        run.meter.take()
        run.ledger.put(f"call-{place}", record)
        self._sent[f"call-{place}"] = envelope.tokens
        run.tell(
            f"{self.phase.name}{'' if self.attempt is None else f' #{self.attempt}'}: call {number}, "
            f"{envelope.tokens:,} tokens"
        )
        asked = ModelRequest(self.run.cascade.cascade_id, self.phase.name, self.attempt, number, "phase", request)
        try:
            answer = run.player.answer(asked)
        except ContextError as error:
            self._checkpoint(session, number, str(error))
            raise
        used = {name: count for name, count in (answer.usage or {}).items() if type(count) is int and count >= 0}
        if used.get("prompt_tokens"):
            used["estimated"] = int(envelope.metrics["estimated_tokens"])
            run.ledger.put(f"used-{place}", used)
            self._received[f"used-{place}"] = used.get("completion_tokens", 0)
        (entry,) = self._append(session, [answer.message], f"reply {place}")
        if "estimated" in used:
            self.builder.calibrate(used, prompt_tokens=used["estimated"])
        if number % CHECKPOINT_INTERVAL == 0 or record["compactions"]:
            self._checkpoint(session, number)
        return entry

    def _calibrate(self, number: int) -> None:
        """Calibrate the builder once by the usage of earlier calls, and add up their tokens."""
        if self._is_calibrated:
            return
        self._is_calibrated = True
        reported = self.run.ledger.all(f"used-{self.tag}-")
        for used in list(reported.values())[:number]:
            self.builder.calibrate(used, prompt_tokens=used["estimated"])
        sent = self.run.ledger.all(f"call-{self.tag}-")
        self._sent = {name: call["prompt_tokens"] for name, call in sent.items()}
        self._received = {name: int(used.get("completion_tokens") or 0) for name, used in reported.items()}

    def _answer_calls(self, session: Session, message: Message, number: int) -> None:
        """Append the missing results."""
        group = session.state.groups[-1]
        known = {result.call_id: result.text for entry in group.entries for result in entry.message.tool_results}
        for index, call in enumerate(message.tool_calls):
            if call.id in known:
                self._take_signals(session, known[call.id], of_model=False)
                continue
            use = ToolUse(
                self.run.cascade.cascade_id,
                self.phase.name,
                self.attempt,
                number,
                index,
                call.id,
                call.name,
                call.arguments,
            )
            output = self._output(use)
            wire = {"role": "tool", "tool_call_id": call.id, "content": output.text}
            self._append(session, [wire], f"result {self.tag}-{number:05}-{index}")
            self._take_signals(session, output.text, of_model=False)

    def _output(self, use: ToolUse) -> ToolAnswer:
        names = [tool["function"]["name"] for tool in self.tools]
        if use.tool not in names:
            listed = ", ".join(sorted(names)) or "none"
            return ToolAnswer(f"error: this phase has no tool {use.tool[:60]!r}; its tools: {listed}", is_error=True)
        output = self.run.player.tool(use)
        if output is None:
            hint = "name a function for it, or give its result in the script"
            raise InputError(f"phase {use.phase!r}, call {use.number}: nobody plays the tool {use.tool!r}; {hint}")
        return output

    # -- notes and checkpoints ----------------------------------------------------------------------------------

    def _take_signals(self, session: Session, text: str, *, of_model: bool = True) -> None:
        """Set the notes that a text signals."""
        _note(session, dict(signals_in(text, session.state.notes, of_model=of_model)))

    def _checkpoint(self, session: Session, number: int, error: str | None = None) -> None:
        checkpoint = checkpoint_of(
            session,
            role=self.phase.name,
            iteration=number,
            error=error,
            input_tokens=sum(self._sent.values()),
            output_tokens=sum(self._received.values()),
            now=self.run.store.now,
        )
        self.run.ledger.put(f"checkpoint-{self.tag}", checkpoint)

    def _append(self, session: Session, wires: Sequence[Wire], id: str, origin: str | None = None) -> list[LogEntry]:
        """Append messages of this phase, except those whose id is already in the log."""
        return session.extend(
            NewMessage(message=wire, phase=self.phase.name, id=f"{id} {at}", origin=origin)
            for at, wire in enumerate(wires)
        )

    def _is_own(self, entry: LogEntry) -> bool:
        return entry.event.phase == self.phase.name and entry.event.origin is None


def calibrated_builder(make: MakeBuilder, policy: Policy, ledger: RunLedger, index: int) -> EnvelopeBuilder:
    """Make a builder for the phase at an index, calibrated by the usage of the phases before it."""
    builder = make(policy)
    for name, used in ledger.all("used-").items():
        if name < f"used-{index:03}":
            builder.calibrate(used, prompt_tokens=used["estimated"])
    return builder


def _note(session: Session, notes: Mapping[str, str]) -> None:
    """Set the notes that changed."""
    for name, text in notes.items():
        if session.state.notes.get(name) != text:
            session.note(name, text)


def _carried(session: Session) -> dict[str, str]:
    """Return the notes that a retry takes over into its session."""
    return {name: text for name, text in session.state.notes.items() if name in (SCRATCHPAD_NOTE, QUALITY_NOTE)}


def tag_of(index: int, attempt: int | None) -> str:
    """Name a phase and its attempt so that the ledger's notes sort in the order of the run."""
    return f"{index:03}-{attempt or 0:03}"


def reply_row(
    call: Mapping[str, Any], cascade: str, entries: Sequence[LogEntry], refused: str | None, used: Wire | None = None
) -> Wire:
    """Return the script row of a recorded call; `entries` are its reply and the results that follow."""
    message = entries[0].message
    results = {result.call_id: result.text for entry in entries[1:] for result in entry.message.tool_results}
    row: Wire = {"cascade": cascade, "phase": call["phase"]}
    row |= {} if call["attempt"] is None else {"attempt": call["attempt"]}
    row |= {
        "text": message.text,
        "calls": [
            {"tool": made.name, "arguments": made.arguments, "id": made.id}
            | ({"result": results[made.id]} if made.id in results else {})
            for made in message.tool_calls
        ],
    }
    row |= {} if used is None else {"usage": {name: count for name, count in used.items() if name != "estimated"}}
    return row if refused is None else {**row, "refused": refused}
