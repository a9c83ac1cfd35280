"""The canary: sessions keep their version, worse is noticed, chance is not, and a rollback happens once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, strategies as st

from ctxsteward.envelope import Store
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import UnsupportedVersion
from ctxsteward.steward.harvest.batches import SessionUse
from ctxsteward.steward.release.approvals import Approvals, canary_of
from ctxsteward.steward.release.assignment import is_challenger, profile_for, running, started, version_for
from ctxsteward.steward.release.canary import (
    CanaryArm,
    CanaryDecision,
    Kind,
    arm_of,
    chance,
    decide,
    settle,
)
from ctxsteward.steward.settings import CanaryLimits
from ctxsteward.store.crypto.keyring import AddressKey
from ctxsteward.store.names import steward_folder

from .people import FACT, FIRST, WHEN, actors

KEY = AddressKey(b"k" * 32)
SESSIONS = [f"s-{number}" for number in range(4_000)]


def share(sessions: list[str], part: float, version: int = 2) -> float:
    return sum(is_challenger(one, KEY, profile="p", version=version, share=part) for one in sessions) / len(sessions)


# -- assignment ------------------------------------------------------------------------------------------------


def test_the_share_of_sessions_is_kept_and_sticks_when_it_grows() -> None:
    small = {one for one in SESSIONS if is_challenger(one, KEY, profile="p", version=2, share=0.1)}
    large = {one for one in SESSIONS if is_challenger(one, KEY, profile="p", version=2, share=0.3)}

    assert 0.08 < len(small) / len(SESSIONS) < 0.12
    assert small < large
    assert (share(SESSIONS, 0.0), share(SESSIONS, 1.0)) == (0.0, 1.0)


def test_another_version_draws_other_sessions() -> None:
    first = {one for one in SESSIONS if is_challenger(one, KEY, profile="p", version=2, share=0.5)}
    second = {one for one in SESSIONS if is_challenger(one, KEY, profile="p", version=3, share=0.5)}

    assert 0.2 < len(first & second) / len(SESSIONS) < 0.3


@pytest.mark.parametrize("part", [0.0, -0.1, 1.5])
def test_a_share_that_is_none_is_refused(part: float) -> None:
    with pytest.raises(InputError, match="canary share"):
        started(part, 1)


# -- deciding --------------------------------------------------------------------------------------------------

GOOD = CanaryArm(sessions=300, turns=3_000, corrections=60, fired=200, obeyed=190)


def like(sessions: int, *, corrections: int = 0, missed: int = 0) -> CanaryArm:
    return CanaryArm(
        sessions=sessions,
        turns=10 * sessions,
        corrections=corrections,
        fired=sessions,
        obeyed=sessions - missed,
    )


class Case(NamedTuple):
    id: str
    challenger: CanaryArm
    kind: Kind
    why: str
    nights: int = 2
    guards: tuple[str, ...] = ()


CASES = (
    Case("as good", like(60, corrections=12, missed=3), "keep", "no signal is worse with 60 principals"),
    Case("better", like(60), "keep", "no signal is worse"),
    Case("no session yet", CanaryArm(), "extend", "0 of 30 principals"),
    Case("too few", like(12), "extend", "12 of 30 principals"),
    Case("not obeyed by few", like(10, missed=8), "rollback", "obeyed_rate is worse"),
    Case("corrections", like(60, corrections=40), "rollback", "correction_rate is worse"),
    Case("not obeyed", like(60, missed=20), "rollback", "obeyed_rate is worse"),
    Case("perhaps chance", like(40, missed=5), "extend", "obeyed_rate looks worse"),
    Case("a guard fell", like(60), "rollback", "guard hit_rate fell", guards=("hit_rate",)),
    Case("never proved", like(40, missed=5), "keep", "nothing was proved against it in 7 nights", nights=7),
    Case("hardly used", like(3), "keep", "of few principals", nights=9),
    Case("bad at the end", like(60, missed=20), "rollback", "obeyed_rate is worse", nights=9),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_decisions(case: Case) -> None:
    found = decide(GOOD, case.challenger, nights=case.nights, failed_guards=case.guards)

    assert (found.kind, case.why in "; ".join(found.reasons)) == (case.kind, True), found


# -- counting --------------------------------------------------------------------------------------------------


def use(number: int, version: int, voice: str = "", *, turns: int = 4, corrections: int = 0) -> SessionUse:
    """One session; one of nobody known without a voice."""
    arm = {"sessions": 1, "turns": turns, "corrections": corrections, "fired": turns, "obeyed": turns - corrections}
    return SessionUse(f"s-{number}", 0, {}, (), version, arm, voice)


def crowd(version: int, count: int, start: int, *, bad: int = 0) -> list[SessionUse]:
    """So many people with a session each, so many of whom correct the assistant once."""
    return [use(start + at, version, f"v-{start + at}", corrections=int(at < bad)) for at in range(count)]


def decided(uses: Sequence[SessionUse]) -> Kind:
    champion, challenger = (arm_of(uses, version) for version in (1, 2))
    return decide(champion, challenger, nights=2).kind


@pytest.mark.parametrize("sessions", [1, 2, 50])
def test_one_person_rolls_back_no_version_however_often_they_correct_it(sessions: int) -> None:
    honest = [*crowd(1, 60, 0, bad=2), *crowd(2, 60, 100, bad=2)]
    angry = [use(1_000 + at, 2, "mallory", turns=8, corrections=8) for at in range(sessions)]
    assert decided([*honest, *angry]) == decided(honest) == "keep"


@pytest.mark.parametrize("sessions", [1, 40])
def test_one_person_keeps_no_bad_version_however_much_they_talk(sessions: int) -> None:
    honest = [*crowd(1, 60, 0, bad=1), *crowd(2, 20, 100, bad=12)]
    quiet = [use(1_000 + at, 2, "mallory", turns=400) for at in range(sessions)]
    assert decided([*honest, *quiet]) == decided(honest) == "rollback"


def test_one_person_with_many_sessions_does_not_end_a_canary_early() -> None:
    assert decided([*crowd(1, 60, 0), *(use(100 + at, 2, "mallory") for at in range(40))]) == "extend"


def test_sessions_of_nobody_known_count_one_by_one() -> None:
    assert arm_of([use(at, 2) for at in range(5)], 2).sessions == 5


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9), st.integers(0, 9)), max_size=30))
def test_nobody_counts_more_than_once_in_any_signal(told: list[tuple[int, int, int]]) -> None:
    uses = [
        use(at, 2, f"v-{who}", turns=turns, corrections=min(turns, corrections))
        for at, (who, turns, corrections) in enumerate(told)
    ]
    people = len({who for who, _, _ in told})
    assert all(count <= of <= people for count, of in arm_of(uses, 2).bad())


# -- the test --------------------------------------------------------------------------------------------------


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_the_exact_test_is_a_probability_that_falls_as_the_new_arm_gets_worse(a: int, b: int, c: int, d: int) -> None:
    bad, all_, bad_new, all_new = min(a, b), max(a, b), min(c, d), max(c, d)
    p = chance(bad, all_, bad_new, all_new)

    assert 0.0 <= p <= 1.0
    if all_ and bad_new < all_new:
        assert chance(bad, all_, bad_new + 1, all_new) <= p + 1e-9


def test_the_exact_test_agrees_with_a_hand_computed_table() -> None:
    """The lady tasting tea: all four right of four, 1 in 70 (Fisher 1935)."""
    assert chance(0, 4, 4, 4) == pytest.approx(1 / 70)


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(InputError, match="of 3 turns"):
        decide(GOOD, CanaryArm(turns=3, corrections=4), nights=1)


def test_limits_are_settings() -> None:
    few = like(12)

    assert decide(GOOD, few, nights=2, limits=CanaryLimits(min_sessions=10)).kind == "keep"
    assert decide(GOOD, few, nights=2, limits=CanaryLimits(max_nights=2)).kind == "keep"


# -- acting ----------------------------------------------------------------------------------------------------


@pytest.fixture
def store() -> Store:
    made = memory_store()
    versions = made.profiles("support", tenant="acme")
    versions.commit(FIRST, who="ada", why="first", when=WHEN)
    beside = {"level": "INFO", "canary": started(0.25, 1)}
    versions.commit(FACT, who="steward", why="night", when=WHEN, promotion=beside)
    return made


@pytest.fixture
def approvals(store: Store) -> Approvals:
    return Approvals(store, "support", "acme", actors=actors())


def assigned(store: Store) -> set[int]:
    return {version_for(store, "support", one, tenant="acme") for one in SESSIONS[:60]}


def ended(kind: Kind) -> CanaryDecision:
    return CanaryDecision(kind=kind, reasons=("obeyed_rate is worse (p = 0.001)",))


def test_sessions_are_shared_out_while_the_canary_runs(store: Store, approvals: Approvals) -> None:
    assert assigned(store) == {1, 2}
    assert (
        settle(store, "support", ended("extend"), approvals, version=2, who="steward", when=WHEN, tenant="acme") is None
    )
    assert assigned(store) == {1, 2}


def test_a_session_is_opened_with_the_version_that_it_is_assigned(store: Store) -> None:
    names = SESSIONS[:60]
    opened = {
        one: store.session(one, tenant="acme", profile=profile_for(store, "support", one, tenant="acme"))
        for one in names
    }

    assert {one: session.state.head.profile["version"] for one, session in opened.items()} == {
        one: version_for(store, "support", one, tenant="acme") for one in names
    }


def test_keeping_ends_it_and_all_sessions_get_the_new_version(store: Store, approvals: Approvals) -> None:
    settle(store, "support", ended("keep"), approvals, version=2, who="steward", when=WHEN, tenant="acme")

    assert assigned(store) == {2}
    assert running(store, store.profiles("support", tenant="acme").newest(), profile="support", tenant="acme") is None


def test_rolling_back_brings_the_champion_back_once(store: Store, approvals: Approvals) -> None:
    told = {"version": 2, "who": "steward", "when": WHEN, "tenant": "acme"}
    landed = settle(store, "support", ended("rollback"), approvals, **told)
    before = [info.key for info in store.objects.list("")]
    again = settle(store, "support", ended("rollback"), approvals, **told)

    assert landed is not None
    assert (landed.number, landed.profile.meta, landed.changelog.restores) == (3, FIRST.meta, 1)
    assert again is None
    assert [info.key for info in store.objects.list("")] == before
    assert assigned(store) == {3}
    assert canary_of(store, 2, profile="support", tenant="acme") == "rollback"


def test_how_a_canary_ended_is_not_guessed_from_links_of_a_later_program(store: Store) -> None:
    reviews = store.chain(steward_folder("acme", "support", "reviews"), tenant="acme")
    reviews.append(reviews.head(), {"schema_version": 2, "kind": "canary", "version": 2, "ended": "kept"})

    with pytest.raises(UnsupportedVersion):
        profile_for(store, "support", "s-1", tenant="acme")


def test_a_version_that_is_no_canary_is_left_alone(store: Store, approvals: Approvals) -> None:
    told = {"version": 1, "who": "steward", "when": WHEN, "tenant": "acme"}

    assert settle(store, "support", ended("rollback"), approvals, **told) is None
    assert store.profiles("support", tenant="acme").newest().number == 2
