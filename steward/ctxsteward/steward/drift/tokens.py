# ruff: noqa: E501  -- a phrasing a line reads better than wrapped ones
"""The words that turn a rule round, in English and Chinese: negations, modal words, conditions, opposites, bounds.

An *operator* is a phrase with a sign (-1 turns its clause round), a modality it lends, and whether it opens a condition
("unless", "without", "only if"). Phrases are found longest first. Idioms that look like an operator and are none
("no later than", "not only", "特别", "不同") are taken out before. Lists are hand-set; nothing is trained.

A text as tokens that tell what turns it round: operators, content words, figures, marks between clauses.

English is read by words, Chinese by characters; both look up the phrases of `vocabulary`, longest first. A token's
`key` is what two texts are aligned by: words as their stems, so that "share" is "sharing" and "don't" is "do not".
Reading is linear in the text.

>>> [token.key for token in tokens("Don't share customers' e-mails.")]
['do', 'not', 'share', 'custom', 'e', 'mail', '.']
>>> [token.key for token in tokens("不得透露密码")]
['不得', '透', '露', '密', '码']
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from ctxsteward.envelope.recall.terms import terms
from ctxsteward.schemas.profile import Modality
from ctxsteward.summarizers.language import STOP, sentences

Opens = Literal["", "if", "unless", "before", "past"]
"""if: a condition; unless: one turned round, as "without" is; before: what must not have happened yet; past: what stood
in front of it was a condition (之前)."""


class Operator(NamedTuple):
    """What a phrase does to its clause."""

    sign: Literal[1, -1] = 1
    modality: Modality | None = None
    opens: Opens = ""


def _phrases(text: str) -> list[str]:
    return [phrase.strip() for phrase in text.replace("\n", " ").split(";") if phrase.strip()]


_NOT = """
    not; never; no; none; nobody; no one; nothing; nowhere; neither; nor; cannot; hardly; barely; seldom; rarely; scarcely;
    avoid; avoids; avoided; avoiding; refrain; refrains; refraining; refuse; refuses; refused; refusing; refusal;
    decline; declines; declined; declining; deny; denies; denied; denying; denial; reject; rejects; rejected; rejecting; rejection;
    disallow; disallows; disallowed; disallowing; prevent; prevents; prevented; preventing; withhold; withholds; withheld; withholding;
    exclude; excludes; excluded; excluding; omit; omits; omitted; omitting; neglect; neglects; neglecting; forget; forgets; forgetting; forgot;
    fail; fails; failing; failure; lack; lacks; lacking; disable; disables; disabled; disabling; skip; skips; skipped; skipping;
    cease; ceases; stop; stops; stopped; stopping; ignore; ignores; ignored; ignoring; disregard; disregards; disregarded; disregarding;
    hide; hides; hidden; hiding; conceal; conceals; concealed; concealing; bypass; bypasses; bypassed; bypassing; violate; violates; violated; violating; block; blocks; blocked; blocking; revoke; revoked;
    hesitate; hesitates; hesitating; shy away; hold back; impossible; unacceptable; off limits; off-limits; out of bounds; opt out; opted out; unnecessary; needless
"""
_MUST_NOT = """
    must not; shall not; may not; forbidden; forbid; forbids; forbidding; prohibited; prohibit; prohibits; prohibiting; banned; ban; bans; not allowed; not permitted; not to be;
    under no circumstances; on no account; at no time; in no case; at no point; disapprove; disapproves; impermissible
"""
_MUST = """
    must; shall; have to; has to; is required to; are required to; required; require; requires; requiring; mandatory; compulsory; obligatory;
    need to; needs to; is to; are to; always; make sure; makes sure; ensure; ensures; ensuring; be sure; without fail; at all times; in all cases; in every case; every time; invariably;
    without exception; no exceptions; with no exceptions; obliged to; needed; be certain
