"""``ctxsteward steward forget``: erases what was harvested of a session, a person, or a person in one session.

It is for transcripts outside the store. The keys of their harvest artifacts are destroyed, and their observations leave
the ledger for good. Records that are no longer active without these observations are erased from every version, and so
are facts that rest on them. `ctxsteward store forget` is for the store's own sessions, and does all of this as well.
The transcript itself stays where it was read.

Raises `InputError` where nothing was harvested from them, `StoreError`.
"""

from __future__ import annotations

from typing import Any

import click

from ctxsteward.schemas import InputError
from ctxsteward.store import ErasureRequest, withdraw_facts, withdraw_unsupported

from ..terminal import one_line, print_json
from .context import StewardContext
from .options import ProfileOptions, about_a_profile
from .records import records_at


@click.command()
@click.option("--session", metavar="ID", help="This session.")
@click.option("--principal", metavar="NAME", help="This person, in all sessions (or in --session).")
@click.option("--who", required=True, metavar="NAME", help="Who orders it; kept in plain.")
@click.option("--why", required=True, metavar="TEXT", help="Why, such as a request's number; kept in plain.")
@about_a_profile(people=False)
def forget(
    session: str | None, principal: str | None, who: str, why: str, where: ProfileOptions, as_json: bool
) -> None:
    """Erase what was harvested from transcripts outside the store, for good, in every version.

    For the store's own sessions use `ctxsteward store forget`. A transcript that is marked as deleted where it lies is
    forgotten by the next night.
    """
    if session is None and principal is None:
        raise click.UsageError("say whom: --session, --principal, or both")
    with where.open() as place:
        done = forget_harvested(place, session, principal, who, why)
    print_json(done) if as_json else click.echo(one_line(erasure_text(done)))


def forget_harvested(
    place: StewardContext, session: str | None, principal: str | None, who: str, why: str
) -> dict[str, Any]:
    """Erase what was harvested from them, and count it."""
    request = ErasureRequest(who, place.here.when, why)
    with records_at(place) as records:
        ids_before = set(records.by_id)
        observations = records.ledger.withdraw(session=session, principal=principal, told=request)
        still_active = {record.id for record in records if record.status == "active"}
    if not observations:
        raise InputError(f"{_whom(session, principal)}: nothing was harvested from them; nothing was forgotten")
    erased = place.versions.erase(lambda record: record.id in ids_before - still_active, **request._asdict())
    erased += withdraw_unsupported(place.store, place.tenant, **request._asdict())
    facts = withdraw_facts(place.store, place.tenant, **request._asdict())
    return {
        "session": session, "principal": principal, "observations": observations, "records": erased, "facts": facts,
        "who": who, "when": request.when, "why": why,
    }  # fmt: skip


def erasure_text(done: dict[str, Any]) -> str:
    """What was forgotten, in a line."""
    counts = ", ".join(f"{done[name]:,} {name}" for name in ("observations", "records", "facts"))
    return f"forgot {_whom(done['session'], done['principal'])}: {counts}; delete the transcripts where they lie, too"


def _whom(session: str | None, principal: str | None) -> str:
    told = [f"principal {principal}" if principal is not None else "", f"session {session}" if session else ""]
    return " in ".join(part for part in told if part)
