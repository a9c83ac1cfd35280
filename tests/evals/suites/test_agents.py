"""The agents suite: what it makes, and that each figure can fail."""

from __future__ import annotations

from dataclasses import dataclass

from ctxsteward.envelope import Budgets, EnvelopeBuilder
from ctxsteward.envelope.testing import memory_store
from ctxsteward.evals.replay import ModelCall
from ctxsteward.evals.suites import agents
from ctxsteward.evals.suites.agents import LONG_STEPS, WEIGHTS, kept, resolvable, valid
from ctxsteward.evals.suites.kit.suite import Draw, drawn
from ctxsteward.evals.suites.results import play_one
from ctxsteward.schemas import Wire

from .doubles import Wrong, blank, everything_leaves, never

EN = Draw("agents", "docs", 14)


def test_a_builder_that_drops_anything_turns_task_and_last_turn_red() -> None:
    tallies = play_one(EN, Wrong(choose=everything_leaves, shrink=blank, selector=None)).tallies
    assert tallies["last_turn"].mean < 1
    assert tallies["task_shown"].mean < 1


def test_a_builder_that_never_compacts_is_over_budget_without_a_reason() -> None:
    tallies = play_one(EN, Wrong(due=never, selector=None)).tallies
    assert tallies["over_budget"].mean > 0.5
    assert tallies["within_budget"].mean < 0.5
    assert tallies["over_budget_legitimate"].mean < 0.5
    assert tallies["compactions"].total == 0


@dataclass(frozen=True)
class Rendered:
    """Says what it is told to."""

    messages: list[Wire]

    def render(self, provider: str, cache: bool = True) -> Wire:
        return {"messages": self.messages}


def test_an_orphaned_result_is_invalid_for_both_providers() -> None:
    orphan: list[Wire] = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {"role": "tool", "tool_call_id": "a", "content": "x"},
    ]
    scores = {score.metric: score.value for score in valid(Rendered(orphan), "here")}  # type: ignore[arg-type]
    assert scores == {"valid_openai": 0, "valid_anthropic": 0}


def test_a_task_that_is_neither_shown_nor_cited_is_seen() -> None:
    session = memory_store().session("s")
    said: list[Wire] = []
    for number in range(40):
        wire: Wire = {"role": ("user", "assistant")[number % 2], "content": f"word {number} " * 30}
        session.append(wire)
        said.append(wire)
    session.append(last := {"role": "user", "content": "next"})
    budgets = Budgets(dynamic_tokens=900)
    envelope = EnvelopeBuilder(tokenizer="o200k_base", budgets=budgets, selector=None).build(session)
    lost = 10
    assert lost not in {n for f in envelope.dynamic.fragments for n in f.refs}
    session.state.task = lost
    call = ModelCall(number=1, session=session, envelope=envelope, wires=[*said, last])
    scores = {score.metric: score.value for score in kept(call, "here")}
    assert scores["task_kept"] == 0


def test_results_that_are_not_shown_or_not_whole_are_seen() -> None:
    session = memory_store().session("s")
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said: list[Wire] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "whole"},
    ]
    session.extend(said)
    assert [score.value for score in resolvable(session, said)] == [1]
    other = {**said[2], "content": "another"}
    envelope = EnvelopeBuilder(tokenizer="o200k_base").build(session)
    for wires, shown in ((said, 1), ([*said[:2], other], 0)):
        call_made = ModelCall(number=1, session=session, envelope=envelope, wires=wires)
        assert {s.metric: s.value for s in kept(call_made, "here")}["results_shown"] == shown
    assert [score.value for score in resolvable(session, [*said[:2], other, other])] == [0, 0]


def test_every_kind_of_turn_comes_up() -> None:
    for split in ("docs", "ci"):
        for one in map(agents.make, drawn("agents", split, 3)):
            assert len(set(one.tags) & {*WEIGHTS}) >= len(WEIGHTS) - 2
            assert one.messages[-1]["role"] == "assistant"
            assert one.turns <= one.draw.turns
            assert one.turns >= 50


def test_loops_of_up_to_sixty_steps_images_and_calls_at_once_come_up() -> None:
    longest = calls = images = unanswered = 0
    for draw in drawn("agents", "ci", 6):
        messages = agents.make(draw).messages
        steps = 0
        answered = {m["tool_call_id"] for m in messages if m["role"] == "tool"}
        for message in messages:
            steps = 0 if message["role"] == "user" else steps + bool(message.get("tool_calls"))
            longest = max(longest, steps)
            calls = max(calls, len(message.get("tool_calls", ())))
            images += isinstance(message["content"], list)
            unanswered += sum(call["id"] not in answered for call in message.get("tool_calls", ()))
    assert LONG_STEPS[0] <= longest <= LONG_STEPS[1]
    assert calls >= 4
    assert images >= 6
    assert unanswered >= 6
