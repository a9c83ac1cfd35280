"""The table of rules as Prometheus reads it: YAML, the same bytes for the same table.

Source: the Prometheus project's documentation of recording and alerting rules.
"""

from __future__ import annotations

import json

from .rules import ALERTS, RECORDINGS, Alert


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
