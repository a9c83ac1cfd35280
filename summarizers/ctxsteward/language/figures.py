"""The figures of a sentence: number, unit and bound, in one form for all spellings.

Drift checks compare rules by their figures. Unlike a `values.Value`, a figure has a converted unit and no offsets.

``1,000`` is ``1000`` is "one thousand"; ``24 hours`` is ``1 day``; ``9 am`` is ``09:00``; 三十天 is 30 天. A bound says
whether the figure is a maximum or a minimum: "at most 5" and "at least 5" differ.

>>> figures("Refund within thirty days, at most $1,200.") == figures("refund within 30 days, no more than 1200 dollars")
True
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import Literal, NamedTuple

from .operators import LOWER, UPPER, ZH_COMPARED, plain
from .values import CURRENCIES, NUMBER_WORDS, UNITS, ZH_UNITS, chinese_number

Bound = Literal["", "upper", "lower"]


class Figure(NamedTuple):
    """One number, the unit that it counts, and whether it is a bound."""

    number: str
    unit: str
    bound: Bound = ""


_SECONDS = {"ms": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0}
_MONTHS = {"month": 1.0, "year": 12.0}
MEASURED = frozenset(("seconds", "months", *CURRENCIES.values()))
"""Units of times and sums, after conversion."""
_MONTH_NAMES = {
    name: month
    for month, names in enumerate(
        (
            "jan january",
            "feb february",
            "mar march",
            "apr april",
            "may",
            "jun june",
            "jul july",
            "aug august",
            "sep sept september",
            "oct october",
            "nov november",
            "dec december",
        ),
        1,
    )
    for name in names.split()
}
_MONTH = "|".join(sorted(_MONTH_NAMES, key=len, reverse=True))
_WORDS = "|".join(sorted(NUMBER_WORDS, key=len, reverse=True))
_SPELLED = re.compile(rf"\b(?:{_WORDS})(?:(?:[ -]| and )(?:{_WORDS}))*\b")
_DATE = re.compile(
    rf"(?P<y>\d{{4}})[-/年](?P<m>\d{{1,2}})[-/月](?P<d>\d{{1,2}})日?"
    rf"|(?P<d2>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<m2>{_MONTH})\b\.?,?(?: (?P<y2>\d{{4}}))?"
    rf"|\b(?P<m3>{_MONTH})\.? (?P<d3>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<y3>\d{{4}}))?"
)
_CLOCK = re.compile(r"\b(\d{1,2}):(\d{2})(?::\d{2})? ?(am|pm|a\.m\.|p\.m\.)?|\b(\d{1,2}) ?(am|pm|a\.m\.|p\.m\.)(?!\w)")
_NUMBER = re.compile(
    r"(?P<sign>[$€£¥]|\b(?:usd|eur|gbp|rmb|cny)\b)?\s?"
    r"(?P<number>\d+(?:[, \u202f]\d{3}(?!\d))*(?:\.\d+)?)(?:st|nd|rd|th)?"
    r"(?:\s?-?\s?(?P<unit>%|[a-z°$€£¥]+|[\u3400-\u9fff]{1,3}))?"
)
_ZH_NUMERAL = re.compile(r"(?<![\u3400-\u9fff])?[零〇一二两三四五六七八九十百千万]+(?=[\u3400-\u9fff%])")
_SCALES = {"k": 1e3, "m": 1e6, "million": 1e6, "thousand": 1e3, "万": 1e4, "千": 1e3, "百万": 1e6, "亿": 1e8}
_ZH_MEASURES = frozenset("句字步种章段层级家单笔封组批班则道题门名株支")
_TIMES = re.compile(r"(?<!at )\b(once|twice)\b(?=\s*(?:$|[.,;:!?)。]|(?:per|every|each|for|and|in|an?|only|more)\b))")
"""Matches "once" and "twice" as counts, but not in "once the order is paid" or "at once"."""
_REACH_CHARS = 24
_CLAUSE_CHARS = 120
_NEGATED = re.compile(r"\b(?:not|never|no|cannot)\b|n't\b|不|勿|别|禁止")


@lru_cache(maxsize=1 << 14)
def figures(text: str) -> tuple[Figure, ...]:
    """Return the figures of a text, in order."""
    form = _normal(text)
    placed: list[tuple[int, Figure]] = []
    form = _taken(form, _DATE, placed, _date)
    form = _taken(form, _CLOCK, placed, _clock)
    for match in _NUMBER.finditer(form):
        number, unit, stop = _measured(match)
        placed.append((match.start(), Figure(number, unit, _bound(form, match.start(), stop))))
    return tuple(figure for _, figure in sorted(placed, key=lambda each: each[0]))


@lru_cache(maxsize=1 << 14)
def without_figures(text: str) -> str:
    """Return the plain form of a text with 0 for each figure, its unit, and the bound directly before or after it."""
    form = _normal(text)
    for pattern in (_DATE, _CLOCK):
        form = pattern.sub(" ", form)
    kept, last = [], 0
    for match in _NUMBER.finditer(form):
        unit = match["unit"] or ""
        family = UNITS.get(unit, ("",))[0]
        measured = family in _SECONDS or family in _MONTHS or unit in CURRENCIES or unit in _SCALES or unit == "%"
        is_word = unit.isascii() and not measured
        stop = match.start("unit") if unit and is_word else _measured(match)[2]
        behind = _AFTER.match(form, stop)
        kept += [_BOUND_BEFORE.sub(" ", _ZH_BOUNDS.sub(" ", form[last : match.start()])), "0"]
        last = behind.end() if behind else stop
    return " ".join([*kept, _ZH_BOUNDS.sub(" ", form[last:]) if kept else form])


def changed_figure(before: str, after: str) -> tuple[Figure | None, Figure | None] | None:
    """Return the first figure that is missing after the change and the first new one; None if the figures are equal."""
    old, new = figures(before), figures(after)
    if old == new:
        return None
    gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
    for figure in list(gone):  # the unit follows the number directly in one text, and further on in the other
        twin = next((o for o in come if o.number == figure.number and (o.unit == "") != (figure.unit == "")), None)
        if twin is not None and not {twin.unit, figure.unit} & MEASURED:
            shared = min(gone[figure], come[twin])
            gone, come = gone - Counter({figure: shared}), come - Counter({twin: shared})
    for figure in list(gone):  # a bound in only one of the texts is a matter of wording; a reversed bound is not
        twin = next((other for other in come if other[:2] == figure[:2] and "" in (other.bound, figure.bound)), None)
        if twin is not None:
            shared = min(gone[figure], come[twin])
            gone, come = gone - Counter({figure: shared}), come - Counter({twin: shared})
    if not gone and not come:
        return None
    return next(iter(gone), None), next(iter(come), None)


def figure_text(figure: Figure | None) -> str | None:
    """Return a figure in words, or None for None."""
    if figure is None:
        return None
    bound = {"": "", "upper": "at most ", "lower": "at least "}[figure.bound]
    return f"{bound}{figure.number} {figure.unit}".strip()


def _normal(text: str) -> str:
    return _digits(plain(text).replace("percent", "%").replace("per cent", "%").replace("百分之", "%"))


def _taken(form: str, pattern: re.Pattern[str], found: list[tuple[int, Figure]], make: object) -> str:
    """Return the text with all matches of the pattern blanked, and append a figure to `found` for each."""

    def note(match: re.Match[str]) -> str:
        figure = make(match) if callable(make) else None
        if figure is None:
            return match.group()
        found.append((match.start(), figure))
        return " " * len(match.group())

    return pattern.sub(note, form)


def _date(match: re.Match[str]) -> Figure | None:
    parts = match.groupdict()
    year = parts["y"] or parts["y2"] or parts["y3"] or ""
    month = parts["m"] or parts["m2"] or parts["m3"]
    day = parts["d"] or parts["d2"] or parts["d3"]
    number = _MONTH_NAMES.get(month, 0) or int(month)
    return Figure(f"{year}-{number:02}-{int(day):02}", "date")


def _clock(match: re.Match[str]) -> Figure | None:
    hour, minute, half = match[1] or match[4], match[2] or "00", (match[3] or match[5] or "").replace(".", "")
    hours = int(hour) % 12 + (12 if half == "pm" else 0) if half else int(hour)
    return Figure(f"{hours:02}:{minute}", "time") if hours < 25 else None


def _digits(form: str) -> str:
    """Return the text with spelled-out numbers as digits. "One" stays unless it counts a unit ("one another")."""
    form = _SPELLED.sub(lambda match: _spelled(match, form), form)
    form = re.sub(r"\bhalf an? (hour|day)\b", r"0.5 \1", form).replace("半小时", "0.5小时").replace("半天", "0.5天")
    form = _TIMES.sub(lambda match: {"once": "1 times", "twice": "2 times"}[match[1]], form)
    form = re.sub(r"%([零〇一二两三四五六七八九十百\d.]+)", r"\1%", form)
    return _ZH_NUMERAL.sub(lambda match: _zh_spelled(match, form), form)


def _spelled(match: re.Match[str], form: str) -> str:
    words = re.split(r"[ -]| and ", match.group())
    total = current = 0
    for word in words:
        number = NUMBER_WORDS.get(word, 0)
        if number == 1000:
            total, current = total + (current or 1) * 1000, 0
        elif number == 100:
            current = (current or 1) * 100
        else:
            current += number
    following = re.match(r"[ -]([a-z]+)", form[match.end() : match.end() + _REACH_CHARS])
    if match.group() == "one" and (following is None or following[1] not in UNITS):
        return "one"
    return str(total + current)


def _zh_spelled(match: re.Match[str], form: str) -> str:
    following = form[match.end() : match.end() + 2]
    unit = next((following[:size] for size in (2, 1) if following[:size] in ZH_UNITS or following[:1] == "%"), None)
    if unit is None and match.group() != "一" and following[:1] in _ZH_MEASURES:
        return str(chinese_number(match.group()))
    if unit is None or (match.group() == "一" and unit not in ("小时", "天", "日", "周", "个月", "年", "分钟", "次")):
        return match.group()
    if match.group() == "一" and unit in ("次", "天") and form[match.start() - 1 : match.start()] in ("每", "第", "有"):
        return match.group()
    return str(chinese_number(match.group()))


def _measured(match: re.Match[str]) -> tuple[str, str, int]:
    """Return number and unit in one form, and the offset where they end."""
    number = float(re.sub(r"[,\s]", "", match["number"]))
    unit, stop = match["unit"] or "", match.end()
    family = ""
    if unit and not unit[0].isascii():
        sized = next((unit[:size] for size in (3, 2, 1) if unit[:size] in ZH_UNITS), "")
        if unit[0] in _SCALES and not sized:
            number, unit = number * _SCALES[unit[0]], unit[1:]
            sized = next((unit[:size] for size in (2, 1) if unit[:size] in ZH_UNITS), "")
        family, scale = ZH_UNITS.get(sized, ("", 1))
        number *= scale
        stop = match.start("unit") + len(match["unit"]) - len(unit) + len(sized)
    elif unit in _SCALES and unit not in ("m",):
        number *= _SCALES[unit]
    elif unit in UNITS:
        family = UNITS[unit][0]
    family = CURRENCIES.get(match["sign"] or "") or CURRENCIES.get(unit, family)
    if family in _SECONDS:
        number, family = number * _SECONDS[family], "seconds"
    elif family in _MONTHS:
        number, family = number * _MONTHS[family], "months"
    return f"{number:.10g}", family, stop


def _pattern(phrases: tuple[str, ...]) -> str:
    ordered = sorted(phrases, key=len, reverse=True)
    return "|".join(
        rf"(?<!\w){re.escape(p)}(?!\w)" if p[0].isascii() and p[0].isalpha() else re.escape(p) for p in ordered
    )


_BOUNDS = re.compile(f"(?P<upper>{_pattern(UPPER)})|(?P<lower>{_pattern(LOWER)})")
_ZH_BOUNDS = re.compile(
    "|".join(p for p in sorted((*UPPER, *LOWER), key=len, reverse=True) if p[0] > "\u3400" and len(p) > 1)
)
_BOUND_BEFORE = re.compile(f"(?:{_pattern(UPPER)}|{_pattern(LOWER)})\\s*(?:of\\s*)?$")
_AFTER = re.compile(
    r"\s*(?:[a-z]+\s+)?"
    r"(?:(?P<upper>or less|or fewer|at most|以内|之内|以下|内)|(?P<lower>or more|or longer|以上|at least))"
)


def _bound(form: str, start: int, stop: int) -> Bound:
    """Return the bound directly after the figure, else the last bound before it in its clause."""
    behind = _AFTER.match(form, stop)
    if behind is not None:
        return "upper" if behind["upper"] else "lower"
    clause = re.split(r"[,;:.，；。、]", form[max(0, start - _CLAUSE_CHARS) : start])[-1]
    before = re.split(r"\d", clause[-_REACH_CHARS:])[-1]
    last: Bound = ""
    for match in _BOUNDS.finditer(before):
        last = "upper" if match["upper"] else "lower"
        compared = match.group().endswith("than") or match.group() in ZH_COMPARED
        if compared and _NEGATED.search(clause[: len(clause) - len(before) + match.start()]):
            last = "lower" if last == "upper" else "upper"
    return last
