"""Stores after one night on the shipped transcripts: the night is played once, and copied."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest

from .scenes import Desk, people, run


@pytest.fixture(scope="session")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For all tests: none writes into it."""
    folder = tmp_path_factory.mktemp("night") / "store"
    run("run", "--store", f"file:{folder}")
    return folder


@pytest.fixture
def desk(night: Path, tmp_path: Path) -> Desk:
    """A copy, with people: version 2 has learned something."""
    return Desk(tmp_path, people(Path(copytree(night, tmp_path / "store"))))
