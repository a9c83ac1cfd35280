"""The head lays out the slice that the steward fitted: counted alike, and cut by whole records of least value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile
from ctxsteward.envelope.layout.composition import lay_head
from ctxsteward.envelope.testing import CharTokenizer, memory_store
from ctxsteward.envelope.tokens.tokenizer import Counter, Tokenizer, load_tokenizer
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument
from ctxsteward.schemas.recommendation import MetaRecommendation
from ctxsteward.steward.release.slice import fit, slice_tokens, value
from ctxsteward.store.journal.events import SessionHead

from .test_fitting import APPROVED, NOW, TEXTS, made

O200K = Counter(load_tokenizer("o200k_base"))


@pytest.mark.parametrize("approved", [(False,), (True,), (True, False, False)])
def test_slice_tokens_are_those_of_the_section(approved: tuple[bool, ...]) -> None:
    records = tuple(
        MetaRecord(id=f"r{at}", text=f"Rule number {at} holds for everybody.", sources=(f"s-{at}§1",), approved=one)
        for at, one in enumerate(approved)
    )
    builder = EnvelopeBuilder(tokenizer="o200k_base")
    session = memory_store().session("s", profile=Profile.from_document(ProfileDocument(meta=records)))
    session.append({"role": "user", "content": "Hi"})
    assert slice_tokens(records, O200K) == builder.build(session).section("meta").tokens


def test_no_slice_costs_nothing() -> None:
    assert slice_tokens((), O200K) == 0


# -- under another tokenizer ---------------------------------------------------------------------------------------


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
        return made(
            f"r{at}", self.text, kind=self.kind, review=APPROVED if self.approved else None,
            confidence={"score": 0.99, "lower95": self.lower95, "method": "wilson"},
            support={"events": 9, "sessions": 9, "principals": self.principals, "last": NOW},
        )  # fmt: skip


KNOWN = st.builds(
    Known,
    st.sampled_from(TEXTS),
    st.floats(0.05, 0.95),
    st.integers(1, 9),
    st.sampled_from(["preference", "correction", "decision"]),
    st.booleans(),
)
NIGHTS = st.lists(st.lists(KNOWN, max_size=7), min_size=1, max_size=3)
"""What is known on each; the slice of one is the incumbent of the next."""


@settings(max_examples=150, deadline=None)
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
    laid = lay_head(head, Budgets(meta_tokens=meta_tokens), Counter(tokenizer), compactions)

    shown = "".join(fragment.text for fragment in laid.meta)
    stays = {record for record in slice_ if f"  {record.id}: " in shown}
    dropped = {record for record in slice_ if record not in stays}
    told = [finding.text for finding in laid.findings if finding.kind == "meta_records_left_out"]
    assert len(told) == bool(dropped)
    assert all(record.id in told[0] for record in dropped)
    assert sum(fragment.tokens for fragment in laid.meta) <= meta_tokens
    for out in dropped:
        for stayed in stays:
            assert stayed.approved >= out.approved
            assert stayed.approved > out.approved or worth[stayed.id] >= worth[out.id]
