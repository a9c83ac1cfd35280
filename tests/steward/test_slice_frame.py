"""The steward counts its slice as the head does, so that what it fits is under the trigger."""

from __future__ import annotations

import pytest

from ctxsteward.envelope import EnvelopeBuilder, Profile
from ctxsteward.envelope.counting import Counter
from ctxsteward.envelope.testing import memory_store
from ctxsteward.envelope.tokens import load_tokenizer
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument
from ctxsteward.steward.fitting import slice_tokens


@pytest.mark.parametrize("approved", [(False,), (True,), (True, False, False)])
def test_slice_tokens_are_those_of_the_section(approved: tuple[bool, ...]) -> None:
    records = tuple(
        MetaRecord(id=f"r{at}", text=f"Rule number {at} holds for everybody.", sources=(f"s-{at}§1",), approved=one)
        for at, one in enumerate(approved)
    )
    builder = EnvelopeBuilder(tokenizer="o200k_base")
    session = memory_store().session("s", profile=Profile.from_document(ProfileDocument(meta=records)))
    session.append({"role": "user", "content": "Hi"})
    counter = Counter(load_tokenizer("o200k_base"))
    assert slice_tokens(records, counter) == builder.build(session).section("meta").tokens


def test_no_slice_costs_nothing() -> None:
    assert slice_tokens((), Counter(load_tokenizer("o200k_base"))) == 0
