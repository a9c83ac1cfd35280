"""Every query of every panel, and every rule, asked of a real Prometheus that scrapes running processes of ours."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ctxsteward.evals.dashboards.panels import (
    ALERTS,
    GROUPS,
    RECORDINGS,
    Alert,
    PanelQuery,
    Recording,
    panels,
    query_for,
)
from ctxsteward.evals.dashboards.pictures import Prometheus, QueriedSeries, find, lines, picture, showing, watching

WRITTEN = Path(__file__).parents[2] / "docs" / "dashboards"
PROGRAM = os.environ.get("CTXSTEWARD_PROMETHEUS") or None
SHOWS = {"builds": ("--seconds=12", "--linger=300"), "nights": ("--seconds=0", "--nights=2", "--linger=300")}
WINDOW = "1m"

pytestmark = pytest.mark.skipif(find(PROGRAM) is None, reason="no prometheus: install the Debian package prometheus")


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """It has seen all of both shows, from before the first build on."""
    folder = tmp_path_factory.mktemp("prometheus")
    with ExitStack() as stack:
        log = stack.enter_context((folder / "shows.log").open("wb"))
        shows = {what: stack.enter_context(showing(what, *options, stderr=log)) for what, options in SHOWS.items()}
        targets = {what: url for what, (url, _) in shows.items()}
        files = [WRITTEN / "recording.yml", WRITTEN / "alerts.yml"]
        found = stack.enter_context(watching(folder, targets, rules=files, program=PROGRAM, scrape_seconds=0.5))
        for _, printed in shows.values():
            assert printed.readline().strip() == "shown", (folder / "shows.log").read_text()[-3_000:]
        for what in SHOWS:
            settle(found, what)
        yield found


def settle(prometheus: Prometheus, job: str) -> None:
    """Wait for two more scrapes."""
    query = f'count_over_time(up{{job="{job}"}}[10m])'
    seen = now(prometheus, query)
    for _ in range(600):
        if now(prometheus, query) >= seen + 2:
            return
        time.sleep(0.1)
    raise AssertionError(f"{job} is not scraped any more")


def now(prometheus: Prometheus, query: str) -> float:
    return sum(sample.points[0][1] for sample in prometheus.query(query))


def has_data(samples: list[QueriedSeries]) -> bool:
    return any(math.isfinite(value) for sample in samples for _, value in sample.points)


@pytest.mark.parametrize("target", [target for panel in panels() for target in panel.targets], ids=lambda t: t.legend)
def test_a_panel_s_query_returns_data(prometheus: Prometheus, target: PanelQuery) -> None:
    assert has_data(prometheus.query(query_for(target, window=WINDOW)))


@pytest.mark.parametrize("rule", RECORDINGS, ids=lambda rule: rule.name)
def test_a_recording_rule_has_recorded(prometheus: Prometheus, rule: Recording) -> None:
    assert has_data(prometheus.query(rule.name))


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_what_an_alert_watches_has_a_value(prometheus: Prometheus, alert: Alert) -> None:
    assert has_data(prometheus.query(alert.value))


def test_every_rule_is_healthy(prometheus: Prometheus) -> None:
    rules = prometheus.rules()

    assert len(rules) == len(RECORDINGS) + len(ALERTS)
    assert {rule["name"]: rule["health"] for rule in rules if rule["health"] != "ok"} == {}


def test_what_the_show_did_on_purpose_raises_its_alert(prometheus: Prometheus) -> None:
    """Requests that lack a message are findings of the audit, and one is told at once."""
    raised = {(one["labels"]["alertname"], one["state"]) for one in prometheus.alerts()}

    assert ("AuditFindings", "firing") in raised


def test_no_label_names_a_session(prometheus: Prometheus) -> None:
    """Sessions of the show are called incident-1 and so on."""
    labels = {
        (name, value)
        for sample in prometheus.query('{__name__=~"context_.+|audit_.+|meta_.+|eval_.+|drift_.+|schema_.+"}')
        for name, value in sample.labels.items()
        if name not in ("__name__", "instance", "job", "le")
    }

    assert {name for name, _ in labels} == {
        "section", "outcome", "reason", "kind", "level", "rate", "what", "suite", "metric"
    }  # fmt: skip
    assert [value for _, value in labels if "incident" in value] == []


def test_pictures_are_drawn_of_these_series(prometheus: Prometheus) -> None:
    start = now(prometheus, "min(min_over_time(timestamp(up)[10m:1s]))")
    found = picture(GROUPS[:1], lambda panel: lines(prometheus, panel, job="builds", start=start, end=start + 20))

    assert found.startswith("<svg ")
    assert found.count("<polyline") >= 10
    assert all(panel.title in found for panel in GROUPS[0].panels)
