"""A build with a deadline: it ends in time, says what it left out, and is a build like any other."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, ScoredOriginal, SelectionRequest, Session, rebuild
from ctxsteward.envelope.store import Store
from ctxsteward.envelope.testing import memory_store
from ctxsteward.evals.prompt_cost import openai_faults
from ctxsteward.schemas import ChatReply, ChatRequest, Summarizer, SummarizerInput, Summary, WindowExceeded
from ctxsteward.store.deadline import Deadline, DeadlinePassed, seconds_left, uncut
from ctxsteward.store.journal.events import WindowCompacted
from ctxsteward.summarizers.models import CallLimits, GovernedModel

from ...summarizers.models.fake_model import FakeModel

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


WINDOW: dict[str, Any] = {
    "tokenizer": "o200k_base",
    "window_tokens": 3_000,
    "output_reserve_tokens": 500,
    "budgets": BUDGETS,
}


def failing(source: SummarizerInput, *, budget_tokens: int) -> Summary:
    raise ConnectionError("the model's server is down")


def beyond_the_window(store: Store, *, steps: int = 0) -> Session:
    """Some 5,000 tokens; with `steps`, the newest turn is a loop of so many tool calls."""
    session = store.session("s", system="Answer briefly.")
    session.append({"role": "user", "content": "The task: count what is said."})
    for turn in range(24):
        session.append({"role": "assistant", "content": f"Answer {turn}. " + "More words of it. " * 40})
        session.append({"role": "user", "content": f"Question {turn}. " + "Some words of it. " * 10})
    for step in range(steps):
        call = {"id": f"call{step}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        session.append({"role": "assistant", "content": None, "tool_calls": [call]})
        session.append({"role": "tool", "tool_call_id": f"call{step}", "content": f"found {step} " * 30})
    return session


@pytest.mark.parametrize("steps", [pytest.param(0, id="a chat"), pytest.param(12, id="a tool loop")])
@pytest.mark.parametrize(
    ("summarizer", "kind"),
    [
        pytest.param(never_ending, "build_deadline", id="the compaction is late"),
        pytest.param(failing, "compaction_refused", id="the summarizer fails"),
    ],
)
def test_a_history_beyond_the_window_that_cannot_be_compacted_is_shown_in_part(
    summarizer: Summarizer, kind: str, steps: int
) -> None:
    store = memory_store()
    session = beyond_the_window(store, steps=steps)
    late = EnvelopeBuilder(**WINDOW, summarizer=summarizer)
    built = late.build(session, deadline_seconds=0.2)
    kinds = [one.kind for one in built.findings]
    assert kind in kinds
    assert "dynamic_over_budget" not in kinds
    left_out = next(one for one in built.findings if one.kind == "history_left_out")
    assert "of its" in left_out.text
    assert built.reports == ()
    assert 450 < built.section("dynamic").tokens <= 900
    shown = built.section("dynamic").text
    assert "The task: count what is said." in shown
    assert (f"found {steps - 1} " if steps else "Question 23.") in shown
    assert "Question 0." not in shown
    assert session.resolve(left_out.ref or "").text.startswith("Answer 0.")
    assert openai_faults(built.render("openai-chat")) == []
    again = rebuild(store, built.address)
    assert (again.address, again.document()["sections"]) == (built.address, built.document()["sections"])
    assert late.build(session, deadline_seconds=0.2).address == built.address


def test_what_was_left_out_comes_back_with_the_first_build_that_compacts() -> None:
    session = beyond_the_window(memory_store())
    late = EnvelopeBuilder(**WINDOW, summarizer=never_ending)
    position = session.state.position
    assert "history_left_out" in [one.kind for one in late.build(session, deadline_seconds=0.2).findings]
    assert not any(isinstance(event, WindowCompacted) for event in session.reports())
    assert session.state.position <= position + 1  # a selection at most
    built = EnvelopeBuilder(**WINDOW).build(session)
    assert len(built.reports) == 1
    assert "history_left_out" not in [one.kind for one in built.findings]


def test_a_newest_message_beyond_the_window_is_an_error_also_where_a_compaction_is_late() -> None:
    session = beyond_the_window(memory_store())
    session.append({"role": "user", "content": "Word of it. " * 2_000})
    with pytest.raises(WindowExceeded):
        EnvelopeBuilder(**WINDOW, summarizer=never_ending).build(session, deadline_seconds=0.2)


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


def test_what_must_not_be_cut_off_ends_first_also_where_it_is_within_another_such_block() -> None:
    done: list[str] = []

    def work() -> None:
        with uncut():
            with uncut():
                time.sleep(0.1)
            done.append("given back")
        done.append("never here")

    with Deadline(0.05) as deadline, pytest.raises(DeadlinePassed), deadline.bounding():
        work()
    assert done == ["given back"]


def test_a_thread_that_was_cut_off_while_it_ended_finds_no_deadline_later() -> None:
    class CutOffAtItsEnd(Deadline):
        def _end(self) -> None:
            super()._end()
            raise DeadlinePassed

    with CutOffAtItsEnd(60) as deadline, pytest.raises(DeadlinePassed), deadline.bounding():
        pass
    assert seconds_left() is None


def test_the_clock_counts_where_the_timer_s_thread_has_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deadline, "_pass", lambda self: None)
    with Deadline(0.01) as deadline:
        time.sleep(0.02)
        with pytest.raises(DeadlinePassed), deadline.bounding():
            raise AssertionError("the time has passed before")


def test_one_thread_watches_all_deadlines_of_a_process() -> None:
    with Deadline(60):
        before = threading.active_count()
        with ExitStack() as deadlines:
            for _ in range(20):
                deadlines.enter_context(Deadline(60))
            assert threading.active_count() == before


def test_a_later_deadline_that_is_shorter_passes_first() -> None:
    with Deadline(60) as outer, outer.bounding():
        with Deadline(0.05) as inner, pytest.raises(DeadlinePassed), inner.bounding():
            for _ in range(STEPS):
                pass
        assert outer.seconds_left > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_process_has_deadlines_of_its_own() -> None:
    program = """
