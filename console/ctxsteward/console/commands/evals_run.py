"""``ctxsteward evals list`` and ``run``: long-horizon suites, held to gates."""

from __future__ import annotations

from pathlib import Path

import click

from ..options import DEFAULT_MODEL, budget_names, common, completer, model_names
from ..output import print_json, table_console
from ..telemetry_options import telemetry

ALL = "all"
SHIPPED_GATES = "shipped"


def suite_names() -> tuple[str, ...]:
    from ctxsteward.evals.suites.catalogue import NAMES

    return (*NAMES, ALL)


@click.command("list", short_help="The suites, what they hold to numbers, and their gates.")
@common
def list_suites(as_json: bool, store: str, tenant: str) -> None:
    """List the suites with their figures and the shipped gates."""
    from ..evals_tables import suites_table
    from ..evals_told import described

    rows = described()
    if as_json:
        for row in rows:
            print_json(row)
    else:
        table_console().print(suites_table(rows))


@click.command(short_help="Play a suite's scenarios; with --gate, exit 1 where a gate fails.")
@click.argument("suite", shell_complete=completer(suite_names))
@click.option(
    "--gate", "gates", is_flag=False, flag_value=SHIPPED_GATES, metavar="[FILE]",
    help="Hold the figures to the shipped gates, or to those of a YAML file of yours; goes behind SUITE.",
)  # fmt: skip
@click.option(
    "--split", type=click.Choice(("ci", "docs")), default="ci", show_default=True,
    help="Which seeds: docs are those that figures in the docs come from.",
)  # fmt: skip
@click.option("--scenarios", type=click.IntRange(1, 10_000), metavar="N", help="Of each suite; default: what CI runs.")
@click.option("--full", is_flag=True, help="Four times as many scenarios.")
@click.option("--only", multiple=True, metavar="ID", help="Just this scenario, as a result names it; repeatable.")
@click.option("--workers", type=click.IntRange(1, 256), metavar="N", help="Processes; default: one a core.")
@click.option(
    "--model", metavar="NAME", shell_complete=completer(model_names),
    help=f"Model whose tokens and window count; default: tokens of {DEFAULT_MODEL}, no window.",
)  # fmt: skip
@click.option(
    "--budget", "budgets", multiple=True, metavar="KEY=NUMBER",
    shell_complete=completer(lambda: [f"{name}=" for name in budget_names()]),
    help="A field of Budgets; repeatable. What is not given is as each suite needs it.",
)  # fmt: skip
@click.option("--summarizer", default="extractive", show_default=True, metavar="NAME", help="By its installed name.")
@click.option("--profile", type=click.Path(), metavar="FILE", help="Profile (YAML) of the head in every scenario.")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write the results as JUnit XML.")
@click.option("--markdown", type=click.Path(path_type=Path), metavar="FILE", help="Write the results as Markdown.")
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="FILE", help="Write one self-contained page with plots."
)
@click.option(
    "--history", type=click.Path(path_type=Path), metavar="FILE",
    help="Append to this file (JSON lines), and compare with the run before.",
)  # fmt: skip
@click.option("--revision", metavar="TEXT", help="Of your repository, to keep with the results.")
@telemetry
@common
def run(
    suite: str, gates: str | None, split: str, scenarios: int | None, full: bool, only: tuple[str, ...],
    workers: int | None, model: str | None, budgets: tuple[str, ...], summarizer: str, profile: str | None,
    junit: Path | None, markdown: Path | None, html: Path | None, history: Path | None, revision: str | None,
    as_json: bool, store: str, tenant: str,
) -> None:  # fmt: skip
    """Play the scenarios of SUITE through the real builder, and judge them.

    `ctxsteward evals list` names the suites; `all` plays each of them.

    No model, key or network is needed. Exit 1 where a gate fails or a scenario breaks off.
    """
    from ..evals_running import Asked, Outputs, run_suites
    from ..evals_running import setup as set_up

    asked = Asked(
        suite=suite, gates=gates, split="docs" if split == "docs" else "ci", scenarios=scenarios, full=full, only=only,
        workers=workers, revision=revision, setup=set_up(model, budgets, summarizer, profile),
        given=_given(model, budgets, summarizer, profile),
    )  # fmt: skip
    outputs = Outputs(junit=junit, markdown=markdown, html=html, history=history)
    results = run_suites(asked, outputs, as_json=as_json)
    if not all(result.passed for result in results):
        raise SystemExit(1)


def _given(model: str | None, budgets: tuple[str, ...], summarizer: str, profile: str | None) -> tuple[str, ...]:
    """The options that a command to make a result again repeats."""
    told = [f"--budget {budget}" for budget in budgets]
    if model is not None:
        told.append(f"--model {model}")
    if summarizer != "extractive":
        told.append(f"--summarizer {summarizer}")
    if profile is not None:
        told.append(f"--profile {profile}")
    return tuple(told)
