"""What is decided of a night's records: which are active, which stand in the slice, what would come into force.

Adapters between the shell (`stages`) and the rooms that decide: admission in the ledger, fitting, drift, gate,
promotion. Decisions depend on the ledger, the night's date and what is in force; of the clock they know nothing.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ctxsteward.envelope.counting import Counter
from ctxsteward.envelope.keys import address_of
from ctxsteward.envelope.profile import record_line
from ctxsteward.envelope.slices import canonical, record_subject
from ctxsteward.envelope.store import DEFAULT_TOKENIZER, Store
from ctxsteward.envelope.supports import keep_support
from ctxsteward.envelope.tokens import load_tokenizer
from ctxsteward.envelope.versions import Version
from ctxsteward.schemas import Erased
from ctxsteward.schemas.drift import DriftReport
from ctxsteward.schemas.profile import BLOCKS, MetaRecord, ProfileDocument
from ctxsteward.schemas.recommendation import MetaRecommendation, Review

from .actors import Actors
from .approvals import Approvals
from .canary import Arm, CanaryLimits, decide, running, settle, started
from .fitting import HIGH_TOKENS, LOW_TOKENS, fit, slice_tokens
from .gate import EvalGate, FrozenGate, GateReport
from .ledger import Ledger
from .nights import Night, Nights, Outcome
from .promotion import Promotion, assess, promote
from .reconcile import is_claim_id
from .record_reviews import RecordReviews
from .settings import NightSettings
from .shelving import shelves
from .stages import Admitted, Challenger, Fitted, Promoted, Verdict, Writing


def moment_of(date: str) -> str:
    """When a night is, for what ages: its date's midnight, ISO 8601."""
    return f"{date}T00:00:00+00:00"


NOBODY = Actors(salt="00" * 16, actors={})


