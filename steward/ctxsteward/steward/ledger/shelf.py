"""From drafts to facts: what is active for one user, project or session is shown to that audience.

A record that reaches more than one person stands in the slice or nowhere; all others are facts, which a request is
shown where it asks about them. Of one audience at most `MAX_FACTS`, the surest and then the newest first; the others
wait.
Source: the state design (scopes: a record scoped to a user is shown to that user alone).
"""

from __future__ import annotations

from collections.abc import Iterable

from ctxsteward.envelope.facts import Audience, Fact, FactSource
from ctxsteward.envelope.facts.fact import MAX_FACTS, MAX_SOURCES
from ctxsteward.schemas.profile import instant

from ..admission.contest import Standing
from ..reconcile.draft import Draft
from .writing import lower95

STANDING = frozenset(("preference", "correction"))
"""Kinds that hold whatever is asked, where they name no trigger."""


def audience_of(draft: Draft) -> Audience | None:
    """Whom a record is for alone; None where it is for everybody.

    Where nobody is known by name, the principal is the session itself.
    """
    scope = draft.audience
    if scope.session is not None:
        return Audience("session", scope.session)
    if scope.project is not None:
        return Audience("project", scope.project)
    if scope.user is None:
        return None
    unnamed = all(one["session"] == scope.user for one in draft.evidence)
    return Audience("session" if unnamed else "user", scope.user)


def facts_of(active: Iterable[tuple[Draft, Standing]]) -> tuple[Fact, ...]:
    """The facts of one audience, by value; the same for any order of records."""
    by_id = sorted(active, key=lambda found: found[0].id)
    by_age = sorted(by_id, key=lambda found: instant(found[0].last), reverse=True)
    best = sorted(by_age, key=lambda found: -lower95(*found))[:MAX_FACTS]
    return tuple(_fact(draft) for draft, _ in best)


def _fact(draft: Draft) -> Fact:
    """A record as a fact, with the originals it rests on."""
    sources = dict.fromkeys(
        FactSource(
            session=one["session"], ref=one["ref"],
            principal=None if one["principal"] == one["session"] else one["principal"],
        )
        for one in draft.evidence
    )  # fmt: skip
    return Fact(
        id=draft.id, text=draft.said["text"], sources=tuple(sources)[:MAX_SOURCES], ts=draft.last,
        answers=draft.answers,
        standing=draft.kind in STANDING and draft.said["trigger"] is None,
    )  # fmt: skip
