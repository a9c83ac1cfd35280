"""A run of a cascade in a store: opening a phase, recording its results, and reading a recorded run from a file.

A run has a *stream*, the session with the run's own id, in which phases without `context` continue. A phase with
`context`, with `context_retention: output_only` or with a numbered attempt has a session of its own (``RUN.PHASE``,
``RUN.PHASE.ATTEMPT``); without `context` that is a fork of the stream. Messages of such phases are copied into the
stream when a later phase continues in it. State, chosen attempts and opened phases are notes of ``RUN..ledger``, from
which no envelope is built.

`open_phase` appends the phase's context, each message with its `origin`, then its instructions. It does so once: the
context is frozen when the phase is first opened. Threads and processes may open different attempts of a run at once.
The builder lays a phase out like any session, so in the stream injected messages follow the history.
Append the phase's own messages with ``phase=NAME``.

`recorded_of` reads a cascade and a run from one file, for the command `context`. Besides the cascade's own keys the
file may have `input` (any JSON), `state` (for templates), `states` (state by phase) and `transcript`, a list of rows:
``{phase, message}`` or ``{phase, messages: […]}``, each with an optional `attempt` (from 1) and `pin`. A transcript may
also be a file of its own, as a JSON list or JSONL of such rows (`read_rows`). Messages are providers' dicts, verbatim.

Raises `InvalidCascade` (for a file: with row and key), `InputError`, `StoreError`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ctxsteward.schemas import Finding, InputError, InvalidMessage, Message
from ctxsteward.schemas.cascade import Cascade, Phase
from ctxsteward.schemas.errors import Conflict, InvalidCascade
from ctxsteward.schemas.message import Wire
from ctxsteward.store.journal.events import NoteSet
from ctxsteward.store.profiles.text import Profile as Profile
from ctxsteward.store.strict_yaml import Tree, show

from ..compaction.policy import Policy
from ..history.session import Session
from ..history.tool_groups import NewMessage, check_meta
from ..recall.selection import Selector
from ..store import Store as Store
from ..tokens.tokenizer import Counter
from ..transcripts.strict_json import decode, open_input
from .auto_selection import Strategies as Strategies
from .config import cascade_of_tree, intra_context, phase_named, refused
from .intra_phase import intra_policy
from .past import LEDGER_SUFFIX, STATE_NOTE, Past, PhaseLog, read_past
from .phase import PhaseContext, phase_context
from .templates import plain

MAX_ATTEMPTS = 100
MAX_RUN_CHARS = 100
MAX_EXTRACTED_CHARS = 100_000
"""Characters of an output that `output_extraction` searches."""
_CHOSEN_NOTE = "chosen-"
_OPENED_NOTE = "opened-"
_TRIES = 1000
"""A write to the ledger raises `Conflict` after losing the position to other writers this many times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPhase:
    """A phase that is ready to run."""

    session: Session
    context: PhaseContext
    is_new: bool
    """Whether this call opened it. A session opened before keeps its messages."""
    policy: Policy
    """The compaction policy of `intra_context`, for `EnvelopeBuilder.build`."""


