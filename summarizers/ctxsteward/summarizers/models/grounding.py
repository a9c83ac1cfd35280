"""Whether a bullet that a model wrote holds against the originals it cites. Code decides, never a second model.

A bullet stands only where all of this is so; the first that is not is its fault (`Fault`):

    cited       it cites at least one of the references that were given (others are left out)
    line        it is one line of printable text, not longer than its sources, without what reads like a reference, and
                without letters that look like others
    language    it is written in the script of what it cites
    quotes      what it puts in quotes or backticks stands in one cited original, word for word
    values      each number with its unit, in digits or words, and each date, identifier, path, URL stands whole in a
                cited sentence that shares a word with it; each word with a capital, but the first, in a cited text
    words       most of its content words (characters, in scripts without blanks) stand in the cited originals, and a
                good part of them in one sentence
    speaker     words and values stand in what its speaker said alone; an ask or a wish is a user's, and no system
                message, tool or assistant is one
    sign        it is for or against as the sentence that it is most like, and no question or guess told plainly

These are necessary and not enough. Of each check ask how a false line passes it: one that exchanges two names or values
of one sentence passes ("the port of A" for "of B" where it names both), one that leaves out a condition, one that takes
an older value of the sentence, one that adds a few words to many true ones, a name in lower case that nobody said. Of
false lines made to pass about two in five do; so where nobody asks for a model's own words `held_lines` shows its
sources'.

Source: a claim held against cited sentences, as in Thorne et al. 2018 (FEVER), by rules in place of a model.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field, StrictStr

from ctxsteward.language.clauses import agree, clauses, likeness
from ctxsteward.language.figures import Figure, figures
from ctxsteward.language.values import CURRENCIES, DISTINCTIVE, Value, chinese_number, typed_values
from ctxsteward.language.words import STOP, lists, sentences, term_stem, terms
from ctxsteward.schemas import Bullet
from ctxsteward.schemas.frozen import FrozenModel
from ctxsteward.schemas.summary import LossKind, SourceMessage

Speaker = Literal["user", "assistant", "tool"]
Fault = Literal["cited", "line", "language", "quotes", "values", "words", "speaker", "sign"]

MIN_WORDS = 0.6
"""Of a bullet's content words, in what it cites."""
MIN_IN_SENTENCE = 0.34
"""Of them, in the one cited sentence that has most of them."""
SAYS_THE_SAME = 0.8
"""Of an extractive bullet's content words."""
MIN_LIKENESS = 0.4
"""Of two clauses, for their signs to be compared."""
MAX_BULLET_CHARS = 600
MIN_QUOTE_CHARS = 3
_QUOTED = re.compile(
    r"\"([^\"\n]{1,600})\"|“([^“”\n]{1,600})”|「([^「」\n]{1,600})」|『([^『』\n]{1,600})』|`([^`\n]{1,600})`|‘([^‘’\n]{8,600})’"
)
_LIKE_REF = re.compile(r"§\s?\d")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ALIKE = frozenset(("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"))
_ZH_FUNCTION = frozenset("的了是在和与也都就而及或之被把将给对从到于为以让使这那其个所则")
_COUNTED = frozenset(("date", "time", "money", "percent", "quantity", "number"))
"""Kinds that are compared as figures; dates with slashes are not (day and month are anybody's guess)."""
_NEGATIVE = re.compile(r"(?:(?<=\s)|^)[-−][$€£¥]?\d+")
_PLACE = re.compile(r"(.+?):\d+(?::\d+)?")
_MORNING = re.compile(r"\d ?a\.?m\b|[早凌]|上午", re.IGNORECASE)
_DENIED = re.compile(r"\b(?:no|not|never|nor|cannot|without)\b|n't\b|[不勿别无]|禁止", re.IGNORECASE)
_ZH_NUMERAL = (
    r"(?<![零〇一二两三四五六七八九十百千万])[零〇一二两三四五六七八九十百千万]{1,20}|(?<!\d)\d{1,15}(?:\.\d{1,15})?"
)
_ZH_CLOCK = re.compile(rf"(早上|上午|凌晨|中午|下午|傍晚|晚上|昨晚|今晚|明晚|晚)?({_ZH_NUMERAL})点(半)?(?!\d)")
_ZH_MYRIADS = re.compile(r"(?<!\d)(\d{1,15}(?:\.\d{1,15})?) ?万")
_FOREIGN = {"美元": "usd", "美金": "usd", "欧元": "eur", "英镑": "gbp"}
_ZH_FOREIGN = re.compile(rf"({_ZH_NUMERAL})({'|'.join(_FOREIGN)})")
_WORD = re.compile(r"[A-Za-z][A-Za-z'’]*")
_BEGINS = re.compile(r"(?:^|[.!?:;•|(—–-])[\s\"'“”‘`(]*$")
_LISTS = lists("speech")
_ACTS = frozenset(term_stem(word) for word in _LISTS.words("acts"))
_ZH_ACTS = _LISTS.words("zh_acts")
_USERS = frozenset(term_stem(word) for word in _LISTS.words("users"))
_ZH_USERS = _LISTS.words("zh_users")
_AGENTS = frozenset(term_stem(word) for word in _LISTS.words("agents"))
_ZH_AGENTS = _LISTS.words("zh_agents")
_ASSISTANTS = frozenset(term_stem(word) for word in _LISTS.words("assistants"))
_ZH_ASSISTANTS = _LISTS.words("zh_assistants")
_WISHES = frozenset(term_stem(word) for word in _LISTS.words("wishes"))
_ZH_WISHES = _LISTS.words("zh_wishes")
_HEDGES = frozenset(_LISTS.words("hedges"))
_ZH_HEDGES = _LISTS.words("zh_hedges")
_QUESTION = re.compile(r"[?？]|[吗呢]$")


