"""Replay transcripts through the builder, and check the promises of every call.

`replay` builds the envelope for each model call of a transcript, just before the assistant message that the call
produced. `check` measures one call against the promises of the layout: valid for both providers, within budget or
legitimately over it, task and newest message shown, last raw turn verbatim, every shown reference resolving to the same
bytes, every bullet cited. `Prefix` checks that a session's envelopes are append-only.

`window_of` returns the text of a window, and `named_in` the messages that a text names by reference. The suites, the
benchmarks, the cost and recall evals and ``ctxsteward replay`` use them.

`read_runs` returns agent runs of any supported format as OpenAI chat messages, with the prompt of each of our builders
at each call, for the cost eval (`cost`) and the comparison with other libraries (`peers`). The messages are those of an
envelope with room for everything, so every strategy starts from the same bytes under the same head.

The tool calls of a reply show which values it needed from its prompt: an identifier, path or number among their
arguments that first stood in a tool result is a *found value*. The run was recorded with everything in the prompt, so a
policy that hides such a value at that call hides information that the model used.

Raises `InvalidTranscript`, `InputError`, and the builder's exceptions with the number of the call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, LogEntry, Profile, Session, Store
from ctxsteward.envelope.history.tool_groups import NewMessage, text_of
from ctxsteward.envelope.render.openai_chat import wires_of
from ctxsteward.envelope.render.text import spans
from ctxsteward.envelope.testing import memory_store
from ctxsteward.envelope.transcripts.files import read_transcripts
from ctxsteward.envelope.transcripts.transcript import Transcript as Transcript, TranscriptEntry
from ctxsteward.schemas import ContextError, InputError, Ref
from ctxsteward.schemas.message import Wire, encode_wire
from ctxsteward.schemas.profile import instant
from ctxsteward.steward.ingest.items import is_named_like_transcript

from .prompt_cost import (
    Bill,
    PricedPrompt,
    Prices,
    PromptJudge,
    PromptPiece,
    Sizer,
    anthropic_faults,
    arguments_of,
    openai_faults,
    without_marks,
)

SECTION_SLACK = 0.1
"""Fraction of the budget by which an envelope may exceed the tokens that are always verbatim."""


REPLY_ROLES = ("assistant", "model")
"""Roles of a model's messages; ``model`` is Gemini's."""


@dataclass(slots=True, kw_only=True)
class ModelCall:
    """A model call of a replay."""

    number: int
    session: Session
    envelope: Envelope
    wires: Sequence[Wire]
    """The transcript's messages so far."""


def replay(transcript: Transcript, builder: EnvelopeBuilder, session: Session) -> Iterator[ModelCall]:
    """Append a transcript to an empty session, and yield each model call just before its assistant message.

    An assistant message at the very beginning answers no call. Raises the builder's exceptions with the number of the
    call.
    """
    waiting: list[NewMessage] = []
    wires: list[Wire] = []
    calls = 0
    for row in transcript.entries():
        if row.wire.get("role") in REPLY_ROLES and wires:
            session.extend(waiting)
            waiting = []
            calls += 1
            try:
                envelope = builder.build(session)
            except ContextError as error:
                raise InputError(f"{session.id}: call {calls}: {error}") from error
            yield ModelCall(number=calls, session=session, envelope=envelope, wires=wires)
        wires.append(row.wire)
        waiting.append(new_message(row, len(wires)))
    session.extend(waiting)


def new_message(row: TranscriptEntry, number: int) -> NewMessage:
    """Convert a row to a message under its own id or 1-based place, so that appending it twice adds one message."""
    ts = row.ts if instant(row.ts) > float("-inf") else None  # a foreign transcript may say "yesterday"
    return NewMessage(message=row.wire, id=row.id or f"#{number}", phase=row.phase, ts=ts, principal=row.principal)


def open_session(store: Store, transcript: Transcript, *, profile: Profile | None = None) -> Session:
    """Open a session with the transcript's system messages and tools."""
    return store.session(transcript.session, tools=transcript.tools, system=transcript.system, profile=profile)


def check(call: ModelCall) -> list[str]:
    """Return the faults of one call."""
    envelope, session = call.envelope, call.session
    faults = [f"openai: {fault}" for fault in openai_faults(envelope.render("openai-chat"))]
    faults += [f"anthropic: {fault}" for fault in anthropic_faults(envelope.render("anthropic"))]
    faults += budget_faults(envelope, session)
    faults += _shown_faults(envelope, session, call.wires)
    return [f"{session.id} call {call.number}: {fault}" for fault in faults]


def budget_faults(envelope: Envelope, session: Session) -> Iterator[str]:
    """Yield sections that exceed their budget by more than the layout always shows verbatim."""
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


def named_messages(envelope: Envelope, session: Session) -> set[int]:
    """Return the ordinals that an envelope shows whole, that bullets cite, or that its text names."""
    text = "\x00".join(span.text for span in spans(envelope))
    cited = {Ref.parse(ref).ordinal for bullet in session.state.bullets for ref in bullet.citations}
    named = {int(number) for number in re.findall(r"§(\d+)", text) if 0 < int(number) <= session.state.ordinal}
    return _shown_whole(envelope) | cited | named