def open_phase(
    store: Store,
    cascade: Cascade,
    phase_name: str,
    *,
    run: str,
    tenant: str = "default",
    input: object = None,
    state: Mapping[str, Any] | None = None,
    attempt: int | None = None,
    profile: Profile | None = None,
    system: str | Sequence[str | Wire] | None = (),
    tools: Sequence[Wire] | None = (),
    counter: Counter | None = None,
    strategies: Strategies | None = None,
    selector: Selector | None = None,
    trusted: Collection[str] = (),
) -> OpenedPhase:
    """Open a phase of a run; `system`, `tools` and `profile` are the operator's, as in `Store.session`.

    `strategies`, `selector`, `trusted`: as in `phase_context`. An existing session keeps its `system`; a phase that
    was opened before calls no selector, model or embedder again.
    """
    phase = phase_named(cascade, phase_name)
    if not isinstance(run, str) or not 0 < len(run) <= MAX_RUN_CHARS:
        raise InputError(f"run {run!r:.60} is not usable as an id; take 1 to {MAX_RUN_CHARS} characters")
    if attempt is not None and (type(attempt) is not int or not 1 <= attempt <= MAX_ATTEMPTS):
        raise InputError(f"invalid attempt {attempt!r:.40}; attempts count from 1 to {MAX_ATTEMPTS}")

    def session_of(id: str) -> Session:
        texts = () if store.exists(id, tenant=tenant) else system
        return store.session(id, tenant=tenant, profile=profile, tools=tools, system=texts, counter=counter)

    past = read_run(store, cascade, run, tenant=tenant, upto=phase, attempt=attempt)
    stream = session_of(run) if phase.context is None else None
    own = phase.context is not None or attempt is not None or phase.context_retention == "output_only"
    name = session_id(run, phase.name, attempt) if own else run
    fresh = stream is None or not own or store.exists(name, tenant=tenant)
    session = session_of(name) if fresh else None
    laid_out_in = stream if session is None else session
    assert laid_out_in is not None
    is_new = not _is_opened(store, run, phase, attempt, tenant)
    if not is_new:  # the session is frozen; this context shows what it would be now, ranked by words
        strategies = strategies or Strategies()
        selector = strategies.heuristic
    context = phase_context(
        cascade,
        phase_name,
        past,
        input=input,
        state=state,
        counter=counter or laid_out_in.counter,
        strategies=strategies,
        selector=selector,
        trusted=trusted,
    )
    policy = intra_policy(intra_context(cascade, phase))
    if not is_new or _is_opened(store, run, phase, attempt, tenant):  # or by another caller, while this call chose
        again = session_of(name) if is_new else laid_out_in
        return OpenedPhase(session=again, context=context, is_new=False, policy=policy)
    if stream is not None:  # copy messages of earlier phases from their own sessions into the stream
        stream.extend(
            NewMessage(message=message.wire, origin=message.origin, id=f"copy of {message.origin}"[:200])
            for message in context.messages[context.injected :]
            if not message.origin.startswith(f"{stream.id}§") and message.origin not in past.copied
        )
    if session is None:
        assert stream is not None
        session = stream.fork(id=name)
    _show(session, phase, attempt, context)
    _note_opened(store, run, phase, attempt, tenant)
    return OpenedPhase(session=session, context=context, is_new=True, policy=policy)


def read_run(
    store: Store,
    cascade: Cascade,
    run: str,
    *,
    tenant: str = "default",
    upto: Phase | None = None,
    attempt: int | None = None,
) -> Past:
    """Return the messages and state that the phases of a run have left so far, up to and including `upto`.

    `attempt` is the attempt at `upto` that reads the past; it does not see the others.
    """
    logs: list[PhaseLog] = []
    if store.exists(run, tenant=tenant):
        logs.append(PhaseLog(store.session(run, tenant=tenant)))
    for phase in cascade.phases:
        asks = attempt if phase == upto else None
        for number in (asks,) if asks else (None, *range(1, MAX_ATTEMPTS + 1)):
            name = session_id(run, phase.name, number)
            if store.exists(name, tenant=tenant):
                logs.append(PhaseLog(store.session(name, tenant=tenant), number, phase.name))
            elif number is not None:
                break
        if phase == upto:
            break
    states: dict[str, dict[str, Any]] = {}
    chosen: dict[str, int] = {}
    ledger = f"{run}{LEDGER_SUFFIX}"
    if store.exists(ledger, tenant=tenant):
        for name, text in store.session(ledger, tenant=tenant).state.notes.items():
            if name.startswith(STATE_NOTE):
                states[name.removeprefix(STATE_NOTE)] = json.loads(text)
            elif name.startswith(_CHOSEN_NOTE):
                chosen[name.removeprefix(_CHOSEN_NOTE)] = json.loads(text)
    return read_past(*logs, order=cascade.names, states=states, chosen=chosen)


def record_state(store: Store, run: str, phase: str, values: Mapping[str, Any], *, tenant: str = "default") -> None:
    """Set keys of a phase's state; other keys stay."""
    plain(dict(values), "state")
    ledger = store.session(f"{run}{LEDGER_SUFFIX}", tenant=tenant)
    known = json.loads(ledger.state.notes.get(f"{STATE_NOTE}{phase}", "{}"))
    ledger.note(f"{STATE_NOTE}{phase}", json.dumps({**known, **values}, ensure_ascii=False, allow_nan=False))


def choose_attempt(store: Store, run: str, phase: str, attempt: int, *, tenant: str = "default") -> None:
    """Choose the attempt at a phase that counts; later phases do not see the others."""
    if not store.exists(session_id(run, phase, attempt), tenant=tenant):
        raise InputError(f"run {run!r} has no attempt {attempt} at phase {phase!r}; open it first")
    store.session(f"{run}{LEDGER_SUFFIX}", tenant=tenant).note(f"{_CHOSEN_NOTE}{phase}", str(attempt))


