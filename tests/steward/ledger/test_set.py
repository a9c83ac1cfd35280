"""A ledger is a set: order, batches and repeats decide nothing."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Store
from ctxsteward.steward import Ledger
from ctxsteward.steward.artifacts.artifact import Artifact
from ctxsteward.steward.ledger.records import JudgementContext

from ...examples import examples
from ..scenes import AGENT, TENANT, artifact, memory_store

NOW = "2026-11-22T00:00:00Z"
HOMES = {"I live in Ghent now.": "Ghent", "I live in Bonn now.": "Bonn"}
EMOJI = ("Please use emojis in answers.", "Emojis are welcome.", "Never use emojis in answers.", "No emojis, please.")
NOTES = (
    "Quote prices with tax.",
    "Tax belongs in every price you quote.",
    "Put the tax into your prices.",
    "报价请含税。",
)
TEXTS = [*HOMES, *EMOJI, *NOTES]
SESSIONS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4, unique=True),
        st.sampled_from(["ann", "bob", "cem", "dee"]),
        st.sampled_from(["strict", "broad"]),
        st.integers(0, 2),
    ),
    max_size=9,
    unique_by=lambda row: (row[0], row[4]),
)


def artifacts_of(store: Store, rows: Iterable[tuple[Any, ...]]) -> list[Artifact]:
    found = []
    for number, texts, who, strength, revision in rows:
        name = f"s{number}"
        value = next((HOMES[text] for text in texts if text in HOMES), None)
        slot = ("user", "home", "one") if value and len(texts) == 1 else ("user", "note", "many")
        slot = ("agent", "emoji", "many") if set(texts) <= set(EMOJI) else slot
        found.append(
            artifact(
                store,
                name,
                texts,
                principal=who,
                strength=strength,
                slot=slot,
                value=value if slot[2] == "one" else None,
                ts=f"2026-10-{number + 1:02d}T10:00:00Z",
                digest=f"{name}/{revision}",
                revision=revision,
            )
        )
    return found


def seen_by(store: Store, batches: Iterable[Sequence[Artifact]]) -> tuple[str, list[str]]:
    with Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        for batch in batches:
            ledger.absorb(*batch)
            ledger.components()  # drafts between the batches, as a night does
        records = list(ledger.records(JudgementContext(now=NOW, run="night-1")))
        outcome = ledger.judged(JudgementContext(now=NOW, run="night-1"))
        assert dict(outcome.statuses) == Counter(record.status for record in records)
        assert list(outcome.active) == [one for one in records if one.status == "active"]
        return ledger.digest() + outcome.digest, [
            record.model_dump_json() for record in ledger.records(JudgementContext(now=NOW, run="night-1"))
        ]


@settings(max_examples=examples(40))
@given(SESSIONS, st.randoms(use_true_random=False))
def test_the_same_set_gives_the_same_bytes_in_any_order_and_batches(
    rows: list[tuple[Any, ...]], rng: random.Random
) -> None:
    with memory_store() as store:
        found = artifacts_of(store, rows)
        whole = seen_by(store, [found])
        shuffled = [*found, *rng.sample(found, len(found) // 2)]
        rng.shuffle(shuffled)
        cuts = sorted(rng.sample(range(len(shuffled) + 1), min(2, len(shuffled) + 1)))
        assert seen_by(store, [shuffled[: cuts[0]], shuffled[cuts[0] : cuts[-1]], shuffled[cuts[-1] :]]) == whole
        assert seen_by(store, [[one] for one in reversed(found)]) == whole


@settings(max_examples=examples(40))
@given(SESSIONS, SESSIONS)
def test_taking_a_session_out_is_as_if_it_had_never_come(
    rows: list[tuple[Any, ...]], others: list[tuple[Any, ...]]
) -> None:
    with memory_store() as store:
        kept = [one for one in artifacts_of(store, rows) if one.session != "s0"]
        gone = [one for one in artifacts_of(store, others) if one.session == "s0"]
        with Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
            ledger.absorb(*kept, *gone)
            before = ledger.digest() + ledger.judged(JudgementContext(now=NOW)).digest
            ledger.withdraw(session="s0")
            records = [record.model_dump_json() for record in ledger.records(JudgementContext(now=NOW, run="night-1"))]
            after = ledger.digest()
            ledger.absorb(*gone)
            assert ledger.digest() == after
            after += ledger.judged(JudgementContext(now=NOW)).digest
        assert (after, records) == seen_by(store, [kept])
        assert gone or before == after


def test_a_newer_reading_replaces_the_older_one_whichever_came_first() -> None:
    with memory_store() as store:
        old = artifact(store, "s1", ["I prefer aisle seats on planes."], digest="1")
        new = artifact(store, "s1", ["I prefer aisle seats on planes.", "I never eat meat on planes."], digest="2")
        for order in ([old, new], [new, old]):
            with Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
                for one in order:
                    ledger.absorb(one)
                assert ledger.size()[1:] == (2, 2, 2)


def test_an_artifact_again_changes_nothing() -> None:
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        one = artifact(store, "s1", ["I prefer aisle seats on planes."])
        assert ledger.absorb(one) == 1
        digest = ledger.digest()
        assert ledger.absorb(one, one) == 0
        assert ledger.digest() == digest
