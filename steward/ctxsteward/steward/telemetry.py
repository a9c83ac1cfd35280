"""What a night tells OpenTelemetry. The API is imported when something is first told, never before.

    meta_steward.run.count   counter; attribute `outcome`: as `NightReport.outcome`
    schema_violation.count   counter; attribute `what`: transcript | record
    drift.detected           counter; attribute `level`: WARN | BLOCK
    meta.hit_rate            gauge, 0..1; attribute `rate`: anticipated | used | obeyed

A dry run tells nothing, nor does a rate that has nothing to be a share of. No session, tenant or profile is ever an
attribute.

Source: the layered-envelope design (run metrics of the batch loop).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ctxsteward.envelope.telemetry import METER

from .report import NightReport

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, _Gauge

RUN_COUNT = "meta_steward.run.count"
SCHEMA_VIOLATIONS = "schema_violation.count"
DRIFT_DETECTED = "drift.detected"
HIT_RATE = "meta.hit_rate"


class _Instruments(NamedTuple):
    runs: Counter
    violations: Counter
    drift: Counter
    hit_rate: _Gauge


def tell_night(report: NightReport) -> None:
    """Count a finished night."""
    if report.dry_run:
        return
    instruments = _instruments()
    instruments.runs.add(1, {"outcome": report.outcome})
    for what, number in report.violations.items():
        instruments.violations.add(number, {"what": what})
    if report.drift is not None and report.drift.level != "INFO":
        instruments.drift.add(1, {"level": report.drift.level})
    for rate, share in report.rates.items():
        instruments.hit_rate.set(share, {"rate": rate})


@cache
def _instruments() -> _Instruments:
    from opentelemetry.metrics import get_meter

    meter = get_meter(METER)
    return _Instruments(
        meter.create_counter(RUN_COUNT, unit="1", description="Nights of the steward that came to their end."),
        meter.create_counter(SCHEMA_VIOLATIONS, unit="1", description="Transcripts and records refused by schema."),
        meter.create_counter(DRIFT_DETECTED, unit="1", description="Challengers that drifted from what is in force."),
        meter.create_gauge(HIT_RATE, unit="1", description="How much use is made of active records."),
    )
