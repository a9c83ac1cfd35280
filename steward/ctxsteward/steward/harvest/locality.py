# ruff: noqa: E501  -- a pattern reads better in one line than wrapped
"""How far a wish's own words reach: for the task at hand, or beyond it; for the project, or for its speaker.

In task-oriented talk most wishes are of the task: "this one", a date, a booking's code. So doubt speaks for the session.
"""

from __future__ import annotations

import re

from .hearing import Sentence

_EXPLICIT = re.compile(
    r"\b(?:for|on|in|with|of|during) (?:this|that|these|those|the current|my (?:upcoming|next|current)) \w+|\bthis (?:one|time|trip|flight|order|booking|reservation|week|month|task|chat|message|session|conversation|ticket|purchase)\b"
    r"|\b(?:today|tonight|tomorrow|right now|for now|at the moment|just this once|just once|this once)\b"
    r"|这次|这趟|这单|这回|这个(?:订单|航班|任务|会话|问题)|今天|今晚|明天|本次|此次|眼下|暂时|先这样|这一次"
)
_DEICTIC = re.compile(
    r"\b(?:this|that|these|those|it|the (?:first|second|third|last|other|earlier|later|next|same|new|old|blue|red|cheapest|one|two)|(?:on|by|before|after|until) (?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:january|february|march|april|june|july|august|september|october|november|december) \d|\d{1,2}(?:st|nd|rd|th)|my (?:flight|flights|booking|reservation|order|refund|ticket|trip|certificates?|gift cards?|bags?|suitcases?)|[a-z]*\d[a-z0-9]{4,})\b"
    r"|the (?:flight|trip|booking|order|reservation|refund|ticket|insurance|payment|upgrade|paragraph|file|draft|bags?|change|option|options|certificate|card|balance)\b"
    r"|那个|这个|第[一二三四五六七八九十\d]个|周[一二三四五六日天]|下周|蓝色那|红色那|\d+[号日]|我们?的?这?[个张份次趟]?(?:航班|机票|车票|订单|订座|预订|预约|行程|退款|包裹|快递|改签)"
)
_PROJECT = re.compile(
    r"\b(?:in|for|of|on|across) (?:this|our|the) (?:repo|repository|project|code ?base|package|workspace|monorepo|service|team)\b|\bin here we\b|\bour (?:style guide|conventions?|linter|ci|build)\b"
    r"|(?:这个|本|我们|该)(?:项目|仓库|代码库|工程|服务|团队)"
)


def is_local(sentence: Sentence, *, strictly: bool) -> bool:
    """Whether it is about the task at hand; `strictly`: only where the words say so outright."""
    if _EXPLICIT.search(sentence.low):
        return True
    return not strictly and _DEICTIC.search(sentence.low) is not None


def is_of_project(sentence: Sentence) -> bool:
    """Whether it speaks of the project rather than of its speaker."""
    return _PROJECT.search(sentence.low) is not None
