"""Export of telemetry: an OpenTelemetry SDK for processes without one of their own (extra ``telemetry``).

    exported("prometheus=127.0.0.1:9464")   metrics on an HTTP endpoint, for Prometheus to scrape
    exported("otlp=http://127.0.0.1:4318")  spans and metrics to an OTLP receiver (HTTP, protobuf)
    exported("console")                     spans, log records and, at the end, metrics as JSON lines on a stream

The command line and the flows call this; an application sets up its own SDK, which then receives everything. It works
once per process, because OpenTelemetry accepts one provider of each kind and keeps it. The endpoint is on the loopback
unless the destination names a host; port 0 takes a free one. The SDK's figures about itself are left out. Only this
module imports the SDK.

Raises `InputError` for an invalid destination, an address in use, a missing package.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import IO, TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import shown_uri, without_secrets

from ..instruments import Board, board as builds
from .spans import LOGGER

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanProcessor

SERVICE = "ctxsteward"
LOOPBACK, PROMETHEUS_PORT = "127.0.0.1", 9464
"""9464 is the port that OpenTelemetry's specification gives Prometheus exporters."""
OTLP = "http://127.0.0.1:4318"
EXPORT_MILLISECONDS = 5_000
KINDS = ("console", "prometheus", "otlp")


class Destination(NamedTuple):
    """Target of the telemetry."""

    kind: str
    host: str = LOOPBACK
    port: int = PROMETHEUS_PORT
    url: str = OTLP

    def __repr__(self) -> str:
        return f"Destination({self.kind!r}, {self.host!r}, {self.port}, {without_secrets(self.url)!r})"

    @classmethod
    def parse(cls, text: str) -> Destination:
        """Parse ``console``, ``prometheus``, ``prometheus=PORT``, ``prometheus=HOST:PORT``, ``otlp`` or ``otlp=URL``.

        >>> Destination.parse("prometheus=9000")[:3]
        ('prometheus', '127.0.0.1', 9000)
        """
        kind, _, rest = text.partition("=")
        if kind == "otlp" and rest:
            if urlsplit(rest).scheme not in ("http", "https") or not urlsplit(rest).netloc:
                raise InputError(f"telemetry {kind}={shown_uri(rest)!r:.80}: not an http:// or https:// address")
            return cls(kind, url=rest.rstrip("/"))
        if kind == "prometheus" and rest:
            host, _, port = rest.rpartition(":")
            if not (port.isascii() and port.isdecimal() and len(port) < 6 and int(port) < 65_536):
                raise InputError(f"telemetry {kind}={shown_uri(rest)!r:.80}: not a port from 0 to 65535, or HOST:PORT")
            return cls(kind, host=host.strip("[]") or LOOPBACK, port=int(port))
        if kind not in KINDS or rest:
            raise InputError(
                f"telemetry {shown_uri(text)!r:.80}: none; one of console, prometheus[=HOST:PORT], otlp[=URL]"
            )
        return cls(kind)


@contextmanager
def exported(destination: str, *, stream: IO[str], boards: Sequence[Board] = ()) -> Iterator[str]:
    """Send this process's telemetry to a destination while entered; yield the destination in words, for a person.

    `boards` are added to the request path's, so that their zeros are in the first collection.
    """
    where = Destination.parse(destination)
    with ExitStack() as stack:
        try:
            opened = _OPEN[where.kind](where, stream, stack)
        except ImportError as error:
            text = f"telemetry {where.kind} needs the extra `telemetry` ({error.name})"
            raise InputError(f"{text}; pip install 'ctxsteward[telemetry]'") from None
        for board in (builds(), *boards):
            board.offer()
        yield opened


