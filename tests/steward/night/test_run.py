"""The shell of a night: what it does in which order, what it keeps, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ctxsteward.envelope.store import Store, open_store
from ctxsteward.schemas.profile_changes import DriftLevel
from ctxsteward.steward.harvest.batches import batched
from ctxsteward.steward.ingest.items import SourceItem
from ctxsteward.steward.night.chain import NightChain
from ctxsteward.steward.night.run import run_night
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.maintenance.gc import gc

from .doubles import PROFILE, SETTINGS, TENANT, Lines, shell, some, write


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"file:{tmp_path / 'store'}") as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "in", some(20))
    return tmp_path / "in"


def objects(store: Store) -> dict[str, bytes]:
    return {info.key: store.objects.get(info.key) for info in store.objects.list("")}


def governed(store: Store) -> dict[str, bytes]:
    """All but the lease."""
    return {key: body for key, body in objects(store).items() if "/writers/" not in key}


def test_a_night_passes_every_stage_once_in_order(store: Store, folder: Path) -> None:
    lines, passed = Lines(store, folder), []
    report = run_night(shell(store, lines, tell=passed.append))
    assert [stage for stage in passed if stage != "batch"] == [
        "due",
        "harvested",
        "absorbed",
        "reconciled",
        "admitted",
        "fitted",
        "staged",
        "drift",
        "gate",
        "promoted",
        "linked",
        "canary",
    ]
    assert report.stages == {
        "due": 20,
        "harvested": 20,
        "absorbed": 20,
        "reconciled": 20,
        "admitted": 10,
        "fitted": 5,
        "staged": 1,
        "promoted": 1,
    }
    assert (report.outcome, report.version, report.number, report.exit_code) == ("promoted", 1, 1, 0)


def test_the_same_night_again_writes_nothing(store: Store, folder: Path) -> None:
    lines = Lines(store, folder)
    first = run_night(shell(store, lines))
    before = governed(store)
    again = run_night(shell(store, lines))
    assert (again.outcome, again.number, again.final) == ("unchanged", None, first.final)
    assert governed(store) == before
    assert len(lines.read) == 20


def test_a_night_that_finds_nothing_new_is_noted_by_date(store: Store, folder: Path) -> None:
    lines = Lines(store, folder)
    run_night(shell(store, lines))
    later = run_night(shell(store, lines, night="2026-11-23"))
    assert (later.outcome, later.number, later.version) == ("unchanged", 2, 1)


def test_only_what_changed_is_read(store: Store, folder: Path) -> None:
    lines = Lines(store, folder)
    run_night(shell(store, lines))
    write(folder, {"0003.txt": "insight of another day\n", "9999.txt": "one more insight here\n"})
    lines.read.clear()
    report = run_night(shell(store, lines, night="2026-11-23"))
    assert sorted(lines.read) == ["0003.txt", "9999.txt"]
    assert report.stages["due"] == 2


def test_a_full_night_reads_everything_anew_and_changes_nothing(store: Store, folder: Path) -> None:
    lines = Lines(store, folder)
    first = run_night(shell(store, lines))
    full = SETTINGS.model_copy(update={"full": True})
    again = run_night(shell(store, lines, full))
    assert len(lines.read) == 40
    assert (again.outcome, again.final, again.version) == ("unchanged", first.final, 1)


def test_a_second_night_meanwhile_does_nothing_and_says_so(store: Store, folder: Path) -> None:
    lines, seen = Lines(store, folder), []

    def overlap(boundary: str) -> None:
        if boundary == "absorbed":
            other = Lines(store, folder)
            seen.append(run_night(shell(store, other, owner="night@host:2")))

    report = run_night(shell(store, lines, tell=overlap))
    (second,) = seen
    assert (second.outcome, second.exit_code, second.stages) == ("busy", 3, {})
    assert second.alerts == ("night@host:1 holds the lease of profile 'support'",)
    assert report.outcome == "promoted"


def test_a_night_whose_holder_is_gone_is_repeated_at_once(store: Store, folder: Path) -> None:
    lines = Lines(store, folder)
    shell(store, lines, owner="night@host:7").lease.take(600)
    assert run_night(shell(store, lines)).outcome == "busy"
    taken = run_night(shell(store, lines, abandoned=lambda owner: owner == "night@host:7"))
    assert taken.outcome == "promoted"


def test_a_lease_that_ran_out_is_taken(store: Store, folder: Path) -> None:
    lines = Lines(store, folder)
    shell(store, lines, owner="night@host:7").lease.take(600)
    assert run_night(shell(store, lines, clock=lambda: 1_601.0)).outcome == "promoted"


def test_a_bad_transcript_is_named_with_its_reason_and_the_others_are_read(store: Store, folder: Path) -> None:
    write(folder, {"bad.txt": "poison: invalid\n"})
    lines = Lines(store, folder)
    report = run_night(shell(store, lines))
    assert [(one.name, one.reason) for one in report.quarantined] == [("bad.txt", "invalid")]
    assert report.violations == {"transcript": 1}
    assert report.stages["harvested"] == 20
    lines.read.clear()
    assert run_night(shell(store, lines)).stages["due"] == 0, "it is not read again"


def test_a_broken_batch_stays_due_and_sinks_nothing_else(store: Store, folder: Path) -> None:
    write(folder, {"zz.txt": "break\n"})
    lines = Lines(store, folder)
    first = run_night(shell(store, lines))
    lost = 21 - first.stages["harvested"]
    assert 1 <= lost < 10
    assert (first.failed_batches, first.exit_code, first.outcome) == (1, 1, "promoted")
    write(folder, {"zz.txt": "mended insight here\n"})
    second = run_night(shell(store, lines))
    assert (second.stages["due"], second.failed_batches) == (lost, 0)


@pytest.mark.parametrize(
    ("drift", "gate", "outcome", "code"),
    [("BLOCK", "passed", "held", 3), ("INFO", "failed", "rejected", 3), ("INFO", "passed", "promoted", 0)],
)
def test_what_a_check_stops_is_not_committed_and_the_night_is_kept(
    store: Store, folder: Path, drift: DriftLevel, gate: str, outcome: str, code: int
) -> None:
    lines = Lines(store, folder)
    lines.drift, lines.falls = drift, gate == "failed"
    report = run_night(shell(store, lines))
    assert (report.outcome, report.exit_code, report.number) == (outcome, code, 1)
    assert (store.profiles(PROFILE, tenant=TENANT).head() is not None) == (outcome == "promoted")


def test_gc_and_fsck_know_what_a_night_leaves(store: Store, folder: Path) -> None:
    lines = Lines(store, folder)
    run_night(shell(store, lines))
    before = objects(store)
    collected = gc(store, now=1e12, grace_seconds=0)
    assert (collected.blobs, objects(store)) == ((), before)
    found = fsck(store, tenant=TENANT, read_data=True)
    assert (found.damage, found.notes) == ((), ())
    folder_of_nights = NightChain(store, TENANT, PROFILE).folder
    store.objects.delete(f"{folder_of_nights}/000000000001.json")
    assert fsck(store, tenant=TENANT).first == "tail_missing"


def test_no_word_of_a_transcript_and_no_name_is_in_plain(store: Store, folder: Path) -> None:
    write(folder, {"ada-lovelace.txt": "an insight of Byron\n", "bad-ada.txt": "poison: invalid\n"})
    lines = Lines(store, folder)
    run_night(shell(store, lines))
    batches = b"".join(body for key, body in objects(store).items() if "/batches/" in key)
    assert b'"quarantined":[["invalid","' in batches
    assert not any(word in batches for word in (b"lovelace", b"bad-", b"Byron", b"insight"))


def test_batches_do_not_depend_on_order_and_a_new_item_changes_one() -> None:
    items = [SourceItem("s", f"{n}.json", "v1") for n in range(3_000)]
    before = {batch[0]: batch for batch in batched(items, 500)}
    shuffled = items.copy()
    Random(3).shuffle(shuffled)
    assert {batch[0]: batch for batch in batched(shuffled, 500)} == before
    assert sorted(item for batch in before.values() for item in batch) == sorted(items)
    assert all(200 <= len(batch) <= 1_000 for batch in before.values())
    after = set(batched([*items, SourceItem("s", "new.json", "v1")], 500))
    assert len(after - set(before.values())) == 1
