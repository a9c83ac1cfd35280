"""Differences between entries of two profiles: the share of changed text, and findings about each entry.

`report` makes the drift report from these; `rules` and the eval gate use `opposed`.

*Shares* (`shares`): removed and added words relative to old and new words, ``delta = (gone + come) / (old + new)`` and
``removed = gone / old``, both in 0..1; words of English, characters of Chinese. A sentence in both documents counts as
unchanged, even under another key, and so does an entry whose words have moved to another key: moving, splitting and
merging do not change text.

*Findings* are about a changed entry (`changed_entry`), or about entries that new sentences contradict
(`contradicted_entries`). BLOCK: a polarity flip, a changed figure of a locked entry, a removed lock, a locked entry
that was removed or rewritten. WARN: another strength or another figure. INFO: other wording.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from ctxsteward.language.clauses import Clause, clauses, likeness
from ctxsteward.language.figures import Figure, changed_figure, figure_text, figures
from ctxsteward.language.operators import keys_of, sentences_of
from ctxsteward.schemas.profile import ProfileEntry
from ctxsteward.schemas.profile_changes import ChangedBlock, DriftFinding, DriftKind, DriftLevel, DriftLimits

from .edits import corrected, otherwise
from .polarity import contradictions, polarity_changes

MOVED = 0.6
"""A removed entry counts as moved if this share of its words was added elsewhere."""
MAX_ALIGNED = 2_000
"""Words of one entry that are aligned in order; longer entries are compared as bags of words."""


class WordChangeCounts(NamedTuple):
    """Numbers of removed and added words, and of all old and new words."""

    gone: int
    come: int
    old: int
    new: int

    @property
    def delta(self) -> float:
        return round((self.gone + self.come) / (self.old + self.new), 4) if self.old + self.new else 0.0

    @property
    def removed(self) -> float:
        return round(self.gone / self.old, 4) if self.old else 0.0


Words = tuple[str, ...]


def shares(before: Mapping[str, str], after: Mapping[str, str]) -> WordChangeCounts:
    """Count changed words between two documents, given as texts by key."""
    old, new = _sentences(before), _sentences(after)
    total_old, total_new = _count(old.values()), _count(new.values())
    same = Counter(words for each in old.values() for words in each) & Counter(
        words for each in new.values() for words in each
    )
    rest_old, rest_new = _without(old, same), _without(new, same)
    gone = come = 0
    moved_from: list[Words] = []
    moved_to: list[Words] = []
    for key in {**rest_old, **rest_new}:
        one, other = rest_old.get(key, ()), rest_new.get(key, ())
        if one and other:
            kept = _kept(one, other)
            gone, come = gone + len(one) - kept, come + len(other) - kept
        else:
            moved_from += [one] if one else []
            moved_to += [other] if other else []
    pool = Counter(word for words in moved_to for word in words)
    come += sum(map(len, moved_to))
    for words in moved_from:
        kept_words = Counter(words) & pool
        kept = kept_words.total() if kept_words.total() >= MOVED * len(words) else 0
        if kept:
            pool -= kept_words
        gone, come = gone + len(words) - kept, come - kept
    return WordChangeCounts(gone, come, total_old, total_new)


def _sentences(texts: Mapping[str, str]) -> dict[str, list[Words]]:
    return {key: [keys_of(sentence) for sentence in sentences_of(text)] for key, text in texts.items()}


def _count(texts: Iterable[list[Words]]) -> int:
    return sum(len(words) for each in texts for words in each)


def _without(texts: dict[str, list[Words]], same: Counter[Words]) -> dict[str, Words]:
    left = Counter(same)
    rest: dict[str, Words] = {}
    for key, each in texts.items():
        kept: list[str] = []
        for words in each:
            if left[words] > 0:
                left[words] -= 1
            else:
                kept += words
        rest[key] = tuple(kept)
    return {key: words for key, words in rest.items() if words}


def _kept(one: Words, other: Words) -> int:
    if max(len(one), len(other)) > MAX_ALIGNED:
        return (Counter(one) & Counter(other)).total()
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks)


SAME_SUBJECT = 0.75
"""Share of the smaller clause's content words that a locked rule and its contradiction have in common."""


