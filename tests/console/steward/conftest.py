"""Stores after one night on the shipped transcripts: the night is played once, in worker processes, and copied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest

from ctxsteward.steward.gate.suite import shipped
from ctxsteward.steward.ingest.worker_pool import InProcess
from ctxsteward.steward.release import actors

from .scenes import QUICK_N, Desk, people, run


@pytest.fixture(autouse=True, scope="module")
def quick_keys() -> Iterator[None]:
    """What keeps a person's token from being guessed takes a twentieth of a second each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(actors._SCRYPT, "n", QUICK_N)
        yield


@pytest.fixture(autouse=True)
def _short_nights(monkeypatch: pytest.MonkeyPatch) -> None:
    """No processes, and one of the gate's shipped cases; a night that is played once for many tests has all of it."""
    monkeypatch.setattr("ctxsteward.steward.setup.WorkerPool", lambda worker, count, limits: InProcess(worker))
    one_case = shipped().model_copy(update={"cases": shipped().cases[:1]})
    monkeypatch.setattr("ctxsteward.steward.gate.settings.shipped", lambda: one_case)


@pytest.fixture(scope="session")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For all tests: none writes into it."""
    folder = tmp_path_factory.mktemp("night") / "store"
    run("run", "--store", f"file:{folder}")
    return folder


@pytest.fixture(scope="session")
def staffed(night: Path, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """For all tests, as `night` is; its tokens have `quick_keys`."""
    folder = tmp_path_factory.mktemp("staffed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(actors._SCRYPT, "n", QUICK_N)
        return Desk(folder, people(Path(copytree(night, folder / "store"))))


@pytest.fixture
def desk(staffed: Desk, tmp_path: Path) -> Desk:
    """A copy, with people: version 2 has learned something."""
    copytree(staffed.root / "store", tmp_path / "store")
    return staffed._replace(root=tmp_path)
