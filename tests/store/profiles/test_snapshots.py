"""Snapshots: a profile's head as a published envelope, once, without derived text in the clear."""

from __future__ import annotations

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, Store
from ctxsteward.envelope.building.snapshots import SnapshotResult, Snapshots
from ctxsteward.envelope.testing import CharTokenizer, FirstLine, memory_store
from ctxsteward.schemas import BudgetExceeded, ReferenceNotFound
from ctxsteward.schemas.errors import Damaged
from ctxsteward.schemas.publish import validate
from ctxsteward.store.profiles.proposal import same_text

from .agreed import agreed
from .golden import CALM, EURO, FIRST, NAME, SECOND, TENANT, WHEN, builder

NOTE = {"who": "ada", "why": "nightly", "when": WHEN}


@pytest.fixture
def store() -> Store:
    return memory_store()


@pytest.fixture
def snapshots(store: Store) -> Snapshots:
    return Snapshots(store, TENANT)


def within(**budgets: int) -> EnvelopeBuilder:
    return EnvelopeBuilder(
        tokenizer=CharTokenizer(), window_tokens=9_000, summarizer=FirstLine(), budgets=Budgets(**budgets)
    )


def take(store: Store, profile: Profile, made_by: EnvelopeBuilder | None = None) -> SnapshotResult:
    versions = store.profiles(NAME, tenant=TENANT)
    head = versions.head()
    is_new = head is not None and not same_text(head.profile, profile)
    rests_on = agreed(store, profile, who=NOTE["who"], when=NOTE["when"], tenant=TENANT, name=NAME) if is_new else None
    version = versions.commit(profile, **NOTE, promotion=rests_on)
    return Snapshots(store, TENANT).take(version, made_by or builder(), who="backfill", when=WHEN)


def test_a_snapshot_is_the_envelope_of_a_session_that_has_said_nothing(store: Store, snapshots: Snapshots) -> None:
    taken = take(store, SECOND)
    read = snapshots.at(NAME, 1)
    session = store.session("snapshot", tenant=TENANT, profile=store.profiles(NAME, tenant=TENANT).newest().profile)
    built = builder().build(session)

    assert taken.written
    assert read.envelope == taken.envelope.document()
    assert read.address == built.address
    assert read.envelope["sections"] == built.document()["sections"]
    assert read.envelope["sections"]["dynamic"]["content"] == []
    assert read.envelope["profile_version"] == store.profiles(NAME, tenant=TENANT).newest().address
    validate("envelope", read.envelope)


def test_the_same_head_twice_is_one_snapshot(store: Store, snapshots: Snapshots) -> None:
    take(store, FIRST)
    before = {info.key for info in store.objects.list("")}
    again = take(store, FIRST)

    assert (again.number, again.written) == (1, False)
    assert {info.key for info in store.objects.list("")} == before
    assert take(store, SECOND).number == 2
    assert [snapshot.version for snapshot in snapshots.history(NAME)] == [1, 2]


def test_other_budgets_are_another_envelope(store: Store) -> None:
    wide = within(meta_tokens=500)
    assert take(store, FIRST).number == 1
    assert take(store, FIRST, wide).number == 2


def test_taking_a_snapshot_writes_no_session(store: Store) -> None:
    take(store, SECOND)

    assert store.sessions(tenant=TENANT) == []
    assert not [info.key for info in store.objects.list("sessions/")]


def test_no_record_stands_in_a_snapshot_in_the_clear(store: Store) -> None:
    """Nor its id, where one did not fit and a finding says so."""
    narrow = within(meta_tokens=90)
    taken = take(store, SECOND, narrow)
    everything = b"".join(info.key.encode() + store.objects.get(info.key) for info in store.objects.list(""))

    assert [finding.kind for finding in taken.envelope.findings] == ["meta_records_left_out"]
    for told in (CALM.text, EURO.text, "euro", "records: calm", "s-7", "s-3"):
        assert told.encode() not in everything
    assert b"calm and exact" in everything, "the persona is the operator's"


def test_an_erased_record_is_gone_from_every_snapshot(store: Store, snapshots: Snapshots) -> None:
    take(store, FIRST)
    take(store, SECOND)
    store.profiles(NAME, tenant=TENANT).erase(lambda record: record == CALM, **NOTE)
    texts = [each.envelope["sections"]["meta"]["content"][0]["text"] for each in snapshots.history(NAME)]

    assert all("calm" not in text for text in texts)
    assert "- Money is shown in euro. [euro]" in texts[1]
    assert [[finding.kind for finding in each.findings] for each in snapshots.history(NAME)] == [
        ["meta_record_erased"],
        ["meta_record_erased"],
    ]
    version = store.profiles(NAME, tenant=TENANT).newest()
    assert snapshots.take(version, builder(), who="backfill", when=WHEN).number == 3, "what is shown now is less"


def test_a_head_over_its_budget_is_not_cut_and_nothing_is_written(store: Store) -> None:
    narrow = within(system_tokens=10)
    with pytest.raises(BudgetExceeded):
        take(store, FIRST, narrow)
    assert list(store.objects.list("snapshots/")) == []


def test_what_is_not_there_is_not_found_and_what_was_changed_is_damage(store: Store, snapshots: Snapshots) -> None:
    with pytest.raises(ReferenceNotFound, match="it has none"):
        snapshots.at(NAME, 1)
    take(store, FIRST)
    with pytest.raises(ReferenceNotFound, match="it has snapshots 1 to 1"):
        snapshots.at(NAME, 2)
    (info,) = store.objects.list("snapshots/")
    data = store.objects.get(info.key)
    store.objects.delete(info.key)
    store.objects.put(info.key, data.replace(b"Short answers", b"Long answers!"))
    with pytest.raises(Damaged):
        snapshots.at(NAME, 1)
