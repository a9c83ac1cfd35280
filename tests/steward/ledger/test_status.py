"""How records stand: what is asked of all at once, of one, and counted comes to the same."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Store
from ctxsteward.schemas.recommendation import Review
from ctxsteward.steward import Ledger
from ctxsteward.steward.admission import AdmissionPolicy
from ctxsteward.steward.ledger.records import JudgementContext

from ...examples import examples
from ..scenes import AGENT, TENANT, artifact, memory_store
from .test_set import SESSIONS, artifacts_of

NOW = "2026-11-22T00:00:00Z"
DATES = ("2026-11-22", "2026-12-01", "2027-04-20", "2027-12-24")
REVIEWS = st.sampled_from([None, "approved", "rejected"])
NIGHTS = st.lists(
    st.tuples(SESSIONS, st.sampled_from(DATES), REVIEWS, st.sampled_from([None, "s0", "s1"]), st.booleans()),
    min_size=1,
    max_size=4,
)


@settings(max_examples=examples(60))
@given(NIGHTS)
def test_counts_single_records_and_active_ones_are_those_of_all_records(nights: list[tuple[Any, ...]]) -> None:
    """Sessions come, come anew and are withdrawn, dates go forth and back, people review, policies change."""
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        for number, (rows, date, review, gone, strict) in enumerate(nights):
            ledger.absorb(*artifacts_of(store, rows))
            if gone:
                ledger.withdraw(session=gone)
            reviewed = sorted(record.id for record in ledger.records())[:1] if review else []
            as_of = JudgementContext(
                now=f"{date}T00:00:00Z",
                policy=AdmissionPolicy(independent_principals=3 if strict else 2),
                reviews={id_: Review(state=review, who=("ada",), when="2026-11-01") for id_ in reviewed},
                run=f"night-{number}",
            )
            found, records = ledger.judged(as_of), list(ledger.records(as_of))
            assert dict(found.statuses) == Counter(record.status for record in records)
            assert list(found.active) == [one for one in records if one.status == "active"]
            assert [ledger.record(one.id, as_of) for one in records] == records


def say(store: Store, ledger: Ledger, session: str, text: str, **fields: Any) -> None:
    for who in ("ann", "bob", "cem"):
        ledger.absorb(artifact(store, f"{session}-{who}", [text], principal=who, **fields))


TONE = ("user", "tone", "one")
EMOJI = ("user", "emoji", "many")
FREED = {
    "the newer value of a slot": (
        ("Always answer formally.", {"slot": TONE, "value": "formal", "ts": "2026-10-01"}),
        ("Always answer casually.", {"slot": TONE, "value": "casual", "ts": "2026-11-01"}),
        "superseded",
    ),
    "what says the opposite": (
        ("Please use emojis in answers.", {"ts": "2026-10-01", "slot": EMOJI}),
        ("Never use emojis in answers.", {"ts": "2026-11-01", "slot": EMOJI}),
        "candidate",
    ),
}


@pytest.mark.parametrize("why", FREED)
def test_what_was_held_up_stands_again_when_that_is_withdrawn(why: str) -> None:
    (text, fields), (other, others), status = FREED[why]
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        say(store, ledger, "s1", text, **fields)
        say(store, ledger, "s2", other, **others)
        assert ledger.judged(JudgementContext(now=NOW)).statuses[status] >= 1
        for who in ("ann", "bob", "cem"):
            ledger.withdraw(session=f"s2-{who}")
        found = ledger.judged(JudgementContext(now=NOW))
        assert [(one.text, one.status) for one in found.active] == [(text, "active")]


def test_what_time_alone_changes_changes_on_its_night() -> None:
    """A preference has a half-life of 180 days, and goes when it is worth a quarter: after 360."""
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        say(store, ledger, "old", "Never use emojis in answers.", ts="2026-01-01T00:00:00Z")
        say(store, ledger, "new", "Quote prices with tax.", ts="2026-06-01T00:00:00Z")
        told = [
            dict(ledger.judged(JudgementContext(now=f"{night}T00:00:01Z")).statuses)
            for night in ("2026-12-26", "2026-12-27", "2026-12-28", "2027-05-27", "2027-05-28")
        ]
        assert told == [
            {"active": 2},
            {"active": 1, "expired": 1},
            {"active": 1, "expired": 1},
            {"expired": 2},
            {"expired": 2},
        ]