class DraftBullet(FrozenModel):
    """A bullet as a model writes it."""

    text: Annotated[StrictStr, Field(min_length=1, max_length=4 * MAX_BULLET_CHARS)]
    cites: Annotated[list[Annotated[StrictStr, Field(max_length=20)]], Field(max_length=50)]
    said_by: Speaker
    kind: LossKind = "fact"


class DraftBullets(FrozenModel):
    """A model's reply."""

    bullets: Annotated[list[DraftBullet], Field(max_length=200)]


@dataclass(frozen=True, slots=True)
class GroundingText:
    """An original as bullets are held against it."""

    speaker: Speaker
    role: str
    """Of the message; of results "tool"."""
    text: str
    terms: frozenset[str]
    sentences: tuple[tuple[str, frozenset[str]], ...]
    """Each with its words."""
    norms: frozenset[str]
    spoken: frozenset[str] = frozenset()
    """Its terms, function words among them."""
    said: tuple[tuple[str, str], ...] = ()
    """What it is made of, as it was written: each text with the role whose words it is."""


def grounding_texts(messages: Sequence[SourceMessage]) -> dict[str, GroundingText]:
    """Originals by reference; a message of tool results is the tool's, whoever carried it."""
    return {item.ref: _read(item) for item in messages}


def fault_of(draft: DraftBullet, sources: Mapping[str, GroundingText]) -> tuple[Fault | None, tuple[str, ...]]:
    """What is wrong with a bullet, and the references it may keep."""
    refs = tuple(ref for ref in dict.fromkeys(draft.cites) if ref in sources)
    cited = [sources[ref] for ref in refs]
    if not cited:
        return "cited", ()
    text = unicodedata.normalize("NFC", draft.text).strip()
    source = " ".join(one.text for one in cited)
    if not _is_line(text) or not _is_spelled(text, source) or len(text) > max(80, *(len(one.text) for one in cited)):
        return "line", refs
    words, plain = content_words(text), content_words(_without_values(text)) - _USERS - _ACTS - _AGENTS
    speaker = _speaker_of(draft, text, cited)
    own = [one for one in cited if one.speaker == speaker]
    checks: tuple[tuple[Fault, bool], ...] = (
        ("language", _is_wide(text) == _is_wide(" ".join(one.text for one in cited))),
        ("quotes", all(any(quote in one.text for one in cited) for quote in quotes_of(text))),
        ("values", _values_hold(text, words, cited)),
        ("words", _says_something(text) and _words_hold(text, plain, cited)),
        ("speaker", bool(own) and _words_hold(text, plain, own) and _values_hold(text, words, own)),
        ("sign", _signs_hold(text, cited) and _is_meant(text, own)),
    )
    return next((name for name, holds in checks if not holds), None), refs


