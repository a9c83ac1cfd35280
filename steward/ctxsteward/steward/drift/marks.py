"""Check an edited locked line by its marks: exceptions, scope, strength, order, figures.

Marks are words of closed classes (quantifiers, modal verbs, subordinators: Quirk et al. 1985); strengths are in the
order of RFC 2119. `edits` runs the checks: each takes the old and the new text and returns the first change, or None.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ctxsteward.language.clauses import DENIES, Clause, clauses
from ctxsteward.language.figures import changed_figure, figure_text, figures, without_figures
from ctxsteward.language.operators import ADDS, EXCEPTS, ONLY, SOME, WEAKER, WIDENS, Token, tokens
from ctxsteward.language.statement import Statement, is_kin_of, read_statement
from ctxsteward.language.values import NUMBER_WORDS, UNITS
from ctxsteward.schemas.profile_changes import DriftKind


class RuleChange(NamedTuple):
    """A difference that makes a line another rule."""

    kind: DriftKind
    why: str
    before: str = ""
    after: str = ""


def loosened(sentence: str) -> RuleChange | None:
    """Find that an added sentence permits, waives or excepts something."""
    excepts = any(_excepts(tokens(sentence), place) for place in range(len(tokens(sentence))))
    if excepts or any(_strength(clause) < 2 for clause in clauses(sentence) if not clause.condition):
        return RuleChange("contradiction", "a sentence was added that takes some of it back", "", sentence)
    return None


def figured(before: str, after: str) -> RuleChange | None:
    """Find another figure, another side of a time limit, or another number of things."""
    pair = changed_figure(before, after)
    if pair is not None:
        return RuleChange(
            "number_change", "a figure in the text differs", *(figure_text(figure) or "" for figure in pair)
        )
    if _side(before) != _side(after) and _side(after):
        return RuleChange("number_change", "a time counts to another side", _side(before), _side(after))
    old, new = _counted(before), _counted(after)
    thing = next((thing for thing in old if thing in new and old[thing] != new[thing]), None)
    if thing is None:
        return None
    return RuleChange("number_change", f"another figure counts {thing!r}", str(old[thing]), str(new[thing]))


def _side(text: str) -> str:
    """Return the side of a time limit: "before" (14 days before), "after" (14 days after, 14天后), or empty."""
    form = without_figures(text)
    if re.search(r"0\s*(?:business |working )?(?:before|earlier|prior|[以之]?前)", form):
        return "before"
    if any(figure.bound == "upper" for figure in figures(text)):
        return ""
    return "after" if re.search(r"0\s*[以之]?后", form) and not re.search(r"0\s*[以之]?后[^，。,.]*内", form) else ""


def _counted(text: str) -> dict[str, list[int]]:
    """Return the whole numbers right before a word, by that word: "three gift cards"."""
    counts_of: dict[str, list[int]] = {}
    for number, word in pairwise(tokens(text)):
        count = int(number.key) if number.key.isdecimal() and number.key.isascii() else NUMBER_WORDS.get(number.key)
        if count is not None and word.kind == "word" and word.key.isascii() and word.key not in UNITS:
            counts_of.setdefault(word.key, []).append(count)
    return {word: sorted(counts) for word, counts in counts_of.items()}


def _excepts(found: Sequence[Token], place: int) -> bool:
    """Whether a token opens an exception; "save", "aside" and "apart" need a preposition behind them."""
    key = found[place].key
    following = found[place + 1].key if place + 1 < len(found) else ""
    return key.split(" ")[0] in EXCEPTS or (key in ("save", "asid", "apart") and following in _SAVE_FOR)


_SAVE_FOR = ("for", "from", "where", "when", "if", "in")


def _excepted(before: Statement, after: Statement) -> RuleChange | None:
    """Find an added exception that was not there as a condition before."""
    chinese = sorted(word for word in (after.spoken - before.spoken) & EXCEPTS if not word.isascii() and word != "除非")
    if chinese:
        return RuleChange("modality_change", "an exception was added", "", chinese[0])
    for place, token in enumerate(after.tokens):
        if _excepts(after.tokens, place):
            end = next((n for n, t in enumerate(after.tokens) if n > place and t.kind in ("hard", "soft")), None)
            said = [word for word in after.words if word.place > place and (end is None or word.place < end)]
            if any(not is_kin_of(word.key, before.keys) for word in said) or not (said or token.key in before.spoken):
                return RuleChange("modality_change", "an exception was added", "", token.key)
    return None


def marked(before: Statement, after: Statement) -> RuleChange | None:
    """Find added exceptions and quantifiers, a removed "only", and changed negations."""
    if found := _excepted(before, after):
        return found
    old, come = before.spoken, after.spoken - before.spoken
    for words, why in ((SOME, "it holds for some only"), (ADDS, "it holds for more than it did")):
        told_new = sorted(come & words)
        if told_new and not old & words and not (told_new == ["还"] and _denied(after)):
            return RuleChange("modality_change", why, "", told_new[0])
    if "if" in old & after.spoken and "any" in old - after.spoken and come & {"all", "every"}:
        return RuleChange("modality_change", "a condition holds for fewer", "any", "all")
    if old & ONLY and not after.spoken & ONLY and not (_denied(after) and not _denied(before)):
        return RuleChange("modality_change", "a restriction was dropped", sorted(old & ONLY)[0], "")
    return _negated(before, after)


def _denied(reading: Statement) -> bool:
    """Whether a statement denies or forbids something outside a condition."""
    for token in reading.tokens:
        if token.operator is not None and token.operator.opens and token.operator.sign > 0:
            return False
        if token.operator is not None and token.operator.sign < 0:
            return True
    return False


def _negated(before: Statement, after: Statement) -> RuleChange | None:
    """Find that only negations were added or removed."""
    old, new = ([token.key for token in tokens(each.text) if token.key not in DENIES] for each in (before, after))
    counts = [sum(token.key in DENIES for token in tokens(each.text)) for each in (before, after)]
    if old == new and counts[0] != counts[1]:
        return RuleChange("polarity_flip", "a negation came or went")
    return None


def widened(old: Sequence[str], new: Sequence[str]) -> RuleChange | None:
    """Find a new permission for all cases."""
    was, now = (
        {
            key
            for sentence in each
            for clause in clauses(sentence)
            if clause.sign > 0 and not clause.condition and _strength(clause) <= 1
            for key in clause.spoken & WIDENS
        }
        for each in (old, new)
    )
    if was or not now:
        return None
    return RuleChange("modality_change", "it holds for more than it did", "", sorted(now)[0])


def reordered(old: Sequence[str], new: Sequence[str]) -> RuleChange | None:
    """Find a reversed order: "A before B" became "B before A"."""
    for one in (first for sentence in old if (first := _before_what(sentence)) is not None):
        for other in (first for sentence in new if (first := _before_what(sentence)) is not None):
            straight = len(one[0] & other[0]) + len(one[1] & other[1])
            crossed = len(one[0] & other[1]) + len(one[1] & other[0])
            if one[2:] == other[2:] and crossed > straight:
                return RuleChange("contradiction", "what came first comes second")
    return None


def _before_what(sentence: str) -> tuple[frozenset[str], frozenset[str], int, frozenset[str]] | None:
    """Return content of A and of B, sign of A, and the word of order in "A before B"; None for other sentences."""
    found = clauses(sentence)
    second = [clause for clause in found if clause.condition and clause.order]
    first = [clause for clause in found if not clause.condition]
    said = read_statement(sentence).spoken & _BEFORE
    return (first[0].content, second[0].content, first[0].sign, said) if len(first) == len(second) == 1 else None


_BEFORE = frozenset(("before", "prior to", "until", "之前", "以前", "前", "之后", "以后", "后"))


def weakened(old: Sequence[str], new: Sequence[str]) -> RuleChange | None:
    """Find fewer or weaker demands."""
    before, after = (
        [_strength(clause) for sentence in sentences for clause in clauses(sentence) if not clause.condition]
        for sentences in (old, new)
    )
    for limit in (0, 1, 1.5, 2):
        was, now = (sum(each <= limit for each in strengths) for strengths in (before, after))
        if now > was and sum(each > limit for each in after) < sum(each > limit for each in before):
            return RuleChange("modality_change", "it demands less")
    return None


def _strength(clause: Clause) -> float:
    """Return 0 for waived, 1 permitted, 1.5 wished, 2 recommended, 3 demanded, forbidden or stated plainly."""
    if clause.waived:
        return 0
    if clause.spoken & WEAKER:
        return 1.5
    if clause.modality == "may":
        restricted = clause.only or read_statement(clause.sentence).spoken & ONLY
        return 3 if clause.spoken & DENIES or restricted else 1
    return 2 if clause.modality == "should" else 3
