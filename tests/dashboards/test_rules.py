"""Rules as ``promtool`` judges them: they parse, and each alert fires on what it is for and on nothing else.

A row has the series of an alert (a minute between values) and when it must have fired. `BUILDS` are 60 builds a minute.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .definitions import ALERTS, PANELS, RULE_FILES

PROMTOOL = shutil.which(os.environ.get("CTXSTEWARD_PROMTOOL") or "promtool")
BUILDS = {'context_build_duration_seconds_count{job="chat",outcome="built"}': "0+60x2000"}

pytestmark = pytest.mark.skipif(PROMTOOL is None, reason="no promtool: install the Debian package prometheus")


@dataclass(frozen=True)
class Case:
    alert: str
    fires: dict[str, str]
    """Series, and their values from minute 0 on."""
    at: str
    """When it has fired."""
    calm: dict[str, str]
    """Series by which it must not fire, ever as late."""


CASES = (
    Case("ContextCacheMisses", {'context_cache_miss_total{job="chat",reason="record"}': "0+2x60"}, "20m",
         {'context_cache_miss_total{job="chat",reason="record"}': "0+0.3x60"}),
    Case("ContextDegraded", {'context_degraded_total{job="chat"}': "0x5 1x55"}, "7m",
         {'context_degraded_total{job="chat"}': "0x60"}),
    Case("ContextOverBudget", {'context_overflow_total{job="chat",section="dynamic"}': "0+6x60"}, "25m",
         {'context_overflow_total{job="chat",section="dynamic"}': "0+2x60"}),
    Case("ContextWindowNearlyFull", {'context_guard_total{job="chat",level="90"}': "0+6x60"}, "20m",
         {'context_guard_total{job="chat",level="80"}': "0+60x60"}),
    Case("ContextCompactionsRefused", {'context_compress_refused_total{job="chat"}': "0+1x60"}, "20m",
         {'context_compress_refused_total{job="chat"}': "0x30 1x30"}),
    Case("ContextPrefixReuseLow", {'context_prompt_tokens_total{job="chat"}': "0+1000x90",
                                   'context_prefix_tokens_total{job="chat"}': "0+100x90"}, "40m",
         {'context_prompt_tokens_total{job="chat"}': "0+1000x90",
          'context_prefix_tokens_total{job="chat"}': "0+700x90"}),
    Case("ContextHeadChanges", {'context_prefix_break_total{job="chat",section="system"}': "0+6x60"}, "25m",
         {'context_prefix_break_total{job="chat",section="dynamic"}': "0+30x60"}),
    Case("ContextBuildsFail", {'context_build_duration_seconds_count{job="chat",outcome="failed"}': "0+3x60"}, "15m",
         {'context_build_duration_seconds_count{job="chat",outcome="failed"}': "0x60"}),
    Case("ContextBuildsSlow", {'context_build_duration_seconds_bucket{job="chat",le="0.25"}': "0+10x60",
                               'context_build_duration_seconds_bucket{job="chat",le="1"}': "0+60x60",
                               'context_build_duration_seconds_bucket{job="chat",le="+Inf"}': "0+60x60"}, "25m",
         {'context_build_duration_seconds_bucket{job="chat",le="0.1"}': "0+60x60",
          'context_build_duration_seconds_bucket{job="chat",le="+Inf"}': "0+60x60"}),
    Case("AuditFindings", {'audit_findings_total{job="chat",kind="truncated"}': "0x5 1x55"}, "7m",
         {'audit_findings_total{job="chat",kind="truncated"}': "0x60"}),
    Case("StewardSilent", {'meta_steward_run_count_total{job="night",outcome="promoted"}': "1x1700"}, "27h",
         {'meta_steward_run_count_total{job="night",outcome="promoted"}': "0+1x1700"}),
    Case("StewardWaits", {'meta_steward_waiting{job="night"}': "2x1600"}, "25h",
         {'meta_steward_waiting{job="night"}': "2x600 0x1000"}),
    Case("DriftBlocked", {'drift_detected_total{job="night",level="BLOCK"}': "0x5 1x55"}, "7m",
         {'drift_detected_total{job="night",level="WARN"}': "0x5 1x55"}),
    Case("SchemaViolations", {'schema_violation_count_total{job="night",what="record"}': "0x5 1x55"}, "7m",
         {'schema_violation_count_total{job="night",what="record"}': "0x60"}),
    Case("MetaHitRateLow", {'meta_hit_rate{job="night",rate="anticipated"}': "0.1x1600"}, "25h",
         {'meta_hit_rate{job="night",rate="anticipated"}': "0.6x1600"}),
    Case("EvalGateFailed", {'eval_gate{job="ci",suite="verbatim",metric="last_user"}': "1x5 0x55"}, "7m",
         {'eval_gate{job="ci",suite="verbatim",metric="last_user"}': "1x60"}),
)  # fmt: skip


def test_every_alert_has_a_case() -> None:
    assert [case.alert for case in CASES] == [alert["alert"] for alert in ALERTS]


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


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_an_alert_fires_on_what_it_is_for_and_on_nothing_else(case: Case, tmp_path: Path) -> None:
    spec = {
        "rule_files": [str(path) for path in RULE_FILES],
        "evaluation_interval": "10m" if case.at.endswith("h") else "1m",
        "tests": [unit(case.alert, case.fires, case.at, fires=True), unit(case.alert, case.calm, case.at, fires=False)],
    }
    path = tmp_path / "rules_test.yml"
    path.write_text(json.dumps(spec), encoding="utf-8")

    promtool("test", "rules", path)


def unit(alert: str, series: dict[str, str], at: str, *, fires: bool) -> dict[str, Any]:
    """How many series of the alert fire at that time."""
    query = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})'
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in {**BUILDS, **series}.items()],
        "promql_expr_test": [
            {"expr": query, "eval_time": at, "exp_samples": [{"labels": "{}", "value": 1}] if fires else []}
        ],
    }
