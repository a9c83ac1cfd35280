"""Both arms of a canary: what sessions under champion and challenger have shown, and what an auditor says of them.

A session counts once, however many nights have read it and whether or not one of them read everything anew: by its
newest reading, under the version that it was under then. Sessions that were forgotten count no more. Costs a read of
each batch of these nights, and a listing of what was forgotten.

Raises `StoreError`; what `audits` raises. Source: the layered-envelope design (signals of a canary window).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ctxsteward.envelope.store import Store

from .audits import Audited, audits
from .batches import BatchRecords, SessionUse
from .canary import Arm
from .nights import Night
from .settings import NightSettings


def arms_of(
    store: Store, settings: NightSettings, nights: Iterable[Night], versions: tuple[int, int]
) -> tuple[Arm, Arm]:
    """Of the sessions that these nights have read: champion's and challenger's."""
    batches = BatchRecords(store, settings.tenant, settings.profile, extractor="")
    read = [batches.read(address).uses for address in sorted({one for night in nights for one in night.batches})]
    forgotten = frozenset(store.vault(settings.tenant).buried())
    uses = newest(use for one in read for use in one if forgotten.isdisjoint(use.rests))
    audited = audits(settings.sent, store, settings.tenant, settings.profile, versions) if settings.sent else {}
    champion, challenger = (_arm(uses, number, audited.get(number, Audited())) for number in versions)
    return champion, challenger


def newest(uses: Iterable[SessionUse]) -> list[SessionUse]:
    """Each session once, by its newest reading, of two by the one that tells more; the same for any order."""
    found: dict[str, SessionUse] = {}
    for use in sorted(uses, key=lambda use: (use.revision, sum(map(len, use.fates.values())), repr(use))):
        found[use.reading] = use
    return [found[reading] for reading in sorted(found)]


def _arm(uses: Sequence[SessionUse], version: int, audited: Audited) -> Arm:
    total: Counter[str] = Counter()
    for use in uses:
        if use.version == version:
            total.update(use.arm)
    return replace(Arm(**total), audited=audited.audited, audit_findings=audited.findings)