class BlockEntry(NamedTuple):
    """An entry with its block."""

    block: ChangedBlock
    entry: ProfileEntry


def drift_finding(
    kind: DriftKind,
    level: DriftLevel,
    at: BlockEntry | None,
    text: str,
    before: str | None = None,
    after: str | None = None,
) -> DriftFinding:
    """Make a finding about an entry, or about the document."""
    block, key = (at.block, at.entry.id) if at else (None, None)
    cut = [None if said is None else said[:200] for said in (before, after)]
    return DriftFinding(kind=kind, level=level, block=block, key=key, before=cut[0], after=cut[1], text=text)


def changed_entry(old: BlockEntry, new: BlockEntry, limits: DriftLimits) -> Iterator[DriftFinding]:
    """Yield the findings about an entry whose content changed under the same key."""
    locked = old.entry.locked
    if locked and not new.entry.locked:
        yield drift_finding("unlocked", "BLOCK", old, "the lock was taken off")
    elif new.entry.locked and not locked:
        yield drift_finding("locked", "INFO", old, "it was locked")
    if locked:
        text = corrected(new.entry.text, old.entry.text)
        new = new._replace(entry=new.entry.model_copy(update={"text": text}))
    findings = [*_declared(old, new), *_figures(old, new), *_wording(old, new, limits)]
    if locked and new.entry.text != old.entry.text and all(finding.level != "BLOCK" for finding in findings):
        change = otherwise(old.entry.text, new.entry.text)
        if change is not None:
            yield drift_finding(change.kind, "BLOCK", old, change.why, change.before, change.after)
    yield from findings


def _declared(old: BlockEntry, new: BlockEntry) -> Iterator[DriftFinding]:
    one, other = old.entry, new.entry
    if one.polarity and other.polarity and one.polarity != other.polarity:
        yield drift_finding(
            "polarity_flip", "BLOCK", old, "the declared polarity was turned", one.polarity, other.polarity
        )
    if one.modality == other.modality:
        return
    if "must_not" in (one.modality, other.modality) and one.modality and other.modality:
        yield drift_finding(
            "polarity_flip", "BLOCK", old, "the declared modality was turned", one.modality, other.modality
        )
    else:
        yield drift_finding(
            "modality_change", "WARN", old, "the declared modality differs", one.modality, other.modality
        )


def _figures(old: BlockEntry, new: BlockEntry) -> Iterator[DriftFinding]:
    one, other = old.entry, new.entry
    level: DriftLevel = "BLOCK" if one.locked else "WARN"
    if (one.value, one.unit) != (other.value, other.unit) and not _same_figure(one, other):
        figure_before, figure_after = (
            None if entry.value is None else f"{entry.value} {entry.unit or ''}".strip() for entry in (one, other)
        )
        yield drift_finding("number_change", level, old, "the declared figure differs", figure_before, figure_after)
    pair = changed_figure(one.text, other.text) or _swapped(one.text, other.text)
    if pair is not None:
        gone, come = pair
        if gone and come and gone[:2] == come[:2] and "" not in (gone.bound, come.bound):
            yield drift_finding(
                "polarity_flip", "BLOCK", old, "a bound was turned round", figure_text(gone), figure_text(come)
            )
            return
        weight = level if gone is not None else "WARN"  # a figure was only added
        yield drift_finding(
            "number_change", weight, old, "a figure in the text differs", figure_text(gone), figure_text(come)
        )


def _same_figure(one: ProfileEntry, other: ProfileEntry) -> bool:
    if None in (one.value, other.value):
        return False
    return figures(f"{one.value} {one.unit or ''}") == figures(f"{other.value} {other.unit or ''}") != ()


