"""Telemetry's share of a build's time: without an SDK, and with one that has metrics and a span for every build.

Two sessions get the same messages in turn. Before each model call one is built with telemetry's hooks and one without;
the order alternates, so that a drifting machine affects both equally. The figure is the ratio of the times of all
builds, median of the rounds. Each set-up runs in a process of its own: `quiet` never loaded OpenTelemetry, `metrics`
has an SDK with metrics alone, `on` metrics and spans. Metrics are set up for Prometheus. Spans end in a batch processor
with an exporter that discards them, because the cost of a real exporter is not telemetry's. There are two workloads:
the demo's incident (129 calls, small budget, recall, tools) in a file store, to which the bar applies; and the cheapest
builds, short chat turns in memory without recall, for information. Times are the CPU time of `build` alone.
"""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from importlib.resources import files
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Session, open_store
from ctxsteward.envelope.building import builder as building
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.envelope.telemetry import spans
from ctxsteward.envelope.transcripts.files import parse_transcripts
from ctxsteward.evals.replay import new_message, open_session

from .conversations import conversation
from .rows import BenchmarkRow, row

NAME = "telemetry"
ROUNDS = 5
SETUPS = {"quiet": "nobody listens", "metrics": "SDK with metrics", "on": "SDK with metrics and spans"}
AT_MOST = 1.05
CHAT_MESSAGES = 600
WARM_BUILDS = 5


def run(data: object = None) -> Iterator[BenchmarkRow]:
    """Yield the figures."""
    rounds = [{setup: _in_a_process(setup) for setup in SETUPS} for _ in range(ROUNDS)]
    for workload, what in (("incident", "the demo's incident, file store"), ("chat", "short chat turns in memory")):
        for setup, said in SETUPS.items():
            ratio = statistics.median(one[setup][workload].ratio for one in rounds)
            bar = AT_MOST if (setup, workload) == ("on", "incident") else None
            yield row(NAME, f"{what}: {said} / without hooks", ratio, "×", at_most=bar)
        plain = statistics.median(one["on"][workload].plain_us for one in rounds)
        added = statistics.median(one["on"][workload].told_us - one["on"][workload].plain_us for one in rounds)
        yield row(NAME, f"{what}: a build without hooks", plain, "µs")
        yield row(NAME, f"{what}: metrics and a span add", added, "µs")


class BuildTimePair(NamedTuple):
    """CPU microseconds per build."""

    told_us: float
    plain_us: float

    @property
    def ratio(self) -> float:
        return self.told_us / self.plain_us


def _in_a_process(setup: str) -> dict[str, BuildTimePair]:
    found = json.loads(subprocess.check_output([sys.executable, "-m", __name__, setup]))
    return {workload: BuildTimePair(*pair) for workload, pair in found.items()}


def measure(setup: str) -> dict[str, BuildTimePair]:
    """Measure by workload, in this process, which has no other set-up."""
    if setup != "quiet":
        _set_up_sdk(spans=setup == "on")
    _incident()  # fill the caches that a process keeps (stems, schemas, texts read) before anything is timed
    return {"incident": _incident(), "chat": _chat()}


def _incident() -> BuildTimePair:
    data = files("ctxsteward.console") / "data"
    (transcript,) = parse_transcripts((data / "demo.jsonl").read_text(encoding="utf-8"), "demo.jsonl")
    builders = [EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=2_000)) for _ in range(2)]
    with TemporaryDirectory() as folder, ExitStack() as stack:
        stores = [stack.enter_context(open_store(f"file:{folder}/{name}")) for name in ("told", "plain")]
        sessions = [open_session(store, transcript) for store in stores]
        messages = [new_message(entry, at) for at, entry in enumerate(transcript.entries(), start=1)]
        calls = [entry.wire.get("role") == "assistant" for entry in transcript.entries()]
        return _timed(builders, sessions, zip(messages, calls, strict=True))


def _chat() -> BuildTimePair:
    budgets = Budgets(dynamic_tokens=4_000, recall_fraction=0)
    builders = [EnvelopeBuilder(model="gpt-4o", budgets=budgets) for _ in range(2)]
    with open_store("memory:") as told, open_store("memory:") as plain:
        sessions = [store.session("bench") for store in (told, plain)]
        messages = conversation(CHAT_MESSAGES)
        return _timed(builders, sessions, ((NewMessage(message=message), True) for message in messages))


def _timed(
    builders: Sequence[EnvelopeBuilder], sessions: Sequence[Session], messages: Iterable[tuple[NewMessage, bool]]
) -> BuildTimePair:
    """Append to both sessions, and build both before each answer of the model; the first builds do not count."""
    hooks = (spans.BuildSpan, _UninstrumentedBuilder)
    spent, count = [0, 0], -WARM_BUILDS
    gc.disable()  # a collection would be charged to the build in which it happens
    for message, is_call in messages:
        if is_call and len(sessions[0]):
            count += 1
            for which in (0, 1) if count % 2 else (1, 0):
                building.BuildSpan = hooks[which]  # type: ignore[assignment, attr-defined]
                start = time.process_time_ns()
                builders[which].build(sessions[which])
                spent[which] += (time.process_time_ns() - start) * (count > 0)
        for session in sessions:
            session.extend([message])
        gc.collect(1)
    gc.enable()
    building.BuildSpan = hooks[0]  # type: ignore[attr-defined]
    return BuildTimePair(*(nanoseconds / 1e3 / count for nanoseconds in spent))


class _UninstrumentedBuilder:
    """Replaces `spans.BuildSpan` and does nothing."""

    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> _UninstrumentedBuilder:
        return self

    def __exit__(self, *_: object) -> None: ...

    def built(self, session: Session, envelope: Envelope) -> None: ...


def _set_up_sdk(*, spans: bool) -> None:
    from opentelemetry import metrics, trace
    from opentelemetry.exporter.prometheus import PrometheusMetricReader
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Nowhere(SpanExporter):
        def export(self, spans: object) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    metrics.set_meter_provider(MeterProvider(metric_readers=[PrometheusMetricReader()]))
    if spans:
        provider = TracerProvider(meter_provider=metrics.NoOpMeterProvider())
        provider.add_span_processor(BatchSpanProcessor(Nowhere()))
        trace.set_tracer_provider(provider)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
