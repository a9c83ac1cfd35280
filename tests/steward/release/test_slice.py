"""The meta slice: shared rules that earn their tokens, never over its limit, the same from night to night."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any, NamedTuple
from zlib import crc32

import pytest
from hypothesis import given, settings, strategies as st

from benchmarks.advice import KEYS, TENANT, own_runs
from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, Session, Store
from ctxsteward.envelope.layout.composition import lay_head
from ctxsteward.envelope.testing import CharTokenizer, memory_store
from ctxsteward.envelope.tokens.budgets import Scale
from ctxsteward.envelope.tokens.tokenizer import Counter, Tokenizer, load_tokenizer
from ctxsteward.schemas import InputError
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument
from ctxsteward.schemas.recommendation import MetaRecommendation
from ctxsteward.steward import Ledger, NightSettings
from ctxsteward.steward.harvest.usage import RecordUse
from ctxsteward.steward.ledger.judgement import TriedFix
from ctxsteward.steward.ledger.records import JudgementContext
from ctxsteward.steward.release.slice import (
    MARGIN,
    WEIGHTS,
    AdviceOutcomes,
    MetaSliceBuilder,
    RunEnds,
    effect,
    fit,
    slice_tokens,
    usable,
    value,
)
from ctxsteward.store.journal.events import SessionHead
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.profiles.text import line_writer, meta_text

from ...examples import examples
from ..scenes import evidence, recommendation

NOW = "2026-11-22T04:00:00+00:00"
CHARS = Counter(CharTokenizer())
O200K = Counter(load_tokenizer("o200k_base"))


def ids(records: tuple[MetaRecord, ...]) -> list[str]:
    return [record.id for record in records]


def kept(record: MetaRecommendation, **more: Any) -> list[str]:
    return ids(fit([record], CHARS, 0, 10_000, 10_000, now=NOW, **more))


# -- who may come in -----------------------------------------------------------------------------------------


class Case(NamedTuple):
    id: str
    fields: dict[str, Any]
    comes_in: bool


SCOPE = {"tenant": "acme", "agent": "support"}
APPROVED = {"state": "approved", "who": ("ada",)}
CASES = (
    Case("preference", {}, True),
    Case("correction", {"kind": "correction"}, True),
    Case("tool fix", {"kind": "tool_fix"}, True),
    Case("eval failure", {"kind": "eval_failure"}, False),
    Case("policy without a person", {"kind": "policy"}, False),
    Case("policy", {"kind": "policy", "review": APPROVED}, True),
    Case("persona without a person", {"kind": "persona"}, False),
    Case("persona", {"kind": "persona", "review": APPROVED}, True),
    Case("of a user", {"scope": SCOPE | {"user": "u"}}, False),
    Case("of a project", {"scope": SCOPE | {"project": "p"}}, False),
    Case("of a session", {"scope": SCOPE | {"session": "s"}}, False),
    Case("about a tool", {"scope": SCOPE | {"tool": "search"}}, True),
    Case("of another agent", {"scope": {"tenant": "acme", "agent": "billing"}}, False),
    Case("candidate", {"status": "candidate"}, False),
    Case("expired", {"status": "expired"}, False),
    Case("superseded", {"superseded_by": "other"}, False),
    Case("personal", {"sensitivity": "personal"}, False),
    Case("personal, approved", {"sensitivity": "personal", "review": APPROVED}, True),
    Case("no confidence", {"confidence": {"score": 0.0, "lower95": 0.0, "method": "wilson"}}, False),
    Case("in conflict with nobody", {"conflicts": ("gone",)}, True),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_who_comes_in(case: Case) -> None:
    assert kept(recommendation("a", **case.fields), agent="support") == (["a"] if case.comes_in else [])


def test_of_two_that_say_the_opposite_none_speaks_to_everybody() -> None:
    assert usable(
        [recommendation("a", conflicts=("b",)), recommendation("b", conflicts=("a",)), recommendation("c")]
    ) == [recommendation("c")]


def test_of_two_for_one_slot_the_more_valuable_comes_in() -> None:
    slot = {"subject": "user", "attribute": "language", "cardinality": "one"}
    weak = recommendation(
        "a", "Answer in English.", slot=slot, confidence={"score": 0.5, "lower95": 0.2, "method": "w"}
    )
    strong = recommendation("b", "Answer in German.", slot=slot)

    assert ids(fit([weak, strong], CHARS, 0, 10_000, 10_000)) == ["b"]


# -- what it is worth ----------------------------------------------------------------------------------------


class Better(NamedTuple):
    id: str
    better: MetaRecommendation
    worse: MetaRecommendation
    use: dict[str, RecordUse]


BETTER = (
    Better(
        "surer", recommendation("b"), recommendation("a", confidence={"score": 0.9, "lower95": 0.3, "method": "w"}), {}
    ),
    Better(
        "of more people",
        recommendation("b", support={"events": 9, "sessions": 9, "principals": 9}),
        recommendation("a"),
        {},
    ),
    Better("a correction", recommendation("b", kind="correction"), recommendation("a"), {}),
    Better(
        "shorter", recommendation("b", "Wants euro."), recommendation("a", "Wants every price in euro, please."), {}
    ),
    Better("fired", recommendation("b"), recommendation("a"), {"a": RecordUse(50, 50), "b": RecordUse(50, 50, 40, 40)}),
    Better(
        "obeyed",
        recommendation("b"),
        recommendation("a"),
        {"a": RecordUse(50, 50, 40, 2, 38), "b": RecordUse(50, 50, 40, 40)},
    ),
    Better("approved", recommendation("b", review=APPROVED), recommendation("a"), {}),
    Better(
        "fresh",
        recommendation("b", validity={"half_life_days": 30.0}),
        recommendation(
            "a",
            validity={"half_life_days": 30.0},
            support={"events": 3, "sessions": 3, "principals": 3, "last": "2026-01-01"},
        ),
        {},
    ),
)


@pytest.mark.parametrize("case", BETTER, ids=lambda case: case.id)
def test_the_better_record_gets_the_only_place(case: Better) -> None:
    room = max(slice_tokens(fit([one], CHARS, 0, 999, 999), CHARS) for one in (case.better, case.worse))

    assert ids(fit([case.worse, case.better], CHARS, 0, room, room, use=case.use, now=NOW)) == ["b"]


# -- tokens --------------------------------------------------------------------------------------------------

TEXTS = (
    "Answer with the result first, then at most three reasons.",
    "Use metric units in every answer about sizes and weights.",
    "When search_flights fails with not_found, retry with the airport code instead of the city.",
    "Prefers prices in euro, with cents, tax included.",
    "先给结论，再说明理由。",
    "Call the new building Harbour House, never by its street.",
    "Do not offer phone support on weekends; the line is closed.",
    "引用资料时注明出处和页码。",
    "Tables only for more than four figures.",
    "We ship from Rotterdam since spring, not from Antwerp.",
)


def some(count: int, **more: Any) -> list[MetaRecommendation]:
    return [
        recommendation(
            f"r{n:02}",
            TEXTS[n % len(TEXTS)],
            confidence={"score": 0.9, "lower95": 0.4 + n % 7 / 20, "method": "w"},
            **more,
        )
        for n in range(count)
    ]


def test_the_slice_is_written_to_120_to_144_tokens_of_what_the_head_renders() -> None:
    found = fit(some(10), O200K, now=NOW)

    text = meta_text(ProfileDocument(meta=found), line_writer(found))
    assert 120 <= O200K.framed(text) <= slice_tokens(found, O200K) <= 144


def test_approved_records_are_counted_with_a_label_of_their_own() -> None:
    both = [recommendation("a", review=APPROVED), recommendation("b")]
    labels = slice_tokens(fit(both, CHARS, 0, 999, 999), CHARS)

    assert ids(fit(both, CHARS, 0, labels, labels)) == ["a", "b"]
    assert len(fit(both, CHARS, 0, labels - 1, labels)) == 1


def test_nothing_is_padded_when_there_is_little_to_say() -> None:
    assert len(fit(some(2), O200K, now=NOW)) == 2
    assert fit([], O200K) == ()
    assert slice_tokens((), O200K) == 0


def test_beyond_the_lower_bound_no_newcomer_comes_in_that_is_hardly_worth_its_tokens() -> None:
    padding = recommendation(
        "zz", "Something that was said once.", confidence={"score": 0.1, "lower95": 0.01, "method": "w"}
    )
    good = some(4)
    room = slice_tokens(fit([*good, padding], CHARS, 9_999, 9_999, 9_999), CHARS)

    assert "zz" not in ids(fit([*good, padding], CHARS, 100, room, room))
    assert "zz" in ids(fit([*good, padding], CHARS, room, room, room))


@pytest.mark.parametrize(("low", "high", "budget"), [(150, 144, 180), (120, 200, 180), (-1, 144, 180)])
def test_limits_out_of_order_are_refused(low: int, high: int, budget: int) -> None:
    with pytest.raises(InputError, match="low_tokens <= high_tokens <= budget_tokens"):
        fit([], O200K, low, high, budget)


RECORDS = st.lists(
    st.builds(
        recommendation,
        st.sampled_from([f"r{n}" for n in range(8)]),
        st.sampled_from(TEXTS),
        kind=st.sampled_from(["preference", "correction"]),
        review=st.sampled_from([None, APPROVED]),
    ),
    max_size=8,
    unique_by=lambda record: record.id,
)


@settings(max_examples=examples(60))
@given(RECORDS, st.integers(0, 600), st.randoms(use_true_random=False))
def test_never_over_the_limit_and_the_same_whatever_the_order(
    records: list[MetaRecommendation], high: int, random: Any
) -> None:
    found = fit(records, CHARS, 0, high, high, now=NOW)
    shuffled = random.sample(records, len(records))

    assert slice_tokens(found, CHARS) <= high
    assert fit(shuffled, CHARS, 0, high, high, now=NOW) == found
    assert fit(shuffled, CHARS, 0, high, high, now=NOW, incumbents=found) == found


# -- what a line costs ---------------------------------------------------------------------------------------

HEX = st.lists(st.text("0123456789abcdef", min_size=4, max_size=4), unique=True, max_size=7)


def session_with(records: tuple[MetaRecord, ...]) -> Session:
    """A session of this profile, in a store that holds what its records cite: else they lose the operator's voice."""
    store = memory_store()
    for cited in sorted({source.split("§")[0] for record in records for source in record.sources}):
        store.session(cited).append({"role": "user", "content": "Please do."})
    return store.session("shown", profile=Profile.from_document(ProfileDocument(meta=records)))


