"""The calls of a session in numbers equal what rebuilding each envelope says, however they were come by."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Session, Store, open_store, past_calls, rebuild
from ctxsteward.envelope.building.past_calls import CallCompaction, PastCall
from ctxsteward.envelope.telemetry.spans import prefix_tokens
from ctxsteward.store.erasure.forget import forget

from ...examples import examples

NOTE = "key 4417 opens the shed"
TURNS = [
    "A week in Kyoto, please; we decided on 3 days for Nara.",
    "Never book a flight before 10:00.",
    NOTE,
    "My budget is 90,000 yen.",
    "My sister Hana joins us.",
    "Which days are left for Uji and Kurama?",
    "Change of plan: my budget is 120,000 yen.",
    "Who comes along, and which key opens the shed?",
]


def builder(model: str = "gpt-4o") -> EnvelopeBuilder:
    return EnvelopeBuilder(model=model, budgets=Budgets(dynamic_tokens=220))


def play(store: Store, turns: int, start: int = 0, *, by: EnvelopeBuilder | None = None) -> list[Envelope]:
    session = store.session("trip", system="You plan trips.", counter=builder().counter)
    made = []
    by = by or builder()
    for turn in range(start, turns):
        text = TURNS[turn % len(TURNS)]
        session.append({"role": "user", "content": f"{text} ({turn})"}, principal="wei" if text == NOTE else "ann")
        made.append(by.build(session))
        session.append(
            {"role": "assistant", "content": f"Noted: {turn}. Gion, a temple, tea, and a walk by the river."}
        )
    return made


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store")


def plain(calls: tuple[PastCall, ...]) -> list[dict[str, object]]:
    return [call.model_dump() for call in calls]


def test_each_row_says_what_its_envelope_was(store: Store) -> None:
    built = play(store, 24)
    calls = past_calls(store, "trip")
    expected = []
    for number, envelope in enumerate(built, 1):
        before = built[number - 2] if number > 1 else None
        section = {name: one.tokens for name, one in envelope.sections.items()}
        made = [CallCompaction(r.id, r.pre_tokens, r.post_tokens, len(r.losses)) for r in envelope.reports]
        expected.append(
            (
                number,
                envelope.address,
                envelope.position,
                "gpt-4o",
                "",
                envelope.tokens,
                section["system"],
                section["static"],
                section["meta"],
                section["dynamic"],
                envelope.head.tools_tokens,
                prefix_tokens(before, envelope, builder().counter.text),
                tuple(made),
                number,
            )
        )
    found = [
        (
            call.number,
            call.address,
            call.position,
            call.model,
            call.fault,
            call.prompt_tokens,
            call.system_tokens,
            call.static_tokens,
            call.meta_tokens,
            call.dynamic_tokens,
            call.tools_tokens,
            call.prefix_tokens,
            call.compactions,
            call.turn,
        )
        for call in calls
    ]
    assert found == expected
    assert sum(len(call.compactions) for call in calls) > 2
    assert {call.broke_in for call in calls if call.compactions} == {"dynamic"}


def test_the_parts_of_dynamic_are_those_of_the_layout(store: Store) -> None:
    built = play(store, 24)
    for call, envelope in zip(past_calls(store, "trip"), built, strict=True):
        layout = envelope.dynamic
        recalled = layout.context.tokens if layout.context else 0
        live = sum(fragment.tokens for fragment in (*layout.live, *layout.after))
        assert (call.bullets_tokens, call.recall_tokens, call.live_tokens, call.notes_tokens) == (
            layout.bullets_tokens,
            recalled,
            live,
            0,
        )
        dynamic = envelope.section("dynamic")
        head = envelope.tokens - dynamic.tokens
        assert (call.limit_tokens, call.threshold_tokens) == (head + 220, head + int(220 * 0.9))


def test_what_is_kept_is_gone_on_with_and_equals_what_is_laid_out_anew(store: Store) -> None:
    play(store, 9)
    first = past_calls(store, "trip")
    play(store, 24, 9)
    kept = past_calls(store, "trip")
    assert plain(kept[:9]) == plain(first)
    session = store.at("default", "trip")
    file = session.derived_file()
    assert file is not None
    assert file.read("calls") is not None
    assert file.write("calls", [1, session.generation, []])  # nothing is known
    assert plain(past_calls(store, "trip")) == plain(kept)


@pytest.mark.parametrize("state", [[0, 0, []], [1, 99, [["x"]]], ["x"], [1]], ids=["version", "log", "text", "short"])
def test_a_file_of_something_else_is_laid_out_anew(store: Store, state: list[object]) -> None:
    play(store, 3)
    expected = plain(past_calls(store, "trip"))
    file = store.at("default", "trip").derived_file()
    assert file is not None
    assert file.write("calls", state)
    assert plain(past_calls(store, "trip")) == expected


def test_another_model_has_no_prefix_of_the_call_before(store: Store) -> None:
    play(store, 3)
    play(store, 4, 3, by=builder("claude-sonnet-4-5"))
    *_, before, other = past_calls(store, "trip")
    assert (before.prefix_tokens > 0, other.model, other.prefix_tokens) == (True, "claude-sonnet-4-5", 0)


def test_what_was_forgotten_leaves_the_rows_and_a_reason(store: Store) -> None:
    play(store, 12)
    past_calls(store, "trip")
    forget(store, principal="wei", who="dpo", why="asked", when="2026-11-24T00:00:00Z")
    calls = past_calls(store, "trip")
    faults = [call.fault for call in calls]
    assert len(calls) == 12
    assert faults[:2] == ["", ""]
    assert faults[2] == "the log no longer holds all that it was laid out from"
    texts = b"".join(path.read_bytes() for path in store.folder.rglob("*.calls")) if store.folder else b""
    assert texts
    assert b"opens the shed" not in texts


def test_a_damaged_manifest_is_a_row_with_a_reason(store: Store) -> None:
    built = play(store, 3)
    session = store.at("default", "trip")
    bodies = {one.address: one.body for one in session.journal.manifests(session.key)}
    session.journal.drop_manifests(session.key)
    for envelope in built:
        body = bodies[envelope.address]
        damaged = body.replace('"position":', '"position": ', 1) if envelope is built[1] else body
        session.journal.put_manifest(session.key, envelope.address, damaged)
    calls = past_calls(store, "trip")
    assert [bool(call.fault) for call in calls] == [False, True, False]
    assert "is not what was written" in calls[1].fault
    assert calls[1].prompt_tokens == 0


def test_a_session_without_calls_has_none_and_memory_keeps_nothing() -> None:
    store = open_store("memory:")
    store.session("trip")
    assert past_calls(store, "trip") == ()
    built = play(store, 5)
    assert [call.address for call in past_calls(store, "trip")] == [one.address for one in built]
    assert rebuild(store, built[2].address).address == built[2].address


@settings(max_examples=examples(25))
@given(data=st.data())
def test_reading_on_gives_the_state_that_a_reading_gives(data: st.DataObject) -> None:
    store = _played()
    length = store.journal.length(store.at("default", "trip").key)
    stops = sorted(data.draw(st.lists(st.integers(1, length), min_size=1, max_size=4)))
    session: Session = store.at("default", "trip", stops[0])
    for stop in stops:
        session.replica.advance(stop)
        assert session.state == store.at("default", "trip", stop).state


_STORES: list[Store] = []


def _played() -> Store:
    if not _STORES:
        store = open_store("memory:")
        play(store, 20)
        _STORES.append(store)
    return _STORES[0]
