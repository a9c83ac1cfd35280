"""Spans: the bytes of a place are the claim's words, whatever the text; nothing fails, nothing is slow."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import TypeAdapter

from ctxsteward.schemas.profile import RecordText
from ctxsteward.steward.harvest.harvester import EXTRACTOR, SENTENCE_HARVESTERS, TOOL_HARVESTERS, harvest

from ....examples import examples
from .said import said_en, said_zh
from .talk import alone, found, talk

LINES = [line for sets in (said_en, said_zh) for name in dir(sets) if name.isupper() for line in getattr(sets, name)]
GLUE = ["\n", " ", "  ", "🙂 ", "👩‍👩‍👧 ", "\t", "é", "\r\n", "— ", "。", "\u2028", '"', "```\n", "> ", "\x85", "İ"]
TEXT = TypeAdapter(RecordText)


def checked(text: str) -> int:
    """Check every observation of a text; how many there were."""
    data = text.encode()
    seen = harvest(talk(text))
    for one in seen:
        TEXT.validate_python(one.text)
        words = "".join(one.text.split())
        for place in one.places:
            assert 0 <= place.start < place.stop <= len(data)
            span = "".join(data[place.start : place.stop].decode().split())
            if place.relation == "supports" and one.kind != "eval_failure":
                assert span in words
                assert len(words) <= len(span) + 48
    return len(seen)


@settings(max_examples=examples(150))
@given(st.lists(st.tuples(st.sampled_from(LINES), st.sampled_from(GLUE)), min_size=1, max_size=6))
def test_the_bytes_of_a_span_are_the_words_of_its_claim(parts: list[tuple[str, str]]) -> None:
    checked("".join(line + glue for line, glue in parts))


@settings(max_examples=examples(150))
@given(st.text(max_size=300))
def test_no_text_breaks_a_harvester(text: str) -> None:
    checked(text)


def test_a_span_stands_behind_what_takes_several_bytes() -> None:
    text = "🙂🙂 naïve café — 你好。\nFrom now on, answer me in French. 谢谢！"
    (seen,) = found(text, "preferences")
    (place,) = seen.places
    assert text.encode()[place.start : place.stop].decode() == "From now on, answer me in French."


def test_what_is_too_short_to_stand_alone_is_quoted() -> None:
    (seen,) = found("不要表情！", "preferences")
    assert seen.text == "用户说：「不要表情！」"


def test_what_is_too_long_is_cut_at_clauses() -> None:
    tail = ", because that is how it has always been done in this house" * 5
    (seen,) = found(f"From now on, answer me in French{tail}.", "preferences")
    assert 200 < len(seen.text) <= 280
    assert seen.text.startswith("From now on, answer me in French, because")


def test_the_same_transcript_gives_the_same_observations() -> None:
    replayed = talk(*LINES[:80])
    assert harvest(replayed) == harvest(replayed)


def test_every_harvester_runs_alone_and_is_named_in_the_version() -> None:
    replayed = talk("From now on, answer me, please.")
    names = {*SENTENCE_HARVESTERS, *TOOL_HARVESTERS}
    assert {name for name in names if alone(name, replayed)} == {"preferences"}
    assert {part.partition("/")[0] for part in EXTRACTOR.split(",")} == names | {"borrowed", "confirmed"}


HOSTILE = [
    "from now on ",
    "no ",
    '"',
    "“",
    "<aa>",
    "? ",
    "always ",
    "以后",
    "，",
    "我",
    "不是，是",
    "every time i ",
    "if i ",
    "[image: ",
    "\n> ",
    "```\n",
    "From: a\n",
    "translate this: ",
    "- ",
    "not x, ",
    "i said ",
    "1,",
    "call me ",
    " ",
    "'",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_is_linear_in_the_text(piece: str) -> None:
    """A quarter of a second is thirty times what it takes; a quadratic pattern takes minutes."""
    harvest(talk(piece * 50))
    started = time.thread_time()
    harvest(talk(piece * (40_000 // len(piece))))
    assert time.thread_time() - started < 1.0