def _swapped(before: str, after: str) -> tuple[Figure | None, Figure | None] | None:
    """Find figures that changed places within a sentence that is otherwise the same."""
    spelled = {_masked(sentence): sentence for sentence in sentences_of(after)}
    for sentence in sentences_of(before):
        other = spelled.get(_masked(sentence))
        if other is not None and figures(sentence) != figures(other):
            return next((one, two) for one, two in zip(figures(sentence), figures(other), strict=False) if one != two)
    return None


def _masked(sentence: str) -> str:
    return re.sub(r"\d+(?:[.,]\d+)*", "#", sentence)


def _wording(old: BlockEntry, new: BlockEntry, limits: DriftLimits) -> Iterator[DriftFinding]:
    before, after = sentences_of(old.entry.text), sentences_of(new.entry.text)
    if before == after:
        return
    for turn in polarity_changes(before, after):
        if turn.kind == "flip":
            yield drift_finding("polarity_flip", "BLOCK", old, "the text was turned round", turn.before, turn.after)
        else:
            yield drift_finding("modality_change", "WARN", old, "its strength differs", turn.before, turn.after)
    added = [sentence for sentence in after if sentence not in before]
    for kept, fresh in contradictions(added, [sentence for sentence in after if sentence in before]):
        yield drift_finding("polarity_flip", "BLOCK", old, "a new sentence gainsays it", kept.sentence, fresh.sentence)
    yield _amount(old, new, limits)


def _amount(old: BlockEntry, new: BlockEntry, limits: DriftLimits) -> DriftFinding:
    share = shares({"": old.entry.text}, {"": new.entry.text})
    amount = f"{share.delta:.0%} of its text changed"
    if old.entry.locked and share.delta > limits.block_locked_delta:
        return drift_finding("large_delta", "BLOCK", old, f"another text stands under a locked key: {amount}")
    if old.entry.locked and share.removed > limits.block_delta and share.come < share.gone / 2:
        return drift_finding("removed", "BLOCK", old, f"most of a locked text is gone: {amount}")
    return drift_finding("reworded", "INFO", old, amount)


def contradicted_entries(
    standing: Sequence[BlockEntry], fresh: Sequence[str], at: BlockEntry | None = None
) -> Iterator[BlockEntry]:
    """Yield the entries, except `at`, that new sentences plainly contradict.

    Most wordings of a contradiction are not found, so their absence must not admit anything.
    """
    for each in standing:
        is_itself = at is not None and each[0] == at[0] and each.entry.id == at.entry.id
        if not is_itself and opposed(each.entry, [corrected(sentence, each.entry.text) for sentence in fresh]):
            yield each


def opposed(entry: ProfileEntry, fresh: Sequence[str]) -> bool:
    """Whether sentences contradict an entry or its figure; for a locked entry also in other words."""
    said = sentences_of(entry.text)
    if any(True for _ in contradictions(fresh, said)):
        return True
    if not entry.locked:
        return False
    return any(
        _against(one, other)
        for sentence in said
        for one in clauses(sentence)
        for text in fresh
        for other in clauses(text)
    )


def _against(rule: Clause, other: Clause) -> bool:
    """Whether a clause about the subject of a rule has the opposite sign, or another figure."""
    if rule.condition or other.condition:
        return False
    subject, about = _subject(rule), _subject(other)
    smaller = min(len(subject), len(about))
    if smaller < 2 or len(subject & about) < SAME_SUBJECT * smaller or likeness(rule, other) < 0.3:
        return False
    conditional = any(c.condition for clause in (rule, other) for c in clauses(clause.sentence))
    if rule.sign != other.sign and not conditional:
        return True
    units = {figure.unit: figure.number for figure in figures(rule.sentence)}
    return rule.sign == other.sign and any(
        figure.unit in units and units[figure.unit] != figure.number for figure in figures(other.sentence)
    )


def _subject(clause: Clause) -> frozenset[str]:
    return frozenset(word for word in clause.content if not word[0].isdigit())
