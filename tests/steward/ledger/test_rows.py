"""Rows of the index: whatever was written is read back."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings, strategies as st

from ctxsteward.steward.admission import RecordStanding
from ctxsteward.steward.ledger.rows import claim_of, claim_row, draft_of, draft_row, standing_of, standing_row
from ctxsteward.steward.reconcile import Claim, Draft

from ...examples import examples

SECONDS = st.floats(allow_nan=False, allow_infinity=False) | st.just(float("-inf"))


@settings(max_examples=examples(100), deadline=None)
@given(st.from_type(Claim))
def test_a_claim_is_read_back_as_it_was_written(claim: Claim) -> None:
    assert claim_of(claim_row(claim)) == claim


@settings(max_examples=examples(100), deadline=None)
@given(st.from_type(RecordStanding), st.none() | st.text(min_size=1))
def test_a_standing_is_read_back_as_it_was_written(standing: RecordStanding, when: str | None) -> None:
    standing = replace(standing, replaced_at=when, superseded_by=standing.superseded_by or None)
    assert standing_of(standing_row(standing)) == standing


@settings(max_examples=examples(100), deadline=None)
@given(st.builds(Draft, said=st.dictionaries(st.text(), st.text()), evidence=st.just(())), SECONDS, st.floats(0, 1))
def test_a_draft_is_read_back_as_it_was_written(draft: Draft, seconds: float, score: float) -> None:
    backing = replace(draft.backing, chance=score)  # shares: 0..1 both
    draft = replace(draft, moment=draft.moment._replace(seconds=seconds), score=score, backing=backing)
    assert draft_of(draft_row(draft)) == draft
