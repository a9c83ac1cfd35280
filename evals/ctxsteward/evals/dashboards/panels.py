"""The panels: what each shows, in PromQL over the instruments' Prometheus names.

``$job`` is the dashboard's variable, ``$__rate_interval`` Grafana's: the range of a rate. Counters of nights are shown
as they stand, since a night's process ends with it. Source of the choice of panels: the layered-envelope design
(dashboards that combine metrics and eval results).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

JOB = '{job=~"$job"}'
RANGE = "$__rate_interval"

Unit = Literal["short", "percentunit", "s"]
"""As Grafana names units."""


class Target(NamedTuple):
    """One query of a panel."""

    legend: str
    """Grafana's template, such as ``{{section}}``."""
    query: str


class Panel(NamedTuple):
    """One plot."""

    title: str
    about: str
    unit: Unit
    targets: tuple[Target, ...]


class Group(NamedTuple):
    """A row of the dashboard."""

    title: str
    panels: tuple[Panel, ...]


def _rate(metric: str, by: str = "") -> str:
    """Per second, over all processes."""
    return f"sum{f' by ({by}) ' if by else ''}(rate({metric}{JOB}[{RANGE}]))"


def _by(metric: str, by: str, about: str, title: str) -> Panel:
    """How often, by a label."""
    query = f"sum by ({by}) (increase({metric}{JOB}[{RANGE}]))"
    return Panel(title, about, "short", (Target(f"{{{{{by}}}}}", query),))


BUILDS = _rate("context_build_duration_seconds_count")
SECTION_TOKENS = _rate("context_section_tokens_total", "section")
SAVED, COMPACTIONS = _rate("context_compress_tokens_saved_total"), _rate("context_compress_count_total")


def _quantile(share: float, metric: str) -> str:
    return f"histogram_quantile({share:g}, {_rate(f'{metric}_bucket', 'le')})"


GROUPS: tuple[Group, ...] = (
    Group(
        "Envelopes",
        (
            Panel(
                "Tokens per section, against its budget",
                "Mean of the builds; the budget that is in force.",
                "short",
                (
                    Target("{{section}}", f"{SECTION_TOKENS} / on() group_left() {BUILDS}"),
                    Target("budget of {{section}}", f"max by (section) (context_section_budget{JOB})"),
                ),
            ),
            Panel(
                "Tokens in the last build",
                "Of each section, the largest of all processes.",
                "short",
                (Target("{{section}}", f"max by (section) (context_tokens_by_section{JOB})"),),
            ),
            Panel(
                "Section utilization",
                "Share of its budget that each section took in the last build of each process.",
                "percentunit",
                (Target("{{section}}", f"max by (section) (context_section_utilization{JOB})"),),
            ),
            _by("context_overflow_total", "section", "Builds in which a section was over its budget.", "Over budget"),
            _by("context_guard_total", "level", "Builds at or over 80 % and 90 % of the window.", "Window guard, %"),
        ),
    ),
    Group(
        "Compaction",
        (
            Panel(
                "Compactions",
                "How often history became bullets, and how often it was due and could not.",
                "short",
                (
                    Target("{{section}}", f"sum by (section) (increase(context_compress_count_total{JOB}[{RANGE}]))"),
                    Target("refused", f"sum(increase(context_compress_refused_total{JOB}[{RANGE}]))"),
                ),
            ),
            Panel(
                "Tokens saved by a compaction",
                "Mean.",
                "short",
                (Target("saved", f"{SAVED} / ({COMPACTIONS} > 0)"),),
            ),
            _by("context_losses_total", "kind", "What compactions lost; originals still resolve.", "Losses by kind"),
        ),
    ),
    Group(
        "Cache",
        (
            Panel(
                "Prefix reuse",
                "Share of prompt tokens that stood at the same place in the session's build before.",
                "percentunit",
                (Target("reused", f"{_rate('context_prefix_tokens_total')} / {_rate('context_prompt_tokens_total')}"),),
            ),
            _by("context_prefix_break_total", "section", "Builds whose stable prefix changed.", "Prefix breaks"),
            _by("context_cache_miss_total", "reason", "Stored things that had to be made again.", "Cache misses"),
            Panel(
                "Cache miss rate, degraded builds",
                "Misses a build (recording rule); share of builds in which something stored was truly gone.",
                "percentunit",
                (
                    Target("misses", f"max(cache_miss_rate{JOB})"),
                    Target("degraded", f"{_rate('context_degraded_total')} / {BUILDS}"),
                ),
            ),
        ),
    ),
    Group(
        "Latency",
        (
            Panel(
                "Build",
                "Without selection; failed builds too.",
                "s",
                tuple(
                    Target(f"p{share * 100:g}", _quantile(share, "context_build_duration_seconds"))
                    for share in (0.5, 0.95, 0.99)
                ),
            ),
            Panel(
                "Selection",
                "Choosing what is recalled.",
                "s",
                tuple(
                    Target(f"p{share * 100:g}", _quantile(share, "context_selection_duration_seconds"))
                    for share in (0.5, 0.95)
                ),
            ),
            Panel(
                "Builds",
                "How many a second, by how they ended.",
                "short",
                (Target("{{outcome}}", _rate("context_build_duration_seconds_count", "outcome")),),
            ),
        ),
    ),
    Group(
        "Audits",
        (
            _by("audit_findings_total", "kind", "What was sent differed from the envelope.", "Audit findings"),
            _by("audit_count_total", "outcome", "Requests that were audited.", "Audits"),
        ),
    ),
    Group(
        "Steward",
        (
            Panel(
                "Meta hit rate",
                "Of later events, those an active record anticipated; of records shown, those used, and obeyed.",
                "percentunit",
                (Target("{{rate}}", f"max by (rate) (meta_hit_rate{JOB})"),),
            ),
            Panel(
                "Nights",
                "By how they ended.",
                "short",
                (Target("{{outcome}}", f"sum by (outcome) (meta_steward_run_count_total{JOB})"),),
            ),
            Panel(
                "Drift",
                "Challengers that drifted from what is in force.",
                "short",
                (Target("{{level}}", f"sum by (level) (drift_detected_total{JOB})"),),
            ),
            Panel(
                "Refused, waiting",
                "Transcripts and records refused by schema; things that wait for a person.",
                "short",
                (
                    Target("{{what}}s refused", f"sum by (what) (schema_violation_count_total{JOB})"),
                    Target("waiting", f"max(meta_steward_waiting{JOB})"),
                ),
            ),
        ),
    ),
    Group(
        "Evals",
        (
            Panel(
                "Eval trend",
                "Figures of the last run of each suite.",
                "short",
                (Target("{{suite}}: {{metric}}", f"max by (suite, metric) (eval_score{JOB})"),),
            ),
            Panel(
                "Gates",
                "1 where all of a suite's gates passed in its last run.",
                "short",
                (Target("{{suite}}", f"min by (suite) (eval_gate{JOB})"),),
            ),
        ),
    ),
)


def panels() -> tuple[Panel, ...]:
    """All of them, in order."""
    return tuple(panel for group in GROUPS for panel in group.panels)


def query_for(target: Target, *, job: str = ".*", window: str = "5m") -> str:
    """The query as Prometheus takes it, with the dashboard's variables filled in."""
    return target.query.replace("$job", job).replace(RANGE, window)
