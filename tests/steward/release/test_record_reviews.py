"""Verdicts on single records: signed, of one wording, the newest of somebody who may still give them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ctxsteward.envelope.store import Store, open_store
from ctxsteward.schemas.profile import ProfileDocument, ProfileEntry
from ctxsteward.schemas.recommendation import MetaRecommendation, Review, Scope
from ctxsteward.steward.release.actors import ActionRefused, Actor, Actors
from ctxsteward.steward.release.record_reviews import RecordReviews, people_for

from ..scenes import recommendation
from .people import LATER, SALT, TOKENS, actors, signer

WHEN = "2026-11-22T04:00:00+00:00"
PROFILE = "support"


def record(text: str = "Prices are in euro.", **more: object) -> MetaRecommendation:
    scope = {"tenant": "default", "agent": PROFILE}
    return recommendation("r1", text, kind="correction", scope=scope, status="candidate").model_copy(update=more)


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


LOCKED = ProfileDocument(
    policies=(ProfileEntry(id="privacy", text="Never reveal personal data of one customer to another.", locked=True),)
)
GAINSAYS = "Reveal personal data of one customer to another."


class Tier(NamedTuple):
    id: str
    record: MetaRecommendation
    people: int
    profile: ProfileDocument | None = LOCKED


TIERS = (
    Tier("a fact", record(kind="fact"), 1),
    Tier("a rule", record("Answer in two sentences.", kind="policy"), 1),
    Tier("a trait of the persona", record("Be more cheerful.", kind="persona"), 1),
    Tier("gainsays a lock", record(GAINSAYS), 2),
    Tier("gainsays a lock, for one person", record(GAINSAYS, scope=Scope(tenant="t", agent=PROFILE, user="u")), 2),
    Tier("gainsays a lock, a rule", record(GAINSAYS, kind="policy"), 2),
    Tier("nothing is locked", record(GAINSAYS), 1, ProfileDocument()),
    Tier("nothing is in force", record(GAINSAYS), 1, None),
)  # fmt: skip


@pytest.mark.parametrize("tier", TIERS, ids=lambda tier: tier.id)
def test_as_many_people_approve_a_record_as_it_needs(tier: Tier, store: Store) -> None:
    needed = people_for(tier.profile)

    def approved() -> bool:
        return "r1" in reviews(store).standing({"r1": tier.record}.get, needed)

    assert needed(tier.record) == tier.people
    for name in ("ada", "ada", "ben")[: tier.people + 1 if tier.people > 1 else 1]:
        assert not approved()
        reviews(store).answer(tier.record, "approve", TOKENS[name], when=WHEN)
    assert approved()
    assert reviews(store).approvers(tier.record) == ("ada", "ben")[: tier.people]


def test_a_rejection_ends_the_approvals_before_it(store: Store) -> None:
    needed = people_for(LOCKED)
    for who, verdict in (("ada", "approve"), ("ben", "reject"), ("cleo", "approve")):
        reviews(store).answer(record(GAINSAYS), verdict, TOKENS[who], when=WHEN)  # type: ignore[arg-type]

    assert reviews(store).standing({"r1": record(GAINSAYS)}.get, needed) == {}
    reviews(store).answer(record(GAINSAYS), "approve", TOKENS["ada"], when=LATER)
    assert reviews(store).standing({"r1": record(GAINSAYS)}.get, needed)["r1"].who == ("cleo", "ada")


def test_whoever_said_it_does_not_approve_it(store: Store) -> None:
    mine = record().model_copy(update={"evidence": (record().evidence[0].model_copy(update={"principal": "ada"}),)})
    with pytest.raises(ActionRefused) as refused:
        reviews(store).answer(mine, "approve", TOKENS["ada"], when=WHEN)

    assert refused.value.reason == "author"
    assert reviews(store).answer(mine, "reject", TOKENS["ada"], when=WHEN).state == "rejected"
    assert reviews(store).answer(mine, "approve", TOKENS["ben"], when=WHEN).who == ("ben",)
    fix = mine.model_copy(update={"kind": "tool_fix"})
    assert reviews(store).answer(fix, "approve", TOKENS["ada"], when=WHEN).who == ("ada",), "a template, nobody said it"


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
    with pytest.raises(ActionRefused) as refused:
        reviews(store).answer(record(), "approve", TOKENS[token], when=WHEN, who=who)
    assert refused.value.reason == reason
    assert list(store.chain(reviews(store).folder, tenant="default").links()) == []


def test_a_verdict_serves_no_other_profile(store: Store) -> None:
    reviews(store).answer(record(), "approve", TOKENS["ada"], when=WHEN)
    assert reviews(store, profile="other").standing({"r1": record()}.get) == {}


def test_no_word_of_the_record_is_in_the_store(store: Store, tmp_path: Path) -> None:
    reviews(store).answer(record("Prices are in euro."), "approve", TOKENS["ada"], when=WHEN)
    assert not any(b"euro" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
