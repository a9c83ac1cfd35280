"""Replaying transcripts through the builder, and what must hold at every call.

`replay` builds the envelope for each model call of a transcript, just before the assistant message that the call
produced. `check` measures one call against the promises of the layout: valid for both providers, within budget or
legitimately over it, task and newest message shown, last raw turn verbatim, every shown reference resolving to the same
bytes, every bullet cited. `Prefix` checks that a session's envelopes are append-only.

`window_of` gives what a window says as one text, and `named_in` the messages that a text names by reference. Used by
the suites, the benchmarks, the cost and recall evals and ``ctxsteward replay``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ctxsteward.envelope import Envelope, EnvelopeBuilder, LogEntry, NewMessage, Profile, Session, Store
from ctxsteward.envelope.compaction import text_of
from ctxsteward.envelope.render import spans, wires_of
from ctxsteward.envelope.transcripts import Transcript, TranscriptEntry
from ctxsteward.schemas import ContextError, InputError, Ref, Wire, encode_wire

from .validity import anthropic_faults, openai_faults, without_marks

SECTION_SLACK = 0.1
"""What an envelope that may be over budget may be over by, beside what is always verbatim."""


@dataclass(slots=True, kw_only=True)
class ModelCall:
    """One model call of a replay."""

    number: int
    session: Session
    envelope: Envelope
    wires: Sequence[Wire]
    """The transcript's messages so far."""


@dataclass(slots=True, kw_only=True)
class CallTally:
    """Counts over many calls."""

    calls: int = 0
    over_budget: int = 0
    compactions: int = 0
    shallow: int = 0
    """Compactions that saved less than a tenth."""
    refs: int = 0
    faults: list[str] = field(default_factory=list)
    head_grown: int = 0


def replay(transcript: Transcript, builder: EnvelopeBuilder, session: Session) -> Iterator[ModelCall]:
    """Append a transcript to an empty session, and yield every model call: just before each assistant message.

    An assistant message at the very beginning answers nothing, so no call produced it.
    Raises what the builder raises, with the call it was.
    """
    waiting: list[NewMessage] = []
    wires: list[Wire] = []
    calls = 0
    for row in transcript.entries():
        if row.wire.get("role") == "assistant" and wires:
            session.extend(waiting)
            waiting = []
            calls += 1
            yield ModelCall(number=calls, session=session, envelope=_build(builder, session, calls), wires=wires)
        wires.append(row.wire)
        waiting.append(new_message(row, len(wires)))
    session.extend(waiting)


def new_message(row: TranscriptEntry, number: int) -> NewMessage:
    """A transcript's row as a message to append, under its own id or its 1-based place, so that twice is once."""
    return NewMessage(message=row.wire, id=row.id or f"#{number}", phase=row.phase, ts=row.ts, principal=row.principal)


def _build(builder: EnvelopeBuilder, session: Session, call: int) -> Envelope:
    try:
        return builder.build(session)
    except ContextError as error:
        raise InputError(f"{session.id}: call {call}: {error}") from error


def open_session(store: Store, transcript: Transcript, *, profile: Profile | None = None) -> Session:
    """The transcript's session, with its own system messages and tools."""
    return store.session(transcript.session, tools=transcript.tools, system=transcript.system, profile=profile)


def check(call: ModelCall, tally: CallTally) -> None:
    """Add one call to the tally; what does not hold is a fault."""
    envelope, session = call.envelope, call.session
    name = f"{session.id} call {call.number}"
    openai, anthropic = envelope.render("openai-chat"), envelope.render("anthropic")
    tally.calls += 1
    faults = [f"openai: {fault}" for fault in openai_faults(openai)]
    faults += [f"anthropic: {fault}" for fault in anthropic_faults(anthropic)]
    faults += budget_faults(envelope, session)
    faults += _shown_faults(envelope, session, call.wires, tally)
    for report in envelope.reports:
        tally.compactions += 1
        if report.pre_tokens - report.post_tokens < 0.1 * report.pre_tokens:
            tally.shallow += 1
    for section in envelope.sections.values():
        tally.over_budget += section.name == "dynamic" and section.overflow_tokens > 0
    tally.head_grown += any(finding.kind == "head_budget_grown" for finding in envelope.findings)
    tally.faults += [f"{name}: {fault}" for fault in faults]


def budget_faults(envelope: Envelope, session: Session) -> Iterator[str]:
    """Sections over their budget, but for what the layout always shows verbatim."""
    for name in ("system", "static", "meta"):
        if envelope.section(name).overflow_tokens:
            yield f"{name} is over its budget"
    dynamic = envelope.section("dynamic")
    if not dynamic.overflow_tokens:
        return
    must = _must_tokens(envelope, session)
    if must <= dynamic.budget_tokens:
        yield f"dynamic {dynamic.tokens} over {dynamic.budget_tokens}, but only {must} are always verbatim"
    elif dynamic.tokens > must + SECTION_SLACK * dynamic.budget_tokens:
        yield f"dynamic {dynamic.tokens} over {must} always verbatim by more than a tenth"
    if envelope.dynamic.context is not None:
        yield "recalled messages in an envelope over budget"


