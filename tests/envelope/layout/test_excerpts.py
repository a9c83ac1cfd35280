"""The excerpt of a long tool result: bounded, of the original's own lines, saying where the whole is."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Budgets, Envelope, Session
from ctxsteward.envelope.layout.composition import excerpted_texts
from ctxsteward.envelope.layout.fragments import DerivedText, excerpt
from ctxsteward.envelope.testing import memory_store
from ctxsteward.envelope.tokens.tokenizer import load_tokenizer

from ...examples import examples
from ..messages import CHARS, char_builder, result, session_of, user

LOG = "\n".join(f"{n:03d} request served" for n in range(100))


def cut(text: str, cap_tokens: int = 300) -> str:
    return excerpt(text, cap_tokens=cap_tokens, ref="§7", tokens=len(text), count=len)


def note(text: str) -> str:
    return f"[… {len(text)} tokens in all, excerpt; §7 resolves to the whole …]"


def test_an_excerpt_is_head_note_and_tail() -> None:
    rows = cut(LOG, 200).split("\n")
    served = [f"{n:03d} request served" for n in (0, 1, 95, 96, 97, 98, 99)]
    assert rows == [*served[:2], note(LOG), *served[2:]]


class Signal(NamedTuple):
    line: str
    why: str


@pytest.mark.parametrize(
    "case",
    [
        Signal("050 ERROR: disk full", "an error"),
        Signal("050 Traceback (most recent call last):", "a trace"),
        Signal("050 permission denied", "a refusal"),
        Signal("050 AssertionError: 3 != 4", "a failed test"),
        Signal("050 connection timed out", "a timeout"),
        Signal("050 连接失败:超时", "Chinese"),
    ],
    ids=lambda case: case.why,
)
def test_a_line_that_looks_decisive_is_shown_from_the_middle(case: Signal) -> None:
    text = LOG.replace("050 request served", case.line)
    rows = cut(text, 300).split("\n")
    assert case.line in rows
    assert rows.index(note(text)) < rows.index(case.line) < len(rows) - 1


@settings(max_examples=examples(300), derandomize=True, database=None)
@given(
    text=st.lists(
        st.sampled_from(("word ", "\n", "error: x\n", "x" * 300, "失败", "§", "\r\n", "\u2028", "🙂")),
        min_size=1,
        max_size=80,
    ).map("".join),
    cap=st.integers(16, 600),
)
def test_an_excerpt_holds_its_cap_and_only_the_original_s_text(text: str, cap: int) -> None:
    made = cut(text, cap)
    line = note(text)
    assert len(made) <= max(cap, len(line) + 14)
    assert made.count(line) == 1
    head, _, rest = made.partition(line)
    for piece in (head, *rest.split("\n")):
        assert piece.strip("\n") in text


def test_a_text_of_no_lines_is_cut_in_its_middle() -> None:
    text = "a" * 500 + "b" * 5_000 + "c" * 500
    head, line, tail = cut(text, 300).split("\n")
    assert (set(head), line, set(tail)) == ({"a"}, note(text), {"c"})


def test_an_excerpt_of_real_tokens_holds_its_cap() -> None:
    tokenizer = load_tokenizer("o200k_base")
    for text in (LOG * 50, "我们决定使用蓝绿发布。" * 2_000, "x" * 50_000, '{"rows": [1, 2, 3]}\n' * 3_000):
        made = excerpt(text, cap_tokens=225, ref="§7", tokens=tokenizer.count(text), count=tokenizer.count)
        assert 110 <= tokenizer.count(made) <= 225


# -- in the window -----------------------------------------------------------------------------------------


def answered(*results: str, **budgets: Any) -> tuple[Session, Envelope]:
    session = memory_store().session("s", counter=CHARS)
    session.append({"role": "user", "content": "look"})
    blocks = [{"type": "tool_use", "id": f"c{n}", "name": "f", "input": {}} for n in range(len(results))]
    session.append({"role": "assistant", "content": blocks})
    session.append(
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": f"c{n}", "content": t} for n, t in enumerate(results)],
        }
    )
    maker = char_builder(Budgets(**budgets))
    return session, maker.build(session)


def shown(envelope: Envelope) -> list[str]:
    return [block["content"] for block in envelope.render("anthropic", cache=False)["messages"][-1]["content"]]


@pytest.mark.parametrize(
    ("chars", "cap", "whole"),
    [
        pytest.param(250, 250, True, id="at the cap: whole"),
        pytest.param(251, 250, False, id="over it: an excerpt on first sight, though nobody has seen it yet"),
        pytest.param(225, None, True, id="the default of 900: a quarter"),
        pytest.param(226, None, False, id="one more"),
    ],
)
def test_a_result_over_the_cap_never_enters_the_window_whole(chars: int, cap: int | None, whole: bool) -> None:
    text = "r" * chars
    session, envelope = answered(text, dynamic_tokens=900, arrival_cap_tokens=cap)
    (content,) = shown(envelope)
    assert (content == text) is whole
    assert len(content) <= (cap or 225)
    assert session.resolve("§3").tool_results[0].text == text
    if not whole:
        assert "§3 resolves to the whole" in content


def test_each_result_of_a_message_has_its_own_reference() -> None:
    texts = ("a" * 300, "b" * 20, "c" * 400)
    session, envelope = answered(*texts, dynamic_tokens=2_000, arrival_cap_tokens=200)
    rows = shown(envelope)
    assert rows[1] == texts[1]
    for n in (0, 2):
        assert f"{len(texts[n])} tokens in all, excerpt; §3.{n + 1} resolves to the whole" in rows[n]
        assert session.resolve(f"§3.{n + 1}").tool_results[0].text == texts[n]


def test_an_excerpt_is_counted_as_it_is_shown() -> None:
    _, whole = answered("r" * 200, dynamic_tokens=2_000, arrival_cap_tokens=200)
    _, cut_down = answered("r" * 5_000, dynamic_tokens=2_000, arrival_cap_tokens=200)
    (text,) = shown(cut_down)
    assert cut_down.dynamic.tokens == whole.dynamic.tokens - 200 + len(text)


def test_what_a_person_writes_is_never_cut_and_what_the_model_wrote_only_where_the_window_is_full() -> None:
    def texts(dynamic_tokens: int) -> list[str]:
        session = memory_store().session("s", counter=CHARS)
        maker = char_builder(Budgets(dynamic_tokens=dynamic_tokens))
        for role in ("user", "assistant", "user"):
            session.append({"role": role, "content": f"{role} " * 200})
        return [message["content"] for message in maker.build(session).render("openai-chat")["messages"]]

    assert texts(9_000) == ["user " * 200, "assistant " * 200, "user " * 200]
    *_, reply, asked = texts(900)
    assert asked == "user " * 200
    assert len(reply) <= Budgets(dynamic_tokens=900).reply_tokens
    head, note, tail = reply.split("\n")
    assert note == "[… 2000 tokens in all, excerpt; §2 resolves to the whole …]"
    assert ("assistant " * 200).startswith(head)
    assert ("assistant " * 200).rstrip().endswith(tail.strip())


@pytest.mark.parametrize("chars", [50, 900, 5_000])
def test_a_result_that_answers_no_call_is_counted_as_it_is_shown(chars: int) -> None:
    """Its fence in round figures."""
    session = session_of(user("hi"), result("nobody", "row " * (chars // 4)), user("and?"))
    envelope = char_builder(Budgets(dynamic_tokens=100_000, arrival_cap_tokens=1_000)).build(session)
    _, aside, _ = envelope.dynamic.strip.fragments
    (step,) = aside.steps
    assert isinstance(step, DerivedText)
    assert len(step.text) < 1_100
    assert abs(aside.tokens - CHARS.framed(step.text)) <= 20


def test_a_recalled_message_of_one_text_has_all_of_its_share_and_of_two_each_half() -> None:
    rows = "row of words\n" * 200
    both = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": rows},
            {"type": "text", "text": rows},
        ],
    }
    session = session_of(user(rows), both)
    (one,), two = (excerpted_texts(session.entry(n), 400, CHARS) for n in (1, 2))
    assert 360 < CHARS.text(one) <= 400
    assert len(two) == 2
    assert all(160 < CHARS.text(text) <= 200 for text in two)
