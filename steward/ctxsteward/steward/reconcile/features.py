"""What a wording says, taken apart so that two wordings can be compared: words, values, names, limits, polarity.

English gives stems, with synonyms as one; Chinese gives characters, words of wishing and function characters taken out.
Typed values (`language.values`) compare by their norm, times of day on 24 hours. Two wordings are *alike* where they
name the same values, no different names, no rivals (red / blue), and share most of their content words; a *minimal
pair*, which differs in one place alone, is a contrast (``the red template`` / ``the blue template``), unless what
differs is a misspelling. All comparisons are symmetric, and depend on the two wordings alone.

Source: Broder 1997 (resemblance of shingle sets); the thresholds are hand-set on sets of our own.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from difflib import SequenceMatcher

from ctxsteward.language.values import Value, chinese_number, normalize, typed_values
from ctxsteward.language.words import STOP, contrasts, lists, stem
from ctxsteward.summarizers.salience import read_parts

MOST = 0.6
"""Of all content words of two wordings, the share that both must have."""
NEARLY_ALL = 0.75
"""The same where the two are said to contradict each other."""
HALF = 0.5
"""Of the content words of the shorter one, where both are of one narrow topic."""
TYPO = 0.75
"""Two words this similar are one word, misspelled."""

_LISTS = lists("claims")


def _stems(name: str) -> frozenset[str]:
    return frozenset(map(stem, _LISTS.words(name)))


def _numbered(name: str) -> dict[str, int]:
    return {stem(word): group for group, line in enumerate(_LISTS.classes(name)) for word in line}


SAME: dict[str, str] = {stem(word): line[0] for line in _LISTS.classes("same") for word in line}
"""A stem and the one that stands for its class."""
MANNER = _stems("manner")
"""Words of wishing and asking, which a claim does not turn on."""
COMMON = _stems("common")
"""Words that two claims may well share by chance: sharing only these is sharing nothing."""
NEGATIVE = frozenset(_LISTS.words("negative"))
LIMITS: dict[str, str] = {word: line[0] for line in _LISTS.classes("limits") for word in line}
"""Function words that a claim does turn on."""
RIVALS, ZH_RIVALS = _numbered("rivals"), _numbered("zh_rivals")
"""Closed classes (colours, languages, formats) of which two claims may not name different members."""
ZH_SAME: dict[str, str] = {word: line[0] for line in _LISTS.classes("zh_same") for word in line}
ZH_STOP = frozenset(
    "的了是在我你他她它们这那就都也还和与吧呢啊嘛吗呀把被给让到从向对很太能可个之其为成再会要有用时来请说里一律候收"
)
"""Characters that a claim does not turn on."""

_TOKEN = re.compile(r"[a-z0-9][a-z0-9'_.:/@%+-]*[a-z0-9]|[a-z0-9]|[\u3400-\u9fff]")
_CAPITAL = re.compile(r"\b[A-Z][a-zA-Z'-]+")
_TIME = re.compile(r"(\d{1,2})(?::?(\d{2}))?\s*([ap])?\.?m?\.?")
_ZH_MANNER = re.compile("|".join(sorted(map(re.escape, _LISTS.words("zh_manner")), key=len, reverse=True)))
_ZH_SAME = re.compile("|".join(sorted(ZH_SAME, key=len, reverse=True)))
_ZH_NEGATIVE = re.compile("|".join(_LISTS.words("zh_negative")))
_ZH_FALSE = re.compile("|".join(_LISTS.words("zh_false_negative")))
_ZH_LIMITS = tuple(word for word in LIMITS if not word.isascii())
_ZH_NOT = frozenset("不别没勿莫")
_WHERE = frozenset(("in", "at", "from", "near", "around", "on"))
_ZH_AROUND = re.compile(r"(?<=[点日号天周月年分])(?:之|以)?([前后])")
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
_IDLE = MANNER | NEGATIVE | STOP | frozenset(map(stem, STOP))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFeatures:
    """A claim's text, taken apart."""

    tokens: tuple[str, ...]
    """As written, lower case; a Chinese character is one."""
    frame: tuple[str, ...]
    """The same, values left out."""
    content: frozenset[str]
    """What it is about: stems, synonyms as one; Chinese characters; norms of values."""
    values: frozenset[str]
    names: frozenset[str]
    """Capitalized words that are certainly names."""
    openers: frozenset[str]
    """A capitalized first word, which may be one."""
    limits: frozenset[str]
    contrasts: frozenset[str]
    negative: bool