def _must_tokens(envelope: Envelope, session: Session) -> int:
    state = session.state
    must = {state.last_user, state.last_text, state.ordinal, *state.pins}
    dynamic = envelope.dynamic
    groups = dynamic.strip.fragments[: dynamic.stop]
    return sum(
        f.tokens
        for f in groups
        if any(n in must or n >= state.last_user for n in f.refs)
        or (
            not {state.task, state.answered}.isdisjoint(f.refs)
            and f.tokens <= envelope.section("dynamic").budget_tokens / 4
        )
    )


def _shown_faults(envelope: Envelope, session: Session, wires: Sequence[Wire], tally: CallTally) -> Iterator[str]:
    state = session.state
    text = "\x00".join(span.text for span in spans(envelope))
    shown = {
        ordinal for fragment in envelope.dynamic.fragments for ordinal in fragment.refs if fragment.kind == "group"
    }
    bullets = state.bullets
    for bullet in bullets:
        if not bullet.citations:
            yield "a bullet without citation"
    refs = {Ref.parse(ref).ordinal for bullet in bullets for ref in bullet.citations} | shown
    refs |= {int(number) for number in re.findall(r"§(\d+)", text) if 0 < int(number) <= state.ordinal}
    for ordinal in refs:
        tally.refs += 1
        if encode_wire(session.resolve(f"§{ordinal}")) != encode_wire(wires[ordinal - 1]):
            yield f"§{ordinal} resolves to other bytes"
    if state.task not in shown and not any(f"§{state.task}" in bullet.citations for bullet in bullets):
        yield f"the task §{state.task} is neither verbatim nor cited"
    newest = session.entry(state.ordinal)
    if newest.ordinal not in shown:
        yield "the newest message is not shown"
    for ordinal in {state.last_user, state.last_text} - {0}:
        said = session.entry(ordinal).message.text
        if ordinal not in shown or not (said in text or is_shortened(said, ordinal, state.shortened, text)):
            yield f"last raw turn §{ordinal} is not verbatim"
    yield from _newest_faults(newest, text, envelope)


def is_shortened(said: str, ordinal: int, shortened: Mapping[int, int], text: str) -> bool:
    """Whether a span of `text` is the beginning and the end of what was said, with its reference between them."""
    note = re.search(rf"\n\[… \d+ tokens in all, excerpt; §{ordinal} resolves to the whole …\]\n", text)
    if ordinal not in shortened or note is None:
        return False
    head, rest = text[: note.start()].rpartition("\x00")[2], text[note.end() :].partition("\x00")[0]
    return bool(head) and said.startswith(head) and all(line in said for line in rest.split("\n"))


def _newest_faults(newest: LogEntry, text: str, envelope: Envelope) -> Iterator[str]:
    said = text_of(newest.message)
    if newest.message.tool_results:
        for result in newest.message.tool_results:
            if result.text not in text and newest.ref not in text:
                yield f"the newest tool result {newest.ref} is neither verbatim nor excerpted with its reference"
    elif newest.message.text not in text:
        yield f"the newest message {newest.ref} is not verbatim ({len(said)} characters)"


@dataclass(slots=True)
class Prefix:
    """Checks that a session's envelopes are append-only; feed it every call."""

    last: Envelope | None = None
    turn: int = 0
    dropped: int = 0
    """Calls that gave up what was recalled, because the live turn had outgrown the budget; each with a finding."""
    stable: list[str] = field(default_factory=list)
    whole: list[str] = field(default_factory=list)
    faults: int = 0
    compared: int = 0

    def check(self, call: ModelCall) -> bool:
        """Whether this call's bytes extend the last call's as far as the layout promises."""
        envelope, turn = call.envelope, call.session.state.last_user
        stable, whole = _prefixes(envelope)
        holds = True
        dropped = any(finding.kind == "recall_dropped" for finding in envelope.findings)
        self.dropped += dropped
        if self.last is not None and not envelope.reports:
            self.compared += 1
            holds = stable[: len(self.stable)] == self.stable
            if turn == self.turn and not dropped:
                holds = holds and whole[: len(self.whole)] == self.whole
        self.faults += not holds
        self.last, self.turn, self.stable, self.whole = envelope, turn, stable, whole
        return holds


def _prefixes(envelope: Envelope) -> tuple[list[str], list[str]]:
    """Messages before the turn context, and messages before the notes."""
    openai = envelope.render("openai-chat")["messages"]
    rows = without_marks(openai)
    stable = sum(len(wires_of(fragment)) for fragment in envelope.dynamic.stable)
    head = len(envelope.head.fragments)
    notes = 1 if envelope.dynamic.notes else 0
    after = sum(len(wires_of(fragment)) for fragment in envelope.dynamic.after)
    before_notes = rows[: len(rows) - notes - after]
    return rows[: head + stable], before_notes


_REF = re.compile(r"§(\d+)(?:-§(\d+))?")


def window_of(envelope: Envelope) -> str:
    """Everything that the model is shown, as one text; tool schemas with it."""
    return "\n".join(span.text for span in spans(envelope))


def named_in(text: str) -> frozenset[int]:
    """Ordinals that a text names by reference, singly or within a range.

    >>> sorted(named_in("see §3, and §7-§9"))
    [3, 7, 8, 9]
    """
    found: set[int] = set()
    for first, last in _REF.findall(text):
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)
