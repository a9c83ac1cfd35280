"""The panels: what each shows, in PromQL over the instruments' Prometheus names.

``$job`` is the dashboard's variable, ``$__rate_interval`` Grafana's: the range of a rate. Counters of nights are shown
as they stand, since a night's process ends with it. Source of the choice of panels: the layered-envelope design
(dashboards that combine metrics and eval results).

Prometheus rules: figures recorded for everybody's queries, and what somebody is to be told.

An alert compares a *value*, which is a query of its own, with a limit, so that a test can ask whether there is a value
where all is well. `severity`: ``page`` where prompts are wrong now, ``ticket`` for the next working day. Limits: 1 % of
unhandled misses is the eval gate's; the others are where a reader should look, and yours to change.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

JOB = '{job=~"$job"}'
RANGE = "$__rate_interval"

Unit = Literal["short", "percentunit", "s"]
"""As Grafana names units."""


class PanelQuery(NamedTuple):
    """One query of a panel."""

    legend: str
    """Grafana's template, such as ``{{section}}``."""
    query: str


class DashboardPanel(NamedTuple):
    """One plot."""

    title: str
    about: str
    unit: Unit
    targets: tuple[PanelQuery, ...]


class PanelRow(NamedTuple):
    """A row of the dashboard."""

    title: str
    panels: tuple[DashboardPanel, ...]


def _rate(metric: str, by: str = "") -> str:
    """Per second, over all processes."""
    return f"sum{f' by ({by}) ' if by else ''}(rate({metric}{JOB}[{RANGE}]))"


def _by(metric: str, by: str, about: str, title: str) -> DashboardPanel:
    """How often, by a label."""
    query = f"sum by ({by}) (increase({metric}{JOB}[{RANGE}]))"
    return DashboardPanel(title, about, "short", (PanelQuery(f"{{{{{by}}}}}", query),))


BUILDS = _rate("context_build_duration_seconds_count")
SECTION_TOKENS = _rate("context_section_tokens_total", "section")
SAVED, COMPACTIONS = _rate("context_compress_tokens_saved_total"), _rate("context_compress_count_total")


def _quantile(share: float, metric: str) -> str:
    return f"histogram_quantile({share:g}, {_rate(f'{metric}_bucket', 'le')})"


