"""What auditing a request costs: a large one with which nothing is wrong, sealed, as it came back from a log."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

from ctxsteward.envelope import PROVIDERS, Budgets, EnvelopeBuilder
from ctxsteward.envelope.audit import audit, sealed_request
from ctxsteward.envelope.testing import memory_store

from ..suites.kit.suite import Draw
from ..suites.verbatim import make
from . import BenchmarkRow, row

NAME = "audit"
TOKENS = 20_000
TIMES = 100
LIMIT_MS = 10


def run(data: Path | None = None) -> Iterator[BenchmarkRow]:
    """Yield the figures."""
    session = memory_store().session("large")
    session.extend(make(Draw("verbatim", "docs", 0)).messages)
    envelope = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=2 * TOKENS)).build(session)
    for provider in PROVIDERS:
        sent = json.loads(json.dumps(sealed_request(envelope, provider)))
        costs = []
        for _ in range(TIMES):
            started = time.process_time()
            found = audit(envelope, sent)
            costs.append((time.process_time() - started) * 1000)
            assert found == (), found
        what = f"p99 of auditing a clean request of {envelope.tokens:,} tokens, {provider}"
        yield row(NAME, what, sorted(costs)[TIMES - 2], "ms", at_most=LIMIT_MS)
