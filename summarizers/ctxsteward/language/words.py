"""Words of English and Chinese: their lists, sentences and clauses, content words, and the terms of an index.

**Lists** (`lists`) are the TOML files of the folder `data`, each read on first use. A file has some of these sections,
each a mapping from a list's name to a block of text:

    words      separated by white space
    phrases    separated by ``;``, because they may contain blanks
    classes    one class per line, its words separated by white space; the first word names the class
    rows       one row per line, for tables that are read by their own module
    patterns   regular expressions: a line is an alternative, or (`WordLists.lines`) an expression of its own

``{NAME}`` in rows and patterns is replaced by the fragment of that name in the section `parts`. `lists.schema.json` is
the published shape; `tests/language` checks every file against it and compiles every pattern.

**Sentences** (`sentences`, `clause_spans`) are character spans of the original, not copies, because a bullet may only
contain text of an original. English sentences end at ``. ! ?`` before white space (not after a common abbreviation),
Chinese ones at ``。！？；``. A line of a list, a table or a code block is a sentence of its own; a line that begins in
lower case continues the sentence before it. All passes are linear in the text.

**Content words** (`stem`, `bigrams`) are the subject of a sentence, without function words: English in lower case
without a plural or verb ending, Chinese as character bigrams between function characters. Opposites (`CONTRASTS`)
distinguish two facts with the same words: a staging port and a production port are never an update of each other.

**Index terms** (`terms`, `term_stem`) are Snowball stems of words, bigrams of scripts without blanks, and identifiers,
both whole and in parts. So there are two stemmers: `stem` for the words of a bullet or a claim, `term_stem` for indexes
and drift checks.

Source: M. Porter, Snowball (snowballstem.org); character bigrams for Chinese, Japanese and Korean retrieval (Nie 1996).
"""

from __future__ import annotations

import hashlib
import re
import threading
import tomllib
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from importlib.abc import Traversable

_FRAGMENT = re.compile(r"\{([A-Z][A-Z_]*)\}")


class WordLists(NamedTuple):
    """The lists of one file."""

    sections: dict[str, dict[str, str]]

    def words(self, name: str) -> tuple[str, ...]:
        """Return the words of a list, in its order."""
        return tuple(self.sections["words"][name].split())

    def phrases(self, name: str) -> tuple[str, ...]:
        """Return the phrases of a list, in its order."""
        text = " ".join(self.sections["phrases"][name].split())
        return tuple(phrase.strip() for phrase in text.split(";") if phrase.strip())

    def classes(self, name: str) -> tuple[tuple[str, ...], ...]:
        """Return the classes of a list. The first word of a class represents all its words."""
        return tuple(tuple(line.split()) for line in self.sections["classes"][name].splitlines())

    def rows(self, name: str) -> tuple[str, ...]:
        """Return the rows of a table, with fragments filled in."""
        return self._filled("rows", name)

    def lines(self, name: str) -> tuple[str, ...]:
        """Return the regular expressions of a list, one per line."""
        return self._filled("patterns", name)

    def pattern(self, name: str, flags: int = 0) -> re.Pattern[str]:
        """Return the alternatives of a list as one regular expression."""
        return re.compile("|".join(self.lines(name)), flags)

    def _filled(self, section: str, name: str) -> tuple[str, ...]:
        parts = self.sections.get("parts", {})
        text = _FRAGMENT.sub(lambda match: parts[match[1]], self.sections[section][name])
        return tuple(text.splitlines())


@lru_cache(maxsize=32)
def lists(name: str) -> WordLists:
    """Read the lists of ``data/NAME.toml``.

    >>> lists("words").words("stop")[:3], lists("units").classes("english")[0]
    (('a', 'an', 'the'), ('ms', 'millisecond', 'milliseconds'))
    """
    from importlib.resources import files

    # TOML, because its reader is imported in a tenth of the time of YAML's.
    document = tomllib.loads(files(__package__).joinpath(f"data/{name}.toml").read_text(encoding="utf-8"))
    return WordLists({section: lists for section, lists in document.items() if section != "about"})


@lru_cache(maxsize=16)
def rules_digest(*packages: str) -> str:
    """Return a digest of the modules and word lists of these packages. Data derived from them is void if it changes."""
    from importlib.resources import files

    digest = hashlib.sha256()
    for package in packages:
        for file in _sources(files(package)):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _sources(folder: Traversable) -> Iterator[Traversable]:
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.is_dir() and not file.name.startswith("_"):
            yield from _sources(file)
        elif file.name.endswith((".py", ".toml")):
            yield file


