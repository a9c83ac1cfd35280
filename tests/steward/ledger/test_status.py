"""How records stand is kept up to date: whatever the way there, it is what judging everything at once would say."""

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
from ctxsteward.store import Audience, Fact

from ...examples import examples
from ..scenes import AGENT, TENANT, artifact, memory_store
from .test_set import SESSIONS, artifacts_of

DATES = ("2026-11-22", "2026-12-01", "2027-04-20", "2027-12-24")
REVIEWS = st.sampled_from([None, "approved", "rejected"])
NIGHTS = st.lists(
    st.tuples(SESSIONS, st.sampled_from(DATES), REVIEWS, st.sampled_from([None, "s0", "s1"]), st.booleans()),
    min_size=1,
    max_size=4,
)


def shelves_of(ledger: Ledger, after: str | None = None) -> dict[Audience, tuple[Fact, ...]]:
    return {audience: ledger.facts(audience) for audience in ledger.unshelved(after)[0]}


def known(shelves: dict[Audience, tuple[Fact, ...]]) -> dict[Audience, tuple[Fact, ...]]:
    return {audience: facts for audience, facts in sorted(shelves.items()) if facts}


@settings(max_examples=examples(60))
@given(NIGHTS)
def test_night_by_night_is_as_all_at_once(nights: list[tuple[Any, ...]]) -> None:
    """Sessions come, come anew and are withdrawn, dates go forth and back, people review, policies change."""
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        shelves: dict[Audience, tuple[Fact, ...]] = {}
        for number, (rows, date, review, gone, strict) in enumerate(nights):
            ledger.absorb(*artifacts_of(store, rows))
            if gone:
                ledger.withdraw(session=gone)
            reviewed = sorted(record.id for record in ledger.records())[:1] if review else []
            judged_by: dict[str, Any] = {
                "now": f"{date}T00:00:00Z",
                "policy": AdmissionPolicy(independent_principals=3 if strict else 2),
                "reviews": {id_: Review(state=review, who=("ada",), when="2026-11-01") for id_ in reviewed},
                "run": f"night-{number}",
            }
            found = ledger.judged(JudgementContext(**judged_by))
            shelves |= shelves_of(ledger, f"night-{number - 1}")
            ledger.shelved(f"night-{number}")

            records = list(ledger.records(JudgementContext(**judged_by)))
            assert dict(found.statuses) == Counter(record.status for record in records)
            wide = [one for one in records if one.scope.user is None and one.scope.session is None]
            assert list(found.active) == [one for one in wide if one.status == "active"]
            assert [ledger.record(one.id, JudgementContext(**judged_by)) for one in records] == records

            ledger._db.run("UPDATE about SET value = 'nothing' WHERE name = 'judged by'")  # judge all of it anew
            whole = ledger.judged(JudgementContext(**judged_by))
            assert whole._replace(looked_at=0) == found._replace(looked_at=0)
            assert known(shelves) == known(shelves_of(ledger))
            ledger.publish(found.active)


@pytest.fixture
def ledger() -> Any:
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as opened:
        opened.absorb(*(artifact(store, f"s{n}", [text], principal=f"u{n}") for n, text in enumerate(TEXTS)))
        yield opened


THINGS = ("table", "lamp", "chair", "sofa", "shelf", "desk", "mirror", "carpet", "curtain", "pillow", "vase", "clock")
TEXTS = [f"I prefer the {thing} near the {other}." for thing in THINGS for other in THINGS if thing < other]
NOW = "2026-11-22T00:00:00Z"


def store_of(ledger: Ledger) -> Store:
    return ledger._store