"""
_SHOULD = "should; ought to; recommended; recommend; recommends; preferably; ideally; prefer to; prefer; try to; aim to; aim; strive to; advisable; encouraged to; expected to; where possible; when possible; if possible; as a rule; generally; usually; normally; typically; by default"
_MAY = "may; can; could; might; allowed; allowed to; allow; allows; allowing; permitted; permitted to; permit; permits; permitting; optional; optionally; free to; welcome to; able to; entitled to; authorized to; acceptable; okay to; ok to; is fine; are fine; fine to; is ok; is okay; are okay; is all right; all right to; is alright; sometimes; opt in; at your discretion"
_PLAIN = "accept; accepts; accepted; accepting; include; includes; included; including; enable; enables; enabled; enabling; follow; follows; following; obey; obeys; respect; respects; observe; comply; comply with; complies with; honor; honour; grant; grants; granted; granting; approve; approves; approved; approving; remember; remembers; remember to; continue; continues; everybody; everyone; all; every; any; anyone; anybody; please; do; does; did; be; go ahead and; nobody but; no one but; none but; nobody other than; no one other than"
_IF = "if; when; whenever; once; where; after; in case; provided; provided that; as long as; only if; only when; only with; only after; only once; only where; on condition that"
_UNLESS = "unless; without; except; except when; except if; except where; except for; save for; instead of; rather than; other than; but not; absent; as opposed to; in place of"

_BEFORE = "before; prior to; until"

ENGLISH: dict[str, Operator] = {
    **dict.fromkeys(_phrases(_PLAIN), Operator()),
    **dict.fromkeys(_phrases(_NOT), Operator(-1)),
    **dict.fromkeys(_phrases(_MUST_NOT), Operator(-1, "must_not")),
    **dict.fromkeys(_phrases(_MUST), Operator(1, "must")),
    **dict.fromkeys(_phrases(_SHOULD), Operator(1, "should")),
    **dict.fromkeys(_phrases(_MAY), Operator(1, "may")),
    **dict.fromkeys(_phrases(_IF), Operator(1, None, "if")),
    **dict.fromkeys(_phrases(_UNLESS), Operator(-1, None, "unless")),
    **dict.fromkeys(_phrases(_BEFORE), Operator(1, None, "before")),
}

ENGLISH_IDIOMS: tuple[str, ...] = tuple(
    _phrases(
        "no more than; no less than; no fewer than; no later than; no earlier than; no longer than; not more than; not less than; not fewer than; not later than; not exceed; not exceeding; never exceed; never more than; never less than; never fewer than; must not exceed; may not exceed; should not exceed; cannot exceed; no charge; no cost; no fee; no extra cost; free of charge; not even; not only; not just; not merely; not simply; whether or not; or not; no matter; nothing but; none other than; no problem; no doubt; if at all; as soon as; can be found; may i; can i; how can i; all the more; not yet; first of all; above all; after all; in all; do so; does so; all right; at all"
    )
)
"""They turn nothing round; those with a figure bound it (`UPPER`, `LOWER`)."""

_ZH_NOT = "不;没有;没;未曾;未;无;非;拒绝;拒;避免;停止;忽略;无视;忘记;遗漏;省略;跳过;绕过;违反;阻止;排除;从不;永不;从未;切忌;免;谢绝;停用;驳回"
_ZH_MUST_NOT = "不得;不能;不可;不可以;不许;不准;不允许;不应;不应该;不应当;不该;不要;不宜;禁止;严禁;切勿;请勿;勿;别;绝不;决不;绝不能;决不能;绝对不能;绝对不要;绝不可;绝不可以;任何情况下都不得;禁;严格禁止;千万别;千万不要;不得以任何方式"
_ZH_NEED_NOT = "无需;无须;不必;不用;不需要;不必须;毋须;毋需"
_ZH_MUST = "必须;务必;一定;一定要;须;需;需要;必需;要求;总是;始终;永远;一律;一贯;确保;保证;每次;每次都;切记;得要;都要;均须;均需;应予;必;记得;务请"
_ZH_SHOULD = "应;应该;应当;建议;尽量;最好;宜;尽可能;推荐;通常;一般;原则上;优先;努力"
_ZH_MAY = "没问题;没关系;无妨;可以;可;能;能够;允许;准许;许可;准;有权;可选;得以;有时;不妨;可自行"
_ZH_PLAIN = "接受;启用;包含;包括;遵守;遵循;遵照;服从;请;所有;任何;全部;一切;凡;牢记;都;均;要;继续;保持;进行"
_ZH_IF = "如果;若;如;当;一旦;只有;只要;仅当;仅在;只在;前提是;经;经过"
_ZH_PAST = "之前;以前;之后;以后;的情况下;情况下;时;的时候"
_ZH_UNLESS = "除非;未经;没有经过;除了;而非;而不是;不经;之外;以外;代替;未得到;未获"

CHINESE: dict[str, Operator] = {
    **dict.fromkeys(_phrases(_ZH_PLAIN), Operator()),
    **dict.fromkeys(_phrases(_ZH_NOT), Operator(-1)),
    **dict.fromkeys(_phrases(_ZH_NEED_NOT), Operator(-1, "may")),
    **dict.fromkeys(_phrases(_ZH_MUST_NOT), Operator(-1, "must_not")),
    **dict.fromkeys(_phrases(_ZH_MUST), Operator(1, "must")),
    **dict.fromkeys(_phrases(_ZH_SHOULD), Operator(1, "should")),
    **dict.fromkeys(_phrases(_ZH_MAY), Operator(1, "may")),
    **dict.fromkeys(_phrases(_ZH_IF), Operator(1, None, "if")),
    **dict.fromkeys(_phrases(_ZH_UNLESS), Operator(-1, None, "unless")),
    **dict.fromkeys(_phrases(_ZH_PAST), Operator(1, None, "past")),
    "不得不": Operator(1, "must"),
}

CHINESE_IDIOMS: tuple[str, ...] = tuple(
    _phrases(
        "无论如何;已经;经常;曾经;经理;经济;经验;经营;经典;经办;途经;任何情况下;在任何情况下;一切情况下;特别;区别;分别;级别;类别;性别;识别;个别;告别;别人;别的;别墅;辨别;鉴别;不同;不断;不久;不良;不便;不满;不足;不仅;不但;不只;不管;不论;无论;无关;无误;非常;并非不;是非;非凡;除非常;未来;未成年;没收;不过;不错;不少于;不多于;不超过;不得超过;不能超过;不可超过;不应超过;不高于;不低于;不得低于;不得少于;不能少于;不能低于;不得高于;不晚于;不早于;不迟于;不大于;不小于;不再是;是否;能否;可否;与否;可能;功能;性能;技能;智能;能力;能源;能量;应用;反应;响应;对应;供应;回应;相应;适应;应对;应急;主要;重要;摘要;概要;要点;纲要;必要;须知;认可;可靠;可见;可用;可爱;可读;可信;可行;需求;准确;标准;批准;基准;准备;准时;水准;对准;如下;如何;例如;比如;诸如;譬如;及时;同时;任何时候;什么时候;时候;到时;那时;此时;当时;按时;时间;小时;临时;随时;实时;时区;时效;平时;有时候;时长;时段;当前;当地;适当;相当;当天;当日;当事人;应当事人;成都;首都;都市;平均;均匀;能不能;可不可以;是不是;要不要;要么;要是;要不然;要紧;首要;次要;简要;扼要;索要;必要;邀请;申请;请求;请问;请假;免费;免责;以免;避免费;无线;非法;不法;一定程度;一定的;确定;规定;需方;必备;必然;未必然"
    )
)
"""非法 ("illegal") names a thing and turns nothing round, as 免费 ("free of charge") does."""

_OPPOSITES = """
    before:after; prior:after; public:private; public:confidential; publicly:privately; show:hide; display:hide; reveal:hide; reveal:conceal; disclose:conceal;
    open:close; open:closed; opened:closed; opening:closing; on:off; with:without; encrypted:plaintext; encrypt:decrypt; increase:decrease; increase:reduce; more:less; more:fewer; minimum:maximum;
    least:most; formal:casual; keep:delete; keep:discard; keep:remove; retain:delete; retain:discard; store:delete; save:delete; protect:expose; protect:leak; lock:unlock;
    add:remove; confirm:assume; verify:assume; verify:guess; trust:distrust; all:none; everyone:nobody; anyone:nobody; someone:nobody; everything:nothing; always:rarely; always:sometimes; often:rarely;
    true:false; honest:deceptive; honestly:deceptively; true:untrue; polite:rude; politely:rudely; short:long; brief:long; concise:verbose; briefly:verbosely; start:stop; earlier:later; early:late; both:neither; either:neither; first:last; trusted:untrusted; internal:external; include:exclude; accept:decline; agree:disagree; agree:refuse; like:dislike;
    mask:expose; redact:expose; mandatory:optional; required:optional; escalate:ignore; warn:hide; strict:lax; strictly:loosely; raise:lower; above:below; over:under; up:down; ask:assume; careful:careless; carefully:carelessly; proceed:stop;
    之前:之后; 以前:以后; 前:后; 公开:保密; 公开:隐藏; 公开:私下; 显示:隐藏; 展示:隐藏; 透露:隐瞒; 披露:隐瞒; 告知:隐瞒; 启用:停用; 启用:禁用; 开启:关闭; 打开:关闭; 增加:减少; 提高:降低; 加密:明文; 正式:随意; 内部:外部; 保留:删除; 保存:删除; 存储:删除; 保护:泄露; 保密:泄露; 锁定:解锁; 添加:删除; 核实:猜测; 确认:猜测; 信任:怀疑; 全部:无一; 总是:很少; 始终:偶尔; 总是:偶尔; 诚实:欺骗; 礼貌:粗鲁; 简短:冗长; 简洁:冗长; 简洁:详尽; 开始:停止; 优先:最后; 包含:排除; 接受:拒绝; 同意:拒绝; 同意:反对; 允许:拒绝; 批准:拒绝; 批准:驳回; 强制:可选; 必填:选填; 严格:宽松; 有:无; 有:没有; 脱敏:公开; 上限:下限; 最多:最少; 以上:以下; 谨慎:随意; 立即:延后; 报告:隐瞒; 遵守:违反; 遵守:无视; 遵循:无视
