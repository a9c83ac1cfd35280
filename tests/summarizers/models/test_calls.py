"""A governed model: how often it is asked, what a task may use, who pays, and when it is left alone."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.schemas import ChatReply, ChatRequest, ModelPrice, ModelUnavailable, TokenUsage
from ctxsteward.summarizers.models import CallLimits, GovernedModel, SpendingLedger, SpendingStopped
from ctxsteward.summarizers.models.calls import FAILURES

from ...examples import examples
from .fake_model import FakeModel

LIMITS = CallLimits(first_wait_seconds=0.0, longest_wait_seconds=0.0)
REQUEST = ChatRequest(
    purpose="summary", messages=({"role": "user", "content": "x" * 3_000},), max_output_tokens=200, deadline_seconds=5
)
DONE = ChatReply(text="done", usage=TokenUsage(prompt_tokens=1_000, cached_tokens=400, output_tokens=100))


def overloaded(**more: Any) -> ModelUnavailable:
    return ModelUnavailable("fake", "HTTP 429", **{"is_passing": True, "is_billed": False, **more})


def scripted(*outcomes: ChatReply | Exception) -> FakeModel:
    left = list(outcomes)

    def answer(request: ChatRequest) -> ChatReply:
        outcome = left.pop(0) if left else DONE
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return FakeModel(answer)


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Callable[[GovernedModel, ChatRequest], ChatReply]:
    if request.param == "sync":
        return lambda model, asked: model.reply(asked)
    return lambda model, asked: asyncio.run(model.reply_async(asked))


# -- trying again ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcomes", "tries"),
    [
        ([DONE], 1),
        ([overloaded(), DONE], 2),
        ([overloaded(wait_seconds=0.01), overloaded(), DONE], 3),
        ([overloaded(is_billed=True), DONE], 2),
    ],
)
def test_what_passes_is_tried_again(ask: Any, outcomes: list[Any], tries: int) -> None:
    model = scripted(*outcomes)
    assert ask(GovernedModel(model, limits=LIMITS), REQUEST) == DONE
    assert len(model.asked) == tries


@pytest.mark.parametrize(
    ("outcomes", "tries"),
    [
        ([ModelUnavailable("fake", "HTTP 401", is_billed=False)], 1),
        ([overloaded()] * 9, LIMITS.tries),
        ([overloaded(is_billed=True)] * 9, 2),
        ([overloaded(wait_seconds=60.0), DONE], 1),
    ],
    ids=["a refusal", "as often as the limit", "twice where each may be billed", "not beyond the deadline"],
)
def test_what_does_not_pass_is_given_up(ask: Any, outcomes: list[Any], tries: int) -> None:
    model = scripted(*outcomes)
    with pytest.raises(ModelUnavailable):
        ask(GovernedModel(model, limits=LIMITS), REQUEST)
    assert len(model.asked) == tries


FAULTS = st.builds(
    lambda passing, billed: ModelUnavailable("fake", "x", is_passing=passing, is_billed=billed),
    st.booleans(),
    st.booleans(),
)


@settings(max_examples=examples(200))
@given(st.lists(st.lists(FAULTS, max_size=6), min_size=1, max_size=4))
def test_no_fault_makes_a_task_use_more_than_twice_its_first_call(rounds: list[list[Exception]]) -> None:
    """Tokens of every try that the provider may bill, repairs included, as counted before each is sent."""
    sent = 0

    def answer(request: ChatRequest) -> ChatReply:
        nonlocal sent
        outcome = faults.pop(0) if faults else DONE
        if not isinstance(outcome, ModelUnavailable) or outcome.is_billed:
            sent += size
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    size = 1_001 + 8 + 200  # as it is estimated: characters by three, a frame, the longest reply
    governed = GovernedModel(FakeModel(answer), limits=CallLimits(first_wait_seconds=0.0, longest_wait_seconds=0.0))
    task = governed.task()
    for one in rounds:
        faults: list[Any] = list(one)
        with contextlib.suppress(ModelUnavailable):
            task.reply(REQUEST)
    assert sent <= 2 * size


def test_a_model_that_fails_again_and_again_is_left_alone_and_then_asked_anew() -> None:
    now = [0.0]
    model = scripted(*[ModelUnavailable("fake", "HTTP 500")] * FAILURES)
    governed = GovernedModel(model, limits=LIMITS, clock=lambda: now[0])
    for _ in range(FAILURES + 3):
        with pytest.raises(ModelUnavailable):
            governed.reply(REQUEST)
    assert len(model.asked) == FAILURES
    now[0] = LIMITS.rest_seconds + 1

    assert governed.reply(REQUEST) == DONE


def test_no_more_calls_than_allowed_run_at_once() -> None:
    running, most = 0, 0
    lock, gate = threading.Lock(), threading.Event()

    def answer(request: ChatRequest) -> ChatReply:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        gate.wait(10)
        with lock:
            running -= 1
        return DONE

    governed = GovernedModel(FakeModel(answer), limits=CallLimits(concurrent=3))
    threads = [threading.Thread(target=governed.reply, args=(REQUEST,)) for _ in range(9)]
    for thread in threads:
        thread.start()
    while running < 3:
        pass
    gate.set()
    for thread in threads:
        thread.join(10)
    assert most == 3


def test_tokens_a_minute_hold_back_what_passes_them() -> None:
    now = [0.0]
    model = scripted()
    limits = CallLimits(tokens_per_minute=2_000, tries=1)
    governed = GovernedModel(model, limits=limits, clock=lambda: now[0])
    governed.reply(REQUEST)
    with pytest.raises(ModelUnavailable, match="tokens a minute"):
        governed.reply(REQUEST)
    now[0] = 61.0

    assert governed.reply(REQUEST) == DONE


# -- who pays ----------------------------------------------------------------------------------------------

PRICES = {"fake": ModelPrice(prompt=1_000.0, cached=100.0, output=2_000.0)}


def test_every_call_is_counted_on_each_of_its_accounts() -> None:
    spending = SpendingLedger(PRICES)
    governed = GovernedModel(scripted(overloaded(is_billed=True)), limits=LIMITS, spending=spending)
    governed.charged(tenant="acme", session="s-1").reply(REQUEST)
    governed.charged(tenant="acme", night="2026-01-01").reply(REQUEST)

    rows = [(row.account, row.name, row.calls, row.failures, round(row.dollars, 3)) for row in spending.rows()]
    price = 0.6 + 0.04 + 0.2
    assert rows == [
        ("night", "2026-01-01", 1, 0, round(price, 3)),
        ("session", "s-1", 2, 1, round(price + 1.009, 3)),
        ("tenant", "acme", 3, 1, round(2 * price + 1.009, 3)),
    ]


def test_an_account_at_its_limit_asks_no_model() -> None:
    spending = SpendingLedger(PRICES, limits={"session": 2.0})
    model = scripted()
    governed = GovernedModel(model, limits=LIMITS, spending=spending).charged(session="s-1")
    governed.reply(REQUEST)
    with pytest.raises(SpendingStopped, match=r"session 's-1' has spent \$0.8400 of \$2"):
        governed.reply(REQUEST)
    assert len(model.asked) == 1
    governed.charged(session="s-2").reply(REQUEST)
    assert len(model.asked) == 2


def test_calls_that_run_at_once_do_not_pass_a_limit_together() -> None:
    spending = SpendingLedger(PRICES, limits={"tenant": 4.0})
    model = FakeModel(lambda request: DONE)
    governed = GovernedModel(model, limits=CallLimits(concurrent=16), spending=spending).charged(tenant="acme")

    def ask() -> None:
        with contextlib.suppress(SpendingStopped):
            governed.reply(REQUEST)

    threads = [threading.Thread(target=ask) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert spending.dollars("tenant", "acme") <= 4.0
    assert len(model.asked) >= 3


# -- however a call ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [RuntimeError("a bug"), KeyboardInterrupt(), TimeoutError(), SystemExit()])
def test_whatever_ends_a_call_lets_go_of_what_was_held_and_counts_it(ask: Any, error: BaseException) -> None:
    def fails(request: ChatRequest) -> ChatReply:
        raise error

    spending = SpendingLedger(PRICES, limits={"tenant": 100.0})
    governed = GovernedModel(FakeModel(fails), limits=LIMITS, spending=spending).charged(tenant="acme")
    with pytest.raises(type(error)):
        ask(governed, REQUEST)

    (row,) = spending.rows()
    assert (row.calls, row.failures, row.usage.prompt_tokens) == (1, 1, 1_009)
    assert spending.dollars("tenant", "acme") == row.dollars
    assert governed._shared.slots._value == LIMITS.concurrent


def test_a_cancelled_task_gives_back_its_slot_and_what_was_held() -> None:
    class Slow(FakeModel):
        async def reply_async(self, request: ChatRequest) -> ChatReply:
            await asyncio.sleep(60)
            return DONE

    spending = SpendingLedger(PRICES)
    limits = CallLimits(concurrent=1)
    governed = GovernedModel(Slow(lambda request: DONE), limits=limits, spending=spending).charged(tenant="acme")

    async def cancelled() -> None:
        task = asyncio.create_task(governed.reply_async(REQUEST))
        while not governed._shared.recent:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert [row.failures for row in spending.rows()] == [1]
    assert spending.dollars("tenant", "acme") == spending.rows()[0].dollars
    assert governed._shared.slots._value == 1


def test_no_wait_goes_beyond_the_deadline(ask: Any) -> None:
    model = scripted(*[overloaded()] * 9)
    limits = CallLimits(first_wait_seconds=100.0, longest_wait_seconds=100.0)
    with pytest.raises(ModelUnavailable, match="HTTP 429"):
        ask(GovernedModel(model, limits=limits), REQUEST)
    assert len(model.asked) == 1


def test_what_is_refused_of_one_request_holds_up_no_other() -> None:
    model = scripted(*[ModelUnavailable("fake", "HTTP 400: too long", is_billed=False)] * FAILURES)
    governed = GovernedModel(model, limits=LIMITS)
    for _ in range(FAILURES):
        with pytest.raises(ModelUnavailable):
            governed.charged(tenant="bad").reply(REQUEST)
    assert governed.charged(tenant="good").reply(REQUEST) == DONE


def test_tokens_a_minute_hold_when_calls_begin_at_once() -> None:
    barrier = threading.Barrier(6)
    governed = GovernedModel(scripted(), limits=CallLimits(tokens_per_minute=2_000, tries=1, concurrent=6))

    def ask_at_once() -> None:
        barrier.wait(10)
        with contextlib.suppress(ModelUnavailable):
            governed.reply(REQUEST)

    threads = [threading.Thread(target=ask_at_once) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sum(tokens for _, tokens in governed._shared.recent) <= 2_000


# -- what is counted ---------------------------------------------------------------------------------------

USAGES = {
    "none is told": (None, TokenUsage(prompt_tokens=1_009, output_tokens=2)),
    "zero is told": (TokenUsage(), TokenUsage(prompt_tokens=1_009, output_tokens=2)),
    "more from the cache than there is": (
        TokenUsage(prompt_tokens=10, cached_tokens=15, written_tokens=50, output_tokens=1),
        TokenUsage(prompt_tokens=10, cached_tokens=10, output_tokens=1),
    ),
    "as it is": (DONE.usage, DONE.usage),
}


@pytest.mark.parametrize("case", USAGES)
def test_usage_is_counted_as_it_can_be(case: str) -> None:
    told, counted = USAGES[case]
    spending = SpendingLedger(PRICES)
    GovernedModel(FakeModel(lambda request: ChatReply(text="done", usage=told)), spending=spending).reply(REQUEST)
    (row,) = spending.rows()
    assert (row.account, row.name) == ("process", "uncharged")
    assert row.usage == counted


def test_a_limit_on_a_model_without_a_price_stops_it_and_says_so() -> None:
    model = scripted()
    spending = SpendingLedger({"another": ModelPrice(prompt=1.0)}, limits={"session": 1.0})
    with pytest.raises(SpendingStopped, match=r"no price is known; give its price \(0 where it is free\)"):
        GovernedModel(model, spending=spending).charged(session="s").reply(REQUEST)
    assert not model.asked
    GovernedModel(model, spending=spending).charged(tenant="acme").reply(REQUEST)
    free = SpendingLedger({"fake": ModelPrice()}, limits={"session": 1.0})
    GovernedModel(model, spending=free).charged(session="s").reply(REQUEST)
    assert len(model.asked) == 2


def test_writing_to_the_cache_is_held_at_its_own_price() -> None:
    spending = SpendingLedger({"fake": ModelPrice(prompt=1_000.0, written=1_250.0)}, limits={"session": 1.2})
    with pytest.raises(SpendingStopped, match=r"this call may cost \$1\.26"):
        GovernedModel(scripted(), spending=spending).charged(session="s").reply(REQUEST)
