"""Promotion: what comes into force, what is in the way, and what stands beside the version."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonpatch
import pytest

from ctxsteward.envelope import Store
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas.errors import Fenced
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument
from ctxsteward.schemas.profile_changes import DriftLimits
from ctxsteward.steward.drift.report import keyed
from ctxsteward.steward.gate.port import GateReport, Guard, GuardScores, judge_guards
from ctxsteward.steward.release.actors import ActionRefused
from ctxsteward.steward.release.approvals import Approvals
from ctxsteward.steward.release.changelog import changelog_text
from ctxsteward.steward.release.promotion import Promotion, assess, base_of, promote, rollback, stage
from ctxsteward.steward.release.rollbacks import taken_back
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.maintenance.gc import gc
from ctxsteward.store.profiles.versions import ProfileVersions, WriterLease

from ...store.profiles.agreed import EarlierVersions
from .people import (
    FACT,
    FIRST,
    LATER,
    LOCKED,
    SPEAKS,
    TURNED,
    WHEN,
    WORDING,
    WRITTEN,
    actors,
    record,
    rewritten,
    signer,
)

NIGHT = "2026-11-{:02}T04:00:00+00:00"


@pytest.fixture
def store() -> Store:
    made = memory_store()
    made.profiles("support", tenant="acme").commit(FIRST, who="ada", why="first", when=NIGHT.format(1))
    return made


@pytest.fixture
def versions(store: Store) -> ProfileVersions:
    return store.profiles("support", tenant="acme")


@pytest.fixture
def approvals(store: Store) -> Approvals:
    return Approvals(store, "support", "acme", actors=actors())


def passed(champion: ProfileDocument | None, challenger: ProfileDocument, value: float = 1.0) -> GateReport:
    return judge_guards(
        "test", (Guard("g", "higher", 0.0),), (GuardScores("c", "g", 1.0, value),), champion, challenger
    )


def promoted(
    store: Store, approvals: Approvals | None, challenger: ProfileDocument, *, when: str = WHEN, **more: Any
) -> Promotion:
    versions = store.profiles("support", tenant="acme")
    parent = more.pop("parent", versions.newest().number)
    drift = more.pop("drift", None) or assess(versions, challenger, parent=parent, when=when)
    gate = more.pop("gate", None) or passed(versions.at(parent).profile, challenger)
    return promote(
        store,
        "support",
        challenger,
        drift,
        gate,
        approvals,
        "steward",
        "nightly harvest",
        when,
        tenant="acme",
        parent=parent,
        **more,
    )


def objects(store: Store) -> dict[str, bytes]:
    return {info.key: store.objects.get(info.key) for info in store.objects.list("")}


def agree(approvals: Approvals, outcome: Promotion, *names: str) -> None:
    assert outcome.request is not None
    for name in names:
        approvals.answer(outcome.request.id, "approve", signer(name), when=WHEN, head=outcome.request.parent)


# -- what needs nobody -----------------------------------------------------------------------------------------


def test_facts_are_committed_by_themselves_and_once(store: Store, versions: ProfileVersions) -> None:
    first = promoted(store, None, FACT)
    before = objects(store)
    again = promoted(store, None, FACT, parent=1)

    assert (first.kind, first.version and first.version.number) == ("committed", 2)
    assert (again.kind, again.version and again.version.number) == ("committed", 2)
    assert objects(store) == before
    assert versions.newest().profile.meta == FACT.meta


def test_what_is_in_force_is_unchanged(store: Store) -> None:
    before = objects(store)

    assert promoted(store, None, FIRST).kind == "unchanged"
    assert objects(store) == before


def test_two_stores_with_the_same_nights_hold_the_same_versions() -> None:
    made = []
    for _ in range(2):
        store = memory_store()
        store.profiles("support", tenant="acme").commit(FIRST, who="ada", why="first", when=WHEN, commit_id="c" * 32)
        promoted(store, None, FACT)
        made.append({key: body for key, body in objects(store).items() if key.startswith("profiles/")})

    assert made[0] == made[1]


def test_the_first_version_needs_people_and_can_be_promoted(approvals: Approvals) -> None:
    store = memory_store()
    asking = Approvals(store, "support", "acme", actors=actors())
    drift = assess(store.profiles("support", tenant="acme"), FIRST, parent=0, when=WHEN)
    arguments = (store, "support", FIRST, drift, passed(None, FIRST), asking, "steward", "first", WHEN)

    held = promote(*arguments, tenant="acme")
    assert (held.kind, held.obstacle, held.people) == ("blocked", "needs_approval", 2)
    agree(asking, held, "ada", "ben")

    assert promote(*arguments, tenant="acme").kind == "committed"


# -- what needs people -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("challenger", "people"),
    [
        (WORDING, ("ada",)),
        (SPEAKS, ("cleo",)),
        (WRITTEN, ("ben",)),
        (LOCKED, ("ada", "ben")),
        (TURNED, ("ben", "cleo")),
    ],
    ids=["wording", "speaks", "written", "locked", "turned"],
)
def test_people_are_asked_and_then_it_is_committed(
    store: Store, approvals: Approvals, challenger: ProfileDocument, people: tuple[str, ...]
) -> None:
    outcome = promoted(store, approvals, challenger)
    for name in people:
        assert (outcome.kind, outcome.obstacle) == ("blocked", "needs_approval")
        agree(approvals, outcome, name)
        outcome = promoted(store, approvals, challenger)

    assert outcome.kind == "committed"
    assert outcome.version is not None
    beside = outcome.version.link.body["promotion"]
    assert [each["who"] for each in beside["approvals"]] == list(people)


def test_without_anybody_configured_it_waits(store: Store) -> None:
    outcome = promoted(store, None, WORDING)

    assert (outcome.kind, outcome.obstacle, outcome.people) == ("blocked", "needs_approval", 1)


def test_a_rejected_challenger_stays_out(store: Store, approvals: Approvals) -> None:
    outcome = promoted(store, approvals, WORDING)
    assert outcome.request is not None
    approvals.answer(outcome.request.id, "reject", signer("ben"), when=WHEN, head=1)

    assert promoted(store, approvals, WORDING).obstacle == "rejected"


def test_approvals_of_a_changed_challenger_do_not_count(store: Store, approvals: Approvals) -> None:
    agree(approvals, promoted(store, approvals, LOCKED), "ada", "ben")
    slipped = rewritten("policies", "refunds", "Unread books are refunded within 300 days of delivery.")

    assert promoted(store, approvals, slipped).obstacle == "needs_approval"
    with_a_record = LOCKED.model_copy(
        update={"meta": (*LOCKED.meta, record("x", "Send the parcels without a receipt."))}
    )
    assert promoted(store, approvals, with_a_record).obstacle == "needs_approval"
    assert promoted(store, approvals, LOCKED).kind == "committed"


# -- what is in the way ----------------------------------------------------------------------------------------


def test_a_guard_that_fell_stops_it_whoever_agrees(store: Store, approvals: Approvals) -> None:
    outcome = promoted(store, approvals, FACT, gate=passed(FIRST, FACT, 0.5))

    assert (outcome.kind, outcome.obstacle, outcome.why) == ("blocked", "gate_failed", "guards fell: g")


def test_reports_must_be_about_this_challenger(store: Store, versions: ProfileVersions, approvals: Approvals) -> None:
    mild = assess(versions, FACT, parent=1, when=WHEN)

    assert promoted(store, approvals, TURNED, drift=mild).obstacle == "other_drift"
    assert promoted(store, approvals, FACT, drift=mild.model_copy(update={"level": "INFO"})).obstacle == "other_drift"
    assert promoted(store, approvals, FACT, gate=passed(FIRST, WORDING)).obstacle == "other_gate"
    assert (
        promoted(store, approvals, FACT, gate=replace(passed(FIRST, FACT), digests=("", ""))).obstacle == "other_gate"
    )


def test_a_champion_that_moved_on_is_not_overwritten(store: Store, versions: ProfileVersions) -> None:
    drift, gate = assess(versions, FACT, parent=1, when=WHEN), passed(FIRST, FACT)
    assert promoted(store, None, fact(7)).kind == "committed"

    assert promoted(store, None, FACT, parent=1, drift=drift, gate=gate).obstacle == "stale_parent"


def test_a_writer_that_lost_its_lease_commits_nothing(store: Store) -> None:
    leases = [WriterLease(store, "support", "acme", owner=name, clock=lambda: 0.0) for name in ("a", "b")]
    old = leases[0].take(60)
    leases[1].take(60, force=True)
    assert old is not None

    with pytest.raises(Fenced):
        promoted(store, None, FACT, epoch=old.epoch)


# -- what stands beside a version ------------------------------------------------------------------------------


def test_reports_and_patch_are_kept_without_a_word_of_a_record(store: Store, versions: ProfileVersions) -> None:
    outcome = promoted(store, None, FACT, canary={"share": 0.1, "champion": 1})
    assert outcome.version is not None
    beside = outcome.version.link.body["promotion"]
    vault = store.vault("acme")
    kept = {name: json.loads(vault.get(beside[name]["blob"])) for name in ("drift", "gate", "patch")}

    assert (beside["level"], beside["touched"], beside["canary"]) == ("WARN", [], {"share": 0.1, "champion": 1})
    assert kept["drift"]["findings"][0]["kind"] == "added"
    assert len(kept["drift"]["findings"][0]["key"]) == 64
    assert kept["gate"]["passed"] is True
    text = json.dumps(kept)
    assert "euro" not in text
    assert "brief" not in text
    gc(store, now=4e9, grace_seconds=0)
    assert fsck(store, read_data=True).damage == ()


def test_the_kept_patch_leads_from_one_version_to_the_next_and_back(store: Store, approvals: Approvals) -> None:
    agree(approvals, promoted(store, approvals, WORDING), "ada")
    made = promoted(store, approvals, WORDING).version
    assert made is not None
    kept = json.loads(store.vault("acme").get(made.link.body["promotion"]["patch"]["blob"]))

    bare = [one.model_copy(update={"meta": ()}) for one in (FIRST, WORDING)]
    assert jsonpatch.apply_patch(keyed(bare[0]), kept["patch"]) == keyed(bare[1])
    assert jsonpatch.apply_patch(keyed(bare[1]), kept["inverse"]) == keyed(bare[0])


def test_a_promotion_is_about_its_commit_and_not_carried_on(store: Store, versions: ProfileVersions) -> None:
    promoted(store, None, FACT)
    versions.rollback(1, who="otto", why="complaints", when=WHEN)

    assert [told.promotion is None for told in versions.told()] == [True, False, True]


# -- the last approval -----------------------------------------------------------------------------------------


def fact(number: int) -> ProfileDocument:
    return FIRST.model_copy(update={"meta": (record(f"r{number}", f"Wants the shelf number {number} named."),)})


def test_the_cumulative_comparison_starts_at_the_last_version_of_a_person(
    store: Store, versions: ProfileVersions, approvals: Approvals
) -> None:
    limits = DriftLimits()
    assert base_of(versions, 1, when=WHEN, limits=limits) is None
    for number in range(2, 6):
        promoted(store, approvals, fact(number), when=NIGHT.format(number))
    found = base_of(versions, 5, when=NIGHT.format(6), limits=limits)
    assert found is not None
    assert (found.version, found.versions) == (1, 5)

    late = base_of(versions, 5, when=NIGHT.format(10), limits=limits)
    assert late is not None
    assert late.version == 3  # in force when the seven nights began

    rollback(store, "support", 1, who="otto", why="back", when=NIGHT.format(6), tenant="acme")
    assert base_of(versions, 6, when=NIGHT.format(7), limits=limits) is None  # what a person wrote is in force again
    assert base_of(versions, 5, when=NIGHT.format(5), limits=DriftLimits(window_nights=1)) is not None


def test_what_was_once_committed_by_hand_is_no_base(store: Store, approvals: Approvals) -> None:
    """A flip that an older program let in: what comes after it is compared with what people answer for."""
    turned = rewritten("policies", "refunds", "Do not refund unread books within 30 days of delivery.")
    EarlierVersions(store, "support", "acme").commit(turned, who="steward run", why="a file", when=NIGHT.format(2))
    versions = store.profiles("support", tenant="acme")
    night = turned.model_copy(update={"meta": (*turned.meta, A)})
    found = assess(versions, night, parent=2, when=NIGHT.format(25))

    assert found.cumulative is not None
    assert (found.cumulative.base, found.cumulative.level, found.level) == (1, "BLOCK", "BLOCK")
    held = promoted(store, approvals, night, when=NIGHT.format(25))
    assert (held.obstacle, held.people) == ("needs_approval", 2)


def test_the_last_approval_is_found_however_many_nights_ago(store: Store, approvals: Approvals) -> None:
    versions = store.profiles("support", tenant="acme")
    agree(approvals, promoted(store, approvals, WORDING), "ada")
    assert promoted(store, approvals, WORDING).kind == "committed"
    for number in range(3, 9):
        learned = WORDING.model_copy(update={"meta": (record(f"r{number}", f"Wants shelf {number} named first."),)})
        assert promoted(store, None, learned).kind == "committed"
    told = next(iter(versions.told(8)))

    assert told.promotion is not None
    assert told.promotion["approved"] == 2
    found = base_of(versions, 8, when=WHEN, limits=DriftLimits())
    assert found is not None
    assert (found.version, found.versions) == (2, 7)


# -- staging ---------------------------------------------------------------------------------------------------


def staged(store: Store, approvals: Approvals, challenger: ProfileDocument, who: str = "ada", **more: Any) -> Promotion:
    versions = store.profiles("support", tenant="acme")
    when = more.pop("when", WHEN)
    drift = assess(versions, challenger, parent=1, when=when)
    gate = more.pop("gate", None) or passed(versions.at(1).profile, challenger)
    return stage(store, "support", challenger, drift, gate, approvals, who, "why", when, tenant="acme", parent=1)


def test_whatever_is_staged_asks_somebody_else_and_brings_nothing_into_force(
    store: Store, versions: ProfileVersions, approvals: Approvals
) -> None:
    found = {name: staged(store, approvals, one) for name, one in CHALLENGERS.items()}

    assert {name: (one.kind, one.obstacle, one.people) for name, one in found.items()} == {
        "fact": ("blocked", "needs_approval", 1),
        "wording": ("blocked", "needs_approval", 1),
        "written": ("blocked", "needs_approval", 1),
        "locked": ("blocked", "needs_approval", 2),
        "turned": ("blocked", "needs_approval", 2),
    }
    assert all(one.request is not None and one.request.note == "why" for one in found.values())
    agree(approvals, found["wording"], "ben")
    again = staged(store, approvals, WORDING)
    assert again.why.endswith("has been approved; `promote` brings it into force")
    assert versions.newest().number == 1


CHALLENGERS = {"fact": FACT, "wording": WORDING, "written": WRITTEN, "locked": LOCKED, "turned": TURNED}


def test_an_author_is_no_reviewer_of_their_own_change(store: Store, approvals: Approvals) -> None:
    found = staged(store, approvals, WORDING, who="ada")
    assert found.request is not None
    with pytest.raises(ActionRefused, match="'ada' made this change"):
        approvals.answer(found.request.id, "approve", signer("ada"), when=WHEN, head=1)


def test_what_expired_can_be_asked_again(store: Store, approvals: Approvals) -> None:
    first, again = staged(store, approvals, WORDING), staged(store, approvals, WORDING, when=LATER)

    assert first.request is not None
    assert again.request is not None
    assert (again.request.id, again.request.state, again.request.when) == (first.request.id, "waiting", LATER)
    assert [one.when for one in approvals.requests(when=LATER, head=1)] == [LATER]


def test_what_a_guard_stops_is_put_before_nobody(store: Store, approvals: Approvals) -> None:
    assert staged(store, approvals, WORDING, gate=passed(FIRST, WORDING, 0.5)).obstacle == "gate_failed"
    assert approvals.requests(when=WHEN, head=1) == ()


def test_rolling_back_twice_is_one_version(store: Store, versions: ProfileVersions) -> None:
    promoted(store, None, FACT)
    told = {"who": "otto", "why": "complaints", "when": WHEN, "tenant": "acme"}

    assert rollback(store, "support", 1, **told).number == 3
    assert rollback(store, "support", 1, **told).number == 3
    assert versions.newest().profile.meta == FIRST.meta


def test_what_was_rolled_back_returns_by_a_persons_will_alone(store: Store, approvals: Approvals) -> None:
    promoted(store, None, FACT)
    rollback(store, "support", 1, who="otto", why="complaints", when=WHEN, tenant="acme")

    again = promoted(store, approvals, FACT)
    assert (again.obstacle, again.people, again.request and again.request.people) == ("needs_approval", 1, 1)
    assert promoted(store, approvals, fact(3)).kind == "committed"
    agree(approvals, promoted(store, approvals, FACT), "ada")
    assert promoted(store, approvals, FACT).kind == "committed"


A, B, C = (
    record(name, f"Wants the {what} named first.") for name, what in (("a", "shelf"), ("b", "author"), ("c", "year"))
)


def slice_of(*records: MetaRecord) -> ProfileDocument:
    return FIRST.model_copy(update={"meta": records})


def test_what_a_rollback_took_back_waits_in_whatever_company_it_comes(store: Store, approvals: Approvals) -> None:
    for number, challenger in enumerate((slice_of(A), slice_of(A, B), slice_of(B)), start=2):
        assert promoted(store, approvals, challenger, when=NIGHT.format(number)).kind == "committed"
    rollback(store, "support", 2, who="otto", why="complaints", when=NIGHT.format(5), tenant="acme")
    told = {"when": NIGHT.format(6)}

    reworded = B.model_copy(update={"text": "Wants the author's name first."})
    waits = {
        "again": slice_of(B),
        "beside another": slice_of(A, B, C),
        "dropped again": slice_of(C),
        "other sources": slice_of(A, B.model_copy(update={"sources": ("s-9§9",), "ts": WHEN})),
        "under another id": slice_of(A, B.model_copy(update={"id": "z"})),
        "in other words": slice_of(A, reworded),
    }
    assert {name: promoted(store, approvals, one, **told).obstacle for name, one in waits.items()} == dict.fromkeys(
        waits, "needs_approval"
    )
    assert promoted(store, approvals, slice_of(A, C), **told).kind == "committed"
    assert promoted(store, approvals, slice_of(A, B, C), **told).obstacle == "needs_approval", "versions later, too"


def test_what_a_person_brought_back_is_taken_back_no_more(store: Store, approvals: Approvals) -> None:
    promoted(store, approvals, slice_of(A))
    rollback(store, "support", 1, who="otto", why="complaints", when=WHEN, tenant="acme")
    agree(approvals, promoted(store, approvals, slice_of(A)), "ada")
    assert promoted(store, approvals, slice_of(A)).kind == "committed"
    assert promoted(store, approvals, slice_of(B)).kind == "committed"
    assert promoted(store, approvals, slice_of(A, B)).kind == "committed"

    rollback(store, "support", 1, who="otto", why="no", when=WHEN, tenant="acme")
    agree(approvals, promoted(store, approvals, slice_of(A)), "ada")
    assert promoted(store, approvals, slice_of(A)).kind == "committed"
    assert promoted(store, approvals, slice_of(A, C)).kind == "committed"
    assert promoted(store, approvals, slice_of(A, B, C)).obstacle == "needs_approval"


def test_what_is_taken_back_stands_in_the_chain_without_a_word(store: Store, approvals: Approvals) -> None:
    promoted(store, approvals, slice_of(*FIRST.meta, A))
    rollback(store, "support", 1, who="otto", why="complaints", when=NIGHT.format(5), tenant="acme")
    landed = promoted(store, approvals, slice_of(*FIRST.meta, C)).version
    assert landed is not None
    beside = landed.link.body["promotion"]["taken_back"]
    versions = store.profiles("support", tenant="acme")

    assert set(beside.values()) == {NIGHT.format(5)}
    assert all(change[0] in "#+-=" and len(change) == 65 for change in beside)
    assert taken_back(store, versions, 4).when == beside
    assert taken_back(store, versions, 4).keeps_out(A)
    assert taken_back(store, versions, 4).keeps_out(A, approved=NIGHT.format(4))
    assert not taken_back(store, versions, 4).keeps_out(A, approved=NIGHT.format(6))
    assert not taken_back(store, versions, 2).keeps_out(A)


# -- the page --------------------------------------------------------------------------------------------------


def test_the_changelog_page_names_keys_people_and_addresses_and_no_record(store: Store, approvals: Approvals) -> None:
    promoted(store, None, FACT)
    both = FACT.model_copy(update={"policies": LOCKED.policies})
    agree(approvals, promoted(store, approvals, both), "ada", "ben")
    promoted(store, approvals, both)
    rollback(store, "support", 2, who="otto", why="a [link](x) too many", when=WHEN, tenant="acme")
    versions = store.profiles("support", tenant="acme")
    page = changelog_text(versions)

    assert page == changelog_text(store.profiles("support", tenant="acme"))
    assert page.startswith("# Changelog of profile support\n\n## Version 4 (2026-11-22T04:00:00+00:00)\n")
    assert "\nBy otto: a \\[link\\](x) too many. It is version 2 again.\n" in page
    assert f"it was approved by ada ({WHEN}), ben ({WHEN}). To look up: drift report `" in page
    assert "nobody had to approve it. To look up: " in page
    words = (LOCKED.policies[0].text, FIRST.policies[0].text)
    assert "- `policies.refunds` was changed: “{1}” → “{0}”, `".format(*words) in page
    assert "- A record that everybody is shown was added: `" in page
    assert page.count("\n## Version ") == 4
    assert not any(word in page for word in ("euro", "Wants", "brief"))


def test_an_empty_chain_has_a_page() -> None:
    assert (
        changelog_text(memory_store().profiles("new"))
        == "# Changelog of profile new\n\nNothing has been committed yet.\n"
    )
