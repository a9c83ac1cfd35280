"""What a short statement of a user does to a thing, by its grammar rather than by a phrase that is known.

`cues` holds phrases; here are the shapes of sentences that settle, set, ask, forbid, end or lift something: a topic and
what it shall be ("The frame will be steel", "Paper: recycled", 地板铺橡木), somebody who takes an option ("we'll take
the corner booth"), a result ("Postgres won"), a state that ends a task ("the gate works again"). What a sentence tells
is read as a cue of its kind, so that it is weighed together with the words of `cues`. Questions, hearsay, guesses and
long sentences do nothing. Patterns are `data/shapes.yaml` of `ctxsteward.language`; each is searched once, in sentences
of at most `LONGEST` characters.

>>> [cue.kind for _, cue in moods("The frame will be steel.", "the frame will be steel.")]
['decision']
>>> [cue.kind for _, cue in moods("Have you tried it?", "have you tried it?")]
[]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import cast

from ctxsteward.language.lists import lists

from .cues import CueKind, CuePhrase

LONGEST = 100
"""Characters of a sentence that is read for its shape; longer ones are prose."""

_UNREAL = lists("shapes").pattern("unreal")
_ZH_UNREAL = lists("shapes").pattern("zh_unreal")
"""Words of a guess, a wish or hearsay."""


def moods(text: str, low: str) -> Iterator[tuple[int, CuePhrase]]:
    """What a sentence does by its shape, as cues with their places; `low` is the sentence in lower case."""
    if not text or len(text) > LONGEST or text.rstrip("\"'”’ ").endswith(("?", "？")):
        return
    if not (text[0].isalpha() or text[0] in "\"'(“‘《「0123456789") or any(mark in text for mark in _CODE):
        return
    if text.isascii() or not _HAN.search(text):
        unreal, language = _UNREAL.search(low), "en"
    else:
        unreal, language = _ZH_UNREAL.search(low), "zh"
    for cue, opening, inside in _compiled(language):
        if unreal and cue.kind in _REAL:
            continue
        if match := (opening.match(low) or inside.search(low)):
            yield match.start(), cue


@lru_cache(maxsize=2)
def _compiled(language: str) -> tuple[tuple[CuePhrase, re.Pattern[str], re.Pattern[str]], ...]:
    """For each kind the shapes of whole sentences, and those inside one: compiled when they are first needed.

    They share their anchors, so that at most places of a sentence one look at the next character is enough.
    """
    found: list[tuple[CuePhrase, re.Pattern[str], re.Pattern[str]]] = []
    for name in lists("shapes").sections["patterns"]:
        if not name.startswith(f"{language}."):
            continue
        _, kind, weight = name.split(".")
        cue, shapes = CuePhrase(cast("CueKind", kind), int(weight), "", (), False), lists("shapes").lines(name)
        opening = [shape[1:] for shape in shapes if shape.startswith("^")]
        words = [shape[2:] for shape in shapes if shape.startswith(r"\b")]
        others = [shape for shape in shapes if not shape.startswith(("^", r"\b"))]
        inside = [rf"\b(?:{'|'.join(words)})"] * bool(words) + others
        found.append((cue, re.compile("|".join(opening) or "(?!)"), re.compile("|".join(inside) or "(?!)")))
    return tuple(found)


_HAN = re.compile("[\u3400-\u9fff]")
_CODE = ("=", "{", "}", "|", ";", "://", "DEBUG", "INFO", "WARN")
"""In lines of code, tables and logs."""
_REAL = frozenset(("decision", "update", "goal", "todo"))
"""What a guess does not do."""
