"""Probes: what a text says in typed form, where exactly, in English and Chinese, and what is not one."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from ctxsteward.envelope.compaction.losses import (
    LOOK_CHARS,
    MAX_PROBES,
    PROBED_CHARS,
    account,
    normalize,
    probes,
)
from ctxsteward.schemas import Bullet

from ...examples import examples
from ...tables import table
from ..messages import session_of

CASES = table(__file__, "losses.yaml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_text_says_these_things_and_no_others(case: dict[str, Any]) -> None:
    found = dict.fromkeys((probe.kind, probe.text) for probe in probes(case["text"]))
    assert [list(pair) for pair in found] == case["found"]


SAYINGS = (
    "We must ship",
    "never",
    ". ",
    "\n",
    "OPS-12",
    " 30 days",
    "  ",
    "必须",
    "。",
    "/srv/a/b",
    "x" * 170,
    "failed",
)


@settings(max_examples=examples(300), derandomize=True, database=None)
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


# -- the account ---------------------------------------------------------------------------------------------------

Losses = list[tuple[str, str, str]]


def accounted(texts: list[str], cited: str = "", shown: tuple[str, ...] = ()) -> Losses:
    """Kind, text and reference of each loss, where a bullet cites these references and says `shown[0]`."""
    session = session_of(*({"role": "user", "content": text} for text in texts))
    bullets = [Bullet(text=text, citations=tuple(cited.split())) for text in shown[:1] or ("Noted.",) if cited]
    losses = account(list(session.entries()), bullets, shown[1:], [])
    for loss in losses:
        if loss.span is not None:
            assert texts[int(loss.ref[1:]) - 1][slice(*loss.span)] == loss.text
    return [(loss.kind, loss.text, loss.ref) for loss in losses]


FULL = "word " * (PROBED_CHARS // 5)


@pytest.mark.parametrize(
    ("texts", "cited", "shown", "losses"),
    [
        pytest.param(["Hello."], "§1", (), [], id="cited, and nothing typed in it"),
        pytest.param(["Hello. " * 20], "", (), [("fact", ("Hello. " * 20)[:80], "§1")], id="not cited"),
        pytest.param(["See OPS-12."], "", (), [("identifier", "OPS-12", "§1")], id="typed: not counted twice"),
        pytest.param(["See OPS-12."], "§1", (), [("identifier", "OPS-12", "§1")], id="cited, its value is gone"),
        pytest.param(["See OPS-12."], "§1", ("It is ops-12.",), [], id="a bullet says it"),
        pytest.param(["See OPS-12."], "§1", ("Noted.", "OPS-12"), [], id="what stays visible says it"),
        pytest.param(
            ["OPS-12 and OPS-13", "OPS-12", "OPS-14"],
            "§1 §2 §3",
            (),
            [("identifier", "OPS-13", "§1"), ("identifier", "OPS-12", "§2"), ("identifier", "OPS-14", "§3")],
            id="in order, each value once, at the newest message that has it",
        ),
        pytest.param(["See OPS-12.", FULL[:-1]], "§1 §2", (), [("fact", "See OPS-12.", "§1")], id="older: by message"),
        pytest.param(["OPS-12 " + FULL[8:]], "§1", (), [("identifier", "OPS-12", "§1")], id="the last that is probed"),
        pytest.param(["OPS-12 " + FULL[7:]], "§1", (), [("fact", ("OPS-12 " + FULL[7:])[:80], "§1")], id="and not"),
    ],
)
def test_what_is_lost_is_told_by_value_or_by_message(
    texts: list[str], cited: str, shown: tuple[str, ...], losses: Losses
) -> None:
    assert accounted(texts, cited, shown) == losses
