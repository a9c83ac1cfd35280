"""What was said, found again in a window: as a plain search over all of it does, at a cost that does not grow."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from ctxsteward.evals.subjects import Conversation, Prompt
from ctxsteward.evals.suites.kit.said_texts import ELIDED, QUOTE_CHARS, SaidTexts, stands_alone
from ctxsteward.schemas.message import Wire

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


def citing(conversation: Conversation) -> Prompt:
    """Cites the first message, and quotes it."""

    note = {"role": "user", "content": f"As in §1: {conversation.messages[0]['content']}"}
    return Prompt(messages=[note, conversation.messages[-1]], references={"§1": 1, "§2": 2})
