"""Probes: what a text says in typed form, where exactly, in English and Chinese, and what is not one."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from ctxsteward.envelope.compaction.losses import LOOK_CHARS, MAX_PROBES, normalize, probes

from ...examples import examples
from ...tables import table

CASES = table(__file__, "losses.yaml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_text_says_these_things_and_no_others(case: dict[str, Any]) -> None:
    found = dict.fromkeys((probe.kind, probe.text) for probe in probes(case["text"]))
    assert [list(pair) for pair in found] == case["found"]


SAYINGS = (
    "We must ship", "never", ". ", "\n", "OPS-12", " 30 days", "  ", "必须", "。", "/srv/a/b", "x" * 170, "failed",
)  # fmt: skip


@settings(max_examples=examples(300), deadline=None, derandomize=True, database=None)
@given(text=st.lists(st.sampled_from(SAYINGS), max_size=14).map("".join))
@example("Fine.  We must go.")
@example("x" * 150 + " must " + "y" * 400)
@example("必须" * 9 + "\n" + "OPS-12 " * 80 + "end must " + "z " * 12_000 + "tail OPS-99 failed.")
def test_a_span_quotes_the_text_exactly(text: str) -> None:
    for probe in probes(text):
        assert text[probe.start : probe.stop] == probe.text
        assert probe.value == normalize(probe.text)


def test_a_quote_of_a_rule_holds_the_word_that_makes_it_one() -> None:
    """However long the sentence before it."""
    for lead in (0, 50, 150, 159, 170, 400):
        text = "word " * (lead // 5) + "you must pay that " + "word " * 60
        (quote,) = {probe.text for probe in probes(text) if probe.kind == "constraint"}
        assert "must" in quote, lead


@pytest.mark.parametrize(
    ("one", "other"),
    [("１,２00  Ms", "1200 ms"), ("$1,250,000", "$1250000"), ("OPS-4411", "ops-4411"), ("a\n\tb", "a b")],
)
def test_case_width_thousands_and_blanks_do_not_count(one: str, other: str) -> None:
    assert normalize(one) == normalize(other) == other.lower()


def test_a_list_of_numbers_keeps_its_commas() -> None:
    assert normalize("1,2,3") == "1,2,3"


def test_probes_are_in_order_and_bounded() -> None:
    found = probes(" ".join(f"OPS-{n}" for n in range(1_000)))
    assert len(found) == MAX_PROBES
    assert [probe.start for probe in found] == sorted(probe.start for probe in found)


def test_a_long_text_is_probed_at_its_head_and_its_tail() -> None:
    text = "OPS-11 " + "word " * LOOK_CHARS + "OPS-22 " + "word " * LOOK_CHARS + " OPS-33"
    assert [(probe.text, text[probe.start : probe.stop]) for probe in probes(text)] == [
        ("OPS-11", "OPS-11"),
        ("OPS-33", "OPS-33"),
    ]


@pytest.mark.parametrize(
    "unit", ["a1", "1,", "/a", "must ", "a@", "-", "a-1-", "http://", "必须", "error\n", "1 ", "%s" * 3, "....", "a.b/"]
)
def test_no_text_makes_probing_slow(unit: str) -> None:
    """A tool result is an attacker's text: 20,000 characters of anything stay far under a second of CPU."""
    text = (unit * LOOK_CHARS)[:LOOK_CHARS]
    started = time.thread_time()
    probes(text)
    assert time.thread_time() - started < 2.0
