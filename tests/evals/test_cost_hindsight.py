"""The dynamic program against trying every schedule, and against the judge's own prices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import given, settings, strategies as st

from ctxsteward.envelope.testing import CharTokenizer
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.envelope.transcripts.files import parse_transcripts
from ctxsteward.evals.cost import (
    cheapest,
    cheapest_boundaries,
    sizes_of,
)
from ctxsteward.evals.prompt_cost import PricedPrompt, Prices, PromptJudge, Sizer
from ctxsteward.evals.replay import MaskedRun, masking_of, read_run

from ..examples import examples

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
    for at, prompt in enumerate(best):
        tokens = sum(piece.tokens for piece in prompt.pieces)
        all_masked = masking.prompt(at, max(furthest(at), masking.eligible(at)))
        assert tokens <= budget_tokens or tokens == sum(piece.tokens for piece in all_masked)
