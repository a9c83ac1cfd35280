"""Tokens of a text: operators, content words, function words, figures and punctuation.

`clauses`, `statement` and `figures` are built on these tokens and on the closed word classes below.

An *operator* is a phrase with a sign (-1 negates its clause), the modality that it gives the clause, and the condition
it opens, if any ("unless", "without", "only if"). The longest phrase is found first. Idioms that only look like an
operator ("no later than", "not only", "特别", "不同") are taken out before. The lists are `data/operators.toml`.

English is read by words, Chinese by characters. Two texts are aligned by the `key` of each token. Keys are stems, so
"share" equals "sharing" and "don't" equals "do not". Reading is linear in the text.

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
from typing import Literal, NamedTuple, cast

from ctxsteward.schemas.profile import Modality

from .words import STOP, lists, sentences, term_stem

Opens = Literal["", "if", "unless", "before", "past"]
"""Kinds of conditions. if: a plain one; unless: a negated one, as "without" opens; before: an event that must not have
happened yet; past: the words before the operator were the condition (之前)."""


class Operator(NamedTuple):
    """The effect of a phrase on its clause."""

    sign: Literal[1, -1] = 1
    modality: Modality | None = None
    opens: Opens = ""


_LISTS = lists("operators")
_SIGNS: dict[str, Literal[1, -1]] = {"plus": 1, "minus": -1}


def _operators(language: str) -> dict[str, Operator]:
    """Return the operators of a language from the lists named ``language.sign.modality.opens``; later lists win."""
    operators: dict[str, Operator] = {}
    for name in _LISTS.sections["phrases"]:
        if name.startswith(f"{language}."):
            _, sign, modality, opens = ("" if part == "none" else part for part in name.split("."))
            operator = Operator(_SIGNS[sign], cast("Modality | None", modality or None), cast("Opens", opens))
            operators |= dict.fromkeys(_LISTS.phrases(name), operator)
    return operators


def _set(name: str) -> frozenset[str]:
    return frozenset(_LISTS.phrases(name))


ENGLISH, CHINESE = _operators("en"), _operators("zh")
ENGLISH_IDIOMS, CHINESE_IDIOMS = _LISTS.phrases("idioms"), _LISTS.phrases("zh_idioms")
"""Idioms negate nothing; those with a figure bound it (`UPPER`, `LOWER`). 非法 ("illegal") and 免费 ("free of charge")
describe a thing, so they are idioms."""
OPPOSITES: frozenset[frozenset[str]] = frozenset(frozenset(pair.split(":")) for pair in _LISTS.phrases("opposites"))
"""Pairs of words with opposite meaning: exchanging one for the other negates an otherwise equal sentence."""
PREFIXES = _LISTS.words("prefixes")
"""Prefixes that turn a word into its opposite."""
COMPARED = frozenset(_LISTS.words("compared"))
"""Words that bound a figure with "than". A "not" before them reverses the bound and nothing else."""
ZH_COMPARED = _LISTS.words("zh_compared")
UPPER, LOWER = _LISTS.phrases("upper"), _LISTS.phrases("lower")
SAME: dict[str, str] = {
    stemmed: stems[0]
    for group in _LISTS.phrases("same")
    for stems in [[term_stem(word) for word in group.split()]]
    for stemmed in stems
}
"""Stem to the stem that represents its class: irregular forms, and verbs of rules with the same meaning."""
LIGHT = frozenset(map(term_stem, _LISTS.phrases("light")))
"""Verbs and nouns without content of their own."""
EXCEPTS, SOME, ADDS = _set("excepts"), _set("some"), _set("adds")
WIDENS = _set("widens")
"""Words that extend a permission to more cases."""
WEAKER = _set("weaker")
"""Words that weaken a demand to a wish."""
ONLY = _set("only")
"""Words that exclude everything else."""


TokenKind = Literal["operator", "word", "small", "figure", "hard", "soft", "idiom"]
"""small: a function word; hard: punctuation or a word that separates clauses; soft: punctuation that may do so."""

_SMALL = (STOP | frozenset(_LISTS.words("small"))) - frozenset(_LISTS.words("not_small"))
_ZH_SMALL = frozenset(
    "的了着过是在和与及或并也将会把被给对向从到由于就才再还又地得这那其该您你我他她它们之为以等吧呢啊吗只仅先后"
)
_HARD_WORDS = frozenset(_LISTS.words("hard"))
_ZH_HARD = _LISTS.words("zh_hard")
_TOKEN = re.compile(
    r"(?P<figure>[$€£¥]?\d+(?:[.,:]\d+)*(?:st|nd|rd|th)?%?)|(?P<word>[^\W\d_\u3400-\u9fff]+(?:'[^\W\d_\u3400-\u9fff]+)?)"
    r"|(?P<chinese>[\u3400-\u9fff]+)|(?P<hard>[;:.!?。；：！？—\n()（）]|--)|(?P<soft>[,，、])|(?P<none>[/·-])"
)
_CONTRACTED = dict(phrase.split(": ") for phrase in lists("words").phrases("contracted"))
_QUOTES = str.maketrans("’‘＇", "'''")


class Token(NamedTuple):
    """One unit of a text."""

    kind: TokenKind
    key: str
    start: int
    """Character offsets in the plain form of the text."""
    stop: int
    operator: Operator | None = None


def plain(text: str) -> str:
    """Return the text with uniform characters: NFKC, straight quotes, lower case."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_QUOTES)).translate(_QUOTES)
    return text.lower()