import os
from ctxsteward.store.deadline import Deadline, DeadlinePassed

with Deadline(60):
    child = os.fork()
    try:
        with Deadline(0.05) as deadline, deadline.bounding():
            for _ in range(2_000_000_000):
                pass
    except DeadlinePassed:
        if child == 0:
            os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "7\n"


def test_a_model_is_waited_for_no_longer_than_the_build_and_keeps_no_slot() -> None:
    asked: list[float] = []

    def answer(request: ChatRequest) -> ChatReply:
        asked.append(request.deadline_seconds)
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            pass
        return ChatReply(text="late")

    model = GovernedModel(FakeModel(answer), limits=CallLimits(concurrent=1))
    request = ChatRequest(purpose="summary", messages=({"role": "user", "content": "Hello."},), max_output_tokens=20)
    for _ in range(2):
        with Deadline(0.2) as deadline, pytest.raises(DeadlinePassed), deadline.bounding():
            model.reply(request)
    assert len(asked) == 2
    assert max(asked) <= 0.2


def test_nothing_is_imported_where_a_deadline_may_cut_it_off() -> None:
    program = """
import sys
from ctxsteward.envelope import Budgets, EnvelopeBuilder
from ctxsteward.envelope.testing import memory_store
from ctxsteward.store import deadline

class Watched:
    def find_spec(self, name, path=None, target=None):
        now = getattr(deadline._here, "deadline", None)
        if now is not None and now._is_bounding:
            print(name)

sys.meta_path.insert(0, Watched())
session = memory_store().session("s")
for turn in range(12):
    session.append({"role": "user", "content": f"Question {turn}. " + "Some words of it. " * 40})
    session.append({"role": "assistant", "content": f"Answer {turn}. " + "More words of it. " * 40})
session.append({"role": "user", "content": "What was question 3?"})
built = EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=900)).build(session, deadline_seconds=60)
print(len(built.reports), "numpy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["1 True"]


def test_behind_the_work_nothing_is_raised() -> None:
    with Deadline(0.05) as deadline:
        with deadline.bounding():
            pass
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            pass
        with pytest.raises(DeadlinePassed), deadline.bounding():
            raise AssertionError("the time has passed before")


PROFILED = """
import sys, time
from ctxsteward.store.deadline import Deadline, DeadlinePassed
with Deadline(0.01) as deadline:
    try:
        with deadline.bounding():
            while True:
                pass
    except DeadlinePassed:
        pass
sys.{hook}(lambda *_: None)
(lambda: None)()
sys.{hook}(None)
print("went on")
"""


@pytest.mark.parametrize("hook", ["setprofile", "settrace"])
def test_a_process_goes_on_under_a_profiler_after_a_deadline_has_passed(hook: str) -> None:
    """CPython 3.11 stands still at the next call if it was told of an exception that nobody raises any more."""
    ran = subprocess.run([sys.executable, "-c", PROFILED.format(hook=hook)], capture_output=True, timeout=60)
    assert ran.stdout == b"went on\n", ran.stderr
