"""Which of several values is the newest is a matter of times, never of names or of the order in which they are read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Store
from ctxsteward.schemas.recommendation import MetaRecommendation
from ctxsteward.steward import Ledger
from ctxsteward.steward.ingest.items import LoadedItem
from ctxsteward.steward.ingest.pipeline import IngestSettings
from ctxsteward.steward.ledger.records import JudgementContext
from ctxsteward.steward.night.batch_harvest import HarvestWorker

from ...examples import examples
from ..scenes import AGENT, TENANT, memory_store, same_keys_store

TONES = ("formal", "casual", "direct")
PEOPLE = ("ann", "bob", "cem")
NIGHT, FAR_NIGHT = "2026-11-22T00:00:00Z", "2030-11-22T00:00:00Z"
DAY_SECONDS = 86_400
FIRST_SECONDS = 1_780_000_000
"""2026-05-28."""

Told = tuple[str, str | None, str | None, int | None]
"""A tone, the message's time, the session's start, days of its file after the first."""
DAYS = st.integers(0, 3)
TIMES = st.none() | DAYS.map(lambda day: f"2026-06-{day + 1:02d}T10:00:00Z")
TOLD = st.lists(
    st.tuples(st.sampled_from(TONES), TIMES, TIMES, st.none() | DAYS),
    min_size=2,
    max_size=3,
    unique_by=lambda told: told[0],
)


def loaded(told: Told, name: str) -> list[LoadedItem]:
    """Transcripts in which three people say in which tone they want to be answered."""
    tone, ts, started, day = told
    message = {"role": "user", "content": f"Always answer in a {tone} tone.", **({"ts": ts} if ts else {})}
    written_seconds = None if day is None else FIRST_SECONDS + day * DAY_SECONDS
    items = []
    for who in PEOPLE:
        meta = {"principal": who, **({"started": started} if started else {})}
        data = json.dumps({"messages": [message], "ctxsteward": meta}).encode()
        own = f"{who}-{name}"
        items.append(LoadedItem(source=own, name=own, data=data, written_seconds=written_seconds))
    return items


def judged(store: Store, transcripts: Sequence[LoadedItem], now: str = NIGHT) -> tuple[list[MetaRecommendation], str]:
    """All records, and the digest of everything that was taken in."""
    reaper = HarvestWorker(key=store.keys.address_key(TENANT), settings=IngestSettings(redactor=None))
    with Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        for one in transcripts:
            ledger.absorb(*reaper.artifacts(one))
        return list(ledger.records(JudgementContext(now=now))), ledger.digest()


def tone(records: Sequence[MetaRecommendation]) -> set[str]:
    """The tone that is wanted, as it stands."""
    return {tone for one in records if one.status == "active" for tone in TONES if tone in one.text}


def chain(records: Sequence[MetaRecommendation]) -> Iterator[str]:
    """Every tone with that which superseded it."""
    texts = {one.id: one.text for one in records}
    return (f"{one.text} {one.status} {texts.get(one.superseded_by or '')}" for one in records)


@settings(max_examples=examples(30))
@given(TOLD, st.randoms(use_true_random=False))
def test_other_names_and_another_order_leave_the_same_value(told: list[Told], random: Random) -> None:
    with memory_store() as store:
        transcripts = [item for at, one in enumerate(told) for item in loaded(one, f"{at}.json")]
        records, digest = judged(store, transcripts)
        assert len(tone(records)) == 1
        shuffled, same = judged(store, random.sample(transcripts, len(transcripts)))
        assert same == digest, "the same input ends in the same hash"
        assert list(chain(shuffled)) == list(chain(records))
        names = random.sample([f"{at}{letter}.json" for at in (9, 10) for letter in "abcde"], len(told))
        renamed, _ = judged(store, [item for one, name in zip(told, names, strict=True) for item in loaded(one, name)])
        assert sorted(chain(renamed)) == sorted(chain(records))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param(("formal", "2026-06-01", None, 9), ("casual", "2026-06-02", None, 0), id="messages before files"),
        pytest.param(("formal", None, "2026-06-01", 9), ("casual", None, "2026-06-02", 0), id="starts before files"),
        pytest.param(("formal", None, None, 1), ("casual", None, None, 2), id="files"),
        pytest.param(("formal", None, None, None), ("casual", None, None, 0), id="no time before any"),
        pytest.param(
            ("formal", "2026-06-01T23:30:00-05:00", None, 0), ("casual", "2026-06-02T05:00:00Z", None, 0), id="zones"
        ),
    ],
)
@pytest.mark.parametrize("names", [("1.json", "2.json"), ("9.json", "10.json"), ("z.json", "a.json")])
def test_the_newer_value_stands_whatever_its_session_is_called(
    earlier: Told, later: Told, names: tuple[str, str]
) -> None:
    with memory_store() as store:
        records, _ = judged(
            store, [item for one, name in zip((earlier, later), names, strict=True) for item in loaded(one, name)]
        )
    assert tone(records) == {"casual"}


@pytest.mark.parametrize(
    ("told", "status"),
    [
        (("formal", "2026-06-01", None, None), "expired"),
        (("formal", None, "2026-06-01", None), "expired"),
        (("formal", None, None, 1), "expired"),
        (("formal", None, None, None), "active"),
    ],
    ids=["message", "start", "file", "never dated"],
)
def test_what_was_said_fades_by_the_best_time_that_is_known_of_it(told: Told, status: str) -> None:
    with memory_store() as store:
        assert {one.status for one in judged(store, loaded(told, "a.json"), FAR_NIGHT)[0]} == {status}
        assert {one.status for one in judged(store, loaded(told, "a.json"))[0]} == {"active"}


def test_a_file_that_says_no_time_is_the_same_in_another_store_of_these_keys() -> None:
    transcripts = [item for at, one in enumerate(TONES) for item in loaded((one, None, None, at), f"{at}.json")]
    with memory_store() as one, same_keys_store(one.keys) as other:
        assert judged(one, transcripts) == judged(other, transcripts[::-1])
