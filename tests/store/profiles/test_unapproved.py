"""Nothing that is in force changes by hand: what a commit must rest on, and what a rollback may bring back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ctxsteward.envelope import Profile, Store
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import Unapproved
from ctxsteward.schemas.errors import Damaged
from ctxsteward.schemas.profile import MetaRecord, ProfileEntry
from ctxsteward.steward.release.actors import KeySigner
from ctxsteward.store.crypto.signatures import signed_data
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.names import steward_folder
from ctxsteward.store.profiles.approval_check import REVIEW_FIELDS, REVIEW_PURPOSE
from ctxsteward.store.profiles.versions import ProfileVersions

from .agreed import INVENTED, EarlierVersions, agreed

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
]


@pytest.mark.parametrize(("id", "document", "rests_on", "number"), ALLOWED, ids=[row[0] for row in ALLOWED])
def test_what_rests_on_what_it_must_is_committed(
    versions: ProfileVersions, id: str, document: Profile, rests_on: dict[str, Any] | None, number: int
) -> None:
    assert versions.commit(document, **NOTE, promotion=rests_on).number == number


@pytest.mark.parametrize("document", [FLIPPED, SPEAKS], ids=["a locked rule", "a record that speaks"])
def test_what_people_have_signed_is_committed(store: Store, versions: ProfileVersions, document: Profile) -> None:
    rests_on = agreed(store, document, who="ada", when=NOTE["when"])

    assert versions.commit(document, **NOTE, promotion=rests_on).number == 2
    assert fsck(store).damage == ()


def test_a_rollback_brings_back_what_people_agreed_to(store: Store, versions: ProfileVersions) -> None:
    versions.commit(FLIPPED, **NOTE, promotion=agreed(store, FLIPPED, who="ada", when=NOTE["when"]))
    versions.commit(FLIPPED.model_copy(update={"meta": LEARNED.meta}), **NOTE, promotion=NOBODY)
    versions.rollback(1, **NOTE)

    assert versions.rollback(3, **NOTE).profile.policies == (FLIP,), "its policies are those of version 2"
    assert versions.rollback(4, **NOTE).profile.policies == (LIMIT,), "it says what version 1 says"
    assert fsck(store).damage == ()


# -- attacks on approvals -----------------------------------------------------------------------------------------

WHEN: str = NOTE["when"]


def _forged(store: Store, change: Callable[[dict[str, Any]], object], by: tuple[str, ...] = ("bo", "di")) -> Any:
    """Approvals whose last verdict was changed before it was written into the log."""
    rests_on = agreed(store, FLIPPED, who="ada", when=WHEN, by=by)
    chain = store.chain(steward_folder("default", "support", "reviews"), tenant="default")
    head = chain.head()
    assert head is not None
    body = dict(head.body)
    change(body)
    link = chain.append(head, body)
    last = rests_on["approvals"].pop()
    return {
        "approvals": [*rests_on["approvals"], last | {"who": body["who"], "when": body["when"], "link": link.number}]
    }


def _flip_signature(body: dict[str, Any]) -> None:
    body["signature"] = format(int(body["signature"][0], 16) ^ 1, "x") + body["signature"][1:]


def _impostor(body: dict[str, Any]) -> None:
    other = KeySigner(b"\x07" * 32)
    body |= {"who": "zed"}
    data = signed_data(REVIEW_PURPOSE, "default", "support", [body[name] for name in REVIEW_FIELDS])
    body["signature"] = other.sign(data)


def _deleted(store: Store) -> dict[str, Any]:
    rests_on = agreed(store, FLIPPED, who="ada", when=WHEN)
    for info in [*store.objects.list("steward/default/support/reviews/")]:
        store.objects.delete(info.key)
    return rests_on


ATTACKS: list[tuple[str, Callable[[Store], Any], str]] = [
    ("forged: nobody is enrolled, and nothing was signed", lambda store: INVENTED, "has given no verdict"),
    ("forged: not a list", lambda store: {"approvals": "bo"}, "not a list"),
    ("forged: a list of texts", lambda store: {"approvals": ["bo"]}, "not an object"),
    ("forged: no link", lambda store: {"approvals": [{"who": "bo"}]}, "names no person"),
    ("forged: signed by somebody who is not enrolled", lambda store: _forged(store, _impostor), "no reviewer enrolled"),
    (
        "forged: under the name of a reviewer",
        lambda store: _forged(store, lambda body: (_impostor(body), body.update(who="bo"))[1], by=("di",)),
        "not signed with a key",
    ),
    ("flipped: a digit of the signature", lambda store: _forged(store, _flip_signature), "not signed with a key"),
    (
        "flipped: a rejection made an approval",
        lambda store: _forged(store, lambda body: body.update(verdict="reject")),
        "is 'reject'",
    ),
    ("deleted: the log of reviews", _deleted, "has given no verdict"),
    (
        "replayed: of another text",
        lambda store: agreed(store, FIRST.model_copy(update={"policies": ()}), who="ada", when=WHEN),
        "another text, parent or author",
    ),
    (
        "replayed: of another parent",
        lambda store: agreed(store, FLIPPED, who="ada", when=WHEN, parent=7),
        "another text, parent or author",
    ),
    ("replayed: of another author", lambda store: agreed(store, FLIPPED, who="eve", when=WHEN), "another text"),
    ("replayed: of another profile", lambda store: _of_other(store, name="sales"), "has given no verdict"),
    (
        "replayed: one verdict twice",
        lambda store: {"approvals": agreed(store, FLIPPED, who="ada", when=WHEN, by=("bo",))["approvals"] * 2},
        "named twice",
    ),
    (
        "one person for a locked rule",
        lambda store: agreed(store, FLIPPED, who="ada", when=WHEN, by=("bo",)),
        "2 people",
    ),
    ("expired", lambda store: _forged(store, lambda body: body.update(expires=WHEN)), "expired on"),
    (
        "no time of expiry that can be read",
        lambda store: _forged(store, lambda body: body.update(expires="never")),
        "expires at 'never', which is no ISO 8601 time",
    ),
]


def _of_other(store: Store, *, name: str) -> dict[str, Any]:
    store.profiles(name).commit(FIRST.model_copy(update={"name": name}), **NOTE)
    return agreed(store, FLIPPED.model_copy(update={"name": name}), who="ada", when=WHEN, name=name)


@pytest.mark.parametrize(("id", "attack", "words"), ATTACKS, ids=[row[0] for row in ATTACKS])
def test_approvals_that_nobody_gave_change_nothing(
    store: Store, versions: ProfileVersions, id: str, attack: Callable[[Store], Any], words: str
) -> None:
    rests_on = attack(store)

    with pytest.raises((Unapproved, Damaged), match=words):
        versions.commit(FLIPPED, **NOTE, promotion=rests_on)

    assert [info.key[-6:] for info in store.objects.list("profiles/default/support/versions/")] == ["1.json"]


@pytest.mark.parametrize(("id", "attack", "words"), ATTACKS, ids=[row[0] for row in ATTACKS])
def test_a_stored_version_with_such_approvals_is_found_and_named(
    store: Store, id: str, attack: Callable[[Store], Any], words: str
) -> None:
    """Written past this library, by somebody who has the tenant's keys."""
    EarlierVersions(store, "support").commit(FLIPPED, **NOTE, promotion=attack(store))

    found = fsck(store)

    assert found.damaged
    forged = [one for one in found.damage if one.kind == "approval_forged"]
    assert forged
    assert all(one.field == "profiles/default/support/versions/000000000002.json" for one in forged)
    assert any(words in one.text for one in found.damage)


def test_a_stored_rollback_to_what_nobody_agreed_to_is_found(store: Store) -> None:
    versions = EarlierVersions(store, "support")
    form, head = versions._form, versions.newest()
    body = form.body(form.content(FLIPPED, head)._replace(restores=1), head, NOTE)
    versions._chain.append(head.link, body)

    assert [one.kind for one in fsck(store).damage] == ["approval_forged"]


def test_versions_of_before_people_were_enrolled_are_a_note(store: Store) -> None:
    EarlierVersions(store, "support").commit(FLIPPED, **NOTE)
    agreed(store, FIRST, who="ada", when=WHEN)

    found = fsck(store)

    assert not found.damaged
    assert [one.kind for one in found.notes] == ["approval_unknown"]


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
