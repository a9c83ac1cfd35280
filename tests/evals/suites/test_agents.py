"""The agents suite: what it makes, and that each figure can fail."""

from __future__ import annotations

from collections.abc import Sequence

from ctxsteward.envelope import Budgets
from ctxsteward.evals.prompt_cost import Sizer
from ctxsteward.evals.subjects import Prompt
from ctxsteward.evals.suites import agents
from ctxsteward.evals.suites.agents import LONG_STEPS, WEIGHTS, kept, resolvable, valid
from ctxsteward.evals.suites.kit.play import BudgetJudge, EndMoment
from ctxsteward.evals.suites.kit.suite import Scores, Setup, drawn
from ctxsteward.schemas.message import Wire

from .doubles import Short, called, dialogue

EN = Short("agents", "docs", 14)


def test_an_orphaned_result_is_invalid_for_both_providers() -> None:
    orphan: list[Wire] = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {"role": "tool", "tool_call_id": "a", "content": "x"},
    ]
    sent = Prompt(messages=orphan, anthropic=lambda: {"messages": orphan})
    moment = called(dialogue({"role": "user", "content": "go"}), [], sent)
    assert values(valid(moment)) == {"valid_openai": 0, "valid_anthropic": 0}


def values(scores: Scores) -> dict[str, float]:
    return {score.metric: score.value for score in scores if score.value is not None}


def budget() -> BudgetJudge:
    return BudgetJudge(Sizer(Setup().counter()))


def test_a_task_that_is_neither_shown_nor_cited_is_seen() -> None:
    said: list[Wire] = [
        {"role": ("user", "assistant")[number % 2], "content": f"word {number} " * 30} for number in range(40)
    ]
    by = dialogue(*said, budgets=Budgets(dynamic_tokens=900), selector=None)
    assert values(kept(called(by, said), budget()))["task_kept"] == 1
    lost = [{"role": "user", "content": "something else that nobody kept"}, *said[1:]]
    assert values(kept(called(by, lost), budget()))["task_kept"] == 0


def test_results_that_are_not_shown_or_not_whole_are_seen() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said: list[Wire] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "whole"},
    ]
    by, other = dialogue(*said), {**said[2], "content": "another"}
    last = called(by, said)

    def resolved(wires: Sequence[Wire]) -> list[float]:
        ended = EndMoment(dialogue=by, wires=wires, last=last, references={})
        return [score.value for score in resolvable(ended) if score.value is not None]

    assert resolved(said) == [1]
    assert resolved([*said[:2], other, other]) == [0, 0]
    for wires, shown in ((said, 1), ([*said[:2], other], 0)):
        assert values(kept(called(by, wires), budget()))["results_shown"] == shown


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