def _shown_whole(envelope: Envelope) -> set[int]:
    return {ordinal for fragment in envelope.dynamic.fragments for ordinal in fragment.refs if fragment.kind == "group"}


def _shown_faults(envelope: Envelope, session: Session, wires: Sequence[Wire]) -> Iterator[str]:
    state = session.state
    text = "\x00".join(span.text for span in spans(envelope))
    shown = _shown_whole(envelope)
    bullets = state.bullets
    for bullet in bullets:
        if not bullet.citations:
            yield "a bullet without citation"
    for ordinal in named_messages(envelope, session):
        if encode_wire(session.resolve(f"§{ordinal}")) != encode_wire(wires[ordinal - 1]):
            yield f"§{ordinal} resolves to other bytes"
    if state.task not in shown and not any(f"§{state.task}" in bullet.citations for bullet in bullets):
        yield f"the task §{state.task} is neither verbatim nor cited"
    newest = session.entry(state.ordinal)
    if newest.ordinal not in shown:
        yield "the newest message is not shown"
    for ordinal in {state.last_user, state.last_text} - {0}:
        original = session.entry(ordinal).message.text
        if ordinal not in shown or not (original in text or is_shortened(original, ordinal, state.shortened, text)):
            yield f"last raw turn §{ordinal} is not verbatim"
    yield from _newest_faults(newest, text, envelope)


def is_shortened(original: str, ordinal: int, shortened: Mapping[int, int], text: str) -> bool:
    """Return whether a span of `text` is the beginning and the end of a message with its reference between them."""
    note = re.search(rf"\n\[… \d+ tokens in all, excerpt; §{ordinal} resolves to the whole …\]\n", text)
    if ordinal not in shortened or note is None:
        return False
    head, rest = text[: note.start()].rpartition("\x00")[2], text[note.end() :].partition("\x00")[0]
    return bool(head) and original.startswith(head) and all(line in original for line in rest.split("\n"))


def _newest_faults(newest: LogEntry, text: str, envelope: Envelope) -> Iterator[str]:
    original = text_of(newest.message)
    if newest.message.tool_results:
        for result in newest.message.tool_results:
            if result.text not in text and newest.ref not in text:
                yield f"the newest tool result {newest.ref} is neither verbatim nor excerpted with its reference"
    elif newest.message.text not in text:
        yield f"the newest message {newest.ref} is not verbatim ({len(original)} characters)"


@dataclass(slots=True)
class Prefix:
    """Check that a session's envelopes are append-only; pass it every call."""

    last: Envelope | None = None
    turn: int = 0
    dropped: int = 0
    """Calls that dropped recalled messages because the live turn outgrew the budget; each has a finding."""
    stable: list[str] = field(default_factory=list)
    whole: list[str] = field(default_factory=list)
    faults: int = 0
    compared: int = 0

    def check(self, call: ModelCall) -> bool:
        """Return whether this call's bytes extend the last call's as far as the layout promises."""
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
    """Return the messages before the turn context, and the messages before the notes."""
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
    """Return everything that the model is shown as one text, tool schemas included."""
    return "\n".join(span.text for span in spans(envelope))


def named_in(text: str) -> frozenset[int]:
    """Return the ordinals that a text names by reference, singly or within a range.

    >>> sorted(named_in("see §3, and §7-§9"))
    [3, 7, 8, 9]
    """
    ordinals: set[int] = set()
    for first, last in _REF.findall(text):
        ordinals.update(range(int(first), int(last or first) + 1))
    return frozenset(ordinals)


ALL_TOKENS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRun:
    """A transcript in the form of a client that sends everything."""

    name: str
    format: str
    system: tuple[PromptPiece, ...]
    """The leading system messages."""
    messages: tuple[PromptPiece, ...]
    """All others, in order."""
    seen: tuple[int, ...]
    """Number of messages sent with each model call; ascending."""
    tools_tokens: int
    task: str
    """The first user message's text."""
    task_ordinal: int
    ours: Mapping[str, tuple[PricedPrompt, ...]]
    """Prompts of each of our builders, by its name and by call."""
    found_values: tuple[frozenset[str], ...] = ()
    """For each call, the values in the reply's tool calls that first appeared in a tool result. The last reply is in
    no prompt, so it is not read, and its set is empty."""

    def bill(self, prompts: Iterable[PricedPrompt], sizer: Sizer, prices: Prices, *, budget_tokens: int) -> Bill:
        """Return the bill of these prompts, one for each model call."""
        judge = PromptJudge(
            sizer=sizer,
            prices=prices,
            budget_tokens=budget_tokens,
            task=self.task,
            tools_tokens=self.tools_tokens,
            task_ordinal=self.task_ordinal,
            found_values=self.found_values,
        )
        for prompt in prompts:
            judge.read(prompt)
        return judge.bill


def everything(run: AgentRun) -> list[PricedPrompt]:
    """Return prompts that send all messages."""
    return [PricedPrompt((*run.system, *run.messages[:seen])) for seen in run.seen]


