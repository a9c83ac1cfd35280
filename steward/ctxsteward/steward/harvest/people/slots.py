# ruff: noqa: E501  -- a pattern reads better in one line than wrapped
"""Words that tell what a wish is about: ``window`` is a seat, ``简短`` the length of answers.

By word or phrase: the attribute, the value in one spelling for all wordings and both languages (None: the topic itself
is wanted or not), and words of which one must stand in the sentence for the ambiguous ones.

What a claim is about: its slot, and value, polarity and modality where they are stated.

The cue's row may name the attribute; else a known value or topic does ("aisle" is about the seat, "emojis" about
emojis); else the head noun of what the wish names. So two wordings of one wish share a slot, and the opposite wish
shares it with the other polarity.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ctxsteward.schemas.profile import Modality, Polarity
from ctxsteward.schemas.recommendation import Cardinality
from ctxsteward.summarizers.language import STOP, stem
from ctxsteward.summarizers.values import normalize, typed_values

from .cue_table import CueMatch
from .utterances import Sentence, listed

_TALK = "answer answers reply replies respond response responses message messages explanation explanations email emails report reports summary summaries output texts update updates be keep write speak talk tone language style writing sentences paragraphs"
_ENGLISH = f"""
answer_length=short: short shorter brief briefly concise concisely terse succinct crisp minimal | {_TALK}
answer_length=long: long longer detailed lengthy verbose thorough | {_TALK}
tone=formal: formal formally professional | {_TALK}
tone=casual: casual informal casually friendly relaxed | {_TALK}
tone=direct: blunt direct straightforward honest sugarcoat
emoji: emoji emojis emoticon emoticons smiley smileys
bullets: bullet bullets
markdown: markdown
headings: heading headings
tables: tables
jargon: jargon buzzwords
disclaimers: disclaimer disclaimers caveats hedging
apologies: apologize apologise apologizing apologising apology apologies
small_talk: pleasantries fluff filler preamble preambles
compliments: compliment compliments complimenting flattery flattering praise praising
exclamation_marks: exclamation
semicolons: semicolon semicolons
abbreviations: abbreviation abbreviations acronym acronyms
sources: source sources citation citations cite
units=metric: metric kilometres kilometers
units=imperial: imperial miles
temperature=celsius: celsius
temperature=fahrenheit: fahrenheit
indentation=tabs: tabs
indentation=spaces: spaces
seat=aisle: aisle
seat=window: window | seat seats flight flights fly plane sit prefer preference train
seat=middle: middle | seat seats flight flights
contact=email: email emails e-mail | contact contacted phone call calls text texts sms prefer reach
contact=phone: phone call calls | contact contacted prefer reach email emails text
contact=text: text texts sms | contact contacted prefer reach phone calls
drink=coffee: coffee decaf espresso
drink=tea: tea
travel_mode=train: train trains
travel_mode=plane: plane planes flying
travel_mode=bus: bus buses coach
time_of_day=morning: morning mornings early
time_of_day=afternoon: afternoon afternoons
time_of_day=evening: evening evenings late night
theme=dark: dark | mode theme
theme=light: light | mode theme
currency=EUR: euro euros eur
currency=USD: dollar dollars usd
currency=GBP: pounds gbp sterling
currency=CNY: yuan rmb cny
date_format=ISO 8601: iso
clock=24h: 24-hour
clock=12h: 12-hour
answer_language=English: english
answer_language=French: french
answer_language=German: german
answer_language=Spanish: spanish
answer_language=Portuguese: portuguese
answer_language=Italian: italian
answer_language=Dutch: dutch
answer_language=Russian: russian
answer_language=Chinese: chinese mandarin
answer_language=Japanese: japanese
answer_language=Korean: korean
answer_language=Arabic: arabic
answer_language=Hindi: hindi
browser=Firefox: firefox
browser=Chrome: chrome
browser=Safari: safari
database=Postgres: postgres postgresql
database=MySQL: mysql
editor=vim: vim neovim
editor=Emacs: emacs
editor=VS Code: vscode
diet=vegetarian: vegetarian
diet=vegan: vegan plant-based
diet=halal: halal
diet=kosher: kosher
diet=gluten-free: gluten gluten-free
diet=no alcohol: alcohol
diet=no pork: pork
red_eye_flights: red-eye red-eyes
checked_bag: bag bags luggage | check checked
reminders: reminder reminders reminding
"""
_CHINESE = """
answer_length=short: 简短 简洁 简明 精简 精炼 短一点 短一些 写短 长话短说
answer_length=long: 详细 写长 长一点 具体一点
tone=formal: 正式 敬语 用您 用“您”
tone=casual: 随意 口语化 轻松一点
tone=direct: 直说 直接说 直接讲 绕弯子
emoji: 表情
bullets: 项目符号
markdown: Markdown markdown
headings: 标题
tables: 表格
jargon: 术语 行话 黑话 大白话
disclaimers: 免责声明
apologies: 道歉
small_talk: 客套 客气话 寒暄 废话 铺垫 啰嗦 套话
compliments: 夸 恭维
exclamation_marks: 感叹号
semicolons: 分号
abbreviations: 缩写
sources: 来源 出处
units=metric: 公制 公里
units=imperial: 英制 英里
temperature=celsius: 摄氏
temperature=fahrenheit: 华氏
indentation=tabs: 制表符
indentation=spaces: 空格
seat=aisle: 靠过道 过道 靠走道
seat=window: 靠窗
contact=email: 用邮件 发邮件 邮件联系
contact=phone: 打电话 用电话 接电话 电话联系
contact=text: 短信
drink=coffee: 咖啡
drink=tea: 喝茶
travel_mode=train: 火车 高铁 动车
travel_mode=plane: 飞机
time_of_day=morning: 早上 上午 早班
time_of_day=afternoon: 下午
time_of_day=evening: 晚上 夜猫子 晚一点 红眼
theme=dark: 深色模式 暗色
theme=light: 浅色模式 亮色
currency=EUR: 欧元
currency=USD: 美元
currency=CNY: 人民币
date_format=ISO 8601: ISO
answer_language=Chinese: 中文 普通话
answer_language=English: 英文 英语
answer_language=French: 法语 法文
answer_language=German: 德语 德文
answer_language=Spanish: 西班牙语
answer_language=Portuguese: 葡萄牙语
answer_language=Japanese: 日语 日文
answer_language=Korean: 韩语 韩文
browser=Firefox: 火狐 Firefox firefox
browser=Chrome: Chrome chrome
database=Postgres: Postgres postgres
diet=vegetarian: 吃素 素食
diet=vegan: 纯素
diet=halal: 清真
diet=kosher: 犹太洁食 洁食
diet=gluten-free: 麸质
diet=no alcohol: 不喝酒 喝酒
diet=no pork: 猪肉
checked_bag: 托运
reminders: 提醒
"""

ONE = listed(
    """
    name user_id pronouns time_zone answer_length answer_language tone units temperature indentation seat contact
    travel_mode theme currency date_format clock browser database editor home job birthday age origin employer
    phone email home_address marital_status school
    """
)
"""Attributes of which two values cannot both hold."""


def _entries(table: str) -> list[tuple[str, str | None, str]]:
    rows = []
    for line in filter(None, table.splitlines()):
        head, _, words = line.partition(": ")
        attribute, _, value = head.partition("=")
        rows.append((attribute, value or None, words))
    return rows


def _english() -> dict[str, tuple[str, str | None, frozenset[str]]]:
    found: dict[str, tuple[str, str | None, frozenset[str]]] = {}
    for attribute, value, line in _entries(_ENGLISH):
        words, _, needs = line.partition("|")
        for word in words.split():
            found[word] = (attribute, value, frozenset(needs.split()))
    return found


ENGLISH_TOPICS = _english()
CHINESE_TOPICS = {
    phrase: (attribute, value) for attribute, value, line in _entries(_CHINESE) for phrase in line.split()
}


MAX_VALUE_CHARS = 60
LASTING = frozenset(("name", "pronouns", "allergy", "diet", "favorite", "time_zone", "language", "accessibility"))
"""Attributes of a person: true in every session."""
FACTS = frozenset(("name", "pronouns", "allergy", "time_zone", "language", "accessibility"))
_BOUNDARY = re.compile(
    r"[,.;:!?()，。；：！？]|\s(?:over|to|than|instead|rather|for|when|in|on|at|with|because|and|but|or|if|so|that|as|from|unless|"
    r"whenever|every|without|by|until|before|after|since|near|about|under|below|above|within|between|per|of|while|please|too|also|not)\b"
)
_PHRASE_WORD = re.compile(r"[a-z0-9][a-z0-9'+#-]*")
_SKIPPED = STOP | listed(
    "any all really just much more most very quite bit good nice great please always never important matter matters super lately so too well "
    "together whole own little"
)
_NEGATIVE = re.compile(
    r"\b(?:never|don't|do not|not|no|stop|quit|hate|dislike|detest|loathe|avoid|skip|drop|omit|without|can't|cannot|won't|didn't|wouldn't|annoys|bothers|under no)\b"
    r"|从不|从来不|不要|别|不用|不想|不喜欢|不爱|不吃|不喝|不抽|不接|不碰|讨厌|受不了|反感|避免|不需要|绝不|忌口|不再|禁止"
)
_MUST_NOT = re.compile(
    r"\b(?:never|don't ever|do not ever|under no circumstances|stop|quit|must not|don't|do not|no more)\b|千万(?:不要|别)|绝对(?:不要|别)|绝不|永远(?:不要|别)|不要再|别再|禁止|不要|别"
)
_MUST = re.compile(
    r"\b(?:always|must|every time|each time|whenever|at all times|make sure|only|have to|need to|from now on|going forward|until further notice)\b|一律|必须|务必|永远|始终|每次|一定|统一|以后|今后|只"
)
_CHINESE_HEAD = re.compile(r"[\u3400-\u9fffA-Za-z0-9]+")
_CHINESE_SKIP = re.compile(
    r"^(?:请|都|要|我|你|给|把|的|在|用|一律|一定|就|再|先|也|很|更|比较|了|去|和|跟|对|别|不要|不|吃|喝|坐|看|听|穿|住)+"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTopic:
    """A slot without its speaker, and what is said of it."""

    attribute: str
    cardinality: Cardinality = "many"
    subject: str | None = None
    """None: the speaker."""
    value: str | int | float | None = None
    unit: str | None = None
    polarity: Polarity | None = None
    modality: Modality | None = None
    is_fact: bool = False
    """Of the person rather than of how to serve them."""
    is_lasting: bool = False
    """Outlives every task."""
    is_personal: bool = False


def topic_of(match: CueMatch, sentence: Sentence) -> ClaimTopic:
    """The topic of a wish."""
    stated = match.text_of("v", sentence.text) or match.text_of("w", sentence.text)
    about = match.start_of("o") if "o" in match.found.re.groupindex else match.found.start()
    cue = sentence.low[match.found.start() : min(match.found.end(), about + 12)]
    polarity: Polarity = "negative" if _NEGATIVE.search(cue) else "positive"
    modality = _modality(match, cue)
    attribute = match.attribute
    if attribute in ("favorite", "preferred"):
        return _of_kind(match, sentence, attribute, stated)
    if attribute is not None:
        one = attribute in ONE
        value = None if stated is None else value_for(attribute, stated)
        return ClaimTopic(
            attribute=attribute,
            cardinality="one" if one else "many",
            value=value,
            polarity="negative" if attribute == "name" and polarity == "negative" else "positive",
            modality=None if attribute in FACTS else modality,
            is_fact=attribute in FACTS,
            is_lasting=attribute in LASTING,
            is_personal=attribute in LASTING,
        )
    return _of_object(sentence, about, match.found.end(), polarity, modality)


def _modality(match: CueMatch, cue: str) -> Modality:
    if match.label == "standing":
        if _MUST_NOT.search(cue):
            return "must_not"
        if _MUST.search(cue):
            return "must"
    return "should"


def _of_kind(match: CueMatch, sentence: Sentence, family: str, stated: str | None) -> ClaimTopic:
    """``my favourite EDITOR is Helix``: the kind names the slot, the value fills it."""
    kind = (match.text_of("t", sentence.low) or "").removeprefix("首选").removeprefix("默认").strip("的 ")
    head = stem(kind.split()[-1]) if kind.isascii() and kind else kind
    head = "color" if head in ("colour", "颜色") else head
    attribute = f"favorite:{head or 'thing'}" if family == "favorite" else head or "preference"
    return ClaimTopic(
        attribute=attribute,
        cardinality="one",
        value=None if stated is None else value_of(stated),
        polarity="positive",
        modality="should",
        is_lasting=family == "favorite",
    )


def _of_object(sentence: Sentence, start: int, stop: int, polarity: Polarity, modality: Modality) -> ClaimTopic:
    region = sentence.low[start:stop]
    known = _known(region, sentence) or (_known(sentence.low, sentence) if modality != "should" else None)
    value: str | int | float | None
    if known is not None:
        attribute, value = known
        unit = None
    else:
        attribute, value = _headed(region, sentence)
        unit = None
    amount = _amount(sentence.text[start:stop]) if known is None or value is None else None
    if amount is not None:
        value, unit = amount
    cardinality: Cardinality = "one" if attribute in ONE else "many"
    return ClaimTopic(
        attribute=attribute, cardinality=cardinality, value=value, unit=unit, polarity=polarity, modality=modality
    )


def _known(region: str, sentence: Sentence) -> tuple[str, str | None] | None:
    """The first topic word of the region; of several at one place the longest."""
    for word in _PHRASE_WORD.findall(region):
        if (found := ENGLISH_TOPICS.get(word)) is not None:
            attribute, value, needs = found
            if not needs or needs & sentence.words:
                return attribute, value
    if sentence.has_chinese:
        best: tuple[int, int, str, str | None] | None = None
        for phrase, (attribute, value) in CHINESE_TOPICS.items():
            at = region.find(phrase)
            if at >= 0 and (best is None or (at, -len(phrase)) < best[:2]):
                best = (at, -len(phrase), attribute, value)
        if best is not None:
            return best[2], best[3]
    return None


def _headed(region: str, sentence: Sentence) -> tuple[str, str | None]:
    """``likes:HEAD`` and the words before the head."""
    boundary = _BOUNDARY.search(region, 1)
    phrase = region[: boundary.start()] if boundary else region
    words = [word for word in _PHRASE_WORD.findall(phrase) if word not in _SKIPPED]
    if words:
        return f"likes:{stem(words[-1])}"[:80], " ".join(words[:-1])[:MAX_VALUE_CHARS] or None
    if sentence.has_chinese and (run := _CHINESE_HEAD.search(_CHINESE_SKIP.sub("", phrase.strip()))):
        head = run.group()
        modifier, _, noun = head.rpartition("的")
        return f"likes:{(noun or head)[-8:]}", modifier[:MAX_VALUE_CHARS] or None
    return "likes", None


def value_of(text: str) -> str:
    """A stated value in the form in which two compare: no quotes, no end mark, one blank between words."""
    return " ".join(text.strip(" \t\"'“”‘’「」.,!?。，！？；;").split())[:MAX_VALUE_CHARS] or text[:MAX_VALUE_CHARS]


def value_for(attribute: str, text: str) -> str:
    """The same, in one spelling where several are known: ``peanuts``, ``peanut``; ``法语``, ``French``."""
    value = value_of(text)
    for known, spelled, _ in filter(None, map(ENGLISH_TOPICS.get, value.lower().split())):
        if known == attribute and spelled:
            return spelled
    chinese = CHINESE_TOPICS.get(value)
    if chinese is not None and chinese[0] == attribute and chinese[1]:
        return chinese[1]
    return stem(value.lower()) if attribute == "allergy" and value.isascii() else value


def _amount(text: str) -> tuple[int | float, str | None] | None:
    """The one quantity it names; None for none or several."""
    found = [value for value in typed_values(text) if value.kind in ("quantity", "money", "percent")]
    if len(found) != 1:
        return None
    try:
        number = float(normalize(found[0].norm))
    except ValueError:
        return None
    if not abs(number) < 1e12:
        return None
    return int(number) if number == int(number) else number, found[0].unit or (
        "%" if found[0].kind == "percent" else None
    )