class TestANightCostsWhatItTouches:
    def test_a_first_night_looks_at_everything(self, ledger: Ledger) -> None:
        assert ledger.judged(JudgementContext(now=NOW)).looked_at >= ledger.components() >= len(TEXTS) / 2
        assert len(shelves_of(ledger)) == len(TEXTS)

    def test_a_night_without_news_looks_at_nothing(self, ledger: Ledger) -> None:
        ledger.judged(JudgementContext(now=NOW))
        ledger.shelved("night-1")
        assert ledger.judged(JudgementContext(now="2026-11-23T00:00:00Z")).looked_at == 0
        assert shelves_of(ledger, "night-1") == {}

    def test_a_night_with_one_session_looks_at_what_it_said(self, ledger: Ledger) -> None:
        ledger.judged(JudgementContext(now=NOW))
        ledger.shelved("night-1")
        ledger.absorb(artifact(store_of(ledger), "new", ["I never eat fish on trains."], principal="u3"))
        assert ledger.judged(JudgementContext(now="2026-11-23T00:00:00Z")).looked_at == 1
        assert list(shelves_of(ledger, "night-1")) == [Audience("user", "u3")]

    def test_asking_for_one_record_judges_no_other(self, ledger: Ledger) -> None:
        before = ledger.judged(JudgementContext(now=NOW))
        some = next(iter(ledger.records(JudgementContext(now=NOW))))
        assert ledger.record(some.id, JudgementContext(now=NOW)) == some
        again = ledger.judged(JudgementContext(now=NOW))
        assert again._replace(looked_at=0) == before._replace(looked_at=0)
        assert again.looked_at == 0

    def test_another_ledger_writes_every_shelf(self, ledger: Ledger) -> None:
        ledger.judged(JudgementContext(now=NOW))
        ledger.shelved("night-1")
        assert ledger.unshelved("night-1")[1] is False
        assert ledger.unshelved("night-2")[1] is True
        assert len(shelves_of(ledger, "night-2")) == len(TEXTS)


HOME = ("user", "home", "one")
FREED = {
    "the newer value of a slot": (
        ("I live in Ghent now.", {"slot": HOME, "value": "Ghent", "kind": "fact", "ts": "2026-10-01"}),
        ("I live in Bonn now.", {"slot": HOME, "value": "Bonn", "kind": "fact", "ts": "2026-11-01"}),
        "superseded",
    ),
    "what says the opposite": (
        ("Please use emojis in answers.", {"ts": "2026-10-01"}),
        ("Never use emojis in answers.", {"ts": "2026-11-01"}),
        "candidate",
    ),
}


@pytest.mark.parametrize("why", FREED)
def test_what_was_held_up_stands_again_when_that_is_withdrawn(why: str) -> None:
    (text, fields), (other, others), status = FREED[why]
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        ledger.absorb(artifact(store, "s1", [text], **fields), artifact(store, "s2", [other], **others))
        assert ledger.judged(JudgementContext(now=NOW)).statuses[status] >= 1
        ledger.shelved("night-1")
        ledger.withdraw(session="s2")
        assert ledger.judged(JudgementContext(now=NOW)).statuses == {"active": 1}
        (facts,) = shelves_of(ledger, "night-1").values()
        assert [fact.text for fact in facts] == [text]


def test_what_time_alone_changes_changes_on_its_night() -> None:
    """A preference has a half-life of 180 days, and goes when it is worth a quarter: after 360."""
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        said = {"old": "2026-01-01T00:00:00Z", "new": "2026-06-01T00:00:00Z"}
        for who, ts in said.items():
            ledger.absorb(artifact(store, f"s-{who}", [f"I prefer the {who} desk at work."], principal=who, ts=ts))
        told, before = [], None
        for night in ("2026-12-26", "2026-12-27", "2026-12-28", "2027-05-27", "2027-05-28"):
            found = ledger.judged(JudgementContext(now=f"{night}T00:00:01Z"))
            told.append((dict(found.statuses), [name for _, name in shelves_of(ledger, before)]))
            ledger.shelved(night)
            before = night
        assert told == [
            ({"active": 2}, ["new", "old"]),
            ({"active": 1, "expired": 1}, ["old"]),
            ({"active": 1, "expired": 1}, []),
            ({"expired": 2}, ["new"]),
            ({"expired": 2}, []),
        ]