def claim_features(text: str) -> ClaimFeatures:
    """Take a text apart."""
    text = _spelled(text)
    reading = read_parts(text)
    low = text.lower()
    tokens = tuple(_TOKEN.findall(low))
    values = frozenset(_norm(value, low) for value in reading.values if _is_telling(value))
    codes = frozenset(value.norm for value in reading.values if not _is_telling(value))
    plain = _without(low, reading.values)
    content = _english(reading.subject, reading.names) | _chinese(plain)
    capitals = _CAPITAL.findall(text)
    first = capitals[0].lower() if capitals and text.lstrip("\"'“(").startswith(capitals[0]) else ""
    rivals = frozenset(map(_class, RIVALS.keys() & map(stem, tokens)))
    if not low.isascii():
        rivals |= frozenset(word for word in ZH_RIVALS if word in low)
    opposites = {_class(stem(word)) for words in contrasts(reading.subject, text).values() for word in words} - MANNER
    return ClaimFeatures(
        tokens=tokens,
        frame=tuple(_TOKEN.findall(plain)) if reading.values else tokens,
        content=content | rivals | values | codes | opposites,
        values=values,
        names=frozenset(_class(stem(name)) for name in reading.names),
        openers=frozenset((_class(stem(first)),)) if first else frozenset(),
        limits=_limits(tokens, low),
        contrasts=frozenset(opposites),
        negative=is_negative(low, tokens),
    )


def cause_features(text: str, about: str) -> ClaimFeatures:
    """The words of an error's cause, to compare wordings by; words of `about` tell no causes apart."""
    names = frozenset(word.removesuffix("s") for word in re.findall("[a-z]+", about.casefold()))
    words, none = tuple(text.split()), frozenset[str]()
    telling = (word for word in words if word not in STOP and word.removesuffix("s") not in names)
    content = frozenset(map(stem, telling)) or frozenset(words)
    return ClaimFeatures(
        tokens=words,
        frame=words,
        content=content,
        values=none,
        names=none,
        openers=none,
        limits=none,
        contrasts=none,
        negative=False,
    )


