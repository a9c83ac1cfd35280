"""The stages of a night as values of callables: what the shell asks of each, and what each answers.

`night` knows only these shapes, so a stage is replaced by passing another callable, in tests as in production
(`setup` has the real ones). Each is a function of its arguments and of what was taken in before; none reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ctxsteward.schemas.profile import MetaRecord, ProfileDocument
from ctxsteward.schemas.recommendation import MetaRecommendation
from ctxsteward.store.profiles.versions import Version

from ..harvest.batches import Batch, BatchResult, DueTranscript, WithdrawnTranscript
from .history import Outcome

DriftLevel = Literal["INFO", "WARN", "BLOCK"]
Marks = Mapping[str, Any]
"""Watermarks by source, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueTranscripts:
    """What is to be read tonight."""

    items: tuple[DueTranscript, ...]
    marks: Callable[[Collection[DueTranscript]], Marks]
    """Watermarks for when all is done but these."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Transcripts left out before they were opened, by reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerUpdate:
    """The ledger after artifacts were taken in."""

    digest: str
    """Of all observations in it, whatever the order they came in."""
    observations: int
    """In it."""
    erased: int = 0
    """Artifacts that were forgotten since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedRecords:
    """Records after the gates of admission."""

    active: Sequence[MetaRecommendation]
    """Of those that reach more than one person."""
    digest: str
    """Of all that they say; not of when they came to say it."""
    statuses: Mapping[str, int] = field(default_factory=dict)
    """Records by status."""
    refused: int = 0
    """Would-be records that their schema refused."""
    looked_at: int = 0
    """Drafts that were judged anew tonight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedSlice:
    """The meta slice as the steward would write it."""

    records: tuple[MetaRecord, ...]
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenger:
    """What would come into force."""

    document: ProfileDocument
    base: int
    """Version it was made from; 0: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckVerdict:
    """What a check of the challenger said."""

    level: str
    ok: bool
    """Whether it may go on without a person."""
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionResult:
    """What became of the challenger."""

    outcome: Outcome
    version: int | None
    """In force now; None: none was ever committed."""
    final: str
    """Address of the text in force; the same for the same text, whatever its version."""
    changes: tuple[str, ...] = ()
    """What changed and why, a line each; for the report alone."""
    waiting: int = 0
    """Things that wait for a person."""
    supports: tuple[Mapping[str, str], ...] = ()
    """Where it is kept what stands behind records in force and in the challenger (`store.erasure.steward_records`)."""

    @property
    def is_new(self) -> bool:
        """Whether something came into force."""
        return self.outcome in ("promoted", "canary")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitContext:
    """In whose name, when, and by which claim something is committed."""

    who: str
    when: str
    """ISO 8601."""
    epoch: int
    """Of the lease."""
    run: str
    commit_id: str
    """The same for the same run: a commit that landed before a kill is found again."""
    done: bool
    """Whether a night of this run is in the chain already."""

    def base(self, head: Version | None) -> int:
        """The version that this run starts from: the head, or the one before where this run has committed already."""
        if head is None:
            return 0
        return head.number - 1 if head.commit_id == self.commit_id and not self.done else head.number


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """One profile's stages."""

    due: Callable[[Marks], DueTranscripts]
    harvest: Callable[[Batch], BatchResult]
    absorb: Callable[[Iterable[str], Sequence[WithdrawnTranscript]], LedgerUpdate]
    """Addresses of artifacts to take in, and transcripts whose observations are to leave."""
    reconcile: Callable[[], int]
    """How many different claims there are."""
    admit: Callable[[str, str], AdmittedRecords]
    """Date of the night, run."""
    fit: Callable[[AdmittedRecords, CommitContext], FittedSlice]
    stage: Callable[[FittedSlice, CommitContext], Challenger | None]
    """The challenger; None where it is what is in force."""
    drift: Callable[[Challenger, CommitContext], CheckVerdict]
    gate: Callable[[Challenger], CheckVerdict]
    promote: Callable[[Challenger | None, CheckVerdict | None, CheckVerdict | None, CommitContext], PromotionResult]
    canary: Callable[[CommitContext], CheckVerdict | None]
    """None: none is under way."""
