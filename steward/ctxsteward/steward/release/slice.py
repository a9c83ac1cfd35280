"""The meta slice: which active records are worth their tokens, the most valuable first.

`Decisions.fit` calls `MetaSliceBuilder`, which calls `fit`.

    value = worth x P(it fires) x P(it is obeyed, where it fired)
    worth = effect x lower end of the confidence x log2(1 + independent principals) x decay

The effect is the weight of the kind, set by hand, as long as no outcome gainsays it (`effect`). A record of a tool
error has outcomes: how runs ended that did what it says, beside those that did otherwise about the same error. Of other
records nobody counts how runs without them end.

A knapsack on that value over what each line costs, labels counted in, up to `high_tokens` of the text that a prompt
shows. The slice is shared, so only records for everybody come in, of kinds with a `slice_weight`: a slice that no
question has picked cannot hold facts (the best choice of 180 tokens knows 7 % of what will be asked). Both shares are
means over the sessions that were shown the record, under Beta priors: one that was never shown fires in half of them
and is obeyed in two of three; sessions in which that cannot be told do not count.

A newcomer takes an incumbent's place only where it is worth `MARGIN` more, and a slice that would say the same keeps
its order, so that the prefix that providers cache does not churn. Else it stands in order of value: a head with less
room leaves out the last ones. Up to `low_tokens` whatever is worth anything comes in; beyond that, no padding.

`fit` is pure and deterministic, and costs candidates x high_tokens. `MetaSliceBuilder` is the slice of a night: lines
that people wrote stay and take their room, and what a rollback took back or a rule contradicts stays out.

Source: 0/1 knapsack by dynamic programming (Bellman 1957); Wilson 1927 (the lower end of the confidence); the mean of
a Beta posterior (Laplace 1774); Newcombe 1998, method 10 (the interval of a difference of shares).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import NamedTuple
from urllib.parse import quote

from ctxsteward.envelope import Counter, Store, load_tokenizer
from ctxsteward.envelope.tokens.tokenizer import DEFAULT_TOKENIZER, FRAME_TOKENS
from ctxsteward.schemas import InputError, MetaRecommendation
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument, instant, is_claim_id
from ctxsteward.schemas.recommendation import Review
from ctxsteward.store.profiles.text import META_LABELS, line_writer, meta_text
from ctxsteward.store.profiles.version_codec import record_subject

from ..admission import worth
from ..drift.rules import Rule, against, restates, rules_of
from ..harvest.batches import BatchRecords
from ..harvest.usage import RecordUse
from ..ledger.facade import Ledger
from ..ledger.judgement import TriedFix
from ..observations.observation import KINDS
from ..reconcile.draft import wilson_lower95
from ..settings import NightSettings
from .rollbacks import taken_back

LOW_TOKENS, HIGH_TOKENS, BUDGET_TOKENS = 120, 144, 180
"""The slice is written to 120-144: under its trigger, 0.8 of its budget of 180."""

WEIGHTS = {kind: spec.slice_weight for kind, spec in KINDS.items() if spec.slice_weight is not None}
"""What a record is worth where it applies; kinds that are not here never come in."""

EFFECT_OF_WEIGHT = 0.25
"""What a weight of 1 stands for: by how much the share of runs that succeed is larger where a record is obeyed."""
MARGIN = 0.2
"""Share by which a newcomer must be worth more than the incumbent it displaces."""
PADDING = 0.25
"""Beyond `low_tokens`, a newcomer worth less than this share of the slice's mean value per token stays out."""
MAX_SOURCES = 2
"""Pointers rendered with a record: the claim itself, and the newest other span."""
MAX_CANDIDATES = 400
"""The best by value per token; more are not looked at."""

_UNUSABLE = re.compile(r"[\s,\[\]%]")


def mean_share(yes: int, whole: int, prior: tuple[int, int]) -> float:
    """Mean of the posterior after `yes` of `whole`, under a Beta prior: so many seen of each before."""
    return (yes + prior[0]) / (whole + sum(prior))


FIRES, OBEYED = (1, 1), (2, 1)


