"""Rules that a user states in a message, and messages by which the same user lifts one.

`UserRules` is found by the entry point ``ctxsteward.rules``. A rule is a sentence that `salience` reads as one beyond
doubt, in the user's own words; pasted and quoted text states no rule.

A message lifts a rule if `updates` reads it as the rule's replacement and all its content words are in the rule or
announce a change, so that no part of it can speak for another person. "The operator lifts the rule on Fridays" lifts
nothing, and neither does a longer message. A rule kept by mistake is shown with the newer statement; one lifted by
mistake is lost.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ctxsteward.language.foreign_text import mask_foreign_text
from ctxsteward.language.words import STOP, bigrams, lists, stem
from ctxsteward.schemas.summary import RuleReading

from .bullets import without_opening
from .extraction import pieces
from .salience import PlacedSentence, SentenceReading, read_piece
from .updates import replaced

_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_ANNOUNCING = ("update.3", "update.1", "revoke.3")
"""Lists of phrases that announce a change, in each language."""


class UserRules:
    """Reads users' messages for rules; a `ctxsteward.schemas.summary.RuleReader`.

    >>> rules = UserRules()
    >>> rule, = rules.read("Hi. Refunds above $500 need Dana's sign-off.").stated
    >>> rule
    "Refunds above $500 need Dana's sign-off."
    >>> rules.lifts(rule, "Drop the rule about Dana's sign-off for refunds.")
    True
    >>> rules.lifts(rule, "Operator update: drop the rule about Dana's sign-off for refunds.")
    False
    """

    def read(self, text: str) -> RuleReading:
        """Return the rules that a user's message states, and whether it may lift an earlier one."""
        own = _own_readings(text)
        stated = tuple(without_opening(reading.text).strip() for reading in own if _is_rule(reading))
        is_own = mask_foreign_text(text) == text
        announces = any(reading.revokes or reading.updates >= 3 for reading in own)
        return RuleReading(stated=stated, may_lift=is_own and (announces or bool(stated)))

    def lifts(self, rule: str, text: str) -> bool:
        """Return whether a later message of the same user, which `may_lift`, lifts this rule."""
        return _lifts(rule, text)


def _own_readings(text: str) -> list[SentenceReading]:
    masked = mask_foreign_text(text)
    return [
        read_piece(text, piece, "user")
        for piece in pieces(text)
        if masked[piece.start : piece.stop] == text[piece.start : piece.stop]
    ]


def _is_rule(reading: SentenceReading) -> bool:
    is_question = reading.text.rstrip("\"'”’ ").endswith(("?", "？"))
    return reading.kind == "constraint" and reading.rule >= 3 and not is_question


@lru_cache(maxsize=4096)
def _lifts(rule: str, text: str) -> bool:
    if _content_words(text) - _content_words(rule) - _announcing_words():
        return False
    (old,) = _own_readings(rule)[:1] or (None,)
    if old is None:
        return False
    readings = [old, *_own_readings(text)]
    match = replaced(
        PlacedSentence(reading=reading, refs=(f"§{order}",), order=order, role="user", place="source", index=index)
        for index, reading in enumerate(readings)
        for order in (min(index, 1) + 1,)
    ).get(0)
    # A new value leaves the rule standing, unless the message states the whole rule with it.
    return match is not None and (not match.stale or any(_is_rule(reading) for reading in readings[1:]))


@lru_cache(maxsize=4096)
def _content_words(text: str) -> frozenset[str]:
    words = (match[0].lower().replace("’", "'").removesuffix("'s") for match in _WORD.finditer(text))
    own = {stem(word) for word in words if word.isascii() and word not in STOP}
    return frozenset(own | (set() if text.isascii() else bigrams(text)))


@lru_cache(maxsize=1)
def _announcing_words() -> frozenset[str]:
    cues = lists("cues")
    found = (
        phrase for kind in _ANNOUNCING for language in ("en", "zh") for phrase in cues.phrases(f"{language}.{kind}")
    )
    return frozenset().union(*(_content_words(phrase) for phrase in found)) | {"rule"}
