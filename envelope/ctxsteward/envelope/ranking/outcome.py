"""Standing in: where a strategy cannot rank, another one does, and the `Ranking` says so."""

from __future__ import annotations

from ctxsteward.schemas import Finding

from ..selection import Ranking

FELL_BACK = "selection_fell_back"
"""Kind of the finding: another strategy than the one asked for ranked."""
MAX_REASON_CHARS = 300
_DID = " did: "


def fell_back(strategy: str, stand_in: Ranking, reason: str) -> Ranking:
    """The stand-in's ranking, with a finding that says whose place it takes and why.

    >>> from ctxsteward.envelope.selection import Scored
    >>> newest = Ranking(scored=(Scored(2, 1.0), Scored(1, 0.5)), strategy="newest")
    >>> fell_back("llm", newest, "the model answered in prose").findings[0].text
    "strategy 'llm' could not rank, 'newest' did: the model answered in prose"
    """
    why = " ".join(reason.split())[:MAX_REASON_CHARS]
    text = f"strategy {strategy!r} could not rank, {stand_in.strategy!r}{_DID}{why}"
    finding = Finding(kind=FELL_BACK, field="selector", text=text)
    return Ranking(scored=stand_in.scored, strategy=stand_in.strategy, findings=(*stand_in.findings, finding))


def reason_of(finding: Finding) -> str:
    """Why another strategy ranked, as `fell_back` was told."""
    return finding.text.partition(_DID)[2]


def described(error: Exception) -> str:
    """An exception in a line."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