def content_words(text: str) -> frozenset[str]:
    """Terms of a text that say something by themselves."""
    return frozenset(term for term in terms(text) if term not in _STOP_STEMS)


def spoken_words(text: str) -> frozenset[str]:
    """Content words, and the single characters of scripts without blanks."""
    return content_words(text) | frozenset(_WIDE.findall(text)) - _ZH_FUNCTION


def says(text: str, bullet: Bullet) -> bool:
    """Whether a text says a bullet: its values, nearly all of its words, and for or against like it."""
    words, said = spoken_words(bullet.text), spoken_words(text)
    return (
        len(words & said) >= SAYS_THE_SAME * len(words)
        and {value.norm for value in typed_values(bullet.text)} <= {value.norm for value in typed_values(text)}
        and set(figures(bullet.text)) <= set(figures(text))
        and _signs_hold(text, [_read_text("user", "user", bullet.text)])
        and _signs_hold(bullet.text, [_read_text("user", "user", text)])
    )


def quotes_of(text: str) -> list[str]:
    """What a text quotes.

    >>> quotes_of('She wrote “never on a Monday” and ran `make lint`.')
    ['never on a Monday', 'make lint']
    """
    found = [next(part for part in match.groups() if part is not None) for match in _QUOTED.finditer(text)]
    return [quote.strip() for quote in found if len(quote.strip()) >= MIN_QUOTE_CHARS]


def plain_words(text: str) -> frozenset[str]:
    """Spoken words, without those for who talks to whom and that somebody asks or says."""
    for word in (*_ZH_USERS, *_ZH_AGENTS, *_ZH_ACTS):
        text = text.replace(word, " ")
    return spoken_words(text) - _USERS - _AGENTS - _ACTS


_STOP_STEMS = frozenset(map(term_stem, STOP)) | STOP


def _read(item: SourceMessage) -> GroundingText:
    message = item.message
    results = [("tool", result.text) for result in message.tool_results]
    calls = [("assistant", f"{call.name} {call.arguments}") for call in message.tool_calls]
    said = [(str(message.role), message.text), *results, *calls]
    text = "\n".join(text for _, text in said).strip()
    speaker: Speaker = "user" if message.role == "user" and not results else "tool"  # a system message is nobody's wish
    speaker = "assistant" if message.role == "assistant" and not results else speaker
    read = _read_text(speaker, "tool" if results else message.role, text)
    return replace(read, said=tuple((role, text) for role, text in said if text.strip()))


@lru_cache(maxsize=512)
def _read_text(speaker: Speaker, role: str, text: str) -> GroundingText:
    parts = tuple(text[span.start : span.stop] for span in sentences(text)) or (text,)
    read = tuple((part, spoken_words(part)) for part in parts)
    text = unicodedata.normalize("NFC", text)
    return GroundingText(
        speaker, role, text, content_words(text), read, frozenset(_norms(text)), frozenset(terms(text))
    )


def _norms(text: str) -> set[str]:
    return {value.norm for value in typed_values(text)}


def _is_line(text: str) -> bool:
    one_line = bool(text) and len(text) <= MAX_BULLET_CHARS and text.isprintable()
    return one_line and _LIKE_REF.search(text) is None


