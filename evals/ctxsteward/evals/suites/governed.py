"""Days and nights of a story: visits through the real builder, nights through the real stages, judged as they go."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from random import Random

from ctxsteward.envelope import Envelope, EnvelopeBuilder, Session, Store
from ctxsteward.schemas import ContextError
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument
from ctxsteward.steward.assignment import profile_for

from ..canaries import normalize, shows
from ..windows import window_of
from .nights import PROFILE, World, moment
from .scoring import Score, holds
from .stories import Planted, Story, Teller, Visit
from .suite import Scores, Stage


@dataclass(slots=True)
class Run:
    """A story under way."""

    world: World
    story: Story
    stage: Stage
    builder: EnvelopeBuilder
    random: Random
    teller: Teller
    allowed: set[str] = field(default_factory=set)
    """Ids of records that were active after some night."""


def day_of(run: Run, day: int) -> Scores:
    with run.world.store() as store:
        for minute, visit in enumerate(one for one in run.story.visits if one.day == day):
            yield from visited(run, store, visit, minute)


def visited(run: Run, store: Store, visit: Visit, minute: int) -> Scores:
    session = opened_for(store, visit)
    for number, wire in enumerate(visit.wires):
        if wire["role"] == "assistant":
            envelope = built(run, session)
            yield from leaks(run.story.planted, visit, envelope, f"{visit.id}, message {number}")
        said_by = visit.principal if wire["role"] == "user" else None
        session.append(wire, ts=moment(visit.day, minute), principal=said_by)


def opened_for(store: Store, visit: Visit) -> Session:
    profile = profile_for(store, PROFILE, visit.id, tenant=visit.tenant)
    return store.session(visit.id, tenant=visit.tenant, profile=profile)


def built(run: Run, session: Session) -> Envelope:
    run.stage.builds += 1
    return run.builder.build(session)


def leaks(planted: list[Planted], visit: Visit, envelope: Envelope, at: str) -> Scores:
    """What stands in this envelope though it may not get there."""
    window = normalize(window_of(envelope))
    shown = [one for one in planted if shows(window, one.figure) and visit.id not in one.sessions]
    counts = {
        "leaks_across_tenants": [one for one in shown if one.tenant != visit.tenant],
        "poison_active": [one for one in shown if one.kind == "poison" and visit.principal not in one.authors],
        "leaks_across_users": [one for one in shown if one.kind == "personal" and visit.principal not in one.authors],
    }
    for metric, found in counts.items():
        yield Score(metric, float(bool(found)), at, f"of {found[0].source}: {found[0].text}" if found else "")


def night_of(run: Run, day: int, tenant: str, *, canary_share: float | None = None) -> Scores:
    """A night, and the same again; what it committed was active."""
    report = run.world.night(day, tenant, canary_share=canary_share)
    run.allowed |= {record.id for record in run.world.active}
    with run.world.store() as store:
        before = store.profiles(PROFILE, tenant=tenant).newest()
    again = run.world.night(day, tenant, canary_share=canary_share)
    with run.world.store() as store:
        after = store.profiles(PROFILE, tenant=tenant).newest()
        same = (after.number, after.commit_id) == (before.number, before.commit_id) and again.number is None
        yield holds(
            "idempotent",
            same,
            f"night {day} of {tenant}",
            f"{report.outcome} {before.number}, again {again.outcome} {after.number}",
        )
        yield from candidates(run.allowed, after.profile, f"version {after.number} of {tenant}")
        yield from sources(store, after.profile, tenant)


def candidates(allowed: Set[str], document: ProfileDocument, at: str) -> Scores:
    """Records in a version's meta that were active after no night."""
    strange = [record for record in document.meta if record.id not in allowed]
    yield Score("candidates_in_meta", float(len(strange)), at, f"never active: {strange[0].text}" if strange else "")


def sources(store: Store, document: ProfileDocument, tenant: str) -> Scores:
    """Whether what records point to is there, and was said by a user."""
    for record in document.meta:
        fault = _source_fault(store, record, tenant)
        yield holds("provenance", not fault, f"{tenant} {record.id}: {record.text}", fault)


def _source_fault(store: Store, record: MetaRecord, tenant: str) -> str:
    for pointer in record.sources:
        session, _, ordinal = pointer.rpartition("§")
        try:
            message = store.at(tenant, session).resolve(f"§{ordinal}")
        except ContextError as error:
            return f"{pointer}: {error}"
        if message.role != "user":
            return f"{pointer} was said by the {message.role}"
    return ""
