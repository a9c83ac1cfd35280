"""Which of several values is the newest is a matter of times, never of names or of the order in which they are read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Store
from ctxsteward.schemas.recommendation import MetaRecommendation
from ctxsteward.steward import Ledger
from ctxsteward.steward.ingest.items import LoadedItem
from ctxsteward.steward.ingest.pipeline import IngestSettings
from ctxsteward.steward.ledger.records import JudgementContext
from ctxsteward.steward.night.batch_harvest import HarvestWorker
from ctxsteward.store import Fact, FactSource
from ctxsteward.store.facts.fact import in_order

from ...examples import examples
from ..scenes import AGENT, TENANT, memory_store, same_keys_store

TOWNS = ("Bonn", "Ghent", "Lyon", "Oslo", "Riga", "Turin")
NIGHT, FAR_NIGHT = "2026-11-22T00:00:00Z", "2030-11-22T00:00:00Z"
DAY_SECONDS = 86_400
FIRST_SECONDS = 1_780_000_000
"""2026-05-28."""

Told = tuple[str, str | None, str | None, int | None]
"""A town, the message's time, the session's start, days of its file after the first."""
DAYS = st.integers(0, 3)
TIMES = st.none() | DAYS.map(lambda day: f"2026-06-{day + 1:02d}T10:00:00Z")
TOLD = st.lists(
    st.tuples(st.sampled_from(TOWNS), TIMES, TIMES, st.none() | DAYS),
    min_size=2,
    max_size=5,
    unique_by=lambda told: told[0],
)


def loaded(told: Told, name: str) -> LoadedItem:
    """A transcript in which Ann says where she lives."""
    town, ts, started, day = told
    message = {"role": "user", "content": f"I live in {town} now.", **({"ts": ts} if ts else {})}
    meta = {"principal": "ann", **({"started": started} if started else {})}
    data = json.dumps({"messages": [message], "ctxsteward": meta}).encode()
    written_seconds = None if day is None else FIRST_SECONDS + day * DAY_SECONDS
    return LoadedItem(source=name, name=name, data=data, written_seconds=written_seconds)


def judged(store: Store, transcripts: Sequence[LoadedItem], now: str = NIGHT) -> tuple[list[MetaRecommendation], str]:
    """All records, and the digest of everything that was taken in."""
    reaper = HarvestWorker(key=store.keys.address_key(TENANT), settings=IngestSettings(redactor=None))
    with Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        for one in transcripts:
            ledger.absorb(*reaper.artifacts(one))
            ledger.digest()
        return list(ledger.records(JudgementContext(now=now))), ledger.digest()


def home(records: Sequence[MetaRecommendation]) -> set[str]:
    """Where Ann lives, as it stands."""
    return {town for one in records if one.status == "active" for town in TOWNS if town in one.text}


def chain(records: Sequence[MetaRecommendation]) -> Iterator[str]:
    """Every town with that which superseded it."""
    texts = {one.id: one.text for one in records}
    return (f"{one.text} {one.status} {texts.get(one.superseded_by or '')}" for one in records)


@settings(max_examples=examples(30))
@given(TOLD, st.randoms(use_true_random=False))
def test_other_names_and_another_order_leave_the_same_value(told: list[Told], random: Random) -> None:
    with memory_store() as store:
        transcripts = [loaded(one, f"{at}.json") for at, one in enumerate(told)]
        records, digest = judged(store, transcripts)
        assert len(home(records)) == 1
        shuffled, same = judged(store, random.sample(transcripts, len(told)))
        assert same == digest, "the same input ends in the same hash"
        assert list(chain(shuffled)) == list(chain(records))
        names = random.sample([f"{at}{letter}.json" for at in (9, 10) for letter in "abcde"], len(told))
        renamed, _ = judged(store, [loaded(one, name) for one, name in zip(told, names, strict=True)])
        assert sorted(chain(renamed)) == sorted(chain(records))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param(("Bonn", "2026-06-01", None, 9), ("Oslo", "2026-06-02", None, 0), id="messages before files"),
        pytest.param(("Bonn", None, "2026-06-01", 9), ("Oslo", None, "2026-06-02", 0), id="starts before files"),
        pytest.param(("Bonn", None, None, 1), ("Oslo", None, None, 2), id="files"),
        pytest.param(("Bonn", None, None, None), ("Oslo", None, None, 0), id="no time before any"),
        pytest.param(
            ("Bonn", "2026-06-01T23:30:00-05:00", None, 0), ("Oslo", "2026-06-02T05:00:00Z", None, 0), id="zones"
        ),
    ],
)
@pytest.mark.parametrize("names", [("1.json", "2.json"), ("9.json", "10.json"), ("z.json", "a.json")])
def test_the_newer_value_stands_whatever_its_session_is_called(
    earlier: Told, later: Told, names: tuple[str, str]
) -> None:
    with memory_store() as store:
        records, _ = judged(store, [loaded(one, name) for one, name in zip((earlier, later), names, strict=True)])
    assert home(records) == {"Oslo"}


@pytest.mark.parametrize(
    ("told", "status"),
    [
        (("Bonn", "2026-06-01", None, None), "expired"),
        (("Bonn", None, "2026-06-01", None), "expired"),
        (("Bonn", None, None, 1), "expired"),
        (("Bonn", None, None, None), "active"),
    ],
    ids=["message", "start", "file", "never dated"],
)
def test_what_was_said_fades_by_the_best_time_that_is_known_of_it(told: Told, status: str) -> None:
    with memory_store() as store:
        assert {one.status for one in judged(store, [loaded(told, "a.json")], FAR_NIGHT)[0]} == {status}
        assert {one.status for one in judged(store, [loaded(told, "a.json")])[0]} == {"active"}


def test_a_file_that_says_no_time_is_the_same_in_another_store_of_these_keys() -> None:
    transcripts = [loaded((town, None, None, at), f"{at}.json") for at, town in enumerate(TOWNS)]
    with memory_store() as one, same_keys_store(one.keys) as other:
        assert judged(one, transcripts) == judged(other, transcripts[::-1])


def test_facts_are_shown_in_the_order_of_their_moments_not_of_their_texts() -> None:
    def fact(id: str, ts: str | None) -> Fact:
        source: Any = FactSource(session="s", ref="§1")
        return Fact(id=id, text="I live in Bonn.", sources=(source,), ts=ts)

    facts = [fact("late", "2026-06-01T23:30:00-05:00"), fact("early", "2026-06-02T04:00:00Z"), fact("never", None)]
    assert [one.id for one in in_order(facts)] == ["never", "early", "late"]
