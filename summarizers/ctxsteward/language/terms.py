"""Text as index terms: Snowball stems of words, bigrams of scripts without blanks, identifiers whole and in parts.

>>> terms("She painted the sunrise_2022 quickly")
['paint', 'sunrise_2022', 'sunris', '2022', 'quick']
>>> terms("我喜欢北京")
['我喜', '喜欢', '欢北', '北京']
>>> terms("getOrder failed: ERR-4521")
['getorder', 'get', 'order', 'fail', 'err-4521', 'err', '4521']

Source: M. Porter, Snowball (snowballstem.org); character bigrams for Chinese, Japanese and Korean retrieval (Nie 1996).
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

from .lists import lists

MAX_TEXT_CHARS = 100_000
"""Of one message or query; what comes after is not indexed."""
MAX_TERM_CHARS = 64

_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai and Lao, Burmese, Khmer
    r"\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff"  # Japanese, Chinese, Korean
)
_WORD = rf"(?:(?![{_UNSPACED}])[^\W_])+"
_TOKEN = re.compile(rf"[{_UNSPACED}]+|{_WORD}(?:[_./:@-]{_WORD}|_+{_WORD})*")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_PART = re.compile(rf"{_WORD}")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def terms(text: str) -> list[str]:
    """Index terms of a text, in order, repeats included."""
    text = text[:MAX_TEXT_CHARS]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)[:MAX_TEXT_CHARS]
    stop_words = index_stop_words()
    found: list[str] = []
    for token in _TOKEN.findall(text):
        if _IS_UNSPACED.match(token):
            found += [token[i : i + 2] for i in range(len(token) - 1)] or [token]
        elif token.isalpha() and (token.islower() or token.istitle()):  # nearly every word
            word = token.lower()
            if word not in stop_words:
                found.append(stem(word[:MAX_TERM_CHARS]))
        else:
            found += _of_name(token)
    return found


@cache
def index_stop_words() -> frozenset[str]:
    """Words that no index holds."""
    return frozenset(lists("words").words("index_stop"))


def _of_name(token: str) -> Iterator[str]:
    """A name or number, whole where it is one thing (`user_id`, `10.0.0.7`, `getOrder`), and its parts."""
    parts = [word for part in _PART.findall(token) for word in _HUMP.split(part)]
    stop_words = index_stop_words()
    whole = token.lower()[:MAX_TERM_CHARS]
    if len(parts) > 1 and ("_" in token or not _joined_words(parts, token)):
        yield whole
    for part in parts:
        word = part.lower()
        if word not in stop_words:
            yield stem(word[:MAX_TERM_CHARS])


def _joined_words(parts: list[str], token: str) -> bool:
    """Whether it is words of a sentence with a mark between: `self-care`, `and/or`, `end.Next`."""
    return all(part.isalpha() for part in parts) and not token.isalnum()


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The Snowball stem of a lower-case English word."""
    stemmed: str = _stemmer().stemWord(word)
    return stemmed


_stemmers = threading.local()
"""A stemmer works on itself, so each thread has its own."""


def _stemmer() -> Any:
    found = getattr(_stemmers, "english", None)
    if found is None:
        from snowballstemmer.english_stemmer import EnglishStemmer  # by name: the same stems with or without PyStemmer

        found = _stemmers.english = EnglishStemmer()
    return found


@lru_cache(maxsize=1 << 16)
def term_stem(word: str) -> str:
    """The first index term of a word; the word itself where it has none."""
    return next(iter(terms(word)), word)
