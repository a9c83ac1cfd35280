"""The dashboard and the rules as they are shipped in ``docs/dashboards``, and the instruments they may name."""

from __future__ import annotations

import json
import re
from itertools import chain
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from ctxsteward.envelope import instruments as builds
from ctxsteward.envelope.audit import auditor as audits
from ctxsteward.envelope.instruments import Instrument
from ctxsteward.evals import telemetry as evals
from ctxsteward.steward.night import telemetry as nights

DOCS = Path(__file__).parents[2] / "docs"
DASHBOARD: dict[str, Any] = json.loads((DOCS / "dashboards" / "ctxsteward.json").read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
RULE_FILES = [DOCS / "dashboards" / "recording.yml", DOCS / "dashboards" / "alerts.yml"]
RECORDINGS, ALERTS = (YAML(typ="safe").load(path)["groups"][0]["rules"] for path in RULE_FILES)
LIMIT = re.compile(r" ([<>] [\d.]+)$")
"""What an alert compares its value with."""

HISTOGRAMS = (builds.BUILD_DURATION, builds.SELECTION_DURATION)
INSTRUMENTS: tuple[Instrument, ...] = tuple(
    chain(builds.INSTRUMENTS, HISTOGRAMS, audits.INSTRUMENTS, nights.INSTRUMENTS, evals.INSTRUMENTS)
)
SUFFIX = {"counter": "_total", "gauge": "", "histogram": "_seconds_bucket"}


def prometheus_name(instrument: Instrument) -> str:
    """What it is called where Prometheus scrapes it."""
    return instrument.name.replace(".", "_") + SUFFIX[instrument.kind]


def alert_value(alert: dict[str, Any]) -> str:
    """What the alert compares, as a query that has a value where all is well, too."""
    return LIMIT.sub("", alert["expr"])


def queries() -> list[str]:
    """Every query of the dashboard and the rules."""
    targets = [target["expr"] for panel in PANELS for target in panel["targets"]]
    return [*targets, *(rule["expr"] for rule in [*RECORDINGS, *ALERTS])]
