"""The chain of finished nights of one profile.

    steward/<tenant>/<profile>/nights/000000000001.json
    body: {"schema_version": 1, "night": "2026-11-22", "run": …, "marks": {URI of a source: its watermark},
           "batches": [address], "ledger": digest, "observations": n, "records": digest, "statuses": {status: n},
           "version": 7 | null, "outcome": "promoted", "final": …, "counts": {…},
           "quarantined": {reason: n}, "drift": "INFO" | "WARN" | "BLOCK" | null, "gate": …,
           "supports": [{"blob", "key"}]}

A link is written after the promotion has landed or found nothing to change. A killed night has no link; it is repeated
from the link before and writes the same bytes, because a link holds no clock time, duration or random id. Nor does it
hold words of anybody. `final` is equal if the same observations were absorbed and the same text is in force, in
whatever order and number of nights.

Raises `Damaged`, `UnsupportedVersion`, `VersionTaken`, `OutcomeUnknown`, `StoreUnavailable`.
Source: the layered-envelope design (batch loop); the state design (committing governed state).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from ctxsteward.envelope import Store
from ctxsteward.schemas.errors import UnsupportedVersion
from ctxsteward.store.crypto.hash_chain import Link
from ctxsteward.store.crypto.keyring import address_of
from ctxsteward.store.names import numbered, steward_folder

from .alerts import ALERT_NIGHTS, alerts
from .report import HITS, STAGES, CheckVerdict, NightReport

VERSION = 1

Outcome = Literal["unchanged", "promoted", "canary", "held", "rejected"]
"""unchanged: nothing to commit. promoted: in force. canary: in force for some sessions. held: a person must look.
rejected: the evals or the drift check stopped it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """One finished night."""

    night: str
    """Date of the night, ISO 8601, by which records age."""
    run: str
    """Id of the run, made from date and observations."""
    marks: Mapping[str, Any] = field(default_factory=dict)
    """Watermarks by source, as JSON values."""
    batches: tuple[str, ...] = ()
    """Addresses of the absorbed batches (`harvest.batches`)."""
    ledger: str
    """Digest of all observations absorbed so far."""
    observations: int = 0
    """Number of observations absorbed so far."""
    records: str = ""
    """Digest of all records at the end of the night."""
    statuses: Mapping[str, int] = field(default_factory=dict)
    """Number of records by status."""
    version: int | None = None
    """Version of the profile in force at the end of the night."""
    outcome: Outcome
    final: str
    counts: Mapping[str, int] = field(default_factory=dict)
    """Counts after each stage, and counts of the use of records."""
    quarantined: Mapping[str, int] = field(default_factory=dict)
    """Number of quarantined transcripts by reason."""
    drift: str | None = None
    """Level; None if nothing was staged."""
    gate: str | None = None
    """Verdict of the eval gate, ``passed`` or ``failed``; None if nothing was staged."""
    supports: tuple[Mapping[str, str], ...] = ()
    """References to the supports of records (`steward.erasure`)."""
    link: Link | None = field(default=None, compare=False, repr=False)
    """Link of this night in the chain; None before it is written."""

    @property
    def number(self) -> int:
        """Number of the link; 0 before it is written."""
        return self.link.number if self.link else 0

    def repeats(self, other: Night) -> bool:
        """Whether this night has the same date, observations and decisions as another."""
        same = ("night", "marks", "ledger", "records", "version", "final")
        again = self.outcome in ("unchanged", other.outcome)
        return again and all(getattr(self, name) == getattr(other, name) for name in same)

    def report(self, tenant: str, profile: str, alerts: tuple[str, ...]) -> NightReport:
        """Return the report that the link allows: numbers and codes, no names and no words of anybody."""
        return NightReport(
            tenant=tenant,
            profile=profile,
            night=self.night,
            run=self.run,
            number=self.number,
            outcome=self.outcome,
            version=self.version,
            final=self.final,
            stages={stage: self.counts[stage] for stage in STAGES if stage in self.counts},
            hits={name: count for name, count in self.counts.items() if name in HITS},
            refused=dict(self.quarantined),
            statuses=dict(self.statuses),
            alerts=alerts,
            drift=CheckVerdict(level=self.drift, ok=self.drift != "BLOCK") if self.drift else None,
            gate=CheckVerdict(level=self.gate, ok=self.gate != "failed") if self.gate else None,
        )


def moment_of(date: str) -> str:
    """Return the time of a night by which records age: midnight of its date, ISO 8601."""
    return f"{date}T00:00:00+00:00"


class NightChain:
    """The nights of one profile of one tenant."""

    def __init__(self, store: Store, tenant: str, profile: str) -> None:
        self.folder: str = steward_folder(tenant, profile, "nights")
        self._chain = store.chain(self.folder, tenant=tenant)
        self._key = store.keys.address_key(tenant)
        self._tenant, self._profile = tenant, profile

    def head(self) -> Night | None:
        """Return the newest night, or None."""
        link = self._chain.head()
        return None if link is None else self._night(link)

    def history(self, limit: int | None = None) -> Iterator[Night]:
        """Yield all nights, or the newest up to a limit, oldest first."""
        start = 1 if limit is None else max(1, self._chain.last_number() - limit + 1)
        return map(self._night, self._chain.links(start))

    def reports(self, limit: int) -> list[NightReport]:
        """Return reports of the newest nights, oldest first; earlier nights decide the alerts of each."""
        nights = list(self.history(limit + ALERT_NIGHTS))
        reports = [
            night.report(self._tenant, self._profile, alerts(night.counts, nights[:at]))
            for at, night in enumerate(nights)
        ]
        return reports[-limit:]

    def append(self, parent: Night | None, night: Night, *, epoch: int) -> Night:
        """Write a finished night after `parent`; a repeated call finds the link that the first one wrote."""
        fields = asdict(replace(night, link=None))
        del fields["link"]
        body = {"schema_version": VERSION} | json.loads(json.dumps(fields))
        before = parent.link if parent else None
        data = json.dumps([before.mac if before else "", body], sort_keys=True).encode()
        commit_id = address_of(self._key, self.folder, "night", data)
        return replace(night, link=self._chain.append(before, body, epoch=epoch, commit_id=commit_id))

    def _night(self, link: Link) -> Night:
        body = link.body
        if body.get("schema_version") != VERSION:
            raise UnsupportedVersion(numbered(self.folder, link.number), body.get("schema_version"), VERSION)
        fields = {name: body[name] for name in Night.__dataclass_fields__ if name in body}
        return Night(**fields | {name: tuple(fields.get(name, ())) for name in ("batches", "supports")}, link=link)
