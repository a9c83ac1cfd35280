"""Content words: what a sentence is about once function words, cues and values are taken away.

English words are lower-cased and lose a plural or verb ending; a run of Chinese is cut at function
characters and gives its character bigrams (one-character rests stay as they are). Opposites (`CONTRASTS`)
tell two facts with the same words apart: a staging port and a production port are never an update of each
other.
"""

from __future__ import annotations

import re

STOP = frozenset(
    """
    a an the and or but if then else so as at by for from in into of off on onto out over to up with about
    after again all also am any are aren't be because been before being both can could did do does doing
    don't down during each few further had has have having he her here hers him his how i i'd i'll i'm i've
    is isn't it it'd it'll it's its itself just let let's like me more most my myself no nor not now of once
    only other our ours own please same she should some still such than that that's the their theirs them
    themselves there there's these they they're this those though through too under until us very was wasn't
    we we'd we'll we're we've well were what what's when where which while who who's whom why will would yes
    yeah you you'd you'll you're your yours ok okay actually instead change changed changes move moved
    switch switched scratch correction longer anymore make made making set bump bumped raise raised lower
    lowered update updated new old going went go goes gone get gets got use used uses using put keep kept
    got want wants need needs say said says think thought know really maybe sorry oops today currently
    latest rather replace replaced much many must never always every everything anything nothing nobody
    anyone someone something one two three first even ever already yet else turn turns turned back way thing
    things stuff lot bit kind sort right sure fine good great team people guys everyone mind second forget
    drop dropped cut revised becomes became wait hold earlier later soon decided decide settled pick picked
    choose chose final finally agreed stick stay stays till around roughly exactly
    """.split()  # noqa: SIM905  -- a paragraph of words, not a list of two hundred literals
)
CONTRASTS: dict[str, int] = {
    word: group
    for group, line in enumerate(
        """
        staging production prod dev development test testing qa canary sandbox uat preprod
        north south east west northern southern eastern western
        primary secondary backup replica standby mirror main fallback
        inbound outbound outgoing incoming return departure arrival departing arriving
        internal external public private
        frontend backend mobile desktop ios android web
        read write reader writer upload download
        minimum maximum min max
        morning afternoon evening night lunch dinner breakfast
        upstairs downstairs upper left right front rear
        old-site new-site warehouse store shop office home
        adult adults child children kid kids infant senior
        wholesale retail domestic international
        buyer seller supplier customer vendor client landlord tenant
        hotel flight train car taxi bus
        soft hard
        hot cold
        生产 线上 测试 预发 开发 灰度 沙箱
        华东 华北 华南 西南 华中
        主库 从库 备库 主机 备机
        去程 返程 回程 出发 到达
        上午 下午 晚上 早上 中午 早餐 午餐 晚餐
        内网 外网 公网
        前端 后端
        最大 最小 上限 下限
        大人 儿童 成人 孩子 老人
        一楼 二楼 三楼
        北京 上海 广州 深圳 杭州 成都 南京 武汉 西安 苏州
        甲方 乙方 买方 卖方
        """.strip().splitlines()
    )
    for word in line.split()
}
_ZH_CONTRAST = tuple(word for word in CONTRASTS if not word.isascii())
_ZH_STOP = re.compile(
    "(?:推迟|提前|延期|延长|缩短|更正|计划有变|说错|现在|目前|以后|往后|今后|设成|设为|决定|采用|选用|定在|定为|之前|刚才"
    "|[的了是在我你他她它们这那就都也还和与吧呢啊嘛吗呀把被给让到从向对很太更最会能可个上下之其为成改换调再现不要])+"
)
_ZH_RUN = re.compile(r"[\u3400-\u9fff]+")


def stem(word: str) -> str:
    """The word without a plural or verb ending; the possessive goes first.

    >>> [stem(w) for w in ("ports", "refunding", "Dana's".lower(), "batches", "status")]
    ['port', 'refund', 'dana', 'batch', 'status']
    """
    word = word.removesuffix("'s")
    if len(word) > 5 and word.endswith("ing"):
        return word[:-3]
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    if len(word) > 4 and word.endswith("ed"):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def bigrams(text: str) -> set[str]:
    """Character bigrams of the Chinese in a text, function characters left out."""
    found: set[str] = set()
    for run in _ZH_RUN.findall(text):
        for part in _ZH_STOP.split(run):
            if len(part) > 1:
                found.update(part[i : i + 2] for i in range(len(part) - 1))
            elif part:
                found.add(part)
    return found


def contrasts(words: frozenset[str], text: str) -> dict[int, set[str]]:
    """Which opposites a sentence names, by group."""
    named: dict[int, set[str]] = {}
    for word in words:
        group = CONTRASTS.get(word)
        if group is not None:
            named.setdefault(group, set()).add(word)
    if not text.isascii():
        for word in _ZH_CONTRAST:
            if word in text:
                named.setdefault(CONTRASTS[word], set()).add(word)
    return named
