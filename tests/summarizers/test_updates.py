"""Updates through the summarizer: what replaces what, and what must not."""

from __future__ import annotations

import pytest

from ctxsteward.schemas import Bullet, Message, SummarizerInput
from ctxsteward.schemas.summary import SourceMessage
from ctxsteward.summarizers import extractive
from ctxsteward.summarizers.salience import PlacedSentence, read_sentence
from ctxsteward.summarizers.updates import replaced


def said(*texts: str, first: int = 1) -> tuple[SourceMessage, ...]:
    return tuple(
        SourceMessage(ref=f"§{first + 2 * i}", message=Message.from_wire({"role": "user", "content": text}))
        for i, text in enumerate(texts)
    )


def shown(*texts: str) -> str:
    return "\n".join(b.text for b in extractive(SummarizerInput(messages=said(*texts)), budget_tokens=4000).bullets)


REPLACED = [
    pytest.param("The return window is 30 days.", "Actually, the return window is now 45 days.", "30", "45", id="now"),
    pytest.param("Ping the gateway on port 8080.", "Ping the gateway on port 9090.", "8080", "9090", id="restated"),
    pytest.param(
        "Refunds take 30 days.", "Scratch the 30, refunds take 45 days.", "Refunds take 30", "45", id="scratch"
    ),
    pytest.param("The review is on Monday.", "They moved the review to Thursday.", "Monday", "Thursday", id="weekday"),
    pytest.param(
        "Redis it is for the queue.", "Let's switch the queue from Redis to Valkey.", "Redis it is", "Valkey", id="name"
    ),
    pytest.param("Let's use 4 workers.", "Make that 6 workers.", "4 workers", "6 workers", id="make that"),
    pytest.param("退货期是三十天。", "退货期改成四十五天了。", "三十天", "四十五天", id="chinese"),
    pytest.param("评审定在周一。", "评审推迟到周四。", "周一", "周四", id="chinese weekday"),
    pytest.param(
        "No deploys on Fridays, ever.", "Drop the rule about Friday deploys.", "ever", "Drop", id="revoked rule"
    ),
]


@pytest.mark.parametrize(("old", "new", "gone", "stays"), REPLACED)
def test_a_newer_value_replaces_the_older_one(old: str, new: str, gone: str, stays: str) -> None:
    text = shown(old, "It rained here.", new)
    assert stays in text
    assert gone not in text


BOTH = [
    pytest.param("The staging port is 5432.", "The production port is 5433.", id="staging and production"),
    pytest.param("Dana's badge is 4471.", "Marek's badge is 4472.", id="two people"),
    pytest.param("Order W1000001 ships on May 3.", "Order W1000002 ships on May 5.", id="two orders"),
    pytest.param("The east region holds 300 users.", "The west region holds 800 users.", id="two regions"),
    pytest.param("The staging port is 5432.", "Correction: the production port is 5433.", id="corrected, but another"),
    pytest.param("测试环境端口是5432。", "生产环境端口是5433。", id="chinese environments"),
    pytest.param("Billing's timeout is 53 s.", "Settlement's timeout is 55 s.", id="two owners"),
    pytest.param("账单的超时是53秒。", "结算的超时是55秒。", id="chinese owners"),
    pytest.param("去程航班是CA123。", "返程航班是CA456。", id="chinese legs"),
    pytest.param("Refunds above $500 need Dana's sign-off.", "The kitchen now costs $800.", id="a rule and a price"),
]


@pytest.mark.parametrize(("one", "other"), BOTH)
def test_near_duplicates_are_two_facts(one: str, other: str) -> None:
    text = shown(one, other)
    assert one in text
    assert other.removeprefix("Correction: ") in text


def test_a_standing_bullet_with_the_old_value_is_superseded() -> None:
    standing = (
        Bullet(text="The return window is 30 days.", citations=("§1",), kind="number", value=65),
        Bullet(text="The staging port is 5432.", citations=("§2",), kind="number", value=65),
    )
    source = SummarizerInput(messages=said("The return window is now 45 days.", first=9), standing=standing)
    assert extractive(source, budget_tokens=400).superseded == (0,)


def test_a_standing_bullet_with_another_identifier_stays() -> None:
    standing = (Bullet(text="Ticket OPS-7: the return window is 30 days", citations=("§1",), kind="number", value=65),)
    source = SummarizerInput(messages=said("The return window is now 45 days.", first=9), standing=standing)
    assert extractive(source, budget_tokens=400).superseded == ()


def test_a_visible_newer_message_silences_the_old_statement() -> None:
    visible = said("Correction: the return window is 45 days.", first=21)
    summary = extractive(
        SummarizerInput(messages=said("The return window is 30 days."), visible=visible), budget_tokens=400
    )
    assert summary.bullets == ()


def test_a_newer_value_is_worth_more_than_the_old_one_that_it_replaces() -> None:
    standing = (Bullet(text="The return window is 45 days.", citations=("§3",), kind="number", value=81.0),)
    source = SummarizerInput(messages=said("The return window is 60 days now.", first=11), standing=standing)
    summary = extractive(source, budget_tokens=400)
    assert summary.superseded == (0,)
    assert [(b.text, b.value > 81.0) for b in summary.bullets] == [("The return window is 60 days now.", True)]


def test_an_opening_no_is_a_rule_and_stays() -> None:
    assert shown("No refunds, ever, for the spring sale.") == "No refunds, ever, for the spring sale."


def test_an_update_that_quotes_the_old_value_shows_both() -> None:
    assert "from 30 to 45 days" in shown("Returns run 30 days.", "We extended returns from 30 to 45 days.")


@pytest.mark.parametrize(
    ("said", "stale"),
    [
        pytest.param(
            ("CREW NOTE: Bako team of 532 people", "CREW NOTE: Zulo team grew, now 667 people"),
            [],
            id="another thing in the same words",
        ),
        pytest.param(
            ("SETPOINT: Humo furnace at 608 degrees", "SETPOINT (rev): Humo furnace at 147 degrees"),
            [0],
            id="the same thing with another value and no word of change",
        ),
        pytest.param(
            (
                "The Dofe retention period is 40 months.",
                "By amendment, the Dofe retention period henceforth stands at 50 months.",
            ),
            [0],
            id="all its words and some more",
        ),
        pytest.param(("The Oslo tank holds 40 litres.", "The Bergen tank holds 50 litres."), [], id="two places"),
    ],
)
def test_a_new_value_is_of_the_thing_that_it_names(said: tuple[str, ...], stale: list[int]) -> None:
    statements = [
        PlacedSentence(
            reading=read_sentence(text, "user"), refs=(f"§{i}",), order=i, role="user", place="source", index=i
        )
        for i, text in enumerate(said, 1)
    ]
    assert sorted(replaced(statements)) == stale