def files_of(paths: Iterable[str | Path]) -> list[Path]:
    """Return the named files and the transcripts in named folders, each once; raise `InputError` for none."""
    files: dict[Path, Path] = {}
    """Files by resolved path, so that a linked file counts once."""
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(file for file in path.rglob("*") if file.is_file() and is_named_like_transcript(file.name))
            if not inside:
                raise InputError(f"{path}: no transcripts in this folder; name files, or a folder with .jsonl or .json")
        elif path.exists():
            inside = [path]
        else:
            raise InputError(f"{path}: no such file or folder; pass transcripts")
        for file in inside:
            files.setdefault(file.resolve(), file)
    return list(files.values())


def read_runs(paths: Sequence[str | Path], builders: Mapping[str, EnvelopeBuilder], sizer: Sizer) -> Iterator[AgentRun]:
    """Read the runs of files and folders that have at least one model call."""
    for path in files_of(paths):
        for transcript in read_transcripts(path):
            run = read_run(transcript, builders, sizer)
            if run.seen:
                yield run


def read_run(
    transcript: Transcript,
    builders: Mapping[str, EnvelopeBuilder],
    sizer: Sizer,
    *,
    ended: Callable[[str, Session], None] = lambda name, session: None,
) -> AgentRun:
    """Replay a transcript through these builders, and through a builder with room for everything.

    `ended` is called with the name and the session of each builder at the end of its replay.
    """
    last: Sequence[Wire] = ()
    seen: list[int] = []
    leading = tools_tokens = ordinal = 0
    task = ""
    budgets = Budgets(dynamic_tokens=ALL_TOKENS, arrival_cap_tokens=ALL_TOKENS, recall_fraction=0)
    roomy = EnvelopeBuilder(tokenizer=sizer.counter.tokenizer, budgets=budgets, selector=None)
    with memory_store() as store:
        for call in replay(transcript, roomy, open_session(store, transcript)):
            last, state = call.envelope.render("openai-chat", cache=False)["messages"], call.session.state
            leading, tools_tokens = len(call.envelope.head.fragments), call.envelope.head.tools_tokens
            seen.append(len(last) - leading)
            ordinal = state.task
            task = call.session.entry(ordinal).message.text if ordinal else ""
    whole = sizer.pieces(last)
    messages = whole[leading:]
    return AgentRun(
        name=transcript.session,
        format=transcript.format,
        system=whole[:leading],
        messages=messages,
        seen=tuple(seen),
        tools_tokens=tools_tokens,
        task=task,
        task_ordinal=ordinal,
        found_values=tuple(_found_values(whole[:leading], transcript.tools, messages, seen)),
        ours={
            name: tuple(_prompts(transcript, builder, sizer, partial(ended, name)))
            for name, builder in builders.items()
        },
    )


def _prompts(
    transcript: Transcript, builder: EnvelopeBuilder, sizer: Sizer, ended: Callable[[Session], None]
) -> Iterator[PricedPrompt]:
    with memory_store() as store:
        session = open_session(store, transcript)
        for call in replay(transcript, builder, session):
            sent = sizer.pieces(call.envelope.render("openai-chat", cache=False)["messages"])
            yield PricedPrompt(sent, bool(call.envelope.reports), reachable_ordinals(call.envelope))
        ended(session)


def reachable_ordinals(envelope: Envelope) -> frozenset[int]:
    """Return the messages that this envelope shows or names by a reference or range."""
    shown = {ordinal for fragment in envelope.dynamic.fragments for ordinal in fragment.refs}
    return named_in(window_of(envelope)) | shown


_WORD = re.compile(r"\w[\w./@-]{2,}\w")
_IDENTIFIER = re.compile(r"[\d_./@]|[a-z][A-Z]")
"""Marks that words of prose lack: a digit, an inner sign, or a capital after a small letter."""


def _found_values(
    system: Sequence[PromptPiece], tools: Sequence[Wire], messages: Sequence[PromptPiece], seen: Sequence[int]
) -> Iterator[frozenset[str]]:
    schemas = json.dumps(tools, ensure_ascii=False)

    @cache
    def is_found(value: str) -> bool:
        first = next(piece for piece in (*system, *messages) if piece.shows(value))
        return first.wire.get("role") == "tool" and value not in schemas

    for place in seen:
        values = values_of(messages[place].wire) if place < len(messages) else frozenset[str]()
        yield frozenset(filter(is_found, values))


def values_of(wire: Wire) -> frozenset[str]:
    """Return identifiers, paths and numbers of at least four characters in the arguments of a message's tool calls.

    >>> function = {"name": "book", "arguments": '{"flight": "HAT136", "note": "window seat"}'}
    >>> call = {"id": "c1", "type": "function", "function": function}
    >>> values_of({"role": "assistant", "tool_calls": [call]})
    frozenset({'HAT136'})
    """
    calls = arguments_of(wire)
    return frozenset(word for text in calls for word in _WORD.findall(text) if _IDENTIFIER.search(word))
