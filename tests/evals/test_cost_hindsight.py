"""The dynamic program against trying every schedule, and against the judge's own prices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Budgets, EnvelopeBuilder
from ctxsteward.envelope.testing import CharTokenizer
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.envelope.transcripts.files import parse_transcripts
from ctxsteward.evals.cost import (
    HINDSIGHT_IN_BUDGET,
    OURS,
    SKI_RENTAL_IN_BUDGET,
    ScheduleSizes,
    by_ski_rental,
    cheapest,
    cheapest_boundaries,
    measure,
    policy_builders,
    sizes_of,
    ski_rental_boundaries,
)
from ctxsteward.evals.prompt_cost import PricedPrompt, Prices, PromptJudge, Sizer
from ctxsteward.evals.replay import MaskedRun, files_of, masking_of, read_run

from ..examples import drawn, examples
from ..needs import PUBLIC_DATA

SIZER = Sizer(Counter(CharTokenizer()))


def bill(masking: MaskedRun, prompts: list[PricedPrompt], prices: Prices) -> float:
    """What the judge says a schedule costs."""
    judge = PromptJudge(sizer=SIZER, prices=prices, budget_tokens=1, task="", tools_tokens=masking.run.tools_tokens)
    for prompt in prompts:
        judge.read(prompt)
    return judge.bill.priced


def schedules(eligible: list[int], least: int = 0) -> Iterator[list[int]]:
    """Every sequence of boundaries that never moves back."""
    if not eligible:
        yield []
        return
    for boundary in range(least, eligible[0] + 1):
        for rest in schedules(eligible[1:], boundary):
            yield [boundary, *rest]


@st.composite
def runs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Small agent runs: steps of no, one or two results of any size, user messages here and there."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "do it"}]
    for n in range(draw(st.integers(1, 6))):
        sizes = draw(st.lists(st.integers(0, 120), max_size=2))
        calls = [
            {"id": f"c{n}-{i}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            for i in range(len(sizes))
        ]
        messages.append({"role": "assistant", "content": f"step {n}", **({"tool_calls": calls} if calls else {})})
        # results that begin like the mask share its first characters, so the prefix ends inside the message
        messages += [
            {
                "role": "tool",
                "tool_call_id": call["id"],
                "content": draw(st.sampled_from(("[tool res", "other "))) + "x" * size,
            }
            for call, size in zip(calls, sizes, strict=True)
        ]
        if draw(st.booleans()):
            messages.append({"role": "user", "content": "go on"})
    return [*messages, {"role": "assistant", "content": "done"}]


PRICES = st.builds(
    Prices,
    cached=st.sampled_from((0.0, 0.1, 0.5, 1.0)),
    write=st.sampled_from((1.0, 1.25)),
    block_tokens=st.sampled_from((0, 40, 200, 10_000)),
)


@settings(max_examples=examples(150), deadline=None)
@given(messages=runs(), prices=PRICES, kept_steps=st.integers(1, 3))
def test_no_schedule_costs_less(messages: list[dict[str, Any]], prices: Prices, kept_steps: int) -> None:
    (transcript,) = parse_transcripts(json.dumps(messages))
    masking = replace(masking_of(read_run(transcript, {}, SIZER), SIZER), kept_steps=kept_steps)
    eligible = list(sizes_of(masking, SIZER).eligible)
    least = min(bill(masking, masking.prompts(one), prices) for one in schedules(eligible))
    assert abs(bill(masking, cheapest(masking, SIZER, prices), prices) - least) < 1e-6


@settings(max_examples=examples(50), deadline=None)
@given(messages=runs(), prices=PRICES)
def test_the_boundary_never_moves_back_and_never_beyond_what_may_be_masked(
    messages: list[dict[str, Any]], prices: Prices
) -> None:
    (transcript,) = parse_transcripts(json.dumps(messages))
    sizes = sizes_of(masking_of(read_run(transcript, {}, SIZER), SIZER), SIZER)
    boundaries = cheapest_boundaries(sizes, prices)
    assert boundaries == sorted(boundaries)
    assert all(found <= most for found, most in zip(boundaries, sizes.eligible, strict=True))


@settings(max_examples=examples(100), deadline=None)
@given(messages=runs(), prices=PRICES, kept_steps=st.integers(1, 3), budget_tokens=st.integers(50, 900))
def test_in_a_budget_no_schedule_that_stays_in_it_costs_less(
    messages: list[dict[str, Any]], prices: Prices, kept_steps: int, budget_tokens: int
) -> None:
    (transcript,) = parse_transcripts(json.dumps(messages))
    masking = replace(masking_of(read_run(transcript, {}, SIZER), SIZER), kept_steps=kept_steps)
    sizes = sizes_of(masking, SIZER, budget_tokens)
    allowed = [
        one for one in schedules(list(sizes.eligible)) if all(b >= k for b, k in zip(one, sizes.least, strict=True))
    ]
    least = min(bill(masking, masking.prompts(one), prices) for one in allowed)
    best = cheapest(masking, SIZER, prices, budget_tokens)
    assert abs(bill(masking, best, prices) - least) < 1e-6
    furthest = replace(masking, kept_steps=1).eligible
    for call, schedule in enumerate((best, by_ski_rental(masking, SIZER, prices, budget_tokens))):
        for at, prompt in enumerate(schedule):
            tokens = sum(piece.tokens for piece in prompt.pieces)
            all_masked = masking.prompt(at, max(furthest(at), masking.eligible(at)))
            assert tokens <= budget_tokens or tokens == sum(piece.tokens for piece in all_masked), call


def priced(sizes: ScheduleSizes, boundaries: list[int], prices: Prices) -> float:
    """What prompts of these sizes cost."""
    total, off = 0.0, sizes.masked_off
    for call, (before, now) in enumerate(zip((0, *boundaries), boundaries, strict=False)):
        cached = sizes.whole[call - 1] - off[before] if call else 0
        total += prices.of(sizes.whole[call] - off[now], cached if now == before else min(cached, sizes.kept[before]))
    return total


TOKENS = st.one_of(st.integers(1, 60), st.integers(1, 2_000), st.integers(1, 30_000))


@settings(max_examples=examples(500), deadline=None)
@given(
    steps=st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=24),
    head=st.integers(0, 5_000),
    kept_steps=st.integers(1, 4),
    prices=st.builds(
        Prices,
        cached=st.sampled_from((0.0, 0.05, 0.1, 0.25, 0.5)),
        write=st.sampled_from((1.0, 1.25)),
        block_tokens=st.just(0),
    ),
)
def test_ski_rental_costs_at_most_twice_the_best_known_in_hindsight(
    steps: list[tuple[int, int]], head: int, kept_steps: int, prices: Prices
) -> None:
    """A step is a call and its result, in tokens; a masked result has ten."""
    whole, places, off = [head + 20], list[int](), [0]
    for call_tokens, result_tokens in steps:
        places.append(whole[-1] + call_tokens)
        whole.append(places[-1] + result_tokens)
        off.append(off[-1] + max(0, result_tokens - 10))
    sizes = ScheduleSizes(
        whole=tuple(whole),
        masked_off=tuple(off),
        kept=tuple(p - o for p, o in zip(places, off, strict=False)),
        eligible=tuple(max(0, call - kept_steps) for call in range(len(whole))),
    )
    best = priced(sizes, cheapest_boundaries(sizes, prices), prices)
    assert priced(sizes, ski_rental_boundaries(sizes, prices), prices) <= 2 * best


DATA = Path(__file__).parents[2] / "../shared/data"


@pytest.mark.soak
@pytest.mark.parametrize("dynamic_tokens", drawn([4_000, 16_000], 1, "cost in hindsight"))
@pytest.mark.skipif(not (DATA / "swe_agent").is_dir(), reason=PUBLIC_DATA)
def test_on_real_runs_ski_rental_costs_no_more_than_a_twentieth_over_its_best(dynamic_tokens: int) -> None:
    ours = EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=dynamic_tokens))
    policies = policy_builders(ours, Prices())
    name = next(name for name in policies if name.endswith("ski_rental"))
    paths = files_of([DATA / "swe_agent", DATA / "tau_bench_airline"])
    rows = {row.strategy: row for row in measure(paths, {OURS: ours, name: policies[name]}) if row.runs_of == "all"}
    assert rows[SKI_RENTAL_IN_BUDGET].budget_ratio <= 1.05
    assert rows[name].budget_ratio <= 1.05
    assert rows[HINDSIGHT_IN_BUDGET].budget_ratio == 1
    assert rows[name].invalid == 0
    assert (rows[name].values_shown or 0) >= 0.97
