"""Forgetting what was harvested from transcripts outside the store: a session, a person, or a person in one session.

The keys of their harvest artifacts are destroyed, their observations leave the ledger and do not come back, and so do
all records that are not active any more without them, in every version, and facts that rest on them. `ctxsteward store
forget` is for the store's own sessions, and does all of this as well. The transcript itself lies where it was read.

Raises `InputError` where nothing was harvested from them, `StoreError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctxsteward.schemas import InputError

from .steward_records import records_at

if TYPE_CHECKING:
    from .steward_place import Place


def forgotten(place: Place, session: str | None, principal: str | None, who: str, why: str) -> dict[str, Any]:
    """Forget them; how much that was."""
    from ctxsteward.envelope.erasers import Told
    from ctxsteward.envelope.facts.withdrawing import withdraw_facts
    from ctxsteward.envelope.withdrawal import withdraw_unsupported

    told = Told(who, place.here.when, why)
    with records_at(place) as records:
        known = set(records.by_id)
        observations = records.ledger.withdraw(session=session, principal=principal, told=told)
        left = {record.id for record in records if record.status == "active"}
    if not observations:
        raise InputError(f"{_whom(session, principal)}: nothing was harvested from them; nothing was forgotten")
    erased = place.versions.erase(lambda record: record.id in known - left, **told._asdict())
    erased += withdraw_unsupported(place.store, place.tenant, **told._asdict())
    facts = withdraw_facts(place.store, place.tenant, **told._asdict())
    return {
        "session": session, "principal": principal, "observations": observations, "records": erased, "facts": facts,
        "who": who, "when": told.when, "why": why,
    }  # fmt: skip


def said(done: dict[str, Any]) -> str:
    """What was forgotten, in a line."""
    counts = ", ".join(f"{done[name]:,} {name}" for name in ("observations", "records", "facts"))
    return f"forgot {_whom(done['session'], done['principal'])}: {counts}; delete the transcripts where they lie, too"


def _whom(session: str | None, principal: str | None) -> str:
    told = [f"principal {principal}" if principal is not None else "", f"session {session}" if session else ""]
    return " in ".join(part for part in told if part)
