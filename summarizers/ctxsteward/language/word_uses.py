"""Which words and pairs of words the users of a session have used, and when first.

A word is in lower case; of Chinese and Japanese, two characters in a row are one. A pair is two words (or characters)
in a row within a sentence, with a blank between them: ``the lamp``, ``北 京``.
"""

from __future__ import annotations

import re
from array import array
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
    """Number of messages that contain a word or a pair (255 for more), and the ordinal of the first.

    >>> uses = WordUses()
    >>> uses.read("Paint the lamp.", 1)
    >>> uses.read("The lamp is dry.", 3)
    >>> uses("lamp"), uses("is dry"), uses("door")
    (WordUse(messages=2, first=1), WordUse(messages=1, first=3), WordUse(messages=0, first=0))
    """

    def __init__(self) -> None:
        # A hash table in arrays, because a session has so many pairs that objects of them would take most of its room.
        self._slots = array("Q", bytes(8 * 64))
        """Of each key 56 bits of its hash, then a byte with its messages; 0 for a free place."""
        self._firsts = array("I", bytes(4 * 64))
        self._used = 0

    def read(self, text: str, ordinal: int) -> None:
        """Count a message; messages come in ordinal order."""
        keys = words_of(text)
        for span in sentences(text):
            keys |= pairs_of(text[span.start : span.stop])
        if 3 * (self._used + len(keys)) > 2 * len(self._slots):
            self._grow(self._used + len(keys))
        for key in keys:
            hashed = hash(key) & _HASH_BITS
            at = self._place(hashed)
            held = self._slots[at]
            if not held:
                self._slots[at] = hashed << 8 | 1
                self._firsts[at] = ordinal
                self._used += 1
            elif held & 255 < 255:
                self._slots[at] = held + 1

    def __call__(self, key: str) -> WordUse:
        at = self._place(hash(key) & _HASH_BITS)
        return WordUse(self._slots[at] & 255, self._firsts[at])

    def _place(self, hashed: int) -> int:
        """Return where a key is, or the free place for it."""
        slots, last = self._slots, len(self._slots) - 1
        at = hashed & last
        while (held := slots[at]) and held >> 8 != hashed:
            at = (at + 1) & last
        return at

    def _grow(self, keys: int) -> None:
        slots, firsts = self._slots, self._firsts
        size = 1 << (2 * keys).bit_length()
        self._slots, self._firsts = array("Q", bytes(8 * size)), array("I", bytes(4 * size))
        for held, first in zip(slots, firsts, strict=True):
            if held:
                at = self._place(held >> 8)
                self._slots[at], self._firsts[at] = held, first


_HASH_BITS = (1 << 56) - 1