@contextmanager
def scraped(boards: Sequence[Board] = ()) -> Iterator[Callable[[], str] | None]:
    """Yield a function that returns this process's metrics in Prometheus form, for a server of the caller's own.

    Yield None if the extra ``telemetry`` is not installed, or the metrics are already exported elsewhere.
    """
    with ExitStack() as stack:
        try:
            from opentelemetry.exporter.prometheus import PrometheusMetricReader
            from opentelemetry.metrics import get_meter_provider
            from opentelemetry.sdk.metrics import MeterProvider
            from prometheus_client import CollectorRegistry, generate_latest
        except ImportError:
            yield None
            return
        if isinstance(get_meter_provider(), MeterProvider):
            yield None
            return
        registry = CollectorRegistry()
        _set_up(stack, PrometheusMetricReader(scope_info_enabled=False, registry=registry), None)
        for board in (builds(), *boards):
            board.offer()
        yield lambda: generate_latest(registry).decode()


# -- destinations -------------------------------------------------------------------------------------------------


def _to_prometheus(where: Destination, stream: IO[str], stack: ExitStack) -> str:
    from opentelemetry.exporter.prometheus import PrometheusMetricReader
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    try:
        server, thread = start_http_server(where.port, where.host, registry)
    except OSError as error:
        raise InputError(f"telemetry prometheus: cannot listen on {where.host}:{where.port}: {error}") from error
    stack.callback(thread.join)
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    _set_up(stack, PrometheusMetricReader(scope_info_enabled=False, registry=registry), None)
    host = f"[{where.host}]" if ":" in where.host else where.host
    return f"http://{host}:{server.server_port}/metrics"


def _to_otlp(where: Destination, stream: IO[str], stack: ExitStack) -> str:
    exporter = "opentelemetry.exporter.otlp.proto.http"
    spans = import_module(f"{exporter}.trace_exporter").OTLPSpanExporter(endpoint=f"{where.url}/v1/traces")
    metrics = import_module(f"{exporter}.metric_exporter").OTLPMetricExporter(endpoint=f"{where.url}/v1/metrics")
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    _set_up(stack, PeriodicExportingMetricReader(metrics, EXPORT_MILLISECONDS), BatchSpanProcessor(spans))
    return without_secrets(where.url)


def _to_console(where: Destination, stream: IO[str], stack: ExitStack) -> str:
    from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

    metrics = ConsoleMetricExporter(out=stream, formatter=lambda data: data.to_json(indent=None) + "\n")
    spans = ConsoleSpanExporter(out=stream, formatter=lambda span: span.to_json(indent=None) + "\n")
    log, heard = logging.getLogger(LOGGER), logging.StreamHandler(stream)
    heard.setFormatter(JsonLines())
    stack.callback(log.setLevel, log.level)
    stack.callback(log.removeHandler, heard)
    log.addHandler(heard)
    log.setLevel(logging.INFO)
    never = float("inf")  # except at the end
    _set_up(stack, PeriodicExportingMetricReader(metrics, never), SimpleSpanProcessor(spans))
    return "the console"


_OPEN = {"prometheus": _to_prometheus, "otlp": _to_otlp, "console": _to_console}


def _set_up(stack: ExitStack, reader: MetricReader, spans: SpanProcessor | None) -> None:
    """Set the providers, which end with the stack and then send what is left."""
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

    counted = MeterProvider(metric_readers=[reader], resource=_resource(), shutdown_on_exit=False)
    metrics.set_meter_provider(counted)
    stack.callback(counted.shutdown)
    stack.callback(counted.force_flush)
    if spans is not None:
        traced = TracerProvider(
            resource=_resource(), shutdown_on_exit=False, meter_provider=metrics.NoOpMeterProvider()
        )
        traced.add_span_processor(spans)
        trace.set_tracer_provider(traced)
        stack.callback(traced.shutdown)


def _resource() -> Resource:
    """Return the service's name; `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`, read by the SDK, override it."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    return Resource.create({"service.name": SERVICE}).merge(OTELResourceDetector().detect())


class JsonLines(logging.Formatter):
    """Formats a log record as one line of JSON, with its extra values as fields of their own."""

    _KNOWN = frozenset(logging.makeLogRecord({}).__dict__)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        beside = {name: value for name, value in record.__dict__.items() if name not in self._KNOWN}
        fields = {"logger": record.name, "level": record.levelname, "message": record.getMessage(), **beside}
        return json.dumps(fields, ensure_ascii=False, default=str)