def in_prompt(records: tuple[MetaRecord, ...]) -> int:
    """Tokens of the section that a session of this profile is shown."""
    builder = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(meta_tokens=5_000))
    return builder.build(session_with(records)).section("meta").tokens


@settings(max_examples=examples(30))
@given(HEX, st.booleans(), st.integers(0, 3))
def test_a_slice_costs_what_a_prompt_shows_of_it_beside_what_people_wrote(
    beginnings: list[str], collide: bool, written: int
) -> None:
    ids = [f"{digits}{n:012x}" if not collide else f"04bb{digits}{n:08x}" for n, digits in enumerate(beginnings)]
    records = [recommendation(id, TEXTS[n]) for n, id in enumerate(ids)]
    by_people = tuple(
        MetaRecord(id=f"04bb{n}", text=f"Written by hand: {TEXTS[n]}", sources=("s§1",), approved=True)
        for n in range(written)
    )
    found = fit(records, O200K, now=NOW, by_people=by_people)

    assert slice_tokens((*by_people, *found), O200K) == in_prompt((*by_people, *found))
    assert not found or in_prompt((*by_people, *found)) <= 144
    assert set(found).isdisjoint(by_people)


def test_what_people_wrote_takes_its_room() -> None:
    by_people = (MetaRecord(id="hours", text="Open " + "very " * 50 + "long.", sources=("s§1",), approved=True),)
    alone, beside = fit(some(10), O200K, now=NOW), fit(some(10), O200K, now=NOW, by_people=by_people)
    assert 0 < len(beside) < len(alone)
    full = (MetaRecord(id="hours", text="Open " + "more or less " * 20, sources=("s§1",)),) * 3
    assert fit(some(10), O200K, now=NOW, by_people=full) == ()


