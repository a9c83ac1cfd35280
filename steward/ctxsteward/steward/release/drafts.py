"""Changes of persona, policies, rails and surface that nights draft, for a person to accept, edit or reject.

A draft is computed from one record, the use of that record and the profile in force; it is not stored. These records
give a draft:

    shared       several people wish or correct the same, in equal or different words
    stated       a tool said it in the runs of several tasks, or it is a policy or a persona
    contradicts  enough people contradict a rule that is not locked; the draft replaces the rule. (Any draft replaces a
                 line of near meaning with another figure.)
    fails        an action after an error failed more often than not, in enough runs; the draft forbids it
    proven       a line of the slice was nearly always obeyed; the draft makes it an entry that does not fade
    unused, disobeyed    a line of the slice never applied, or was mostly disobeyed; the draft removes it

A text with a gap ("…") or personal data gives no draft, because an entry becomes the operator's own text and stays when
the speaker is forgotten. A draft enters a version only after a person has read and accepted it.

Source: Wilson 1927 (interval of a share).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ctxsteward.language.words import STOP
from ctxsteward.schemas.profile import BLOCKS, BlockName, ProfileDocument, ProfileEntry
from ctxsteward.schemas.recommendation import MetaRecommendation

from ..drift.rules import against, own_text, restates, rules_of
from ..harvest.people.claims import speaks_of_answers
from ..harvest.usage import RecordUse
from ..ledger.judgement import TriedFix
from ..ledger.meanings import nearest
from ..reconcile.draft import wilson_lower95
from ..reconcile.features import claim_features

Cause = Literal["shared", "stated", "contradicts", "fails", "proven", "unused", "disobeyed"]
NEVER, MOSTLY, NEARLY_ALWAYS = 0.8, 0.5, 0.7
"""Thresholds of the lower end of the 95 % interval, for the share of sessions in which a line did not apply, was
disobeyed, or was obeyed."""
FAILED_RUNS = 3
_WORD = re.compile(r"[a-z0-9]+(?:['’][a-z]+)?")
_QUOTE = re.compile(r'^\S+ says "(.+)"$')
"""A tool's sentence within the template of `harvest.tools.statements`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftedChange:
    """One change of the profile in force."""

    cause: Cause
    block: BlockName | Literal["meta"]
    key: str
    text: str | None
    """New text; None to remove the line."""
    before: str | None = None
    """Text in force; None for a new entry."""
    beside: str | None = None
    """Key and text of the line in force that is nearest in meaning."""

    @property
    def at(self) -> str:
        return f"{self.block}.{self.key}"

    @property
    def entry(self) -> ProfileEntry:
        """The changed entry."""
        return ProfileEntry(id=self.key, text=self.text or "")


def drafted(
    record: MetaRecommendation,
    profile: ProfileDocument,
    *,
    people: int,
    use: RecordUse | None = None,
    tried: Sequence[TriedFix] = (),
) -> DraftedChange | None:
    """Return the change that a record suggests, or None.

    Args:
        people: number of people who must say the same before it is shown to everybody.
        use: use of the record in sessions that were shown it.
        tried: actions of runs after the record's error, and how the runs ended.
    """
    if record.sensitivity != "none" or not record.scope.is_shared:
        return None
    cause = _cause(record, profile, people, use or RecordUse(), tried)
    if cause is None:
        return None
    if cause in ("unused", "disobeyed"):
        return DraftedChange(cause=cause, block="meta", key=record.id, text=None, before=record.text)
    text = _forbidden(record) if cause == "fails" else _own_words(record)
    lines = {f"{block}.{entry.id}": entry.text for block in BLOCKS for entry in getattr(profile, block)}
    if text is None or "…" in text or any(restates(line, text) for line in lines.values()):
        return None
    rule = against(rules_of(profile), text)
    near = nearest(text, list(lines.values()))
    at = rule.key if rule is not None else next((key for key, line in lines.items() if line == near), None)
    if at is not None and (rule is not None or _says_another_figure(lines[at], text)):
        block, key = next((block, at[len(block) + 1 :]) for block in BLOCKS if at.startswith(f"{block}."))
        is_locked = next(entry.locked for entry in getattr(profile, block) if entry.id == key)
        return None if is_locked else DraftedChange(cause=cause, block=block, key=key, text=text, before=lines[at])
    if cause == "fails":
        block = "rails"
    elif record.kind == "persona":
        block = "persona"
    elif record.kind == "preference" and speaks_of_answers(text):
        block = "surface"
    else:
        block = "policies"
    key = _new_key(text, record, {entry.id for entry in getattr(profile, block)})
    return DraftedChange(cause=cause, block=block, key=key, text=text, beside=f"{at}: {lines[at]}" if at else None)


def _cause(
    record: MetaRecommendation, profile: ProfileDocument, people: int, use: RecordUse, tried: Sequence[TriedFix]
) -> Cause | None:
    reasons = set(record.reasons)
    if record.status == "active":
        is_shown = "approved" not in reasons and record.id in {line.id for line in profile.meta}
        if not is_shown:
            return None
        if not use.fired and wilson_lower95(use.judged, 0) > NEVER:
            return "unused"
        if wilson_lower95(use.contradicted, use.complied) > MOSTLY:
            return "disobeyed"
        return "proven" if wilson_lower95(use.complied, use.contradicted) > NEARLY_ALWAYS else None
    if "gainsays_rule" in reasons and record.support.principals >= people:
        return "contradicts"
    if "fails_more" in reasons:
        failed = sum(each.failed for each in tried if each.action == record.action)
        return "fails" if failed >= FAILED_RUNS else None
    if record.kind in ("preference", "correction") and reasons & {"alike", "beside_locked", "needs_confirmation"}:
        return "shared"
    is_stated = record.kind in ("environment", "policy", "persona") and "needs_person" in reasons
    return "stated" if is_stated else None


def _says_another_figure(line: str, text: str) -> bool:
    """Whether two lines of near meaning have different figures, so that both cannot hold."""
    one, other = claim_features(line).values, claim_features(text).values
    return bool(one and other) and one != other


def _own_words(record: MetaRecommendation) -> str:
    """Return the text of a record as a sentence, without the name of the speaker or tool."""
    quote = _QUOTE.match(record.text)
    text = quote[1] if quote and record.kind == "environment" else own_text(record.text)
    return text[:1].upper() + text[1:]


def _forbidden(record: MetaRecommendation) -> str | None:
    """Turn advice that failed into a prohibition."""
    head, found, _ = record.text.rpartition(f": {record.action}")
    return f"{head}: do not {record.action}." if found and record.action else None


def _new_key(text: str, record: MetaRecommendation, taken: set[str]) -> str:
    """Make a key of the first three content words, or of the record's id if the text has no Latin words."""
    words = [word for word in _WORD.findall(text.lower()) if word.isalnum() and word not in STOP][:3]
    key = "-".join(words)[:60] or f"line-{record.id[:8]}"
    return next(name for n in range(1, len(taken) + 2) if (name := key if n == 1 else f"{key}-{n}") not in taken)
