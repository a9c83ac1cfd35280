"""What a night tells OpenTelemetry, and that it tells it through the flow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ctxsteward.flows import night as nightly
from ctxsteward.steward.night.report import CheckVerdict, NightReport
from ctxsteward.steward.settings import NightSettings

from .servers import environment
from .transcripts import founded, write

SCRIPT = """
import sys
from ctxsteward.steward.night.report import NightReport
from ctxsteward.steward.night.telemetry import tell_night
assert not any(name.startswith("opentelemetry") for name in sys.modules), "loaded where nothing was told"

from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
for line in sys.stdin:
    NIGHT
(scope,) = reader.get_metrics_data().resource_metrics[0].scope_metrics
for metric in sorted(scope.metrics, key=lambda metric: metric.name):
    for point in sorted(metric.data.data_points, key=lambda point: str(point.attributes)):
        if point.value or not hasattr(metric.data, "is_monotonic"):  # counters stand at 0 before they count
            print(metric.name, metric.unit, dict(point.attributes), point.value)
"""


def told(night: str, lines: list[str], env: dict[str, str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("NIGHT", night)],
        input="\n".join(lines),
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return [line for line in done.stdout.splitlines() if line[0].isalpha()]


def test_runs_violations_drift_and_hit_rates_are_counted(tmp_path: Path) -> None:
    about = {"tenant": "acme", "profile": "support", "night": "2026-11-22"}
    reports = [
        NightReport(**about, outcome="promoted", hits={"events": 4, "anticipated": 3, "judged": 2, "fired": 1}),
        NightReport(
            **about,
            outcome="held",
            refused={"invalid": 2},
            refused_records=1,
            drift=CheckVerdict(level="BLOCK", ok=False),
        ),
        NightReport(**about, outcome="promoted", drift=CheckVerdict(level="INFO", ok=True)),
        NightReport(**about, outcome="held", dry_run=True, drift=CheckVerdict(level="WARN", ok=True)),
    ]
    lines = [report.model_dump_json() for report in reports]
    found = told("tell_night(NightReport.model_validate_json(line))", lines, environment(tmp_path))
    assert found == [
        "drift.detected 1 {'level': 'BLOCK'} 1",
        "meta.hit_rate 1 {'rate': 'anticipated'} 0.75",
        "meta.hit_rate 1 {'rate': 'used'} 0.5",
        "meta_steward.run.count 1 {'outcome': 'held'} 1",
        "meta_steward.run.count 1 {'outcome': 'promoted'} 2",
        "meta_steward.waiting 1 {} 0",
        "schema_violation.count 1 {'what': 'record'} 1",
        "schema_violation.count 1 {'what': 'transcript'} 2",
    ]


@pytest.mark.usefixtures("prefect")
def test_the_flow_tells_them(tmp_path: Path) -> None:
    from prefect.settings import PREFECT_API_URL

    write(tmp_path / "in", 6)
    (tmp_path / "in" / "bad.json").write_text('{"messages": 1}')
    settings = NightSettings(store=f"file:{tmp_path / 'store'}", sources=(str(tmp_path / "in"),), profile="support")
    settings = founded(settings)
    night = (
        f"from {nightly.__name__} import meta_steward_nightly as run; "
        "from ctxsteward.steward.settings import NightSettings as S; run(S.model_validate_json(line))"
    )
    env = environment(tmp_path, PREFECT_API_URL=str(PREFECT_API_URL.value()))
    found = told(night, [settings.model_dump_json()], env)
    assert "meta_steward.run.count 1 {'outcome': 'unchanged'} 1" in found
    assert "schema_violation.count 1 {'what': 'transcript'} 1" in found
    assert any(line.startswith("meta.hit_rate 1 {'rate': 'anticipated'}") for line in found)
