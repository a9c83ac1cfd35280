"""What one tool's errors taught is told of other tools: the same whatever the order, and gone with its grounds."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Store
from ctxsteward.schemas.recommendation import MetaRecommendation
from ctxsteward.steward import Ledger
from ctxsteward.steward.admission import AdmissionPolicy
from ctxsteward.steward.artifacts.artifact import Artifact, artifact_bytes, build_artifact, parse_artifact
from ctxsteward.steward.harvest.tools.errors import identifiers, tool_errors
from ctxsteward.steward.ledger.records import JudgementContext

from ...examples import examples
from ..harvest.tools.scenes import call, scene
from ..scenes import AGENT, TENANT, memory_store

FAILED = "Error: payment method not found"
TOOLS = ("book", "change", "refund")


def lines(does: str, tool: str) -> list[Any]:
    """What happens in a session: a tool recovers, fails, or just works."""
    bad, good = (
        call(tool, FAILED, order="A17", payment_id="card_1"),
        call(tool, "{}", order="A17", payment_id="c_88121"),
    )
    looks = call("get_user", '"c_88121"', user_id="ann")
    return {"recovers": [bad, looks, good], "fails": [bad], "works": [good]}[does]


SCENES = tuple(product(("recovers", "fails", "works"), TOOLS))


def artifact(store: Store, number: int, does: str, tool: str, revision: int = 0) -> Artifact:
    transcript = scene(*lines(does, tool), session=f"s{number}", principal=f"u{number}")
    (one,) = build_artifact(
        transcript,
        tool_errors(transcript),
        extractor="harvest/1",
        key=store.keys.address_key(TENANT),
        revision=revision,
        takes=identifiers(transcript).items(),
    )
    return one


def fit(ledger: Ledger) -> dict[str | None, MetaRecommendation]:
    """Fit for use: a person has to say so, because they take another value. Two recoveries are enough here."""
    context = JudgementContext(policy=AdmissionPolicy(recoveries=2))
    return {one.scope.tool: one for one in ledger.records(context) if one.status == "vetted"}


def opened(store: Store) -> Ledger:
    return Ledger.open(":memory:", store, TENANT, AGENT)


def test_a_tool_that_takes_the_same_identifier_is_told_of_two_recoveries() -> None:
    with memory_store() as store, opened(store) as ledger:
        taught = [artifact(store, 0, "recovers", "book"), artifact(store, 1, "recovers", "book")]
        ledger.absorb(*taught, artifact(store, 2, "works", "refund"))
        records = fit(ledger)
        assert records.keys() == {"book", "refund"}
        assert records["refund"].text == (
            "`refund` refuses the payment in `payment_id`: take it from `get_user` (as for `book`)."
        )
        assert records["refund"].extractor.name == "tool_siblings"
        told, seen = ({one.span_address for one in records[tool].evidence} for tool in ("refund", "book"))
        assert told == seen
        assert ledger.size().observations == 2


def test_one_recovery_tells_nobody_and_what_a_tool_showed_itself_comes_first() -> None:
    with memory_store() as store, opened(store) as ledger:
        ledger.absorb(artifact(store, 0, "recovers", "book"), artifact(store, 1, "works", "refund"))
        assert fit(ledger) == {}
        ledger.absorb(artifact(store, 2, "recovers", "refund"))
        assert {tool: one.extractor.name for tool, one in fit(ledger).items()} == dict.fromkeys(
            ("book", "refund"), "tool_errors"
        )


@pytest.mark.parametrize("gone", [0, 2], ids=["a recovery", "the call that showed it"])
def test_what_was_told_goes_with_its_grounds(gone: int) -> None:
    with memory_store() as store, opened(store) as ledger:
        does = (("recovers", "book"), ("recovers", "book"), ("works", "refund"))
        ledger.absorb(*(artifact(store, number, *one) for number, one in enumerate(does)))
        assert "refund" in fit(ledger)
        assert ledger.withdraw(session=f"s{gone}") == (1 if gone == 0 else 0)
        assert "refund" not in fit(ledger)


def test_a_newer_reading_that_no_longer_shows_a_tool_takes_back_what_it_was_told() -> None:
    with memory_store() as store, opened(store) as ledger:
        taught = [artifact(store, 0, "recovers", "book"), artifact(store, 1, "recovers", "book")]
        ledger.absorb(*taught, artifact(store, 2, "works", "refund"))
        ledger.digest()
        transcript = scene("hello", session="s2", principal="u2")
        newer = build_artifact(transcript, (), extractor="harvest/2", key=store.keys.address_key(TENANT), revision=1)
        ledger.absorb(*newer)
        assert fit(ledger).keys() == {"book"}


def test_an_artifact_keeps_what_tools_take_and_one_without_is_the_bytes_it_was() -> None:
    with memory_store() as store:
        one = artifact(store, 0, "recovers", "book")
        assert parse_artifact(artifact_bytes(one)) == one
        assert [(tool, paths) for tool, paths in one.takes] == [("book", ("payment_id",)), ("get_user", ("user_id",))]
        transcript = scene("hello")
        (bare,) = build_artifact(transcript, (), extractor="harvest/1", key=store.keys.address_key(TENANT))
        assert b"takes" not in artifact_bytes(bare)
        assert parse_artifact(artifact_bytes(bare)) == bare


@settings(max_examples=examples(30))
@given(
    st.lists(st.sampled_from(SCENES), min_size=1, max_size=7),
    st.sets(st.integers(0, 6), max_size=2),
    st.randoms(use_true_random=False),
)
def test_order_batches_and_what_came_and_went_decide_nothing(
    rows: list[tuple[str, str]], gone: set[int], rng: random.Random
) -> None:
    with memory_store() as store:
        every = [artifact(store, number, *row) for number, row in enumerate(rows)]
        left = [one for number, one in enumerate(every) if number not in gone]
        with opened(store) as ledger:
            ledger.absorb(*left)
            wanted = ledger.digest(), [one.model_dump_json() for one in ledger.records()], ledger.size()
        rng.shuffle(every)
        with opened(store) as ledger:
            for one in every:
                ledger.absorb(one)
                if rng.random() < 0.6:
                    ledger.digest()
            for number in sorted(gone):
                ledger.withdraw(session=f"s{number}")
            assert (ledger.digest(), [one.model_dump_json() for one in ledger.records()], ledger.size()) == wanted
