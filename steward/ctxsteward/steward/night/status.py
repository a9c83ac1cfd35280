"""How the steward of one profile stands, read in a few requests: what `ctxsteward steward status` shows.

Times are Unix seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctxsteward.envelope import Store
from ctxsteward.store.profiles.versions import WriterLease

from .alerts import ALERT_NIGHTS, alerts_of
from .chain import Night, NightChain


@dataclass(frozen=True, slots=True, kw_only=True)
class StewardStatus:
    """How the steward of one profile stands."""

    tenant: str
    profile: str
    version: int | None
    """In force; None if nothing was ever committed."""
    records: int
    """Meta records in force."""
    nights: int
    """Finished so far."""
    last: tuple[tuple[Night, tuple[str, ...]], ...]
    """The newest nights with their alerts, newest first."""
    marks: Mapping[str, Mapping[str, Any]]
    """Watermarks by source (`ingest.watermark`)."""
    running: str | None
    """Holder of the lease; None if it is free."""
    lapsed: bool
    """Whether that lease has run out: its holder is late, or was killed."""

    def document(self) -> dict[str, Any]:
        """The status as JSON: of a night its summary, of a watermark how many items it remembers one by one."""
        marks = [mark for _, mark in sorted(self.marks.items())]
        names = ("source", "high_seconds", "floor_seconds")
        return {
            "tenant": self.tenant,
            "profile": self.profile,
            "version": self.version,
            "records": self.records,
            "nights": self.nights,
            "last": [night.summary(alerts) for night, alerts in self.last],
            "sources": [{name: mark[name] for name in names} | {"marks": len(mark["marks"])} for mark in marks],
            "running": self.running,
            "lapsed": self.lapsed,
        }


def status(store: Store, tenant: str, profile: str, *, now_seconds: float, limit: int = 7) -> StewardStatus:
    """Read the status of a profile's steward, with its newest `limit` nights."""
    head = store.profiles(profile, tenant=tenant).head()
    history = list(NightChain(store, tenant, profile).history(max(1, limit) + ALERT_NIGHTS))
    last = list(zip(history, alerts_of(history), strict=True))[-limit:] if limit else []
    lease = WriterLease(store, profile, tenant, owner="status", clock=lambda: now_seconds).holder()
    return StewardStatus(
        tenant=tenant,
        profile=profile,
        version=head.number if head else None,
        records=len(head.profile.meta) if head else 0,
        nights=history[-1].number if history else 0,
        last=tuple(reversed(last)),
        marks=history[-1].marks if history else {},
        running=lease.owner if lease else None,
        lapsed=lease is not None and lease.expires_seconds <= now_seconds,
    )
