"""The meta slice: choose the active records that are worth their tokens, the most valuable first.

`Decisions.fit` calls `MetaSliceBuilder`, which calls `fit`.

    value = worth x P(it fires) x P(it is obeyed, if it fired)
    worth = effect x lower end of the confidence x log2(1 + independent principals) x decay

The effect is the weight of the kind, set by hand, unless outcomes contradict it (`effect`). Only a record of a tool
error has outcomes: the ends of runs that followed it, and of runs that did something else after the same error.

A 0/1 knapsack maximizes the value within `high_tokens` of prompt text, labels included. The slice is shared, so it
takes only records for everybody, of kinds with a `slice_weight`. It takes no facts, because a slice that is the same
for every question cannot hold enough of them (the best choice of 180 tokens answers 7 % of the questions). Both
probabilities are means over the sessions that were shown the record, under Beta priors: a record that was never shown
fires with 1/2 and is obeyed with 2/3. Sessions that cannot be judged do not count.

A newcomer replaces an incumbent only if it is worth `MARGIN` more, and a slice of the same records keeps its order, so
that the prefix that providers cache stays the same. Otherwise lines are in order of value, because a head with less
room leaves out the last ones. Up to `low_tokens` every record with a value over 0 comes in; beyond that, no padding.

`fit` is pure and deterministic; its time grows with candidates x high_tokens. `MetaSliceBuilder` makes the slice of a
night: lines that people wrote stay and take their room, and records that a rollback took back or a rule contradicts
stay out.

Source: 0/1 knapsack by dynamic programming (Bellman 1957); Wilson 1927 (lower end of an interval); mean of a Beta
posterior (Laplace 1774); Newcombe 1998, method 10 (interval of a difference of shares).
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
"""A slice has 120-144 tokens: compaction triggers at 0.8 of its budget of 180."""

WEIGHTS = {kind: spec.slice_weight for kind, spec in KINDS.items() if spec.slice_weight is not None}
"""Effect of an obeyed record by kind; kinds that are missing never come in."""

EFFECT_OF_WEIGHT = 0.25
"""Gain in the share of successful runs that a weight of 1 stands for."""
MARGIN = 0.2
"""Share by which a newcomer must be worth more than the incumbent that it replaces."""
PADDING = 0.25
"""Beyond `low_tokens`, a newcomer worth less than this share of the slice's mean value per token stays out."""
MAX_SOURCES = 2
"""Pointers rendered with a record: the claim itself, and the newest other span."""
MAX_CANDIDATES = 400
"""Candidates for the knapsack, the best by value per token."""

_UNUSABLE = re.compile(r"[\s,\[\]%]")


def mean_share(yes: int, whole: int, prior: tuple[int, int]) -> float:
    """Return the mean of the Beta posterior of `yes` in `whole`; `prior` has the pseudo-counts of yes and no."""
    return (yes + prior[0]) / (whole + sum(prior))


FIRES, OBEYED = (1, 1), (2, 1)
"""Pseudo-counts of the priors."""


class RunEnds(NamedTuple):
    """Numbers of runs with a known end."""

    succeeded: int = 0
    failed: int = 0

    @property
    def lower95(self) -> float:
        """Lower end of the interval of the success share, under a Beta(1, 1) prior: one more run of each end."""
        return wilson_lower95(self.succeeded + 1, self.failed + 1)

    @property
    def upper95(self) -> float:
        return 1 - wilson_lower95(self.failed + 1, self.succeeded + 1)

    @property
    def share(self) -> float:
        return (self.succeeded + 1) / (self.succeeded + self.failed + 2)


class AdviceOutcomes(NamedTuple):
    """Ends of runs that met a record's error, by whether they followed the record."""

    followed: RunEnds = RunEnds()
    otherwise: RunEnds = RunEnds()

    @classmethod
    def of(cls, action: str | None, tried: Iterable[TriedFix]) -> AdviceOutcomes:
        """Sum up the tried fixes by whether they did this action."""
        ends = {True: RunEnds(), False: RunEnds()}
        for each in tried:
            before = ends[each.action == action]
            ends[each.action == action] = RunEnds(before.succeeded + each.succeeded, before.failed + each.failed)
        return cls(ends[True], ends[False])