# -- what outcomes say ---------------------------------------------------------------------------------------

COUNTS = st.integers(0, 30)
ENDS = st.builds(RunEnds, COUNTS, COUNTS)
OUTCOMES = st.builds(AdviceOutcomes, ENDS, ENDS)
WEIGHT = st.sampled_from(sorted(set(WEIGHTS.values())))


@settings(max_examples=examples(300))
@given(WEIGHT, OUTCOMES)
def test_more_success_never_lowers_an_effect_and_more_failure_never_raises_it(
    weight: float, outcomes: AdviceOutcomes
) -> None:
    (won, lost), (won_otherwise, lost_otherwise) = outcomes
    now = effect(weight, outcomes)
    assert now >= 0
    assert effect(weight, outcomes._replace(followed=RunEnds(won + 1, lost))) >= now - 1e-12
    assert effect(weight, outcomes._replace(followed=RunEnds(won, lost + 1))) <= now + 1e-12
    assert effect(weight, outcomes._replace(otherwise=RunEnds(won_otherwise + 1, lost_otherwise))) <= now + 1e-12
    assert effect(weight, outcomes._replace(otherwise=RunEnds(won_otherwise, lost_otherwise + 1))) >= now - 1e-12


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        pytest.param(None, 0.9, id="nobody counted: the weight"),
        pytest.param(AdviceOutcomes(), 0.9, id="no run has a known end"),
        pytest.param(AdviceOutcomes(RunEnds(3, 0)), 0.9, id="three runs alone gainsay no guess"),
        pytest.param(AdviceOutcomes(RunEnds(5, 5), RunEnds(8, 2)), 0.498, id="rather worse: less than the guess"),
        pytest.param(AdviceOutcomes(RunEnds(1, 9), RunEnds(9, 1)), 0.0, id="harmful for sure"),
        pytest.param(AdviceOutcomes(RunEnds(20, 0), RunEnds(5, 15)), 1.644, id="better than the guess for sure"),
        pytest.param(AdviceOutcomes(RunEnds(5000, 5000), RunEnds(4500, 5500)), 0.255, id="measured: the guess is gone"),
    ],
)
def test_an_effect_is_the_weight_until_outcomes_gainsay_it(outcomes: AdviceOutcomes | None, expected: float) -> None:
    assert effect(0.9, outcomes) == pytest.approx(expected, abs=0.001)


