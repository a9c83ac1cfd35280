"""Comparable features of a wording: words, values, polarity.

English words become stems, with one stem for synonyms; Chinese becomes characters, without words of wishing and
function characters. Typed values (`language.values`) are normalized, times of day to 24 hours. `ledger.meanings` finds
equal meanings in different words.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from ctxsteward.language.values import Value, chinese_number, normalize, typed_values
from ctxsteward.language.words import STOP, lists, stem
from ctxsteward.summarizers.salience import read_parts

_LISTS = lists("claims")


def _stems(name: str) -> frozenset[str]:
    return frozenset(map(stem, _LISTS.words(name)))


SAME: dict[str, str] = {stem(word): line[0] for line in _LISTS.classes("same") for word in line}
"""Representative stems of synonyms, by stem."""
MANNER = _stems("manner")
"""Words of wishing and asking, which do not distinguish claims."""
COMMON = _stems("common")
"""Words that two claims may share by chance."""
NEGATIVE = frozenset(_LISTS.words("negative"))
ZH_SAME: dict[str, str] = {word: line[0] for line in _LISTS.classes("zh_same") for word in line}
ZH_STOP = frozenset(
    "的了是在我你他她它们这那就都也还和与吧呢啊嘛吗呀把被给让到从向对很太能可个之其为成再会要有用时来请说里一律候收"
)
"""Characters that do not distinguish claims."""

_TOKEN = re.compile(r"[a-z0-9][a-z0-9'_.:/@%+-]*[a-z0-9]|[a-z0-9]|[\u3400-\u9fff]")
_CAPITAL = re.compile(r"\b[A-Z][a-zA-Z'-]+")
_TIME = re.compile(r"(\d{1,2})(?::?(\d{2}))?\s*([ap])?\.?m?\.?")
_ZH_MANNER = re.compile("|".join(sorted(map(re.escape, _LISTS.words("zh_manner")), key=len, reverse=True)))
_ZH_SAME = re.compile("|".join(sorted(ZH_SAME, key=len, reverse=True)))
_ZH_NEGATIVE = re.compile("|".join(_LISTS.words("zh_negative")))
_ZH_FALSE = re.compile("|".join(_LISTS.words("zh_false_negative")))
_ZH_COUNT = re.compile("(?<![一二两三四五六七八九十百])[一二两三四五六七八九十百]++(?=[岁号层楼级折])")
_SPELLINGS, _ZH_SPELLINGS = (
    tuple(
        (re.compile(pattern, re.IGNORECASE), spelling.strip().replace("_", " "))
        for spelling, pattern in (row.split("<- ") for row in _LISTS.rows("spellings"))
        if pattern.isascii() is own
    )
    for own in (True, False)
)
_MAY_BE_SPELLED = re.compile("|".join(f"(?:{pattern.pattern})" for pattern, _ in _SPELLINGS), re.IGNORECASE)
_ZH_RUN = re.compile(r"[\u3400-\u9fff]+")
_OUT = re.compile(r"\b(?:is|are) (?:out|off limits|forbidden|banned)\b")
_COMMON = COMMON | frozenset(SAME.get(word, word) for word in COMMON)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFeatures:
    """Features of a claim's text."""

    tokens: tuple[str, ...]
    """Words as written in lower case; each Chinese character is a token."""
    content: frozenset[str]
    """Stems (one for synonyms), Chinese characters and normalized values."""
    values: frozenset[str]
    negative: bool


def claim_features(text: str) -> ClaimFeatures:
    """Return the features of a text."""
    text = _spelled(text)
    reading = read_parts(text)
    low = text.lower()
    tokens = tuple(_TOKEN.findall(low))
    values = frozenset(_norm(value, low) for value in reading.values if _is_distinctive(value))
    codes = frozenset(value.norm for value in reading.values if not _is_distinctive(value))
    words = frozenset(_class(word) for word in reading.subject if word.isascii()) - MANNER
    names = frozenset(_class(stem(name)) for name in reading.names)
    rest = low
    for value in reading.values:
        rest = rest[: value.start] + " " * (value.stop - value.start) + rest[value.stop :]
    content = words | names | _chinese(rest)
    return ClaimFeatures(
        tokens=tokens, content=content | values | codes, values=values, negative=is_negative(low, tokens)
    )


