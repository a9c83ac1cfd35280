"""An envelope is a pure function of its log: incremental, from scratch, restored and rebuilt are one.

Random runs of append, note, pin, fork and build; after each, the same questions: does a fresh reader of the
journal see the same state and render the same bytes, is every original shown, cited or a recorded loss, does
every past envelope rebuild byte for byte, did any call break the prefix that the one before it paid for.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Session, Store
from ctxsteward.envelope.history.state import State
from ctxsteward.envelope.render.anthropic import wires_of
from ctxsteward.envelope.testing import CharTokenizer, FirstLine, WordOverlap, memory_store
from ctxsteward.envelope.tokens.tokenizer import Counter, load_tokenizer
from ctxsteward.schemas import Ref
from ctxsteward.store.journal.events import RecallSelected, SessionOpened, from_record
from ctxsteward.store.journal.log import Log
from ctxsteward.store.journal.port import SessionKey

from ...examples import examples
from ..histories import Wire, histories
from ..messages import CHARS, char_builder, tool

SMALL = Budgets(dynamic_tokens=1_500, recall_fraction=0.3)
PROVIDERS: tuple[Literal["openai-chat", "anthropic", "text"], ...] = ("openai-chat", "anthropic", "text")


def builder(budgets: Budgets = SMALL, **more: Any) -> EnvelopeBuilder:
    return char_builder(budgets, selector=WordOverlap(), **more)


def rendered(envelope: Envelope) -> str:
    return json.dumps([envelope.render(provider) for provider in PROVIDERS])


def fresh(store: Store, session: Session) -> Session:
    """Another reader of the same log."""
    log = Log(store.journal, session.key, store.keys.address_key(session.tenant))
    other = Session(log, lambda: CHARS, lambda: "", store.keys)
    other.replica.load()
    return other


def from_scratch(store: Store, key: SessionKey, upto: int | None = None) -> State:
    """The state folded over the whole log, compactions replayed one by one (a fork's parents first)."""
    records = store.journal.read(key, 0, upto)
    opened = from_record(records[0])
    assert isinstance(opened, SessionOpened)
    if opened.parent is None:
        state = State(key.session)
    else:
        state = from_scratch(store, key._replace(session=opened.parent.session), opened.parent.position)
        state.session, state.position = key.session, 1
    for record in records if opened.parent is None else records[1:]:
        state.apply(from_record(record))
    return state


def differences(one: State, other: State) -> list[str]:
    return [name for name in State.__slots__ if getattr(one, name) != getattr(other, name)]


# -- runs ------------------------------------------------------------------------------------------


@dataclass
class Run:
    """One random run and what it left."""

    store: Store
    session: Session
    builder: EnvelopeBuilder
    wires: list[Wire] = field(default_factory=list)
    envelopes: list[Envelope] = field(default_factory=list)
    bytes: list[str] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)

    def build(self) -> Envelope:
        envelope = self.builder.build(self.session)
        self.envelopes.append(envelope)
        self.bytes.append(rendered(envelope))
        return envelope


ACTS = st.lists(
    st.tuples(
        st.sampled_from(("build", "build", "build", "note", "pin", "unpin", "fork", "fork at", "skip", "preview")),
        st.integers(1, 40),
    ),
    min_size=4,
    max_size=24,
)
MESSAGES = st.one_of(
    histories("mixed", min_size=4, max_size=14),
    histories("openai", broken=False, min_size=4, max_size=14),
    histories("anthropic", broken=False, min_size=4, max_size=14),
)


