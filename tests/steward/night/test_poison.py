"""Transcripts of which ten are bad: the good are read, the bad are named, and a kill changes nothing.

They are 100, and a thousand with CTXSTEWARD_SOAK=1.
"""

from __future__ import annotations

import os
from pathlib import Path

from ...examples import SOAK
from ...store.crashes.points import KILLED
from .desk import fill, keys_in, night, poison, settings_of, trapped
from .kills import killed

AFTER_BATCHES = 2
BATCH = 250 if SOAK else 25
GOOD = 990 if SOAK else 90


def die(root: str) -> None:
    """A night that ends in the middle."""
    passed = []

    def tell(boundary: str) -> None:
        passed.append(boundary)
        if passed.count("batch") == AFTER_BATCHES:
            os._exit(KILLED)

    night(settings_of(Path(root), batch_transcripts=BATCH), isolate=trapped, tell=tell)


def test_the_good_are_harvested_10_are_named_and_a_killed_night_ends_alike(tmp_path: Path) -> None:
    fill(tmp_path / "in", GOOD)
    reasons = poison(tmp_path / "in")
    for name in ("whole", "killed"):
        keys_in(tmp_path / name / "store", tmp_path / "keys")
        (tmp_path / name / "in").symlink_to(tmp_path / "in")
    whole = night(settings_of(tmp_path / "whole", batch_transcripts=BATCH), isolate=trapped)
    assert (whole.stages["due"], whole.stages["harvested"], whole.failed_batches) == (GOOD + 10, GOOD, 0)
    assert {one.name: one.reason for one in whole.quarantined} == reasons
    assert whole.violations == {"transcript": 6}

    killed(die, str(tmp_path / "killed"))
    again = night(settings_of(tmp_path / "killed", batch_transcripts=BATCH), isolate=trapped)
    assert (again.found_batches, again.final, again.stages) == (AFTER_BATCHES, whole.final, whole.stages)
    assert {one.name: one.reason for one in again.quarantined} == reasons
    repeated = night(settings_of(tmp_path / "killed", batch_transcripts=BATCH), isolate=trapped)
    assert (repeated.outcome, repeated.number, repeated.stages["due"]) == ("unchanged", None, 0)