def _is_spelled(text: str, source: str) -> bool:
    """Whether it is written in letters that can be told apart: no word of two alphabets, no digit or letter of another
    width, no mark on a letter, where the source has it not."""
    plain = unicodedata.normalize("NFKC", text)
    odd = {
        one for one, other in zip(text, plain, strict=False) if one != other and (one.isalnum() or one in "＄￥￡％")
    }
    odd |= {char for char in text if unicodedata.category(char) in ("Mn", "Me", "Cf", "Co", "Cn")}
    odd |= {char for char in text if char.isalpha() and not char.isascii() and not _WIDE.match(char)}
    letters = {_alphabet(char) for char in source if char.isalpha()}
    strange = {char for char in odd if char not in source and not (char.isalpha() and _alphabet(char) in letters)}
    mixed = any(len({_alphabet(char) for char in word} & _ALIKE) > 1 for word in re.findall(r"[^\W\d_]+", text))
    return not strange and not mixed


def _alphabet(letter: str) -> str:
    return unicodedata.name(letter, "?").split()[0]


def _says_something(text: str) -> bool:
    return bool(content_words(text) or typed_values(text) or len(set(_WIDE.findall(text)) - _ZH_FUNCTION) > 1)


def _is_wide(text: str) -> bool:
    """Whether most letters are of a script without blanks."""
    letters = sum(char.isalpha() for char in text)
    return len(_WIDE.findall(text)) * 2 > letters if letters else False


def _values_hold(text: str, words: frozenset[str], cited: Sequence[GroundingText]) -> bool:
    """Each value stands in a cited sentence that shares another word with the bullet; names stand in a cited text."""
    values = [value for value in typed_values(text) if value.kind not in _COUNTED or "/" in value.norm]
    if not all(_value_holds(text[value.start : value.stop], value, words, cited) for value in values):
        return False
    if not all(_figure_holds(figure, text, words, cited) for figure in _figures(_without_values(text, DISTINCTIVE))):
        return False
    spoken = " ".join(one.text for one in cited)
    weekdays = {value.norm[-1] for one in cited for value in typed_values(one.text) if value.unit == "weekday"}
    if any(value.norm[-1] not in weekdays for value in typed_values(text) if value.unit == "weekday"):
        return False
    if any(minus not in spoken for minus in _NEGATIVE.findall(text)):
        return False
    known = {term_stem(word.lower()) for one in cited for word in _WORD.findall(one.text)}
    return all(term_stem(name.lower()) in known for name in _names(text))


def _value_holds(written: str, value: Value, words: frozenset[str], cited: Sequence[GroundingText]) -> bool:
    others = words - content_words(written)
    place = _PLACE.fullmatch(value.norm)
    norms = {value.norm} | ({place[1]} if place and value.kind == "path" else set())
    before = r"[A-Za-z0-9_@.:-]" if value.kind == "path" else r"[A-Za-z0-9_@./:-]"  # of a path its end will do
    behind = r"[A-Za-z0-9_@]|[./:-][A-Za-z0-9_]"
    whole = re.compile(rf"(?<!{before}){re.escape(written)}(?!{behind})", re.IGNORECASE)
    for one in cited:
        if norms.isdisjoint(one.norms) and not whole.search(one.text):
            continue
        for sentence, known in one.sentences:
            here = not norms.isdisjoint(_norms(sentence)) or whole.search(sentence)
            if here and (value.kind in DISTINCTIVE or not others or others & known):
                return True
    return False


def _figure_holds(figure: Figure, text: str, words: frozenset[str], cited: Sequence[GroundingText]) -> bool:
    others = words - {figure.number}
    for one in cited:
        for sentence, known in one.sentences:
            is_about = not others or others & known or (_is_wide(text) and _shared(text, sentence) >= MIN_IN_SENTENCE)
            if is_about and any(_same(figure, other, text, sentence) for other in _figures(sentence)):
                return True
    return False


