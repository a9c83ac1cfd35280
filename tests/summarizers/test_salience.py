"""Salience: what a sentence is, and the order of worth."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from ctxsteward.language.word_uses import WordUses
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


SAID_BEFORE = WordUses()
SAID_BEFORE.read("We meet at the harbour.", 1)
for again in range(4, 9):
    SAID_BEFORE.read("How we meet at the harbour is how we meet.", again)
SAID_BEFORE.read("I would walk along the quay in the morning.", 9)


@pytest.mark.parametrize(
    ("worthier", "than"),
    [
        pytest.param(
            placed("Bertrand sells lamps from an orange van."),
            placed("How we meet at the harbour is how we meet."),
            id="its words are new together",
        ),
        pytest.param(placed(PLAIN), placed(PLAIN, is_first=False, among=3), id="people say first what they mean"),
        pytest.param(
            placed(PLAIN, is_first=False, among=2), placed(PLAIN, is_first=False, among=40), id="few of many are needed"
        ),
        pytest.param(placed(PLAIN), placed(PLAIN[:-1] + "?"), id="the answer counts"),
        pytest.param(placed(PLAIN), placed(PLAIN, role="assistant"), id="an assistant echoes"),
        pytest.param(placed(PLAIN), placed(PLAIN[:-1] + " and back again for the sake of it" * 12), id="much room"),
        pytest.param(placed(PLAIN), placed("Sounds good."), id="a nod"),
        pytest.param(placed(PLAIN, order=11), placed(PLAIN, order=1), id="the newest about a rare word"),
        pytest.param(placed("Remind me to walk the dog."), placed("Oh dear, I walked the dog."), id="an open task"),
        pytest.param(
            placed(PLAIN, role="assistant"), placed(PLAIN, role="assistant", among=60), id="an assistant's long message"
        ),
    ],
)
def test_a_sentence_is_weighed_by_who_says_it_how_new_and_where(worthier: PlacedSentence, than: PlacedSentence) -> None:
    assert 100 >= standing_worth(worthier, SAID_BEFORE) > standing_worth(than, SAID_BEFORE)


@given(st.text(max_size=80), st.integers(1, 400), st.booleans())
def test_a_worth_lies_between_0_and_100(text: str, among: int, is_first: bool) -> None:
    assert 0 <= standing_worth(placed(text, among=among, is_first=is_first), SAID_BEFORE) <= 100


def test_a_standing_bullet_is_worth_what_it_was() -> None:
    assert standing_worth(placed(PLAIN, place="standing", value=61.5), SAID_BEFORE) == 61.5