def _spelled(text: str) -> str:
    """One way of writing numbers, times and bounds."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("’", "'")
    is_ascii = text.isascii()
    if is_ascii and not _MAY_BE_SPELLED.search(text):
        return text
    for pattern, spelling in _SPELLINGS if is_ascii else (*_SPELLINGS, *_ZH_SPELLINGS):
        text = pattern.sub(spelling, text)
    return text if is_ascii else _ZH_COUNT.sub(lambda match: f"{chinese_number(match[0])}", text)


def is_negative(low: str, tokens: tuple[str, ...]) -> bool:
    """Whether a text, in lower case, asks against something or denies it."""
    if not NEGATIVE.isdisjoint(tokens) or _OUT.search(low):
        return True
    if "n't" in low and any(token.endswith("n't") for token in tokens):
        return True
    return not low.isascii() and _ZH_NEGATIVE.search(_ZH_FALSE.sub(" ", low)) is not None


def value_norm(value: str | float, unit: str | None) -> str:
    """The form in which two values of a slot compare.

    >>> value_norm(45, "days") == value_norm("45", "day"), value_norm("9 am", None) == value_norm("09:00", None)
    (True, True)
    """
    text = f"{value} {unit}" if unit else f"{value}"
    found = typed_values(text)
    if len(found) == 1 and _is_telling(found[0]):
        return _norm(found[0], text.lower())
    return normalize(text)


def alike(one: ClaimFeatures, other: ClaimFeatures) -> bool:
    """Whether two wordings say the same of the same, polarity aside."""
    if one.tokens == other.tokens:
        return True
    if one.values != other.values or one.limits != other.limits:
        return False
    if not (one.contrasts <= other.content and other.contrasts <= one.content) or not (
        same_words(one, other) >= MOST or _misspelled(one, other)
    ):
        return False
    if _rivals(one, other) or _different_names(one, other):
        return False
    return not _is_minimal_pair(one.frame, other.frame)


def akin(one: ClaimFeatures, other: ClaimFeatures) -> bool:
    """Whether two wordings of one narrow topic say the same of it: half of the words of the shorter one will do."""
    if one.values != other.values or one.limits != other.limits or _rivals(one, other) or _different_names(one, other):
        return False
    shared, smaller = len(one.content & other.content), min(len(one.content), len(other.content))
    return smaller > 0 and shared >= HALF * smaller and not _is_minimal_pair(one.frame, other.frame)


def shares_words(one: ClaimFeatures, other: ClaimFeatures) -> bool:
    """Whether two wordings of one slot and value have anything in common beside it."""
    mine, others = one.content - one.values, other.content - other.values
    return not mine or not others or not mine.isdisjoint(others)


def same_words(one: ClaimFeatures, other: ClaimFeatures) -> float:
    """The share of content words that both have, of all; 0 where they have nothing telling in common."""
    shared = one.content & other.content
    if shared <= _COMMON:
        return 0.0
    return len(shared) / len(one.content | other.content)


def shares_telling_word(one: ClaimFeatures, other: ClaimFeatures) -> bool:
    """Whether two wordings have a content word in common that is no common one; of Chinese, characters, a quarter."""
    shared = (one.content & other.content) - _COMMON
    characters = {word for word in shared if len(word) == 1 and not word.isascii()}
    if shared - characters:
        return True
    return 4 * len(characters) >= min(len(one.content), len(other.content)) > 0


def _misspelled(one: ClaimFeatures, other: ClaimFeatures) -> bool:
    """Whether all that differs is one word, misspelled."""
    mine, others = one.content - other.content, other.content - one.content
    if len(mine) != 1 or len(others) != 1 or len(one.content) < 2:
        return False
    return _similar(*mine, *others)


def _similar(one: str, other: str) -> bool:
    if one[0] != other[0] or abs(len(one) - len(other)) > 2 or min(len(one), len(other)) < 4:
        return False
    if not (one.isascii() and other.isascii() and one.isalpha() and other.isalpha()):
        return False
    return SequenceMatcher(None, min(one, other), max(one, other), autojunk=False).ratio() >= TYPO


def _is_minimal_pair(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether all is the same but one or two words in one place, which are no misspelling of each other."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    mine, others = one[start : len(one) - end], other[start : len(other) - end]
    if not mine or not others or max(len(mine), len(others)) > 2 or start + end < 2:
        return False
    told = [
        {_class(stem(word)) for word in words if word not in _IDLE} - _IDLE - ZH_STOP - _ZH_NOT
        for words in (mine, others)
    ]
    if not told[0] or not told[1] or told[0] & told[1]:
        return False
    return not (len(mine) == len(others) == 1 and _similar(mine[0], others[0]))


def _rivals(one: ClaimFeatures, other: ClaimFeatures) -> bool:
    """Whether each names a member of one closed class that the other does not."""
    mine, others = one.content - other.content, other.content - one.content
    return any(
        not {table[word] for word in mine if word in table}.isdisjoint(table[word] for word in others if word in table)
        for table in (RIVALS, ZH_RIVALS)
    )


def _different_names(one: ClaimFeatures, other: ClaimFeatures) -> bool:
    """Whether each names somebody that the other does not mention."""
    mine, others = (one.names | one.openers) - other.content, (other.names | other.openers) - one.content
    if mine - _IDLE and others - _IDLE:
        return True
    if (one.names - other.content and other.names) or (other.names - one.content and one.names):
        return True
    both = ((one.names | one.openers) & (other.names | other.openers)) - _IDLE - RIVALS.keys()
    return len(both) > 1 and _named(one, both) != _named(other, both)


def _named(one: ClaimFeatures, both: frozenset[str]) -> list[str]:
    """These names in the order in which they stand, places left out: who does what to whom."""
    pairs = zip(("", *one.tokens), one.tokens, strict=False)
    found = (_class(stem(token)) for before, token in pairs if before not in _WHERE)
    return list(dict.fromkeys(name for name in found if name in both))


def _class(word: str) -> str:
    return SAME.get(word, word)


def _english(subject: frozenset[str], names: frozenset[str]) -> frozenset[str]:
    words = frozenset(_class(word) for word in subject if word.isascii())
    return (words - MANNER) | frozenset(_class(stem(name)) for name in names)


def _chinese(low: str) -> frozenset[str]:
    """Characters, without those that a claim does not turn on; synonyms as one."""
    if low.isascii():
        return frozenset()
    low = _ZH_MANNER.sub(" ", _ZH_SAME.sub(lambda match: ZH_SAME[match[0]], low))
    return frozenset("".join(_ZH_RUN.findall(low))) - ZH_STOP


def _without(low: str, values: tuple[Value, ...]) -> str:
    for value in values:
        low = low[: value.start] + " " * (value.stop - value.start) + low[value.stop :]
    return low


def _is_telling(value: Value) -> bool:
    """Whether two claims with different ones are two: names and words in capitals may just be left out."""
    return value.kind not in ("name", "identifier") or any(map(str.isdigit, value.norm))


def _limits(tokens: tuple[str, ...], low: str) -> frozenset[str]:
    found = {LIMITS[token] for token in tokens if token in LIMITS}
    if not low.isascii():
        found |= {LIMITS[word] for word in _ZH_LIMITS if word in low} | set(_ZH_AROUND.findall(low))
    return frozenset(found)


def _norm(value: Value, low: str) -> str:
    """A value's norm with its unit; times on 24 hours."""
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
