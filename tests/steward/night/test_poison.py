"""A thousand transcripts, ten of them bad: the good are read, the bad are named, and a kill changes nothing."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

from .desk import fill, keys_in, night, poison, settings_of, trapped

KILLED = 137
AFTER_BATCHES = 2


def die(root: str) -> None:
    """A night that ends in the middle."""
    passed = []

    def tell(boundary: str) -> None:
        passed.append(boundary)
        if passed.count("batch") == AFTER_BATCHES:
            os._exit(KILLED)

    night(settings_of(Path(root), batch_transcripts=250), isolate=trapped, tell=tell)


def test_990_are_harvested_10_are_named_and_a_killed_night_ends_alike(tmp_path: Path) -> None:
    fill(tmp_path / "in", 990)
    reasons = poison(tmp_path / "in")
    for name in ("whole", "killed"):
        keys_in(tmp_path / name / "store", tmp_path / "keys")
        (tmp_path / name / "in").symlink_to(tmp_path / "in")
    whole = night(settings_of(tmp_path / "whole", batch_transcripts=250), isolate=trapped)
    assert (whole.count("due"), whole.count("harvested"), whole.failed_batches) == (1_000, 990, 0)
    assert {one.name: one.reason for one in whole.quarantined} == reasons
    assert whole.violations == {"transcript": 6}

    child = multiprocessing.get_context("forkserver").Process(target=die, args=(str(tmp_path / "killed"),))
    child.start()
    child.join(120)
    assert child.exitcode == KILLED
    child.close()
    again = night(settings_of(tmp_path / "killed", batch_transcripts=250), isolate=trapped)
    assert (again.found_batches, again.final, again.stages) == (AFTER_BATCHES, whole.final, whole.stages)
    assert {one.name: one.reason for one in again.quarantined} == reasons
    repeated = night(settings_of(tmp_path / "killed", batch_transcripts=250), isolate=trapped)
    assert (repeated.outcome, repeated.number, repeated.count("due")) == ("unchanged", None, 0)
