"""The demo holds what it claims, prints only what it computed, and finds out when a claim is not so."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.console.commands import demo as story
from ctxsteward.console.commands.demo_windows import (
    CLEARED,
    KEPT_MESSAGES,
    KEPT_RESULTS,
    SUMMARY_TOKENS,
    WindowRow,
    clear,
    summarize,
)
from ctxsteward.envelope import open_store
from ctxsteward.envelope.testing import FirstLine

KEYS = [
    "session",
    "messages",
    "calls",
    "compactions",
    "losses",
    "full_history_tokens",
    "sent_tokens",
    "full_history_priced_tokens",
    "sent_priced_tokens",
    "window_tokens",
    "window_priced_tokens",
    "dollars",
    "over_budget_calls",
    "openai_valid_calls",
    "anthropic_valid_calls",
    "refs_resolved",
    "build_ms_p50",
    "build_ms_p95",
    "last_envelope",
    "checks",
    "passed",
]


def demo(*args: str) -> dict[str, Any]:
    result = CliRunner().invoke(cli, ["demo", "--json", *args])
    assert result.exit_code == 0, result.output
    summary: dict[str, Any] = json.loads(result.stdout)
    return summary


class Told(NamedTuple):
    """What a demo told, the store that it was played in, and how long that took."""

    summary: dict[str, Any]
    store: str
    seconds: float


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    store, started = f"file:{tmp_path_factory.mktemp('demo')}", time.monotonic()
    return Told(demo("--store", store), store, time.monotonic() - started)


@pytest.fixture(scope="module")
def screen() -> str:
    """What a terminal of 80 columns shows."""
    result = CliRunner(env={"COLUMNS": "80"}).invoke(cli, ["demo", "--store", "memory:"])
    assert result.exit_code == 0
    return result.stdout


def test_every_claim_holds_and_the_demo_is_quick(told: Told) -> None:
    summary = told.summary
    assert told.seconds < 20
    assert list(summary) == KEYS
    assert [check for check in summary["checks"] if not check["passed"]] == []
    assert summary["openai_valid_calls"] == summary["anthropic_valid_calls"] == summary["calls"]
    assert summary["refs_resolved"] == summary["messages"]
    assert summary["over_budget_calls"] == 0
    assert summary["sent_tokens"] < summary["full_history_tokens"] / 2
    assert summary["sent_priced_tokens"] < summary["full_history_priced_tokens"] * 0.8


def test_the_window_it_is_compared_with_is_the_newest_that_fits(told: Told) -> None:
    """Said once more, from the file alone: sums by a second way to the same windows."""
    shipped, builder = story.load_shipped(), story.make_builder()
    with open_store("memory:") as store:
        run, session = story.replay_shipped(shipped, builder, store, "default", lambda *_: None)
        entries = list(session.entries(1))
    assert run.asked is not None
    head = run.asked.tokens - run.asked.section("dynamic").tokens
    sent = 0
    for call, entry in enumerate(entries):
        if entry.message.role != "assistant":
            continue
        tokens = [one.tokens(builder.counter) for one in entries[:call]]
        step = max(at for at in range(call) if entries[at].message.role != "tool")
        fits = [at for at in range(step) if sum(tokens[at:]) <= story.DYNAMIC_TOKENS]
        start = next((at for at in fits if entries[at].message.role != "tool"), step)
        sent += head + sum(tokens[start:])
        if call == story.ASKED_AT:
            asked = run.asked_windows[0]
            assert (call - start, head + sum(tokens[start:])) == (len(asked.rows), asked.prompt_tokens)
            assert asked.text.startswith(f"{entries[start].ref} ")
    assert run.windows[0].sent_tokens == sent == told.summary["window_tokens"]
    assert sent < told.summary["full_history_tokens"]


def test_money_comes_first_and_ours_costs_least_of_those_that_hold_the_answer(told: Told, screen: str) -> None:
    dollars = told.summary["dollars"]
    assert list(dollars) == ["whole history", "sliding window", "summary", "tool results cleared", "ctxsteward"]
    assert min(dollars, key=dollars.get) == "ctxsteward"
    assert max(dollars, key=dollars.get) == "whole history"
    first = screen.partition("2  One question")[0]
    rows = {line.split("  ")[1].strip(): line.split()[-1] for line in first.splitlines() if "$" in line}
    assert {name: answer for name, answer in rows.items() if name} == {
        "whole history": "yes",
        "sliding window": "no",
        "summary": "no",
        "tool results cleared": "yes",
        "ctxsteward": "yes",
    }


ROWS = [
    WindowRow(f"§{at}", role, f"Message {at} is here. And it goes on.", 100)
    for at, role in enumerate(("user", "assistant", "tool", "tool", "assistant") * 6, 1)
]
COUNTER = story.make_builder().counter


def test_a_summary_takes_the_place_of_all_but_the_newest_messages() -> None:
    rows, shown = summarize(ROWS, 2_000, COUNTER)
    summary, *kept = rows
    assert [row.key for row in kept] == [row.key for row in ROWS[-len(kept) :]]
    assert kept[0].role != "tool"
    assert len(kept) >= KEPT_MESSAGES
    assert summary.text.splitlines()[1] == "- Message 1 is here."
    assert summary.tokens <= SUMMARY_TOKENS + 20
    assert shown == 100 * (len(ROWS) - len(kept))
    assert summarize(ROWS[:10], 2_000, COUNTER) == (ROWS[:10], 0)


def test_a_second_summary_goes_on_from_the_first() -> None:
    first, _ = summarize(ROWS, 2_000, COUNTER)
    again, _ = summarize([*first, *ROWS], 2_000, COUNTER)
    assert "- Message 1 is here." in again[0].text
    assert "- Message 11 is here." in again[0].text


def test_clearing_keeps_texts_and_the_newest_results() -> None:
    rows, shown = clear(ROWS, 2_000, COUNTER)
    assert shown == 0
    assert [row.text for row in rows if row.role != "tool"] == [row.text for row in ROWS if row.role != "tool"]
    results = [row.text == CLEARED for row in rows if row.role == "tool"]
    assert results == [True] * (len(results) - KEPT_RESULTS) + [False] * KEPT_RESULTS
    assert clear(rows, 100, COUNTER).rows == rows
    assert clear(ROWS, 3_000, COUNTER).rows == ROWS


def test_a_window_that_holds_the_answer_as_well_is_found_out() -> None:
    shipped, builder = story.load_shipped(), story.make_builder()
    roomy = type(builder)(model=story.MODEL, budgets=builder.budgets.model_copy(update={"dynamic_tokens": 20_000}))
    with open_store("memory:") as store:
        run, _ = story.replay_shipped(shipped, roomy, store, "default", lambda *_: None)
    story.check_answer(run)
    assert [check.passed for check in run.checks] == [False]


def test_its_figures_are_those_of_replay(told: Told) -> None:
    shipped = Path(story.__file__).parent.with_name("data")
    replayed = CliRunner().invoke(
        cli,
        [
            "replay",
            str(shipped / "demo.jsonl"),
            "--profile",
            str(shipped / "demo-profile.yaml"),
            "--json",
            "--budget",
            f"dynamic_tokens={story.DYNAMIC_TOKENS}",
            "--store",
            told.store,
        ],
    )
    calls = [json.loads(line) for line in replayed.stdout.splitlines()]
    assert told.summary["session"] == "demo"
    assert {call["transcript"] for call in calls} == {"demo@2"}
    assert told.summary["calls"] == len(calls)
    assert told.summary["compactions"] == sum(len(call["report_ids"]) for call in calls)
    assert told.summary["sent_tokens"] == pytest.approx(sum(call["prompt_tokens"] for call in calls), rel=0.01)


def test_the_story_fits_the_terminal_without_colour(screen: str) -> None:
    assert "\x1b" not in screen
    assert max(map(len, screen.splitlines())) <= 80
    for word in (
        "A day of 129 calls of gpt-4o",
        "One question, two prompts",
        "nothing",
        "40 of 250",
        "250 of 250",
        "What comes in",
        "Compactions, as they happened",
        "Change of plan: retry budget is 2, not 5.",
        "identical",
        "byte for byte the same",
        "whole history",
        "build, p50 / p95",
    ):
        assert word in screen
    assert "✗" not in screen


def test_a_window_without_the_rule_is_found_out() -> None:
    """A summarizer that knows no rules loses the one of the morning."""
    shipped, builder = story.load_shipped(), story.make_builder()
    budgets = builder.budgets.model_copy(update={"recall_fraction": 0.0})  # nor is it found again
    careless = type(builder)(model=story.MODEL, budgets=budgets, summarizer=FirstLine())
    with open_store("memory:") as store:
        run, _ = story.replay_shipped(shipped, careless, store, "default", lambda *_: None)
        story.check_window(run)
    assert not all(check.passed for check in run.checks)
