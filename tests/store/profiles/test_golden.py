"""Golden files: what was once written is read for ever, later optional fields are kept, another major is refused."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ctxsteward.envelope import Store
from ctxsteward.envelope.building.snapshots import Snapshots
from ctxsteward.schemas.errors import UnsupportedVersion
from ctxsteward.schemas.publish import validate
from ctxsteward.store.names import versions_folder
from ctxsteward.store.profiles.versions import Lease, WriterLease

from .agreed import agreed
from .golden import CALM, FIRST, FOLDER, NAME, SECOND, TENANT, WHEN, builder, current, load, short

ENTRY = json.loads((FOLDER / "changelog_entry.json").read_text())


@pytest.mark.parametrize("kind", ["current", "short", "newer"])
def test_versions_read_as_they_were_committed(kind: str) -> None:
    versions = load(kind).profiles(NAME, tenant=TENANT)

    assert [version.profile for version in versions.history()] == [
        FIRST.model_copy(update={"version": 1}),
        SECOND.model_copy(update={"version": 2}),
    ]
    assert [version.findings for version in versions.history()] == [(), ()]
    assert versions.at(2).changelog.model_dump(mode="json") == ENTRY
    validate("changelog_entry", ENTRY)


def test_the_slice_and_the_lease_read_as_they_were_written() -> None:
    store = load("current")
    versions = store.profiles(NAME, tenant=TENANT)

    assert versions.slice_text(versions.newest()) == (
        "recommendations:\n  euro: Money is shown in euro. [s-3§8, s-4§9]\n"
        "learned, for reference, not instructions:\n  calm: Prefers calm answers. [s-7§12]"
    )
    assert WriterLease(store, NAME, TENANT, owner="x", clock=lambda: 0.0).holder() == Lease(1, "night", 1_060.0)


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("current", "  calm: Prefers calm answers. [s-7§12]"),
        ("short", "- Prefers calm answers. [calm]"),
        ("newer", "  calm: Prefers calm answers. [s-7§12]"),
    ],
)
def test_snapshots_read_as_they_were_written(kind: str, line: str) -> None:
    (snapshot,) = Snapshots(load(kind), TENANT).history(NAME)

    assert (snapshot.version, snapshot.who, snapshot.when, snapshot.findings) == (2, "backfill", WHEN, ())
    validate("envelope", snapshot.envelope)
    texts = {name: [each["text"] for each in part["content"]] for name, part in snapshot.envelope["sections"].items()}
    assert texts["meta"][0].endswith(f":\n{line}")
    assert any("Refund within 14 days. 你好" in text for text in texts["system"])
    assert texts["dynamic"] == []


@pytest.mark.parametrize("make", [current, short])
def test_versions_written_today_are_byte_for_byte_the_golden_ones(make: Callable[[], Store]) -> None:
    """Of the vault, whose nonces are random, the names are."""
    now, golden = make().objects, load(make.__name__).objects
    for info in golden.list(f"{versions_folder(TENANT, NAME)}/"):
        assert now.get(info.key) == golden.get(info.key), info.key
    for folder in ("profiles/", "blobs/", "keys/"):
        assert [info.key for info in now.list(folder)] == [info.key for info in golden.list(folder)]


def test_what_a_later_program_added_survives_a_commit_and_a_rollback_of_this_one() -> None:
    store = load("newer")
    versions = store.profiles(NAME, tenant=TENANT)
    shorter = versions.newest().profile.model_copy(update={"persona": ()})
    recommitted = versions.commit(
        shorter,
        who="ada",
        why="shorter",
        when=WHEN,
        promotion=agreed(store, shorter, who="ada", when=WHEN, tenant=TENANT, name=NAME),
    )
    back = versions.rollback(1, who="ada", why="back", when=WHEN)
    for made in (recommitted, back):
        body = versions.at(made.number).link.body
        assert body["canary"] == {"share": 0.25}
        assert body["profile"]["language"] == "de"
        assert body["profile"]["policies"][0]["evidence"] == ["e-1"]
    (calm,) = [kept for record, kept in recommitted.records if record == CALM]
    assert calm.blob == versions.at(2).link.body["meta"][-1]["blob"], "the record with its field, not a copy without it"


def test_another_major_fails_closed() -> None:
    store = load("major")
    versions, snapshots = store.profiles(NAME, tenant=TENANT), Snapshots(store, TENANT)
    before = [info.key for info in store.objects.list("")]
    for read in (
        versions.head,
        lambda: versions.at(1),
        lambda: list(versions.changelog()),
        lambda: versions.rollback(1, who="ada", why="back", when=WHEN),
        lambda: versions.commit(FIRST, who="ada", why="over it", when=WHEN),
        lambda: snapshots.at(NAME, 1),
        lambda: snapshots.take(load("current").profiles(NAME, tenant=TENANT).newest(), builder(), who="a", when=WHEN),
    ):
        with pytest.raises(UnsupportedVersion, match="schema_version 2"):
            read()
    assert [info.key for info in store.objects.list("")] == before
