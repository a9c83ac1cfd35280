"""What a night writes does not depend on its workers, takes little room, and what it wrote before is still read."""

from __future__ import annotations

import gc
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conversations import write
from ctxsteward.envelope import Store, open_store
from ctxsteward.schemas import Erased
from ctxsteward.steward import NightReport, NightSettings, of_this_process, open_night, run_night
from ctxsteward.steward.artifacts.artifact import artifact_bytes
from ctxsteward.steward.artifacts.storage import ArtifactStore
from ctxsteward.steward.night.run import YOUNG_OBJECTS
from ctxsteward.store.crypto.keyring import subject_of

from ..scenes import TENANT, artifact, memory_store
from .desk import in_process

COUNT, BATCH = 24, 3
MOST = 2.0
"""Bytes of a store, of those of its input."""
SAID = "I never take the night train from Bonn, my knees do not like it at all."


def night(home: Path, inside: Path, **more: Any) -> NightReport:
    fields: dict[str, Any] = {"batch_transcripts": BATCH, "night": "2026-11-22", "profile": "bench", "workers": 1}
    settings = NightSettings(store=f"file:{home}", sources=(str(inside),), **fields | more)
    with open_night(settings, of_this_process()) as opening:
        return run_night(opening)


def told(home: Path) -> tuple[set[str], dict[str, bytes]]:
    """Names of all that lies in a store, and the chains of its batches and nights."""
    with open_store(f"file:{home}") as store:
        names = {info.key for info in store.objects.list("") if not info.key.startswith("profiles/")}
        chains = {name: store.objects.get(name) for name in names if name.startswith("steward/")}
    return names, chains


def test_two_workers_write_what_one_writes(tmp_path: Path) -> None:
    """Names of blobs are addresses of their content, so equal names are equal records."""
    write(tmp_path / "in", COUNT)
    with open_store(f"file:{tmp_path / 'one'}") as store:
        store.keys.address_key("default")  # from here on the keys are the same
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    one, two = (night(tmp_path / name, tmp_path / "in", workers=n) for n, name in enumerate(("one", "two"), 1))
    assert one.final == two.final
    assert (one.statuses, one.hits, one.stages) == (two.statuses, two.hits, two.stages)
    assert told(tmp_path / "one") == told(tmp_path / "two")


@pytest.mark.soak
def test_a_store_takes_less_than_twice_its_input(tmp_path: Path) -> None:
    """Of so few transcripts that the ledger's empty pages weigh; the bench has the figure of hundreds."""
    write(tmp_path / "in", 300)
    night(tmp_path / "store", tmp_path / "in", batch_transcripts=300)
    given, taken = (
        sum(path.stat().st_size for path in (tmp_path / name).rglob("*") if path.is_file()) for name in ("in", "store")
    )
    assert taken < MOST * given


def test_garbage_is_looked_for_as_before_once_a_night_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "in", 1)
    before, seen = gc.get_threshold(), []
    settings = NightSettings(store="memory:", sources=(str(tmp_path / "in"),), profile="bench", night="2026-11-22")
    with open_night(settings, of_this_process(), isolate=in_process) as opening:
        note = replace(opening, tell=lambda boundary: seen.append(gc.get_threshold()[0]))
        run_night(note)
    assert set(seen) == {YOUNG_OBJECTS}
    assert gc.get_threshold() == before


@pytest.fixture
def store() -> Store:
    return memory_store()


def test_an_artifact_of_before_is_read_stands_and_is_forgotten(store: Store) -> None:
    """It was not compressed then; its address is the same."""
    artifacts, one = ArtifactStore(store, TENANT), artifact(store, "s1", [SAID] * 3)
    address = artifacts.address(one)
    vault = store.vault(TENANT)
    assert vault.put(subject_of("s1", "ann"), "harvest", b"\n" + artifact_bytes(one)) == address
    before = {info.key: store.objects.get(info.key) for info in store.objects.list("blobs/")}
    assert artifacts.put(one) == address
    assert {info.key: store.objects.get(info.key) for info in store.objects.list("blobs/")} == before
    assert artifacts.get(address) == one
    artifacts.erase("s1", ("ann",), who="ada", when="2026-11-22", why="asked")
    assert artifacts.find(address) is None


def test_a_compressed_artifact_stands_nowhere_in_plain_and_is_forgotten(store: Store) -> None:
    artifacts, one = ArtifactStore(store, TENANT), artifact(store, "s1", [SAID] * 3)
    address = artifacts.put(one)
    (blob,) = (store.objects.get(info.key) for info in store.objects.list("blobs/"))
    assert len(blob) < len(artifact_bytes(one))
    assert not any(word in blob for word in (b"knees", b"Bonn", b"ann"))
    artifacts.erase("s1", ("ann",), who="ada", when="2026-11-22", why="asked")
    with pytest.raises(Erased):
        artifacts.get(address)
    with pytest.raises(Erased):
        artifacts.put(one)
