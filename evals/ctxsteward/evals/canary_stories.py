# ruff: noqa: E501  -- a phrasing a line reads better than wrapped ones
"""Three conversations written by hand, unlike the generator's: a move, a week on call, a hospital stay (Chinese).

Nobody speaks in templates here: rules come as asides, updates are elliptical, one message holds several things. Each
assistant turn is followed by small talk of the generator, so that a window of a fifth of the tokens has to choose.
"""

from __future__ import annotations

import random

from ctxsteward.schemas import Wire

from .canaries import CanaryKind, CanaryScenario, TypedCanary, filled
from .phrasings import canaries_en as canary_texts_en
from .phrasings import canaries_zh as canary_texts_zh

Line = tuple[str, str]
Planted = tuple[CanaryKind, str, tuple[str, ...]]

MOVE: tuple[Line, ...] = (
    ("user", "hey, so I'm finally doing the move. new place is at 14 Wexford Lane, third floor, no lift unfortunately"),
    ("assistant", 'Congratulations on the new place! A third floor without a lift makes the choice of movers more important. Do you have a date in mind, and roughly how much furniture is there?'),
    ("user", "thinking the 22nd of September. there's a piano. and my grandmother's mirror, which I'd never forgive anyone for breaking, so that one rides in my own car, not the truck"),
    ("assistant", "A piano on the third floor usually needs a crew of four and sometimes a hoist. I'd ask each company whether stairs are included in the quote. For the mirror, a blanket and two cardboard sheets are normally enough."),
    ("user", "I got two quotes. Harmon & Sons want 1,850 for everything, the other lot (QuickShift) said 1,400 but they don't do pianos"),
    ("assistant", 'Harmon & Sons at 1,850 sounds reasonable if the piano is included. QuickShift would need a separate piano mover, which typically costs between 300 and 600 depending on the stairs, so the totals may end up close to each other.'),
    ("user", 'yeah Harmon then. told them already. their reference for the job is HS/22-0917'),
    ("assistant", "Great, that's one thing off the list. You may want to confirm insurance cover in writing."),
    ("user", 'the landlord here says keys have to be back by noon on the 24th or I lose the deposit'),
    ("assistant", "Then the 23rd is your buffer day for cleaning. I'd take photos of each room before you hand over the keys."),
    ("user", "cat goes to my sister's for the week. he's diabetic: 2 units of insulin twice a day and not a drop more, the vet was very clear"),
    ("assistant", "I'll keep that in mind. A written note for your sister would help, with feeding times next to it."),
    ("user", 'can you draft that note? keep it short and friendly'),
    ("assistant", 'Of course: "Hi! Thank you so much for looking after him. He eats at 7 and at 19, and gets his insulin right after. The vet\'s number is on the fridge. He likes the window in the afternoon and will pretend he has not been fed."'),
    ("user", 'lovely. also internet: the technician comes on the 25th between 8 and 12, contract no. 7730-2214-K'),
    ("assistant", 'Good, so you will be without internet for about a day. You could use your phone as a hotspot in the meantime.'),
    ("user", "harmon just called. the 22nd doesn't work for them any more, we're doing the 20th"),
    ("assistant", 'Okay, so the move shifts two days earlier. That gives you some more time for cleaning at the old place.'),
    ("user", 'what do people usually forget when they move?'),
    ("assistant", "Often it's the small things: redirecting mail, telling the bank, reading the meters on both ends, and keeping one box with towels, chargers and a kettle within reach for the first night. Some people also forget the cellar."),
    ("user", "ha, the cellar. there are eleven boxes down there. don't let me throw out the one marked 'tapes', it's my dad's recordings"),
    ("assistant", "Eleven boxes is a good number to sort through over a weekend. I'd start with the ones you haven't opened in years."),
    ("user", 'meter readings old flat: electricity 48213, gas 9077'),
    ("assistant", 'Thanks. You will need these for the final bills; send them together with a photo.'),
    ("user", 'do you think I should paint before the furniture comes?'),
    ("assistant", 'If you can, yes. An empty room takes about half the time to paint. Two coats and a day of drying is the usual rhythm.'),
    ("user", "paint is going to be Farrow 'Mizzle' in the bedroom, the rest stays white"),
    ("assistant", 'A soft green-grey, very calm. White for the rest will keep it bright.'),
    ("user", "my brother's bringing his van after all, so cancel the idea of renting one"),
    ("assistant", "That saves some money. I'd still check whether the van's insurance covers your things."),
)  # fmt: skip
MOVE_VALUES: tuple[Planted, ...] = (
    ("number", '14 Wexford Lane', ()),
    ("safety_rule", 'rides in my own car', ()),
    ("number", '1,850', ()),
    ("decision", 'Harmon', ()),
    ("identifier", 'HS/22-0917', ()),
    ("constraint", 'noon on the 24th', ()),
    ("safety_rule", '2 units of insulin', ()),
    ("safety_rule", 'not a drop more', ()),
    ("identifier", '7730-2214-K', ()),
    ("updated_value", 'the 20th', ('22nd of September',)),
    ("safety_rule", 'tapes', ()),
    ("number", '48213', ()),
    ("number", '9077', ()),
    ("decision", 'Mizzle', ()),
    ("number", 'the 25th between 8 and 12', ()),
)  # fmt: skip
ON_CALL: tuple[Line, ...] = (
    ("user", "We're on-call for the ingestion service this week. Dashboards are under grafana.internal/d/ing-7f2."),
    ("assistant", "Understood. I'll look at the dashboards first when something comes up. Is there a runbook?"),
    ("user", "runbook's in the repo, docs/oncall/ingest.md. Two things the runbook doesn't say: the Frankfurt queue may be drained at any time, the Dublin one belongs to the bank and nobody on our side touches it."),
    ("assistant", 'Clear. Frankfurt can be drained when needed. What about paging?'),
    ("user", 'page Oksana for anything data-loss shaped; her mobile is +353 85 555 0199. For the rest the channel is fine.'),
    ("assistant", 'Okay.'),
    ("user", 'first alert: lag on shard 17. pls check'),
    ("assistant", 'Shard 17 is about 40 minutes behind the others. The consumer was restarted twice during the night and seems to be catching up slowly. The usual suspects would be a hot key or a slow downstream write.'),
    ("user", 'it was a hot key, tenant 88412. we throttled them to 250 msg/s'),
    ("assistant", 'Good. With that throttle in place the lag should drop within the hour.'),
    ("user", 'someone asked whether we could just bump heap. heap stays at 6 GB, the nodes have nothing left to give'),
    ("assistant", 'Makes sense. Increasing heap on a full node would only move the problem to the page cache.'),
    ("user", 'fix is merged as 5be01c9, goes out with release 2024.31'),
    ("assistant", "Nice. I'll note the release and watch for it."),
    ("user", "release 2024.31 got pulled because of the licence thing. it's 2024.32 now"),
    ("assistant", 'Alright, the fix ships with the following one.'),
    ("user", "can you tell me what backpressure really is? explain like I'm new"),
    ("assistant", 'Imagine a kitchen where the cook is slower than the waiters taking orders. Backpressure is the cook telling the waiters to slow down rather than letting the pile of slips grow until nobody can find anything. In systems, the consumer signals the producer, or the buffer between them is limited so the producer has to wait.'),
    ("user", 'nice. so, customer report: exports from tenant 90077 have rows missing since Tuesday'),
    ("assistant", "I'd compare the counts at the source and at the sink for one day to see where the rows disappear."),
    ("user", 'did that: 1,204,551 in, 1,204,310 out. 241 rows gone'),
    ("assistant", 'A difference that small often points to filtering or to a partial batch that was dropped on retry.'),
    ("user", "bingo, partial batch. we'll replay from the raw bucket s3://ing-raw-eu/2024-08/ rather than ask the customer to resend"),
    ("assistant", 'A replay from raw keeps it on our side. I would run it on a copy first.'),
    ("user", 'always on a copy, yes. last time someone replayed straight into live and double-billed half of Belgium'),
    ("assistant", 'Ouch. A copy it is.'),
    ("user", 'alert thresholds: warn at 10 min lag, page at 25'),
    ("assistant", 'Those look sane for this load.'),
    ("user", 'hm, 25 is too late after last night. page at 15'),
    ("assistant", 'Fifteen gives you more room to react.'),
    ("user", 'write me a two line status for the channel please'),
    ("assistant", '"Lag on the affected shard is back to normal after throttling a hot key; a fix is on its way. Missing export rows are understood and will be replayed from raw data."'),
    ("user", 'postmortem is due Thursday 16:00, doc is PM-2291, Rafael writes the timeline'),
    ("assistant", 'I can prepare the skeleton if Rafael wants one.'),
)  # fmt: skip
ON_CALL_VALUES: tuple[Planted, ...] = (
    ("identifier", 'grafana.internal/d/ing-7f2', ()),
    ("identifier", 'docs/oncall/ingest.md', ()),
    ("safety_rule", 'nobody on our side touches', ()),
    ("identifier", '+353 85 555 0199', ()),
    ("identifier", '88412', ()),
    ("constraint", '250 msg/s', ()),
    ("constraint", '6 GB', ()),
    ("identifier", '5be01c9', ()),
    ("updated_value", '2024.32', ('2024.31',)),
    ("identifier", '90077', ()),
    ("number", '241', ()),
    ("identifier", 's3://ing-raw-eu/2024-08/', ()),
    ("safety_rule", 'on a copy', ()),
    ("updated_value", 'page at 15', ('page at 25',)),
    ("identifier", 'PM-2291', ()),
    ("number", '16:00', ()),
)  # fmt: skip
HOSPITAL: tuple[Line, ...] = (
    ("user", '我妈下个月来住院做膝关节置换，想请你帮我理一理要准备什么'),
    ("assistant", '好的。一般要准备病历、换洗衣物、防滑拖鞋，还有陪护的安排。请问手术日期定下来了吗？'),
    ("user", '手术是11月18号，市二院骨科，主刀韩主任。床位号还没给'),
    ("assistant", '明白。术前一般会安排血常规、心电图和胸片，住院当天会有护士带着走流程。'),
    ("user", '她有房颤，一直吃华法林，心内的医生交代术前五天停，别听骨科护士随口说的三天'),
    ("assistant", '停药的事按心内医生的意见来比较稳妥，可以请两个科室之间书面沟通一下。'),
    ("user", '对，还有头孢她一碰就起疹子喘不上气，这个你每次写清单都得带上'),
    ("assistant", '好的，我会写在清单最上面。'),
    ("user", '住院押金说是3万，医保卡尾号6625，我哥先垫'),
    ("assistant", '记下了。押金的收据要留好，出院结算的时候要用。'),
    ("user", '陪护我们三个轮：我周一到周三，我哥周四周五，周末请护工刘姐，一天260'),
    ("assistant", '这样安排挺合理的。护工最好提前说好夜里几点翻身、几点量血压。'),
    ("user", '术后一般多久能下地？'),
    ("assistant", '不同的人差别挺大，通常第二天就会在医生指导下试着站一站，之后慢慢增加。康复师会根据情况调整，不用太着急，重点是坚持。'),
    ("user", '床位下来了，8楼23床'),
    ("assistant", '好的，靠窗还是靠门？如果怕吵可以问问能不能调。'),
    ("user", '护士台电话0571-8899-2310，有事打这个，别打韩主任手机'),
    ("assistant", '好的，有事先联系护士台。'),
    ("user", '她爱喝粥，医院的饭她嫌咸'),
    ("assistant", '可以在家煮好带过去，用保温桶装，少放盐，也可以加一点瘦肉末。'),
    ("user", '刚接到电话，韩主任出国开会，手术往后挪到22号了'),
    ("assistant", '那停药的时间也要跟着往后算，记得和心内那边再确认一次。'),
    ("user", '护工刘姐家里有事来不了，换成张阿姨，价钱一样'),
    ("assistant", '好的，张阿姨第一次来的话，可以提前半天交接一下。'),
    ("user", '家里要不要装扶手？'),
    ("assistant", '建议在卫生间和床边各装一个，高度大约到手腕的位置。另外地垫容易打滑，可以先收起来。'),
    ("user", '扶手就买网上那款，订单尾数 90418，周六到货'),
    ("assistant", '到货以后先试一下承重，墙面如果是空心砖要用专门的膨胀螺栓。'),
    ("user", '亲戚来问病情，统一说恢复得挺好，房颤的事一个字都不往外说，她好面子'),
    ("assistant", '好的，我帮你拟一段给亲戚群的话，只讲恢复情况。'),
    ("user", '出院以后的复查是术后第6周，片子编号 XR-20873 要带上'),
    ("assistant", '好的，复查那天尽量安排早一点的号，人少一些。'),
)  # fmt: skip
HOSPITAL_VALUES: tuple[Planted, ...] = (
    ("identifier", '韩主任', ()),
    ("safety_rule", '术前五天停', ()),
    ("safety_rule", '头孢', ()),
    ("number", '3万', ()),
    ("identifier", '6625', ()),
    ("number", '260', ()),
    ("identifier", '8楼23床', ()),
    ("identifier", '0571-8899-2310', ()),
    ("updated_value", '22号', ('11月18号',)),
    ("updated_value", '张阿姨', ()),
    ("identifier", '90418', ()),
    ("safety_rule", '一个字都不往外说', ()),
    ("identifier", 'XR-20873', ()),
    ("number", '第6周', ()),
    ("constraint", '粥', ()),
)  # fmt: skip