def effect(weight: float, outcomes: AdviceOutcomes | None) -> float:
    """Return the effect of an obeyed record in units of `WEIGHTS`: its weight, corrected by measured outcomes.

    The weight is a guess at the gain in the share of successes. It is clipped to the 95 % interval of the measured
    gain, and never below 0. One more success never lowers the effect.

    >>> effect(0.9, None), effect(0.9, AdviceOutcomes(RunEnds(1, 9), RunEnds(9, 1)))
    (0.9, 0.0)
    """
    if outcomes is None:
        return weight
    followed, otherwise = outcomes
    difference = followed.share - otherwise.share
    low = difference - math.hypot(followed.share - followed.lower95, otherwise.upper95 - otherwise.share)
    high = difference + math.hypot(followed.upper95 - followed.share, otherwise.share - otherwise.lower95)
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
    """Return the records of the slice, in the order in which they render; raises `InputError`.

    Args:
        agent: the profile's name; records of other agents stay out (None: they come in).
        incumbents: the slice in force.
        by_people: lines that people wrote, which come first and take their room.
        use: use of records by id.
        outcomes: ends of runs that followed a record or not, by id.
        now: ISO 8601 time (None: nothing decays).
        is_withdrawn: whether a record with these pointers was withdrawn; then it comes in with other pointers.
    """
    if not 0 <= low_tokens <= high_tokens <= budget_tokens:
        found = f"{low_tokens} to {high_tokens} tokens of {budget_tokens}"
        raise InputError(f"meta slice: {found}; give low_tokens <= high_tokens <= budget_tokens")
    in_force = {line.id: line for line in incumbents}
    now_seconds = None if now is None else instant(now)

    def valued(record: MetaRecommendation) -> float:
        return value(record, (use or {}).get(record.id), now_seconds, (outcomes or {}).get(record.id))

    values: dict[MetaRecord, float] = {}
    for record in _single(usable(records, agent), valued):
        form = next((form for form in _forms(record, in_force.get(record.id)) if not is_withdrawn(form)), None)
        if form is not None:
            values[form] = valued(record)
    write = line_writer([*by_people, *values])
    tokens = {line: counter.text(write(line) + "\n") for line in (*by_people, *values)}
    candidates = [
        _SliceCandidate(line, values[line], tokens[line], line.id in in_force)
        for line in values
        if values[line] > 0 and tokens[line] <= high_tokens
    ]
    candidates.sort(key=lambda each: (-_lifted(each) / each.tokens, each.record.id))
    room = max(0, high_tokens - FRAME_TOKENS - sum(tokens[line] for line in by_people))
    chosen = _chosen(candidates[:MAX_CANDIDATES], counter, room)

    def measure(candidates: Iterable[_SliceCandidate]) -> int:
        return slice_tokens((*by_people, *_ordered(candidates, incumbents)), counter)

    return _ordered(_trimmed(chosen, measure, low_tokens, high_tokens), incumbents)


def slice_tokens(records: Sequence[MetaRecord], counter: Counter) -> int:
    """Count the tokens of the section as the head does, labels and frame included."""
    text = meta_text(ProfileDocument(meta=tuple(records)), line_writer(records))
    return counter.text(text + "\n") + FRAME_TOKENS if text else 0


def fits_slice(records: Sequence[MetaRecord]) -> bool:
    """Whether records fit into the tokens of a night's slice."""
    return slice_tokens(records, line_counter()) <= HIGH_TOKENS


def usable(records: Iterable[MetaRecommendation], agent: str | None = None) -> list[MetaRecommendation]:
    """Return the records that may enter a slice for everybody."""
    active = [record for record in records if record.status == "active"]
    ids = {record.id for record in active}
    return [record for record in active if _is_usable(record, agent, ids)]


def line_counter() -> Counter:
    """Return the counter of a slice's tokens."""
    return Counter(load_tokenizer(DEFAULT_TOKENIZER))


def line_of(record: MetaRecommendation) -> str:
    """Return a record's line in a prompt."""
    form = next(_forms(record, None))
    return line_writer([form])(form)


def value(
    record: MetaRecommendation, use: RecordUse | None, now_seconds: float | None, outcomes: AdviceOutcomes | None = None
) -> float:
    """Return a record's expected value in a session."""
    support = math.log2(1 + max(1, record.support.principals))
    confidence = 1.0 if _is_approved(record) else record.confidence.lower95
    used = use or RecordUse()
    fires = mean_share(used.fired, used.judged, FIRES)
    obeyed = mean_share(used.complied, used.complied + used.contradicted, OBEYED)
    last_seconds = instant(record.support.last or record.validity.recorded_at)
    decay = worth(last_seconds, now_seconds, record.validity.half_life_days)
    return effect(WEIGHTS.get(record.kind, 0.0), outcomes) * confidence * support * decay * fires * obeyed


