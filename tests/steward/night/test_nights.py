"""Whole nights with the real stages: made up for in any order, killed, dry, after deletions, on a new machine.

Their gate replays all of its cases with CTXSTEWARD_SOAK=1 (`desk.night`).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from random import Random

import pytest

from ctxsteward.envelope import Profile, open_store
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument, ProfileEntry
from ctxsteward.steward.night.chain import NightChain
from ctxsteward.steward.night.report import NightReport
from ctxsteward.steward.settings import NightSettings
from ctxsteward.steward.setup import ledger_path
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.maintenance.gc import gc

from ...examples import SOAK
from ...store.crashes.points import KILLED
from .desk import DAY_SECONDS, NOON, SHARED, fill, keys_in, night, say, settings_of
from .kills import killed

DAYS = [date(2026, 11, 15) + timedelta(days=day) for day in range(7)]


def texts(settings: NightSettings) -> set[str]:
    """What the slice in force says."""
    with open_store(settings.store) as store:
        head = store.profiles("support", tenant="acme").head()
        return {record.text for record in head.profile.meta} if head else set()


def on(settings: NightSettings, day: date) -> NightReport:
    """The night of a day, which reads what had changed by its end; made up for."""
    until = f"{day + timedelta(days=1)}T00:00:00+00:00"
    return night(settings.model_copy(update={"night": str(day), "until": until, "keep_places": False}))


def test_what_three_people_said_of_the_work_comes_into_force_and_what_is_personal_does_not(tmp_path: Path) -> None:
    fill(tmp_path / "in", 15)
    settings = settings_of(tmp_path)
    report = night(settings)
    assert (report.outcome, report.version, report.exit_code) == ("promoted", 1, 0)
    assert texts(settings) == set(SHARED)
    assert {change[2:].partition(" [")[0] for change in report.changes} == set(SHARED)
    again = night(settings)
    assert (again.outcome, again.number, again.final) == ("unchanged", None, report.final)


def test_seven_days_shuffled_and_twice_end_alike(tmp_path: Path) -> None:
    for number, _ in enumerate(DAYS):
        fill(tmp_path / "in", 5, 5 * number, seconds=NOON + number * DAY_SECONDS)
    finals = set()
    for attempt in range(3 if SOAK else 2):
        root = tmp_path / str(attempt)
        keys_in(root / "store", tmp_path / "keys")
        (root / "in").symlink_to(tmp_path / "in")
        order = DAYS.copy()
        Random(attempt).shuffle(order) if attempt else None
        for day in order:
            report = on(settings_of(root), day)
        for day in order:
            again = on(settings_of(root), day)
            assert (again.outcome, again.number, again.final) == ("unchanged", None, report.final)
        finals.add((report.final, report.night))
    assert len(finals) == 1
    assert report.night == "2026-11-21"


def die(root: str, stop: str) -> None:
    def tell(boundary: str) -> None:
        if boundary == stop:
            os._exit(KILLED)

    night(settings_of(Path(root), batch_transcripts=4), tell=tell)


def only_night(shared: Path, root: Path, stop: str | None = None) -> tuple[object, ...]:
    """What a night leaves behind in `root`, repeated if it was killed at a boundary."""
    keys_in(root / "store", shared / "keys")
    shutil.copytree(shared / "in", root / "in", copy_function=shutil.copy2)
    settings = settings_of(root, batch_transcripts=4)
    if stop:
        killed(die, str(root), stop)
    report = night(settings)
    with open_store(settings.store) as store:
        found, *more = NightChain(store, "acme", "support").history()
        assert more == []
        version = store.profiles("support", tenant="acme").newest()
        plain = replace(found, marks={}, batches=())  # they name the folder, which is another one here
        damage = [finding.kind for finding in fsck(store, read_data=True).damage]
        assert damage == ["journal_missing"], "its keys were there before its journal"
    return plain, version.profile.meta, report.final


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[object, ...]]:
    """Keys and transcripts, and what a night over them leaves behind that nobody kills."""
    shared = tmp_path_factory.mktemp("whole")
    fill(shared / "in", 15)
    return shared, only_night(shared, shared / "night")


@pytest.mark.parametrize("stop", ["batch", "gate", "promoted"])  # `test_kills` tries every boundary
def test_killed_at_a_boundary_it_is_repeated_to_the_same_bytes(
    stop: str, whole: tuple[Path, tuple[object, ...]], tmp_path: Path
) -> None:
    shared, unbroken = whole
    assert only_night(shared, tmp_path, stop) == unbroken


def objects(settings: NightSettings) -> dict[str, bytes]:
    with open_store(settings.store) as store:
        return {info.key: store.objects.get(info.key) for info in store.objects.list("")}


def scan(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file())


def test_a_transcript_taken_back_where_it_came_from_leaves_with_all_it_gave(tmp_path: Path) -> None:
    fill(tmp_path / "in", 15)
    secret = "No, the corner table at Luigi's costs 7 EUR, not 9 EUR."
    say(tmp_path / "in", "secret", secret, principal="user-0")
    settings = settings_of(tmp_path)
    night(settings)
    assert secret.encode() in scan(tmp_path / "store")
    say(tmp_path / "in", "00000", SHARED[0], principal="user-0", seconds=NOON + 60, status="deleted")
    say(tmp_path / "in", "secret", secret, principal="user-0", seconds=NOON + 60, status="deleted")
    report = night(settings.model_copy(update={"night": "2026-11-23"}))
    assert report.skipped == {"deleted": 2}
    assert report.outcome == "promoted"
    assert texts(settings) == set(SHARED[1:]), "two people are not enough"
    assert secret.encode() not in scan(tmp_path / "store")
    assert night(settings).outcome == "unchanged"


def test_a_night_of_another_profiles_sessions_alone_ends_well_and_says_so(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, sources=("store",), profile="support")
    sales = Profile.from_document(ProfileDocument(name="sales", version=1))
    with open_store(settings.store) as store:
        for number in range(3):
            session = store.session(f"sale-{number}", tenant="acme", profile=sales)
            session.append({"role": "user", "content": SHARED[0]}, principal=f"p{number}", ts="2026-11-20T09:00:00Z")
    report = night(settings)
    assert (report.outcome, report.exit_code, report.alerts) == ("unchanged", 0, ())
    assert report.skipped == {"other_profile": 3}
    assert (report.stages["due"], report.stages["harvested"], report.number) == (3, 0, 1)
    again = night(settings.model_copy(update={"night": "2026-11-23"}))
    assert (again.stages["due"], again.skipped, again.alerts) == (0, {}, ()), "what was looked at is not due again"
    with open_store(settings.store) as store:
        told = NightChain(store, "acme", "support").reports(2)
    assert [report.alerts for report in told] == [(), ()]


def test_gc_keeps_what_nights_rest_on_and_status_says_how_it_stands(tmp_path: Path) -> None:
    fill(tmp_path / "in", 15)
    settings = settings_of(tmp_path)
    night(settings)
    with open_store(settings.store) as store:
        assert gc(store, now=1e12, grace_seconds=0).blobs == ()
        found, head = NightChain(store, "acme", "support").reports(9), store.profiles("support", tenant="acme").newest()
    ledger_path(settings).unlink()
    assert night(settings).outcome == "unchanged"
    assert [(one.number, one.version, one.stages["harvested"]) for one in found] == [(1, 1, 15)]
    assert (head.number, len(head.profile.meta)) == (1, 3)


WRITTEN = (
    MetaRecord(id="opening", text="The desk is open from 9 to 17.", sources=("handbook§1",), approved=True),
    MetaRecord(id="parking", text="Parking is free for guests.", sources=("handbook§2",)),
)


def test_a_night_keeps_what_people_wrote_and_adds_to_it(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    with open_store(settings.store) as store:
        profile = ProfileDocument(
            name="support", persona=(ProfileEntry(id="voice", text="You answer calmly."),), meta=WRITTEN
        )
        store.profiles("support", tenant="acme").commit(
            profile, who="ada", why="first version", when="2026-11-21T09:00:00Z"
        )
    for number in range(3):
        say(tmp_path / "in", f"s-{number}", SHARED[0], principal=f"p{number}")
    report = night(settings)
    assert (report.outcome, report.version) == ("promoted", 2)
    with open_store(settings.store) as store:
        meta = store.profiles("support", tenant="acme").newest().profile.meta
    assert meta[:2] == WRITTEN
    assert [record.text for record in meta[2:]] == [SHARED[0]]
    assert night(settings.model_copy(update={"night": "2026-11-23"})).outcome == "unchanged"


def test_a_session_whose_log_row_was_altered_stops_no_night(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, sources=("store",))
    with open_store(settings.store) as store:
        store.session("s", tenant="acme").append({"role": "user", "content": "Hi."}, ts="2026-11-15T08:00:00Z")
    with closing(sqlite3.connect(tmp_path / "store" / "journal.sqlite")) as db, db:
        db.execute("UPDATE logs SET length = length - 1")
    assert [refused.reason for refused in night(settings).quarantined] == ["unreadable"]
