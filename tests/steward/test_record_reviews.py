"""Verdicts on single records: signed, of one wording, the newest of somebody who may still give them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxsteward.envelope.store import Store, open_store
from ctxsteward.schemas.recommendation import (
    Confidence,
    Evidence,
    Extractor,
    MetaRecommendation,
    Review,
    Scope,
    Slot,
    Support,
)
from ctxsteward.steward.actors import Actor, Actors, Refused
from ctxsteward.steward.record_reviews import RecordReviews

from .people import SALT, TOKENS, actors, signer

WHEN = "2026-11-22T04:00:00+00:00"
PROFILE = "support"


def record(text: str = "Prices are in euro.", **more: object) -> MetaRecommendation:
    one = Evidence(
        source="s",
        session="s-1",
        ref="§1",
        span=(0, 8),
        span_address="0" * 64,
        role="user",
        trust="user",
        principal="a",
    )
    made = MetaRecommendation(
        id="r1", kind="correction", scope=Scope(tenant="default", agent=PROFILE),
        slot=Slot(subject="user", attribute="x"), text=text, evidence=(one,),
        support=Support(events=1, sessions=1, principals=1),
        confidence=Confidence(score=0.5, lower95=0.1, method="m"), trust="user",
        extractor=Extractor(name="e", version="1"), run="r", tokens=9,
    )  # fmt: skip
    return made.model_copy(update=more)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"file:{tmp_path}") as opened:
        yield opened


def reviews(store: Store, people: Actors | None = None, **more: str) -> RecordReviews:
    return RecordReviews(store, more.get("profile", PROFILE), actors=people or actors())


def standing(store: Store, now: MetaRecommendation, people: Actors | None = None) -> dict[str, Review]:
    return reviews(store, people).standing({"r1": now}.get)


def test_an_approval_is_of_one_wording(store: Store) -> None:
    said = reviews(store).answer(record(), "approve", TOKENS["ada"], when=WHEN, who="ada", note="seen")
    assert (said.state, said.who, said.note) == ("approved", ("ada",), "seen")
    assert standing(store, record()) == {"r1": said}
    assert standing(store, record(status="active", revision=4)) == {"r1": said}, (
        "how far it has come is not what it says"
    )
    wider = Scope(tenant="default", agent=PROFILE, project="p")
    for other in (record("Prices are in dollars."), record(scope=wider), record(value="euro")):
        assert standing(store, other) == {}


def test_a_rejection_is_of_whatever_the_record_says(store: Store) -> None:
    reviews(store).answer(record(), "reject", TOKENS["ada"], when=WHEN)
    assert standing(store, record("Prices are in dollars."))["r1"].state == "rejected"


def test_the_newest_verdict_counts(store: Store) -> None:
    for who, verdict in (("ada", "approve"), ("ben", "reject"), ("cleo", "approve")):
        reviews(store).answer(record(), verdict, TOKENS[who], when=WHEN)  # type: ignore[arg-type]
    assert standing(store, record())["r1"].who == ("cleo",)


def test_the_same_verdict_again_is_there_once(store: Store) -> None:
    for _ in range(3):
        reviews(store).answer(record(), "approve", TOKENS["ada"], when=WHEN)
    assert len(list(store.chain(reviews(store).folder, tenant="default").links())) == 1


def test_whoever_is_no_reviewer_any_more_does_not_count(store: Store) -> None:
    reviews(store).answer(record(), "approve", TOKENS["ada"], when=WHEN)
    demoted = Actors(salt=SALT, actors={"ada": Actor(roles=("operator",), key=signer("ada").key)})
    assert standing(store, record(), demoted) == {}
    rekeyed = Actors(salt=SALT, actors={"ada": Actor(roles=("reviewer",), key=signer("ben").key)})
    assert standing(store, record(), rekeyed) == {}


@pytest.mark.parametrize(("who", "token", "reason"), [
    ("otto", "otto", "wrong_role"), ("ada", "ben", "wrong_token"), ("eve", "eve", "unknown_actor"),
    (None, "eve", "wrong_token"),
])  # fmt: skip
def test_who_may_not_is_refused(store: Store, who: str | None, token: str, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        reviews(store).answer(record(), "approve", TOKENS[token], when=WHEN, who=who)
    assert refused.value.reason == reason
    assert list(store.chain(reviews(store).folder, tenant="default").links()) == []


def test_a_verdict_serves_no_other_profile(store: Store) -> None:
    reviews(store).answer(record(), "approve", TOKENS["ada"], when=WHEN)
    assert reviews(store, profile="other").standing({"r1": record()}.get) == {}


def test_no_word_of_the_record_is_in_the_store(store: Store, tmp_path: Path) -> None:
    reviews(store).answer(record("Prices are in euro."), "approve", TOKENS["ada"], when=WHEN)
    assert not any(b"euro" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
