"""Whether a text was turned round: "must" to "must not", "always" to "never", "allow" to "deny", 必须 to 不得.

`entries` and `report` ask it. It has two readings that complete each other. Where two sentences differ in
operators alone, what was put in another's place decides (`_turned`). Where a sentence was written anew, its clauses are
aligned by what they are about, and signs are compared (`clauses.agree`). Sentences that stand in both texts are left
out, so that a split, a merge or a new order finds nothing. Strengths ("must" to "should") and a dropped "only" are told
apart from flips.

An embedding sees none of this: the cosine of a sentence and its negation is .9999. Linear in the text but for the
alignment, which is quadratic in the sentences of one entry that differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from ctxsteward.language.clauses import Clause, agree, clauses, likeness, sign_of
from ctxsteward.language.operators import ATTRIBUTIVE, OPPOSITES, PREFIXES, Token, keys_of, tokens
from ctxsteward.language.words import term_stem

NEAR_TEXT = 0.6
"""Two sentences this alike in their tokens are read as one, changed."""
NEAR_CLAUSE = 0.5
"""Two clauses that share this much of their content are about the same."""
LIKELY_CLAUSE = 0.2
"""So much suffices for the rest of two sentences of which a clause was aligned."""
SAME_CLAUSE = 0.8
"""Two clauses of different entries that share this much contradict each other where their signs differ."""
MAX_SENTENCES = 200
"""That differ, on one side of one comparison; more cannot be judged, and count as turned round."""


class PolarityChange(NamedTuple):
    """One place where a text was turned round, or its strength changed."""

    kind: Literal["flip", "modality"]
    before: str
    after: str


def polarity_changes(before: Sequence[str], after: Sequence[str]) -> tuple[PolarityChange, ...]:
    """What was turned round from the sentences of one text to those of another; at most one turn a sentence."""
    old, new = _rest(before, after)
    if max(len(old), len(new)) > MAX_SENTENCES:
        return (PolarityChange("flip", f"{len(old)} sentences", f"{len(new)} others"),)
    found: list[PolarityChange] = []
    settled: set[int] = set()
    for index, sentence in enumerate(old):
        twin = _twin(sentence, new)
        turn = None if twin is None else _turned(sentence, twin)
        if twin is not None and turn is not _UNCLEAR:
            settled.add(index)
            found += [turn] if turn else []
    left = [sentence for index, sentence in enumerate(old) if index not in settled]
    found += _by_clauses(left, new, frozenset(after))
    return tuple(dict.fromkeys(found))


def contradictions(added: Iterable[str], standing: Iterable[str]) -> Iterator[tuple[Clause, Clause]]:
    """Clauses of one text that say the opposite of clauses of another, as (standing, added)."""
    fresh = [clause for sentence in added for clause in clauses(sentence) if not clause.condition]
    kept = [clause for sentence in standing for clause in clauses(sentence) if not clause.condition]
    for one in kept:
        for other in fresh:
            about = min(len(one.content), len(other.content))
            if one.sign != other.sign and about > 1 and likeness(one, other) >= SAME_CLAUSE and _plainly(one, other):
                yield one, other


def _plainly(one: Clause, other: Clause) -> bool:
    """Whether neither sentence makes an exception: "never A" beside "A only if B" is one rule."""
    return not any(c.condition for clause in (one, other) for c in clauses(clause.sentence))


def _rest(before: Sequence[str], after: Sequence[str]) -> tuple[list[str], list[str]]:
    """Sentences of each side that the other does not have."""
    spare_old, spare_new = Counter(map(keys_of, before)), Counter(map(keys_of, after))
    same = spare_old & spare_new
    return list(_without(before, same)), list(_without(after, same))


def _without(texts: Sequence[str], same: Counter[tuple[str, ...]]) -> Iterator[str]:
    left = Counter(same)
    for text in texts:
        if left[keys_of(text)] > 0:
            left[keys_of(text)] -= 1
        else:
            yield text


def _twin(sentence: str, others: Sequence[str]) -> str | None:
    """The sentence most alike, if it is alike enough."""
    best, best_ratio = None, NEAR_TEXT
    matcher = SequenceMatcher(None, (), keys_of(sentence), autojunk=False)
    for other in others:
        matcher.set_seq1(keys_of(other))
        if matcher.real_quick_ratio() >= best_ratio and (ratio := matcher.ratio()) >= best_ratio:
            best, best_ratio = other, ratio + 1e-9
    return best


_UNCLEAR = PolarityChange("flip", "", "")


def _turned(before: str, after: str) -> PolarityChange | None:
    """What was turned round between two sentences that differ in operators alone; else `_UNCLEAR`."""
    old, new = _bare(before), _bare(after)
    matcher = SequenceMatcher(None, [t.key for t in old], [t.key for t in new], autojunk=False)
    flips: list[PolarityChange] = []
    strengths: list[PolarityChange] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            continue
        gone, come = old[a:b], new[c:d]
        if _is_opposite(gone, come):
            flips.append(_turn("flip", gone, come))
        elif not (_is_bare(gone) and _is_bare(come)):
            return _UNCLEAR
        elif sign_of(gone) * _attributes(gone) != sign_of(come) * _attributes(come):
            if _contrast(gone) or _contrast(come):
                return _UNCLEAR
            flips.append(_turn("flip", gone, come))
        elif _strength(gone) != _strength(come):
            strengths.append(_turn("modality", gone, come))
    if len(flips) > 1:
        return _UNCLEAR  # one negation that moved, or two rules exchanged: their clauses tell
    return next(iter((*flips, *strengths)), None)


def _attributes(run: Sequence[Token]) -> int:
    """The sign of the negations inside attributes."""
    return -1 if sum(token.key.endswith(ATTRIBUTIVE) for token in run) % 2 else 1


def _contrast(run: Sequence[Token]) -> bool:
    """A negation with words of its own: "…, not in your own"."""
    places = [index for index, token in enumerate(run) if token.operator and token.operator.sign < 0]
    return bool(places) and len(run) - places[-1] > 2 and all(token.kind == "small" for token in run[places[-1] + 1 :])


def _bare(sentence: str) -> list[Token]:
    return [token for token in tokens(sentence) if token.kind not in ("hard", "soft")]


def _is_bare(run: Sequence[Token]) -> bool:
    return all(token.kind in ("operator", "small", "idiom") for token in run)


_ONLY = ("only", "solely", "仅", "只", "只有", "仅当", "仅在", "只在")


def _strength(run: Sequence[Token]) -> frozenset[str]:
    """What modal words of a run lend; a plain imperative and "must" are one."""
    found: set[str] = {token.operator.modality for token in run if token.operator and token.operator.modality}
    found |= {"only" for token in run if token.key.split()[0] in _ONLY}
    return frozenset(found - {"must", "must_not"})


def _turn(kind: Literal["flip", "modality"], gone: Sequence[Token], come: Sequence[Token]) -> PolarityChange:
    return PolarityChange(kind, _joined(gone), _joined(come))


def _joined(run: Sequence[Token]) -> str:
    words = [token.key for token in run]
    return ("" if words and not words[0].isascii() else " ").join(words)[:80]


def _is_opposite(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    """Whether one word was put in the place of its opposite."""
    one, other = _said(gone), _said(come)
    if not one or not other:
        return False
    if frozenset((one, other)) in _STEMMED:
        return True
    short, long = sorted((one, other), key=len)
    return len(short) > 3 and any(long == term_stem(prefix + short) or long == prefix + short for prefix in PREFIXES)


def _said(run: Sequence[Token]) -> str:
    """The content of a run as one word; empty where it is none, or several."""
    words = [token.key for token in run if token.kind != "small"] or [token.key for token in run]
    return "".join(words) if len(words) == 1 or all(not word.isascii() for word in words) else ""


_STEMMED = OPPOSITES | {frozenset(map(term_stem, pair)) for pair in OPPOSITES}


def _by_clauses(old: Sequence[str], new: Sequence[str], after: frozenset[str]) -> Iterator[PolarityChange]:
    """Compare what rewritten sentences say clause by clause."""
    fresh = [clause for sentence in new for clause in clauses(sentence)]
    standing = [clause for sentence in after for clause in clauses(sentence)]
    for sentence in old:
        pairs = [pair for clause in clauses(sentence) if (pair := _aligned(clause, fresh, standing)) is not None]
        for other in dict.fromkeys(pair[1].sentence for pair in pairs):
            of_both = _completed([pair for pair in pairs if pair[1].sentence == other], sentence, other)
            if not agree(of_both):
                yield PolarityChange("flip", sentence[:80], other[:80])
            elif weaker := next((p for p in of_both if p[0].sign == p[1].sign and _weakened(*p)), None):
                yield PolarityChange("modality", *(str(clause.modality or "must") for clause in weaker))


def _completed(pairs: list[tuple[Clause, Clause]], sentence: str, other: str) -> list[tuple[Clause, Clause]]:
    """The pairs of two sentences with those that are only likely: what is left of both, where it shares anything."""
    made = list(pairs)
    for one in clauses(sentence):
        left = [each for each in clauses(other) if all(each is not pair[1] for pair in made)]
        best = max(left, key=lambda each: likeness(one, each), default=None)
        if best is not None and all(one is not pair[0] for pair in made) and likeness(one, best) >= LIKELY_CLAUSE:
            made.append((one, best))
    return made


def _aligned(clause: Clause, fresh: Sequence[Clause], standing: Sequence[Clause]) -> tuple[Clause, Clause] | None:
    """The clause that says it now; of several as good, one that agrees."""
    best = max((likeness(clause, other) for other in fresh), default=0.0)
    if best < NEAR_CLAUSE:
        return None
    near = [other for other in (*fresh, *standing) if likeness(clause, other) >= 0.9 * best]
    found = max(near, key=lambda other: (other.sign == clause.sign, likeness(clause, other)))
    return (clause, found) if found in fresh or found.sign == clause.sign else None


def _weakened(old: Clause, new: Clause) -> bool:
    strength = {None: "must", "must_not": "must"}
    return old.sign > 0 and strength.get(old.modality, old.modality) != strength.get(new.modality, new.modality)