"""
OPPOSITES: frozenset[frozenset[str]] = frozenset(
    frozenset(p.strip() for p in pair.split(":")) for pair in _phrases(_OPPOSITES)
)
"""Words of which one in the other's place, with all else as it was, turns a sentence round."""

PREFIXES = ("un", "in", "im", "ir", "il", "non-", "non", "dis", "de", "mis")
"""They make a word its opposite."""

COMPARED = frozenset("more less fewer longer later earlier greater higher lower shorter older".split())  # noqa: SIM905
"""With "than" they bound a figure, and a "not" before them turns the bound and nothing else."""
ZH_COMPARED = ("超过", "多于", "少于", "低于", "高于", "大于", "小于")

UPPER: tuple[str, ...] = tuple(
    _phrases(
        "at most; no more than; not more than; never more than; no later than; not later than; not exceed; not exceeding; never exceed; must not exceed; may not exceed; should not exceed; cannot exceed; up to; within; under; below; less than; fewer than; maximum; maximum of; max; limit; limited to; a limit of; cap of; capped at; ceiling of; no longer than; not exceed; before; until; by; at the latest; or less; or fewer; shorter than; ≤; <; 不超过; 不得超过; 不能超过; 不可超过; 不应超过; 最多; 至多; 以内; 之内; 以下; 少于; 低于; 小于; 上限; 不高于; 不得高于; 不多于; 不大于; 不晚于; 不迟于; 最长; 最大; 最迟; 最晚; 内"
    )
)
LOWER: tuple[str, ...] = tuple(
    _phrases(
        "at least; no less than; not less than; no fewer than; not fewer than; never less than; never fewer than; more than; over; above; exceeds; exceed; exceeding; minimum; minimum of; min; no earlier than; longer than; older than; beyond; greater than; or more; after; or longer; at the earliest; ≥; >; 至少; 最少; 不少于; 不低于; 不得低于; 不得少于; 不能少于; 不能低于; 超过; 以上; 高于; 大于; 多于; 下限; 不早于; 不小于; 最短; 最小; 最早; 满"
    )
)

