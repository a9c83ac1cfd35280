"""Corrections: what is one, what only looks like one, what it cites, whom it is for."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from ctxsteward.steward.artifacts import build_artifact
from ctxsteward.steward.harvest.harvester import EXTRACTOR, harvest
from ctxsteward.steward.ledger import Ledger

from ..scenes import AGENT, TENANT, memory_store, replayed
from ..scenes import said as spoken
from .said import said_en, said_zh
from .talk import found, said, strengths, talk, task

BOTH = [pytest.param(said_en, id="English"), pytest.param(said_zh, id="Chinese")]


@pytest.mark.parametrize("sets", BOTH)
def test_most_corrections_are_found(sets: object) -> None:
    texts = getattr(sets, "CORRECTIONS")  # noqa: B009
    assert sum("strict" in strengths(text, "corrections") for text in texts) / len(texts) >= 0.85


@pytest.mark.parametrize("text", [*said_en.NOT_CORRECTIONS, *said_zh.NOT_CORRECTIONS])
def test_what_corrects_nothing_gives_nothing_strict(text: str) -> None:
    assert "strict" not in strengths(text, "corrections")


class Right(NamedTuple):
    """A correction, what it says is right, and how far it goes."""

    text: str
    attribute: str
    value: str
    reach: str


RIGHT = [
    Right("No, I live in Oslo, not Bergen.", "home", "Oslo", "user"),
    Right("No, my daughter is called Mia, not Maya.", "daughter", "Mia", "user"),
    Right("Incorrect. The limit is 50 requests per second.", "correction:limit", "50 requests per second", "shared"),
    Right("The budget is 4,000, not 40,000.", "correction:budget", "4,000", "shared"),
    Right("No, it's Thursday, not Tuesday.", "correction:said", "Thursday", "session"),
    Right("I said two adults, not three.", "correction:said", "two adults", "session"),
    Right("我住在奥斯陆，不是卑尔根。", "home", "奥斯陆", "user"),
    Right("不正确，上限是每秒五十次。", "correction:上限", "每秒五十次", "shared"),
    Right("不对，是周四，不是周二。", "correction:said", "周四", "session"),
]


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.text)
def test_a_correction_says_what_is_right(case: Right) -> None:
    (seen,) = found(case.text, "corrections")
    assert (seen.slot.attribute, seen.value, seen.reach) == (case.attribute, case.value, case.reach)


THINGS = [
    Right("the desk closes at 19:30, not 18:00", "correction:desk", "19:30", "shared"),
    Right("No, the return window is 14 days, not 30.", "correction:window", "14 days", "shared"),
    Right("Actually, refunds take 5 days, not 3.", "correction:refund", "5 days", "shared"),
    Right("Refunds take five days, not three.", "correction:refund", "5 days", "shared"),
    Right("The gym opens at 6, not 7.", "correction:gym", "6", "shared"),
    Right("The warranty lasts two years, not one.", "correction:warranty", "2 years", "shared"),
    Right("The API returns JSON, not XML.", "correction:api", "JSON", "shared"),
    Right("The premium plan includes 10 seats rather than 5.", "correction:plan", "10 seats", "shared"),
    Right("Checked bags cost 35 dollars, not 50.", "correction:bag", "35 dollars", "shared"),
    Right("That's not right, the store closes at 9 pm.", "correction:store", "9 pm", "shared"),
    Right("Your hours are wrong. The office opens at 8:30.", "correction:office", "8:30", "shared"),
    Right("更正：退货期限是14天，不是30天", "correction:退货期限", "14天", "shared"),
    Right("其实退款需要5天，不是3天。", "correction:退款", "5天", "shared"),
    Right("前台19:30关门，不是18:00。", "correction:前台", "19:30", "shared"),
    Right("运费要8元，不是5元。", "correction:运费", "8元", "shared"),
    Right("质保期是两年，而不是一年。", "correction:质保期", "两年", "shared"),
    Right("更正一下，截止日期为3月3日，不是3月5日。", "correction:截止日期", "3月3日", "shared"),
    Right("纠正：接口返回JSON，不是XML。", "correction:接口", "JSON", "shared"),
    Right("你说错了，退货期限是14天。", "correction:退货期限", "14天", "shared"),
]

PROTESTED = [
    Right("你说错了，我们公司在里斯本。", "correction:我们公司", "里斯本", "user"),
    Right("你说错了。我们公司在里斯本。", "correction:我们公司", "里斯本", "user"),
    Right("你弄错了，我不是律师，是医生。", "correction:said", "医生", "user"),
    Right("你记错了，我的会员等级是金卡。", "correction:我的会员等级", "金卡", "user"),
    Right("你搞错了，我妈妈是护士。", "correction:我妈妈", "护士", "user"),
    Right("你说错了，我一直用 Vim。", "correction:said", "我一直用 Vim", "user"),
    Right("你说错了，我更喜欢靠过道的座位。", "correction:said", "我更喜欢靠过道的座位", "user"),
    Right("不对，我从来不吃辣。", "correction:said", "我从来不吃辣", "user"),
    Right("你说错了，我住在奥斯陆。", "home", "奥斯陆", "user"),
    Right("你说错了，打印机在三楼。", "correction:打印机", "三楼", "shared"),
    Right("您说错了，会员日是每月八号。", "correction:会员日", "每月八号", "shared"),
    Right("你弄错了，接待处的分机是 4410。", "correction:接待处的分机", "4410", "shared"),
    Right("你说错了，退货期限是14天。", "correction:退货期限", "14天", "shared"),
    Right("你说错了，是周四。", "correction:said", "周四", "session"),
    Right("你说错了，应该是周四。", "correction:said", "周四", "session"),
    Right("你说错了，我的航班是八点。", "correction:我的航班", "八点", "session"),
    Right("你说错了，订单号是 88213。", "correction:订单号", "88213", "session"),
    Right("你说错了，明天的会议在四楼。", "correction:明天的会议", "四楼", "session"),
    Right("你说错了，第二张票要取消。", "correction:said", "第二张票要取消", "session"),
    Right("你说错了，我要的是换货。", "correction:said", "换货", "session"),
    Right("你说错了，我是要改签。", "correction:said", "我是要改签", "session"),
    Right("你说错了，我只要一张票。", "correction:said", "我只要一张票", "session"),
    Right("你说错了，这个是红色的。", "correction:said", "这个是红色的", "session"),
    Right("That's wrong, I use Postgres.", "correction:said", "I use Postgres", "user"),
    Right("You got it wrong, my membership is gold.", "correction:membership", "gold", "user"),
    Right("You got that wrong, the printer is in the hall.", "correction:printer", "the hall", "shared"),
    Right("That's wrong, it's Thursday.", "correction:said", "Thursday", "session"),
    Right("You're wrong, my flight leaves at 8.", "correction:flight", "at 8", "session"),
    Right("That's not right, I asked for a refund.", "correction:said", "I asked for a refund", "session"),
    Right("That's wrong, I want two tickets.", "correction:said", "I want two tickets", "session"),
]


@pytest.mark.parametrize("case", PROTESTED, ids=lambda case: case.text)
def test_the_words_of_a_protest_say_nothing_of_how_far_a_correction_goes(case: Right) -> None:
    """Of "you said it wrong, X" it is X that is durable, for everybody, or of this talk alone."""
    (seen,) = found(case.text, "corrections")
    assert (seen.slot.attribute, seen.value, seen.reach) == (case.attribute, case.value, case.reach)
    assert seen.strength == "strict"


CONTRASTS = """
The key is quality, not quantity.
Life is a journey, not a destination.
The room has a sofa, not a bed.
My son plays the cello, not the violin.
Success takes patience, not luck.
The museum opens at 9 on weekdays and at 10 on weekends.
The plan includes breakfast but not dinner.
The city has 2 million people, not counting suburbs.
The train takes 3 hours, not including the transfer.
The book is about Rome, not about Paris.
If the shop closes at 8, not 9, we are late.
They said the store opens at 9, not 10.
Is the desk open at 9, not 8?
重要的是过程，不是结果。
生活是一场旅行，不是比赛。
他是医生，不是律师。
孩子们喜欢的是游戏，不是作业。
成功靠的是坚持，不是运气。
图书馆每天九点开门。
如果关门时间是八点，不是九点，就来不及了。
他说退货期限是14天，不是30天。
""".strip().splitlines()


@pytest.mark.parametrize("case", THINGS, ids=lambda case: case.text)
def test_a_correction_of_a_thing_is_for_all(case: Right) -> None:
    (seen,) = found(case.text, "corrections")
    assert (seen.slot.attribute, seen.value, seen.reach) == (case.attribute, case.value, case.reach)
    assert (seen.strength, seen.slot.subject) == ("strict", case.attribute.removeprefix("correction:"))


@pytest.mark.parametrize("text", CONTRASTS)
def test_what_only_tells_what_something_is_corrects_nothing(text: str) -> None:
    assert "strict" not in strengths(text, "corrections")


def test_inside_a_task_what_is_so_for_everybody_stays_so() -> None:
    assert {seen.reach for seen in found(task("Actually, refunds take 5 days, not 3."), "corrections")} == {"shared"}
    assert {seen.reach for seen in found(task("No, the flight leaves at 8, not 9."), "corrections")} == {"session"}
    assert {seen.reach for seen in found(task("No, my flight leaves at 8, not 9."), "corrections")} == {"session"}


THREE = [
    (
        "The desk closes at 19:30, not 18:00.",
        "No, the desk closes at 19:30, not at 6.",
        "Actually, the desk closes at 7:30 pm, not 6 pm.",
    ),
    (
        "Actually, refunds take 5 days, not 3.",
        "That's wrong. Refunds take 5 days.",
        "Refunds take five days, not three.",
    ),
    ("更正：退货期限是14天，不是30天", "不对，退货期限是14天，不是30天。", "退货期限应该是14天，不是30天。"),
]


@pytest.mark.parametrize("texts", THREE, ids=lambda texts: texts[0])
def test_three_people_who_correct_the_same_thing_agree(texts: tuple[str, ...]) -> None:
    with memory_store() as store:
        key = store.keys.address_key(TENANT)
        for people, status in ((2, "candidate"), (3, "active")):
            with Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
                for number, text in enumerate(texts[:people]):
                    who = f"u{number}"
                    transcript = replayed(f"s{number}", spoken(text, principal=who), principal=who)
                    ledger.absorb(*build_artifact(transcript, harvest(transcript), extractor=EXTRACTOR, key=key))
                shared = [record for record in ledger.records() if record.scope.is_shared]
                assert [(record.status, record.support.principals) for record in shared] == [(status, people)]


def test_inside_a_task_a_correction_is_of_the_task() -> None:
    assert {seen.reach for seen in found(task("The budget is 4,000, not 40,000."), "corrections")} == {"session"}
    assert {seen.reach for seen in found(task("No, I live in Oslo, not Bergen."), "corrections")} == {"user"}


def test_a_bare_protest_is_cited_beside_what_is_right() -> None:
    (seen,) = found("That's wrong. The limit is 50 requests per second.", "corrections")
    assert seen.text == "The limit is 50 requests per second."
    assert [place.relation for place in seen.places] == ["supports", "corrects"]


def test_no_as_an_answer_corrects_nothing() -> None:
    asked = said("Do you need a car?", "assistant", 1)
    assert found(talk(asked, said("No. The train is fine.", ordinal=2)), "corrections") == []


def test_only_the_person_is_cited() -> None:
    wrong = said("Your flight leaves on Tuesday.", "assistant", 1)
    (seen,) = found(talk(wrong, said("No, it's Thursday, not Tuesday.", ordinal=2)), "corrections")
    assert {place.ref for place in seen.places} == {"§2"}