def stories(chatter: int = 3) -> tuple[CanaryScenario, ...]:
    """The three scenarios, with `chatter` turns of small talk after each of their turns."""
    return (
        _story("move", MOVE, MOVE_VALUES, chatter),
        _story("on-call", ON_CALL, ON_CALL_VALUES, chatter),
        _story("hospital", HOSPITAL, HOSPITAL_VALUES, chatter),
    )


def _story(name: str, lines: tuple[Line, ...], planted: tuple[Planted, ...], chatter: int) -> CanaryScenario:
    texts = canary_texts_zh if name == "hospital" else canary_texts_en
    rng = random.Random(name)
    messages: list[Wire] = []
    places: dict[str, list[int]] = {value: [] for _, value, _ in planted}
    for role, text in lines:
        messages.append({"role": role, "content": text})
        for value in places:
            if role == "user" and value in text:
                places[value].append(len(messages))
        if role == "assistant":
            for _ in range(chatter):
                messages.append({"role": "user", "content": filled(rng.choice(texts.USER_FILLER), rng, texts.SLOTS)})
                reply = filled(rng.choice(texts.ASSISTANT_FILLER), rng, texts.SLOTS)
                messages.append({"role": "assistant", "content": reply})
    found = tuple(
        TypedCanary(kind=kind, value=value, stale=stale, ordinals=tuple(places[value]))
        for kind, value, stale in planted
    )
    return CanaryScenario(name=name, messages=tuple(messages), canaries=found)