def play(messages: tuple[Wire, ...], acts: list[tuple[str, int]], after: Callable[[Run], None] | None = None) -> Run:
    """Append the messages one by one, with an act after each."""
    store = memory_store()
    run = Run(store, store.session("s0", counter=CHARS, system="Be brief."), builder())
    run.sessions.append(run.session)
    for at, message in enumerate(messages):
        run.session.append(message)
        run.wires = [*run.wires[: len(run.session) - 1], message]
        act, n = acts[at % len(acts)]
        ordinal = 1 + n % len(run.session)
        if act == "build":
            run.build()
        elif act == "note":
            run.session.note(("plan", "subtask")[n % 2], ("", "step one\nstep two")[n % 3 > 0])
        elif act in ("pin", "unpin"):
            run.session.pin(f"§{ordinal}", None if act == "unpin" else ("keep", "soft")[n % 2])
        elif act.startswith("fork"):
            run.session = run.session.fork(ordinal if act == "fork at" else None, id=f"s{len(run.sessions)}")
            run.sessions.append(run.session)
            run.wires = run.wires[: len(run.session)]
        elif act == "preview":
            check_preview(run)
        if after is not None:
            after(run)
    return run


def check_preview(run: Run) -> None:
    """A preview leaves no trace."""
    session = run.session
    before, state = run.store.journal.length(session.key), session.state.copy()
    run.builder.preview(session, "what did we decide about the ticket?")
    assert run.store.journal.length(session.key) == before
    assert differences(session.state, state) == []


@settings(max_examples=examples(150), derandomize=True, database=None)
@given(messages=MESSAGES, acts=ACTS)
def test_incremental_from_scratch_and_restored_states_are_equal(
    messages: tuple[Wire, ...], acts: list[tuple[str, int]]
) -> None:
    def after(run: Run) -> None:
        restored = fresh(run.store, run.session)
        assert differences(run.session.state, restored.state) == []
        assert differences(run.session.state, from_scratch(run.store, run.session.key)) == []

    play(messages, acts, after)


@settings(max_examples=examples(60), derandomize=True, database=None)
@given(messages=MESSAGES, acts=ACTS)
def test_a_fresh_reader_lays_out_the_same_fragments_and_bytes(
    messages: tuple[Wire, ...], acts: list[tuple[str, int]]
) -> None:
    def after(run: Run) -> None:
        here = run.builder.rebuild(run.session)
        there = builder().rebuild(fresh(run.store, run.session))
        assert rendered(here) == rendered(there)
        assert here.address == there.address
        assert [(f.kind, f.refs, f.tokens, f.digest) for f in here.dynamic.fragments] == [
            (f.kind, f.refs, f.tokens, f.digest) for f in there.dynamic.fragments
        ]

    play(messages, acts, after)


@settings(max_examples=examples(60), derandomize=True, database=None)
@given(messages=MESSAGES, acts=ACTS)
def test_an_envelope_does_not_change_after_it_was_built(
    messages: tuple[Wire, ...], acts: list[tuple[str, int]]
) -> None:
    """Rendered when it was built, and when the session has moved on: caches are shared, values are not."""
    run = play(messages, acts)
    assert [rendered(envelope) for envelope in run.envelopes] == run.bytes


def test_an_envelope_first_rendered_late_shows_what_it_was_built_from() -> None:
    store = memory_store()
    session, maker = store.session("s", counter=CHARS), builder()
    session.append({"role": "user", "content": "look it up"})
    session.append({"role": "assistant", "tool_calls": [_call("c1"), _call("c2")]})
    session.append({"role": "tool", "tool_call_id": "c1", "content": "one"})
    early = maker.build(session)
    expected = rendered(builder().rebuild(store.at("default", "s", early.position)))
    session.append({"role": "tool", "tool_call_id": "c2", "content": "two"})
    session.append({"role": "user", "content": "x" * 3_000})
    maker.build(session)
    assert rendered(early) == expected


def _call(id: str) -> Wire:
    return {"id": id, "type": "function", "function": {"name": "look_up", "arguments": "{}"}}


@settings(max_examples=examples(80), derandomize=True, database=None)
@given(messages=MESSAGES, acts=ACTS)
def test_a_preview_changes_no_later_byte(messages: tuple[Wire, ...], acts: list[tuple[str, int]]) -> None:
    without = [("skip" if act == "preview" else act, n) for act, n in acts]
    assert play(messages, acts).bytes == play(messages, without).bytes


# -- nothing is dropped silently --------------------------------------------------