def test_outcomes_are_of_what_a_record_says_and_of_all_else_that_was_tried_in_any_order() -> None:
    tried = [TriedFix("take it", 3, 1, 2), TriedFix("guess it", 0, 4, 0), TriedFix("ask", 1, 2, 9)]
    expected = AdviceOutcomes(RunEnds(3, 1), RunEnds(1, 6))
    assert {AdviceOutcomes.of("take it", order) for order in permutations(tried)} == {expected}
    assert AdviceOutcomes.of("edited since", tried) == AdviceOutcomes(RunEnds(), RunEnds(4, 7))


def test_what_fails_more_is_left_out_and_what_succeeds_more_stands_first() -> None:
    records = [recommendation(id, TEXTS[n], kind="tool_fix") for n, id in enumerate(("bad", "good", "new"))]
    outcomes = {
        "bad": AdviceOutcomes(RunEnds(1, 9), RunEnds(9, 1)),
        "good": AdviceOutcomes(RunEnds(20, 0), RunEnds(5, 15)),
    }
    assert ids(fit(records, CHARS, 0, 999, 999, outcomes=outcomes)) == ["good", "new"]
    assert ids(fit(records[::-1], CHARS, 0, 999, 999, outcomes=outcomes)) == ["good", "new"]


def test_a_night_has_outcomes_of_fixes_from_its_ledger() -> None:
    """In a world where the truth is known: what does harm is worth nothing, what helps more than a guess would say."""
    settings = NightSettings(tenant=TENANT, profile="agent", sources=("x",))
    with (
        Store(MemoryJournal(), MemoryObjects(), KEYS, uri="memory:") as store,
        Ledger.open(":memory:", store, TENANT, "agent") as ledger,
    ):
        ledger.absorb(*(artifact for run in own_runs(seed=1) for artifact in run.artifacts))
        records = list(ledger.records(JudgementContext()))
        counted = MetaSliceBuilder(settings, store, ledger)._outcomes(records)
    assert set(counted) == {one.id for one in records if one.kind == "tool_fix"}
    effects = {one.text: effect(WEIGHTS[one.kind], counted[one.id]) for one in records if one.id in counted}
    assert {text for text, found in effects.items() if found == 0} == {
        "`rebook` refuses the payment in `flights`: give fewer.",
        "`ship` wants `address`: leave it out.",
    }
    assert {text for text, found in effects.items() if found > 1} == {
        "`book` rejects `pickup_day`: write it as YYYY-MM-DD.",
        "`compensate` refuses `amount`: do not try it again, and say why.",
        "`refund` refuses the payment in `payment_id`: take it from `get_order`.",
    }


