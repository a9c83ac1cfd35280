"""What the room promises: its doors open, cost nothing until then, and every kind of recommendation has its row."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

import ctxsteward.steward as room
from ctxsteward.schemas.recommendation import RecommendationKind
from ctxsteward.steward.observations.observation import KINDS


def test_every_door_opens_and_no_other_is_there() -> None:
    assert [name for name in room.__all__ if not callable(getattr(room, name))] == []
    assert sorted(room.__all__) == sorted(dir(room))
    assert not hasattr(room, "no_such_door")


def test_importing_the_room_imports_nothing_of_it() -> None:
    code = "import sys, ctxsteward.steward; print([m for m in sys.modules if m.startswith('ctxsteward.steward.')])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_every_kind_has_its_row() -> None:
    """Of ``fact`` and ``decision`` only stored records of earlier versions are left."""
    assert set(KINDS) == set(get_args(RecommendationKind)) - {"fact", "decision", "practice"}