class RunEnds(NamedTuple):
    """Runs whose end is known."""

    succeeded: int = 0
    failed: int = 0

    @property
    def lower95(self) -> float:
        """Of the share that succeeds, shrunk by a Beta(1, 1) prior: as if one run more had ended each way."""
        return wilson_lower95(self.succeeded + 1, self.failed + 1)

    @property
    def upper95(self) -> float:
        return 1 - wilson_lower95(self.failed + 1, self.succeeded + 1)

    @property
    def share(self) -> float:
        return (self.succeeded + 1) / (self.succeeded + self.failed + 2)


class AdviceOutcomes(NamedTuple):
    """How runs ended that met what a record is about."""

    followed: RunEnds = RunEnds()
    otherwise: RunEnds = RunEnds()

    @classmethod
    def of(cls, action: str | None, tried: Iterable[TriedFix]) -> AdviceOutcomes:
        """Of the record that says to do this, out of all that was tried."""
        ends = {True: RunEnds(), False: RunEnds()}
        for each in tried:
            before = ends[each.action == action]
            ends[each.action == action] = RunEnds(before.succeeded + each.succeeded, before.failed + each.failed)
        return cls(ends[True], ends[False])


def effect(weight: float, outcomes: AdviceOutcomes | None) -> float:
    """What a record does where it is obeyed, in units of `WEIGHTS`: its weight, or what was measured instead.

    The weight is a guess at how much larger the share of successes is where the record is followed. It stands as long
    as it lies within the 95 % interval of what was measured; else the end of the interval that is next to it does, the
    lower one where the record does better than the guess. Never below 0, and never lower for one success more.

    >>> effect(0.9, None), effect(0.9, AdviceOutcomes(RunEnds(1, 9), RunEnds(9, 1)))
    (0.9, 0.0)
    """
    if outcomes is None:
        return weight
    one, other = outcomes
    difference = one.share - other.share
    low = difference - math.hypot(one.share - one.lower95, other.upper95 - other.share)
    high = difference + math.hypot(one.upper95 - one.share, other.share - other.lower95)
    return max(0.0, min(max(weight, low / EFFECT_OF_WEIGHT), high / EFFECT_OF_WEIGHT))


class _SliceCandidate(NamedTuple):
    record: MetaRecord
    value: float
    tokens: int
    is_incumbent: bool


def fit(
    records: Sequence[MetaRecommendation],
    counter: Counter,
    low_tokens: int = LOW_TOKENS,
    high_tokens: int = HIGH_TOKENS,
    budget_tokens: int = BUDGET_TOKENS,
    *,
    agent: str | None = None,
    incumbents: Sequence[MetaRecord] = (),
    by_people: Sequence[MetaRecord] = (),
    use: Mapping[str, RecordUse] | None = None,
    outcomes: Mapping[str, AdviceOutcomes] | None = None,
    now: str | None = None,
    is_withdrawn: Callable[[MetaRecord], bool] = lambda record: False,
) -> tuple[MetaRecord, ...]:
    """The records of the slice, in the order in which they render.

    `agent`: the profile's name; records of another agent stay out (None: they come in). `incumbents` is the slice in
    force, `by_people` what stands before it and takes its room, `use` what became of records by id, `outcomes` how runs
    ended that did or did not do what they say, `now` an ISO 8601 time (None: nothing decays). What `is_withdrawn` under
    some pointers, because too few stood behind it then, comes in under others. Raises `InputError`.
    """
    if not 0 <= low_tokens <= high_tokens <= budget_tokens:
        found = f"{low_tokens} to {high_tokens} tokens of {budget_tokens}"
        raise InputError(f"meta slice: {found}; give low_tokens <= high_tokens <= budget_tokens")
    known = {record.id: record for record in incumbents}
    moment = None if now is None else instant(now)

    def valued(one: MetaRecommendation) -> float:
        return value(one, (use or {}).get(one.id), moment, (outcomes or {}).get(one.id))

    worth: dict[MetaRecord, float] = {}
    for one in _single(usable(records, agent), valued):
        record = next((each for each in _shown(one, known.get(one.id)) if not is_withdrawn(each)), None)
        if record is not None:
            worth[record] = valued(one)
    line = line_writer([*by_people, *worth])
    tokens = {record: counter.text(line(record) + "\n") for record in (*by_people, *worth)}
    candidates = [
        _SliceCandidate(record, worth[record], tokens[record], record.id in known)
        for record in worth
        if worth[record] > 0 and tokens[record] <= high_tokens
    ]
    candidates.sort(key=lambda each: (-_lifted(each) / each.tokens, each.record.id))
    room = max(0, high_tokens - FRAME_TOKENS - sum(tokens[record] for record in by_people))
    chosen = _chosen(candidates[:MAX_CANDIDATES], counter, room)

    def measured(kept: Iterable[_SliceCandidate]) -> int:
        return slice_tokens((*by_people, *_laid(kept, incumbents)), counter)

    return _laid(_trimmed(chosen, measured, low_tokens, high_tokens), incumbents)


