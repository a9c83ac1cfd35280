"""Masking baselines of the cost benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from benchmarks.agent_costs import EVERYTHING, OURS, measure, missed_bars
from benchmarks.masking import (
    MASK,
    MaskedRun,
    every_step,
    every_ten_steps,
    masking_of,
    random_steps_out,
    strategies,
    window_of_five,
)
from ctxsteward.envelope import EnvelopeBuilder
from ctxsteward.envelope.transcripts.files import parse_transcripts
from ctxsteward.evals.prompt_cost import PricedPrompt, Prices, openai_faults
from ctxsteward.evals.replay import everything, files_of, read_run

from ..needs import PUBLIC_DATA
from .test_agent_costs import SIZER, TASK, agent_run, booking, builder, run_of

DATA = Path(__file__).parents[2] / "../shared/data"


def masking(steps: int, result_chars: int = 200) -> MaskedRun:
    return masking_of(run_of(agent_run(steps, result_chars)), SIZER)


def shown_results(prompt: PricedPrompt) -> str:
    """A letter a tool result: W whole, m masked."""
    return "".join("m" if p.text == MASK else "W" for p in prompt.pieces if p.wire["role"] == "tool")


# -- schedules -------------------------------------------------------------------------------------------------------

SCHEDULES = [
    pytest.param(
        every_step, 8, ["", *("W" * n for n in range(1, 6)), "mWWWWW", "mmWWWWW", "mmmWWWWW"], id="each step, 5 kept"
    ),
    pytest.param(
        every_ten_steps,
        12,
        [*("W" * n for n in range(10)), "m" * 5 + "W" * 5, "m" * 5 + "W" * 6, "m" * 5 + "W" * 7],
        id="each tenth",
    ),
    pytest.param(window_of_five, 7, ["W" * min(n, 5) for n in range(8)], id="the newest five"),
]


@pytest.mark.parametrize(("schedule", "steps", "expected"), SCHEDULES)
def test_a_schedule_masks_what_it_says(schedule: Any, steps: int, expected: list[str]) -> None:
    assert [shown_results(prompt) for prompt in schedule(masking(steps))] == expected


def test_a_result_that_is_shorter_than_its_mask_stays() -> None:
    assert masking(9, result_chars=10).maskable == ()


def test_a_window_drops_the_task_and_masking_keeps_it() -> None:
    made = masking(7)
    for prompts, kept in ((every_step(made), True), (window_of_five(made), False)):
        assert any(TASK in piece.text for piece in prompts[-1].pieces) is kept


def test_a_prompt_without_a_used_value_has_hidden_it() -> None:
    run = run_of(booking())
    sent = {EVERYTHING: everything, **strategies(SIZER)}
    rows = {name: run.bill(give(run), SIZER, Prices(), budget_tokens=4000) for name, give in sent.items()}
    shown = {name: (bill.values_shown, bill.values_used) for name, bill in rows.items()}
    assert shown[EVERYTHING] == (2, 2)
    assert shown["mask every step"] == (2, 2)
    # masked one step after the result, and shown again by the model's own call; that is too late for the call itself
    assert shown["mask every step, keep 1"] == (1, 2)


# -- random steps left out --------------------------------------------------------------------------------------------


def tokens_of(prompt: PricedPrompt) -> int:
    return sum(piece.tokens for piece in prompt.pieces)


@given(steps=st.integers(1, 12), chars=st.integers(1, 400), budget=st.sampled_from((300, 900, 4000)))
def test_random_steps_leave_the_task_and_the_newest_step_and_stay_out(steps: int, chars: int, budget: int) -> None:
    (transcript,) = parse_transcripts(json.dumps(agent_run(steps, chars)))
    run = read_run(transcript, {OURS: builder(dynamic_tokens=budget)}, SIZER)
    prompts = random_steps_out(masking_of(run, SIZER))
    before: frozenset[str] = frozenset()
    for call, (prompt, ours) in enumerate(zip(prompts, run.ours[OURS], strict=True)):
        everything = (*run.system, *run.messages[: run.seen[call]])
        keys = [piece.key for piece in prompt.pieces]
        out = frozenset(piece.key for piece in everything) - set(keys)
        newest = [piece.key for piece in everything[-2 if call else -1 :]]
        closed = len(everything) - len(run.system) - 1 - (2 if call else 0)
        assert keys[-len(newest) :] == newest
        assert any(TASK in piece.text for piece in prompt.pieces)
        assert before <= out
        assert tokens_of(prompt) <= tokens_of(ours) or len(out) == closed
        assert not openai_faults({"messages": [piece.wire for piece in prompt.pieces]})
        before = out
    assert prompts == random_steps_out(masking_of(run, SIZER))


@pytest.mark.soak
@pytest.mark.skipif(not (DATA / "swe_agent").is_dir(), reason=PUBLIC_DATA)
def test_on_real_runs_masking_every_step_saves_raw_tokens_and_costs_more() -> None:
    rows = measure(files_of([DATA / "swe_agent"])[::2], {OURS: EnvelopeBuilder(model="gpt-4o")}, baselines=strategies)
    by_name = {found.strategy: found for found in rows}
    masked, window = by_name["mask every step"], by_name["window of 5 steps"]
    assert masked.raw_ratio < 0.9 < 1.5 < masked.priced_ratio
    assert window.raw_ratio < 0.8 < 1.5 < window.priced_ratio
    assert window.task_shown < 0.5
    assert missed_bars(rows) == []
