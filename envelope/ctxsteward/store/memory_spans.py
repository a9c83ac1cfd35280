"""Spans of memory operations, by the names of OpenTelemetry's conventions for generative AI.

    search_memory   recall for a user turn           gen_ai.memory.store.id: address of the session
    upsert_memory   a commit of a profile            its name
    delete_memory   an erasure                       address of the session; left out if it is of a person in all

``gen_ai.memory.record.count`` has the messages and lines recalled, the entries and records added or changed, or the
messages erased. A failed operation has the class of its error (``error.type``). Queries and records, which the
conventions have as opt-in, are never recorded.

A span is made when the operation has ended, if the process has loaded OpenTelemetry; an operation that finds nothing
to do has none. Source: OpenTelemetry semantic conventions for generative AI v0.1.0, span ``gen_ai.memory.client``
(repository open-telemetry/semantic-conventions-genai, docs/gen-ai/gen-ai-spans.md, section Memory).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

API, SCOPE = "opentelemetry.trace", "ctxsteward"


@contextmanager
def memory_span(
    operation: Literal["search_memory", "upsert_memory", "delete_memory"], store_id: str | None
) -> Iterator[Callable[[int], None]]:
    """Record an operation; yield a function that takes its number of records, without which there is no span."""
    if API not in sys.modules:
        yield lambda count: None
        return
    from opentelemetry.trace import SpanKind, Status, StatusCode, get_tracer

    attributes: dict[str, str | int] = {"gen_ai.operation.name": operation}
    if store_id is not None:
        attributes["gen_ai.memory.store.id"] = store_id
    counts: list[int] = []
    failure = None
    started = time.time_ns()
    try:
        yield counts.append
    except BaseException as error:
        failure = type(error).__name__
        raise
    finally:
        if counts or failure:
            for count in counts:
                attributes["gen_ai.memory.record.count"] = count
            span = get_tracer(SCOPE).start_span(operation, None, SpanKind.INTERNAL, attributes, start_time=started)
            if failure:
                span.set_attribute("error.type", failure)
                span.set_status(Status(StatusCode.ERROR, failure))
            span.end()