_SAME = """
    tell tells told telling inform informs informed notify notifies say says said disclose discloses disclosed disclosure reveal reveals revealed divulge share shares shared sharing; verify verifies verified verification check checks checked checking;
    obtain obtains obtained get receive received receives collect collects; ask asks asked asking request requests requested; delete deletes deleted deletion erase erased remove removes removed removal; keep keeps kept retain retained retention store stored hold holds held;
    begin begins began beginning start starts; end ends finish finishes; buy buys bought purchase purchases; assist assists help helps; answer answers reply replies respond responds response; show shows shown display displays; modify modifies modified modification alter alters;
    customer customers client clients; person persons people; locate locates located find finds found; email mail; grant grants granted give gives given giving; send sends sent; pay pays paid; sell sells sold; write writes written wrote; choose chosen chose pick; throw thrown; bring brings brought; lose lost; meet met; leave left; teach taught; hide hidden; break broken broke;
    treat treats treated consider considers considered regard regarded; accurate correct; short brief briefly concise; immediately instantly; sum amount amounts; way means method methods; allow permitted possible
"""
SAME: dict[str, str] = {
    stemmed: stems[0]
    for group in _phrases(_SAME)
    for stems in [[(terms(word) or [word])[0] for word in group.split()]]
    for stemmed in stems
}
"""A stem and the one that stands for it: irregular forms, and verbs of rules that mean the same."""
LIGHT = frozenset(
    (terms(word) or [word])[0]
    for word in _phrases(
        "use; take; takes; taken; make; makes; made; do; get; go; put; carry; perform; please; sure; happen; first; time; case; circumstances; somebody; someone; anything; something; together"
    )
)
"""Verbs and nouns that say nothing by themselves."""