@lru_cache(maxsize=1 << 14)
def sentences_of(text: str) -> tuple[str, ...]:
    """Return the sentences of a text, in plain form."""
    form = plain(text)
    return tuple(form[piece.start : piece.stop] for piece in sentences(form))


@lru_cache(maxsize=1 << 14)
def tokens(text: str) -> tuple[Token, ...]:
    """Return the tokens of one sentence."""
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
        raw[0] = raw[0]._replace(kind="idiom", operator=None)  # "No, it is …" answers somebody and negates nothing
    return tuple(_unmet(_bounded(list(_english(raw)))))


@lru_cache(maxsize=1 << 14)
def keys_of(sentence: str) -> tuple[str, ...]:
    """Return the keys of all tokens except punctuation between clauses. Two sentences are aligned by these."""
    return tuple(token.key for token in tokens(sentence) if token.kind not in ("hard", "soft"))


def _unmet(found: list[Token]) -> list[Token]:
    """Turn a "before" after a negation into a negation: "not A before B" means the same as "not A without B"."""
    negated = False
    for index, token in enumerate(found):
        if token.operator is None:
            continue
        if token.operator.opens == "before" and negated:
            found[index] = token._replace(operator=Operator(-1, None, "before"))
        negated = negated or (token.operator.sign < 0 and not token.operator.opens)
    return found


def _bounded(found: list[Token]) -> list[Token]:
    """Turn a "not" before "more than" into an idiom, because it bounds the figure and does not negate its clause.

    In "not unlogged for more than a day" the "not" stays, because bound and prefix are both reversed: logged in a day.
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
    """Return whether the last content word names something that was not done: "unlogged", "unread"."""
    last = next((token for token in reversed(before) if token.kind not in ("small", "idiom")), None)
    return last is not None and last.kind == "word" and last.key.startswith("un") and len(last.key) > 4


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
    """Yield tokens with phrases joined to idioms and operators, and each other word as content or function word."""
    words = [token.key if token.kind == "word" else "\x00" for token in raw]
    index = 0
    while index < len(raw):
        token = raw[index]
        if token.kind != "word":
            yield token
            index += 1
            continue
        size, phrase = _phrase(words, index, raw)
        counts = index + size < len(raw) and raw[index + size].kind == "figure"
        if phrase is not None and phrase.operator is not None and phrase.key in _BOUNDING and counts:
            phrase = token._replace(kind="small")  # "until 5 pm" bounds a figure
        yield phrase or _single(token)
        index += size


_BOUNDING = ("before", "after", "until", "prior to", "once", "within")


def _phrase(words: list[str], index: int, raw: Sequence[Token]) -> tuple[int, Token | None]:
    for table, is_idiom in ((_IDIOMS, True), (_PHRASES, False)):
        for phrase in table.get(words[index], ()):
            if tuple(words[index : index + len(phrase)]) == phrase:
                key, size = " ".join(phrase), len(phrase)
                start, stop = raw[index].start, raw[index + size - 1].stop
                if is_idiom:
                    return size, Token("idiom", key, start, stop)
                return size, Token("operator", key, start, stop, _OPERATORS[phrase])
    return 1, None


def _single(token: Token) -> Token:
    if token.key in _HARD_WORDS:
        return token._replace(kind="hard")
    if token.key in _SMALL or (len(token.key) == 1 and token.key.isascii()):
        return token._replace(kind="small")
    return token._replace(key=term_stem(token.key))


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
            found = None  # here 时 is a part of another word
        if found is not None and (hard is None or len(found[0]) > len(hard)):
            phrase, operator = found
            if operator is None:
                named = len(phrase) == 2 and phrase[0] != "不" and phrase not in ZH_COMPARED
                made += _characters(phrase, place) if named else [_idiom(phrase, place)]  # "特别" is an ordinary word
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
"""Suffix of the key of a negation inside an attribute (未公布的价格), which negates no clause."""
_ATTRIBUTE = re.compile(r"[^的不未无]{1,4}的(?=[\u3400-\u9fff])")


def _idiom(phrase: str, place: int) -> Token:
    return Token("idiom", phrase, place, place + len(phrase))


def _characters(run: str, place: int) -> list[Token]:
    return [
        Token("small" if char in _ZH_SMALL else "word", char, place + step, place + step + 1)
        for step, char in enumerate(run)
    ]
