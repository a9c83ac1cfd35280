"""Take a rejected record out of the version in force at once, where that needs no further person.

A night does the same for all records. Between nights a rejected record would stay in prompts until the next one.

It holds the lease of the profile's writers. Where a night holds that, the night after it does what is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ctxsteward.schemas import MetaRecommendation
from ctxsteward.steward.night.run import CommitContext
from ctxsteward.steward.release.decision import Decisions
from ctxsteward.store.crypto.keyring import address_of
from ctxsteward.store.profiles.versions import Lease, WriterLease

from .context import StewardContext
from .records import LedgerView, records_at

LEASE_SECONDS = 300.0
LATER = "the next night"
"""When an answer takes effect that could not at once."""


@contextmanager
def leased(place: StewardContext) -> Iterator[Lease | None]:
    """The lease of the profile's writers; None where a night has it."""
    lease = WriterLease(place.store, place.profile, place.tenant, owner=place.here.owner, clock=place.here.clock)
    holder = lease.holder()
    taken = lease.take(LEASE_SECONDS, force=holder is not None and place.here.abandoned(holder.owner))
    try:
        yield taken
    finally:
        if taken is not None:
            lease.release()


def writing_by_hand(place: StewardContext, date: str, id: str, who: str, lease: Lease) -> CommitContext:
    """In whose name, and under which run, the deciding half of a night writes by day."""
    key = place.store.keys.address_key(place.tenant)
    named = re.sub(r"[^a-z0-9_.-]", "-", who.lower())
    address = address_of(key, place.tenant, "by hand", f"{place.profile} {place.head} {id}".encode())
    return CommitContext(
        who=place.settings().who,
        when=place.here.when,
        epoch=lease.epoch,
        run=f"h{date}-{address[:12]}-{named}"[:64],
        commit_id=address[:32],
        done=False,
    )


def take_effect(place: StewardContext, id: str, who: str) -> bool:
    """Show a rejected record no more; whether that is done.

    False: a night is under way, or the version without the record may not come into force yet.
    """
    with leased(place) as lease:
        if lease is None:
            return False
        with records_at(place) as records:
            return _without_rejected(place, records, records.find(id), who, lease)


def _without_rejected(
    place: StewardContext, records: LedgerView, record: MetaRecommendation, who: str, lease: Lease
) -> bool:
    """Bring a version without a rejected record into force."""
    if record.status != "rejected":
        return True
    if not _is_shown(place, record.id):
        return True
    deciding = Decisions(place.settings(canary_share=None), place.store, records.ledger)
    writing = writing_by_hand(place, records.date, record.id, who, lease)
    admitted = deciding.admit(records.date, writing.run)
    fitted = deciding.fit(admitted, writing)
    challenger = deciding.stage(fitted, writing)
    if challenger is not None:
        drift = deciding.drift(challenger, writing)
        gate = deciding.gate(challenger, drift, admitted)
        deciding.promote(challenger, drift, gate, admitted, fitted, writing)
    return not _is_shown(place, record.id)


def _is_shown(place: StewardContext, id: str) -> bool:
    """Whether the version in force has this record."""
    head = place.versions.head()
    return head is not None and any(entry.id == id for entry in head.profile.meta)