def _is_usable(record: MetaRecommendation, agent: str | None, active: set[str]) -> bool:
    approved = _is_approved(record)
    return (
        record.kind in WEIGHTS
        and record.scope.is_shared
        and (agent is None or record.scope.agent == agent)
        and (approved or KINDS[record.kind].gate != "person")
        and (approved or record.sensitivity == "none")
        and record.superseded_by is None
        and active.isdisjoint(record.conflicts)  # of two records that contradict each other, neither comes in
    )


def _is_approved(record: MetaRecommendation) -> bool:
    return record.review is not None and record.review.state == "approved"


def _single(
    records: Sequence[MetaRecommendation], valued: Callable[[MetaRecommendation], float]
) -> list[MetaRecommendation]:
    """Return each id once, and only the most valuable record of a slot with a single value."""
    best: dict[tuple[str, ...], MetaRecommendation] = {}
    for record in sorted(records, key=lambda record: (-valued(record), record.id)):
        slot = record.slot
        is_single = slot.cardinality == "one"
        key = (slot.subject, slot.attribute, record.scope.tool or "") if is_single else (record.id,)
        best.setdefault(key, record)
    return list(best.values())


# -- from a recommendation to a line ---------------------------------------------------------------------------


def _forms(record: MetaRecommendation, incumbent: MetaRecord | None) -> Iterator[MetaRecord]:
    """Yield forms of a record for the head, best first; an incumbent with the same text keeps its bytes."""
    approved = _is_approved(record)
    pointers = pointers_of(record)
    if (
        incumbent is not None
        and (incumbent.text, incumbent.approved) == (record.text, approved)
        and set(incumbent.sources) <= set(pointers)
    ):
        yield incumbent
    newest = pointers[:1] + pointers[1:][-(MAX_SOURCES - 1) :]
    recorded_at = record.validity.recorded_at
    for sources in dict.fromkeys((newest, *permutations(pointers, len(newest)))):
        yield MetaRecord(id=record.id, text=record.text, sources=sources, approved=approved, ts=recorded_at)


def pointers_of(record: MetaRecommendation) -> tuple[str, ...]:
    """Return pointers to the messages of a record's evidence, as ``session§ref`` with percent-encoded session names."""
    pointers: dict[str, None] = {}
    for span in record.evidence:
        name = _UNUSABLE.sub(lambda match: quote(match.group(), safe=""), span.session)
        pointers[f"{name[-(160 - len(span.ref)) :]}{span.ref}"] = None
    return tuple(pointers)


# -- choosing --------------------------------------------------------------------------------------------------


def _lifted(candidate: _SliceCandidate) -> float:
    """Return a candidate's value, with the margin of an incumbent."""
    return candidate.value * (1 + MARGIN if candidate.is_incumbent else 1)


def _chosen(candidates: Sequence[_SliceCandidate], counter: Counter, high_tokens: int) -> list[_SliceCandidate]:
    """Return the most valuable set that fits; approved and other records have a label each, and share the room."""
    groups = [[each for each in candidates if each.record.approved is approved] for approved in (True, False)]
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
"""By room in tokens: the highest value, and its candidates."""


def _at(best: Filled, room: int) -> tuple[float, tuple[_SliceCandidate, ...]]:
    return best[min(room, len(best) - 1)] if room >= 0 else (0.0, ())


def _knapsack(candidates: Sequence[_SliceCandidate], room: int) -> Filled:
    best: Filled = [(0.0, ())] * (room + 1)
    for candidate in candidates:
        for left in range(room, candidate.tokens - 1, -1):
            worth = best[left - candidate.tokens][0] + _lifted(candidate)
            if worth > best[left][0] + 1e-12:
                best[left] = (worth, (*best[left - candidate.tokens][1], candidate))
    return best


def _trimmed(
    chosen: list[_SliceCandidate],
    measure: Callable[[Iterable[_SliceCandidate]], int],
    low_tokens: int,
    high_tokens: int,
) -> list[_SliceCandidate]:
    """Drop padding beyond `low_tokens`, and lines that exceed `high_tokens` because joined lines cost more tokens."""
    rest = sorted(chosen, key=lambda each: (_lifted(each) / each.tokens, each.record.id), reverse=True)
    while rest and measure(rest) > high_tokens:
        rest.pop()
    mean = sum(each.value for each in rest) / max(1, sum(each.tokens for each in rest))
    while rest and not rest[-1].is_incumbent and rest[-1].value / rest[-1].tokens < PADDING * mean:
        if measure(rest) - rest[-1].tokens < low_tokens:
            break
        rest.pop()
    return rest


