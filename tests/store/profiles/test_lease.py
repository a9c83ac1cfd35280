"""Leases: one writer at a time where clocks are honest, nothing lost or doubled where they are not."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from ctxsteward.envelope import Profile, Store
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import Fenced, VersionTaken
from ctxsteward.schemas.profile import ProfileEntry
from ctxsteward.store.profiles.versions import Lease, WriterLease

from .agreed import INVENTED, approvals_hold

NOTE = {"who": "ada", "why": "nightly", "when": "2026-11-22T04:00:00Z"}
AGREED: dict[str, Any] = {**NOTE, "promotion": INVENTED}

__all__ = ["approvals_hold"]
pytestmark = pytest.mark.usefixtures("approvals_hold")


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store() -> Store:
    return memory_store()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def writer(store: Store, clock: Clock, owner: str) -> WriterLease:
    return WriterLease(store, "support", owner=owner, clock=clock)


def policy(text: str) -> Profile:
    return Profile(name="support", policies=(ProfileEntry(id="p", text=text),))


def test_a_free_lease_is_taken_under_the_first_epoch(store: Store, clock: Clock) -> None:
    ada = writer(store, clock, "ada")
    assert ada.holder() is None
    assert ada.take(60) == Lease(epoch=1, owner="ada", expires_seconds=1_060.0)
    assert writer(store, clock, "bo").holder() == Lease(1, "ada", 1_060.0)


def test_another_writer_waits_until_it_is_released_or_expired(store: Store, clock: Clock) -> None:
    ada, bo = writer(store, clock, "ada"), writer(store, clock, "bo")
    ada.take(60)
    clock.now += 59
    assert bo.take(60) is None
    clock.now += 1
    taken = bo.take(60)
    assert taken is not None
    assert taken.epoch == 2

    bo.release()
    assert bo.holder() is None
    assert ada.take(60) == Lease(3, "ada", clock.now + 60)


def test_the_same_name_is_not_the_same_writer(store: Store, clock: Clock) -> None:
    """A service that was restarted beside its old self."""
    assert writer(store, clock, "ada").take(60) is not None
    assert writer(store, clock, "ada").take(60) is None


def test_force_takes_over_and_the_old_writer_is_fenced(store: Store, clock: Clock) -> None:
    ada, bo = writer(store, clock, "ada"), writer(store, clock, "bo")
    old, new = ada.take(60), bo.take(60, force=True)
    assert old is not None
    assert new is not None
    assert new.epoch == 2
    with pytest.raises(Fenced):
        ada.renew(60)
    with pytest.raises(Fenced):
        store.profiles("support").commit(policy("old"), **AGREED, epoch=old.epoch)
    store.profiles("support").commit(policy("new"), **AGREED, epoch=new.epoch)
    ada.release()  # not its own any more
    assert bo.holder() == new


def test_renewing_keeps_the_epoch_even_after_expiry(store: Store, clock: Clock) -> None:
    ada = writer(store, clock, "ada")
    ada.take(60)
    clock.now += 600
    assert ada.renew(60) == Lease(1, "ada", clock.now + 60)
    clock.now += 1
    assert ada.take(60) == Lease(1, "ada", clock.now + 60), "its own: renewed"


def test_a_lease_that_was_never_taken_or_is_released_is_not_renewed(store: Store, clock: Clock) -> None:
    ada = writer(store, clock, "ada")
    with pytest.raises(Fenced):
        ada.renew(60)
    ada.take(60)
    ada.release()
    with pytest.raises(Fenced):
        ada.renew(60)


@pytest.mark.parametrize("ttl_seconds", [0, -1, math.nan, math.inf])
def test_a_time_to_live_is_a_positive_number(store: Store, clock: Clock, ttl_seconds: float) -> None:
    with pytest.raises(InputError, match="time to live"):
        writer(store, clock, "ada").take(ttl_seconds)
    clock.now = math.nan
    with pytest.raises(InputError, match="the clock says nan"):
        writer(store, clock, "ada").take(1)


def test_profiles_have_leases_of_their_own(store: Store, clock: Clock) -> None:
    assert writer(store, clock, "ada").take(60) is not None
    assert WriterLease(store, "sales", owner="bo", clock=clock).take(60) is not None
    assert WriterLease(store, "support", "other", owner="bo", clock=clock).take(60) is not None


def test_clocks_that_lie_lose_nothing_and_double_nothing(store: Store) -> None:
    """Four writers that each believe whatever time they please, so that several hold the lease at once."""
    draw = random.Random(7)
    writers = [WriterLease(store, "support", owner=f"w{n}", clock=lambda: draw.uniform(0, 1e6)) for n in range(4)]
    epochs: list[int | None] = [None] * len(writers)
    acked: list[str] = []
    fenced = taken = 0
    for n in range(400):
        who = draw.randrange(len(writers))
        if epochs[who] is None or draw.random() < 0.1:
            lease = writers[who].take(draw.uniform(1, 1_000))
            epochs[who] = lease.epoch if lease else epochs[who]
        versions = store.profiles("support")
        head = versions.head()
        if draw.random() < 0.3:  # somebody else gets in between
            other = draw.randrange(len(writers))
            try:
                versions.commit(policy(f"between {n}"), **AGREED, epoch=epochs[other])
                acked.append(f"between {n}")
            except Fenced:
                epochs[other], fenced = None, fenced + 1
        try:
            versions.commit(policy(f"c{n}"), **AGREED, epoch=epochs[who], parent=head.number if head else 0)
            acked.append(f"c{n}")
        except Fenced:
            epochs[who], fenced = None, fenced + 1
        except VersionTaken:
            taken += 1

    history = list(store.profiles("support").history())
    assert [version.profile.policies[0].text for version in history] == acked
    assert [version.epoch for version in history] == sorted(version.epoch for version in history)
    assert min(fenced, taken) > 10, "the case must hold both"
