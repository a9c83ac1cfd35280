# ruff: noqa: E501  -- classes of words read better a line each
"""Words that mean the same, words that exclude each other, and words that only say that somebody wishes something.

`SAME` maps a stem to its class; `RIVALS` are closed classes (colours, languages, formats) of which two claims may not
name different members; `MANNER` are words of wishing and asking, which a claim does not turn on; `NEGATIVE` are words
that turn a claim round; `LIMITS` are function words that a claim does turn on. All hand-set; nothing is trained.
"""

from __future__ import annotations

from ctxsteward.summarizers.language import stem


def _classes(text: str) -> dict[str, str]:
    return {stem(word): line.split()[0] for line in text.strip().splitlines() for word in line.split()}


SAME: dict[str, str] = _classes(
    """
    answer answers reply replies respond response responses answering replying responding
    short brief briefly concise concisely terse succinct compact shorter
    long lengthy verbose detailed
    bullet bullets bulleted bulletpoint bulletpoints
    send sends sent email emails mail mails post ship ships deliver delivered delivery
    write writes written wrote writing
    flight flights fly flies flying flew
    run runs ran running
    take takes took taken taking
    eat eats ate eaten eating
    supplier supply supplies supplied supplying
    quote quotes quoted cite cites cited
    buy purchase purchases purchased bought
    house home flat apartment
    live lives living reside resides based
    job work works working employed profession occupation
    doctor physician gp
    child children kid kids
    wife husband spouse partner
    phone telephone mobile cell
    photo photos picture pictures image images
    movie movies film films
    begin begins start starts starting open opens opening
    end ends finish finishes close closes closing
    meeting meetings call calls standup
    allergic allergy allergies
    vegetarian veggie
    refund refunds refunding reimburse reimbursement
    customer customers client clients
    deploy deploys deployment deployments release releases rollout
    bug bugs defect defects
    car automobile
    error errors failure failures
    repo repository
    docs documentation
    test tests testing
    limit limits cap maximum max ceiling
    budget budgets
    colour color colors colours
    favourite favorite
    seat seats
    trip trips travel journey
    report reports reporting
    invoice invoices bill bills
    """
)
MANNER = frozenset(
    stem(word)
    for word in """
    prefer prefers preferred preference like likes love loves enjoy enjoys wish wishes hope hopes please kindly want
    hate hates dislike dislikes avoid avoids skip remember note fyi general ideally rule thumb case default future
    write give gives provide show format deliver try happy best better appreciate fan
    per go goes happen happens name named called anybody anyone exception written wrote usual usually typically normally mostly generally currently now everybody
    """.split()  # noqa: SIM905  -- a paragraph of words
)
COMMON = frozenset(
    stem(word)
    for word in """
    great good amazing awesome cool nice fun wonderful incredible fantastic lovely beautiful special perfect
    thing things time times day days week weeks month months year years life world people person someone somebody
    everything lot lots bit way kind part place feel feels feeling felt think thought know known see seen saw look looks
    looking help helps helping thank thanks work works working try tries trying tried make makes made do done doing
    find found come came coming get got keep keeps keeping going happen happened talk talks talking tell told ask
    start started change changed real really still ever even soon lately recent recently new last next big small little
    long much many more important passionate dream dreams goal goals support sure able excited proud grateful hard
    since spoke moment memory memories experience reminded remind inspire inspired inspiring difference impact
    """.split()  # noqa: SIM905
)
"""Words that two claims may well share by chance: sharing only these is sharing nothing."""
NEGATIVE = frozenset(
    """
    not never no don't doesn't didn't won't can't cannot isn't aren't shouldn't mustn't without avoid avoids stop
    hate hates dislike dislikes nobody neither nor refuse refuses quit quits
    """.split()  # noqa: SIM905
)
LIMITS: dict[str, str] = {
    word: line.split()[0]
    for line in """
        before until
        after since following
        above over exceeding
        below under
        except unless
        atmost
        atleast
        more longer bigger higher
        less fewer shorter smaller lower
        off
        first
        last
        below
        以上 超过
        最多
        至少
        以下 低于 不到
        除非 除了
        关闭 关掉
    """.strip().splitlines()
    for word in line.split()
}
RIVALS: dict[str, int] = {
    stem(word): group
    for group, line in enumerate(
        """
        red blue green yellow black white grey gray orange purple pink brown
        english german french spanish italian chinese japanese korean russian portuguese dutch polish arabic turkish hindi
        json yaml xml csv markdown html pdf docx toml latex
        python java javascript typescript rust golang ruby php kotlin swift scala perl
        metric imperial
        formal informal casual
        window aisle middle
        email phone sms slack letter fax
        tea coffee water juice beer wine milk
        small medium large tiny huge
        short long
        economy business first-class
        debit credit cash paypal invoice
        dog cat horse rabbit bird fish
        brother sister mother father son daughter aunt uncle cousin grandmother grandfather
        breakfast lunch dinner
        postgres mysql sqlite mongodb redis
        linux macos windows
        north south east west
        spring summer autumn winter
        monday tuesday wednesday thursday friday saturday sunday
        january february march april may june july august september october november december
        """.strip().splitlines()
    )
    for word in line.split()
}
ZH_MANNER: tuple[str, ...] = tuple(
    """
    我喜欢 我更喜欢 喜欢 更喜欢 偏好 偏爱 更愿意 希望你 希望 请你 请 麻烦 尽量 最好 一点儿 一些 总是 一直 以后 今后 往后 想要 记住 记得 注意 平时 通常 一般 每次 都要 需要 应该 务必 一定 必须 帮我 给我 用的是 使用
    不要 不喜欢 不想 不用 不能 不可以 别再 别 没有 讨厌 禁止 不得 从不 拒绝 不吃 不爱
    """.split()  # noqa: SIM905
)
"""Taken out before characters are compared; the longest first."""
ZH_NEGATIVE: tuple[str, ...] = (
    "不要",
    "不喜欢",
    "不想",
    "不用",
    "不能",
    "不可以",
    "别",
    "没有",
    "讨厌",
    "禁止",
    "不得",
    "从不",
    "拒绝",
    "不吃",
    "不爱",
    "不",
)
ZH_FALSE_NEGATIVE: tuple[str, ...] = (
    "不过",
    "不错",
    "不管",
    "不但",
    "不仅",
    "特别",
    "区别",
    "级别",
    "类别",
    "别人",
    "性别",
    "识别",
    "告别",
    "分别",
    "不低于",
    "不少于",
    "不超过",
)
ZH_SAME: dict[str, str] = {
    word: line.split()[0]
    for line in """
        简短 简洁 精简 简明 简练 短小 短一点 短些 短点
        回答 回复 答复 作答 应答
        详细 详尽
        退款 退钱 退费 退货款
        住在 居住在 定居 家在
        工作 上班 任职
        孩子 小孩
        素食 吃素 素食者 素食主义
        发票 票据
        发到 发给 发送到 寄到 寄给 寄往
        邮箱 电子邮箱 电邮
        中文 汉语
        英文 英语
        开始 启动 开门 营业
        结束 完成 关门
        列表 清单 要点
        期限 时限 有效期
        客户 顾客 用户
        飞机 航班
        靠窗 窗边
        文件 文档
        保留 保存 留存
        修改 更改 改动 改
        会议 例会 开会
    """.strip().splitlines()
    for word in line.split()
}
ZH_STOP = frozenset(
    "的了是在我你他她它们这那就都也还和与吧呢啊嘛吗呀把被给让到从向对很太能可个之其为成再会要有用时来请说里一律候收"
)
"""Characters that a claim does not turn on."""
ZH_RIVALS: dict[str, int] = {
    word: group
    for group, line in enumerate(
        """
        哥哥 姐姐 弟弟 妹妹 爸爸 妈妈 父亲 母亲 儿子 女儿 爷爷 奶奶 外公 外婆 老公 老婆 妻子 丈夫
        红 蓝 绿 黄 黑 白 灰 紫 橙 粉
        中文 英文 日文 法文 德文 韩文 粤语
        东 南 西 北
        靠窗 过道
        茶 咖啡 牛奶 果汁 啤酒
        大份 小份 中份
        公制 英制
        摄氏 华氏
        早餐 午餐 晚餐
        现金 信用卡 支付宝 微信
        """.strip().splitlines()
    )
    for word in line.split()
}

SPELLINGS: tuple[tuple[str, str], ...] = (
    (r"\b(\d{1,2})\.(\d{2})(?=\s*[ap]\.?m\b)", r"\1:\2"),
    (
        r"\b(?:no more than|not more than|at most|up to|a maximum of|(?:must|may|should) not exceed|not exceeding)\b",
        "atmost",
    ),
    (r"\b(?:no less than|not less than|at least|a minimum of)\b", "atleast"),
    ("个(?=小时|钟头|星期|礼拜)", ""),
    ("不超过|不得超过|不高于|不多于|不能超过|不要超过|别超过", "最多"),
    ("不低于|不少于|不得低于", "至少"),
    ("((?:周|星期|礼拜)[一二三四五六日天])(?=[早晚上下中])", r"\1 "),
    ("每((?:周|星期|礼拜)[一二三四五六日天])", r"\1"),
)
"""Patterns of ways to write one thing, each with the way that stands for all of them."""
