"""Group claims of several people that mean the same in different words.

Equal claims are merged elsewhere (`reconcile.claims`), and only if no difference could matter, because a merged claim
may come into force by itself. Less is enough here, because a person decides about each group. The nearness of two
claims is the mean cosine of their words and of their letter runs, and rare ones count more (`nearness`). Groups grow by
average linkage, nearest first, while the mean nearness is at least `NEAR`; ties go by the claims' words, so groups
depend only on the words. A commonplace is a word of more than a tenth of all speakers, from a phrase of courtesy
("thanks") or of the trade ("booking"). A group must share another word, and its claims must not begin with a
commonplace.

Source: Sokal and Michener 1958 (average linkage); Salton and Buckley 1988 (term weights).
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from ctxsteward.language.words import STOP, term_stem

from ..reconcile.claims import Claim
from ..reconcile.features import MANNER, claim_features

NEAR = 0.33
LEAST_VOICES = 3
RUN = 4
"""Letters in a run."""
MAX_HOLDERS = 400
"""A word in more claims is not used to find near pairs."""
MAX_GROUP = 400
"""Longest chain of near claims; longer chains are commonplaces."""
COMMONPLACE_VOICES, COMMONPLACE_SHARE = 12, 0.1
Weights = Mapping[str, float]


def groups_by_meaning(claims: Mapping[str, Claim], voices: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return groups of claim ids with near meaning; `voices` has the people who made each claim.

    Groups of fewer than `LEAST_VOICES` people are left out, and so are claims that begin with a commonplace.
    """
    everybody = len({who for of_claim in voices.values() for who in of_claim})
    worded = sorted((claim.wording.tokens, id_) for id_, claim in claims.items() if claim.wording is not None)
    vectors = _vectors_of({id_: stems for tokens, id_ in worded if (stems := _words_of(tokens))})
    holders: dict[str, set[str]] = defaultdict(set)
    for id_, (words, _) in vectors.items():
        for word in words:
            holders[word] |= set(voices[id_])
    common = {word for word, who in holders.items() if is_commonplace(len(who), everybody)}
    compared = {id_: vector for id_, vector in vectors.items() if _first_word(claims[id_]) not in common}
    groups = []
    for near in _chained(compared):
        for group in _linked(near, compared):
            people = {who for id_ in group for who in voices[id_]}
            counts = Counter(word for id_ in group for word in compared[id_][0])
            shared = [word for word, count in counts.items() if 2 * count > len(group) and word not in common]
            if len(people) >= LEAST_VOICES and shared:
                groups.append(sorted(group))
    return sorted(groups)


def _first_word(claim: Claim) -> str:
    """Return the first word of a claim, without words of asking and wishing."""
    words = _words_of(token for token in (claim.wording.tokens if claim.wording else ()) if token not in MANNER)
    return words[0] if words else ""


def is_commonplace(voices: int, everybody: int) -> bool:
    """Whether so many people use a word that it is a phrase of courtesy or of the trade, not a wish."""
    return voices >= COMMONPLACE_VOICES and voices > COMMONPLACE_SHARE * everybody


def _vectors_of(read: Mapping[str, Sequence[str]]) -> dict[str, tuple[Weights, Weights]]:
    """Return the words and the letter runs of each claim as vectors of length one."""
    parts = {id_: (words, _runs_of(words)) for id_, words in read.items()}
    counted = [Counter(part for one in parts.values() for part in set(one[side])) for side in (0, 1)]
    return {
        id_: (_weighed(words, counted[0], len(parts)), _weighed(runs, counted[1], len(parts)))
        for id_, (words, runs) in parts.items()
    }


def _words_of(tokens: Iterable[str]) -> tuple[str, ...]:
    """Return stems of content words, and pairs of Chinese characters."""
    tokens = list(tokens)
    words = [term_stem(token) for token in tokens if token.isascii() and token not in STOP]
    return (*words, *(one + other for one, other in pairwise(tokens) if not (one.isascii() or other.isascii())))


def _runs_of(words: Collection[str]) -> tuple[str, ...]:
    marked = (f"#{word}#" for word in sorted(words))
    return tuple(word[at : at + RUN] for word in marked for at in range(max(1, len(word) - RUN + 1)))


