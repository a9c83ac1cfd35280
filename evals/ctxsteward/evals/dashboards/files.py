"""The table of panels as Grafana imports it: one JSON document, the same bytes for the same table.

Source: Grafana's dashboard JSON model (classic, schema version 39, which Grafana 11 and newer read and migrate).

The table of rules as Prometheus reads it: YAML, the same bytes for the same table.

Source: the Prometheus project's documentation of recording and alerting rules.

Tables of the guide: every instrument, every alert, as Markdown between a page's markers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

from ctxsteward.envelope import instruments as builds
from ctxsteward.envelope.audit import auditor as audits
from ctxsteward.envelope.instruments import Instrument
from ctxsteward.schemas import InputError
from ctxsteward.steward.night import telemetry as nights

from .. import telemetry as evals
from .panels import ALERTS, GROUPS, RECORDINGS, Alert, DashboardPanel, PanelQuery

UID, TITLE = "ctxsteward", "ctxsteward"
SCHEMA_VERSION = 39
COLUMNS, ACROSS, HEIGHT = 24, 4, 8
"""Grid units of the dashboard; panels side by side; grid units of a panel."""
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def dashboard() -> dict[str, Any]:
    """The dashboard."""
    return {
        "uid": UID,
        "title": TITLE,
        "description": "Envelopes, compaction, prefix cache, audits, nights of the steward, evals.",
        "tags": ["ctxsteward", "llm"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_datasource(), _job()]},
        "annotations": {"list": []},
        "panels": _laid_out(),
    }


def _laid_out() -> list[dict[str, Any]]:
    """Rows and panels with their places; ids count from 1."""
    placed: list[dict[str, Any]] = []
    y = 0
    for group in GROUPS:
        place = {"h": 1, "w": COLUMNS, "x": 0, "y": y}
        placed.append({"id": len(placed) + 1, "type": "row", "title": group.title, "collapsed": False, "gridPos": place,
                       "panels": []})  # fmt: skip
        y += 1
        width = COLUMNS // min(len(group.panels), ACROSS)
        for number, panel in enumerate(group.panels):
            line, column = divmod(number, ACROSS)
            place = {"h": HEIGHT, "w": width, "x": column * width, "y": y + line * HEIGHT}
            placed.append({"id": len(placed) + 1, "gridPos": place, **_panel(panel)})
        y += HEIGHT * -(-len(group.panels) // ACROSS)
    return placed


def _panel(panel: DashboardPanel) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": DATASOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": {"fillOpacity": 8}}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [_target(target, at) for at, target in enumerate(panel.targets)],
    }


def _target(target: PanelQuery, at: int) -> dict[str, Any]:
    return {
        "refId": chr(ord("A") + at),
        "datasource": DATASOURCE,
        "expr": target.query,
        "legendFormat": target.legend,
        "range": True,
    }


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": {},
            "refresh": 1, "hide": 0}  # fmt: skip


def _job() -> dict[str, Any]:
    query = "label_values(target_info, job)"
    return {
        "name": "job",
        "label": "Job",
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": "job"},
        "definition": query,
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
        "sort": 1,
        "hide": 0,
    }


def recording_rules() -> str:
    """The file of recording rules."""
    lines = ["groups:", "  - name: ctxsteward", "    rules:"]
    for rule in RECORDINGS:
        lines += [f"      - record: {rule.name}", f"        expr: {_quoted(rule.query)}"]
    return "\n".join(lines) + "\n"


def alert_rules() -> str:
    """The file of alerts."""
    lines = ["groups:", "  - name: ctxsteward-alerts", "    rules:"]
    for alert in ALERTS:
        lines += _alert(alert)
    return "\n".join(lines) + "\n"


def _alert(alert: Alert) -> list[str]:
    return [
        f"      - alert: {alert.name}",
        f"        expr: {_quoted(f'{alert.value} {alert.limit}')}",
        f"        for: {alert.lasting}",
        "        labels:",
        f"          severity: {alert.severity}",
        "        annotations:",
        f"          summary: {_quoted(f'{{{{ $labels.job }}}}: {alert.summary}')}",
        f"          description: {_quoted(f'At {{{{ $value }}}}. What to do: {alert.todo}.')}",
    ]


def _quoted(text: str) -> str:
    """As a double-quoted YAML string, of which JSON's are a part."""
    return json.dumps(text, ensure_ascii=False)


INSTRUMENTS: tuple[Instrument, ...] = tuple(
    chain(
        builds.INSTRUMENTS, (builds.BUILD_DURATION, builds.SELECTION_DURATION), audits.INSTRUMENTS, nights.INSTRUMENTS,
        evals.INSTRUMENTS,
    )
)  # fmt: skip
SUFFIXES = {"counter": "_total", "gauge": "", "histogram": "_seconds_bucket"}
MOST_VALUES = 4
"""Of a label, written out."""


def prometheus_name(one: Instrument) -> str:
    """What it is called where Prometheus scrapes it.

    >>> prometheus_name(builds.BUILD_DURATION)
    'context_build_duration_seconds_bucket'
    """
    return one.name.replace(".", "_") + SUFFIXES[one.kind]


def instruments() -> Iterator[str]:
    """One row each."""
    yield "| instrument | in Prometheus | labels | what it says |"
    yield "|---|---|---|---|"
    for one in INSTRUMENTS:
        labels = "; ".join(f"`{name}`: {_values(values)}" for name, values in one.labels.items())
        yield f"| `{one.name}` | `{prometheus_name(one)}` | {labels} | {one.about} |"


def rules() -> Iterator[str]:
    """One row each, recorded series first."""
    yield "| rule | when | what to do |"
    yield "|---|---|---|"
    for rule in RECORDINGS:
        yield f"| `{rule.name}` | recorded | |"
    for alert in ALERTS:
        for_ = "" if alert.lasting == "0m" else f", for {alert.lasting}"
        yield f"| `{alert.name}` | {alert.summary} ({alert.limit}{for_}; {alert.severity}) | {alert.todo} |"


def with_tables(text: str) -> str:
    """The page with its tables anew; raises `InputError` where a marker is missing."""
    for name, rows in (("instruments", instruments()), ("rules", rules())):
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        if not 0 <= text.find(begin) < text.find(end):
            raise InputError(f"the page has no {begin.strip()} followed by {end}; write them where the table belongs")
        text = text[: text.index(begin)] + begin + "\n".join(rows) + "\n" + text[text.index(end) :]
    return text


def _values(values: tuple[str, ...] | int) -> str:
    if isinstance(values, int):
        return f"at most {values}"
    more = f" and {len(values) - MOST_VALUES} more" if len(values) > MOST_VALUES + 1 else ""
    return ", ".join(values[:MOST_VALUES] if more else values) + more
