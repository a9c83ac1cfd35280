"""Content words: what a sentence is about once function words, cues and values are taken away.

English words are lower-cased and lose a plural or verb ending; a run of Chinese is cut at function
characters and gives its character bigrams (one-character rests stay as they are). Opposites (`CONTRASTS`)
tell two facts with the same words apart: a staging port and a production port are never an update of each
other.

Sentences, clauses and lines of a text, as character spans of the original.

Spans, not copies: a bullet may only hold what stands in an original, so nothing here rewrites a character.
English sentences end at ``. ! ?`` before white space (not after a common abbreviation), Chinese ones at
``。！？；``; a line of a list, a table or a code block is a sentence of its own; a line that goes on in lower
case is the same sentence. All passes are linear in the text.

Units, currencies and number words that make a number mean something, as lookup tables.

A unit maps to (family, scale): ``kb`` and ``mb`` keep their own family, because 40 MB is not 40 KB and
nobody restates one as the other. Chinese measure words that only count (``个``, ``人``) are families of their
own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

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


class SentenceSpan(NamedTuple):
    """Character offsets into the original text."""

    start: int
    stop: int


MAX_SENTENCE_CHARS = 600
"""A longer run without an end mark is cut: minified data and base64 are no sentences."""

_END = re.compile(
    r"(?<![.!?])[.!?]++[\"'”’)\]*_]*+(?=\s)|[。！？；]+[”’」』）]*|…{2,}|;(?=\s)|[\n\r\u2028\u2029\x0b\x0c\x85]+(?![a-z])"
)
_LEAD = re.compile(r"[\s>#|*+•·–—-]*(?:\(?\d{1,2}[.)、](?=\s|[^\d\s])\s*)?(?:\[[ xX]\]\s*)?[*_]*")
_ABBREVIATED = re.compile(
    r"(?:\b(?:e\.g|i\.e|mr|mrs|ms|dr|prof|vs|no|nr|st|approx|etc|inc|ltd|dept|fig|sec|al|ca|cf|min|max)|\b[A-Za-z])\.$",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[,，;；:：](?=\s|[^\x00-\x7f])\s*|(?<!\s)\s++[—–-]++\s+|——|(?<!\s)\s*+[()（）]\s*|[()（）]\s*"
    r"|(?<!\s)\s++(?=(?:because|since|which|while|although|though|but|so that|otherwise)\s)"
    r"|(?=因为|所以|但是|不过|而且)"
)


def sentences(text: str, start: int = 0, stop: int | None = None) -> Iterator[SentenceSpan]:
    """Yield the sentences of ``text[start:stop]``, list markers and outer white space left out.

    >>> text = "Ship it. Port 5432, e.g. for dev!\\n- 别动生产库。明天再说"
    >>> [text[piece.start:piece.stop] for piece in sentences(text)]
    ['Ship it.', 'Port 5432, e.g. for dev!', '别动生产库。', '明天再说']
    """
    stop = len(text) if stop is None else stop
    begin = start
    for match in _END.finditer(text, start, stop):
        end = match.end()
        if text[match.start()] == "." and (
            _ABBREVIATED.search(text, max(begin, match.start() - 8), match.start() + 1)
            or text[begin : match.start()].strip().isdecimal()  # the number of a list item
        ):
            continue
        yield from _trimmed(text, begin, end)
        begin = end
    yield from _trimmed(text, begin, stop)


def _trimmed(text: str, start: int, stop: int) -> Iterator[SentenceSpan]:
    lead = _LEAD.match(text, start, stop)
    start = lead.end() if lead else start
    while stop > start and text[stop - 1].isspace():
        stop -= 1
    while stop - start > MAX_SENTENCE_CHARS:
        cut = text.rfind(" ", start + MAX_SENTENCE_CHARS // 2, start + MAX_SENTENCE_CHARS)
        cut = cut if cut > 0 else start + MAX_SENTENCE_CHARS
        yield SentenceSpan(start, cut)
        start = cut
        while start < stop and text[start].isspace():
            start += 1
    if stop - start > 1:
        yield SentenceSpan(start, stop)


def clauses(text: str) -> list[SentenceSpan]:
    """Cut one sentence at commas, colons, dashes, brackets and subordinating words.

    >>> text = "The budget, which Ana set, is 40 days"
    >>> [text[piece.start:piece.stop] for piece in clauses(text)]
    ['The budget', 'which Ana set', 'is 40 days']
    """
    pieces: list[SentenceSpan] = []
    begin = 0
    for match in _CLAUSE.finditer(text):
        if match.start() > begin:
            pieces.append(SentenceSpan(begin, match.start()))
        begin = match.end()
    if begin < len(text):
        pieces.append(SentenceSpan(begin, len(text)))
    return pieces


def _families(table: str) -> dict[str, tuple[str, int]]:
    return {word: (line.split()[0], 1) for line in table.strip().splitlines() for word in line.split()}


UNITS: dict[str, tuple[str, int]] = {
    **_families(
        """
        ms millisecond milliseconds
        second seconds sec secs s
        minute minutes min mins
        hour hours hr hrs h
        day days
        week weeks wk wks
        month months
        year years yr yrs
        night nights
        kb kib
        mb mib
        gb gib
        tb tib
        byte bytes
        kg kilo kilos kilogram kilograms
        g gram grams
        mg milligram milligrams
        ml millilitre milliliter millilitres milliliters
        l litre litres liter liters
        km kilometre kilometres kilometer kilometers
        m meter meters metre metres
        cm
        mm
        mile miles
        foot feet ft
        inch inches
        degree degrees celsius fahrenheit °c °f c f
        watt watts w kw kwh mwh
        volt volts v
        hz mhz ghz
        rpm
        rps qps tps
        px
        dpi
        $ dollar dollars bucks usd
        € euro euros eur
        £ pound pounds quid gbp
        ¥ yuan rmb cny
        % percent pct
        people person guests guest attendees attendee participants participant
        user users
        seat seats
        table tables
        room rooms
        item items
        unit units
        piece pieces
        page pages
        word words
        character characters chars
        line lines
        row rows
        record records
        file files
        request requests
        call calls
        retry retries
        attempt attempts
        step steps
        replica replicas
        instance instances
        node nodes
        core cores cpu cpus
        thread threads
        worker workers
        shard shards
        partition partitions
        token tokens
        point points
        ticket tickets
        box boxes
        bag bags
        pallet pallets
        crate crates
        copy copies
        chair chairs
        bottle bottles
        cup cups
        tablet tablets
        dose doses
        student students
        child children kids
        employee employees
        customer customers
        vote votes
        time times
        x
        k
        """
    )
}
CURRENCIES: dict[str, str] = {
    "$": "$", "€": "€", "£": "£", "¥": "¥", "usd": "$", "eur": "€", "gbp": "£", "rmb": "¥", "cny": "¥",
}  # fmt: skip
ZH_UNITS: dict[str, tuple[str, int]] = {
    **_families(
        """
        ms 毫秒
        second 秒 秒钟
        minute 分钟 分
        hour 小时 钟头
        day 天 日
        week 周 星期
        month 个月 月
        year 年
        night 晚
        kg 公斤 千克
        g 克
        jin 斤
        ml 毫升
        l 升
        km 公里
        m 米
        cm 厘米
        mm 毫米
        degree 度
        ¥ 元 块 块钱
        % 个点
        people 人 位 名
        item 个 件 条 项 份 只 台 套 箱 张 本 辆 盒 包 瓶 片 颗 支
        times 次 遍 轮 倍
        row 行
        page 页
        clock 点 点半 点钟
        room 间 楼 层
        user 用户
        node 节点 副本 实例 核 线程 并发
        """
    ),
    "万": ("万", 10000),
    "万元": ("¥", 10000),
    "万块": ("¥", 10000),
    "千元": ("¥", 1000),
    "亿": ("万", 100000000),
    "%": ("%", 1),
}
NUMBER_WORDS: dict[str, int] = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100, "thousand": 1000, "dozen": 12,
}  # fmt: skip
DATE_WORDS: dict[str, str] = {
    word: word.rstrip("s") if word.endswith("days") else word
    for day in ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    for word in (day, day + "s")
} | dict.fromkeys(("tomorrow", "tonight", "christmas", "easter"), "")
for _word in ("tomorrow", "tonight", "christmas", "easter"):
    DATE_WORDS[_word] = _word
del _word
