"""What the suites are, as plain values: names, figures, gates."""

from __future__ import annotations

from typing import Any


def described() -> list[dict[str, Any]]:
    """Each suite with its figures and shipped gates, as JSON values."""
    from ctxsteward.evals.suites.catalogue import NAMES, suite_named
    from ctxsteward.evals.suites.gates import shipped

    gates = shipped()
    return [
        {
            "suite": name,
            "about": suite_named(name).about,
            "scenarios": suite_named(name).scenarios,
            "metrics": {metric.name: metric.about for metric in suite_named(name).metrics},
            "gates": {metric: [str(gate) for gate in each] for metric, each in gates.get(name, {}).items()},
        }
        for name in NAMES
    ]
