"""A build with a deadline: it ends in time, says what it left out, and is a build like any other."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Session, rebuild
from ctxsteward.envelope.recall import ScoredOriginal, SelectionRequest
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import SummarizerInput, Summary
from ctxsteward.store import Deadline, DeadlinePassed
from ctxsteward.store.deadline import uncut

STEPS = 2_000_000_000
"""More than any of these tests waits for."""


def never_ending(source: SummarizerInput, *, budget_tokens: int) -> Summary:
    for _ in range(STEPS):
        pass
    raise AssertionError("it was not cut off")


def never_ranking(request: SelectionRequest) -> Sequence[ScoredOriginal]:
    try:
        for _ in range(STEPS):
            pass
    except Exception:  # as an application's selector may have it: a deadline is no error of its own
        return ()
    raise AssertionError("it was not cut off")


def long_session() -> Session:
    session = memory_store().session("s")
    for turn in range(12):
        session.append({"role": "user", "content": f"Question {turn}. " + "Some words of it. " * 40})
        session.append({"role": "assistant", "content": f"Answer {turn}. " + "More words of it. " * 40})
    session.append({"role": "user", "content": "And now?"})
    return session


BUDGETS = Budgets(dynamic_tokens=900)


def test_a_compaction_that_is_late_is_left_out_and_the_history_stays() -> None:
    store = memory_store()
    session = store.session("s")
    for turn in range(12):
        session.append({"role": "user", "content": f"Question {turn}. " + "Some words of it. " * 40})
        session.append({"role": "assistant", "content": f"Answer {turn}. " + "More words of it. " * 40})
    session.append({"role": "user", "content": "And now?"})
    builder = EnvelopeBuilder(model="gpt-4o", budgets=BUDGETS, summarizer=never_ending)
    began = time.monotonic()
    built = builder.build(session, deadline_seconds=0.2)
    assert time.monotonic() - began < 10
    dynamic = built.section("dynamic")
    told = [one.text for one in built.findings if one.kind == "build_deadline"]
    over = dynamic.tokens - 900
    assert over > 0
    assert dynamic.overflow_tokens == over
    assert told[0] == (
        f"a compaction was due and not made: the deadline of 0.2 s had passed; the history stays, {dynamic.tokens} "
        f"tokens, {over} over its budget of 900"
    )
    assert "Question 0." in dynamic.text
    assert "Question 11." in dynamic.text
    assert built.render("openai-chat")["messages"]
    again = rebuild(store, built.address)
    assert (again.address, again.section("dynamic").text) == (built.address, dynamic.text)


def test_it_is_not_tried_again_until_more_was_said() -> None:
    session = long_session()
    builder = EnvelopeBuilder(model="gpt-4o", budgets=BUDGETS, summarizer=never_ending)
    assert "build_deadline" in [one.kind for one in builder.build(session, deadline_seconds=0.2).findings]
    session.append({"role": "assistant", "content": "Now this."})
    began = time.monotonic()
    builder.build(session, deadline_seconds=60)
    assert time.monotonic() - began < 30
    for turn in range(8):
        session.append({"role": "user", "content": f"Later {turn}. " + "Some words of it. " * 40})
        session.append({"role": "assistant", "content": "Well. " + "More words of it. " * 40})
    own = EnvelopeBuilder(model="gpt-4o", budgets=BUDGETS).build(session)
    assert len(own.reports) == 1


def test_a_session_that_nearly_fills_the_model_s_window_is_tried_again_at_once() -> None:
    session = long_session()
    window = {"tokenizer": "o200k_base", "window_tokens": 6_000, "output_reserve_tokens": 500, "budgets": BUDGETS}
    late = EnvelopeBuilder(**window, summarizer=never_ending)  # type: ignore[arg-type]
    for _ in range(3):
        session.append({"role": "user", "content": "More. " + "Some words of it. " * 120})
        session.append({"role": "assistant", "content": "Well. " + "More words of it. " * 120})
    with pytest.raises(Exception, match="window"):
        late.build(session, deadline_seconds=0.2)
    built = EnvelopeBuilder(**window).build(session)  # type: ignore[arg-type]
    assert len(built.reports) == 1


def test_recall_that_is_late_recalls_nothing_for_this_turn() -> None:
    session = long_session()
    EnvelopeBuilder(model="gpt-4o", budgets=BUDGETS).build(session)
    session.append({"role": "assistant", "content": "Now this."})
    session.append({"role": "user", "content": "What was question 3?"})
    builder = EnvelopeBuilder(model="gpt-4o", budgets=BUDGETS, selector=never_ranking)
    built = builder.build(session, deadline_seconds=0.2)
    told = [one.text for one in built.findings if one.kind == "build_deadline"]
    assert told == ["nothing was recalled: the deadline of 0.2 s had passed"]
    began = time.monotonic()
    assert builder.build(session, deadline_seconds=60).section("dynamic").text == built.section("dynamic").text
    assert time.monotonic() - began < 30


def test_a_preview_ends_in_time_and_writes_nothing() -> None:
    session = long_session()
    position = session.state.position
    builder = EnvelopeBuilder(model="gpt-4o", budgets=BUDGETS, summarizer=never_ending)
    found = builder.preview(session, "And what now?", deadline_seconds=0.2)
    assert "build_deadline" in [one.kind for one in found.findings]
    session.refresh()
    assert session.state.position == position


def test_without_a_deadline_and_within_it_the_bytes_are_the_same() -> None:
    builder = EnvelopeBuilder(model="gpt-4o", budgets=BUDGETS)
    with_one, without = builder.build(long_session(), deadline_seconds=60), builder.build(long_session())
    assert with_one.section("dynamic").content == without.section("dynamic").content
    assert len(with_one.reports) == 1


def test_what_must_not_be_cut_off_ends_first() -> None:
    done: list[str] = []

    def work() -> None:
        with uncut():
            until = time.monotonic() + 0.4
            while time.monotonic() < until:
                pass
            done.append("given back")
        done.append("never here")

    with Deadline(0.1) as deadline, pytest.raises(DeadlinePassed), deadline.bounding():
        work()
    assert done == ["given back"]


def test_behind_the_work_nothing_is_raised() -> None:
    with Deadline(0.05) as deadline:
        with deadline.bounding():
            pass
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            pass
        with pytest.raises(DeadlinePassed), deadline.bounding():
            raise AssertionError("the time has passed before")
