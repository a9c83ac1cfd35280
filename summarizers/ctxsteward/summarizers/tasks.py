"""What people want done, and how it stands: still to do, or over; and when a sentence settles what an older one wanted.

A sentence that sets a goal or a task is `open`, one that tells of its end is `over`: by a word for it ("tick that
off", 搞定), or because it tells a deed ("ordered" after "order", 订了 after 订). The newer of two such sentences about
the same thing counts, whichever way it goes: open, over, open again. A mere mention settles nothing. Things are
compared by the roots of their words, so that "hire" and "hired" are one; Chinese by its characters.

>>> roots({"order", "merged", "sold"}) == roots({"ordered", "merge", "sell"})
True
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from ctxsteward.language.lists import lists
from ctxsteward.language.words import STOP

Stand = Literal["", "open", "over"]

_LISTS = lists("words")
_IRREGULAR = {past: base for base, *pasts in _LISTS.classes("irregular") for past in pasts}
_SAME = frozenset(_LISTS.words("same_past"))
"""Their past is spelt as their infinitive."""
_PERFECT = re.compile(
    r"\b(?:is|are|was|were|been|got|get|have|has|had|just|already|finally|now|we|i|ve|s)\b"
    rf"(?:\s+[\w'’-]+){{0,6}}?\s+(?P<done>[a-z]+ed|{'|'.join(sorted((*_IRREGULAR, *_SAME)))})\b"
)
_PAST = re.compile(rf"\b(?P<done>[a-z]{{2,}}ed|{'|'.join(sorted((*_IRREGULAR, *_SAME)))})\b")
_NOT_DONE = _LISTS.pattern("not_done")
_UNDONE = re.compile(r"\b(?:not|never|needs?|to|be|again|yet|if|when|once|until)\b|n't\b")
_SOME_DAY = re.compile(r"\b(?:if|when|once|until|unless|before|after|soon as|whether)\b[^,.;:]*$")
_ZH_DONE = re.compile(r"([\u3400-\u9fff]{1,2})(?:了|啦|过)")
SHORT_CHARS = 90
"""Up to this length a bare past form is news ("backup tested, all fine"); in a longer sentence it tells a story."""
FRAME = frozenset(_LISTS.words("frame"))
"""Words that say how a thing stands, not which thing it is."""


def roots(words: Iterable[str]) -> frozenset[str]:
    """The roots of words, without those that frame a wish."""
    return frozenset(root(word) for word in words) - _FRAME_ROOTS


@lru_cache(maxsize=8192)
def root(word: str) -> str:
    """A word without the endings of its forms; of Chinese itself.

    >>> [root(word) for word in ("plan", "planned", "hire", "hired", "copies", "copied")]
    ['plan', 'plan', 'hir', 'hir', 'copy', 'copy']
    """
    if not word.isascii():
        return word
    word = _IRREGULAR.get(word, word)
    for ending, instead in (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if len(word) > len(ending) + 2 and word.endswith(ending) and not word.endswith("ss"):
            word = word[: -len(ending)] + instead
            break
    word = word[:-1] if len(word) > 3 and word[-1] == word[-2] else word
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


_FRAME_ROOTS = frozenset(root(word) for word in FRAME)
_WORD = re.compile(r"[a-z][a-z'’-]*[a-z]")
_FUNCTION = STOP - frozenset(_LISTS.words("of_change"))
"""Words that name nothing; verbs of change do, where somebody was to change something."""
_ZH_FRAME = _LISTS.pattern("zh_frame")
"""Words that say how a thing stands, in Chinese."""
_HAN = re.compile("[\u3400-\u9fff]")


@lru_cache(maxsize=4096)
def thing(text: str) -> frozenset[str]:
    """What a wish is about: roots of its content words; characters where it is Chinese."""
    found = roots(word.removesuffix("'s") for word in _WORD.findall(text.lower()) if word not in _FUNCTION)
    return found if text.isascii() else found | frozenset(_HAN.findall(_ZH_FRAME.sub(" ", text)))


def about_the_same(old: frozenset[str], new: frozenset[str], share: float = 0.75, *, rare: bool = False) -> bool:
    """Whether a newer wish is about the older one's thing: it names nearly all of it, or nothing but parts of it.

    Where they share a word that hardly anything else names (`rare`), one word of two is enough.
    """
    both = old & new
    least = min(len(old), 2 if all(word.isascii() for word in both) else 3) - rare
    return len(both) >= max(1, least) and (len(both) >= share * min(len(old), len(new)) or both == new)


def _unsaid(low: str, match: re.Match[str]) -> bool:
    """Whether words around a deed say that it was not, or not yet, done."""
    return bool(_UNDONE.search(low, match.start(), match.end()) or _SOME_DAY.search(low[: match.start()]))


def deeds(low: str) -> frozenset[str]:
    """Roots of what a sentence in lower case says was done ("has been merged"); Chinese: what 了 follows."""
    done = {root(m["done"]) for m in _PERFECT.finditer(low) if not _unsaid(low, m)}
    if len(low) <= SHORT_CHARS and not _NOT_DONE.search(low):  # "backup tested and it restores fine"
        done.update(root(match["done"]) for match in _PAST.finditer(low))
    start = low.split(" ", 1)[0].strip(":,.")
    if (start.endswith("ed") and len(start) > 4) or start in _IRREGULAR:
        done.add(root(start))
    if not low.isascii():
        done.update(char for match in _ZH_DONE.finditer(low) for char in match[1])
    return frozenset(done)
