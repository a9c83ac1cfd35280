"""Alignment: which unit that was sent is which unit that was expected.

Equal units are matched in order (longest runs first); what is left of both is compared within each gap: the same unit
elsewhere has *moved*; the same letters, or a text that is like enough, has *changed*; letters that were only cut up or
joined differently are *recast*; the rest is *removed* or *added*. Indexes count from 0.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from .reading import CUT, JOINT
from .units import Unit
from .wording import change_of, folded, is_re_encoded, likeness

MAX_REPEATS = 20
"""A unit that stands there more often is matched by its number: equal neighbours cost the square of their count."""
LIKE_ENOUGH = 0.5
LIKE_ENOUGH_IN_FRAME = 0.3
"""Texts of one role and type are taken for each other sooner."""
REACH = 12
"""How far apart within a gap two texts are still compared."""


@dataclass(slots=True)
class Alignment:
    """What became of each unit; pairs are (expected, sent)."""

    matched: dict[int, int] = field(default_factory=dict)
    """From sent to expected, also of those that moved or changed."""
    moved: list[tuple[int, int]] = field(default_factory=list)
    changed: list[tuple[int, int]] = field(default_factory=list)
    recast: list[tuple[list[int], list[int]]] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    added: list[int] = field(default_factory=list)


def align(expected: Sequence[Unit], sent: Sequence[Unit]) -> Alignment:
    """Find out what became of every unit."""
    made = Alignment()
    gaps = _gaps(expected, sent, made)
    elsewhere: dict[Hashable, list[int]] = defaultdict(list)
    for _, added in gaps:
        for index in added:
            elsewhere[sent[index].key].append(index)
    taken: set[int] = set()
    for removed, _ in gaps:
        for index in list(removed):
            if elsewhere[expected[index].key]:
                other = elsewhere[expected[index].key].pop(0)
                removed.remove(index)
                taken.add(other)
                made.moved.append((index, other))
                made.matched[other] = index
    for removed, added in gaps:
        for channel in dict.fromkeys((*(expected[i].channel for i in removed), *(sent[i].channel for i in added))):
            mine = [index for index in removed if expected[index].channel == channel]
            theirs = [index for index in added if sent[index].channel == channel and index not in taken]
            _fill(expected, sent, mine, theirs, made)
    made.removed.sort()
    made.added.sort()
    return made


def _gaps(expected: Sequence[Unit], sent: Sequence[Unit], made: Alignment) -> list[tuple[list[int], list[int]]]:
    one, other = _numbered(expected), _numbered(sent)
    gaps: list[tuple[list[int], list[int]]] = []
    for tag, start, stop, from_, to in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag == "equal":
            made.matched.update(zip(range(from_, to), range(start, stop), strict=True))
        else:
            gaps.append((list(range(start, stop)), list(range(from_, to))))
    return gaps


def _numbered(units: Sequence[Unit]) -> list[Hashable]:
    repeats = Counter(unit.key for unit in units)
    seen: Counter[Hashable] = Counter()
    keys: list[Hashable] = []
    for unit in units:
        seen[unit.key] += 1
        keys.append(unit.key if repeats[unit.key] <= MAX_REPEATS else (unit.key, seen[unit.key]))
    return keys


def _fill(
    expected: Sequence[Unit], sent: Sequence[Unit], removed: list[int], added: list[int], made: Alignment
) -> None:
    """Pair what is left of one gap and channel."""
    if removed and added:
        letters = {index: folded(sent[index].text) for index in added}
        for index in list(removed):
            mine = folded(expected[index].text)
            same = [other for other in added if letters[other] == mine]
            if same and (mine or expected[index].frame == sent[same[0]].frame):
                _pair(index, same[0], removed, added, made)
        if _is_recast([expected[index] for index in removed], [sent[index] for index in added]):
            made.recast.append((list(removed), list(added)))
            made.matched.update(dict.fromkeys(added, removed[0]))
            return
        for index in list(removed):
            best = _most_like(expected, sent, index, removed, added)
            if best is not None:
                _pair(index, best, removed, added, made)
        if [expected[index].frame for index in removed] == [sent[index].frame for index in added]:
            for index, other in list(zip(removed, added, strict=True)):
                _pair(index, other, removed, added, made)
    made.removed += removed
    made.added += added


def _is_recast(removed: Sequence[Unit], added: Sequence[Unit]) -> bool:
    """Whether these are the same pieces cut up or joined differently; of a head that is one text, also cut short."""
    if not removed or not added or len(removed) == len(added) == 1:
        return False
    expected, came = joined(removed), joined(added)
    if removed[0].channel == "head" and len(removed) != len(added):
        return change_of(expected, came) != "altered_text"
    return bool(folded(expected)) and is_re_encoded(expected, came)


def joined(units: Iterable[Unit]) -> str:
    """The texts of neighbours as one."""
    return JOINT.join(unit.text for unit in units)


def _pair(index: int, other: int, removed: list[int], added: list[int], made: Alignment) -> None:
    removed.remove(index)
    added.remove(other)
    made.changed.append((index, other))
    made.matched[other] = index


def _most_like(
    expected: Sequence[Unit], sent: Sequence[Unit], index: int, removed: list[int], added: list[int]
) -> int | None:
    """The unit in this gap that most likely came from this one."""
    one, at = expected[index], removed.index(index)
    best, best_score = None, 0.0
    for other in added[max(0, at - REACH) : at + REACH]:
        two = sent[other]
        same_frame = one.frame == two.frame.removesuffix(CUT)
        if not same_frame and not (one.text and two.text):
            continue
        score = likeness(one.text, two.text)
        if score >= (LIKE_ENOUGH_IN_FRAME if same_frame else LIKE_ENOUGH) and score + same_frame > best_score:
            best, best_score = other, score + same_frame
    return best
