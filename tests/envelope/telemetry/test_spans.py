"""Spans and log records of builds, as an OTLP receiver gets them from the official exporter.

The receiver is a server of this test on the loopback that decodes protobuf; the builds are in a process of their own,
since OpenTelemetry takes one provider a process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest

proto = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

SCRIPT = """
import io, json, logging, sys
from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile
from ctxsteward.envelope.telemetry.spans import usage_reported
from ctxsteward.envelope.telemetry.sdk import JsonLines, exported
from ctxsteward.envelope.testing import memory_store

class Selector:
    name = "own"
    def __call__(self, request):
        with trace.get_tracer("app").start_as_current_span("the selector asks a model"):
            return ()

with exported(f"otlp={sys.argv[1]}", stream=sys.stderr):
    from opentelemetry import trace
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.setFormatter(JsonLines())
    log = logging.getLogger("ctxsteward.envelope")
    log.addHandler(handler)
    log.setLevel(logging.INFO)

    session = memory_store().session("alice-s-session", tenant="secret-tenant", profile=Profile.from_text("You help."))
    budgets = Budgets(dynamic_tokens=300)
    builder = EnvelopeBuilder(model="gpt-4o", budgets=budgets, selector=Selector())
    built = []
    for number in range(24):
        text = f"message {number} about port {number * 7} " + "and more " * 8
        session.append({"role": ("user", "assistant")[number % 2], "content": text})
        with trace.get_tracer("app").start_as_current_span("request"):
            envelope = builder.build(session)
        built.append({
            "address": envelope.address, "reports": [report.id for report in envelope.reports],
            "epochs": {name: section.epoch for name, section in envelope.sections.items()},
            "version": envelope.profile_version, "compacted": session.state.compactions > 0,
        })
    usage_reported(session, envelope, "gpt-4o", input_tokens=90, cache_read=64, cache_creation=None)
    try:
        EnvelopeBuilder(tokenizer="o200k_base", window_tokens=5).build(session)
    except Exception as error:
        failure = type(error).__name__
print(json.dumps({"built": built, "log": [json.loads(line) for line in lines.getvalue().splitlines()],
                  "failure": failure}))
