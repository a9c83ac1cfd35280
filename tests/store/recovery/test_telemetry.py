"""What is missed is counted, through the API alone; nothing of it is loaded here."""

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
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

reader = InMemoryMetricReader()
records = store.journal.read(session.key, 0)
last = max(n for n, record in enumerate(records) if record.kind == "compaction")
message = max(n for n, record in enumerate(records) if record.kind == "message")
store.journal.rewrite(session.key, {n: records[n]._replace(mac="") for n in (last, message)})
store.session("s")
metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
rebuild(store, envelope.address)
(scope,) = reader.get_metrics_data().resource_metrics[0].scope_metrics
(metric,) = [metric for metric in scope.metrics if metric.name == "context.cache_miss"]
print(scope.scope.name, metric.name, metric.unit)
for point in sorted(metric.data.data_points, key=lambda point: point.attributes["reason"]):
    print(dict(point.attributes), point.value)
"""

EXPECTED = [
    "ctxsteward context.cache_miss 1",
    "{'reason': 'compaction'} 2",
    "{'reason': 'envelope'} 1",
    "{'reason': 'manifest'} 0",
    "{'reason': 'original'} 2",
    "{'reason': 'record'} 0",
    "{'reason': 'restored'} 0",
]


def test_what_is_missed_is_counted_by_reason_also_before_a_provider_is_set_up() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.splitlines(), done.stderr) == (EXPECTED, "")


def test_without_an_sdk_nothing_happens_and_nothing_is_loaded() -> None:
    """Nor does the request path load anything of it where it builds."""
    code = (
        "import sys; from ctxsteward.envelope.instruments import cache_miss; "
        "from ctxsteward.envelope import EnvelopeBuilder; from ctxsteward.envelope.testing import memory_store; "
        "cache_miss('record'); cache_miss('record'); session = memory_store().session('s'); "
        "session.append({'role': 'user', 'content': 'hi'}); EnvelopeBuilder(model='gpt-4o').build(session); "
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
