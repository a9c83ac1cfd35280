"""Changes of persona, policies, rails and surface that nights draft, for a person to accept, edit or reject.

A draft is worked out of one record, the use that was made of it and the profile in force; nothing of it is stored. It
is made where the record shows what everybody meets:

    shared       people wish it, or correct it, in one another's words or in words of their own
    stated       a tool said it in the runs of several tasks, or a person has to decide about a policy or a persona
    contradicts  enough people say the opposite of a rule that is not locked; the draft takes the rule's place, as does
                 a line of near meaning with another figure
    fails        what runs did about an error failed more often than not, and often enough; the draft forbids it
    proven       a line of the slice was obeyed nearly always, so that it need not fade
    unused, disobeyed    a line of the slice never applied, or was mostly disobeyed; the draft takes it out

Words with a gap, and what is personal, make no entry: an entry is the operator's own text and outlives whoever said it.
So nothing drafted is in a version before a person has read and accepted it.

Source: Wilson 1927 (how sure a share is).
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
"""Lower ends of the 95 % interval: of sessions in which a line did not apply, was disobeyed, was obeyed."""
FAILED_RUNS = 3
_WORD = re.compile(r"[a-z0-9]+(?:['’][a-z]+)?")
_QUOTE = re.compile(r'^\S+ says "(.+)"$')
"""What a tool said, within the template of `harvest.tools.statements`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftedChange:
    """One change of the profile in force."""

    cause: Cause
    block: BlockName | Literal["meta"]
    key: str
    text: str | None
    """What it would say; None: the line would go."""
    before: str | None = None
    """What it says now; None: it is new."""
    beside: str | None = None
    """The line in force whose meaning is nearest, with its key."""

    @property
    def at(self) -> str:
        return f"{self.block}.{self.key}"

    @property
    def entry(self) -> ProfileEntry:
        """The entry of the patch."""
        return ProfileEntry(id=self.key, text=self.text or "")


def drafted(
    record: MetaRecommendation,
    profile: ProfileDocument,
    *,
    people: int,
    use: RecordUse | None = None,
    tried: Sequence[TriedFix] = (),
) -> DraftedChange | None:
    """The change that a record asks for; None where it asks for none.

    Args:
        people: how many must say the same before it is for everybody.
        use: what became of the record in sessions that were shown it.
        tried: what runs did about its error, and how they ended.
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
    block = "rails" if cause == "fails" else _block_of(record, text)
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


def _block_of(record: MetaRecommendation, text: str) -> BlockName:
    """Where an entry belongs: on the surface what is about answers, in policies what is told of the world."""
    if record.kind == "persona":
        return "persona"
    return "surface" if record.kind == "preference" and speaks_of_answers(text) else "policies"


def _says_another_figure(line: str, text: str) -> bool:
    """Whether two lines of near meaning differ in their figures, so that they cannot both hold."""
    one, other = claim_features(line).values, claim_features(text).values
    return bool(one and other) and one != other


def _own_words(record: MetaRecommendation) -> str:
    """What a record says, without who says it, as a sentence."""
    quote = _QUOTE.match(record.text)
    text = quote[1] if quote and record.kind == "environment" else own_text(record.text)
    return text[:1].upper() + text[1:]


def _forbidden(record: MetaRecommendation) -> str | None:
    """Advice that failed, turned round."""
    head, found, _ = record.text.rpartition(f": {record.action}")
    return f"{head}: do not {record.action}." if found and record.action else None


def _new_key(text: str, record: MetaRecommendation, taken: set[str]) -> str:
    """A key of the first words that tell something; of words in another script, of the record's id."""
    words = [word for word in _WORD.findall(text.lower()) if word.isalnum() and word not in STOP][:3]
    key = "-".join(words)[:60] or f"line-{record.id[:8]}"
    return next(name for n in range(1, len(taken) + 2) if (name := key if n == 1 else f"{key}-{n}") not in taken)
