"""No regret: with the budgets that a builder chooses itself, a run is never dearer than sending everything.

Runs are drawn: how long their turns and tool results are, how long users are away, where they end. Every beginning of a
run is a run that ended there. Counts are characters, prices the defaults (0.1 and 1.25; gone after five minutes).

In hindsight the best cuts are known. They come as early as the builder's own budget allows, and leave what its cut
would at least: the task, the newest turn, its target.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from typing import NamedTuple

from hypothesis import example, given, settings, strategies as st

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Prices
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.envelope.telemetry.spans import prefix_tokens
from ctxsteward.envelope.testing import CharTokenizer, memory_store
from ctxsteward.envelope.tokens.tokenizer import REPLY_PRIMING_TOKENS

from ...examples import examples

PRICES = Prices()
TASK = "Find out what stalls the relay, and mend it. " * 3
AWAY = 900
"""Seconds after which the provider's cache has nothing any more."""


class Stretch(NamedTuple):
    """Equal steps of a run, each a tool call with its result or a turn of both sides."""

    is_loop: bool
    tokens: int
    steps: int
    seconds: int = 1


class Call(NamedTuple):
    """A call of a run: its prompt as sent, what of it was sent before, and the same for sending everything."""

    sent: int
    sent_prefix: int
    everything: int
    everything_prefix: int
    least_kept: int
    """Tokens of dynamic that a cut cannot take, without what is new."""

    @property
    def price(self) -> float:
        return PRICES.of(self.sent, self.sent_prefix)

    @property
    def everything_price(self) -> float:
        return PRICES.of(self.everything, self.everything_prefix)


def builder() -> EnvelopeBuilder:
    return EnvelopeBuilder(tokenizer=CharTokenizer(), window_tokens=400_000, output_reserve_tokens=1_000)


