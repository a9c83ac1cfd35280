"""The metrics of nights, for OpenTelemetry where it listens (`ctxsteward.envelope.instruments`).

    meta_steward.run.count   counter; label `outcome`: as `NightReport.outcome`
    meta_steward.waiting     gauge: requests that wait for a person, after the last night
    drift.detected           counter; label `level`: WARN | BLOCK
    meta.hit_rate            gauge, 0..1; label `rate`: anticipated | used | obeyed

The command line and Prefect call `tell_night` with a finished report. Refused transcripts and records are counted on
the board of the request path (`schema_violation.count`), like the refused documents of every process. Dry runs are not
counted, and a rate without a denominator is not set. No session, tenant or profile is a label.

Source: the layered-envelope design (run metrics of the batch loop).
"""

from __future__ import annotations

from functools import cache
from typing import get_args

from ctxsteward.envelope import instruments as telemetry
from ctxsteward.envelope.instruments import Board, Instrument

from .report import NightOutcome, NightReport

LEVELS = ("WARN", "BLOCK")
RATES = ("anticipated", "used", "obeyed")
INSTRUMENTS = (
    Instrument(
        name="meta_steward.run.count",
        kind="counter",
        unit="1",
        about="Nights of the steward that came to their end.",
        labels={"outcome": get_args(NightOutcome)},
    ),
    Instrument(
        name="meta_steward.waiting",
        kind="gauge",
        unit="1",
        about="Things that wait for a person since the last night.",
        labels={},
    ),
    Instrument(
        name="drift.detected",
        kind="counter",
        unit="1",
        about="Challengers that drifted from what is in force.",
        labels={"level": LEVELS},
    ),
    Instrument(
        name="meta.hit_rate",
        kind="gauge",
        unit="1",
        about="How much use is made of active records.",
        labels={"rate": RATES},
    ),
)


@cache
def board() -> Board:
    """Return the metrics of this process."""
    return Board(INSTRUMENTS)


def tell_night(report: NightReport) -> None:
    """Count a finished night."""
    if report.dry_run:
        return
    numbers = board()
    numbers.add("meta_steward.run.count", 1, report.outcome)
    numbers.set("meta_steward.waiting", report.waiting)
    for what, number in report.violations.items():
        telemetry.board().add("schema_violation.count", number, what)
    if report.drift is not None and report.drift.level in LEVELS:
        numbers.add("drift.detected", 1, report.drift.level)
    for rate, share in report.rates.items():
        numbers.set("meta.hit_rate", share, rate)
