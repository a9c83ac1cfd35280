"""Units, currencies and number words that make a number mean something, as lookup tables.

A unit maps to (family, scale): ``kb`` and ``mb`` keep their own family, because 40 MB is not 40 KB and
nobody restates one as the other. Chinese measure words that only count (``个``, ``人``) are families of their
own.
"""

from __future__ import annotations


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
