"""What was noticed while a session was opened and read: findings, each once, and originals that are not to be had.

Damage is told again from the log whenever that is read anew, so `forget_damage` goes before a reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ctxsteward.schemas import Finding

from . import telemetry
from .log import Spoiled

DAMAGE = frozenset(
    ("original_damaged", "compaction_regenerated", "record_damaged", "record_skipped", "record_restored")
)
"""Kinds of findings about what the journal no longer holds as it was."""


class Noticed:
    """Findings about one session, in the order in which they came up."""

    def __init__(self, findings: Iterable[Finding] = (), missing: set[int] | None = None) -> None:
        self.findings = list(findings)
        self.missing = set() if missing is None else missing
        """Ordinals whose originals could not be read, as far as they were asked for."""

    def copy(self) -> Noticed:
        """Findings of its own; what is missing is missing for both."""
        return Noticed(self.findings, self.missing)

    def add(self, findings: Iterable[Finding]) -> None:
        self.findings += [finding for finding in findings if finding not in self.findings]

    def forget_damage(self) -> None:
        """Before the log is read anew."""
        self.findings = [finding for finding in self.findings if finding.kind not in DAMAGE]
        self.missing.clear()

    def damage(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.kind in DAMAGE]

    # -- what cannot be read ------------------------------------------------------------------------------------

    def stood_in(self, ordinal: int) -> None:
        """An original cannot be read: count it once."""
        if ordinal not in self.missing:
            self.missing.add(ordinal)
            telemetry.cache_miss("original")

    def restored(self, positions: Sequence[int]) -> None:
        """Records came from elsewhere."""
        places = ", ".join(map(str, sorted(positions)))
        self._miss("restored", "record_restored", f"records at {places} cannot be read here; the object store had them")

    def head_damaged(self, position: int) -> None:
        text = f"the head record at position {position} cannot be read; what was in force before it stays"
        self._miss("record", "record_damaged", text, "head")

    def passed_over(self, row: Spoiled) -> None:
        """Say what a record that cannot be read was, and what is done about it."""
        what = f"the {row.kind or 'missing'} record at position {row.position} cannot be read"
        if row.kind == "compaction":
            self._miss("compaction", "compaction_regenerated", f"{what}; the next build compacts from the originals")
        elif row.kind == "message" and row.record is None:
            self._miss("record", "record_skipped", f"the message at position {row.position} stands out of order")
        elif row.kind in ("selection", "refused"):
            self._miss("record", "record_skipped", f"{what}; it is decided again")
        elif row.kind == "opened":
            self._miss("record", "record_damaged", f"{what}; fences go by another nonce", row.kind)
        else:
            self._miss("record", "record_damaged", f"{what}; what was in force before it stays", row.kind or None)

    def _miss(self, reason: telemetry.Reason, kind: str, text: str, field: str | None = None) -> None:
        finding = Finding(kind=kind, field=field, text=text)
        if finding not in self.findings:
            self.findings.append(finding)
            telemetry.cache_miss(reason)
