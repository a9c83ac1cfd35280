"""The shipped dashboard and rules name instruments that exist, and Grafana can read them."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

import pytest

from .definitions import (
    ALERTS,
    DASHBOARD,
    INSTRUMENTS,
    PANELS,
    RECORDINGS,
    alert_value,
    prometheus_name,
    queries,
)

METRIC = re.compile(r"\b(?:context|audit|meta|drift|schema|eval)_\w+")


def test_every_metric_of_a_query_is_an_instrument() -> None:
    known = {prometheus_name(one) for one in INSTRUMENTS}
    known |= {name.replace("_bucket", "_count") for name in known}
    used = {name for query in queries() for name in METRIC.findall(query)}

    assert used - known == set()


def test_every_instrument_is_shown_or_watched() -> None:
    """But for runs of evals, whose figures are."""
    used = " ".join(queries())

    assert {one.name for one in INSTRUMENTS if one.name.replace(".", "_") not in used} == {"eval.run.count"}


def test_labels_of_a_query_are_labels_of_its_instrument() -> None:
    labels = {label for one in INSTRUMENTS for label in one.labels} | {"job", "le"}
    used = {
        label.strip()
        for query in queries()
        for names in re.findall(r"by \(([^)]+)\)", query)
        for label in names.split(",")
    }

    assert used - labels == set()


def test_the_dashboard_has_what_grafana_imports_by() -> None:
    assert (DASHBOARD["uid"], DASHBOARD["title"], DASHBOARD["schemaVersion"]) == ("ctxsteward", "ctxsteward", 39)
    assert [panel["id"] for panel in DASHBOARD["panels"]] == list(range(1, len(DASHBOARD["panels"]) + 1))


def test_every_variable_of_a_query_is_defined() -> None:
    known = {one["name"] for one in DASHBOARD["templating"]["list"]} | {"__rate_interval"}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps([panel["targets"] for panel in PANELS])))

    assert used == known == {"datasource", "job", "__rate_interval"}


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_has_a_source_a_unit_and_queries(panel: dict[str, Any]) -> None:
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert panel["fieldConfig"]["defaults"]["unit"] in ("short", "percentunit", "s")
    assert [target["refId"] for target in panel["targets"]] == list("ABCDEFGH"[: len(panel["targets"])])
    assert all(target["expr"] and target["legendFormat"] for target in panel["targets"])


def test_panels_lie_side_by_side_within_the_grid() -> None:
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]

    assert all(place["x"] >= 0 and place["x"] + place["w"] <= 24 for place in places)
    assert [
        (one, other)
        for one, other in combinations(places, 2)
        if one["x"] < other["x"] + other["w"]
        and other["x"] < one["x"] + one["w"]
        and one["y"] < other["y"] + other["h"]
        and other["y"] < one["y"] + one["h"]
    ] == []


def test_every_rule_has_a_name_and_every_alert_a_limit() -> None:
    names = [rule.get("record") or rule["alert"] for rule in [*RECORDINGS, *ALERTS]]

    assert len(names) == len(set(names))
    assert all(alert_value(alert) != alert["expr"] for alert in ALERTS)
    assert {alert["labels"]["severity"] for alert in ALERTS} == {"page", "ticket"}
