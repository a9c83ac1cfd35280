"""Mistakes planted at real places are found: a simulation that finds nothing wrong with them would prove nothing.

`make soak` plants every one; each other run two that are drawn.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from ruamel.yaml import YAML

from ..defects import ROOT, PlantedMistake, python_path
from ..examples import drawn
from ..needs import POSTGRESQL
from ..postgres import programs

SEEDS = 10
PROGRAM = f"""
import sys
from contextlib import nullcontext
from tests.postgres import running
from tests.simulation.simulation import simulate
with running() if sys.argv[1:] else nullcontext() as server:
    for seed in range({SEEDS}):
        if wrong := simulate(seed, server=server).wrong:
            print(seed, wrong[0].splitlines()[0][:200])
            break
"""
BUGS: dict[str, PlantedMistake] = TypeAdapter(dict[str, PlantedMistake]).validate_python(
    YAML(typ="safe").load(Path(__file__).with_name("bugs.yaml"))
)


def first_failure(*first: Path, postgres: bool = False) -> str:
    """Run the seeds in another process until one fails; return that seed and the reason, or "" if none fails."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *(["postgres"] if postgres else [])],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": python_path(first)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr[-2_000:]
    return run.stdout.strip()


def test_there_are_many_mistakes_and_each_has_one_place() -> None:
    assert len(BUGS) >= 20
    assert {name: bug.places() for name, bug in BUGS.items() if bug.places() != 1} == {}
    assert len({(bug.file, bug.was, bug.now) for bug in BUGS.values()}) == len(BUGS)


def test_without_a_mistake_nothing_is_found() -> None:
    assert first_failure() == ""


@pytest.mark.parametrize("name", drawn(list(BUGS), 2, "bugs"))
def test_a_planted_mistake_is_found_within_ten_seeds(name: str, tmp_path: Path) -> None:
    postgres = "postgres" in BUGS[name].file
    if postgres and programs() is None:
        pytest.skip(POSTGRESQL)
    assert first_failure(BUGS[name].seeded(tmp_path), postgres=postgres)
