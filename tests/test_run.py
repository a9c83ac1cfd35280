"""What a run of the tests promises: a drawn order that can be repeated, no state left behind, skips explained."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from . import needs
from .process_state import changes, state_of_process
from .run_order import shuffled

ROOT = Path(__file__).parents[1]
TESTS = [f"{file}::{number}" for file in "abcdefgh" for number in range(9)]


def file_of(test: str) -> str:
    return test.partition("::")[0]


def run(*arguments: str, seed: str = "17") -> str:
    """The output of a small run in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--rootdir", str(ROOT), *arguments],
        cwd=ROOT,
        env=environment | {"CTXSTEWARD_DRAW": seed},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.stdout


def test_a_seed_draws_one_order_and_another_seed_another_one() -> None:
    assert shuffled(TESTS, file_of, "17") == shuffled(list(TESTS), file_of, "17")
    orders = {tuple(shuffled(TESTS, file_of, str(seed))) for seed in range(20)}
    assert len(orders) == 20
    assert {order.index("a::0") for order in orders} != {0}


def test_a_file_s_tests_stay_together() -> None:
    order = [file_of(test) for test in shuffled(TESTS, file_of, "17")]
    starts = [place for place, file in enumerate(order) if place == 0 or order[place - 1] != file]
    assert len(starts) == 8


SMALL = """\
import os, pytest
from tests.needs import CHROMIUM, INSPECT
@pytest.mark.skipif(True, reason=INSPECT)
@pytest.mark.parametrize('n', range(12))
def test_a(n): pass
def test_b(): pytest.skip(CHROMIUM)
def test_c(): assert False
def test_d(): os.environ['LEFT_BEHIND'] = '1'
"""


@pytest.mark.parametrize("processes", [(), ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")], ids=["1", "2"])
def test_a_run_says_its_seed_keeps_the_drawn_order_and_ends_with_what_skipped_tests_need(
    tmp_path: Path, processes: tuple[str, ...]
) -> None:
    (tmp_path / "conftest.py").write_text(
        "from tests.conftest import *\nfrom tests.conftest import _leaves_the_process_as_it_was\n"
    )
    (tmp_path / "test_small.py").write_text(SMALL)
    told = run(*processes, str(tmp_path)).splitlines()
    assert "order and cases are drawn with CTXSTEWARD_DRAW=17" in told[:2]
    in_turn = [int(number) for line in told if "SKIPPED" in line for number in re.findall(r"test_a\[(\d+)\]", line)]
    assert sorted(in_turn) == list(range(12))
    assert in_turn != sorted(in_turn)
    *_, skips, again, counts = told
    assert skips == "13 skipped: 12 need Inspect, 1 Chromium. To run them: `.ci/run`, `make inspect`"
    assert again == "order and cases were drawn with CTXSTEWARD_DRAW=17; it makes them the same again"
    assert "1 failed, 1 passed, 13 skipped, 1 error" in counts
    assert "environment variable LEFT_BEHIND: nothing before, 1 after" in "\n".join(told)


def test_every_command_of_a_skip_line_is_one_that_installs() -> None:
    targets = re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    reasons = [value for name, value in vars(needs).items() if name.isupper() and not name.startswith("_")]
    assert len(reasons) > 10
    made = [reason.partition(": make ")[2] for reason in reasons if ": make " in reason]
    assert made != []
    assert set(made) <= set(targets)
    assert (ROOT / ".ci" / "run").is_file()


def test_ci_runs_every_file_that_the_everyday_run_leaves_out() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    left_out = re.findall(r"--ignore=,(.*)\)$", makefile, re.MULTILINE)[0]
    lists = re.findall(r"\$\((\w+)\)", left_out)
    assert lists == ["ATTACKS", "JOURNEYS"]
    for name in lists:
        assert f"make {name.lower()}\n" in ci
        paths = re.findall(r"tests/[\w/*.]+", re.findall(rf"^{name} := (.*)$", makefile, re.MULTILINE)[0])
        assert len(paths) > 5
        assert [path for path in paths if not list(ROOT.glob(path))] == []


def test_a_help_option_without_a_short_name_is_state_that_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxsteward.console.cli import cli

    before = state_of_process()
    command = cli.get_command(click.Context(cli), "schema")
    assert command is not None
    monkeypatch.setattr(command, "_help_option", click.Option(["--help"], is_flag=True))
    assert changes(before, state_of_process()) == [
        "help option of `ctxsteward schema`: nothing before, ['--help'] after"
    ]
