"""Prometheus rules: figures recorded for everybody's queries, and what somebody is to be told.

An alert compares a *value*, which is a query of its own, with a limit, so that a test can ask whether there is a value
where all is well. `severity`: ``page`` where prompts are wrong now, ``ticket`` for the next working day. Limits: 1 % of
unhandled misses is the eval gate's; the others are where a reader should look, and yours to change.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

BUILDS = "sum by (job) (rate(context_build_duration_seconds_count[5m]))"


class Recording(NamedTuple):
    """A query kept as a series."""

    name: str
    query: str


class Alert(NamedTuple):
    """When somebody is told."""

    name: str
    value: str
    """PromQL, over one job a series."""
    limit: str
    """What it is compared with: ``> 0.01``."""
    lasting: str
    """How long it must hold; 0m: at once."""
    severity: Literal["page", "ticket"]
    summary: str
    todo: str


RECORDINGS = (
    Recording("cache_miss_rate", f"sum by (job) (rate(context_cache_miss_total[5m])) / ({BUILDS} > 0)"),
    Recording(
        "context:prefix_reuse:ratio",
        "sum by (job) (rate(context_prefix_tokens_total[5m]))"
        " / (sum by (job) (rate(context_prompt_tokens_total[5m])) > 0)",
    ),
    Recording(
        "context:compactions:per_build", f"sum by (job) (rate(context_compress_count_total[5m])) / ({BUILDS} > 0)"
    ),
    Recording(
        "context:build_seconds:p95",
        "histogram_quantile(0.95, sum by (job, le) (rate(context_build_duration_seconds_bucket[5m])))",
    ),
)

HEAD = 'section=~"tools|system|static|meta"'


def _share(metric: str) -> str:
    """Of all builds."""
    return f"sum by (job) (rate({metric}[5m])) / ({BUILDS} > 0)"


ALERTS = (
    Alert("ContextCacheMisses", "cache_miss_rate", "> 0.01", "10m", "ticket",
          "stored envelopes, summaries or records are made again in more than 1 % of builds",
          "look at the reasons, then run `ctxsteward store fsck`"),
    Alert("ContextDegraded", "sum by (job) (increase(context_degraded_total[15m]))", "> 0", "0m", "page",
          "something stored is truly gone and builds go on without it",
          "run `ctxsteward store fsck --read-data`; restore the store from a backup"),
    Alert("ContextOverBudget", _share("context_overflow_total"), "> 0.05", "15m", "ticket",
          "more than 5 % of builds are over a section's budget",
          "raise the section's budget, or lower `arrival_cap_tokens`"),
    Alert("ContextWindowNearlyFull", _share('context_guard_total{level="90"}'), "> 0.05", "10m", "page",
          "more than 5 % of prompts take 90 % of the model's window",
          "lower the budgets or the output reserve, or take a model with a larger window"),
    Alert("ContextCompactionsRefused", "sum by (job) (increase(context_compress_refused_total[15m]))", "> 5", "0m",
          "ticket", "compactions are due and not made, so histories grow",
          "read the finding `compaction_refused` of a build: it has the reason"),
    Alert("ContextPrefixReuseLow", "context:prefix_reuse:ratio", "< 0.3", "30m", "ticket",
          "prompts share less than 30 % with the session's prompt before, so the provider's cache does not pay",
          "look at where prefixes break; is something that changes with every call in the head?"),
    Alert("ContextHeadChanges", _share(f"context_prefix_break_total{{{HEAD}}}"), "> 0.01", "15m", "ticket",
          "head sections change within sessions",
          "look for a clock, a counter or an unsorted tool list in system text, tools or profile"),
    Alert("ContextBuildsFail", _share('context_build_duration_seconds_count{outcome="failed"}'), "> 0.01", "5m", "page",
          "more than 1 % of builds raise", "look for `error.type` on the spans `context.build`"),
    Alert("ContextBuildsSlow", "context:build_seconds:p95", "> 0.25", "15m", "ticket",
          "the slowest 5 % of builds take more than a quarter of a second",
          "is the journal's disk slow, or does a summarizer call a model?"),
    Alert("AuditFindings", "sum by (job) (increase(audit_findings_total[15m]))", "> 0", "0m", "page",
          "what was sent to a model differs from the envelope that was built",
          "run `ctxsteward audit`: the first finding names the cause"),
    Alert("StewardSilent", "sum by (job) (increase(meta_steward_run_count_total[26h]))", "< 1", "0m", "ticket",
          "no night of the steward has ended for 26 hours", "run `ctxsteward steward doctor`"),
    Alert("StewardWaits", "max by (job) (meta_steward_waiting)", "> 0", "24h", "ticket",
          "changes wait for a person since a day", "run `ctxsteward steward review`"),
    Alert("DriftBlocked", 'sum by (job) (increase(drift_detected_total{level="BLOCK"}[26h]))', "> 0", "0m", "ticket",
          "a night was stopped: its version contradicts what is in force", "run `ctxsteward steward drift`"),
    Alert("SchemaViolations", "sum by (job) (increase(schema_violation_count_total[26h]))", "> 0", "0m", "ticket",
          "transcripts, records or documents were refused by their schema",
          "run `ctxsteward steward quarantine`; of a document, the error names its place"),
    Alert("MetaHitRateLow", 'max by (job) (meta_hit_rate{rate="anticipated"})', "< 0.3", "24h", "ticket",
          "active records anticipate less than 30 % of what happens", "run `ctxsteward steward status`"),
    Alert("EvalGateFailed", "min by (job, suite) (eval_gate)", "< 1", "0m", "ticket",
          "a suite is below one of its gates", "run `ctxsteward evals run SUITE --gate`"),
)  # fmt: skip