@settings(max_examples=examples(120), derandomize=True, database=None)
@given(messages=MESSAGES, acts=ACTS)
def test_every_original_is_shown_cited_or_a_recorded_loss_and_resolves(
    messages: tuple[Wire, ...], acts: list[tuple[str, int]]
) -> None:
    run = play(messages, acts)
    envelope = run.build()
    session = run.session
    shown = [ordinal for fragment in envelope.dynamic.strip.fragments for ordinal in fragment.refs]
    assert len(shown) == len(set(shown))
    cited = {Ref.parse(ref).ordinal for bullet in session.state.bullets for ref in bullet.citations}
    lost = {Ref.parse(loss.ref).ordinal for event in session.reports() for loss in event.report.losses}
    assert set(range(1, len(session) + 1)) - set(shown) - cited - lost == set()
    for reader in (session, fresh(run.store, session)):
        assert [reader.resolve(f"§{n}").wire for n in range(1, len(session) + 1)] == run.wires


def test_a_fork_of_a_fork_has_all_reports_of_its_line() -> None:
    store = memory_store()
    first, maker = store.session("s", counter=CHARS), builder()
    for n in range(12):
        first.append({"role": ("user", "assistant")[n % 2], "content": f"part {n} " + "word " * 60})
        maker.build(first)
    reports = [event.report.id for event in first.reports()]
    assert reports
    second = first.fork(id="s-1")
    third = second.fork(id="s-2")
    assert [event.report.id for event in second.reports()] == reports
    assert [event.report.id for event in third.reports()] == reports


# -- past envelopes --------------------------------------------------------------------------------


@settings(max_examples=examples(60), derandomize=True, database=None)
@given(messages=MESSAGES, acts=ACTS)
def test_every_past_envelope_rebuilds_byte_for_byte(messages: tuple[Wire, ...], acts: list[tuple[str, int]]) -> None:
    tokenizer = load_tokenizer("o200k_base")
    store = memory_store()
    session = store.session("s", counter=Counter(tokenizer))
    maker = EnvelopeBuilder(
        tokenizer="o200k_base",
        budgets=Budgets(dynamic_tokens=400, recall_fraction=0.3),
        summarizer=FirstLine(),
        selector=WordOverlap(),
    )
    built: list[tuple[str, str]] = []
    for at, message in enumerate(messages):
        session.append(message)
        act, n = acts[at % len(acts)]
        if act == "note":
            session.note(("plan", "subtask")[n % 2], ("", "step one")[n % 3 > 0])
        elif act == "fork":
            session = session.fork(id=f"s{at}")
        elif act != "skip":
            envelope = maker.build(session)
            built.append((envelope.address, rendered(envelope)))
    for address, bytes_then in built:
        assert rendered(rebuilt(store, address)) == bytes_then


def rebuilt(store: Store, address: str) -> Envelope:
    manifest = store.manifest(address)
    session = store.at("default", manifest["session"], manifest["position"])
    return EnvelopeBuilder.from_manifest(manifest).rebuild(session)


def _o200k(**more: Any) -> EnvelopeBuilder:
    return EnvelopeBuilder(tokenizer="o200k_base", summarizer=FirstLine(), **more)


def test_an_envelope_with_other_tools_has_another_address_and_rebuilds_with_its_own() -> None:
    store, maker = memory_store(), _o200k()
    session = store.session("s", tools=[tool("find")])
    session.append({"role": "user", "content": "hi"})
    first = maker.build(session)
    second = maker.build(store.session("s", tools=[tool("delete")]))
    assert rendered(first) != rendered(second)
    assert rendered(rebuilt(store, first.address)) == rendered(first)
    assert rendered(rebuilt(store, second.address)) == rendered(second)


def test_an_envelope_built_after_a_calibration_rebuilds() -> None:
    store, maker = memory_store(), _o200k(budgets=Budgets(dynamic_tokens=400))
    session = store.session("s")
    for n in range(20):
        session.append({"role": ("user", "assistant")[n % 2], "content": f"part {n} " + "word " * 30})
        envelope = maker.build(session)
        assert rendered(rebuilt(store, envelope.address)) == rendered(envelope)
        maker.calibrate({"prompt_tokens": round(envelope.tokens * 1.4)}, envelope)


