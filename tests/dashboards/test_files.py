"""The written dashboard and rules are those of the table, and Grafana can read them."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from ctxsteward.envelope import instruments as builds
from ctxsteward.envelope.audit import auditor as audits
from ctxsteward.evals import telemetry as evals
from ctxsteward.evals.dashboards.__main__ import files, main
from ctxsteward.evals.dashboards.files import dashboard
from ctxsteward.evals.dashboards.panels import ALERTS, RECORDINGS, panels
from ctxsteward.steward.night import telemetry as nights

WRITTEN = Path(__file__).parents[2] / "docs" / "dashboards"
VARIABLES = {"__rate_interval"}
"""Grafana's own."""


def plots() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def queries() -> list[str]:
    told = [target.query for panel in panels() for target in panel.targets]
    return [*told, *(rule.query for rule in RECORDINGS), *(alert.value for alert in ALERTS)]


def test_what_is_written_is_what_the_table_says() -> None:
    """Anew: python -m ctxsteward.evals.dashboards docs/dashboards."""
    assert {path.name: path.read_text(encoding="utf-8") for path in WRITTEN.iterdir()} == files()


def test_the_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "new")]) == 0

    assert {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "new").iterdir()} == files()
    assert len(capsys.readouterr().out.splitlines()) == len(files())


def test_every_instrument_is_shown_or_watched() -> None:
    """But for runs of evals, whose figures are."""
    said = " ".join(queries())
    boards = (builds.INSTRUMENTS, audits.INSTRUMENTS, nights.INSTRUMENTS, evals.INSTRUMENTS)
    names = {one.name for board in boards for one in board} | {"context.build.duration", "context.selection.duration"}

    assert {name for name in names if name.replace(".", "_") not in said} == {"eval.run.count"}


def test_the_dashboard_has_what_grafana_imports_by() -> None:
    found = dashboard()

    assert (found["uid"], found["title"], found["schemaVersion"]) == ("ctxsteward", "ctxsteward", 39)
    assert [one["id"] for one in found["panels"]] == list(range(1, len(found["panels"]) + 1))
    assert len(plots()) == len(panels())
    assert json.loads(json.dumps(found)) == found


def test_every_variable_of_a_query_is_defined() -> None:
    known = {one["name"] for one in dashboard()["templating"]["list"]} | VARIABLES
    used = set(re.findall(r"\$\{?(\w+)", json.dumps([panel["targets"] for panel in plots()])))

    assert used == {"datasource", "job", "__rate_interval"}
    assert used - known == set()


@pytest.mark.parametrize("plot", plots(), ids=lambda plot: plot["title"])
def test_a_panel_has_a_source_a_unit_and_queries(plot: dict[str, Any]) -> None:
    assert plot["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert plot["fieldConfig"]["defaults"]["unit"] in ("short", "percentunit", "s")
    assert [target["refId"] for target in plot["targets"]] == list("ABCDEFGH"[: len(plot["targets"])])
    assert all(target["expr"] and target["legendFormat"] for target in plot["targets"])


def test_panels_lie_side_by_side_within_the_grid() -> None:
    places = [one["gridPos"] for one in dashboard()["panels"]]

    assert all(place["x"] >= 0 and place["x"] + place["w"] <= 24 for place in places)
    assert [
        (one, other)
        for one, other in combinations(places, 2)
        if one["x"] < other["x"] + other["w"] and other["x"] < one["x"] + one["w"]
        and one["y"] < other["y"] + other["h"] and other["y"] < one["y"] + one["h"]
    ] == []  # fmt: skip


@pytest.mark.parametrize("name", ["recording.yml", "alerts.yml"])
def test_rules_are_yaml_with_a_name_each(name: str) -> None:
    (group,) = YAML(typ="safe").load(files()[name])["groups"]
    names = [rule.get("record") or rule["alert"] for rule in group["rules"]]

    assert len(names) == len(set(names))
    assert all(rule["expr"] for rule in group["rules"])


def test_every_alert_says_what_to_do() -> None:
    (group,) = YAML(typ="safe").load(files()["alerts.yml"])["groups"]

    assert {rule["labels"]["severity"] for rule in group["rules"]} == {"page", "ticket"}
    assert all("What to do: " in rule["annotations"]["description"] for rule in group["rules"])