def words(tokens: int, seed: int) -> str:
    """Text without a word that stands elsewhere, so that nothing is recalled."""
    count = max(1, tokens // 8)
    return " ".join(f"{(seed * 7_919 + n) * 2_654_435_761 % 26**5:07x}"[:7] for n in range(count))


def played(run: Sequence[Stretch], head_tokens: int) -> list[Call]:
    """Play a run, with a build before each reply and one at its end."""
    build, calls = builder(), list[Call]()
    session = memory_store().session("run", system="s" * head_tokens)
    now, said, before = datetime(2026, 11, 30, tzinfo=UTC), 0, None
    last_user = last_reply = 0

    def say(wire: dict[str, object]) -> int:
        return session.append(NewMessage(message=wire, ts=now.isoformat())).tokens(build.counter)

    def call(seconds: int) -> None:
        nonlocal before
        envelope = build.build(session)
        head, is_lost = envelope.tokens - envelope.section("dynamic").tokens, seconds >= AWAY or before is None
        prefix = 0 if is_lost or before is None else prefix_tokens(before, envelope, build.counter.text)
        earlier = 0 if is_lost else calls[-1].everything - REPLY_PRIMING_TOKENS
        kept = task + last_user + min(last_reply, build.budgets.reply_tokens)
        calls.append(Call(envelope.tokens, prefix, head + said, earlier, kept))
        before = envelope

    task = said = say({"role": "user", "content": TASK})
    steps = [stretch for stretch in run for _ in range(stretch.steps)]
    for number, (seconds, step) in enumerate(zip([0, *(step.seconds for step in steps)], steps, strict=False)):
        call(seconds)
        if step.is_loop:
            function = {"name": "look", "arguments": json.dumps({"page": number})}
            tool = {"id": f"c{number}", "type": "function", "function": function}
            said += say({"role": "assistant", "content": None, "tool_calls": [tool]})
            now += timedelta(seconds=step.seconds)
            content = words(step.tokens, number)
            said += say({"role": "tool", "tool_call_id": f"c{number}", "content": content})
        else:
            last_reply = say({"role": "assistant", "content": words(step.tokens // 2, number)})
            now += timedelta(seconds=step.seconds)
            last_user = say({"role": "user", "content": words(step.tokens // 2, -number)})
            said += last_reply + last_user
    call(steps[-1].seconds)
    return calls


def hindsight(calls: Sequence[Call], budgets: Budgets, head_tokens: int, task_tokens: int) -> Iterator[float]:
    """Yield for each call the least that a run which ends there could have cost, by cutting at the best calls."""
    first = calls[0].everything
    bills: dict[int, tuple[int, float]] = {0: (first, PRICES.of(first, 0))}  # by the newest cut: prompt, paid so far
    yield bills[0][1]
    for at, (before, call) in enumerate(pairwise(calls), 1):
        new, is_lost = call.everything - before.everything, not call.everything_prefix
        grown = {cut: (tokens + new, paid) for cut, (tokens, paid) in bills.items()}
        full = {0: budgets.dynamic_tokens}  # before the first cut
        may = [p for cut, (n, p) in grown.items() if n - head_tokens >= full.get(cut, budgets.history_tokens)]
        bills = {
            cut: (tokens, paid + PRICES.of(tokens, 0 if is_lost else tokens - new - REPLY_PRIMING_TOKENS))
            for cut, (tokens, paid) in grown.items()
        }
        after = head_tokens + max(budgets.target_tokens, call.least_kept) + new
        if may and after < call.everything:
            bills[at] = after, min(may) + PRICES.of(after, 0 if is_lost else head_tokens + task_tokens)
        yield min(paid for _, paid in bills.values())


stretches = st.builds(
    Stretch,
    st.booleans(),
    st.sampled_from([40, 100, 300, 900, 2_500, 6_000]),
    st.integers(1, 20),
    st.sampled_from([1, 1, 1, AWAY]),
)


@settings(max_examples=examples(12))
@given(run=st.lists(stretches, min_size=1, max_size=4), head_tokens=st.sampled_from([40, 1_500, 6_000]))
@example(run=[Stretch(True, 300, 62)], head_tokens=40)
@example(run=[Stretch(False, 40, 30), Stretch(False, 6_000, 9), Stretch(True, 100, 3)], head_tokens=40)
@example(run=[Stretch(True, 700, 12), Stretch(True, 40, 70)], head_tokens=1_500)
@example(run=[Stretch(False, 2_500, 3), Stretch(True, 300, 45)], head_tokens=1_500)
@example(run=[Stretch(False, 6_000, 6, AWAY), Stretch(True, 40, 40)], head_tokens=1_500)
def test_no_run_is_dearer_than_sending_everything_or_twice_the_best_cuts(run: list[Stretch], head_tokens: int) -> None:
    calls, build = played(run, head_tokens), builder()
    paid = [*accumulate(call.price for call in calls)]
    everything = [*accumulate(call.everything_price for call in calls)]
    assert max(ours / whole for ours, whole in zip(paid, everything, strict=True)) <= 1.02

    task_tokens = build.counter.framed(TASK)
    head = calls[0].everything - task_tokens
    best = hindsight(calls, build.budgets, head, task_tokens)
    assert max(ours / least for ours, least in zip(paid, best, strict=True)) <= 2


def test_a_run_that_goes_on_is_cut_and_costs_less_than_half() -> None:
    calls = played([Stretch(True, 900, 120)], 1_500)
    assert sum(call.price for call in calls) < 0.5 * sum(call.everything_price for call in calls)
    assert max(call.sent for call in calls) < 0.3 * calls[-1].everything


def test_a_budget_that_the_caller_states_is_kept_and_no_cut_waits() -> None:
    build = EnvelopeBuilder(tokenizer=CharTokenizer(), window_tokens=400_000, budgets=Budgets(dynamic_tokens=8_000))
    session = memory_store().session("run")
    for number in range(40):
        session.append({"role": "user", "content": words(600, number)})
        envelope = build.build(session)
        assert envelope.section("dynamic").tokens <= 8_000
        session.append({"role": "assistant", "content": "Noted."})
    assert envelope.metrics["compactions"] > 0
