"""Metrics of eval suites for OpenTelemetry, if an SDK is set up.

    eval.score       gauge; labels `suite`, `metric`   the figure; left out if unscored
    eval.gate        gauge, 0 | 1; labels `suite`, `metric`   whether the figure's gates passed; unchanged if one is
                    undecided or unscored
    eval.run.count   counter; labels `suite`, `outcome`: passed | failed | undecided

Suites and figures are named in code and gate files, at most `MOST` different ones of each; further ones are ``other``.
`suites.results.played` reports each run here.
"""

from __future__ import annotations

from functools import cache

from ctxsteward.envelope.instruments import Board, Instrument
from ctxsteward.schemas.eval_result import EvalResult, Verdict

MOST = 100
OUTCOMES = ("passed", "failed", "undecided")
INSTRUMENTS = (
    Instrument(
        name="eval.score",
        kind="gauge",
        unit="1",
        about="Figures of eval suites in their last run.",
        labels={"suite": MOST, "metric": MOST},
    ),
    Instrument(
        name="eval.gate",
        kind="gauge",
        unit="1",
        about="Whether a figure passed its gates in the last run.",
        labels={"suite": MOST, "metric": MOST},
    ),
    Instrument(
        name="eval.run.count",
        kind="counter",
        unit="1",
        about="Runs of eval suites.",
        labels={"suite": MOST, "outcome": OUTCOMES},
    ),
)


@cache
def board() -> Board:
    """Return the metrics of this process."""
    return Board(INSTRUMENTS)


def tell_eval(result: EvalResult) -> None:
    """Report a finished run."""
    numbers = board()
    failed = result.errors or any(gate.verdict == "failed" for gate in result.gates)
    outcome = "passed" if result.passed else "failed" if failed else "undecided"
    numbers.add("eval.run.count", 1, result.suite, outcome)
    for figure in result.metrics:
        if figure.value is not None:
            numbers.set("eval.score", figure.value, result.suite, figure.name)
    verdicts: dict[str, set[Verdict]] = {}
    for gate in result.gates:
        verdicts.setdefault(gate.metric, set()).add(gate.verdict)
    for metric, kinds in verdicts.items():
        if "failed" in kinds or kinds == {"passed"}:
            numbers.set("eval.gate", float("failed" not in kinds), result.suite, metric)