def test_a_rebuilt_envelope_says_the_same_about_itself() -> None:
    """Sections, budgets and address, not only bytes."""
    store, maker = memory_store(), _o200k()
    session = store.session("s")
    session.append({"role": "user", "content": "hi"})
    envelope = maker.build(session)
    again = rebuilt(store, envelope.address)
    assert again.address == envelope.address
    for name in ("system", "static", "meta", "dynamic"):
        assert again.section(name).digest == envelope.section(name).digest
        assert again.section(name).budget_tokens == envelope.section(name).budget_tokens


# -- append-only -----------------------------------------------------------------------------------


def stable(envelope: Envelope) -> list[Wire]:
    """Rendered messages before the turn context (Anthropic: the provider whose rendering moves most)."""
    rows: list[Wire] = envelope.render("anthropic", cache=False)["messages"]
    return rows[: sum(len(wires_of(fragment)) for fragment in envelope.dynamic.stable)]


def before_notes(envelope: Envelope) -> str:
    """The prompt up to its notes, as one text of blocks."""
    rows = envelope.render("anthropic", cache=False)["messages"]
    notes = envelope.dynamic.notes
    blocks: list[Any] = []
    for row in rows:
        for block in row["content"] if isinstance(row["content"], list) else [row["content"]]:
            if notes is not None and isinstance(block, dict) and block.get("text") == notes.text:
                return json.dumps(blocks)[:-1]
            blocks.append([row["role"], block])
    return json.dumps(blocks)[:-1]


WHOLE_GROUPS = st.one_of(
    histories("openai", broken=False, min_size=5, max_size=16),
    histories("anthropic", broken=False, min_size=5, max_size=16),
)


@settings(max_examples=examples(120), derandomize=True, database=None)
@given(messages=WHOLE_GROUPS)
def test_calls_only_append_between_compactions(messages: tuple[Wire, ...]) -> None:
    assert prefix_breaks(builder(), messages) == []


def prefix_breaks(maker: EnvelopeBuilder, messages: tuple[Wire, ...]) -> list[int]:
    """Ordinals at whose calls bytes changed that should have stayed; built where a caller would."""
    session = memory_store().session("s", counter=CHARS, system="Be brief.")
    broken: list[int] = []
    last: tuple[list[Wire], str, int] | None = None
    for at, message in enumerate(messages):
        session.append(message)
        if at % 3 == 2:
            session.note("plan", f"at {at}")
        if session.state.open_calls or message["role"] == "assistant":
            continue
        envelope = maker.build(session)
        now = (stable(envelope), before_notes(envelope), session.state.last_user)
        spared = bool(envelope.reports) or any(f.kind == "recall_dropped" for f in envelope.findings)
        if (
            last is not None
            and not spared
            and (now[0][: len(last[0])] != last[0] or (last[2] == now[2] and not now[1].startswith(last[1])))
        ):
            broken.append(len(session))
        last = now
    return broken


class Rechooser(EnvelopeBuilder):
    """A mutant: recalls something else at every call."""

    def build(self, session: Session) -> Envelope:
        super().build(session)
        state = session.state
        if state.last_user > 1:
            refs = (1 + state.position % (state.last_user - 1),)
            session.commit(RecallSelected(turn=state.last_user, refs=refs, log={}))
        return self.rebuild(session)


def test_the_check_sees_a_builder_that_chooses_again_at_every_call() -> None:
    messages: list[Wire] = [{"role": "user", "content": f"topic {n}"} for n in range(4)]
    for n in range(4):
        messages.append({"role": "assistant", "content": None, "tool_calls": [_call(f"c{n}")]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": "found"})
    mutant = Rechooser(tokenizer=CharTokenizer(), budgets=SMALL, summarizer=FirstLine(), selector=WordOverlap())
    assert prefix_breaks(builder(), tuple(messages)) == []
    assert prefix_breaks(mutant, tuple(messages)) != []
