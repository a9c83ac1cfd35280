"""What builds, compactions and audits tell: the contract's instruments, with labels that cannot grow."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ctxsteward.envelope import instruments as telemetry
from ctxsteward.envelope.audit import auditor as audits
from ctxsteward.envelope.instruments import OTHER, Board, Instrument

ROOT = Path(__file__).parents[3]
CONTRACT = {
    "context.tokens_by_section",
    "context.section_utilization",
    "context.compress.count",
    "context.compress.tokens_saved",
    "context.losses",
    "context.cache_miss",
    "context.prefix_break",
    "context.prefix_tokens",
    "context.guard",
    "context.build.duration",
    "context.selection.duration",
    "audit.findings",
}
"""Names that dashboards depend on, of the request path."""

RUN = """
import json, sys
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
from ctxsteward.envelope import open_store
from tests.envelope.instrumented_calls import call_model, model_calls
with open_store("memory:") as store:
    for number, (session, builder) in enumerate(model_calls(store, "alice-secret"), start=1):
        call_model(store, session, builder, number)
told = {}
for scope in reader.get_metrics_data().resource_metrics[0].scope_metrics:
    for metric in scope.metrics:
        points = [
            [dict(point.attributes), point.value if hasattr(point, "value") else point.count]
            for point in metric.data.data_points
        ]
        told[metric.name] = {"unit": metric.unit, "scope": scope.scope.name, "points": points}
print(json.dumps(told))
"""


@cache
def told() -> dict[str, Any]:
    """Every point of a real run: the shipped incident, audited, damaged, once too large."""
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def total(name: str, **labels: str) -> float:
    points = told()[name]["points"]
    return float(sum(value for point, value in points if labels.items() <= point.items()))


def test_the_contract_s_instruments_are_told_by_one_meter() -> None:
    assert CONTRACT - set(told()) == set()
    assert {metric["scope"] for metric in told().values()} == {"ctxsteward"}


def test_no_label_can_say_more_than_its_list() -> None:
    boards = {one.name: one.labels for board in (telemetry.INSTRUMENTS, audits.INSTRUMENTS) for one in board}
    closed = boards | {
        "context.build.duration": {"outcome": ("built", "compacted", "failed")},
        "context.selection.duration": {},
    }
    beyond = [
        (name, label, value)
        for name, metric in told().items()
        for point, _ in metric["points"]
        for label, value in point.items()
        if value not in closed[name][label]
    ]

    assert beyond == []
    assert "secret" not in json.dumps(told())


def test_counts_agree_with_each_other() -> None:
    builds = total("context.build.duration")
    failed = total("context.build.duration", outcome="failed")

    assert builds > 125
    assert failed > 0
    assert total("context.compress.count") >= total("context.build.duration", outcome="compacted") > 0
    assert total("context.losses") > 0
    assert total("context.section_tokens") < total("context.prompt_tokens")
    assert 0 < total("context.prefix_tokens") < total("context.prompt_tokens")
    assert 0 < total("context.guard", level="90") <= total("context.guard", level="80") <= builds - failed
    assert total("audit.count", outcome="differs") == total("audit.findings") > 0
    assert total("context.cache_miss", reason="compaction") > 0
    assert 0 < total("context.selection.duration") < builds


def test_a_prefix_breaks_in_dynamic_and_once_a_session_in_meta() -> None:
    """Meta records over their trigger give way once, after some compactions; nothing else of a head changes."""
    assert total("context.prefix_break", section="meta") == 1
    assert total("context.prefix_break") == total("context.prefix_break", section="dynamic") + 1


@pytest.mark.parametrize("name", ["context.losses", "context.cache_miss", "audit.findings", "context.guard"])
def test_what_has_a_closed_list_stands_at_zero_before_anything_happens(name: str) -> None:
    """A rate needs a first value."""
    instruments = {one.name: one for one in (*telemetry.INSTRUMENTS, *audits.INSTRUMENTS)}
    (values,) = instruments[name].labels.values()

    assert isinstance(values, tuple)
    assert set(Board(instruments.values()).numbers(name).values()) == {0}
    assert {labels for (labels,) in Board(instruments.values()).numbers(name)} == set(values)


def test_one_module_knows_the_sdk() -> None:
    rooms = [path for path in ROOT.glob("*/ctxsteward/**/*.py") if ".venv" not in path.parts]
    named = re.compile(r"^\s*(?:from|import) (?:opentelemetry\.(?:sdk|exporter)|prometheus_client)", re.MULTILINE)

    assert {path.relative_to(ROOT).as_posix() for path in rooms if named.search(path.read_text(encoding="utf-8"))} == {
        "envelope/ctxsteward/envelope/telemetry/sdk.py",
    }


# -- boards ------------------------------------------------------------------------------------------------

CLOSED = Instrument(name="closed", kind="counter", unit="1", about="", labels={"kind": ("a", "b")})
OPEN = Instrument(name="open", kind="gauge", unit="1", about="", labels={"suite": 3, "kind": ("a",)})


@given(st.lists(st.text(max_size=5)))
def test_a_closed_label_never_grows(values: list[str]) -> None:
    board = Board([CLOSED])
    for value in values:
        board.add("closed", 1, value)

    assert set(board.numbers("closed")) <= {("a",), ("b",), (OTHER,)}
    assert sum(board.numbers("closed").values()) == len(values)


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=2))))
def test_an_open_label_has_at_most_so_many_values_and_other(values: list[tuple[str, str]]) -> None:
    board = Board([OPEN])
    for suite, kind in values:
        board.set("open", 1, suite, kind)

    assert len({suite for suite, _ in board.numbers("open")} - {OTHER}) <= 3
    assert {kind for _, kind in board.numbers("open")} <= {"a", OTHER}


def test_the_wrong_number_of_labels_is_a_mistake_of_ours() -> None:
    with pytest.raises(ValueError, match="closed has the labels kind; got 2 values"):
        Board([CLOSED]).add("closed", 1, "a", "b")


def test_threads_lose_no_count() -> None:
    from threading import Thread

    board = Board([CLOSED])
    threads = [Thread(target=lambda: [board.add("closed", 1, "a") for _ in range(2_000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert board.numbers("closed") == {("a",): 8_000, ("b",): 0}
