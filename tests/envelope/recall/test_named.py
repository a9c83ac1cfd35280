"""What a question names by number is recalled before anything that a ranking likes."""

from __future__ import annotations

import pytest

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Session, rebuild
from ctxsteward.envelope.layout.rows import rows_of, unfenced
from ctxsteward.envelope.recall.heuristic import Heuristic
from ctxsteward.envelope.recall.room import MAX_NAMED, named, outputs_named
from ctxsteward.envelope.testing import FirstLine, memory_store
from ctxsteward.schemas.message import Wire

from ..messages import CHARS, char_builder


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
        ("第３条工具输出", [3]),
        ("引用第3、4条工具输出，还有第 6 到 8 条工具输出", [3, 4, 6, 7, 8]),
        ("the 3rd and 4th tool outputs", [3, 4]),
        ("tool outputs 2, 5 and 7-9", [2, 5, 7, 8, 9]),
        ("the eleventh output of the tool; read tool:3", [11, 3]),
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
    assert builder.preview(session, "And now?").dynamic.context is None


# -- however long it is ----------------------------------------------------------------------------------------------


def read_out(rows: int, outputs: int = 11) -> Session:
    """Tool outputs of up to four times so many rows, each in a turn of its own."""
    session = memory_store().session("s")
    for number in range(1, outputs + 1):
        called = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        text = "\n".join(f"row {row} of {number}: {row * 37 % 101} units" for row in range(rows * (1 + number % 4)))
        session.append({"role": "user", "content": f"next, please, {number} " + "word " * 20})
        session.append({"role": "assistant", "content": None, "tool_calls": [called]})
        session.append({"role": "tool", "tool_call_id": f"c{number}", "content": f"OUTPUT {number}\n{text}"})
        session.append({"role": "assistant", "content": f"Noted {number}. " + "word " * 20})
    return session


def shows(envelope: Envelope, session: Session, number: int) -> str:
    """How an envelope shows a tool output."""
    whole, place = session.tool_output(number).tool_results[0].text, 4 * number - 1
    dynamic = envelope.dynamic
    recalled = rows_of(unfenced(envelope.nonce, dynamic.context.text).text) if dynamic.context else []
    texts = [*recalled, envelope.section("dynamic").text]
    told = [finding.ref for finding in envelope.findings if finding.kind == "named_excerpted"]
    if any(whole in text for text in texts):
        return "whole" if not told else "whole, with a finding"
    cut = any(f"OUTPUT {number}\n" in text and f"; §{place} resolves to the whole" in text for text in texts)
    return "excerpt" if cut and told == [f"§{place}"] else "not, or without a word"


def building(dynamic_tokens: int) -> EnvelopeBuilder:
    budgets = Budgets(dynamic_tokens=dynamic_tokens)
    return EnvelopeBuilder(tokenizer="o200k_base", budgets=budgets, summarizer=FirstLine())


@pytest.mark.parametrize(("rows", "dynamic_tokens"), [(3, 400), (30, 400), (30, 900), (30, 4_000), (300, 900)])
def test_every_output_that_a_question_names_is_shown_whole_or_as_an_excerpt_with_its_reference(
    rows: int, dynamic_tokens: int
) -> None:
    session, builder = read_out(rows), building(dynamic_tokens)
    builder.build(session)
    for number in range(1, 12):
        envelope = builder.preview(session, f"引用第 {number} 条工具输出")
        assert shows(envelope, session, number) in ("whole", "excerpt")
        assert envelope.section("dynamic").overflow_tokens == 0


def test_an_output_stays_shown_through_its_turns_tool_loop_whatever_is_compacted_meanwhile() -> None:
    session, builder = read_out(30), building(900)
    builder.build(session)
    session.append({"role": "user", "content": "Quote the 11th tool output beside what the tools say now."})
    seen = []
    for step in range(8):
        seen.append(shows(builder.build(session), session, 11))
        called = {"id": f"d{step}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        session.append({"role": "assistant", "content": None, "tool_calls": [called]})
        session.append({"role": "tool", "tool_call_id": f"d{step}", "content": "now " + "thing " * 150})
    assert set(seen) <= {"whole", "excerpt"}


def test_an_envelope_with_an_excerpt_is_rebuilt_byte_for_byte() -> None:
    store, builder = memory_store(), building(900)
    session = store.session("s")
    session.extend(entry.message for entry in read_out(30).entries())
    session.append({"role": "user", "content": "tool output 3, please"})
    envelope = builder.build(session)
    assert session.state.selection is not None
    assert session.state.selection.excerpts != {}
    assert rebuild(store, envelope.address).document() == envelope.document()
    again = store.session("s")
    assert again.state.selection == session.state.selection


def test_of_two_outputs_in_one_message_each_is_cut_with_its_own_reference() -> None:
    session = memory_store().session("s")
    session.append({"role": "user", "content": "read both"})
    uses = [{"type": "tool_use", "id": f"t{n}", "name": "read", "input": {}} for n in (1, 2)]
    session.append({"role": "assistant", "content": uses})
    results = [
        {"type": "tool_result", "tool_use_id": f"t{n}", "content": f"OUTPUT {n}\n" + "row\n" * 900} for n in (1, 2)
    ]
    session.append({"role": "user", "content": results})
    session.append({"role": "assistant", "content": "Noted."})
    session.extend({"role": ("user", "assistant")[n % 2], "content": f"{n} " + "word " * 60} for n in range(20))
    builder = building(900)
    builder.build(session)
    text = builder.preview(session, "what did the 2nd tool output say?").section("dynamic").text
    assert "§3.1 resolves to the whole" in text
    assert "OUTPUT 2\n" in text
    assert "§3.2 resolves to the whole" in text


def test_a_question_that_names_more_than_fits_stays_within_the_budget() -> None:
    budgets = Budgets(dynamic_tokens=1_000, recall_fraction=0.4)
    session = memory_store().session("s", counter=CHARS)
    maker = char_builder(budgets, selector=Heuristic(every_turn=True))
    for n in range(30):
        session.append({"role": "user", "content": f"order {n}: " + "so it was and so it is " * 12})
        session.append({"role": "assistant", "content": f"noted {n}"})
        maker.build(session)
    session.append({"role": "user", "content": "Compare " + ", ".join(f"§{2 * n + 1}" for n in range(12))})
    envelope = maker.build(session)
    assert envelope.dynamic.context is not None
    assert envelope.dynamic.tokens <= budgets.dynamic_tokens