class Deciding:
    """One profile's decisions."""

    def __init__(
        self,
        settings: NightSettings,
        store: Store,
        ledger: Ledger,
        *,
        eval_gate: Callable[[frozenset[str]], EvalGate] = lambda reviewed: FrozenGate(reviewed=reviewed),
    ) -> None:
        """`eval_gate` makes a gate, told which entries people are asked about anyway."""
        self._settings, self._store, self._ledger = settings, store, ledger
        self._eval_gate = eval_gate
        actors = NOBODY if settings.actors is None else Actors.load(settings.actors)
        self._approvals = Approvals(store, settings.profile, settings.tenant, actors=actors)
        self._record_reviews = RecordReviews(store, settings.profile, settings.tenant, actors=actors)
        self._drift: DriftReport | None = None
        self._gate_report: GateReport | None = None
        self._nights = Nights(store, settings.tenant, settings.profile)
        self._versions = store.profiles(settings.profile, tenant=settings.tenant)
        self._key = store.keys.address_key(settings.tenant)
        self._vault = store.vault(settings.tenant)
        self._counter = Counter(load_tokenizer(DEFAULT_TOKENIZER))
        self._reviews: Mapping[str, Review] = {}
        self._date = ""
        self._active: Sequence[MetaRecommendation] = ()
        self._fitted: Sequence[MetaRecord] = ()

    def admit(self, date: str, run: str) -> Admitted:
        """Records as the gates see them on this date: those that are for many, and what all of them come to."""
        self._date = moment_of(date)
        self._reviews = self._record_reviews.standing(lambda id: self._ledger.record(id, now=self._date))
        judged = self._ledger.judged(now=self._date, approvals=self._reviews, counter=self._counter, run=run)
        return Admitted(
            active=judged.shared,
            digest=judged.digest,
            statuses={str(status): count for status, count in judged.statuses.items()},
            refused=len(self._ledger.flawed()),
        )

    def fit(self, admitted: Admitted, writing: Writing) -> Fitted:
        """The slice, out of what is for everybody; what people wrote into it stays, and takes its room."""
        self._active = admitted.active
        shared = [record for record in admitted.active if record.scope.is_shared]
        before = self._base(writing)[1].meta
        written = tuple(record for record in before if not is_claim_id(record.id))
        taken_tokens = sum(self._counter.text(record_line(record) + "\n") for record in written)
        records = written + fit(
            shared, self._counter, max(0, LOW_TOKENS - taken_tokens), max(0, HIGH_TOKENS - taken_tokens),
            agent=self._settings.profile, incumbents=before if self._settings.keep_places else (), now=self._date,
            is_withdrawn=self._is_withdrawn,
        )  # fmt: skip
        self._fitted = records
        return Fitted(records=records, tokens=slice_tokens(records, self._counter))

    def _is_withdrawn(self, record: MetaRecord) -> bool:
        subject = record_subject(self._settings.profile, record)
        return self._vault.tombstone(self._vault.subject_address(subject)) is not None

    def stage(self, fitted: Fitted, writing: Writing) -> Challenger | None:
        base, before = self._base(writing)
        if before.meta == fitted.records:
            return None
        fields: dict[str, Any] = {block: getattr(before, block) for block in BLOCKS}
        return Challenger(document=ProfileDocument(name=before.name, meta=fitted.records, **fields), base=base)

    def _base(self, writing: Writing) -> tuple[int, ProfileDocument]:
        """The version that this run starts from, and what it says."""
        base = writing.base(self._versions.head())
        return base, self._versions.at(base).profile if base else ProfileDocument(name=self._settings.profile)

    def drift(self, challenger: Challenger, writing: Writing) -> Verdict:
        found = assess(self._versions, challenger.document, parent=challenger.base, when=writing.when)
        self._drift = found
        told = tuple(f"{one.level}: {one.text}" for one in found.findings if one.level != "INFO")
        return Verdict(level=found.level, ok=found.level != "BLOCK", why=told)

    def gate(self, challenger: Challenger) -> Verdict:
        """Champion and challenger on the same frozen cases."""
        champion = self._versions.at(challenger.base).profile if challenger.base else None
        reviewed = frozenset(self._drift.touched) if self._drift else frozenset[str]()
        self._gate_report = found = self._eval_gate(reviewed)(champion, challenger.document)
        return Verdict(level="passed" if found.passed else "failed", ok=found.passed, why=found.failed)

    def promote(
        self, challenger: Challenger | None, drift: Verdict | None, gate: Verdict | None, writing: Writing
    ) -> Promoted:
        """Commit the challenger, or say what is in the way; judged by the reports that drift and gate made here.

        What is for one user, project or session alone needs no challenger: it goes onto the shelves of facts.
        """
        records = self._ledger.records(now=self._date, approvals=self._reviews, counter=self._counter, run=writing.run)
        active = (record for record in records if record.status == "active")
        self._store.facts(self._settings.profile, tenant=self._settings.tenant).replace(
            shelves(active), who=writing.who, why=f"night {writing.run}", when=writing.when
        )
        if challenger is None or self._drift is None or self._gate_report is None:
            return self._promoted("unchanged", self._versions.head())
        settings, head = self._settings, self._versions.head()
        if head is not None and head.number == challenger.base and running(head, self._approvals):
            why = f"version {head.number} is a canary still; the challenger is staged anew when that has ended"
            return self._promoted("unchanged", head, (why,))
        share = settings.canary_share if challenger.base else None
        canary = started(CanaryLimits(share=share), challenger.base) if share else None
        landed = promote(
            self._store, settings.profile, challenger.document, self._drift, self._gate_report, self._approvals,
            writing.who, f"night {writing.run}", writing.when, tenant=settings.tenant, parent=challenger.base,
            epoch=writing.epoch, commit_id=writing.commit_id, canary=canary,
        )  # fmt: skip
        before = self._versions.at(challenger.base).profile if challenger.base else ProfileDocument()
        changes = (*_changes(before, challenger.document), *([landed.why] if landed.why else ()))
        outcome = "canary" if canary and landed.kind == "committed" else _outcome(landed)
        return self._promoted(outcome, landed.version, changes, waiting=int(landed.request is not None))

    def canary(self, writing: Writing) -> Verdict | None:
        """Judge the canary that was under way when the night began, by what sessions have shown since it began."""
        head = self._versions.head()
        canary = running(head, self._approvals) if head else None
        if head is None or canary is None:
            return None
        since = [night for _, night in self._nights.history() if (night.version or 0) >= head.number]
        if len(since) < 2:  # it began tonight
            return Verdict(level="started", ok=True, why=(f"{canary['share']:.0%} of the sessions",))
        arms = (_arm(since[1:], str(number)) for number in (canary["champion"], head.number))
        found = decide(*arms, nights=len(since) - 1)
        settle(
            self._store, self._settings.profile, found, self._approvals, version=head.number, who=writing.who,
            when=writing.when, tenant=self._settings.tenant, epoch=writing.epoch,
        )  # fmt: skip
        level = {"rollback": "rolled_back", "keep": "kept", "extend": "extended"}[found.kind]
        return Verdict(level=level, ok=found.kind != "rollback", why=found.reasons)

    def _promoted(
        self, outcome: Outcome, head: Version | None, changes: tuple[str, ...] = (), waiting: int = 0
    ) -> Promoted:
        number = head.number if head else None
        if outcome in ("promoted", "canary", "unchanged"):
            self._ledger.publish(self._active)
        supports = tuple(self._supports(head))
        return Promoted(
            outcome=outcome, version=number, final=self._final(head), changes=changes, waiting=waiting,
            supports=supports,
        )  # fmt: skip

    def _supports(self, head: Version | None) -> Iterator[Mapping[str, str]]:
        """Keep who stands behind what is in force, and behind what may come into force."""
        known = {one.id: one for one in self._active}
        for record in dict.fromkeys((*(head.profile.meta if head else ()), *self._fitted)):
            support = self._ledger.support(known[record.id]) if record.id in known else None
            if support is not None:
                with suppress(Erased):  # withdrawn meanwhile
                    yield keep_support(self._vault, self._settings.profile, record, support)._asdict()

    def _final(self, head: Version | None) -> str:
        """Address of the text in force, without dates of admission and version numbers."""
        profile = head.profile if head else ProfileDocument(name=self._settings.profile)
        plain = profile.model_dump(mode="json", exclude={"version"})
        plain["meta"] = [{**record, "ts": None} for record in plain["meta"]]
        return address_of(self._key, self._settings.tenant, "text", canonical(plain))


def _arm(nights: Iterable[Night], version: str) -> Arm:
    """What the sessions of one version have shown."""
    total: Counts[str] = Counts()
    for night in nights:
        total.update(night.arms.get(version, {}))
    return Arm(**total)


def _outcome(landed: Promotion) -> Outcome:
    if landed.kind == "blocked":
        return "rejected" if landed.obstacle in ("gate_failed", "rejected") else "held"
    return "promoted" if landed.kind == "committed" else "unchanged"


def _changes(before: ProfileDocument, after: ProfileDocument) -> Iterator[str]:
    """What a challenger changes, a line each, for the report: the slice's records by their words."""
    old, new = ({record.id: record for record in one.meta} for one in (before, after))
    for record in before.meta:
        if record.id not in new:
            yield f"- {record.text}"
    for record in after.meta:
        known = old.get(record.id)
        if known is None or known.text != record.text:
            yield f"{'+' if known is None else '~'} {record.text} [{', '.join(record.sources)}]"
