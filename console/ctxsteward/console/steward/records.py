"""Records of a profile's ledger, for the steward's verbs: as the last night saw them, found by id, their spans quoted.

A ledger that is behind the store, or was never made on this machine, catches up when it is opened. Raises `InputError`
for an id that no record has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxsteward.envelope.store import DEFAULT_TOKENIZER
from ctxsteward.envelope.tokens import Counter, load_tokenizer
from ctxsteward.schemas import Evidence, InputError, MetaRecommendation
from ctxsteward.steward import NightChain
from ctxsteward.steward.admission import AdmissionPolicy
from ctxsteward.steward.drift import against, rules_of
from ctxsteward.steward.harvest import BatchRecords
from ctxsteward.steward.night import moment_of

from .context import StewardContext

if TYPE_CHECKING:  # the ledger needs the extra `steward`, and most verbs do without
    from ctxsteward.steward import Ledger
    from ctxsteward.steward.ledger import JudgementContext

REASONS: Mapping[str, str] = {
    "strict_cue": "said outright, for its author alone",
    "scored_fact": "a lasting fact of its author, for its author alone",
    "repeated": "said more than once",
    "independent_principals": "enough people said it, independently",
    "confirmed": "enough people said it, and a tool of your own says the same",
    "governed": "enough people said it, and a rule in force says the same",
    "fix_worked": "its fix worked often enough, in runs that succeeded",
    "approved": "a person approved it",
    "needs_support": "said once, in passing; it must be said again",
    "needs_principals": "too few people said it",
    "needs_confirmation": "people claim it of the service; a tool of your own, a rule or a person must say the same",
    "fails_more": "more runs that did so failed than succeeded",
    "needs_outcome": "no run in which its fix worked is known to have succeeded",
    "needs_recovery": "its fix has worked in too few runs that succeeded",
    "needs_person": "only a person may admit it",
    "tool_text": "it rests on what a tool returned",
    "not_said_by_a_person": "no person said it",
    "rejected_by_person": "a person rejected it",
    "newer_value": "a newer value took its place",
    "conflict": "somebody says the opposite; both are held",
    "faded": "nobody has confirmed it for long",
    "gainsays_locked": "it gainsays a locked line",
    "gainsays_rule": "it gainsays a rule",
    "touches_locked": "it speaks of what a locked line is about, and does not plainly say the same; a person must look",
    "merged": "it took in a record that says the same",
}
"""What the codes of a record mean."""


class LedgerView:
    """All records of one profile, as on one date."""

    def __init__(self, ledger: Ledger, date: str, as_of: JudgementContext) -> None:
        self.ledger, self.date, self._as_of = ledger, date, as_of

    @classmethod
    def of(cls, place: StewardContext, ledger: Ledger, date: str, policy: AdmissionPolicy) -> LedgerView:
        """With what people said of single records."""
        from ctxsteward.steward.ledger import JudgementContext
        from ctxsteward.steward.release import reviews_of

        now = moment_of(date)
        reviews = reviews_of(place.store, place.settings(), ledger, now)
        counter = Counter(load_tokenizer(DEFAULT_TOKENIZER))
        return cls(ledger, date, JudgementContext(now=now, policy=policy, reviews=reviews, counter=counter))

    def __iter__(self) -> Iterator[MetaRecommendation]:
        return self.ledger.records(self._as_of)

    @cached_property
    def by_id(self) -> dict[str, MetaRecommendation]:
        return {record.id: record for record in self}

    def find(self, id: str) -> MetaRecommendation:
        """By its id, the first digits of it, or an id that it once had."""
        if not id:
            raise InputError("no id: give that of a record")
        near = [record for known, record in self.by_id.items() if known.startswith(id)]
        if id in self.by_id:
            return self.by_id[id]
        if len(near) == 1:
            return near[0]
        once = self.ledger.record(id, self._as_of) if not near else None
        if once is not None:
            return once
        if near:
            some = ", ".join(record.id for record in near[:3])
            raise InputError(f"{id!r}: {len(near)} records begin so: {some}; give more digits")
        raise InputError(f"{id:.80}: no record has this id; `ctxsteward steward review --all` lists them")

    def spans(self, record: MetaRecommendation) -> list[QuotedSpan]:
        """What a record rests on, word by word."""
        broken = set(self.ledger.broken(record.evidence))
        told = zip(record.evidence, self.ledger.why(record.id), strict=True)
        return [QuotedSpan(evidence=one, text=quote.text, verified=one not in broken) for one, quote in told]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedSpan:
    """One piece of evidence."""

    evidence: Evidence
    text: str | None
    """None: it was forgotten."""
    verified: bool

    def document(self) -> dict[str, Any]:
        told = self.evidence.model_dump(mode="json")
        return told | {"text": self.text, "verified": self.verified}


@contextmanager
def records_at(place: StewardContext, *, keep: bool = True) -> Iterator[LedgerView]:
    """The records of a profile, as the last night saw them, or as of today before the first.

    `keep`: leave the index on this machine for the next time.
    """
    from ctxsteward.steward import Ledger
    from ctxsteward.steward.setup import ledger_path

    newest = NightChain(place.store, place.tenant, place.profile).head()
    kept_at = ledger_path(place.settings())
    path = kept_at if kept_at.exists() or (keep and newest is not None) else Path(":memory:")
    with Ledger.open(path, place.store, place.tenant, place.profile) as ledger:
        if newest is not None and newest[1].ledger != ledger.digest():
            kept = BatchRecords(place.store, place.tenant, place.profile, extractor="")
            ledger.absorb_kept(one for batch in kept.every() for one in batch.artifacts)
        date = newest[1].night if newest else place.here.today
        head = place.versions.head()
        policy = place.settings().admission.under(head.profile if head else None)
        yield LedgerView.of(place, ledger, date, policy)


def whose(record: MetaRecommendation) -> str:
    """Whom a record is for."""
    scope = record.scope
    for kind, name in (("session", scope.session), ("user", scope.user), ("project", scope.project)):
        if name is not None:
            return f"{kind} {name}"
    return "everybody"


def against_rule(place: StewardContext, record: MetaRecommendation) -> dict[str, Any] | None:
    """The rule in force that a record gainsays, or the locked line that it touches; None: there is none."""
    head = place.versions.head()
    found = against(rules_of(head.profile if head else None), record.text)
    if found is None:
        return None
    return {"rule": found.rule.key, "locked": found.rule.locked, "says": found.rule.text, "how": found.how}


def rule_text(found: Mapping[str, Any]) -> str:
    """What `against_rule` gave, in words."""
    locked = ", which is locked" if found["locked"] else ""
    verb = "gainsays" if found["how"] == "gainsays" else "speaks of what is said in"
    return f"it {verb} {found['rule']}{locked}: {found['says']}"


def reason_text(record: MetaRecommendation) -> str:
    """Why a record has its status, in words."""
    return "; ".join(REASONS.get(code, code.replace("_", " ")) for code in record.reasons)