def slice_tokens(records: Sequence[MetaRecord], counter: Counter) -> int:
    """Tokens of the section as the head counts it, labels and frame included."""
    text = meta_text(ProfileDocument(meta=tuple(records)), line_writer(records))
    return counter.text(text + "\n") + FRAME_TOKENS if text else 0


def fits_slice(records: Sequence[MetaRecord]) -> bool:
    """Whether these records are no more than what a night would place."""
    return slice_tokens(records, line_counter()) <= HIGH_TOKENS


def usable(records: Iterable[MetaRecommendation], agent: str | None = None) -> list[MetaRecommendation]:
    """Records that may stand in a slice that everybody is shown."""
    active = [one for one in records if one.status == "active"]
    ids = {one.id for one in active}
    return [one for one in active if _is_usable(one, agent, ids)]


def line_counter() -> Counter:
    """What counts the lines of a slice."""
    return Counter(load_tokenizer(DEFAULT_TOKENIZER))


def line_of(record: MetaRecommendation) -> str:
    """The line that a record would be in a prompt."""
    shown = next(_shown(record, None))
    return line_writer([shown])(shown)


def value(
    one: MetaRecommendation, use: RecordUse | None, now_seconds: float | None, outcomes: AdviceOutcomes | None = None
) -> float:
    """What a record is expected to be worth in a session."""
    said = math.log2(1 + max(1, one.support.principals))
    sure = 1.0 if _is_approved(one) else one.confidence.lower95
    used = use or RecordUse()
    fires = mean_share(used.fired, used.judged, FIRES)
    obeyed = mean_share(used.complied, used.complied + used.contradicted, OBEYED)
    fresh = worth(instant(one.support.last or one.validity.recorded_at), now_seconds, one.validity.half_life_days)
    return effect(WEIGHTS.get(one.kind, 0.0), outcomes) * sure * said * fresh * fires * obeyed


def _is_usable(one: MetaRecommendation, agent: str | None, active: set[str]) -> bool:
    approved = _is_approved(one)
    return (
        one.kind in WEIGHTS
        and one.scope.is_shared
        and (agent is None or one.scope.agent == agent)
        and (approved or KINDS[one.kind].gate != "person")
        and (approved or one.sensitivity == "none")
        and one.superseded_by is None
        and active.isdisjoint(one.conflicts)  # of two that say the opposite, none speaks to everybody
    )


def _is_approved(one: MetaRecommendation) -> bool:
    return one.review is not None and one.review.state == "approved"


def _single(
    records: Sequence[MetaRecommendation], valued: Callable[[MetaRecommendation], float]
) -> list[MetaRecommendation]:
    """Each id once; of records that claim a slot with room for one, only the most valuable."""
    best: dict[tuple[str, ...], MetaRecommendation] = {}
    for one in sorted(records, key=lambda one: (-valued(one), one.id)):
        slot = one.slot
        alone = slot.cardinality == "one"
        best.setdefault((slot.subject, slot.attribute, one.scope.tool or "") if alone else (one.id,), one)
    return list(best.values())


# -- from a recommendation to a line ---------------------------------------------------------------------------


def _shown(one: MetaRecommendation, incumbent: MetaRecord | None) -> Iterator[MetaRecord]:
    """The record as the head may show it, best first; an incumbent that says the same keeps its bytes."""
    approved = _is_approved(one)
    pointers = pointers_of(one)
    if (
        incumbent is not None
        and (incumbent.text, incumbent.approved) == (one.text, approved)
        and set(incumbent.sources) <= set(pointers)
    ):
        yield incumbent
    newest = pointers[:1] + pointers[1:][-(MAX_SOURCES - 1) :]
    for sources in dict.fromkeys((newest, *permutations(pointers, len(newest)))):
        yield MetaRecord(id=one.id, text=one.text, sources=sources, approved=approved, ts=one.validity.recorded_at)


