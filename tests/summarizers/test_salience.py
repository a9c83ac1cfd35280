"""Salience: what a sentence is, and the order of worth."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from ctxsteward.summarizers.salience import FLOOR, PlacedSentence, read_sentence, standing_worth

KINDS = [
    pytest.param("Whatever happens, card numbers stay out of the logs.", "constraint", id="rule without a must"),
    pytest.param("We can't have drafts going out unread.", "constraint", id="we can't have"),
    pytest.param("Leave the audit trail alone.", "constraint", id="leave alone"),
    pytest.param("My budget tops out at $1,200.", "constraint", id="bound"),
    pytest.param("千万别动生产库。", "constraint", id="chinese prohibition"),
    pytest.param("场地最多只能坐40人。", "constraint", id="chinese bound"),
    pytest.param("For the queue, Redis it is.", "decision", id="it is"),
    pytest.param("缓存就用Redis吧。", "decision", id="chinese decision"),
    pytest.param("The parcel is W2378156.", "identifier", id="identifier"),
    pytest.param("Look under /srv/data/x.yaml", "path", id="path"),
    pytest.param("Docs: https://wiki.example/a", "url", id="url"),
    pytest.param("The venue holds eighty people.", "number", id="spelled number with unit"),
    pytest.param("I prefer a window seat on long trips.", "preference", id="preference"),
    pytest.param("The nightly job crashed again.", "error", id="error"),
    pytest.param("Remind me to call the plumber.", "open_item", id="task"),
]


@pytest.mark.parametrize(("text", "kind"), KINDS)
def test_a_sentence_has_the_kind_a_reader_gives_it(text: str, kind: str) -> None:
    assert read_sentence(text, "user").kind == kind


def test_worth_follows_the_published_order() -> None:
    said = (
        "Nobody outside finance may see the salaries.",
        "Change the timeout to 45 seconds instead.",
        "Let's go with Postgres for the ledger.",
        "The ticket is OPS-113.",
        "I prefer a window seat.",
        "The nightly job crashed again.",
        "My sister came over for the long weekend.",
        "Sounds good, thanks!",
    )
    worth = [read_sentence(text, "user").worth for text in said]
    assert worth == sorted(worth, reverse=True)
    assert worth[-1] < FLOOR


@pytest.mark.parametrize(
    "text",
    [
        "Never mind, I don't know.",
        "不好意思，我不知道。",
        "No problem, no worries.",
        "Got it!",
        "My neighbour talks about it, it never ends.",
    ],
)
def test_small_talk_with_a_cue_word_is_not_a_rule(text: str) -> None:
    assert read_sentence(text, "user").kind != "constraint"


def test_the_same_words_from_an_assistant_are_worth_less() -> None:
    text = "You must always check the number twice."
    assert read_sentence(text, "assistant").worth < read_sentence(text, "user").worth


def placed(text: str, role: str = "user", **more: Any) -> PlacedSentence:
    values: dict[str, Any] = {"refs": ("§9",), "order": 9, "role": role, "place": "source", "index": 0} | more
    return PlacedSentence(reading=read_sentence(text, role), **values)


PLAIN = "I would walk along the old harbour wall in the evening."
DECIDED = "We decided to walk along the old harbour wall at last."


@pytest.mark.parametrize(
    ("worthier", "than"),
    [
        ((placed(PLAIN), 8.0), (placed(PLAIN), 2.0)),  # its words are rarer
        ((placed("I walk along the quay."), 4.0), (placed(PLAIN), 4.0)),  # the same in fewer tokens
        ((placed(PLAIN), 4.0), (placed(PLAIN, is_first=False), 4.0)),  # people say first what they mean
        ((placed(PLAIN, among=2), 4.0), (placed(PLAIN, among=40), 4.0)),  # few of many sentences are needed
        ((placed(PLAIN), 4.0), (placed(PLAIN[:-1] + "?"), 4.0)),  # the answer counts
        ((placed(PLAIN), 4.0), (placed(PLAIN, role="assistant"), 4.0)),
        ((placed("Never book before 10:00."), 0.0), (placed(PLAIN), 4.0)),  # a rule beyond doubt
        ((placed(DECIDED, among=3), 4.0), (placed(PLAIN, among=3), 4.0)),
        ((placed(PLAIN, role="assistant"), 0.0), (placed(PLAIN, role="assistant", among=60), 0.0)),
    ],
)
def test_a_sentence_is_weighed_by_who_says_it_how_rare_and_where(
    worthier: tuple[PlacedSentence, float], than: tuple[PlacedSentence, float]
) -> None:
    assert 100 >= standing_worth(*worthier) > standing_worth(*than)


def test_in_a_long_message_a_cue_adds_nothing() -> None:
    in_short, in_long = (standing_worth(placed(DECIDED, among=among), 4.0) for among in (1, 30))
    without = standing_worth(placed(DECIDED.replace("decided to", "used to"), among=30), 4.0)
    assert in_short > in_long == pytest.approx(without, abs=1.0)


@given(st.text(max_size=80), st.integers(1, 400), st.booleans(), st.floats(0, 200))
def test_a_worth_lies_between_0_and_100(text: str, among: int, is_first: bool, rarity: float) -> None:
    assert 0 <= standing_worth(placed(text, among=among, is_first=is_first), rarity) <= 100


def test_a_greeting_is_worth_nothing_and_a_standing_bullet_what_it_was() -> None:
    assert standing_worth(placed("Hi there!"), 1.0) == 0.0
    assert standing_worth(placed(PLAIN, place="standing", value=61.5), 0.0) == 61.5