def cause_features(text: str, about: str) -> ClaimFeatures:
    """Return the features of an error's cause; words of `about` (tool and parameter) do not distinguish causes."""
    names = frozenset(word.removesuffix("s") for word in re.findall("[a-z]+", about.casefold()))
    words = tuple(text.split())
    distinctive = (word for word in words if word not in STOP and word.removesuffix("s") not in names)
    content = frozenset(map(stem, distinctive)) or frozenset(words)
    return ClaimFeatures(tokens=words, content=content, values=frozenset(), negative=False)


def _spelled(text: str) -> str:
    """Unify the spelling of numbers, times and bounds."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("’", "'")
    is_ascii = text.isascii()
    if is_ascii and not _MAY_BE_SPELLED.search(text):
        return text
    for pattern, spelling in _SPELLINGS if is_ascii else (*_SPELLINGS, *_ZH_SPELLINGS):
        text = pattern.sub(spelling, text)
    return text if is_ascii else _ZH_COUNT.sub(lambda match: f"{chinese_number(match[0])}", text)


def is_negative(low: str, tokens: tuple[str, ...]) -> bool:
    """Whether a text in lower case forbids or denies something."""
    if not NEGATIVE.isdisjoint(tokens) or _OUT.search(low):
        return True
    if "n't" in low and any(token.endswith("n't") for token in tokens):
        return True
    return not low.isascii() and _ZH_NEGATIVE.search(_ZH_FALSE.sub(" ", low)) is not None


def value_norm(value: str | float, unit: str | None) -> str:
    """Normalize the value of a slot for comparison.

    >>> value_norm(45, "days") == value_norm("45", "day"), value_norm("9 am", None) == value_norm("09:00", None)
    (True, True)
    """
    text = f"{value} {unit}" if unit else f"{value}"
    values = typed_values(text)
    if len(values) == 1 and _is_distinctive(values[0]):
        return _norm(values[0], text.lower())
    return normalize(text)


def shares_telling_word(one: ClaimFeatures, other: ClaimFeatures) -> bool:
    """Whether two wordings share a content word that is not common, or a quarter of their Chinese characters."""
    shared = (one.content & other.content) - _COMMON
    characters = {word for word in shared if len(word) == 1 and not word.isascii()}
    if shared - characters:
        return True
    return 4 * len(characters) >= min(len(one.content), len(other.content)) > 0


def _class(word: str) -> str:
    return SAME.get(word, word)


def _chinese(low: str) -> frozenset[str]:
    """Return the Chinese characters that distinguish claims, with one form for synonyms."""
    if low.isascii():
        return frozenset()
    low = _ZH_MANNER.sub(" ", _ZH_SAME.sub(lambda match: ZH_SAME[match[0]], low))
    return frozenset("".join(_ZH_RUN.findall(low))) - ZH_STOP


def _is_distinctive(value: Value) -> bool:
    """Whether different values make different claims; names and words in capitals may be missing in one of them."""
    return value.kind not in ("name", "identifier") or any(map(str.isdigit, value.norm))


def _norm(value: Value, low: str) -> str:
    """Return the normalized value with its unit, and times on 24 hours."""
    if value.kind != "time":
        return f"{value.norm} {value.unit}".strip()
    match = _TIME.fullmatch(value.norm)
    if match is None:
        return value.norm
    hour, minute, half = int(match[1]), int(match[2] or 0), match[3]
    before = low[max(0, value.start - 3) : value.start]
    if hour < 12 and (half == "p" or any(word in before for word in ("下午", "晚上", "晚"))):
        hour += 12
    return f"{hour % 24:02d}:{minute:02d}"