def close_phase(
    store: Store, cascade: Cascade, phase_name: str, *, run: str, tenant: str = "default"
) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """Record the state that `output_extraction` finds in an output; return it, and a finding if there is none."""
    phase = phase_named(cascade, phase_name)
    extraction = phase.output_extraction
    if extraction is None:
        return {}, ()
    output = read_run(store, cascade, run, tenant=tenant, upto=phase).output(phase.name)
    state = None if output is None else extracted(phase, output[1])
    if state is None:
        kind = "extraction_required" if extraction.required else "extraction_empty"
        text = f"the output of {phase.name!r} has nothing that matches {extraction.pattern[:80]!r}"
        return {}, (Finding(kind=kind, field="output_extraction.pattern", text=text),)
    record_state(store, run, phase.name, state, tenant=tenant)
    return state, ()


def extracted(phase: Phase, text: str) -> dict[str, Any] | None:
    """Extract state from an output; None if nothing matches, or the match is not the required JSON."""
    extraction = phase.output_extraction
    if extraction is None:
        return {}
    try:
        match = re.search(extraction.pattern, text[:MAX_EXTRACTED_CHARS], re.DOTALL)
    except re.error as error:
        hint = "write a regular expression of Python"
        raise InvalidCascade(f"phase {phase.name!r}", "output_extraction.pattern", str(error), hint) from error
    if match is None:
        return None
    value: Any = (match[1] if match.re.groups else match[0]) or ""
    if extraction.format == "json":
        try:
            value = plain(json.loads(value), extraction.store_as)
        except (ValueError, RecursionError):
            return None
    return {extraction.store_as: value}


def session_id(run: str, phase: str, attempt: int | None = None) -> str:
    """Return the id of the session of a phase, or of one attempt at it."""
    return f"{run}.{phase}" if attempt is None else f"{run}.{phase}.{attempt}"


def _is_opened(store: Store, run: str, phase: Phase, attempt: int | None, tenant: str) -> bool:
    """Return whether this attempt at a phase (None: the phase itself) was opened before."""
    ledger = f"{run}{LEDGER_SUFFIX}"
    if not store.exists(ledger, tenant=tenant):
        return False
    return (attempt or 0) in _attempts_noted(store.session(ledger, tenant=tenant), phase)


def _note_opened(store: Store, run: str, phase: Phase, attempt: int | None, tenant: str) -> None:
    """Add an attempt to the noted ones. A concurrent write of another process is read and kept."""
    ledger = store.session(f"{run}{LEDGER_SUFFIX}", tenant=tenant)
    for _ in range(_TRIES):
        noted = sorted({*_attempts_noted(ledger, phase), attempt or 0})
        try:
            ledger.commit(NoteSet(name=f"{_OPENED_NOTE}{phase.name}", text=json.dumps(noted)))
            return
        except Conflict:
            ledger.refresh()
    raise Conflict(ledger.id, ledger.state.position)


def _attempts_noted(ledger: Session, phase: Phase) -> list[int]:
    """Return the opened attempts at a phase; 0 is the phase without numbered attempts."""
    attempts: list[int] = json.loads(ledger.state.notes.get(f"{_OPENED_NOTE}{phase.name}", "[]"))
    return attempts


def _show(session: Session, phase: Phase, attempt: int | None, context: PhaseContext) -> None:
    prefix = f"open {phase.name}" if attempt is None else f"open {phase.name} {attempt}"
    shown = context.messages[: context.injected]
    texts = [str(message.wire["content"]) for message in shown if message.wire.get("role") == "system"]
    if texts:
        head = session.state.head
        session.record(replace(head, system=(*head.system, *texts)))
    new = [
        NewMessage(message=message.wire, origin=message.origin)
        for message in shown
        if message.wire.get("role") != "system"
    ]
    if context.instructions.strip():
        new.append(NewMessage(message={"role": "user", "content": context.instructions}, phase=phase.name))
    session.extend(replace(item, id=f"{prefix} {number}") for number, item in enumerate(new, 1))


RECORDED_KEYS = ("input", "state", "states", "transcript")
ROW_KEYS = ("phase", "message", "messages", "attempt", "pin", "id", "ts", "principal")
_STREAM = "run"


RecordedRow = tuple[int | None, NewMessage]
"""Number of the attempt, or None, and the recorded message."""


class RecordedRun(NamedTuple):
    """A cascade and a run, as read from a file."""

    cascade: Cascade
    input: Any
    state: dict[str, Any] | None
    states: dict[str, dict[str, Any]]
    rows: tuple[RecordedRow, ...]


