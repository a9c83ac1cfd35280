"""The slice of a night: which lines, in whose words, without what a rollback took back.

Lines that people wrote into the slice stay, and take their room. What a record was worth in the sessions that were
shown it is asked of the ledger. A writer words only what is placed: the slice is fitted, what is new in it is worded,
and it is fitted again, until nothing is new; what was worded before keeps its words while they hold. What a person has
approved stands in the words that were approved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ctxsteward.envelope.counting import Counter
from ctxsteward.envelope.profile import record_line
from ctxsteward.envelope.slices import record_subject
from ctxsteward.envelope.store import DEFAULT_TOKENIZER, Store
from ctxsteward.envelope.tokens import load_tokenizer
from ctxsteward.schemas.profile import MetaRecord
from ctxsteward.schemas.recommendation import MetaRecommendation, Review

from .batches import BatchRecords
from .drift.rules import Rule, against, rules_of
from .fitting import HIGH_TOKENS, LOW_TOKENS, fit, slice_tokens
from .harvest.writer import Writer, worded
from .hits import Hit
from .ledger import Ledger
from .reconcile import is_claim_id
from .settings import NightSettings
from .stages import Fitted
from .taken_back import taken_back

Shared = Mapping[str, MetaRecommendation]
"""Records that may be placed, by id."""


class Slicing:
    """One profile's slice."""

    def __init__(self, settings: NightSettings, store: Store, ledger: Ledger, writer: Writer | None) -> None:
        self._settings, self._store, self._ledger, self._writer = settings, store, ledger, writer
        self._versions = store.profiles(settings.profile, tenant=settings.tenant)
        self._vault = store.vault(settings.tenant)
        self.counter = Counter(load_tokenizer(DEFAULT_TOKENIZER))
        self._taken = taken_back(store, self._versions, 0)
        self._reviews: Mapping[str, Review] = {}
        self._rules: tuple[Rule, ...] = ()
        self.left_out: dict[str, None] = {}
        """Ids of records that a rollback kept out of what was fitted last."""
        self.set_aside: dict[str, str] = {}
        """Ids of records that were kept out because their words gainsay a rule, with its key."""

    def fitted(
        self, active: Sequence[MetaRecommendation], reviews: Mapping[str, Review], before: Sequence[MetaRecord],
        base: int, now: str,
    ) -> Fitted:  # fmt: skip
        """The slice after `before`, which version `base` says."""
        self._taken, self._reviews, self.left_out = taken_back(self._store, self._versions, base), reviews, {}
        self._rules, self.set_aside = rules_of(self._versions.at(base).profile if base else None), {}
        by_people = tuple(record for record in before if not is_claim_id(record.id))
        chosen = self._worded({record.id: record for record in active if record.scope.is_shared}, before, now)
        records = (*by_people, *chosen)
        return Fitted(records=records, tokens=slice_tokens(records, self.counter))

    def why_left_out(self) -> Iterator[str]:
        """What a person may bring back, for the report."""
        if self.left_out:
            ids = ", ".join(sorted(self.left_out))
            yield f"a rollback took back {ids}; a person may approve it anew: `ctxsteward steward review ID --approve`"
        for id_, key in sorted(self.set_aside.items()):
            yield f"set aside {id_}: it gainsays {key}; `ctxsteward steward quarantine` shows it"

    # -- in whose words -----------------------------------------------------------------------------------------

    def _worded(self, shared: Shared, before: Sequence[MetaRecord], now: str) -> tuple[MetaRecord, ...]:
        """What is placed, in the writer's words where there is a writer."""
        use, made = self._use(), dict(shared)
        told = {one.id: one.text for one in before if one.id in shared and one.text != shared[one.id].text}
        done: set[str] = set()
        if self._writer is not None:
            made |= {id_: self._reworded(shared[id_], lambda group, text=text: text) for id_, text in told.items()}  # type: ignore[misc]
            done = {id_ for id_ in told if made[id_].text == told[id_]}
        while True:
            chosen = self._chosen(list(made.values()), before, use, now)
            fresh = [one.id for one in chosen if one.id not in done]
            if self._writer is None or not fresh:
                return chosen
            made |= {id_: self._reworded(shared[id_], self._writer) for id_ in fresh}
            done.update(fresh)

    def _reworded(self, record: MetaRecommendation, writer: Writer) -> MetaRecommendation:
        if record.review is not None and record.review.state == "approved":
            return record
        return worded(record, [quote.text for quote in self._ledger.why(record.id) if quote.text is not None], writer)

    # -- which lines --------------------------------------------------------------------------------------------

    def _chosen(
        self, shared: Sequence[MetaRecommendation], before: Sequence[MetaRecord], use: Mapping[str, Hit], now: str
    ) -> tuple[MetaRecord, ...]:
        by_people = [record for record in before if not is_claim_id(record.id)]
        incumbents = [record for record in before if is_claim_id(record.id)] if self._settings.keep_places else []
        taken_tokens = sum(self.counter.text(record_line(record) + "\n") for record in by_people)
        return fit(
            shared, self.counter, max(0, LOW_TOKENS - taken_tokens), max(0, HIGH_TOKENS - taken_tokens),
            agent=self._settings.profile, incumbents=incumbents, now=now, use=use,
            is_withdrawn=self._is_out,
        )  # fmt: skip

    def _use(self) -> Mapping[str, Hit]:
        """What use each record was, over all batches that were ever finished, without whoever was forgotten."""
        settings = self._settings
        batches = BatchRecords(self._store, settings.tenant, settings.profile, extractor="")
        self._ledger.uses.catch_up(batches, frozenset(self._vault.buried()))
        return self._ledger.uses.of_records()

    def _is_out(self, record: MetaRecord) -> bool:
        """Whether a record was withdrawn, or taken back by a rollback that no person has answered since."""
        review = self._reviews.get(record.id)
        if self._taken.keeps_out(record, review.when if review is not None and record.approved else None):
            self.left_out[record.id] = None
            return True
        found = None if record.approved else against(self._rules, record.text)
        if found is not None and found.how == "gainsays":  # in a writer's words, or a rule that is newer than the night
            self.set_aside[record.id] = found.rule.key
            return True
        subject = record_subject(self._settings.profile, record)
        return self._vault.tombstone(self._vault.subject_address(subject)) is not None