_LISTS = lists("words")


class SentenceSpan(NamedTuple):
    """Character offsets into the original text."""

    start: int
    stop: int


MAX_SENTENCE_CHARS = 600
"""A longer run without an end mark is cut, because minified data and base64 have no sentences."""

_END = re.compile(
    r"(?<![.!?])[.!?]++[\"'”’)\]*_]*+(?=\s)|[。！？；]+[”’」』）]*|…{2,}|;(?=\s)|[\n\r\u2028\u2029\x0b\x0c\x85]+(?![a-z])"
)
_LEAD = re.compile(r"[\s>#|*+•·–—-]*(?:\(?\d{1,2}[.)、](?=\s|[^\d\s])\s*)?(?:\[[ xX]\]\s*)?[*_]*")
_ABBREVIATED = _LISTS.pattern("abbreviated", re.IGNORECASE)
_CLAUSE = _LISTS.pattern("clause")


def sentences(text: str, start: int = 0, stop: int | None = None) -> Iterator[SentenceSpan]:
    """Yield the sentences of ``text[start:stop]`` without list markers and outer white space.

    >>> text = "Ship it. Port 5432, e.g. for dev!\\n- 别动生产库。明天再说"
    >>> [text[piece.start:piece.stop] for piece in sentences(text)]
    ['Ship it.', 'Port 5432, e.g. for dev!', '别动生产库。', '明天再说']
    """
    stop = len(text) if stop is None else stop
    begin = start
    for match in _END.finditer(text, start, stop):
        end = match.end()
        if text[match.start()] == "." and (
            _ABBREVIATED.search(text, max(begin, match.start() - 8), match.start() + 1)
            or text[begin : match.start()].strip().isdecimal()  # the number of a list item
        ):
            continue
        yield from _trimmed(text, begin, end)
        begin = end
    yield from _trimmed(text, begin, stop)


