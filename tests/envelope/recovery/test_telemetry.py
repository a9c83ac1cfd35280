"""What is missed is counted, through the API alone; nothing of it is loaded before."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store, rebuild
from ctxsteward.envelope.testing import FirstLine, memory_store

store = memory_store()
maker = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=300), summarizer=FirstLine())
session = store.session("s")
for n in range(40):
    session.append({"role": ("user", "assistant")[n % 2], "content": f"message {n} " + "word " * 20})
    envelope = maker.build(session)
assert not any(name.startswith("opentelemetry") for name in sys.modules), "loaded where nothing was missed"

from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

reader = InMemoryMetricReader()
if WHEN == "before":
    metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
records = store.journal.read(session.key, 0)
last = max(n for n, record in enumerate(records) if record.kind == "compaction")
message = max(n for n, record in enumerate(records) if record.kind == "message")
store.journal.rewrite(session.key, {n: records[n]._replace(mac="") for n in (last, message)})
store.session("s")
if WHEN == "after":
    metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
    store.session("s")
rebuild(store, envelope.address)
(scope,) = reader.get_metrics_data().resource_metrics[0].scope_metrics
(metric,) = scope.metrics
print(scope.scope.name, metric.name, metric.unit)
for point in sorted(metric.data.data_points, key=lambda point: point.attributes["reason"]):
    print(dict(point.attributes), point.value)
"""


def counted(when: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"WHEN = {when!r}\n{SCRIPT}"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_is_missed_is_counted_by_reason() -> None:
    expected = [
        "ctxsteward context.cache_miss 1",
        "{'reason': 'compaction'} 2",
        "{'reason': 'envelope'} 1",
        "{'reason': 'original'} 2",
    ]
    assert counted("before") == expected


def test_a_provider_that_is_set_up_late_is_told_from_then_on() -> None:
    assert counted("after")[0] == "ctxsteward context.cache_miss 1"


def test_without_an_sdk_nothing_happens() -> None:
    code = "from ctxsteward.envelope.telemetry import cache_miss; cache_miss('record'); cache_miss('record')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_importing_the_request_path_loads_nothing_of_it() -> None:
    code = (
        "import sys, ctxsteward.envelope, ctxsteward.envelope.telemetry; "
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    )
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)
