"""What is proved of rules, causes, erasures, bundles and the store, tried at full length, and written into one page.

    python -m tests.proof --data FOLDER                                       # `make proof DATA=FOLDER`
    python -m tests.proof --data FOLDER --seeds 10000 --write benchmarks/proof.md

A row is a test, run with all its cases: what the test noted under ``proved``, or else how many of its cases passed. The
row of `blame` is the odd half of public transcripts, whose bounds were chosen on the even half; the last rows
are simulated histories. Exit code 1: a bar was missed, or a row has nothing to show.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import click
from rich.console import Console
from rich.progress import track

from benchmarks.blame import NAMERS, cases, scored
from ctxsteward.evals.documents import check_markers, table, write_blocks

from .house import ROOT
from .postgres import programs, running
from .simulation.__main__ import kept_results
from .simulation.database import FAULTS as DATABASE_FAULTS
from .simulation.simulation import Result
from .simulation.world import FAULTS, OUTCOMES

PYTEST = (sys.executable, "-m", "pytest", "-q", "-n", "0", "-o", "junit_family=xunit1")
"""The older form of JUnit is the one that has properties of a test."""
BLAME_CASES, SEEDS = 500, 10_000
RARE = 0.2
"""A fault that fires in a smaller share of the runs is named."""


class Claim(NamedTuple):
    what: str
    bar: str
    test: str


class Row(NamedTuple):
    what: str
    figure: str
    bar: str
    holds: bool


CLAIMS = (
    Claim(
        "attempts to evict, weaken, bury or overwrite a user's rule",
        "0 hidden without a finding, 0 lifted",
        "envelope/audit/test_rules.py::test_no_attack_makes_a_rule_invisible_without_a_finding_or_lifts_it",
    ),
    Claim(
        "requests that lost or changed a rule",
        "all noticed",
        "envelope/audit/test_rules.py::test_every_request_that_lost_or_changed_a_rule_is_noticed",
    ),
    Claim(
        "findings about requests with intact rules",
        "0",
        "envelope/audit/test_rules.py::test_requests_whose_rules_are_intact_give_no_finding",
    ),
    Claim(
        "words left after an erasure that its receipts do not name",
        "0",
        "store/erasure/test_table.py::test_the_receipts_count_what_was_there_and_leave_nothing_unnamed",
    ),
    Claim(
        "receipts with a changed bit, or a byte more or less",
        "all refused",
        "store/erasure/test_receipt.py::test_a_receipt_that_was_changed_in_any_bit_of_any_byte_is_refused",
    ),
    Claim(
        "differences after a session was carried to another store",
        "0",
        "envelope/building/test_bundle.py::test_a_long_session_comes_back_with_its_calls_reports_and_losses",
    ),
    Claim(
        "mistakes planted in the store, found within ten seeds",
        "18 of 20",
        "simulation/test_bugs.py::test_a_planted_mistake_is_found_within_ten_seeds",
    ),
)


def tested(claim: Claim) -> Row:
    """Run a claim's test with all its cases."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        run = subprocess.run(
            [*PYTEST, f"--junit-xml={report}", f"tests/{claim.test}"],
            cwd=ROOT,
            env=os.environ | {"CTXSTEWARD_SOAK": "1"},
            capture_output=True,
            text=True,
        )
        if not report.is_file():
            raise click.ClickException(f"{claim.test}: the test did not run: {run.stdout[-500:]}")
        tries = ElementTree.parse(report).findall(".//testcase")
    passed = [each for each in tries if not [*each.iter("failure"), *each.iter("error"), *each.iter("skipped")]]
    noted = sorted({found.get("value", "") for each in tries for found in each.iter("property")})
    figure = "; ".join(noted) or f"{len(passed)} of {len(tries)}"
    return Row(claim.what, figure, claim.bar, 0 < len(passed) == len(tries))


def blamed(data: Path) -> Iterator[Row]:
    """How often `blame` names the planted cause; beside it, a baseline that always names somebody."""
    made = list(cases(data, BLAME_CASES, half=1))
    for name, bar in (("ours", "90 %, 90 %, at most 2 %"), ("longest overlap", "")):
        counts = scored(made, NAMERS[name])
        found, nobody = counts["found"] / counts["planted"], counts["rightly not told"] / counts["none"]
        wrong = counts["wrong"] / len(made)
        yield Row(
            f"causes of replies: {name}",
            f"{found:.1%} of {counts['planted']} named; rightly nobody in {nobody:.1%} of {counts['none']}; "
            f"wrong {wrong:.1%} of {len(made)}",
            bar,
            not bar or (found >= 0.9 and nobody >= 0.9 and wrong <= 0.02),
        )


def simulated(done: list[Result], kinds: Iterable[str], seeds: int, where: str = "") -> Iterator[Row]:
    """Histories in which all that was acknowledged held, and how often faults of these kinds fired in them."""
    failed = [f"seed {result.seed}" for result in done if result.wrong]
    figure = ", ".join([f"{len(done) - len(failed):,} of {len(done):,}", *failed])
    yield Row(
        f"simulated histories{where} in which all that was acknowledged held",
        figure,
        f"all of {seeds:,}",
        not failed and len(done) >= seeds,
    )
    shares = {fault: sum(bool(result.fired.get(fault)) for result in done) / len(done) for fault in kinds}
    rarest = min(shares, key=shares.__getitem__)
    often = sum(share >= RARE for share in shares.values())
    yield Row(
        "kinds of faults that fired in at least a fifth of them",
        f"{often} of {len(shares)}; rarest: {rarest}, {shares[rarest]:.0%}",
        "all",
        often == len(shares),
    )


@click.command()
@click.option(
    "--data", type=click.Path(exists=True, file_okay=False, path_type=Path), help="a folder of public transcripts"
)
@click.option("--seeds", type=click.IntRange(min=1), default=2_000, show_default=True, help="simulated histories")
@click.option("--workers", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--json", "as_json", is_flag=True)
@click.option("--write", "page", type=click.Path(path_type=Path), help="a page with a place for the rows")
def main(data: Path | None, seeds: int, workers: int, as_json: bool, page: Path | None) -> None:
    """Try every claim at full length and print what came of it."""
    if page is not None:
        check_markers(page, "proof")
    screen = Console(stderr=True)
    with ThreadPoolExecutor(workers) as pool:
        rows = list(track(pool.map(tested, CLAIMS), "claims", total=len(CLAIMS), console=screen))
    if data is not None:
        rows += blamed(data)
    done = list(track(kept_results(range(seeds), workers), "histories", total=seeds, console=screen))
    rows += simulated(done, (*FAULTS, *OUTCOMES), SEEDS)
    if programs() is not None:
        few = max(seeds // 10, 1)  # each waits for a server
        with running() as server:
            runs = kept_results(range(few), workers, server)
            done = list(track(runs, "histories of a database", total=few, console=screen))
        rows += simulated(done, DATABASE_FAULTS, SEEDS // 10, " of a PostgreSQL database")
    cells = [(row.what, row.figure, row.bar, "ok" if row.holds else "missed") for row in rows]
    lines = list(table(("what", "figure", "bar", ""), cells))
    click.echo(json.dumps([row._asdict() for row in rows], indent=1) if as_json else "\n".join(lines))
    if page is not None:
        write_blocks(page, {"proof": lines})
    if not all(row.holds for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