def _trimmed(text: str, start: int, stop: int) -> Iterator[SentenceSpan]:
    lead = _LEAD.match(text, start, stop)
    start = lead.end() if lead else start
    while stop > start and text[stop - 1].isspace():
        stop -= 1
    while stop - start > MAX_SENTENCE_CHARS:
        cut = text.rfind(" ", start + MAX_SENTENCE_CHARS // 2, start + MAX_SENTENCE_CHARS)
        cut = cut if cut > 0 else start + MAX_SENTENCE_CHARS
        yield SentenceSpan(start, cut)
        start = cut
        while start < stop and text[start].isspace():
            start += 1
    if stop - start > 1:
        yield SentenceSpan(start, stop)


def clause_spans(text: str) -> list[SentenceSpan]:
    """Cut one sentence at commas, colons, dashes, brackets and subordinating words.

    >>> text = "The budget, which Ana set, is 40 days"
    >>> [text[piece.start:piece.stop] for piece in clause_spans(text)]
    ['The budget', 'which Ana set', 'is 40 days']
    """
    pieces: list[SentenceSpan] = []
    begin = 0
    for match in _CLAUSE.finditer(text):
        if match.start() > begin:
            pieces.append(SentenceSpan(begin, match.start()))
        begin = match.end()
    if begin < len(text):
        pieces.append(SentenceSpan(begin, len(text)))
    return pieces


STOP = frozenset(_LISTS.words("stop"))
CONTRASTS: dict[str, int] = {word: group for group, line in enumerate(_LISTS.classes("contrasts")) for word in line}
"""Word to the number of its group of opposites."""
_ZH_CONTRAST = tuple(word for word in CONTRASTS if not word.isascii())
_ZH_STOP = _LISTS.pattern("zh_stop")
_ZH_RUN = re.compile(r"[\u3400-\u9fff]+")


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return the word without a possessive, plural or verb ending. Cached, because most words recur.

    >>> [stem(w) for w in ("ports", "refunding", "Dana's".lower(), "batches", "status")]
    ['port', 'refund', 'dana', 'batch', 'status']
    """
    word = word.removesuffix("'s")
    if len(word) > 5 and word.endswith("ing"):
        return word[:-3]
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    if len(word) > 4 and word.endswith("ed"):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def bigrams(text: str) -> set[str]:
    """Return the character bigrams of the Chinese in a text, without function characters."""
    found: set[str] = set()
    for run in _ZH_RUN.findall(text):
        for part in _ZH_STOP.split(run):
            if len(part) > 1:
                found.update(part[i : i + 2] for i in range(len(part) - 1))
            elif part:
                found.add(part)
    return found


def contrasts(words: frozenset[str], text: str) -> dict[int, set[str]]:
    """Return the opposites that a sentence names, by group."""
    named: dict[int, set[str]] = {}
    for word in words:
        group = CONTRASTS.get(word)
        if group is not None:
            named.setdefault(group, set()).add(word)
    if not text.isascii():
        for word in _ZH_CONTRAST:
            if word in text:
                named.setdefault(CONTRASTS[word], set()).add(word)
    return named


MAX_TEXT_CHARS = 100_000
"""Characters of one message or query that are indexed; the rest is not."""
MAX_TERM_CHARS = 64
INDEX_STOP = frozenset(_LISTS.words("index_stop"))
"""Words that are left out of every index."""

_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai and Lao, Burmese, Khmer
    r"\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff"  # Japanese, Chinese, Korean
)
_WORD = rf"(?:(?![{_UNSPACED}])[^\W_])+"
_TOKEN = re.compile(rf"[{_UNSPACED}]+|{_WORD}(?:[_./:@-]{_WORD}|_+{_WORD})*")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_NAME_PART = re.compile(rf"{_WORD}")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def terms(text: str) -> list[str]:
    """Return the index terms of a text, in order, repeats included.

    >>> terms("She painted the sunrise_2022 quickly")
    ['paint', 'sunrise_2022', 'sunris', '2022', 'quick']
    >>> terms("我喜欢北京")
    ['我喜', '喜欢', '欢北', '北京']
    >>> terms("getOrder failed: ERR-4521")
    ['getorder', 'get', 'order', 'fail', 'err-4521', 'err', '4521']
    """
    text = text[:MAX_TEXT_CHARS]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)[:MAX_TEXT_CHARS]
    found: list[str] = []
    for token in _TOKEN.findall(text):
        if _IS_UNSPACED.match(token):
            found += [token[i : i + 2] for i in range(len(token) - 1)] or [token]
        elif token.isalpha() and (token.islower() or token.istitle()):  # nearly every word
            word = token.lower()
            if word not in INDEX_STOP:
                found.append(snowball_stem(word[:MAX_TERM_CHARS]))
        else:
            found += _of_name(token)
    return found


def _of_name(token: str) -> Iterator[str]:
    """Yield a name or number whole if it is one thing (`user_id`, `10.0.0.7`, `getOrder`), and its parts."""
    parts = [word for part in _NAME_PART.findall(token) for word in _HUMP.split(part)]
    whole = token.lower()[:MAX_TERM_CHARS]
    if len(parts) > 1 and ("_" in token or not _joined_words(parts, token)):
        yield whole
    for part in parts:
        word = part.lower()
        if word.isdigit():  # has no ending, and would fill the cache of stems
            yield word[:MAX_TERM_CHARS]
        elif word not in INDEX_STOP:
            yield snowball_stem(word[:MAX_TERM_CHARS])


def _joined_words(parts: list[str], token: str) -> bool:
    """Return whether a token is words of a sentence joined by a mark: `self-care`, `and/or`, `end.Next`."""
    return all(part.isalpha() for part in parts) and not token.isalnum()


@lru_cache(maxsize=1 << 16)
def snowball_stem(word: str) -> str:
    """Return the Snowball stem of a lower-case English word."""
    stemmed: str = _stemmer().stemWord(word)
    return stemmed


_stemmers = threading.local()
"""One stemmer per thread, because a stemmer keeps its working state in itself."""


def _stemmer() -> Any:
    found = getattr(_stemmers, "english", None)
    if found is None:
        from snowballstemmer.english_stemmer import EnglishStemmer  # by name: equal stems with and without PyStemmer

        found = _stemmers.english = EnglishStemmer()
    return found


@lru_cache(maxsize=1 << 16)
def term_stem(word: str) -> str:
    """Return the first index term of a word, or the word itself if it has no term."""
    return next(iter(terms(word)), word)
