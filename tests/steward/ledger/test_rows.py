"""Rows of the index: whatever was written is read back."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from ctxsteward.schemas.recommendation import Slot
from ctxsteward.steward.artifacts.artifact import EvidenceSpan
from ctxsteward.steward.ledger.database import claim_in, claim_row, seen_of, seen_row
from ctxsteward.steward.observations.observation import KINDS, MessageSpan, Observation
from ctxsteward.steward.reconcile.claims import Claim, IndexedObservation

from ...examples import examples


@settings(max_examples=examples(100))
@given(st.from_type(Claim))
def test_a_claim_is_read_back_as_it_was_written(claim: Claim) -> None:
    assert claim_in(claim.id, claim_row(claim)) == claim


SLOTS = st.sampled_from(["one", "many"]).map(lambda many: Slot(subject="user", attribute="a", cardinality=many))
PLACES = st.lists(st.builds(MessageSpan, st.just("§3"), st.integers(0, 9), st.integers(9, 99)), min_size=1, max_size=3)
OBSERVATIONS = st.builds(
    Observation,
    kind=st.sampled_from(sorted(KINDS)),
    slot=SLOTS,
    places=PLACES.map(tuple),
    score=st.floats(0, 1),
    value=st.none() | st.integers() | st.text(),
)


def span(place: MessageSpan, principal: str, ts: str | None) -> EvidenceSpan:
    return EvidenceSpan(*place[:3], "ab" * 32, "user", "user", principal, ts, place.relation)


@settings(max_examples=examples(100))
@given(
    OBSERVATIONS,
    st.lists(st.none() | st.just("2026-01-02T03:04:05+00:00"), min_size=1, max_size=2),
    st.frozensets(st.text("0123456789abcdef", min_size=1), max_size=2),
    st.booleans(),
    st.none() | st.text(),
)
def test_an_observation_is_read_back_as_it_was_written(
    observation: Observation, told: list[str | None], shown: frozenset[str], cited: bool, project: str | None
) -> None:
    """Whether its spans are its places or some are missing, and whether it is dated or one of its spans is."""
    cited_places = observation.places if cited else observation.places[:1]
    found = tuple(span(place, f"p{at}", told[at % len(told)]) for at, place in enumerate(cited_places))
    seen = IndexedObservation(
        id="a1", observation=observation, source="s", session="t", project=project, spans=found, shown=shown
    )
    assert seen_of(seen.brief, seen_row(seen)) == seen
