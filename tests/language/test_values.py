"""Typed values: what is found, and when two mentions are the same."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ctxsteward.language.values import chinese_number, normalize, typed_values

CASES = [
    pytest.param("see https://a.example/x?y=1.", [("url", "", "https://a.example/x?y=1")], id="url without the stop"),
    pytest.param("mail ops@halden.example now", [("email", "", "ops@halden.example")], id="email"),
    pytest.param("open src/app/main.py", [("path", "", "src/app/main.py")], id="relative path"),
    pytest.param("ticket OPS-113", [("identifier", "", "ops-113")], id="ticket"),
    pytest.param("commit 9f8e7d6a", [("identifier", "", "9f8e7d6a")], id="hash"),
    pytest.param("locator QKZWPT", [("identifier", "", "qkzwpt")], id="capital code without digits"),
    pytest.param("at 10.0.0.4:8080", [("address", "", "10.0.0.4:8080")], id="address with port"),
    pytest.param("runs v1.2.3", [("version", "", "v1.2.3")], id="version"),
    pytest.param("costs $1,200.50", [("money", "$", "1200.50")], id="money with separators"),
    pytest.param("it is 12% full", [("percent", "", "12")], id="percent"),
    pytest.param("under 250KB", [("quantity", "kb", "250")], id="attached unit"),
    pytest.param("forty-five days", [("quantity", "day", "45")], id="spelled number"),
    pytest.param("on May 3 at 6:40 pm", [("date", "", "may3"), ("time", "", "6:40pm")], id="date and time"),
    pytest.param("by Thursday", [("date", "weekday", "thursday")], id="weekday"),
    pytest.param("四十五天", [("quantity", "day", "45")], id="chinese numeral"),
    pytest.param("5月3日下午3点", [("date", "", "5月3日"), ("time", "", "3")], id="chinese date and time"),
    pytest.param("预算8万元", [("money", "¥", "80000")], id="chinese myriads"),
    pytest.param("翻了一遍", [], id="an article is no quantity"),
    pytest.param("plain prose has none of them", [], id="nothing"),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_values_are_typed_and_normalized(text: str, expected: list[tuple[str, str, str]]) -> None:
    from ctxsteward.summarizers.salience import read_sentence

    assert [(v.kind, v.unit, v.norm) for v in read_sentence(text, "user").values] == expected


@pytest.mark.parametrize(
    ("one", "other"), [("1,200", "1200"), ("ＡＢ１２", "ab12"), ("10 GB", "10gb"), ("Straße", "STRASSE")]
)
def test_equal_values_normalize_alike(one: str, other: str) -> None:
    assert normalize(one) == normalize(other)


@given(st.text(alphabet="零一二两三四五六七八九十百千万半", min_size=1, max_size=12))
def test_any_numeral_is_a_number(numeral: str) -> None:
    """None is negative, and only signs that stand for nothing come to 0."""
    assert (chinese_number(numeral) > 0) or set(numeral) <= set("零")


@given(st.text(max_size=300))
def test_spans_lie_in_the_text_and_nothing_raises(text: str) -> None:
    for value in typed_values(text):
        assert 0 <= value.start < value.stop <= len(text)
