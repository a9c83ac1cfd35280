"""The three scenarios of the auto-context design, at their bars."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.cascade_runs import SCENARIOS, RunScenario, play_scenario, scenarios_block
from ctxsteward.envelope import Prices
from ctxsteward.evals.documents import block_of


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_design_s_scenarios_hold_their_bars_and_lose_nothing(scenario: RunScenario) -> None:
    found = play_scenario(scenario)
    cost = found.efficiency

    assert cost.everything_tokens == pytest.approx(scenario.everything_tokens, rel=0.05)
    assert cost.saved >= scenario.saved
    assert play_scenario(scenario, Prices(write=1.0)).efficiency.priced_ratio < 1
    # Where a write costs 1.25, ten retries are 0.9 % dearer: what masking rewrites is not paid back before they end.
    assert cost.priced_ratio < (1.01 if scenario.name.startswith("loop") else 1)
    assert found.cheapest_ratio < cost.priced_ratio
    assert found.read_ratio < cost.priced_ratio
    assert (found.constraints_kept, found.decisions_kept, found.evidence_reachable) == (1, 1, 1)


def test_canaries_are_seen_to_be_lost_where_they_are() -> None:
    """What is looked for is no matter of course: a decision that nobody writes down nor says so leaves the window."""
    scenario = next(one for one in SCENARIOS if one.name.startswith("loop"))
    replies = [{**one, "text": one["text"].replace("decided", "set")} for one in scenario.replies()]
    decisions = [one.replace("decided", "set") for one in scenario.decisions]
    muted = replace(scenario, replies=lambda: replies, decisions=decisions)

    assert play_scenario(muted, scratchpad=False).decisions_kept < 0.5


def test_the_page_on_cost_says_what_the_scenarios_cost_and_could_cost() -> None:
    page = Path(__file__).parents[2] / "docs" / "cost.md"
    assert block_of(page.read_text(encoding="utf-8"), "scenarios").strip().splitlines() == list(scenarios_block())