def pointers_of(record: MetaRecommendation) -> tuple[str, ...]:
    """What a record's evidence is in, each message once."""
    return tuple(dict.fromkeys(_pointer(each.session, each.ref) for each in record.evidence))


def _pointer(session: str, ref: str) -> str:
    """``session§ref``; what a pointer cannot hold is percent-encoded."""
    name = _UNUSABLE.sub(lambda match: quote(match.group(), safe=""), session)
    return f"{name[-(160 - len(ref)) :]}{ref}"


# -- choosing --------------------------------------------------------------------------------------------------


def _lifted(candidate: _SliceCandidate) -> float:
    return candidate.value * (1 + MARGIN if candidate.is_incumbent else 1)


def _chosen(candidates: Sequence[_SliceCandidate], counter: Counter, high_tokens: int) -> list[_SliceCandidate]:
    """The most valuable set that fits, labels counted: the best of approved and of other records, room shared out."""
    groups = [[one for one in candidates if one.record.approved is approved] for approved in (True, False)]
    labels = [counter.text(label + "\n") for label in META_LABELS]
    best = [_knapsack(group, max(0, high_tokens - label)) for group, label in zip(groups, labels, strict=True)]
    top: tuple[float, tuple[_SliceCandidate, ...]] = (0.0, ())
    for room in range(high_tokens + 1):
        halves = [_at(best[0], room - labels[0]), _at(best[1], high_tokens - room - labels[1])]
        worth = halves[0][0] + halves[1][0]
        if worth > top[0] + 1e-12:
            top = (worth, (*halves[0][1], *halves[1][1]))
    return list(top[1])


Filled = list[tuple[float, tuple[_SliceCandidate, ...]]]
"""By room in tokens: the most value, and whose it is."""


def _at(best: Filled, room: int) -> tuple[float, tuple[_SliceCandidate, ...]]:
    return best[min(room, len(best) - 1)] if room >= 0 else (0.0, ())


def _knapsack(candidates: Sequence[_SliceCandidate], room: int) -> Filled:
    best: Filled = [(0.0, ())] * (room + 1)
    for one in candidates:
        for left in range(room, one.tokens - 1, -1):
            worth = best[left - one.tokens][0] + _lifted(one)
            if worth > best[left][0] + 1e-12:
                best[left] = (worth, (*best[left - one.tokens][1], one))
    return best


def _trimmed(
    chosen: list[_SliceCandidate],
    measured: Callable[[Iterable[_SliceCandidate]], int],
    low_tokens: int,
    high_tokens: int,
) -> list[_SliceCandidate]:
    """Without padding beyond `low_tokens`, and without what joined lines cost more than lines alone."""
    kept = sorted(chosen, key=lambda one: (_lifted(one) / one.tokens, one.record.id), reverse=True)
    while kept and measured(kept) > high_tokens:
        kept.pop()
    mean = sum(one.value for one in kept) / max(1, sum(one.tokens for one in kept))
    while kept and not kept[-1].is_incumbent and kept[-1].value / kept[-1].tokens < PADDING * mean:
        if measured(kept) - kept[-1].tokens < low_tokens:
            break
        kept.pop()
    return kept


def _laid(chosen: Iterable[_SliceCandidate], incumbents: Sequence[MetaRecord]) -> tuple[MetaRecord, ...]:
    """The most valuable first; the incumbents as they stood, where it is they and nothing else."""
    records = tuple(one.record for one in sorted(chosen, key=lambda one: (-one.value, one.record.id)))
    return tuple(incumbents) if set(records) == set(incumbents) else records


