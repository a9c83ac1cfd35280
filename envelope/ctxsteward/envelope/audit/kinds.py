"""The twelve classes of a difference between an envelope and what was sent, the cause before its symptoms.

A payload of somebody else's also lacks sections and has altered texts; so findings are sorted by this order, and the
first one names the cause. Source: the state design (auditor, twelve classes).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from ctxsteward.schemas import Finding

Kind = Literal[
    "wrong_tenant",
    "wrong_session",
    "stale_version",
    "replayed_envelope",
    "over_budget",
    "extra_section",
    "injected_text",
    "altered_text",
    "missing_section",
    "truncated",
    "reordered",
    "re_encoded",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Gravest first."""

ORIGINS = frozenset(KINDS[:4])
"""Classes that say whose payload it is."""


def finding(kind: Kind, text: str, *, ref: str | None = None, field: str | None = None) -> Finding:
    """A finding of one of the twelve classes."""
    return Finding(kind=kind, ref=ref, field=field, text=text)


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, the cause first."""
    order = {kind: number for number, kind in enumerate(KINDS)}
    return tuple(sorted(dict.fromkeys(findings), key=lambda one: order[one.kind]))  # type: ignore[index]