def _weighed(parts: Sequence[str], held: Mapping[str, int], total: int) -> Weights:
    counts = Counter(parts)
    weights = {part: math.log((total + 1) / (held[part] + 0.5)) * (1 + math.log(n)) for part, n in counts.items()}
    length = math.sqrt(math.fsum(weight * weight for weight in weights.values())) or 1.0
    return {part: weight / length for part, weight in weights.items()}


def nearest(text: str, others: Sequence[str]) -> str | None:
    """Return the text that is nearest in meaning (the first of equals), or None if none is near.

    >>> nearest("Please use metric units.", ["Amounts in euros.", "Only metric units for me."])
    'Only metric units for me.'
    """
    read = {str(at): _words_of(claim_features(each).tokens) for at, each in enumerate((text, *others))}
    vectors = _vectors_of({id_: words for id_, words in read.items() if words})
    own = vectors.pop("0", None)
    near = {id_: nearness(own, vector) for id_, vector in vectors.items()} if own else {}
    best = max(near, key=lambda id_: near[id_], default=None)
    return others[int(best) - 1] if best is not None and near[best] >= NEAR else None


def means_the_same(text: str, others: Iterable[str]) -> bool:
    """Whether one of the texts has near words, equal values and the same negation."""
    own = claim_features(text)
    features = ((other, claim_features(other)) for other in others)
    alike = [other for other, read in features if (read.values, read.negative) == (own.values, own.negative)]
    return nearest(text, alike) is not None


def nearness(one: tuple[Weights, Weights], other: tuple[Weights, Weights]) -> float:
    """Return the nearness of two claims, 0 to 1."""
    return (_cosine(one[0], other[0]) + _cosine(one[1], other[1])) / 2


def _cosine(one: Weights, other: Weights) -> float:
    small, large = (one, other) if len(one) <= len(other) else (other, one)
    return math.fsum(weight * large[part] for part, weight in small.items() if part in large)


def _chained(vectors: Mapping[str, tuple[Weights, Weights]]) -> Iterator[list[str]]:
    """Yield chains of near claims (connected components), in the order of `vectors`."""
    place = {id_: at for at, id_ in enumerate(vectors)}
    holders: dict[str, list[str]] = defaultdict(list)
    for id_, (words, _) in vectors.items():
        for word in words:
            holders[word].append(id_)
    pairs: dict[str, set[str]] = defaultdict(set)
    for ids in holders.values():
        if len(ids) <= MAX_HOLDERS:
            for at, one in enumerate(ids):
                for other in ids[at + 1 :]:
                    if other not in pairs[one] and nearness(vectors[one], vectors[other]) >= NEAR:
                        pairs[one].add(other)
                        pairs[other].add(one)
    seen: set[str] = set()
    for start in vectors:
        if start in seen:
            continue
        chain, waiting = [], [start]
        seen.add(start)
        while waiting:
            chain.append(here := waiting.pop())
            fresh = pairs[here] - seen
            seen |= fresh
            waiting += fresh
        if len(chain) <= MAX_GROUP:
            yield sorted(chain, key=place.__getitem__)


def _linked(ids: Sequence[str], vectors: Mapping[str, tuple[Weights, Weights]]) -> list[list[str]]:
    """Cluster claims by average linkage, nearest first."""
    groups: dict[int, list[str]] = {at: [id_] for at, id_ in enumerate(ids)}
    sums = {
        (one, other): nearness(vectors[ids[one]], vectors[ids[other]])
        for one in range(len(ids))
        for other in range(one + 1, len(ids))
    }
    heap = [(-near, *pair) for pair, near in sums.items() if near >= NEAR]
    heapq.heapify(heap)
    while heap:
        _, one, other = heapq.heappop(heap)
        if one not in groups or other not in groups:
            continue
        new = len(ids) + len(ids) - len(groups)
        joined = groups.pop(one) + groups.pop(other)
        for third, members in groups.items():
            total = sums[_pair(one, third)] + sums[_pair(other, third)]
            sums[_pair(third, new)] = total
            if total / (len(members) * len(joined)) >= NEAR:
                heapq.heappush(heap, (-total / (len(members) * len(joined)), *_pair(third, new)))
        groups[new] = joined
    return list(groups.values())


def _pair(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)
