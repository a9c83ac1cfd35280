"""Nothing that is in force changes by hand: what a commit must rest on, and what a rollback may bring back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ctxsteward.envelope import Profile, Store
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import Unapproved
from ctxsteward.schemas.profile import MetaRecord, ProfileEntry
from ctxsteward.store.profiles.versions import ProfileVersions

from .agreed import PROMOTION, EarlierVersions

NOTE: dict[str, Any] = {"who": "ada", "why": "by hand", "when": "2026-11-22T04:00:00+00:00"}
LIMIT = ProfileEntry(
    id="limit", text="Never refund more than 200 EUR.", modality="must_not", value=200, unit="EUR", locked=True
)
KNOWN = MetaRecord(id="calm", text="Prefers calm answers.", sources=("s-7§12",))
FIRST = Profile(
    name="support", policies=(LIMIT,), rails=(ProfileEntry(id="data", text="Data is data."),), meta=(KNOWN,)
)
FLIP = LIMIT.model_copy(update={"modality": "may", "value": 9_000, "text": "Refund up to 9000 EUR."})
FLIPPED = FIRST.model_copy(update={"policies": (FLIP,)})
LEARNED = FIRST.model_copy(
    update={"meta": (KNOWN, MetaRecord(id="euro", text="Wants prices in euro.", sources=("s-1§1",)))}
)
SPEAKS = FIRST.model_copy(update={"meta": (KNOWN.model_copy(update={"approved": True}),)})
NOBODY: dict[str, Any] = {"level": "INFO", "approvals": []}


@pytest.fixture
def store() -> Store:
    made = memory_store()
    made.profiles("support").commit(FIRST, **NOTE)
    return made


@pytest.fixture
def versions(store: Store) -> ProfileVersions:
    return store.profiles("support")


class Door(NamedTuple):
    id: str
    document: Profile
    rests_on: dict[str, Any] | None
    words: str
    parent: int | None = None


DOORS = [
    Door("nothing said", FLIPPED, None, "neither drift report nor approvals"),
    Door("after the head", FLIPPED, None, "neither drift report nor approvals", parent=1),
    Door("a promotion that says nothing", FLIPPED, {}, "nobody has approved"),
    Door("a promotion by nobody", FLIPPED, NOBODY, "nobody has approved"),
    Door("under the number in force", FLIPPED.model_copy(update={"version": 1}), None, "neither"),
    Door("under no name", FLIPPED.model_copy(update={"name": "default"}), NOBODY, "nobody has approved"),
    Door("the entry is gone", FIRST.model_copy(update={"policies": ()}), NOBODY, "nobody has approved"),
    Door("moved to another block", FIRST.model_copy(update={"rails": FIRST.policies}), NOBODY, "nobody has approved"),
    Door("only in another order", FIRST.model_copy(update={"policies": (), "surface": (LIMIT,)}), NOBODY, "nobody"),
    Door("a record", LEARNED, None, "neither drift report nor approvals"),
    Door("a record that speaks for the operator", SPEAKS, NOBODY, "nobody has approved"),
]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.id)
def test_a_change_that_rests_on_nothing_is_refused_and_nothing_is_written(
    store: Store, versions: ProfileVersions, door: Door
) -> None:
    before = [info.key for info in store.objects.list("profiles/")]

    with pytest.raises(Unapproved, match=door.words) as caught:
        versions.commit(door.document, **NOTE, parent=door.parent, promotion=door.rests_on)

    assert "version 1 is in force" in str(caught.value)
    assert "`ctxsteward steward propose FILE`" in str(caught.value)
    assert [info.key for info in store.objects.list("profiles/")] == before
    assert versions.newest().profile.policies == (LIMIT,)


ALLOWED: list[tuple[str, Profile, dict[str, Any] | None, int]] = [
    ("the same again", FIRST, None, 1),
    ("a record of a night", LEARNED, NOBODY, 2),
    ("a change that was approved", FLIPPED, PROMOTION, 2),
    ("a record that was approved", SPEAKS, PROMOTION, 2),
]


@pytest.mark.parametrize(("id", "document", "rests_on", "number"), ALLOWED, ids=[row[0] for row in ALLOWED])
def test_what_rests_on_what_it_must_is_committed(
    versions: ProfileVersions, id: str, document: Profile, rests_on: dict[str, Any] | None, number: int
) -> None:
    assert versions.commit(document, **NOTE, promotion=rests_on).number == number


def test_a_rollback_brings_back_what_people_agreed_to(store: Store, versions: ProfileVersions) -> None:
    versions.commit(FLIPPED, **NOTE, promotion=PROMOTION)
    versions.commit(FLIPPED.model_copy(update={"meta": LEARNED.meta}), **NOTE, promotion=NOBODY)
    versions.rollback(1, **NOTE)

    assert versions.rollback(3, **NOTE).profile.policies == (FLIP,), "its policies are those of version 2"
    assert versions.rollback(4, **NOTE).profile.policies == (LIMIT,), "it says what version 1 says"


AWAY: list[tuple[str, Callable[[ProfileVersions], object]]] = [
    ("it itself", lambda versions: versions.rollback(2, **NOTE)),
    ("a night after it", lambda versions: versions.rollback(3, **NOTE)),
]


@pytest.mark.parametrize(("id", "back"), AWAY, ids=[row[0] for row in AWAY])
def test_a_rollback_brings_nothing_back_that_was_once_committed_by_hand(
    store: Store, id: str, back: Callable[[ProfileVersions], object]
) -> None:
    """Chains of older programs hold such versions."""
    earlier = EarlierVersions(store, "support")
    earlier.commit(FLIPPED, **NOTE)
    earlier.commit(FLIPPED.model_copy(update={"meta": ()}), **NOTE, promotion=NOBODY)
    versions = store.profiles("support")
    assert versions.rollback(1, **NOTE).number == 4, "and away from it at any time"

    with pytest.raises(Unapproved, match="nobody has agreed to what version"):
        back(versions)

    assert versions.newest().profile.policies == (LIMIT,)
