"""What scores like a fact and is none: requests, replies, small talk; and what is kept beside it."""

from __future__ import annotations

import pytest

from ctxsteward.steward.harvest.harvester import harvest
from ctxsteward.steward.observation import Observation

from .talk import said, talk, task

ERRANDS = """
Yes, please transfer me to a human agent.
I don't remember my reservation number from last week.
Unfortunately, I don't have the order ID with me right now.
I'd like to change my flight on May 26 to a nonstop one.
I'm hoping to get a refund for the trip that I booked yesterday.
Let's upgrade reservation XEHM4B to economy first and then cancel it.
I need to return the two lamps that I bought last Monday.
Go ahead and use the Visa ending in 2076 for the 2 bags.
I understand, but my wife and I really needed those seats on Friday.
I appreciate the offer of 100 dollars from last month.
Could you look up the Lisbon booking for my brother Tom?
We are looking to move our store's account to the Premium plan in June.
Cancel the order from Tuesday and send the 40 euros back to my card.
I'm willing to pay up to 600 dollars for my son's seat.
I will reach out to a human agent on Monday about my 3 bags.
No extra baggage for my daughter on May 12, thanks.
That works, my husband and I booked 2 seats yesterday.
I'm not sure which of my 3 cards I used last month.
请帮我把五月二十号的航班改到第二天。
我想取消昨天订的三张票。
我不记得上个月的订单号了。
麻烦给我转人工客服，我昨天等了两个小时。
好的，我明白了，我朋友昨天也这么说。
没有订单号，我上周搬家的时候弄丢了。
我需要给我老婆再加两件行李。
谢谢，我昨天已经收到三封邮件了。
""".strip().splitlines()

SMALL_TALK = """
Been a busy week since we talked.
Hey John, been a few days since we chatted!
It's been ages since we last caught up.
So much has happened since our last chat, wow.
Long time no talk - a lot has been going on since then!
I haven't talked to you in a while, Maria!
It's so good to hear from you again, Joanna.
Here's some good news - I've got something to share with you!
Can't wait to hear how your weekend with Tom went, talk to you soon!
Thanks for sharing your story about last weekend, Melanie.
You've built some awesome connections at the homeless shelter since last year!
Let's make some great memories at the concert in Boston on Friday!
好久不见，最近忙吗，真是好久没聊了！
自从上次聊天以来发生了好多事情。
最近真是太忙了，改天再聊，祝你周末愉快。
这周过得真的很忙，我们好久没联系了。
""".strip().splitlines()

KEPT = """
Been a while! I moved to Bonn with my sister in May.
Since we last spoke, I started teaching my daughter the violin.
Guess what - I got a puppy two weeks ago!
I got some great news to share - I joined a gym last week!
My brother Tom finished his PhD in physics last week.
Our landlord raised the rent by 80 euros in March.
好久不见！我上个月和老婆搬到了成都。
我女儿上周开始在少年宫学小提琴。
""".strip().splitlines()

OF_THE_CASE = """
My reservation ID is PEP4E0, and the trip is on May 20.
The second passenger is Kevin Smith, born on April 12, 2001.
My flight HAT039 from ATL to SEA was delayed yesterday.
我的航班昨天晚了三个小时，航班号是 MU5137。
""".strip().splitlines()


def scored(transcript: object) -> list[Observation]:
    return [one for one in harvest(transcript) if one.kind == "fact"]  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [*ERRANDS, *SMALL_TALK])
def test_an_errand_inside_a_task_is_no_fact(text: str) -> None:
    assert scored(task(text)) == []


@pytest.mark.parametrize("text", SMALL_TALK)
def test_small_talk_is_no_fact_anywhere(text: str) -> None:
    assert scored(talk(text)) == []
    friend = said(f"Ann: {text}", speaker="Ann", principal="Ann")
    assert scored(talk(friend, format="locomo", principal="Ann")) == []


@pytest.mark.parametrize("text", KEPT)
def test_a_fact_beside_small_talk_is_kept(text: str) -> None:
    assert [one.reach for one in scored(talk(text))] == ["user"]


@pytest.mark.parametrize("text", OF_THE_CASE)
def test_what_states_something_of_the_case_is_kept_for_its_session(text: str) -> None:
    assert {one.reach for one in scored(task(text))} <= {"session"}
    assert scored(task(text))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I like walking home in the evening on Mondays.", "preference"),
        ("I love my sister Nora, who moved to Oslo with her two kids last week.", "fact"),
        ("我喜欢晚上散步。", "preference"),
    ],
)
def test_a_liking_is_a_wish_or_a_fact_and_never_both(text: str, kind: str) -> None:
    assert {one.kind for one in harvest(talk(text))} == {kind}


def test_what_two_people_tell_each_other_is_for_nobody_else() -> None:
    line = "Ann: No, the desk closes at 19:30, not 18:00."
    (alone,) = harvest(talk("No, the desk closes at 19:30, not 18:00."))
    (between,) = harvest(talk(said(line, speaker="Ann", principal="Ann"), format="locomo", principal="Ann"))
    assert (alone.reach, between.reach) == ("shared", "user")
