"""Goals and tasks through the summarizer: what is done is not shown as to do, and nothing else makes a wish vanish."""

from __future__ import annotations

import pytest

from ctxsteward.schemas import Bullet, Message, SummarizerInput
from ctxsteward.schemas.summary import SourceMessage
from ctxsteward.summarizers import extractive
from ctxsteward.summarizers.cues import deeds
from ctxsteward.summarizers.salience import read_sentence

Said = tuple[str, str]


def messages(*said: Said) -> tuple[SourceMessage, ...]:
    return tuple(
        SourceMessage(ref=f"§{n}", message=Message.from_wire({"role": role, "content": text}))
        for n, (role, text) in enumerate(said, 1)
    )


def shown(*said: Said) -> str:
    return "\n".join(b.text for b in extractive(SummarizerInput(messages=messages(*said)), budget_tokens=4_000).bullets)


SETTLED = [
    pytest.param("Remind me to order the oak worktop.", "I've ordered the oak worktop this morning.", id="the deed"),
    pytest.param("Don't forget to sell the old stove.", "Just sold the old stove.", id="an irregular deed"),
    pytest.param("Todo: reset the intern's badge.", "The intern's badge is reset, tick that off.", id="spelt alike"),
    pytest.param("I still have to hire the tiler.", "The tiler has been hired.", id="passive"),
    pytest.param("Todo: renew my passport.", "No need to renew the passport after all.", id="dropped"),
    pytest.param(
        "The goal is to get the checkout page live by May 9.", "We made it: the checkout page is live.", id="goal"
    ),
    pytest.param(
        "Could you note that we need to ship? Todo: paint the door.", "The door is painted.", id="behind another"
    ),
    pytest.param("还得订橡木台面。", "橡木台面订好了，可以划掉了。", id="chinese"),
    pytest.param("提醒我退买错的水龙头。", "买错的水龙头退掉了。", id="chinese deed"),
    pytest.param("待办：收拾急救包。", "急救包不用收拾了。", id="chinese dropped"),
]


@pytest.mark.parametrize(("wish", "news"), SETTLED)
def test_what_is_over_is_not_shown_as_to_do(wish: str, news: str) -> None:
    wanted = wish.split("Todo: ")[-1].split("to ")[-1].rstrip(".。")
    assert wanted in shown(("user", wish))
    assert wanted not in shown(("user", wish), ("user", "It rained here."), ("user", news)).replace(news, "")
    assert wanted not in shown(("user", wish), ("assistant", news)).replace(news, ""), "whoever did it"


UNSETTLED = [
    pytest.param("I like the oak worktop on that picture.", id="a mention"),
    pytest.param("I ordered the oak table this morning.", id="another thing"),
    pytest.param("Is the oak worktop ordered?", id="a question"),
    pytest.param("Tell me when the oak worktop is ordered.", id="some day"),
    pytest.param("The oak worktop is not ordered yet.", id="not yet"),
    pytest.param("I have to get the oak worktop ordered.", id="still to do"),
    pytest.param("The oak worktop was delayed.", id="another deed"),
    pytest.param("```\noak worktop ordered\n```", id="pasted"),
]


@pytest.mark.parametrize("news", UNSETTLED)
def test_nothing_else_makes_a_wish_vanish(news: str) -> None:
    text = shown(("user", "Remind me to order the oak worktop."), ("user", news))
    assert "order the oak worktop" in text


def test_open_again_is_open() -> None:
    text = shown(
        ("user", "Remind me to order the oak worktop."),
        ("user", "I've ordered the oak worktop."),
        ("user", "Bad news, the oak worktop has to be ordered again."),
    )
    assert text == "Bad news, the oak worktop has to be ordered again."


def test_an_assistant_that_repeats_a_wish_does_not_replace_it() -> None:
    text = shown(("user", "Remind me to order the oak worktop."), ("assistant", "Noted: order the oak worktop."))
    assert text == "Remind me to order the oak worktop."


def test_opposites_are_different_things() -> None:
    text = shown(("user", "Todo: patch the staging server."), ("user", "The production server is patched."))
    assert "patch the staging server" in text


def test_a_standing_bullet_of_a_wish_goes_when_it_is_over() -> None:
    standing = (Bullet(text="Todo: order the oak worktop.", citations=("§1",), value=79, kind="open_item"),)
    news = messages(("user", "hello"), ("user", "Done: the oak worktop is ordered."))[1:]
    assert extractive(SummarizerInput(messages=news, standing=standing), budget_tokens=400).superseded == (0,)


def test_a_wish_is_worth_more_than_chatter_and_numbers_and_less_than_rules() -> None:
    order = [
        "Never touch the wall.",
        "The goal is to cook by May 9.",
        "Todo: measure the niche.",
        "It has 45 tiles.",
        "It rained.",
    ]
    worth = [read_sentence(text, "user").worth for text in order]
    assert worth == sorted(worth, reverse=True)
    assert [read_sentence(text, "user").kind for text in order[1:3]] == ["open_item", "open_item"]


def test_pasted_lines_are_worth_less_than_what_is_said() -> None:
    text = "The port is 5432.\n```\nretries_max = 5\ntimeout_ms = 700\n```\n| host | db-7 |"
    source = SummarizerInput(messages=messages(("user", text)))
    values = {bullet.text: bullet.value for bullet in extractive(source, budget_tokens=400).bullets}
    assert max(value for line, value in values.items() if "5432" not in line) < 50 < values["The port is 5432."]


def test_an_assistants_asides_with_other_numbers_are_worth_no_more_for_it() -> None:
    tale = "After about {n} seconds the icon tries once more and stays grey."
    source = SummarizerInput(messages=messages(*(("assistant", tale.format(n=n)) for n in (14, 23, 45))))
    assert all(bullet.value < 60 for bullet in extractive(source, budget_tokens=400).bullets)


CORRECTED = [
    pytest.param(
        "For the floor we go with slate.", "Scratch slate, the floor will be parquet.", "go with slate", id="lower case"
    ),
    pytest.param("灶具我们决定选美的。", "灶具从美的改成华帝。", "决定选美的", id="chinese"),
]


@pytest.mark.parametrize(("old", "new", "gone"), CORRECTED)
def test_a_correction_that_names_all_of_a_decision_replaces_it(old: str, new: str, gone: str) -> None:
    text = shown(("user", old), ("user", new))
    assert new.rstrip("。") in text
    assert gone not in text


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("i've merged it", {"merg"}),
        ("it was sold", {"sel"}),
        ("it has to be sold", set()),
        ("not sold", set()),
        ("once it is sold, call me", set()),
        ("ordered it today", {"order"}),
        ("we need to reset it", set()),
        ("订好了", {"订", "好"}),
    ],
)
def test_deeds(text: str, done: set[str]) -> None:
    assert deeds(text) == done
