"""Sentences and clauses are spans of the original."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ctxsteward.language.words import MAX_SENTENCE_CHARS, clause_spans, sentences

CASES = [
    pytest.param("One. Two! Three?", ["One.", "Two!", "Three?"], id="english end marks"),
    pytest.param(
        "第一句。第二句！第三句；第四句", ["第一句。", "第二句！", "第三句；", "第四句"], id="chinese end marks"
    ),
    pytest.param("It is v1.2.3 at 10.5 GB, e.g. today.", ["It is v1.2.3 at 10.5 GB, e.g. today."], id="inner dots"),
    pytest.param("- a thing\n2. another\n# Title", ["a thing", "another", "Title"], id="markdown markers are left out"),
    pytest.param("a wrapped\nline goes on", ["a wrapped\nline goes on"], id="a lower-case line continues"),
    pytest.param("```\nA = 1\nB = 2\n```", ["A = 1", "B = 2"], id="a line of code is a sentence"),
    pytest.param("  \n\n ", [], id="nothing but space"),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_sentences_end_where_a_reader_ends_them(text: str, expected: list[str]) -> None:
    found = [text[piece.start : piece.stop] for piece in sentences(text)]
    assert [sentence for sentence in found if sentence.strip("`")] == expected


@given(st.text(max_size=2000))
def test_spans_are_ordered_disjoint_and_bounded(text: str) -> None:
    end = 0
    for piece in sentences(text):
        assert end <= piece.start < piece.stop <= len(text)
        assert piece.stop - piece.start <= MAX_SENTENCE_CHARS
        end = piece.stop


@given(st.text(max_size=400))
def test_clauses_are_spans_of_the_sentence(text: str) -> None:
    end = 0
    for piece in clause_spans(text):
        assert end <= piece.start < piece.stop <= len(text)
        end = piece.stop