def _same(figure: Figure, other: Figure, text: str, sentence: str) -> bool:
    """Whether a figure of a bullet is one of its source: number, unit, and which way it bounds."""
    if other.unit == "date" and figure.unit == "date":
        return other.number == figure.number or (figure.number[0] == "-" and other.number.endswith(figure.number))
    if figure.unit == "date" and figure.number[0] == "-":  # "May 14 … the 28th" is May 28
        month, day = figure.number[1:3], figure.number[4:].lstrip("0")
        near = any(f.unit == "date" and f.number[-5:-3] == month for f in _figures(sentence))
        return near and re.search(rf"\b{day}(?:st|nd|rd|th)\b", sentence) is not None
    if figure.unit == "time" == other.unit and figure.number != other.number:
        hour, is_plain = int(figure.number[:2]), _MORNING.search(text) is None
        return is_plain and hour < 12 and other.number == f"{hour + 12:02}{figure.number[2:]}"
    if figure.number != other.number or not _one_unit(figure, other, text, sentence):
        return False
    return "" in (figure.bound, other.bound) or figure.bound == other.bound or _DENIED.search(text) is not None


def _one_unit(figure: Figure, other: Figure, text: str, sentence: str) -> bool:
    if figure.unit == other.unit:
        return True
    words = re.findall(r"[^\W\d_]+|[$€£¥]", sentence.casefold())
    if not figure.unit:  # a bullet may leave a unit out, and not put another word in its place
        behind = re.search(rf"(?<![\d.]){re.escape(figure.number)}\s?-?([A-Za-z]+)", text.replace(",", ""))
        return behind is None or behind[1].lower() in STOP or behind[1].casefold() in words
    if figure.unit in CURRENCIES.values():
        return not other.unit and any(CURRENCIES.get(word) == figure.unit for word in words)
    return not other.unit and term_stem(figure.unit) in {term_stem(word) for word in words}


@lru_cache(maxsize=2048)
def _figures(text: str) -> tuple[Figure, ...]:
    """Of a text, hours of the clock and sums in Chinese written as the others are."""
    text = _ZH_CLOCK.sub(_clock, text)
    text = _ZH_MYRIADS.sub(lambda m: f"{float(m[1]) * 10_000:.0f}", text)
    text = _ZH_FOREIGN.sub(lambda m: f" {_number(m[1])} {_FOREIGN[m[2]]} ", text)
    return figures(text)


def _clock(match: re.Match[str]) -> str:
    hour, minutes = int(_number(match[2])), 30 if match[3] == "半" else 0
    hour += 12 if match[1] and match[1][0] in "晚下傍" and hour < 12 else 0
    return f" {hour:02}:{minutes:02} " if hour < 25 else match[0]


def _number(numeral: str) -> float | int:
    try:
        return float(numeral)
    except ValueError:
        return chinese_number(numeral)


def _names(text: str) -> list[str]:
    """Words with a capital that do not begin a sentence, and Latin words among Chinese."""
    if _is_wide(text):
        return [word for word in _WORD.findall(text) if len(word) > 1 and word.lower() not in STOP]
    return [
        match[0]
        for match in _WORD.finditer(text)
        if match[0][0].isupper()
        and len(match[0]) > 1
        and not _BEGINS.search(text, 0, match.start())
        and match[0].lower() not in STOP
        and term_stem(match[0].lower()) not in _USERS | _AGENTS | _ACTS
    ]


def _without_values(text: str, kinds: Collection[str] | None = None) -> str:
    """A text without what `values` holds against the originals."""
    for value in reversed(typed_values(text)):
        if kinds is not None and value.kind not in kinds:
            continue
        text = f"{text[: value.start]} {text[value.stop :]}"
    return text


def _words_hold(text: str, words: frozenset[str], cited: Sequence[GroundingText]) -> bool:
    """All of nothing holds: what is left is values. Of scripts without blanks single characters are compared."""
    if _is_wide(text):
        whole = _shared(text, " ".join(one.text for one in cited))
        nearest_part = max(_shared(text, sentence) for one in cited for sentence, _ in one.sentences)
        return whole >= MIN_WORDS and nearest_part >= MIN_IN_SENTENCE
    known = frozenset().union(*(one.terms for one in cited))
    nearest = max(len(words & here) for one in cited for _, here in one.sentences)
    return len(words & known) >= MIN_WORDS * len(words) and nearest >= MIN_IN_SENTENCE * len(words)