"""


class Received(NamedTuple):
    spans: list[Any]
    metrics: list[str]
    services: set[str]


@contextmanager
def receiver() -> Iterator[tuple[str, Received]]:
    """An OTLP/HTTP receiver; what it got."""
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    got = Received([], [], set())

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            if self.path == "/v1/traces":
                for resource in proto.ExportTraceServiceRequest.FromString(body).resource_spans:
                    got.services.update(values(resource.resource.attributes)["service.name"].split())
                    got.spans.extend(span for scope in resource.scope_spans for span in scope.spans)
            elif self.path == "/v1/metrics":
                for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                    got.metrics.extend(one.name for scope in resource.scope_metrics for one in scope.metrics)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", got
        finally:
            server.shutdown()
            thread.join()


def values(attributes: Sequence[Any]) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


class Run(NamedTuple):
    received: Received
    said: dict[str, Any]

    @property
    def builds(self) -> list[Any]:
        """Spans of builds that came to an end, in order."""
        return sorted(
            (span for span in self.received.spans if span.name == "context.build" and not span.status.code),
            key=lambda span: span.start_time_unix_nano,
        )

    def named(self, name: str) -> list[Any]:
        return [span for span in self.received.spans if span.name == name]


@pytest.fixture(scope="module")
def run() -> Run:
    with receiver() as (url, received):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, url], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr[-3_000:]
    return Run(received, json.loads(done.stdout))


def test_there_is_one_span_a_build_with_its_envelope_s_address(run: Run) -> None:
    addresses = [values(span.attributes)["context.envelope.address"] for span in run.builds]

    assert addresses == [one["address"] for one in run.said["built"]]


def test_a_build_is_a_child_of_the_request_it_was_for(run: Run) -> None:
    requests = {span.span_id: span.trace_id for span in run.named("request")}

    assert len(requests) == len(run.builds) == 24
    assert [requests[span.parent_span_id] for span in run.builds] == [span.trace_id for span in run.builds]


def test_what_a_selector_does_is_a_child_of_the_build(run: Run) -> None:
    builds = {span.span_id for span in run.builds}
    asked = run.named("the selector asks a model")

    assert asked
    assert {span.parent_span_id for span in asked} <= builds


def test_attributes_follow_the_genai_conventions_where_there_are_any(run: Run) -> None:
    told = [values(span.attributes) for span in run.builds]

    assert {one["gen_ai.request.model"] for one in told} == {"gpt-4o"}
    assert len({one["gen_ai.conversation.id"] for one in told}) == 1
    assert [one["context.profile.version"] for one in told] == [one["version"] for one in run.said["built"]]
    assert all(0 <= one["context.prefix_tokens"] <= one["context.prompt_tokens"] for one in told)


def test_a_compilation_says_what_it_is_for_and_whether_it_was_compacted(run: Run) -> None:
    told = [values(span.attributes) for span in run.builds]

    assert [one["gen_ai.context.compilation.id"] for one in told] == [one["address"] for one in run.said["built"]]
    assert [one["gen_ai.context.compilation.trigger"] for one in told] == ["user", "assistant"] * 12
    assert {one["gen_ai.context.window_size"] for one in told} == {128_000}
    compacted = [one.get("gen_ai.conversation.compacted") for one in told]
    assert compacted == [True if one["compacted"] else None for one in run.said["built"]]
    assert {True, None} == set(compacted)


def test_a_reported_usage_is_a_span_of_the_same_compilation(run: Run) -> None:
    (span,) = run.named("context.usage")
    newest = values(run.builds[-1].attributes)

    assert values(span.attributes) == {
        "gen_ai.conversation.id": newest["gen_ai.conversation.id"],
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.context.compilation.id": newest["gen_ai.context.compilation.id"],
        "gen_ai.usage.input_tokens": 90,
        "gen_ai.usage.cache_read.input_tokens": 64,
    }


def test_events_show_when_a_section_began_a_new_epoch_and_only_then(run: Run) -> None:
    epochs: dict[str, int] = {}
    expected, found = [], []
    for span, built in zip(run.builds, run.said["built"], strict=True):
        expected.append({name: epoch for name, epoch in built["epochs"].items() if epochs.get(name) != epoch})
        epochs = built["epochs"]
        events = [values(event.attributes) for event in span.events if event.name == "context.section"]
        found.append({event["section"]: event["epoch"] for event in events})

    assert found == expected
    assert found[0] == {"system": 0, "static": 0, "meta": 0, "dynamic": 0}
    assert sum(bool(one) for one in found[1:]) >= 2


def test_a_compaction_is_an_event_with_its_report(run: Run) -> None:
    found = [
        [values(event.attributes) for event in span.events if event.name == "context.compaction"] for span in run.builds
    ]

    assert [[event["report"] for event in events] for events in found] == [one["reports"] for one in run.said["built"]]
    assert all(event["post_tokens"] < event["pre_tokens"] for events in found for event in events)


def test_a_build_that_raises_ends_in_an_error_that_quotes_nothing(run: Run) -> None:
    (failed,) = [span for span in run.named("context.build") if span.status.code]

    assert failed.status.message == run.said["failure"] == values(failed.attributes)["error.type"]
    assert len(failed.events) == 0


def test_a_log_record_carries_the_address_and_its_trace(run: Run) -> None:
    log = run.said["log"]
    places = {(span.trace_id.hex(), span.span_id.hex()) for span in run.builds}

    assert [line["context.envelope.address"] for line in log] == [one["address"] for one in run.said["built"]]
    assert {(line["trace_id"], line["span_id"]) for line in log} == places
    assert {line["level"] for line in log} == {"INFO"}


def test_nothing_names_session_tenant_or_text(run: Run) -> None:
    said = " ".join(map(str, run.received.spans)) + json.dumps(run.said["log"])

    assert [word for word in ("alice", "secret", "about port") if word in said] == []


def test_metrics_and_the_service_s_name_come_too(run: Run) -> None:
    assert run.received.services == {"ctxsteward"}
    assert {"context.tokens_by_section", "context.build.duration"} <= set(run.received.metrics)
