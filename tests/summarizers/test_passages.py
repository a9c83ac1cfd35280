"""Passages: every text in parts that are it, put together, cut where it is cut itself."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.language.passages import MAX_PASSAGES, PASSAGE_CHARS, WHOLE_CHARS, passage_spans

from ..examples import examples

PIECES = st.sampled_from(
    (
        "A sentence of some words. ",
        "第一句话。",
        "\n",
        "\n\n",
        "- an item\n",
        "```py\nx = 1\n```\n",
        "```",
        "word ",
        "x" * 700,
    )
)


@settings(max_examples=examples(100))
@given(st.lists(PIECES, max_size=200).map("".join))
def test_passages_put_together_are_the_text(text: str) -> None:
    spans = passage_spans(text)
    assert "".join(text[start:stop] for start, stop in spans) == text
    assert [span.start for span in spans[1:]] == [span.stop for span in spans[:-1]]
    if len(text) <= WHOLE_CHARS:
        assert len(spans) == (1 if text else 0)
    else:
        assert all(stop - start <= PASSAGE_CHARS * 3 for start, stop in spans)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Plan.\n\n" + "Some words of it. " * 120, "Plan.\n\n" + "Some words of it. " * 26),
        ("intro\n```\n" + "code()\n" * 60 + "```\nafter " + "word " * 400, "intro\n```\n" + "code()\n" * 60 + "```\n"),
        ("- one\n" * 400, "- one\n" * 80),
        ("句子。" * 700, "句子。" * 160),
        ("x" * 2_000, "x" * 480),
    ],
    ids=["a heading stays with what follows", "code stays whole", "items", "Chinese", "no place to cut"],
)
def test_where_a_text_is_cut(text: str, first: str) -> None:
    start, stop = passage_spans(text)[0]
    assert text[start:stop] == first


def test_a_huge_text_has_a_bounded_number() -> None:
    spans = passage_spans("one line\n" * 200_000)
    assert len(spans) == MAX_PASSAGES
    assert spans[-1].stop == 9 * 200_000
