"""From records to shelves: what is active for one user, project or session becomes facts of that audience.

A record that reaches more than one person stands in the slice or nowhere; all others are facts, which a request is
shown where it asks about them. Of one audience at most `MAX_FACTS`, the surest and then the newest first; the others
wait.
Source: the state design (scopes: a record scoped to a user is shown to that user alone).
"""

from __future__ import annotations

from collections.abc import Iterable

from ctxsteward.envelope.facts import Audience, Fact, FactSource
from ctxsteward.envelope.facts.fact import MAX_FACTS, MAX_SOURCES
from ctxsteward.schemas.recommendation import MetaRecommendation

STANDING = frozenset(("preference", "correction"))
"""Kinds that hold whatever is asked, where they name no trigger."""


def shelves(active: Iterable[MetaRecommendation]) -> dict[Audience, tuple[Fact, ...]]:
    """The facts of every audience, by value; the same for any order of records."""
    found: dict[Audience, list[MetaRecommendation]] = {}
    for record in active:
        audience = audience_of(record)
        if audience is not None:
            found.setdefault(audience, []).append(record)
    return {audience: tuple(map(fact_of, _best(records))) for audience, records in found.items()}


def audience_of(record: MetaRecommendation) -> Audience | None:
    """Whom a record is for alone; None where it is for everybody.

    Where nobody is known by name, the principal is the session itself.
    """
    scope = record.scope
    if scope.session is not None:
        return Audience("session", scope.session)
    if scope.project is not None:
        return Audience("project", scope.project)
    if scope.user is None:
        return None
    unnamed = all(one.session == scope.user for one in record.evidence)
    return Audience("session" if unnamed else "user", scope.user)


def fact_of(record: MetaRecommendation) -> Fact:
    """A record as a fact, with the originals it rests on."""
    sources = dict.fromkeys(
        FactSource(session=one.session, ref=one.ref, principal=None if one.principal == one.session else one.principal)
        for one in record.evidence
    )
    return Fact(
        id=record.id, text=record.text, sources=tuple(sources)[:MAX_SOURCES], ts=record.support.last,
        standing=record.kind in STANDING and record.trigger is None,
    )  # fmt: skip


def _best(records: list[MetaRecommendation]) -> list[MetaRecommendation]:
    by_id = sorted(records, key=lambda record: record.id)
    by_age = sorted(by_id, key=lambda record: record.support.last or "", reverse=True)
    return sorted(by_age, key=lambda record: -record.confidence.lower95)[:MAX_FACTS]
