"""The chain of nights: how far the steward has read, what it rests on, what it committed; one link a finished night.

    steward/<tenant>/<profile>/nights/000000000001.json
    body: {"schema_version": 1, "night": "2026-11-22", "run": …, "marks": {URI of a source: its watermark},
           "batches": [address], "ledger": digest, "observations": n, "records": digest, "statuses": {status: n},
           "version": 7 | null, "outcome": "promoted", "final": …, "counts": {…},
           "quarantined": {reason: n}, "drift": "INFO" | "WARN" | "BLOCK" | null, "gate": …,
           "supports": [{"blob", "key"}]}

A link is written once the promotion has landed, or has found nothing to change. So a night that was killed has none, is
repeated from the link before, and writes the same bytes: no clock, duration or random id is in it. Numbers, dates,
codes and addresses only, never what anybody said.

`final` tells two histories apart: equal where the same observations were taken in and the same text is in force,
whatever the order and number of nights it took.

Raises `Damaged`, `UnsupportedVersion`, `VersionTaken`, `OutcomeUnknown`, `StoreUnavailable`.
Source: the layered-envelope design (batch loop); the state design (committing governed state).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ctxsteward.envelope.chain import Link
from ctxsteward.envelope.keys import address_of
from ctxsteward.envelope.objects.names import numbered, steward_folder
from ctxsteward.envelope.store import Store
from ctxsteward.schemas import UnsupportedVersion

VERSION = 1

Outcome = Literal["unchanged", "promoted", "canary", "held", "rejected"]
"""unchanged: nothing to commit. promoted: in force. canary: in force for some sessions. held: a person must look.
rejected: the evals or the drift check stopped it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """One finished night."""

    night: str
    """Its date, ISO 8601: the day by which records age."""
    run: str
    """Its id: what it read decides it."""
    marks: Mapping[str, Any] = field(default_factory=dict)
    """Watermarks by source, as JSON values."""
    batches: tuple[str, ...] = ()
    """Addresses of those it took in (`batches`)."""
    ledger: str
    """Digest of all observations taken in so far."""
    observations: int = 0
    """How many those are."""
    records: str = ""
    """Digest of all records, as they stood."""
    statuses: Mapping[str, int] = field(default_factory=dict)
    """Records by status."""
    version: int | None = None
    """Of the profile, in force when it ended."""
    outcome: Outcome
    final: str
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many after each stage, and what use was made of records."""
    quarantined: Mapping[str, int] = field(default_factory=dict)
    """Transcripts by reason."""
    drift: str | None = None
    """Level; None: nothing was staged."""
    gate: str | None = None
    """What the evals said; None: nothing was staged."""
    supports: tuple[Mapping[str, str], ...] = ()
    """References to who stands behind each record (`envelope.supports`)."""

    def repeats(self, other: Night) -> bool:
        """Whether it is the other one again: the same date, nothing more read, nothing else decided."""
        same = ("night", "marks", "ledger", "records", "version", "final")
        again = self.outcome in ("unchanged", other.outcome)
        return again and all(getattr(self, name) == getattr(other, name) for name in same)


class Nights:
    """The nights of one profile of one tenant."""

    def __init__(self, store: Store, tenant: str, profile: str) -> None:
        self.folder = steward_folder(tenant, profile, "nights")
        self._chain = store.chain(self.folder, tenant=tenant)
        self._key = store.keys.address_key(tenant)

    def head(self) -> tuple[Link, Night] | None:
        """The newest link and what it says; None where there was no night yet."""
        link = self._chain.head()
        return None if link is None else (link, self._night(link))

    def history(self, limit: int | None = None) -> Iterator[tuple[int, Night]]:
        """All nights by number, oldest first; with a limit, the newest of them."""
        last = self._chain.last_number() if limit is not None else 0
        start = 1 if limit is None else max(1, last - limit + 1)
        return ((link.number, self._night(link)) for link in self._chain.links(start))

    def newest(self, limit: int) -> list[Night]:
        """The last nights, oldest first."""
        return [night for _, night in self.history(limit)]

    def append(self, parent: Link | None, night: Night, *, epoch: int) -> Link:
        """Write a finished night after `parent`; the same night again after the same parent is found, not repeated."""
        body = {"schema_version": VERSION} | json.loads(json.dumps(asdict(night)))
        data = json.dumps([parent.mac if parent else "", body], sort_keys=True).encode()
        return self._chain.append(
            parent, body, epoch=epoch, commit_id=address_of(self._key, self.folder, "night", data)
        )

    def _night(self, link: Link) -> Night:
        body = link.body
        if body.get("schema_version") != VERSION:
            raise UnsupportedVersion(numbered(self.folder, link.number), body.get("schema_version"), VERSION)
        fields = {name: body[name] for name in Night.__dataclass_fields__ if name in body}
        return Night(**fields | {name: tuple(fields.get(name, ())) for name in ("batches", "supports")})
