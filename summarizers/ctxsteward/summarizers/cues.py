"""The words by which people state rules, decisions, updates, errors, tasks and preferences, in English and Chinese.

A cue is a phrase with a weight of 1 (weak: counts only with company), 2 or 3 (enough alone). ``*`` stands for a gap of
at most `GAP_WORDS` words (English) or `GAP_CHARS` characters (Chinese); a leading ``^`` asks for the start of the
sentence or of a clause. English phrases are found by their first word, Chinese ones by their first character, so a
sentence without any costs one dictionary look-up a word. The lists are `data/cues.yaml` of
`ctxsteward.language`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, cast

from ctxsteward.language.lists import lists

CueKind = Literal[
    "rule", "bound", "decision", "update", "revoke", "error", "open", "goal", "todo", "over", "again", "preference",
    "label", "event", "chatter",
]  # fmt: skip
GAP_WORDS = 7
GAP_CHARS = 14


class CuePhrase(NamedTuple):
    """One phrase: `first` is its first word or character, `rest` what must follow."""

    kind: CueKind
    weight: int
    first: str
    rest: tuple[str, ...]
    at_start: bool


def _table(language: str) -> dict[str, tuple[CuePhrase, ...]]:
    """The cues of a language by their first word, of Chinese by their first character."""
    found: dict[str, list[CuePhrase]] = {}
    for name in lists("cues").sections["phrases"]:
        tongue, _, label = name.partition(".")
        if tongue == language:
            kind, _, weight = label.partition(".")
            for phrase in lists("cues").phrases(name):
                cue = _cue(cast("CueKind", kind), int(weight), phrase)
                found.setdefault(cue.first if language == "en" else cue.first[0], []).append(cue)
    return {first: tuple(cues) for first, cues in found.items()}


def _cue(kind: CueKind, weight: int, phrase: str) -> CuePhrase:
    words = phrase.removeprefix("^")
    first, *rest = words.split() if phrase.isascii() else words.split("*")
    return CuePhrase(kind, weight, first, tuple(rest), phrase.startswith("^"))


ENGLISH, CHINESE = _table("en"), _table("zh")


def follows(words: list[tuple[int, str]], index: int, cue: CuePhrase) -> bool:
    """Whether the rest of an English cue follows word `index`; words are (offset, lower-case word)."""
    at, gap = index + 1, 0
    for wanted in cue.rest:
        if wanted == "*":
            gap = GAP_WORDS
            continue
        stop = min(len(words), at + gap + 1)
        while at < stop and words[at][1] != wanted:
            at += 1
        if at >= stop:
            return False
        at, gap = at + 1, 0
    return True


def follows_chinese(text: str, start: int, cue: CuePhrase) -> bool:
    """Whether a Chinese cue stands at `start` of the text."""
    if not text.startswith(cue.first, start):
        return False
    at = start + len(cue.first)
    for part in cue.rest:
        found = text.find(part, at, at + GAP_CHARS + len(part))
        if found < 0:
            return False
        at = found + len(part)
    return True
