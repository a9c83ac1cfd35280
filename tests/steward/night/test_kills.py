"""A night that is killed anywhere is repeated and ends as one that was not: same bytes, no finished batch done twice.

Points are every boundary between stages, every batch, and every put of the object store, before and after. The child
ends by ``os._exit(137)``: no ``finally``, no release of the lease, no flush.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope.store import Store, open_store
from ctxsteward.steward.harvest.batches import batched
from ctxsteward.steward.ingest.items import SourceItem
from ctxsteward.steward.night.chain import NightChain
from ctxsteward.steward.night.run import run_night
from ctxsteward.store.maintenance.fsck import fsck

from ...examples import SOAK
from ...store.crashes.points import Points
from .doubles import KEYS, PROFILE, TENANT, Lines, shell, some, write
from .kills import killed

OWNER = "night@host:1"
SAMPLE = 1 if SOAK else 10
"""Every how many'th put is a crash point: all of them with CTXSTEWARD_SOAK=1. Boundaries all are."""


def night(root: Path, stop: str | None = None, owner: str = OWNER) -> dict[str, Any]:
    """Run one night in this process, which may end in it."""
    points = Points(stop)
    with (root / "read.txt").open("a", buffering=1) as read, open_store(f"file:{root / 'store'}", keys=KEYS) as store:
        watched = Store(store.journal, points.objects(store.objects), store.keys, uri=store.uri)
        lines = Lines(watched, root / "in", lambda name: read.write(f"{name}\n"))

        def passed(boundary: str) -> None:
            points.around(boundary, lambda: None)

        told = shell(watched, lines, owner=owner, tell=passed, abandoned=lambda owner: owner == OWNER)
        report = run_night(told)
        return {"report": report, "labels": points.labels}


def die(root: str, stop: str) -> None:
    night(Path(root), stop)
    os._exit(0)


def prepared(root: Path) -> Path:
    root.mkdir()
    write(root / "in", some(12) | {"bad.txt": "poison: invalid\n"})
    return root


def kept(root: Path) -> tuple[list[bytes], bytes | None, list[str]]:
    """Bodies of nights and batches, of the version, and what was read, in order."""
    with open_store(f"file:{root / 'store'}", keys=KEYS) as store:
        assert fsck(store, tenant=TENANT, read_data=True).damage == ()
        nights = [repr(night).encode() for night in NightChain(store, TENANT, PROFILE).history()]
        version = store.profiles(PROFILE, tenant=TENANT).head()
        content = None if version is None else (version.number, version.address, version.commit_id)
        return nights, repr(content).encode(), (root / "read.txt").read_text().split()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A night that nobody killed."""
    root = prepared(tmp_path_factory.mktemp("kills") / "whole")
    return night(root) | {"kept": kept(root)}


def places(labels: list[str]) -> list[str]:
    boundaries = [label for label in labels if not label.startswith("objects.") and label.endswith(" after")]
    puts = [label for label in labels if label.startswith("objects.put")]
    return boundaries + puts[::SAMPLE]


def test_wherever_a_night_is_killed_it_ends_alike(whole: dict[str, Any], tmp_path: Path) -> None:
    nights, version, read = whole["kept"]
    tried = places(whole["labels"])
    assert len(tried) > (100 if SOAK else 25)
    assert len(read) == len(set(read)) == 13
    for number, label in enumerate(tried):
        root = prepared(tmp_path / str(number))
        killed(die, str(root), label)
        finished = records(root)
        again = night(root, owner="night@host:2")["report"]
        assert kept(root)[:2] == (nights, version), label
        assert again.final == whole["report"].final, label
        assert again.found_batches == (finished if again.number else 0), label  # no number: its link had landed
        _read_once(label, kept(root)[2], finished)


def _read_once(label: str, read: list[str], finished: int) -> None:
    """What was read twice was in the one batch that was under way."""
    twice = {name for name in read if read.count(name) > 1}
    of = {
        item.name: at
        for at, items in enumerate(batched((SourceItem("folder", name, "") for name in set(read)), 4))
        for item in items
    }
    assert len({of[name] for name in twice}) <= (finished < len(set(of.values()))), label


def records(root: Path) -> int:
    """How many batches were finished."""
    with open_store(f"file:{root / 'store'}", keys=KEYS) as store:
        return sum("/batches/" in info.key for info in store.objects.list("steward/"))


def test_two_kills_in_a_row_and_a_third_run(whole: dict[str, Any], tmp_path: Path) -> None:
    root = prepared(tmp_path / "twice")
    killed(die, str(root), "batch 2 after")
    killed(die, str(root), "promoted 1 after")
    again = night(root, owner="night@host:2")["report"]
    assert again.final == whole["report"].final
    assert kept(root)[:2] == whole["kept"][:2]
