"""How much of a text changed: words that went and came, against words that stood and stand.

``delta = (gone + come) / (old + new)``, ``removed = gone / old``, both in 0..1; words of English, characters of
Chinese. A sentence that stands in both documents counts as unchanged, wherever it stands, and so does an entry whose
words have all gone to another key: moving, splitting and merging are no change of text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from typing import NamedTuple

from .wording import sentences_of, tokens

MOVED = 0.6
"""An entry that is gone has moved where this share of its words came elsewhere."""
MAX_ALIGNED = 2_000
"""Words of one entry that are aligned in order; more are compared as a bag."""


class Shares(NamedTuple):
    """Words that changed."""

    gone: int
    come: int
    old: int
    new: int

    @property
    def delta(self) -> float:
        return round((self.gone + self.come) / (self.old + self.new), 4) if self.old + self.new else 0.0

    @property
    def removed(self) -> float:
        return round(self.gone / self.old, 4) if self.old else 0.0


Words = tuple[str, ...]


def shares(before: Mapping[str, str], after: Mapping[str, str]) -> Shares:
    """What changed between two documents, given as texts by key."""
    old, new = _sentences(before), _sentences(after)
    total_old, total_new = _count(old.values()), _count(new.values())
    same = Counter(words for each in old.values() for words in each) & Counter(
        words for each in new.values() for words in each
    )
    rest_old, rest_new = _without(old, same), _without(new, same)
    gone = come = 0
    moved_from: list[Words] = []
    moved_to: list[Words] = []
    for key in {**rest_old, **rest_new}:
        one, other = rest_old.get(key, ()), rest_new.get(key, ())
        if one and other:
            kept = _kept(one, other)
            gone, come = gone + len(one) - kept, come + len(other) - kept
        else:
            moved_from += [one] if one else []
            moved_to += [other] if other else []
    pool = Counter(word for words in moved_to for word in words)
    come += sum(map(len, moved_to))
    for words in moved_from:
        kept_words = Counter(words) & pool
        kept = kept_words.total() if kept_words.total() >= MOVED * len(words) else 0
        if kept:
            pool -= kept_words
        gone, come = gone + len(words) - kept, come - kept
    return Shares(gone, come, total_old, total_new)


def _sentences(texts: Mapping[str, str]) -> dict[str, list[Words]]:
    return {key: [_words(sentence) for sentence in sentences_of(text)] for key, text in texts.items()}


def _words(sentence: str) -> Words:
    return tuple(token.key for token in tokens(sentence) if token.kind not in ("hard", "soft"))


def _count(texts: Iterable[list[Words]]) -> int:
    return sum(len(words) for each in texts for words in each)


def _without(texts: dict[str, list[Words]], same: Counter[Words]) -> dict[str, Words]:
    left = Counter(same)
    rest: dict[str, Words] = {}
    for key, each in texts.items():
        kept: list[str] = []
        for words in each:
            if left[words] > 0:
                left[words] -= 1
            else:
                kept += words
        rest[key] = tuple(kept)
    return {key: words for key, words in rest.items() if words}


def _kept(one: Words, other: Words) -> int:
    if max(len(one), len(other)) > MAX_ALIGNED:
        return (Counter(one) & Counter(other)).total()
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks)
