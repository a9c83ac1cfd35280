"""What an audit tells OpenTelemetry, where somebody listens; see `ctxsteward.envelope.instruments`.

audit.findings   counter; label `kind`: one of `KINDS`   differences between an envelope and what was sent
audit.count      counter; label `outcome`: same | differs
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ctxsteward.schemas import Finding

from ..instruments import Board, Instrument
from .kinds import KINDS

INSTRUMENTS = (
    Instrument(name="audit.findings", kind="counter", unit="1",
               about="Differences between an envelope and what was sent, by class.", labels={"kind": KINDS}),
    Instrument(name="audit.count", kind="counter", unit="1",
               about="Requests that were audited.", labels={"outcome": ("same", "differs")}),
)  # fmt: skip


@cache
def board() -> Board:
    """This process's numbers."""
    return Board(INSTRUMENTS)


def audited(findings: Sequence[Finding]) -> None:
    """Count an audit and what it found."""
    counts = [("audit.count", 1.0, ("differs" if findings else "same",))]
    board().tell([*counts, *(("audit.findings", 1.0, (found.kind,)) for found in findings)])
