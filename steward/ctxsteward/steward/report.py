"""What a night has to say: how many were left after each stage, what was refused, what changed and why.

For people and for JSON. Unlike the link in the chain of nights it may name transcripts, and it holds what the night has
cost; it is kept nowhere by itself.

Source: the layered-envelope design (observability: counts after every stage).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt

from ctxsteward.schemas.recommendation import Count

EXIT_FINE, EXIT_FOUND, EXIT_BLOCKED, EXIT_ROLLED_BACK = 0, 1, 3, 4

SCHEMA_REASONS = ("invalid", "bad_metadata")
NightOutcome = Literal["unchanged", "promoted", "canary", "held", "rejected", "rolled_back", "busy"]
"""As `nights.Outcome`; rolled_back: a canary failed and the version before is in force again. busy: another night is
under way, and this one did nothing."""


def rates_of(hits: Mapping[str, int]) -> dict[str, float]:
    """The rates that counts of use come to; one that is a share of nothing is left out.

    >>> rates_of({"fired": 1, "judged": 4, "complied": 0, "contradicted": 0})
    {'used': 0.25}
    """
    told = {
        "anticipated": (hits.get("anticipated", 0), hits.get("events", 0)),
        "used": (hits.get("fired", 0), hits.get("judged", 0)),
        "obeyed": (hits.get("complied", 0), hits.get("complied", 0) + hits.get("contradicted", 0)),
    }
    return {rate: part / whole for rate, (part, whole) in told.items() if whole}


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class StageYield(_Value):
    """What one stage left."""

    stage: str
    count: Count
    share: float | None = None
    """Of what the stage before left; None: it left nothing, or counts something else."""


class QuarantinedTranscript(_Value):
    """A transcript that was refused."""

    source: str
    name: str
    reason: str


class CheckReport(_Value):
    """What a check of the challenger said."""

    level: str
    ok: StrictBool
    why: tuple[str, ...] = ()


class NightReport(_Value):
    """One night."""

    schema_version: Literal[1] = 1
    tenant: str
    profile: str
    night: str
    run: str | None = None
    """None: it did not begin."""
    number: StrictInt | None = None
    """Of its link; None: nothing was written."""
    dry_run: StrictBool = False
    outcome: NightOutcome
    version: StrictInt | None = None
    """In force when it ended."""
    stages: tuple[StageYield, ...] = ()
    skipped: dict[str, Count] = {}
    """Transcripts that were none of its business, by reason."""
    quarantined: tuple[QuarantinedTranscript, ...] = ()
    statuses: dict[str, Count] = {}
    """Records by status."""
    refused_records: Count = 0
    """Records that their schema refused."""
    failed_batches: Count = 0
    """Their transcripts stay due."""
    found_batches: Count = 0
    """Done by an earlier run, and not again."""
    drift: CheckReport | None = None
    gate: CheckReport | None = None
    canary: CheckReport | None = None
    changes: tuple[str, ...] = ()
    waiting: Count = 0
    """Things that wait for a person."""
    hits: dict[str, Count] = {}
    dated: dict[str, Count] = {}
    """Transcripts that were read, by where their times are from (`replayed.Dated`)."""
    alerts: tuple[str, ...] = ()
    final: str | None = None
    cpu_seconds: Annotated[float, Field(ge=0)] = 0.0
    tokens: Count = 0
    """Of models."""

    def count(self, stage: str) -> int:
        """What this stage left; 0 where it did not run."""
        return next((one.count for one in self.stages if one.stage == stage), 0)

    @property
    def rates(self) -> dict[str, float]:
        """anticipated: of all events. used: of records shown. obeyed: of those that fired; only what can be told."""
        return rates_of(self.hits)

    @property
    def violations(self) -> dict[str, int]:
        """Transcripts and records that were refused by schema."""
        refused = {
            "transcript": sum(one.reason in SCHEMA_REASONS for one in self.quarantined),
            "record": self.refused_records,
        }
        return {what: number for what, number in refused.items() if number}

    @property
    def exit_code(self) -> int:
        """0 fine; 1 a batch failed; 3 a person must look; 4 rolled back."""
        if self.outcome == "rolled_back":
            return EXIT_ROLLED_BACK
        if self.outcome in ("held", "rejected", "busy"):
            return EXIT_BLOCKED
        return EXIT_FOUND if self.failed_batches else EXIT_FINE
