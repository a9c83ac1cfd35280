"""Content words: what a sentence is about once function words, cues and values are taken away.

English words are lower-cased and lose a plural or verb ending; a run of Chinese is cut at function characters and
gives its character bigrams (one-character rests stay as they are). Opposites (`CONTRASTS`) tell two facts with the
same words apart: a staging port and a production port are never an update of each other.
"""

from __future__ import annotations

import re

from .lists import lists

_LISTS = lists("words")
STOP = frozenset(_LISTS.words("stop"))
CONTRASTS: dict[str, int] = {word: group for group, line in enumerate(_LISTS.classes("contrasts")) for word in line}
"""A word and the number of the group of opposites that it is of."""
_ZH_CONTRAST = tuple(word for word in CONTRASTS if not word.isascii())
_ZH_STOP = _LISTS.pattern("zh_stop")
_ZH_RUN = re.compile(r"[\u3400-\u9fff]+")


def stem(word: str) -> str:
    """The word without a plural or verb ending; the possessive goes first.

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
    """Character bigrams of the Chinese in a text, function characters left out."""
    found: set[str] = set()
    for run in _ZH_RUN.findall(text):
        for part in _ZH_STOP.split(run):
            if len(part) > 1:
                found.update(part[i : i + 2] for i in range(len(part) - 1))
            elif part:
                found.add(part)
    return found


def contrasts(words: frozenset[str], text: str) -> dict[int, set[str]]:
    """Which opposites a sentence names, by group."""
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
