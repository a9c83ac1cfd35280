"""How much of a prompt is unchanged: against a comparison of every piece, over whole runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Profile, Session
from ctxsteward.envelope.telemetry.spans import Layouts, PrefixBreak, first_prefix_break, prefix_tokens
from ctxsteward.envelope.testing import memory_store

from ...examples import examples
from ..messages import char_builder


class Piece(NamedTuple):
    kind: str
    digest: bytes
    tokens: int
    text: str = ""


def pieces(envelope: Envelope) -> Iterator[Piece]:
    """A prompt in the order in which a provider reads it."""
    head = envelope.head
    yield Piece("tools", hashlib.sha256(json.dumps(head.tools).encode()).digest(), head.tools_tokens)
    for one in (*head.fragments, *envelope.dynamic.fragments):
        yield Piece(one.kind, one.digest, one.tokens, one.text if one.kind == "bullets" else "")


def compared(before: Envelope, now: Envelope, count: Callable[[str], int]) -> int:
    """Piece by piece; where both first differ in the bullets, their common beginning counts too."""
    tokens = 0
    for old, new in zip(pieces(before), pieces(now), strict=False):
        if old.digest != new.digest:
            if old.kind == new.kind == "bullets":
                length = 0
                while old.text[: length + 1] == new.text[: length + 1] and length < min(len(old.text), len(new.text)):
                    length += 1
                tokens += count(old.text[:length])
            break
        tokens += new.tokens
    return tokens


def builder(dynamic_tokens: int = 400, recall_fraction: float = 0.0) -> EnvelopeBuilder:
    budgets = Budgets(dynamic_tokens=dynamic_tokens, recall_fraction=recall_fraction)
    return char_builder(budgets)


def say(session: Session, step: str, number: int) -> None:
    """One event of a conversation."""
    if step == "call":
        call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        session.append({"role": "assistant", "content": None, "tool_calls": [call]})
        session.append({"role": "tool", "tool_call_id": f"c{number}", "content": f"found {number} " * 5})
    elif step == "note":
        session.note("plan", f"step {number}")
    else:
        session.append({"role": step, "content": f"{step} {number} says something about port {number * 7}"})


STEPS = st.lists(st.sampled_from(["user", "assistant", "call", "note"]), max_size=40)


@settings(max_examples=examples(60))
@given(STEPS, st.sampled_from([300, 900, 4000]), st.sampled_from([0.0, 0.4]))
def test_it_is_what_comparing_every_piece_says(steps: list[str], dynamic_tokens: int, recall_fraction: float) -> None:
    session, maker = memory_store().session("s"), builder(dynamic_tokens, recall_fraction)
    session.append({"role": "user", "content": "task 1"})
    before = maker.build(session)
    for number, step in enumerate(steps):
        say(session, step, number)
        now = maker.build(session)
        assert prefix_tokens(before, now, maker.counter.text) == compared(before, now, maker.counter.text)
        before = now


@settings(max_examples=examples(40))
@given(STEPS)
def test_between_compactions_nothing_breaks(steps: list[str]) -> None:
    session, maker = memory_store().session("s"), builder(100_000)
    session.append({"role": "user", "content": "task 1"})
    before = Layouts.of(maker.build(session))
    for number, step in enumerate(steps):
        say(session, step, number)
        now = Layouts.of(maker.build(session))
        assert first_prefix_break(before, now)[1:] == (None, (), 0)
        before = now


def test_the_first_envelope_has_no_prefix_and_begins_every_epoch() -> None:
    session = memory_store().session("s")
    session.append({"role": "user", "content": "hello"})

    found = first_prefix_break(None, Layouts.of(builder().build(session)))

    assert found == PrefixBreak(0, None, (("system", 0), ("static", 0), ("meta", 0), ("dynamic", 0)))


def test_a_compaction_breaks_the_prefix_in_dynamic_and_begins_an_epoch() -> None:
    session, maker = memory_store().session("s"), builder()
    before = None
    broke = []
    for number in range(40):
        say(session, ("user", "assistant")[number % 2], number)
        envelope = maker.build(session)
        now = Layouts.of(envelope)
        found = first_prefix_break(before, now) if before else None
        if found and envelope.reports:
            broke.append(found)
        before = now

    assert broke[0].broke_in == "dynamic"
    assert all(found.lost_tokens > 0 for found in broke)
    assert [found.changed for found in broke] == [(("dynamic", number),) for number in range(1, len(broke) + 1)]


@pytest.mark.parametrize(
    ("first", "then", "place"),
    [
        ({"tools": []}, {"tools": [{"type": "function", "function": {"name": "look"}}]}, "tools"),
        ({"system": "You help."}, {"system": "You help. It is 10:31."}, "system"),
        ({"profile": "You are Ada."}, {"profile": "You are Bob."}, "system"),
    ],
)
def test_a_head_that_changes_breaks_it_where_it_changed(
    first: dict[str, object], then: dict[str, object], place: str
) -> None:
    """Two sessions that say the same under two heads."""
    layouts = []
    for head in (first, then):
        given = {name: Profile.from_text(str(text)) if name == "profile" else text for name, text in head.items()}
        session = memory_store().session("s", **given)
        session.append({"role": "user", "content": "hello"})
        layouts.append(Layouts.of(builder(4000).build(session)))

    found = first_prefix_break(*layouts)

    assert found.broke_in == place
    assert found.prefix_tokens <= layouts[1].head_tokens