def _shared(text: str, other: str) -> float:
    """Of a text's characters of scripts without blanks, those in another."""
    for word in (*_ZH_USERS, *_ZH_AGENTS, *_ZH_ACTS):
        text = text.replace(word, "")
    chars = set(_WIDE.findall(text)) - _ZH_FUNCTION
    return len(chars & set(other)) / len(chars) if chars else 1.0


def _speaker_of(draft: DraftBullet, text: str, cited: Sequence[GroundingText]) -> Speaker:
    """Whose words a bullet is held against.

    A user's, where it names one who asks or wishes, or whom the cited do not speak of; where anything is asked or
    decided that they do not say; and where a tool tells what somebody wants. What the assistant does or will do, where
    no cited original speaks of it, is the assistant's. Else those of the speaker it names.
    """
    spoken = frozenset(terms(text))
    heard = frozenset().union(*(one.spoken for one in cited))
    source = " ".join(one.text for one in cited)
    acts = spoken & _ACTS or {word for word in _ZH_ACTS if word in text}
    is_new = bool((spoken & _ACTS) - heard) or any(word in text and word not in source for word in _ZH_ACTS)
    users = spoken & _USERS | {word for word in _ZH_USERS if word in text}
    if users and (acts or any(word not in heard and word not in source for word in users)):
        return "user"
    if acts and draft.said_by == "tool" and not users.isdisjoint(heard):
        return "user"
    is_wish = bool(spoken & _WISHES) or any(word in text for word in _ZH_WISHES)
    of_agent = bool(spoken & _AGENTS) or any(word in text for word in _ZH_AGENTS)
    if (is_new or (is_wish and draft.said_by == "tool")) and not of_agent:
        return "user"
    is_unheard = bool((spoken & _ASSISTANTS) - heard) or any(w in text and w not in source for w in _ZH_ASSISTANTS)
    return "assistant" if is_unheard else draft.said_by


def _signs_hold(text: str, cited: Sequence[GroundingText]) -> bool:
    """Each clause is for or against as the cited clause that it is most like; of equals one that agrees will do."""
    known = [clause for one in cited for sentence, _ in one.sentences for clause in clauses(sentence)]
    for clause in clauses(text):
        scored = [(likeness(clause, other), other) for other in known]
        best = max((score for score, _ in scored), default=0.0)
        nearest = [other for score, other in scored if score >= max(best - 0.05, MIN_LIKENESS)]
        if nearest and not any(agree(((clause, other),)) for other in nearest):
            return False
    return True


def _is_meant(text: str, own: Sequence[GroundingText]) -> bool:
    """What its source asks or only considers, a bullet does not say plainly: it asks, hedges or names the act too."""
    spoken = frozenset(terms(text))
    if _QUESTION.search(text) or spoken & _ACTS or any(word in text for word in (*_ZH_ACTS, *_ZH_HEDGES)):
        return True
    if _HEDGES & set(re.findall(r"[a-z]+", text.lower())):
        return True
    words, chars = content_words(text), set(_WIDE.findall(text))
    scored = [
        (len(words & known) + len(chars & set(sentence)) / 2, sentence)
        for one in own
        for sentence, known in one.sentences
    ]
    most = max((score for score, _ in scored), default=0.0)
    return any(score == most and not _is_open(sentence) for score, sentence in scored)


def _is_open(sentence: str) -> bool:
    """A question, or what may be."""
    hedged = _HEDGES & set(re.findall(r"[a-z]+", sentence.lower()))
    return bool(hedged) or _QUESTION.search(sentence) is not None or any(word in sentence for word in _ZH_HEDGES)