EXCEPTS = frozenset(
    _phrases(
        "unless; except; excepted; excepting; exception; exceptions; barring; excluding; exempt; exempted; other than; besides; 除非; 除外; 除了; 例外"
    )
)
SOME = frozenset(
    _phrases(
        "some; few; several; certain; many; most; mostly; mainly; half; partly; sometimes; occasionally; often; usually; generally; hardly; rarely; 有些; 某些; 部分; 多数; 大多数; 少数; 偶尔; 有时; 通常"
    )
)
ADDS = frozenset(_phrases("also; even; too; additionally; anyway; 也; 还; 均可; 亦"))
WIDENS = frozenset(
    _phrases(
        "any; all; every; anybody; anyone; everybody; everyone; anything; everything; whatever; whichever; whoever; whenever; wherever; regardless; 任何; 所有; 一切; 全部; 谁"
    )
)
"""With a permission, they make it larger."""
WEAKER = frozenset(
    _phrases(
        "preferably; ideally; prefer to; prefer; try to; try; tri; want; aim to; aim; strive to; advisable; where possible; when possible; if possible; rather; practical; practicable; optional; optionally; 尽量; 最好; 尽可能; 建议; 宜; 优先; 原则上"
    )
)
"""They make a wish of a demand."""
ONLY = frozenset(
    _phrases("only; solely; exclusively; nobody but; no one but; none but; unless; 只; 仅; 只有; 仅当; 仅在; 只在; 才")
)
"""They keep everything else out."""


TokenKind = Literal["operator", "word", "small", "figure", "hard", "soft", "idiom"]
"""small: a function word; hard, soft: what parts clauses, and what may."""

_SMALL = (
    STOP
    | frozenset("will would us per via within upon shall ever even also then just their any each such i.e e.g".split())  # noqa: SIM905
) - frozenset(("first", "now", "keep", "change", "update", "use", "new", "old", "public", "final", "set", "make"))
_ZH_SMALL = frozenset(
    "的了着过是在和与及或并也将会把被给对向从到由于就才再还又地得这那其该您你我他她它们之为以等吧呢啊吗只仅先后"
)
_HARD_WORDS = frozenset(
    ("but", "however", "instead", "otherwise", "because", "whereas", "although", "though", "yet", "while", "so")
)
_ZH_HARD = ("但是", "但", "然而", "而是", "因为", "所以", "不过", "同时", "并且", "而且", "然后", "否则")
_TOKEN = re.compile(
    r"(?P<figure>[$€£¥]?\d+(?:[.,:]\d+)*(?:st|nd|rd|th)?%?)|(?P<word>[^\W\d_\u3400-\u9fff]+(?:'[^\W\d_\u3400-\u9fff]+)?)"
    r"|(?P<chinese>[\u3400-\u9fff]+)|(?P<hard>[;:.!?。；：！？—\n()（）]|--)|(?P<soft>[,，、])|(?P<none>[/·-])"
)
_CONTRACTED = {"can't": "can not", "cannot": "can not", "won't": "will not", "shan't": "shall not", "ain't": "is not"}
_QUOTES = str.maketrans("’‘＇", "'''")


