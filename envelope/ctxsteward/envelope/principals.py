"""Names of people: which may be given, and when two of them may be one person.

A name is kept exactly as the application gave it: it is a part of the subject whose key seals the words, so forgetting
finds them, and nobody reaches what another name has. It is compared by its skeleton where people are *counted*
(support, recoveries, reviewers, authors): two names that a reader cannot tell apart are one voice.

    unseen("e\\u200bve")                 'U+200B (ZERO WIDTH SPACE)': such a name is refused
    skeleton("Eve") == skeleton("еve")  the second one begins with a Cyrillic letter

A skeleton is the name without spaces, each character replaced by what it looks like, NFKC, in lower case. What looks
alike is told by Unicode's table of confusables, which the library carries; of letters that look like ASCII in one of
their cases, that case decides. It is for comparing alone: never shown, never stored.

Source: UTS #39 (confusable detection); UAX #44 (default ignorable code points).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

_UNSEEN_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
"""Default ignorable code points of other categories, and the blank Braille cell."""
_MARK = "\u200e"
"""Stands around right-to-left characters in the library's table."""


def unseen(name: str) -> str | None:
    """The first character of a name that nobody can see, by number and name; None: all can be seen.

    >>> unseen("eve\\x00"), unseen("Ève 李")
    ('U+0000 (control)', None)
    """
    if name.isascii() and name.isprintable():
        return None
    for char in name:
        if unicodedata.category(char) in _UNSEEN_CATEGORIES or _UNSEEN.match(char):
            return f"U+{ord(char):04X} ({unicodedata.name(char, 'control')})"
    return None


@lru_cache(maxsize=65_536)
def skeleton(name: str) -> str:
    """What is left of a name for comparing: equal for names that look alike, in whichever case.

    >>> {skeleton(name) for name in ("eve", "Eve", "еve", "eve ", "ｅｖｅ", "ℯve")}, skeleton("bob")
    ({'eve'}, 'bob')
    """
    plain = "".join(char for char in name if not char.isspace() and not unseen(char))
    for _ in range(2):  # of a capital that looks like nothing else, the small letter may
        drawn = "".join(map(_drawn, unicodedata.normalize("NFD", plain)))
        plain = unicodedata.normalize("NFKC", drawn).casefold()
    return plain


@lru_cache(maxsize=4096)
def _drawn(char: str) -> str:
    """What a character looks like: ASCII in the case it has, else in the other, else whatever stands for its class."""
    for form in (char, char.upper(), char.lower()):
        look = _looks().get(form, form)
        if look.isascii():
            return look
    return _looks().get(char.casefold(), char.casefold())


@lru_cache(maxsize=1)
def _looks() -> Mapping[str, str]:
    """By character, what stands for all that look like it: letters of ASCII first, several before one."""
    from confusable_homoglyphs.confusables import confusables_data

    classes: dict[str, set[str]] = {}
    for source, alike in confusables_data.items():
        names = {source.strip(_MARK), *(one["c"].strip(_MARK) for one in alike)}
        together = names.union(*(classes[name] for name in names if name in classes))
        classes.update(dict.fromkeys(together, together))
    return {char: min(alike, key=_worth) for char, alike in classes.items()}


def _worth(look: str) -> tuple[bool, bool, int, str]:
    return (not look.isascii(), not look.isalpha(), -len(look), look)  # "rn", for what looks like an m