def recorded_of(tree: Tree) -> RecordedRun:
    """Read a cascade and its run from one file."""
    own = {key: value for key, value in tree.value.items() if key not in RECORDED_KEYS}
    cascade = cascade_of_tree(Tree(own, tree.lines, tree.source))
    for key in ("state", "states"):
        if not isinstance(tree.value.get(key), dict | None):
            raise refused(tree, (key,), show(tree.value[key]), "write a mapping")
    states = tree.value.get("states") or {}
    for phase, values in states.items():
        if not isinstance(values, dict):
            raise refused(tree, ("states", phase), show(values), "write a mapping of keys to values")
        _known_phase(cascade, tree, ("states", phase), phase)
    rows = tree.value.get("transcript", [])
    if not isinstance(rows, list):
        raise refused(tree, ("transcript",), show(rows), "write a list of {phase, message}")
    read = tuple(_rows(cascade, tree, rows, ("transcript",)))
    return RecordedRun(cascade, tree.value.get("input"), tree.value.get("state"), states, read)


def read_rows(cascade: Cascade, path: str | Path) -> tuple[RecordedRow, ...]:
    """Read a transcript from a file of its own."""
    raw = open_input(path)
    first = next(iter(raw.lines()), None)
    if first is not None and not first.data.lstrip().startswith(b"["):
        rows = [decode(line.data, raw.source, f"line {line.number}") for line in raw.lines()]
        return tuple(_rows(cascade, Tree({}, {}, raw.source), rows, ()))
    value = raw.document()
    assert isinstance(value, list)  # its text begins with a bracket
    return tuple(_rows(cascade, Tree({}, {}, raw.source), value, ()))


def past_of_rows(
    cascade: Cascade,
    rows: Iterable[RecordedRow],
    states: Mapping[str, Mapping[str, Any]],
    *,
    store: Store,
    counter: Counter,
) -> Past:
    """Return the past of recorded rows. They are kept in `store`; pass one in memory."""
    stream = store.session(_STREAM, counter=counter)
    logs = [PhaseLog(stream)]
    attempts: dict[tuple[str | None, int], PhaseLog] = {}
    batch: list[NewMessage] = []
    for attempt, new in rows:
        if attempt is None:
            batch.append(new)
            continue
        key = (new.phase, attempt)
        if key not in attempts:
            session = store.session(f"{_STREAM}.{new.phase}.{attempt}", counter=counter)
            attempts[key] = PhaseLog(session, attempt, new.phase)
        attempts[key].session.extend([new])
    stream.extend(batch)
    return read_past(*logs, *attempts.values(), order=cascade.names, states=states)


def _known_phase(cascade: Cascade, tree: Tree, keys: tuple[str, ...], phase: object) -> None:
    if phase not in cascade.names:
        hint = f"phases of this cascade: {', '.join(cascade.names)}"
        raise refused(tree, keys, f"{phase!r:.60} is no phase of this cascade", hint)


def _rows(cascade: Cascade, tree: Tree, rows: list[Any], above: tuple[str, ...]) -> Iterable[RecordedRow]:
    for index, row in enumerate(rows):
        keys = (*above, str(index))
        if not isinstance(row, dict):
            raise refused(tree, keys, show(row), "write {phase, message}")
        for key in row:
            if key not in ROW_KEYS:
                raise refused(tree, (*keys, key), "unknown key", f"allowed: {', '.join(ROW_KEYS)}")
        if row.get("phase") is not None:
            _known_phase(cascade, tree, (*keys, "phase"), row["phase"])
        if ("message" in row) == ("messages" in row):
            raise refused(tree, keys, "no message", "write one of `message` and `messages`")
        attempt = row.get("attempt")
        if attempt is not None and (
            type(attempt) is not int or not 1 <= attempt <= MAX_ATTEMPTS or not row.get("phase")
        ):
            raise refused(tree, (*keys, "attempt"), show(attempt), f"write 1 to {MAX_ATTEMPTS}, with a phase")
        yield from _messages(tree, row, keys, attempt)


def _messages(tree: Tree, row: dict[str, Any], keys: tuple[str, ...], attempt: int | None) -> Iterable[RecordedRow]:
    messages = [row["message"]] if "message" in row else row["messages"]
    if not isinstance(messages, list):
        raise refused(tree, (*keys, "messages"), show(messages), "write a list of messages")
    for at, wire in enumerate(messages):
        place = (*keys, "message") if "message" in row else (*keys, "messages", str(at))
        try:
            message = Message.from_wire(wire)
        except InvalidMessage as error:
            raise refused(tree, (*place, error.field), f"found {error.found}", f"expected {error.expected}") from error
        beside: dict[str, Any] = {key: row.get(key) for key in ("phase", "pin", "id", "ts", "principal")}
        new = NewMessage(message=message, **beside)
        try:
            check_meta(new)
        except InputError as error:
            raise refused(tree, place[:2], str(error), "correct this row") from error
        yield attempt, new
