"""How the steward of a profile stands: what is in force, the last nights, who is at it now, how far it has read.

Read from the store alone, in a few requests; changes nothing. Times are Unix seconds, dates ISO 8601.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, StrictBool, StrictInt

from ctxsteward.envelope.lease import WriterLease
from ctxsteward.envelope.store import Store

from .nights import Night, Nights
from .report import rates_of
from .yields import ALERT_NIGHTS, alerts_of


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class NightLine(_Value):
    """A night in one line."""

    number: StrictInt
    night: str
    run: str
    outcome: str
    version: StrictInt | None
    final: str
    counts: dict[str, int]
    quarantined: dict[str, int]
    drift: str | None
    gate: str | None
    rates: dict[str, float] = {}
    """anticipated, used, obeyed: as `report.NightReport.rates`."""
    alerts: tuple[str, ...] = ()
    """Stages whose yield was out of the ordinary."""


class SourceLine(_Value):
    """How far a source has been read."""

    source: str
    high_seconds: float | None
    """Of the newest item seen."""
    floor_seconds: float | None
    """Everything older counts as read."""
    marks: StrictInt
    """Items remembered one by one."""


class StewardStatus(_Value):
    """One profile's steward."""

    tenant: str
    profile: str
    version: StrictInt | None
    """In force; None: nothing was ever committed."""
    records: StrictInt
    """Meta records in force."""
    nights: StrictInt
    """Finished so far."""
    last: tuple[NightLine, ...]
    """The newest nights, newest first."""
    sources: tuple[SourceLine, ...]
    running: str | None
    """Who holds the lease; None: nobody."""
    lapsed: StrictBool
    """Whether that lease has run out: its holder is late, or was killed."""


def status(store: Store, tenant: str, profile: str, *, now_seconds: float, limit: int = 7) -> StewardStatus:
    """Read how it stands, with the newest `limit` nights."""
    head = store.profiles(profile, tenant=tenant).head()
    history = list(Nights(store, tenant, profile).history(max(1, limit) + ALERT_NIGHTS))
    odd = alerts_of([night for _, night in history])
    told = [line(*one, alerts) for one, alerts in zip(history, odd, strict=True)]
    lease = WriterLease(store, profile, tenant, owner="status", clock=lambda: now_seconds).holder()
    return StewardStatus(
        tenant=tenant, profile=profile, version=head.number if head else None,
        records=len(head.profile.meta) if head else 0, nights=history[-1][0] if history else 0,
        last=tuple(reversed(told[-limit:] if limit else [])),
        sources=tuple(_source(mark) for _, mark in sorted(history[-1][1].marks.items())) if history else (),
        running=lease.owner if lease else None, lapsed=lease is not None and lease.expires_seconds <= now_seconds,
    )  # fmt: skip


def line(number: int, night: Night, alerts: tuple[str, ...] = ()) -> NightLine:
    """A night in one line."""
    return NightLine(
        number=number, night=night.night, run=night.run, outcome=night.outcome, version=night.version,
        final=night.final, counts=dict(night.counts), quarantined=dict(night.quarantined), drift=night.drift,
        gate=night.gate, rates=rates_of(night.counts), alerts=alerts,
    )  # fmt: skip


def _source(mark: dict[str, Any]) -> SourceLine:
    return SourceLine(
        source=mark["source"], high_seconds=mark["high_seconds"], floor_seconds=mark["floor_seconds"],
        marks=len(mark["marks"]),
    )  # fmt: skip
