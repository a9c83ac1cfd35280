"""Find reversed statements: "must" to "must not", "always" to "never", "allow" to "deny", 必须 to 不得.

`entries` and `report` call it. If two sentences differ only in operators, the replaced operators decide (`_turned`). If
a sentence was rewritten, its clauses are aligned by content, and their signs are compared (`clauses.agree`). Sentences
in both texts are left out, so that a split, a merge or a new order finds nothing. Changes of strength ("must" to
"should") and a removed "only" are reported apart from reversals.

Embeddings cannot do this: the cosine of a sentence and its negation is .9999. Linear in the text, except for the
alignment, which is quadratic in the changed sentences of one entry.
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
"""Likeness of tokens from which two sentences count as one edited sentence."""
NEAR_CLAUSE = 0.5
"""Likeness of content from which two clauses are about the same."""
LIKELY_CLAUSE = 0.2
"""The same for the remaining clauses of two sentences that have an aligned pair of clauses."""
SAME_CLAUSE = 0.8
"""Likeness of content from which clauses of different entries contradict each other if their signs differ."""
MAX_SENTENCES = 200
"""Changed sentences on one side of a comparison; more count as reversed without a comparison."""


class PolarityChange(NamedTuple):
    """One place where a text was reversed, or its strength changed."""

    kind: Literal["flip", "modality"]
    before: str
    after: str


def polarity_changes(before: Sequence[str], after: Sequence[str]) -> tuple[PolarityChange, ...]:
    """Find reversals between the sentences of two texts, at most one for each sentence."""
    same = Counter(map(keys_of, before)) & Counter(map(keys_of, after))
    old, new = list(_without(before, same)), list(_without(after, same))
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
    """Yield pairs of clauses (standing, added) that contradict each other."""
    fresh = [clause for sentence in added for clause in clauses(sentence) if not clause.condition]
    kept = [clause for sentence in standing for clause in clauses(sentence) if not clause.condition]
    for one in kept:
        for other in fresh:
            about = min(len(one.content), len(other.content))
            if one.sign == other.sign or about < 2 or likeness(one, other) < SAME_CLAUSE:
                continue
            # With a condition in either sentence both may hold: "never A" and "A only if B" are one rule.
            if not any(c.condition for clause in (one, other) for c in clauses(clause.sentence)):
                yield one, other


def _without(texts: Sequence[str], same: Counter[tuple[str, ...]]) -> Iterator[str]:
    """Yield the texts that are not among the same ones."""
    left = Counter(same)
    for text in texts:
        if left[keys_of(text)] > 0:
            left[keys_of(text)] -= 1
        else:
            yield text


def _twin(sentence: str, others: Sequence[str]) -> str | None:
    """Return the most similar sentence, or None if none is similar enough."""
    best, best_ratio = None, NEAR_TEXT
    matcher = SequenceMatcher(None, (), keys_of(sentence), autojunk=False)
    for other in others:
        matcher.set_seq1(keys_of(other))
        if matcher.real_quick_ratio() >= best_ratio and (ratio := matcher.ratio()) >= best_ratio:
            best, best_ratio = other, ratio + 1e-9
    return best


_UNCLEAR = PolarityChange("flip", "", "")


def _turned(before: str, after: str) -> PolarityChange | None:
    """Find a reversal between two sentences that differ only in operators; `_UNCLEAR` for other sentences."""
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
        return _UNCLEAR  # a negation moved, or two rules were exchanged: comparing clauses decides
    return next(iter((*flips, *strengths)), None)


def _attributes(run: Sequence[Token]) -> int:
    """Return the sign of negations inside attributes."""
    return -1 if sum(token.key.endswith(ATTRIBUTIVE) for token in run) % 2 else 1


def _contrast(run: Sequence[Token]) -> bool:
    """Whether a run has a negated contrast, such as "…, not in your own"."""
    places = [index for index, token in enumerate(run) if token.operator and token.operator.sign < 0]
    return bool(places) and len(run) - places[-1] > 2 and all(token.kind == "small" for token in run[places[-1] + 1 :])


def _bare(sentence: str) -> list[Token]:
    return [token for token in tokens(sentence) if token.kind not in ("hard", "soft")]


def _is_bare(run: Sequence[Token]) -> bool:
    return all(token.kind in ("operator", "small", "idiom") for token in run)


_ONLY = ("only", "solely", "仅", "只", "只有", "仅当", "仅在", "只在")


def _strength(run: Sequence[Token]) -> frozenset[str]:
    """Return the modalities of a run; a plain imperative equals "must"."""
    found: set[str] = {token.operator.modality for token in run if token.operator and token.operator.modality}
    found |= {"only" for token in run if token.key.split()[0] in _ONLY}
    return frozenset(found - {"must", "must_not"})


def _turn(kind: Literal["flip", "modality"], gone: Sequence[Token], come: Sequence[Token]) -> PolarityChange:
    return PolarityChange(kind, _joined(gone), _joined(come))


def _joined(run: Sequence[Token]) -> str:
    words = [token.key for token in run]
    return ("" if words and not words[0].isascii() else " ").join(words)[:80]


def _is_opposite(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    """Whether a word was replaced by its opposite."""
    one, other = _said(gone), _said(come)
    if not one or not other:
        return False
    if frozenset((one, other)) in _STEMMED:
        return True
    short, long = sorted((one, other), key=len)
    return len(short) > 3 and any(long == term_stem(prefix + short) or long == prefix + short for prefix in PREFIXES)


def _said(run: Sequence[Token]) -> str:
    """Return the content of a run if it is one word, else an empty text."""
    words = [token.key for token in run if token.kind != "small"] or [token.key for token in run]
    return "".join(words) if len(words) == 1 or all(not word.isascii() for word in words) else ""


_STEMMED = OPPOSITES | {frozenset(map(term_stem, pair)) for pair in OPPOSITES}


def _by_clauses(old: Sequence[str], new: Sequence[str], after: frozenset[str]) -> Iterator[PolarityChange]:
    """Compare rewritten sentences clause by clause."""
    fresh = [clause for sentence in new for clause in clauses(sentence)]
    standing = [clause for sentence in after for clause in clauses(sentence)]
    for sentence in old:
        pairs = [pair for clause in clauses(sentence) if (pair := _aligned(clause, fresh, standing)) is not None]
        for other in dict.fromkeys(pair[1].sentence for pair in pairs):
            of_both = _completed([pair for pair in pairs if pair[1].sentence == other], sentence, other)
            if not agree(of_both):
                yield PolarityChange("flip", sentence[:80], other[:80])
                continue
            for was, now in of_both:
                modalities = [str(clause.modality or "must") for clause in (was, now)]
                if was.sign == now.sign > 0 and len({each.removesuffix("_not") for each in modalities}) > 1:
                    yield PolarityChange("modality", *modalities)
                    break


def _completed(pairs: list[tuple[Clause, Clause]], sentence: str, other: str) -> list[tuple[Clause, Clause]]:
    """Add likely pairs among the clauses of two sentences that have no partner yet."""
    made = list(pairs)
    for one in clauses(sentence):
        left = [each for each in clauses(other) if all(each is not pair[1] for pair in made)]
        best = max(left, key=lambda each: likeness(one, each), default=None)
        if best is not None and all(one is not pair[0] for pair in made) and likeness(one, best) >= LIKELY_CLAUSE:
            made.append((one, best))
    return made


def _aligned(clause: Clause, fresh: Sequence[Clause], standing: Sequence[Clause]) -> tuple[Clause, Clause] | None:
    """Pair a clause with its nearest new clause, preferring one with the same sign; None if none is near."""
    best = max((likeness(clause, other) for other in fresh), default=0.0)
    if best < NEAR_CLAUSE:
        return None
    near = [other for other in (*fresh, *standing) if likeness(clause, other) >= 0.9 * best]
    found = max(near, key=lambda other: (other.sign == clause.sign, likeness(clause, other)))
    return (clause, found) if found in fresh or found.sign == clause.sign else None
