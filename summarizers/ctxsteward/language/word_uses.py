"""Which words and pairs of words the users of a session have used, and when first.

A word is in lower case; of Chinese and Japanese, two characters in a row are one. A pair is two words (or characters)
in a row within a sentence, with a blank between them: ``the lamp``, ``北 京``.
"""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise

from ctxsteward.schemas.summary import WordUse

from .words import sentences

_UNSPACED = r"\u3040-\u30ff\u3400-\u9fff"
_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_UNIT = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")


def words_of(text: str) -> set[str]:
    """Return the words of a text.

    >>> sorted(words_of("The lamp, 北京饭")), sorted(pairs_of("Buy the lamp"))
    (['lamp', 'the', '京饭', '北京'], ['buy the', 'the lamp'])
    """
    found: set[str] = set()
    for run in _RUN.findall(text.lower()):
        if _IS_UNSPACED.match(run):
            found.update(run[at : at + 2] for at in range(max(1, len(run) - 1)))
        else:
            found.add(run)
    return found


def pairs_of(sentence: str) -> set[str]:
    """Return the pairs of words of one sentence."""
    return {f"{first} {second}" for first, second in pairwise(_UNIT.findall(sentence.lower()))}


class WordUses:
    """Number of messages that contain a word or a pair; of a word the ordinal of the first, too.

    >>> uses = WordUses()
    >>> uses.read("Paint the lamp.", 1)
    >>> uses.read("The lamp is dry.", 3)
    >>> uses("lamp"), uses("the lamp"), uses("door")
    (WordUse(messages=2, first=1), WordUse(messages=2, first=0), WordUse(messages=0, first=0))
    """

    def __init__(self) -> None:
        self._words: dict[str, WordUse] = {}
        # A session has many more pairs than words, so of a pair only a digest and a number are kept.
        self._pairs: dict[int, int] = {}

    def read(self, text: str, ordinal: int) -> None:
        """Count a message; messages come in ordinal order."""
        pairs: set[str] = set()
        for span in sentences(text):
            pairs |= pairs_of(text[span.start : span.stop])
        for pair in map(_digest, pairs):
            self._pairs[pair] = self._pairs.get(pair, 0) + 1
        for word in words_of(text):
            messages, first = self._words.get(word, _UNUSED)
            self._words[word] = WordUse(messages + 1, first or ordinal)

    def __call__(self, key: str) -> WordUse:
        if " " in key:
            return WordUse(self._pairs.get(_digest(key), 0), 0)
        return self._words.get(key, _UNUSED)


_UNUSED = WordUse(0, 0)


def _digest(pair: str) -> int:
    return int.from_bytes(hashlib.blake2b(pair.encode("utf-8", "surrogatepass"), digest_size=7).digest())