class MetaSliceBuilder:
    """One profile's slice."""

    def __init__(self, settings: NightSettings, store: Store, ledger: Ledger) -> None:
        self._settings, self._store, self._ledger = settings, store, ledger
        self._versions = store.profiles(settings.profile, tenant=settings.tenant)
        self._vault = store.vault(settings.tenant)
        self.counter: Counter = line_counter()
        self._taken = taken_back(store, self._versions, 0)
        self._reviews: Mapping[str, Review] = {}
        self._rules: tuple[Rule, ...] = ()
        self.left_out: dict[str, None] = {}
        """Ids of records that a rollback kept out of what was fitted last."""
        self.set_aside: dict[str, str] = {}
        """Ids of records that were kept out because their words gainsay a rule, with its key."""

    def fitted(
        self,
        active: Sequence[MetaRecommendation],
        reviews: Mapping[str, Review],
        before: Sequence[MetaRecord],
        base: int,
        now: str,
    ) -> tuple[MetaRecord, ...]:
        """The slice that follows `before`, which is that of version `base`."""
        self._taken, self._reviews, self.left_out = taken_back(self._store, self._versions, base), reviews, {}
        self._rules, self.set_aside = rules_of(self._versions.at(base).profile if base else None), {}
        by_people = tuple(record for record in before if not is_claim_id(record.id))
        shared = [record for record in active if record.scope.is_shared and not self._must_wait(record)]
        return (*by_people, *self._chosen(shared, before, now))

    def _must_wait(self, record: MetaRecommendation) -> bool:
        """Whether a line was locked since the record was judged, so that a person has to see the record first."""
        if KINDS[record.kind].is_template or (record.review is not None and record.review.state == "approved"):
            return False
        if record.slot.attribute in self._settings.admission.unrelated_slots:
            return False  # judged so (`admission.under_rules`), whichever lines are locked
        locked = [rule.text for rule in self._rules if rule.locked]
        return bool(locked) and not any(restates(line, record.text) for line in locked)

    def why_left_out(self) -> Iterator[str]:
        """Lines of the report about records that a rollback or a rule kept out; a person may bring them back."""
        if self.left_out:
            ids = ", ".join(sorted(self.left_out))
            yield f"a rollback took back {ids}; a person may approve it anew: `ctxsteward steward review ID --approve`"
        for id_, key in sorted(self.set_aside.items()):
            yield f"set aside {id_}: it gainsays {key}; `ctxsteward steward quarantine` shows it"

    def _chosen(
        self, shared: Sequence[MetaRecommendation], before: Sequence[MetaRecord], now: str
    ) -> tuple[MetaRecord, ...]:
        by_people = [record for record in before if not is_claim_id(record.id)]
        incumbents = [record for record in before if is_claim_id(record.id)] if self._settings.keep_places else []
        return fit(
            shared,
            self.counter,
            agent=self._settings.profile,
            incumbents=incumbents,
            by_people=by_people,
            now=now,
            use=self._use(),
            outcomes=self._outcomes(shared),
            is_withdrawn=self.is_out,
        )

    def _outcomes(self, records: Iterable[MetaRecommendation]) -> Mapping[str, AdviceOutcomes]:
        """Of what was tried about tool errors."""
        fixes = {one.id: one for one in records if KINDS[one.kind].gate == "fix"}
        bases = ((one, self._ledger.basis(id)) for id, one in fixes.items())
        return {one.id: AdviceOutcomes.of(one.action, basis.tried) for one, basis in bases if basis is not None}

    def _use(self) -> Mapping[str, RecordUse]:
        """What use each record was, over all finished batches, without sessions of people who were forgotten."""
        settings = self._settings
        batches = BatchRecords(self._store, settings.tenant, settings.profile, extractor="")
        self._ledger.uses.catch_up(batches.addresses(), batches.read, frozenset(self._vault.erased()))
        return self._ledger.uses.of_records()

    def is_out(self, record: MetaRecord) -> bool:
        """Whether a record was withdrawn, or taken back by a rollback that no person has answered since."""
        review = self._reviews.get(record.id)
        if self._taken.keeps_out(record, review.when if review is not None and record.approved else None):
            self.left_out[record.id] = None
            return True
        conflict = None if record.approved else against(self._rules, record.text)
        if conflict is not None:  # a rule that is newer than the night
            self.set_aside[record.id] = conflict.key
            return True
        subject = record_subject(self._settings.profile, record)
        return self._vault.tombstone(self._vault.subject_address(subject)) is not None