GROUPS: tuple[PanelRow, ...] = (
    PanelRow(
        "Envelopes",
        (
            DashboardPanel(
                "Tokens per section, against its budget",
                "Mean of the builds; the budget that is in force.",
                "short",
                (
                    PanelQuery("{{section}}", f"{SECTION_TOKENS} / on() group_left() {BUILDS}"),
                    PanelQuery("budget of {{section}}", f"max by (section) (context_section_budget{JOB})"),
                ),
            ),
            DashboardPanel(
                "Tokens in the last build",
                "Of each section, the largest of all processes.",
                "short",
                (PanelQuery("{{section}}", f"max by (section) (context_tokens_by_section{JOB})"),),
            ),
            DashboardPanel(
                "Section utilization",
                "Share of its budget that each section took in the last build of each process.",
                "percentunit",
                (PanelQuery("{{section}}", f"max by (section) (context_section_utilization{JOB})"),),
            ),
            _by("context_overflow_total", "section", "Builds in which a section was over its budget.", "Over budget"),
            _by("context_guard_total", "level", "Builds at or over 80 % and 90 % of the window.", "Window guard, %"),
        ),
    ),
    PanelRow(
        "Compaction",
        (
            DashboardPanel(
                "Compactions",
                "How often history became bullets, and how often it was due and could not.",
                "short",
                (
                    PanelQuery(
                        "{{section}}", f"sum by (section) (increase(context_compress_count_total{JOB}[{RANGE}]))"
                    ),
                    PanelQuery("refused", f"sum(increase(context_compress_refused_total{JOB}[{RANGE}]))"),
                ),
            ),
            DashboardPanel(
                "Tokens saved by a compaction",
                "Mean.",
                "short",
                (PanelQuery("saved", f"{SAVED} / ({COMPACTIONS} > 0)"),),
            ),
            _by("context_losses_total", "kind", "What compactions lost; originals still resolve.", "Losses by kind"),
        ),
    ),
    PanelRow(
        "Cache",
        (
            DashboardPanel(
                "Prefix reuse",
                "Share of prompt tokens that stood at the same place in the session's build before.",
                "percentunit",
                (
                    PanelQuery(
                        "reused", f"{_rate('context_prefix_tokens_total')} / {_rate('context_prompt_tokens_total')}"
                    ),
                ),
            ),
            _by("context_prefix_break_total", "section", "Builds whose stable prefix changed.", "Prefix breaks"),
            _by("context_cache_miss_total", "reason", "Stored things that had to be made again.", "Cache misses"),
            DashboardPanel(
                "Cache miss rate, degraded builds",
                "Misses a build (recording rule); share of builds in which something stored was truly gone.",
                "percentunit",
                (
                    PanelQuery("misses", f"max(cache_miss_rate{JOB})"),
                    PanelQuery("degraded", f"{_rate('context_degraded_total')} / {BUILDS}"),
                ),
            ),
        ),
    ),
    PanelRow(
        "Latency",
        (
            DashboardPanel(
                "Build",
                "Without selection; failed builds too.",
                "s",
                tuple(
                    PanelQuery(f"p{share * 100:g}", _quantile(share, "context_build_duration_seconds"))
                    for share in (0.5, 0.95, 0.99)
                ),
            ),
            DashboardPanel(
                "Selection",
                "Choosing what is recalled.",
                "s",
                tuple(
                    PanelQuery(f"p{share * 100:g}", _quantile(share, "context_selection_duration_seconds"))
                    for share in (0.5, 0.95)
                ),
            ),
            DashboardPanel(
                "Builds",
                "How many a second, by how they ended.",
                "short",
                (PanelQuery("{{outcome}}", _rate("context_build_duration_seconds_count", "outcome")),),
            ),
        ),
    ),
    PanelRow(
        "Audits",
        (
            _by("audit_findings_total", "kind", "What was sent differed from the envelope.", "Audit findings"),
            _by("audit_count_total", "outcome", "Requests that were audited.", "Audits"),
        ),
    ),
    PanelRow(
        "Steward",
        (
            DashboardPanel(
                "Meta hit rate",
                "Of later events, those an active record anticipated; of records shown, those used, and obeyed.",
                "percentunit",
                (PanelQuery("{{rate}}", f"max by (rate) (meta_hit_rate{JOB})"),),
            ),
            DashboardPanel(
                "Nights",
                "By how they ended.",
                "short",
                (PanelQuery("{{outcome}}", f"sum by (outcome) (meta_steward_run_count_total{JOB})"),),
            ),
            DashboardPanel(
                "Drift",
                "Challengers that drifted from what is in force.",
                "short",
                (PanelQuery("{{level}}", f"sum by (level) (drift_detected_total{JOB})"),),
            ),
            DashboardPanel(
                "Refused, waiting",
                "Transcripts and records refused by schema; things that wait for a person.",
                "short",
                (
                    PanelQuery("{{what}}s refused", f"sum by (what) (schema_violation_count_total{JOB})"),
                    PanelQuery("waiting", f"max(meta_steward_waiting{JOB})"),
                ),
            ),
        ),
    ),
    PanelRow(
        "Evals",
        (
            DashboardPanel(
                "Eval trend",
                "Figures of the last run of each suite.",
                "short",
                (PanelQuery("{{suite}}: {{metric}}", f"max by (suite, metric) (eval_score{JOB})"),),
            ),
            DashboardPanel(
                "Gates",
                "1 where all of a suite's gates passed in its last run.",
                "short",
                (PanelQuery("{{suite}}", f"min by (suite) (eval_gate{JOB})"),),
            ),
        ),
    ),
)


def panels() -> tuple[DashboardPanel, ...]:
    """All of them, in order."""
    return tuple(panel for group in GROUPS for panel in group.panels)


def query_for(target: PanelQuery, *, job: str = ".*", window: str = "5m") -> str:
    """The query as Prometheus takes it, with the dashboard's variables filled in."""
    return target.query.replace("$job", job).replace(RANGE, window)


_BUILDS_BY_JOB = "sum by (job) (rate(context_build_duration_seconds_count[5m]))"


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
    Recording("cache_miss_rate", f"sum by (job) (rate(context_cache_miss_total[5m])) / ({_BUILDS_BY_JOB} > 0)"),
    Recording(
        "context:prefix_reuse:ratio",
        "sum by (job) (rate(context_prefix_tokens_total[5m]))"
        " / (sum by (job) (rate(context_prompt_tokens_total[5m])) > 0)",
    ),
    Recording(
        "context:compactions:per_build",
        f"sum by (job) (rate(context_compress_count_total[5m])) / ({_BUILDS_BY_JOB} > 0)",
    ),
    Recording(
        "context:build_seconds:p95",
        "histogram_quantile(0.95, sum by (job, le) (rate(context_build_duration_seconds_bucket[5m])))",
    ),
)

HEAD = 'section=~"tools|system|static|meta"'


def _share(metric: str) -> str:
    """Of all builds."""
    return f"sum by (job) (rate({metric}[5m])) / ({_BUILDS_BY_JOB} > 0)"


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