# -- from night to night -------------------------------------------------------------------------------------


def test_a_newcomer_must_be_worth_more_by_a_margin() -> None:
    incumbent = recommendation("old", confidence={"score": 0.9, "lower95": 0.5, "method": "w"})
    before = fit([incumbent], CHARS, 0, 999, 999)
    room = slice_tokens(before, CHARS)
    slightly = recommendation("new", confidence={"score": 0.9, "lower95": 0.5 * (1 + 0.9 * MARGIN), "method": "w"})
    clearly = recommendation("new", confidence={"score": 0.9, "lower95": 0.5 * (1 + 1.2 * MARGIN), "method": "w"})

    assert ids(fit([incumbent, slightly], CHARS, 0, room, room, incumbents=before)) == ["old"]
    assert ids(fit([incumbent, clearly], CHARS, 0, room, room, incumbents=before)) == ["new"]
    assert ids(fit([incumbent, slightly], CHARS, 0, room, room)) == ["new"]


def test_a_slice_that_says_the_same_keeps_its_order_and_its_bytes() -> None:
    before = fit(some(4), CHARS, 0, 999, 999)[::-1]
    grown = [record.model_copy(update={"revision": 2}) for record in some(4)]

    assert fit(grown, CHARS, 0, 999, 999, incumbents=before) == before


@pytest.mark.parametrize("change", ["one more", "one less", "other words"])
def test_a_slice_that_changes_stands_in_order_of_value(change: str) -> None:
    before = fit(some(4), CHARS, 0, 999, 999)[::-1]
    now = {
        "one more": [*some(4), recommendation("best", kind="correction")],
        "one less": some(3),
        "other words": [*some(3), recommendation("r03", "Say it in other words, please.")],
    }[change]
    found = fit(now, CHARS, 0, 999, 999, incumbents=before)

    values = {record.id: value(record, None, None) for record in now}
    assert ids(found) == sorted(values, key=lambda id: (-values[id], id))


def test_thirty_nights_of_small_changes_leave_the_prefix_alone() -> None:
    slice_: tuple[MetaRecord, ...] = ()
    changes = 0
    for night in range(30):
        records = [
            recommendation(
                f"r{n:02}", TEXTS[n], support={"events": 9, "sessions": 9, "principals": 9 + (n * 7 + night) % 3}
            )
            for n in range(10)
        ]
        found = fit(records, O200K, now=NOW, incumbents=slice_)
        changes += bool(slice_) and meta_text(ProfileDocument(meta=found)) != meta_text(ProfileDocument(meta=slice_))
        slice_ = found

    assert changes <= 2


# -- pointers ------------------------------------------------------------------------------------------------


def test_pointers_are_the_claim_and_the_newest_other_span() -> None:
    spans = [evidence("s-1", "§1"), evidence("s-2", "§4"), evidence("s-3", "§12.2")]
    (found,) = fit([recommendation("a", evidence=spans)], CHARS, 0, 999, 999)

    assert found.sources == ("s-1§1", "s-3§12.2")


def test_a_session_with_an_odd_name_has_a_pointer_all_the_same() -> None:
    (found,) = fit([recommendation("a", evidence=[evidence("my chat, [1]", "§1")])], CHARS, 0, 999, 999)

    assert found.sources == ("my%20chat%2C%20%5B1%5D§1",)
    assert (
        len(fit([recommendation("a", evidence=[evidence("x" * 200, "§1")])], CHARS, 0, 999, 999)[0].sources[0]) == 160
    )


