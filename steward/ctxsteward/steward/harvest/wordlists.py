"""Words that a pattern cannot match without: it is tried only where they are.

>>> sorted(listed("to be or not to be"))
['be', 'not', 'or', 'to']
>>> [Anchors("lol because+love").are_in(listed(said)) for said in ("lol ok", "because i love it", "i love it")]
[True, True, False]
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet


def listed(text: str) -> frozenset[str]:
    """The words between the blanks."""
    return frozenset(text.split())


class Anchors:
    """Words of which one must be there; ``a+b``: both of these."""

    __slots__ = ("_alone", "_any", "_together")

    def __init__(self, text: str) -> None:
        words = listed(text)
        self._alone = frozenset(word for word in words if "+" not in word)
        self._any = frozenset(text.replace("+", " ").split())
        self._together = tuple(frozenset(word.split("+")) for word in sorted(words - self._alone))

    def are_in(self, words: AbstractSet[str]) -> bool:
        """Whether the words of a sentence hold what a pattern needs."""
        if self._any.isdisjoint(words):
            return False
        if not self._alone.isdisjoint(words):
            return True
        return any(both <= words for both in self._together)