class Token(NamedTuple):
    """One unit of a text."""

    kind: TokenKind
    key: str
    start: int
    """Character offsets in the text as it was normalized."""
    stop: int
    operator: Operator | None = None


def plain(text: str) -> str:
    """The text in one form of characters: NFKC, straight quotes, lower case."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_QUOTES)).translate(_QUOTES)
    return text.lower()


@lru_cache(maxsize=1 << 14)
def sentences_of(text: str) -> tuple[str, ...]:
    """The sentences of a text, in its plain form."""
    form = plain(text)
    return tuple(form[piece.start : piece.stop] for piece in sentences(form))


@lru_cache(maxsize=1 << 14)
def tokens(text: str) -> tuple[Token, ...]:
    """The tokens of one sentence."""
    raw: list[Token] = []
    form = plain(text)
    for match in _TOKEN.finditer(form):
        start, found = match.start(), match.group()
        match match.lastgroup:
            case "word":
                raw += [Token("word", word, start, match.end()) for word in _expanded(found)]
            case "chinese":
                raw += _chinese(found, start)
            case "figure":
                raw.append(Token("figure", found, start, match.end()))
            case "hard":
                raw.append(Token("hard", found, start, match.end()))
            case "soft":
                chinese = start > 0 and "\u3400" <= form[start - 1] <= "\u9fff"
                raw.append(Token("soft", "，" if chinese and found != "、" else found, start, match.end()))
    if len(raw) > 1 and raw[0].key in ("no", "不") and raw[1].kind == "soft":
        raw[0] = raw[0]._replace(kind="idiom", operator=None)  # "No, it is …" answers somebody; it turns nothing round
    return tuple(_unmet(_bounded(list(_english(raw)))))


def _unmet(found: list[Token]) -> list[Token]:
    """ "Not A before B" says what "not A without B" does, so a "before" behind a negation is one itself."""
    negated = False
    for index, token in enumerate(found):
        if token.operator is None:
            continue
        if token.operator.opens == "before" and negated:
            found[index] = token._replace(operator=Operator(-1, None, "before"))
        negated = negated or (token.operator.sign < 0 and not token.operator.opens)
    return found


def _bounded(found: list[Token]) -> list[Token]:
    """A "not" before "more than" bounds the figure; it turns its clause round no more.

    Of "not unlogged for more than a day" it stays: bound and prefix are each turned round, and it is logged in a day.
    """
    for index, token in enumerate(found):
        following = found[index + 1].key if index + 1 < len(found) else ""
        if not (token.key in COMPARED and following == "than") and token.key not in ZH_COMPARED:
            continue
        if _is_undone(found[:index]):
            continue
        for place in range(index - 1, -1, -1):
            before = found[place]
            if before.kind in ("hard", "soft") or (before.operator and before.operator.opens):
                break
            if before.operator is not None and before.operator.sign < 0:
                found[place] = before._replace(kind="idiom", operator=None)
                break
    return found


def _is_undone(before: Sequence[Token]) -> bool:
    """Whether the last word that says anything is what was not done: "unlogged", "unread"."""
    last = next((token for token in reversed(before) if token.kind not in ("small", "idiom")), None)
    return last is not None and last.kind == "word" and last.key.startswith("un") and len(last.key) > 4


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """A word without its endings."""
    return (terms(word) or [word])[0]


def _expanded(word: str) -> list[str]:
    if "'" not in word and word != "cannot":
        return [word]
    if word in _CONTRACTED:
        return _CONTRACTED[word].split()
    if word.endswith("n't"):
        return [word[:-3], "not"]
    return [word.partition("'")[0]]


def _by_first(phrases: Iterable[str]) -> dict[str, list[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for phrase in phrases:
        words = tuple(part for word in phrase.replace("-", " ").split() for part in _expanded(word))
        found.setdefault(words[0], []).append(words)
    return {first: sorted(set(rest), key=len, reverse=True) for first, rest in found.items()}


_IDIOMS = _by_first(ENGLISH_IDIOMS)
_OPERATORS = {
    tuple(p for w in phrase.replace("-", " ").split() for p in _expanded(w)): operator
    for phrase, operator in ENGLISH.items()
}
_PHRASES = _by_first(ENGLISH)


def _english(raw: list[Token]) -> Iterable[Token]:
    """Words joined to idioms and operators; all others to content or function words."""
    words = [token.key if token.kind == "word" else "\x00" for token in raw]
    index = 0
    while index < len(raw):
        token = raw[index]
        if token.kind != "word":
            yield token
            index += 1
            continue
        size, made = _phrase(words, index)
        counts = index + size < len(raw) and raw[index + size].kind == "figure"
        if made is not None and made.operator is not None and made.key in _BOUNDING and counts:
            made = token._replace(kind="small")  # "until 5 pm" bounds a figure
        yield made or _single(token)
        index += size


_BOUNDING = ("before", "after", "until", "prior to", "once", "within")


def _phrase(words: list[str], index: int) -> tuple[int, Token | None]:
    for table, is_idiom in ((_IDIOMS, True), (_PHRASES, False)):
        for phrase in table.get(words[index], ()):
            if tuple(words[index : index + len(phrase)]) == phrase:
                key = " ".join(phrase)
                if is_idiom:
                    return len(phrase), Token("idiom", key, 0, 0)
                return len(phrase), Token("operator", key, 0, 0, _OPERATORS[phrase])
    return 1, None


def _single(token: Token) -> Token:
    if token.key in _HARD_WORDS:
        return token._replace(kind="hard")
    if token.key in _SMALL or (len(token.key) == 1 and token.key.isascii()):
        return token._replace(kind="small")
    return token._replace(key=stem(token.key))


def _table(*groups: tuple[Iterable[str], Mapping[str, Operator]]) -> dict[str, list[tuple[str, Operator | None]]]:
    found: dict[str, list[tuple[str, Operator | None]]] = {}
    for phrases, operators in groups:
        for phrase in phrases:
            found.setdefault(phrase[0], []).append((phrase, operators.get(phrase)))
    return {first: sorted(rest, key=lambda each: -len(each[0])) for first, rest in found.items()}


_ZH_TABLE = _table((CHINESE_IDIOMS, {}), (ZH_COMPARED, {}), (CHINESE, CHINESE))


def _chinese(run: str, offset: int) -> list[Token]:
    made: list[Token] = []
    index = 0
    while index < len(run):
        place = offset + index
        hard = next((word for word in _ZH_HARD if run.startswith(word, index)), None)
        found = next((each for each in _ZH_TABLE.get(run[index], ()) if run.startswith(each[0], index)), None)
        if found is not None and found[0] == "时" and index + 1 < len(run):
            found = None  # a part of another word
        if found is not None and (hard is None or len(found[0]) > len(hard)):
            phrase, operator = found
            if operator is None:
                named = len(phrase) == 2 and phrase[0] != "不" and phrase not in ZH_COMPARED
                made += _characters(phrase, place) if named else [_idiom(phrase, place)]  # "特别" is a word like others
            elif phrase in ("未", "不", "无", "没有") and _ATTRIBUTE.match(run, index + len(phrase)):
                made.append(_idiom(phrase + ATTRIBUTIVE, place))
            else:
                made.append(Token("operator", phrase, place, place + len(phrase), operator))
            index += len(phrase)
        elif hard is not None:
            made.append(Token("hard", hard, place, place + len(hard)))
            index += len(hard)
        else:
            made += _characters(run[index], place)
            index += 1
    return made


ATTRIBUTIVE = "~"
"""Ends the key of a negation inside an attribute (未公布的价格): it turns no clause round."""
_ATTRIBUTE = re.compile(r"[^的不未无]{1,4}的(?=[\u3400-\u9fff])")


def _idiom(phrase: str, place: int) -> Token:
    return Token("idiom", phrase, place, place + len(phrase))


def _characters(run: str, place: int) -> list[Token]:
    return [
        Token("small" if char in _ZH_SMALL else "word", char, place + step, place + step + 1)
        for step, char in enumerate(run)
    ]
