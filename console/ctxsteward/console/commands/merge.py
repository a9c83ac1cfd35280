"""``ctxsteward evals merge``: parts of a run put together, with gates judged over the whole."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from ctxsteward.evals.suite_files import MergedRun, merged
from ctxsteward.evals.suites import Gates, gates, shipped_gates
from ctxsteward.schemas import InputError

from ..terminal import common
from .own_suites import SHIPPED_GATES
from .suites import SuiteOutputs, report


def held(run: MergedRun, asked: str | None) -> Gates:
    """The gates for one suite; `asked` None: none are held."""
    if asked is None:
        return {}
    if asked != SHIPPED_GATES:
        return gates.load_gates(Path(asked)).get(run.head.name, {})
    return run.head.gates or shipped_gates().get(run.head.name, {})


@click.command()
@click.argument("records", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "--gate", "asked_gates", is_flag=False, flag_value=SHIPPED_GATES, metavar="[GATES]",
    help="Hold the figures to the suites' own gates, or to those of a YAML file of yours; goes behind the files.",
)  # fmt: skip
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write the results as JUnit XML.")
@click.option("--markdown", type=click.Path(path_type=Path), metavar="FILE", help="Write the results as Markdown.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write one page with plots.")
@click.option(
    "--history", type=click.Path(path_type=Path), metavar="FILE",
    help="Append to this file (JSON lines), and compare with the run before.",
)  # fmt: skip
@common
def merge(
    records: tuple[Path, ...], asked_gates: str | None, junit: Path | None, markdown: Path | None, html: Path | None,
    history: Path | None, as_json: bool, store: str, tenant: str,
) -> None:  # fmt: skip
    """Put the parts of a run together: FILEs that `evals run --shard N/M --resume FILE` wrote.

    Every scenario of the run must be in one of them, and all must be of one run: suite, settings, subject, version.
    Exit 1 where a gate fails or a scenario broke off.
    """
    outputs = SuiteOutputs(junit=junit, markdown=markdown, html=html, history=history)
    outputs.check()
    when = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        results = [run.result(held(run, asked_gates), when) for run in merged(records)]
    except InputError as error:
        if asked_gates is None or asked_gates == SHIPPED_GATES or not str(error).startswith("gate over"):
            raise
        raise InputError(f"{asked_gates}: {error}") from error
    report(results, outputs, as_json=as_json)
    if not all(result.passed for result in results):
        raise SystemExit(1)