# -- how the head lays it out --------------------------------------------------------------------------------


@pytest.mark.parametrize("approved", [(False,), (True,), (True, False, False)])
def test_slice_tokens_are_those_of_the_section(approved: tuple[bool, ...]) -> None:
    records = tuple(
        MetaRecord(id=f"r{at}", text=f"Rule number {at} holds for everybody.", sources=(f"s-{at}§1",), approved=one)
        for at, one in enumerate(approved)
    )
    builder = EnvelopeBuilder(tokenizer="o200k_base")
    session = session_with(records)
    session.append({"role": "user", "content": "Hi"})
    assert slice_tokens(records, O200K) == builder.build(session).section("meta").tokens


def test_no_slice_costs_nothing() -> None:
    assert slice_tokens((), O200K) == 0


# -- under another tokenizer ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Weighed:
    """Some characters cost more than others, up to seven tokens."""

    seed: int

    @property
    def name(self) -> str:
        return f"weighed-{self.seed}"

    def count(self, text: str) -> int:
        return sum(1 + crc32(character.encode(), self.seed) % 7 for character in text)


COUNTED: st.SearchStrategy[Tokenizer] = st.one_of(
    st.just(CharTokenizer()), st.just(load_tokenizer("cl100k_base")), st.builds(Weighed, st.integers(0, 2**32 - 1))
)


class Known(NamedTuple):
    """A record by what it counts for: who stands behind it, how sure, of which kind, and whether it is approved."""

    text: str
    lower95: float
    principals: int
    kind: str
    approved: bool

    def record(self, at: int) -> MetaRecommendation:
        return recommendation(
            f"r{at}",
            self.text,
            kind=self.kind,
            review=APPROVED if self.approved else None,
            confidence={"score": 0.99, "lower95": self.lower95, "method": "wilson"},
            support={"events": 9, "sessions": 9, "principals": self.principals, "last": NOW},
        )


KNOWN = st.builds(
    Known,
    st.sampled_from(TEXTS),
    st.floats(0.05, 0.95),
    st.integers(1, 9),
    st.sampled_from(["preference", "correction"]),
    st.booleans(),
)
NIGHTS = st.lists(st.lists(KNOWN, max_size=7), min_size=1, max_size=3)
"""What is known on each; the slice of one is the incumbent of the next."""


@settings(max_examples=examples(150))
@given(NIGHTS, COUNTED, st.integers(1, 180), st.integers(0, 9))
def test_what_is_dropped_is_never_worth_more_than_what_stays(
    nights: list[list[Known]], tokenizer: Tokenizer, meta_tokens: int, compactions: int
) -> None:
    """Approved records aside, which stay as long as any other does; by what they were worth when they were fitted."""
    slice_: tuple[MetaRecord, ...] = ()
    worth: dict[str, float] = {}
    for night in nights:
        records = [known.record(at) for at, known in enumerate(night)]
        before, slice_ = slice_, fit(records, O200K, now=NOW, incumbents=slice_)
        if slice_ != before:
            worth = {record.id: value(record, None, None) for record in records}

    head = SessionHead(profile=ProfileDocument(meta=slice_).model_dump(mode="json"))
    laid = lay_head(head, Scale(Budgets(meta_tokens=meta_tokens)), Counter(tokenizer), compactions)

    shown = "".join(fragment.text for fragment in laid.section("meta"))
    stays = {record for record in slice_ if f" [{record.id}]\n" in f"{shown}\n"}
    dropped = {record for record in slice_ if record not in stays}
    told = [finding.text for finding in laid.findings if finding.kind == "meta_records_left_out"]
    assert len(told) == bool(dropped)
    assert all(record.id in told[0] for record in dropped)
    assert sum(fragment.tokens for fragment in laid.section("meta")) <= meta_tokens
    for out in dropped:
        for stayed in stays:
            assert stayed.approved >= out.approved
            assert stayed.approved > out.approved or worth[stayed.id] >= worth[out.id]
