"""What was said, found again in a window: as a plain search over all of it does, at a cost that does not grow."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given, strategies as st

from ctxsteward.evals.subjects import Conversation, Prompt
from ctxsteward.evals.suites.kit import Scenario
from ctxsteward.evals.suites.kit.play import CallMoment, play
from ctxsteward.evals.suites.kit.said_texts import ELIDED, QUOTE_CHARS, SaidTexts, stands_alone, texts_of
from ctxsteward.evals.suites.kit.suite import Draw, PlayCounts, Setup
from ctxsteward.schemas.message import Wire

from ..subjects.talks import FunctionSubject

PIECES = st.lists(st.sampled_from(["ab" * 10, "ba" * 12, "x", ELIDED, "ab" * 20 + ELIDED, "\n"]), max_size=8)
WORDS = st.text(st.sampled_from("§1a-_ .中²"), max_size=6)


def user(text: str) -> Wire:
    return {"role": "user", "content": text}


@given(st.lists(PIECES.map("".join), max_size=6), PIECES.map("".join))
def test_what_was_said_is_taken_out_as_a_search_for_each_text_does(said: list[str], text: str) -> None:
    texts = SaidTexts()
    for stop in range(len(said) + 1):
        texts.read([user(each) for each in said[:stop]])
    wanted = text
    for quote in sorted((each for each in {*said} if len(each) >= QUOTE_CHARS), key=lambda each: (-len(each), each)):
        wanted = wanted.replace(quote, ELIDED)
    assert (texts.texts, texts.taken_out_of(text)) == ({*said}, wanted)


@given(WORDS.filter(bool), WORDS)
def test_a_reference_stands_alone_where_no_word_goes_on_beside_it(reference: str, text: str) -> None:
    wanted = re.search(rf"(?<![\w-]){re.escape(reference)}(?![\w-])", text) is not None
    assert stands_alone(reference, text) is wanted


class CountedWire(dict[str, Any]):
    """A message that counts how often its content was looked up."""

    looks = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.looks += key == "content"
        return super().get(key, default)


def test_a_conversation_is_read_once_however_many_calls_look_for_it() -> None:
    wires = [
        CountedWire(role=("user", "assistant")[n % 2], content=f"number {n} of many, and long enough to be known again")
        for n in range(60)
    ]
    texts = SaidTexts()
    for stop in range(1, 61):
        texts.read(wires[:stop])
        assert texts.quotes(f"> {wires[0]['content']}") == {wires[0]["content"]}, "not one lookup a text said"
    assert {wire.looks for wire in wires} == {1}


def citing(conversation: Conversation) -> Prompt:
    """Cites the first message, and quotes it."""

    note = {"role": "user", "content": f"As in §1: {conversation.messages[0]['content']}"}
    return Prompt(messages=[note, conversation.messages[-1]], references={"§1": 1, "§2": 2})


def test_play_hands_all_its_moments_the_same_texts() -> None:
    messages = tuple(
        {"role": ("user", "assistant")[n % 2], "content": f"message {n} " + "x" * QUOTE_CHARS} for n in range(8)
    )
    scenario = Scenario(draw=Draw("made", "docs", 0), messages=messages)
    setup = Setup(subject=FunctionSubject("citing", citing))
    calls = [moment for moment in play(scenario, setup, PlayCounts()) if isinstance(moment, CallMoment)]
    assert len({id(call.said_texts) for call in calls}) == 1
    assert [(call.added, call.references) for call in calls] == [(f"As in §1: {ELIDED}", {1: "§1"})] * 4
    assert calls[-1].said_texts.texts == {"\n".join(texts_of(wire)) for wire in messages[:-1]}, (
        "the last message follows no call"
    )