def _ordered(chosen: Iterable[_SliceCandidate], incumbents: Sequence[MetaRecord]) -> tuple[MetaRecord, ...]:
    """Order records by value, or keep the order of the incumbents if the set is the same."""
    records = tuple(each.record for each in sorted(chosen, key=lambda each: (-each.value, each.record.id)))
    return tuple(incumbents) if set(records) == set(incumbents) else records


class MetaSliceBuilder:
    """Build the slice of one profile."""

    def __init__(self, settings: NightSettings, store: Store, ledger: Ledger) -> None:
        self._settings, self._store, self._ledger = settings, store, ledger
        self._versions = store.profiles(settings.profile, tenant=settings.tenant)
        self._vault = store.vault(settings.tenant)
        self.counter: Counter = line_counter()
        self._taken = taken_back(store, self._versions, 0)
        self._reviews: Mapping[str, Review] = {}
        self._rules: tuple[Rule, ...] = ()
        self.left_out: dict[str, None] = {}
        """Ids of records that a rollback kept out of the last slice."""
        self.set_aside: dict[str, str] = {}
        """Keys of the rules that kept records out of the last slice, by record id."""

    def fitted(
        self,
        active: Sequence[MetaRecommendation],
        reviews: Mapping[str, Review],
        before: Sequence[MetaRecord],
        base: int,
        now: str,
    ) -> tuple[MetaRecord, ...]:
        """Return the slice that follows `before`, the slice of version `base`."""
        self._taken, self._reviews, self.left_out = taken_back(self._store, self._versions, base), reviews, {}
        self._rules, self.set_aside = rules_of(self._versions.at(base).profile if base else None), {}
        by_people = tuple(record for record in before if not is_claim_id(record.id))
        shared = [record for record in active if record.scope.is_shared and not self._must_wait(record)]
        chosen = fit(
            shared,
            self.counter,
            agent=self._settings.profile,
            incumbents=[record for record in before if is_claim_id(record.id)] if self._settings.keep_places else [],
            by_people=by_people,
            now=now,
            use=self._use(),
            outcomes=self._outcomes(shared),
            is_withdrawn=self.is_out,
        )
        return (*by_people, *chosen)

    def _must_wait(self, record: MetaRecommendation) -> bool:
        """Whether a person must see the record first, because a line was locked after the record was judged."""
        if KINDS[record.kind].is_template or (record.review is not None and record.review.state == "approved"):
            return False
        if record.slot.attribute in self._settings.admission.unrelated_slots:
            return False  # `admission.under_rules` admits it, whichever lines are locked
        locked = [rule.text for rule in self._rules if rule.locked]
        return bool(locked) and not any(restates(line, record.text) for line in locked)

    def why_left_out(self) -> Iterator[str]:
        """Yield lines of the report about records that a rollback or a rule kept out, and how to bring them back."""
        if self.left_out:
            ids = ", ".join(sorted(self.left_out))
            yield f"a rollback took back {ids}; a person may approve it anew: `ctxsteward steward review ID --approve`"
        for id_, key in sorted(self.set_aside.items()):
            yield f"set aside {id_}: it gainsays {key}; `ctxsteward steward quarantine` shows it"

    def _outcomes(self, records: Iterable[MetaRecommendation]) -> Mapping[str, AdviceOutcomes]:
        """Return the outcomes of records of tool errors, by id."""
        fixes = {record.id: record for record in records if KINDS[record.kind].gate == "fix"}
        bases = ((record, self._ledger.basis(id)) for id, record in fixes.items())
        return {
            record.id: AdviceOutcomes.of(record.action, basis.tried) for record, basis in bases if basis is not None
        }

    def _use(self) -> Mapping[str, RecordUse]:
        """Return the use of each record over all finished batches, without sessions of forgotten people."""
        settings = self._settings
        batches = BatchRecords(self._store, settings.tenant, settings.profile, extractor="")
        self._ledger.uses.catch_up(batches.addresses(), batches.read, frozenset(self._vault.erased()))
        return self._ledger.uses.of_records()

    def is_out(self, record: MetaRecord) -> bool:
        """Whether a record was withdrawn, contradicts a rule, or was taken back and not approved since."""
        review = self._reviews.get(record.id)
        if self._taken.keeps_out(record, review.when if review is not None and record.approved else None):
            self.left_out[record.id] = None
            return True
        conflict = None if record.approved else against(self._rules, record.text)
        if conflict is not None:  # the rule came into force after the record was judged
            self.set_aside[record.id] = conflict.key
            return True
        subject = record_subject(self._settings.profile, record)
        return self._vault.tombstone(self._vault.subject_address(subject)) is not None
