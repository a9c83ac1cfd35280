"""The table of panels as Grafana imports it: one JSON document, the same bytes for the same table.

Source: Grafana's dashboard JSON model (classic, schema version 39, which Grafana 11 and newer read and migrate).
"""

from __future__ import annotations

from typing import Any

from .panels import GROUPS, Panel, Target

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


def _panel(panel: Panel) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": DATASOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": {"fillOpacity": 8}}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [_target(target, at) for at, target in enumerate(panel.targets)],
    }


def _target(target: Target, at: int) -> dict[str, Any]:
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
