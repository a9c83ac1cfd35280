"""Rules as ``promtool`` judges them: they parse, and each alert fires on what it is for and on nothing else.

``alerts.yaml`` has the series of each alert (a minute between values) and when it must have fired. `BUILDS` are 60
builds a minute.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ..needs import PROMETHEUS
from ..tables import table
from .definitions import ALERTS, PANELS, RULE_FILES

PROMTOOL = shutil.which(os.environ.get("CTXSTEWARD_PROMTOOL") or "promtool")
BUILDS = {'context_build_duration_seconds_count{job="chat",outcome="built"}': "0+60x2000"}

pytestmark = pytest.mark.skipif(PROMTOOL is None, reason=PROMETHEUS)


CASES: list[dict[str, Any]] = table(__file__, "alerts.yaml")
KINDS = ("fires", "calm")


def test_every_alert_has_a_case() -> None:
    assert [case["alert"] for case in CASES] == [alert["alert"] for alert in ALERTS]


def promtool(*arguments: str | Path) -> str:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_rules_are_valid() -> None:
    said = promtool("check", "rules", "--lint=all", "--lint-fatal", *RULE_FILES)

    assert said.count("SUCCESS") == 2


def test_every_query_of_a_panel_is_valid(tmp_path: Path) -> None:
    """`promtool` checks queries of rules only, so each panel's query becomes one; Grafana fills in the variables."""
    queries = [target["expr"] for panel in PANELS for target in panel["targets"]]
    filled = [query.replace("$job", ".*").replace("$__rate_interval", "5m") for query in queries]
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(filled)]
    path = tmp_path / "panels.yml"
    path.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}), encoding="utf-8")

    assert f"SUCCESS: {len(rules)} rules found" in promtool("check", "rules", path)


def test_an_alert_fires_on_what_it_is_for_and_on_nothing_else(tmp_path: Path) -> None:
    """Cases of one step in one file: `promtool` names the alert of each that fails."""
    files = []
    for interval in ("1m", "10m"):
        cases = [case for case in CASES if case["at"].endswith("h") == (interval == "10m")]
        units = [unit(case["alert"], case[kind], case["at"], kind == "fires") for case in cases for kind in KINDS]
        spec = {"rule_files": [str(path) for path in RULE_FILES], "evaluation_interval": interval, "tests": units}
        files.append(tmp_path / f"rules_test_{interval}.yml")
        files[-1].write_text(json.dumps(spec), encoding="utf-8")
    promtool("test", "rules", *files)


def unit(alert: str, series: dict[str, str], at: str, fires: bool) -> dict[str, Any]:
    """How many series of the alert fire at that time."""
    query = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})'
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in {**BUILDS, **series}.items()],
        "promql_expr_test": [
            {"expr": query, "eval_time": at, "exp_samples": [{"labels": "{}", "value": 1}] if fires else []}
        ],
    }
