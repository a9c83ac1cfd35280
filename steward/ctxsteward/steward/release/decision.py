"""The decisions of a night: admission, the slice, the challenger and its checks, promotion, canary.

`Decisions` implements the port `night.run.NightDecisions` with ledger, slice, drift, gate and promotion. Decisions
depend on the ledger, the night's date and the version in force, never on the clock.

Source: the state design (committing governed state).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from ctxsteward.envelope import Store
from ctxsteward.schemas import Erased, InputError, MetaRecommendation
from ctxsteward.schemas.profile import BLOCKS, MetaRecord, ProfileDocument
from ctxsteward.schemas.profile_changes import DriftReport
from ctxsteward.store.crypto.keyring import address_of
from ctxsteward.store.profiles.version_codec import canonical
from ctxsteward.store.profiles.versions import Version

from ..admission import AdmittedRecords
from ..erasure import keep_support
from ..gate.port import EvalGate, GateReport
from ..gate.settings import configured, with_suites
from ..gate.suite import HeldOutRequest
from ..ledger.facade import Ledger
from ..night.chain import NightChain, Outcome, moment_of
from ..night.report import CheckVerdict, NightReport
from ..night.run import CommitContext, FittedSlice, Tell
from ..settings import NightSettings
from .approvals import Approvals
from .assignment import keeping, running, started
from .canary import arms_of, decide, settle
from .promotion import assess, promote
from .record_reviews import judgement_of
from .slice import MetaSliceBuilder

Records = tuple[MetaRecommendation, ...]


def in_force(settings: NightSettings, store: Store, ledger: Ledger) -> Records:
    """Return the records that were active after the last night."""
    newest = NightChain(store, settings.tenant, settings.profile).head()
    if newest is None:
        return ()
    return ledger.judged(judgement_of(store, settings, ledger, moment_of(newest.night))).active


class Decisions:
    """The decisions about one profile, as steps of a night; each step receives the results of the steps before it."""

    def __init__(self, settings: NightSettings, store: Store, ledger: Ledger) -> None:
        self._settings, self._store, self._ledger = settings, store, ledger
        self._slicing = MetaSliceBuilder(settings, store, ledger)
        with_suites(settings.gate, configured(settings.gate))  # refuses wrong settings before anything is read
        self._approvals = Approvals.of(store, settings)
        self._nights = NightChain(store, settings.tenant, settings.profile)
        self._versions = store.profiles(settings.profile, tenant=settings.tenant)
        self._key = store.keys.address_key(settings.tenant)
        self._vault = store.vault(settings.tenant)

    def admit(self, date: str, run: str) -> AdmittedRecords:
        """Judge all records on this date."""
        return self._ledger.judged(judgement_of(self._store, self._settings, self._ledger, moment_of(date), run))

    def fit(self, admitted: AdmittedRecords, writing: CommitContext) -> FittedSlice:
        """Choose shared records for the meta slice within its tokens; records by people are kept and counted first."""
        base, document = self._base(writing)
        asked: dict[str, MetaRecord] = {}
        for request in self._approvals.requests(when=writing.when, head=base):
            if request.state in ("waiting", "approved"):
                with suppress(Erased, InputError):
                    asked |= {record.id: record for record in self._approvals.challenger(request).meta}
        fitted = self._slicing.fitted(admitted.active, admitted.reviews, document.meta, base, admitted.now)
        # A record in an open request keeps the time that it has there, so that the same change is one request.
        known = (asked.get(record.id, record) for record in fitted)
        return tuple(
            old if old == record.model_copy(update={"ts": old.ts}) else record
            for old, record in zip(known, fitted, strict=True)
        )

    def keeps_out(self, id: str) -> bool:
        """Whether a rollback kept this record out of the slice that was fitted last."""
        return id in self._slicing.left_out

    def decide(
        self, admitted: AdmittedRecords, fitted: FittedSlice, writing: CommitContext, tell: Tell = lambda boundary: None
    ) -> NightReport:
        """Stage the slice, check it and commit it, or say what blocks it."""
        challenger = self._challenger(fitted, writing)
        tell("staged")
        drift = None
        if challenger is not None:
            base = writing.base(self._versions.head())
            limits = self._settings.drift
            drift = assess(self._versions, challenger, parent=base, when=writing.when, limits=limits)
        tell("drift")
        gate = self._gate(challenger, drift, admitted) if challenger and drift else None
        tell("gate")
        report = self._promote(challenger, drift, gate, admitted, fitted, writing)
        tell("promoted")
        if drift is None or gate is None:
            return report
        why = tuple(f"{finding.level}: {finding.text}" for finding in drift.findings if finding.level != "INFO")
        checks = {
            "drift": CheckVerdict(level=drift.level, ok=drift.level != "BLOCK", why=why),
            "gate": CheckVerdict(level="passed" if gate.passed else "failed", ok=gate.passed, why=gate.failed),
        }
        return report.model_copy(update=checks)

    def _challenger(self, fitted: FittedSlice, writing: CommitContext) -> ProfileDocument | None:
        """Return the version in force with this slice, or None if it has the slice already."""
        _, before = self._base(writing)
        if before.meta == fitted:
            return None
        fields: dict[str, Any] = {block: getattr(before, block) for block in BLOCKS}
        return ProfileDocument(name=before.name, meta=fitted, **fields)

    def _base(self, writing: CommitContext) -> tuple[int, ProfileDocument]:
        """Return number and document of the version that this run starts from."""
        base = writing.base(self._versions.head())
        return base, self._versions.at(base).profile if base else ProfileDocument(name=self._settings.profile)

    def _gate(self, challenger: ProfileDocument, drift: DriftReport, admitted: AdmittedRecords) -> GateReport:
        """Replay the same frozen cases with champion and challenger."""
        base = drift.champion or 0
        champion = self._versions.at(base).profile if base else None
        return self._frozen(frozenset(drift.touched), admitted)(champion, challenger)

    def _frozen(self, reviewed: frozenset[str], admitted: AdmittedRecords) -> EvalGate:
        """Return the gate that replays the frozen cases and tonight's held-out requests."""
        gate = configured(self._settings.gate, self._held_out(admitted.active))
        return with_suites(self._settings.gate, replace(gate, reviewed=reviewed))

    def _held_out(self, active: Iterable[MetaRecommendation]) -> Iterator[HeldOutRequest]:
        """Yield the requests of evals that failed on enough people, which active records should anticipate."""
        for record in active:
            if record.kind == "eval_failure":
                name = address_of(self._key, self._settings.profile, "held", record.id.encode())
                event = record.text.partition(": ")[2] or record.slot.attribute.replace("_", " ")
                yield HeldOutRequest(id=f"failure-{name[:16]}", event=event)

    def _promote(
        self,
        challenger: ProfileDocument | None,
        drift: DriftReport | None,
        gate: GateReport | None,
        admitted: AdmittedRecords,
        fitted: FittedSlice,
        writing: CommitContext,
    ) -> NightReport:
        """Commit the challenger, or say what blocks it."""
        left_out = tuple(self._why_left_out(admitted))
        if challenger is None or drift is None or gate is None:
            return self._promoted("unchanged", self._versions.head(), admitted, fitted, left_out)
        settings, head, base = self._settings, self._versions.head(), drift.champion or 0
        if head is not None and head.number == base and self._running(head):
            why = f"version {head.number} is still a canary; the next night after its end stages the challenger again"
            return self._promoted("unchanged", head, admitted, fitted, (why,))
        share = settings.canary_share if base else None
        canary = started(share, base) if share else None
        landed = promote(
            self._store,
            settings.profile,
            challenger,
            drift,
            gate,
            self._approvals,
            writing.who,
            f"night {writing.run}",
            writing.when,
            tenant=settings.tenant,
            parent=base,
            epoch=writing.epoch,
            commit_id=writing.commit_id,
            canary=canary,
        )
        before = self._versions.at(base).profile if base else ProfileDocument()
        changes = (*_changes(before, challenger), *left_out, *([landed.why] if landed.why else ()))
        outcome: Outcome = "unchanged"
        if landed.kind == "committed":
            outcome = "canary" if canary else "promoted"
        elif landed.kind == "blocked":
            outcome = "rejected" if landed.obstacle in ("gate_failed", "rejected") else "held"
        waiting = int(landed.request is not None)
        return self._promoted(outcome, landed.version, admitted, fitted, changes, waiting=waiting)

    def canary(self, admitted: AdmittedRecords, writing: CommitContext) -> CheckVerdict | None:
        """Judge the canary that was open when the night began, by its sessions so far."""
        head = self._versions.head()
        canary = self._running(head) if head else None
        if head is None or canary is None:
            return None
        since = [night for night in self._nights.history() if (night.version or 0) >= head.number]
        if len(since) < 2:  # it began tonight
            return CheckVerdict(level="started", ok=True, why=(f"{canary['share']:.0%} of the sessions",))
        champion = int(canary["champion"])
        decision = decide(
            *arms_of(self._store, self._settings, since[1:], (champion, head.number)),
            nights=len(since) - 1,
            failed_guards=self._fallen(champion, head, admitted),
            limits=self._settings.canary,
        )
        settle(
            self._store,
            self._settings.profile,
            decision,
            self._approvals,
            version=head.number,
            who=writing.who,
            when=writing.when,
            tenant=self._settings.tenant,
            epoch=writing.epoch,
        )
        level = {"rollback": "rolled_back", "keep": "kept", "extend": "extended"}[decision.kind]
        left = self._not_moved(head.number, writing.when) if decision.kind == "rollback" else ()
        return CheckVerdict(level=level, ok=decision.kind != "rollback", why=(*decision.reasons, *left))

    def _not_moved(self, version: int, when: str) -> Iterator[str]:
        """Report open sessions that keep a version that was rolled back."""
        now_seconds, settings = datetime.fromisoformat(when).timestamp(), self._settings
        pinned = keeping(self._store, settings.profile, (version,), tenant=settings.tenant, now_seconds=now_seconds)
        if sessions := pinned.sessions:
            yield f"{len(sessions)} open sessions keep version {version}; `steward rollback` names and moves them"

    def _running(self, head: Version) -> Mapping[str, Any] | None:
        return running(self._store, head, profile=self._settings.profile, tenant=self._settings.tenant)

    def _fallen(self, champion: int, head: Version, admitted: AdmittedRecords) -> tuple[str, ...]:
        """Replay tonight's suite with both versions, and return the guards that fell."""
        promotion = next(iter(self._versions.told(head.number))).promotion or {}
        gate = self._frozen(frozenset(promotion.get("touched", ())), admitted)
        return gate(self._versions.at(champion).profile, head.profile).failed

    def _why_left_out(self, admitted: AdmittedRecords) -> Iterator[str]:
        """Yield lines of the report about records that a rollback or a rule keeps out of the slice."""
        yield from self._slicing.why_left_out()
        if aside := admitted.statuses.get("quarantined", 0):
            what = "record contradicts a rule and is" if aside == 1 else "records contradict a rule and are"
            yield f"{aside} {what} set aside: `ctxsteward steward quarantine` names each, and the rule"

    def _promoted(
        self,
        outcome: Outcome,
        head: Version | None,
        admitted: AdmittedRecords,
        fitted: FittedSlice,
        changes: tuple[str, ...] = (),
        waiting: int = 0,
    ) -> NightReport:
        return NightReport(
            tenant=self._settings.tenant,
            profile=self._settings.profile,
            night=admitted.now[:10],
            outcome=outcome,
            version=head.number if head else None,
            final=self._final(head),
            changes=changes,
            waiting=waiting,
            supports=tuple(self._supports(head, admitted, fitted)),
        )

    def _supports(
        self, head: Version | None, admitted: AdmittedRecords, fitted: FittedSlice
    ) -> Iterator[Mapping[str, str]]:
        """Store the supports of the records in force, and of those in the challenger."""
        known = {record.id: record for record in admitted.active}
        for record in dict.fromkeys((*(head.profile.meta if head else ()), *fitted)):
            support = self._ledger.support(known[record.id], self._settings.admission) if record.id in known else None
            if support is not None:
                with suppress(Erased):  # withdrawn meanwhile
                    yield keep_support(self._vault, self._settings.profile, record, support)._asdict()

    def _final(self, head: Version | None) -> str:
        """Return the address of the text in force, without dates of admission and version numbers."""
        profile = head.profile if head else ProfileDocument(name=self._settings.profile)
        plain = profile.model_dump(mode="json", exclude={"version"})
        plain["meta"] = [{**record, "ts": None} for record in plain["meta"]]
        return address_of(self._key, self._settings.tenant, "text", canonical(plain))


def _changes(before: ProfileDocument, after: ProfileDocument) -> Iterator[str]:
    """Yield a line of the report for each record that a challenger adds, changes or removes."""
    old, new = ({record.id: record for record in document.meta} for document in (before, after))
    for record in before.meta:
        if record.id not in new:
            yield f"- {record.text}"
    for record in after.meta:
        known = old.get(record.id)
        if known is None or known.text != record.text:
            yield f"{'+' if known is None else '~'} {record.text} [{', '.join(record.sources)}]"
