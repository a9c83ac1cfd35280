"""Whether a bullet that a model wrote holds against the originals it cites. Code decides, never a second model.

A bullet stands only where all of this is so; the first that is not is its fault (`Fault`):

    cited       it cites at least one of the references that were given (others are left out)
    line        it is one line of printable text, not longer than its sources, without what reads like a reference
    language    it is written in the script of what it cites
    quotes      what it puts in quotes or backticks stands in one cited original, word for word
    values      each number, date, name, identifier, path, URL stands in a cited sentence that shares a word with it
    words       most of its content words stand in the cited originals, and a good part of them in one sentence
    speaker     what somebody asked, wants, said or decided is held against that speaker's own words alone
    sign        it is for or against as the sentence that it is most like

Of each check ask how a false line passes it: a line that moves a value within one sentence passes ("the port of A" for
"of B" where the sentence names both), and so does one that leaves out a condition. Citations let a reader look.

Source: a claim held against cited sentences, as in Thorne et al. 2018 (FEVER), by rules in place of a model.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictStr

from ctxsteward.language import (
    STOP,
    Value,
    agree,
    clauses,
    likeness,
    lists,
    sentences,
    term_stem,
    terms,
    typed_values,
)
from ctxsteward.schemas import Bullet, LossKind, SourceMessage

Speaker = Literal["user", "assistant", "tool"]
Fault = Literal["cited", "line", "language", "quotes", "values", "words", "speaker", "sign"]

MIN_WORDS = 0.6
"""Of a bullet's content words, in what it cites."""
MIN_IN_SENTENCE = 0.34
"""Of them, in the one cited sentence that has most of them."""
MIN_LIKENESS = 0.4
"""Of two clauses, for their signs to be compared."""
MAX_BULLET_CHARS = 600
MIN_QUOTE_CHARS = 3
_QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|「([^」\n]+)」|『([^』\n]+)』|`([^`\n]+)`|‘([^’\n]{8,})’")
_LIKE_REF = re.compile(r"§\s?\d")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LISTS = lists("speech")
_ACTS = frozenset(term_stem(word) for word in _LISTS.words("acts"))
_ZH_ACTS = _LISTS.words("zh_acts")
_USERS = frozenset(term_stem(word) for word in _LISTS.words("users"))
_ZH_USERS = _LISTS.words("zh_users")
_AGENTS = frozenset(term_stem(word) for word in _LISTS.words("agents"))
_ZH_AGENTS = _LISTS.words("zh_agents")
_ASSISTANTS = frozenset(term_stem(word) for word in _LISTS.words("assistants"))
_ZH_ASSISTANTS = _LISTS.words("zh_assistants")


class DraftBullet(BaseModel):
    """A bullet as a model writes it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    text: Annotated[StrictStr, Field(min_length=1, max_length=4 * MAX_BULLET_CHARS)]
    cites: Annotated[list[Annotated[StrictStr, Field(max_length=20)]], Field(max_length=50)]
    said_by: Speaker
    kind: LossKind = "fact"


class DraftBullets(BaseModel):
    """A model's reply."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    bullets: Annotated[list[DraftBullet], Field(max_length=200)]


@dataclass(frozen=True, slots=True)
class GroundingText:
    """An original as bullets are held against it."""

    speaker: Speaker
    text: str
    terms: frozenset[str]
    sentences: tuple[tuple[str, frozenset[str]], ...]
    """Each with its terms."""
    norms: frozenset[str]


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
    if not _is_line(text) or len(text) > max(80, *(len(one.text) for one in cited)):
        return "line", refs
    words, plain = content_words(text), content_words(_without_values(text)) - _USERS - _ACTS - _AGENTS
    checks: tuple[tuple[Fault, bool], ...] = (
        ("language", _is_wide(text) == _is_wide(" ".join(one.text for one in cited))),
        ("quotes", all(any(quote in one.text for one in cited) for quote in quotes_of(text))),
        ("values", _values_hold(text, words, cited)),
        ("words", _words_hold(plain, cited)),
        ("speaker", _speaker_holds(draft, text, words, plain, cited)),
        ("sign", _signs_hold(text, cited)),
    )
    return next((name for name, holds in checks if not holds), None), refs


def merges_well(text: str, originals: Sequence[str]) -> Fault | None:
    """What is wrong with a line that stands for several others; `speaker` and `cited` are theirs already."""
    cited = [_read_text("user", original) for original in originals]
    text = unicodedata.normalize("NFC", text).strip()
    if not _is_line(text):
        return "line"
    checks: tuple[tuple[Fault, bool], ...] = (
        ("language", _is_wide(text) == _is_wide(" ".join(originals))),
        ("quotes", all(any(quote in original for original in originals) for quote in quotes_of(text))),
        ("values", _values_hold(text, content_words(text), cited)),
        ("words", _words_hold(content_words(_without_values(text)), cited)),
        ("words", all(_is_told(content_words(text), one.terms) for one in cited)),
        ("sign", _signs_hold(text, cited)),
    )
    return next((name for name, holds in checks if not holds), None)


def _is_told(words: frozenset[str], of: frozenset[str]) -> bool:
    """Whether a merged line says something of one that it stands for."""
    return len(words & of) >= MIN_IN_SENTENCE * len(of)


def bullet_of(draft: DraftBullet, refs: Sequence[str], value: float) -> Bullet:
    """A draft that holds, as a bullet."""
    text = unicodedata.normalize("NFC", draft.text).strip()
    return Bullet(text=text, citations=tuple(sorted(refs, key=_ordinal)), kind=draft.kind, value=value)


def content_words(text: str) -> frozenset[str]:
    """Terms of a text that say something by themselves."""
    return frozenset(term for term in terms(text) if term not in _STOP_STEMS)


def quotes_of(text: str) -> list[str]:
    """What a text quotes.

    >>> quotes_of('She wrote “never on a Monday” and ran `make lint`.')
    ['never on a Monday', 'make lint']
    """
    found = [next(part for part in match.groups() if part is not None) for match in _QUOTED.finditer(text)]
    return [quote.strip() for quote in found if len(quote.strip()) >= MIN_QUOTE_CHARS]


_STOP_STEMS = frozenset(map(term_stem, STOP)) | STOP


def _read(item: SourceMessage) -> GroundingText:
    message = item.message
    results = [result.text for result in message.tool_results]
    calls = [f"{call.name} {call.arguments}" for call in message.tool_calls]
    text = unicodedata.normalize("NFC", "\n".join([message.text, *results, *calls]).strip())
    speaker: Speaker = "tool" if results else "assistant" if message.role == "assistant" else "user"
    return _read_text(speaker, text)


@lru_cache(maxsize=512)
def _read_text(speaker: Speaker, text: str) -> GroundingText:
    parts = tuple(text[span.start : span.stop] for span in sentences(text)) or (text,)
    read = tuple((part, content_words(part)) for part in parts)
    return GroundingText(speaker, text, content_words(text), read, frozenset(_norms(text)))


def _norms(text: str) -> set[str]:
    return {value.norm for value in typed_values(text)}


def _is_line(text: str) -> bool:
    one_line = bool(text) and len(text) <= MAX_BULLET_CHARS and text.isprintable()
    return one_line and _LIKE_REF.search(text) is None


def _is_wide(text: str) -> bool:
    """Whether most letters are of a script without blanks."""
    letters = sum(char.isalpha() for char in text)
    return len(_WIDE.findall(text)) * 2 > letters if letters else False


def _values_hold(text: str, words: frozenset[str], cited: Sequence[GroundingText]) -> bool:
    return all(_value_holds(value, text, words, cited) for value in typed_values(text))


def _value_holds(value: Value, text: str, words: frozenset[str], cited: Sequence[GroundingText]) -> bool:
    """A value stands in a cited sentence that shares another word with the bullet."""
    written = text[value.start : value.stop]
    others = words - content_words(written)
    for one in cited:
        if value.norm not in one.norms and written not in one.text:
            continue
        for sentence, known in one.sentences:
            here = written in sentence or value.norm in _norms(sentence)
            if here and (not others or others & known):
                return True
    return False


def _without_values(text: str) -> str:
    """A text without what `values` holds against the originals."""
    for value in reversed(typed_values(text)):
        text = f"{text[: value.start]} {text[value.stop :]}"
    return text


def _words_hold(words: frozenset[str], cited: Sequence[GroundingText]) -> bool:
    """All of nothing holds: what is left is values."""
    known = frozenset().union(*(one.terms for one in cited))
    nearest = max(len(words & here) for one in cited for _, here in one.sentences)
    return len(words & known) >= MIN_WORDS * len(words) and nearest >= MIN_IN_SENTENCE * len(words)


def _speaker_holds(
    draft: DraftBullet, text: str, words: frozenset[str], plain: frozenset[str], cited: Sequence[GroundingText]
) -> bool:
    """Held against the words of whoever said it. What is asked or wanted without a subject is a user's; what the
    assistant does or will do, where no cited original speaks of it, is the assistant's."""
    of_user = bool(words & _USERS) or any(word in text for word in _ZH_USERS)
    heard = frozenset().union(*(one.terms for one in cited))
    of_agent = bool(words & _AGENTS) or any(word in text for word in _ZH_AGENTS)
    acts = bool((words & _ACTS) - heard) or any(
        word in text and not any(word in one.text for one in cited) for word in _ZH_ACTS
    )
    unheard = bool((words & _ASSISTANTS) - heard) or any(
        word in text and not any(word in one.text for one in cited) for word in _ZH_ASSISTANTS
    )
    by_agent: Speaker = "assistant" if unheard else draft.said_by
    speaker: Speaker = "user" if of_user or (acts and not of_agent) else by_agent
    own = [one for one in cited if one.speaker == speaker]
    return bool(own) and _words_hold(plain, own)


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


def _ordinal(ref: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", ref))
