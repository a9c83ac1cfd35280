# ruff: noqa: E501  -- a pattern reads better in one line than wrapped
"""Words that tell what a wish is about: ``window`` is a seat, ``简短`` the length of answers.

By word or phrase: the attribute, the value in one spelling for all wordings and both languages (None: the topic itself
is wanted or not), and words of which one must stand in the sentence for the ambiguous ones.
"""

from __future__ import annotations

from .wordlists import listed

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
