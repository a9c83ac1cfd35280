"""What a question names by number is recalled before anything that a ranking likes."""

from __future__ import annotations

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Session
from ctxsteward.envelope.named import MAX_NAMED, named, outputs_named
from ctxsteward.envelope.testing import FirstLine, memory_store
from ctxsteward.schemas import Wire


def said(outputs: int) -> Session:
    """A question, a tool output ("reading 1: …"), an answer, again and again; every fifth time two outputs at once."""
    session = memory_store().session("s")
    number = 0
    while number < outputs:
        count = 2 if number % 5 == 3 else 1
        ids = [f"c{number + at}" for at in range(count)]
        calls = [{"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}} for id in ids]
        wires: list[Wire] = [{"role": "user", "content": f"next, please, after {number} " + "word " * 30}]
        wires.append({"role": "assistant", "content": None, "tool_calls": calls})
        for id in ids:
            number += 1
            wires.append(
                {"role": "tool", "tool_call_id": id, "content": f"reading {number}: {number * 37 % 101} units"}
            )
        session.extend([*wires, {"role": "assistant", "content": f"Noted up to {number}. " + "word " * 30}])
    return session


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("引用第 3 条工具输出", [3]),
        ("第十二次工具调用的结果是什么？", [12]),
        ("工具输出 7 说了什么", [7]),
        ("Quote the third tool output.", [3]),
        ("what did the 21st tool call return, and tool result #4?", [21, 4]),
        ("the tool's answer number 9", [9]),
        ("Which tools are there? I have 3 tools.", []),
        ("the third answer", []),
        ("第三个问题", []),
    ],
)
def test_tool_outputs_are_named_in_two_languages(text: str, numbers: list[int]) -> None:
    assert outputs_named(text) == numbers


def test_the_nth_output_is_found_wherever_it_stands() -> None:
    session = said(23)
    for number in range(1, 24):
        (ordinal,) = named(f"tool output {number}", len(session), session.shown)
        assert session.entry(ordinal).message.tool_results[0].text == session.tool_output(number).tool_results[0].text
    assert named("tool output 24, tool output 0", len(session), session.shown) == []


def test_references_and_ranges_are_named_up_to_the_newest_message() -> None:
    session = said(2)
    last = len(session)
    assert named("compare §2 with §1", last, session.shown) == [2, 1]
    assert named(f"§{last - 1} to §{last + 5}", last, session.shown) == [last - 1, last]
    assert named("§0, §999999999", last, session.shown) == []
    assert len(named("§1-§900", 900, session.shown)) == MAX_NAMED


@pytest.mark.parametrize("question", ["Quote the third tool output.", "引用第 3 条工具输出", "What does §9 say?"])
def test_the_envelope_for_a_question_shows_what_it_names(question: str) -> None:
    session = said(60)
    builder = EnvelopeBuilder(
        tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=900), summarizer=FirstLine(), selector=lambda request: ()
    )
    builder.build(session)
    wanted = session.tool_output(3).tool_results[0].text if "§" not in question else session.resolve(9).text
    context = builder.preview(session, question).dynamic.context
    assert context is not None
    assert wanted in context.text
    other = builder.preview(session, "And now?").dynamic.context
    assert other is None or wanted not in other.text
