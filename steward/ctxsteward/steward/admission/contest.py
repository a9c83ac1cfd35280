"""Contests: records that cannot all hold.

Of one slot that holds one value, the newest active record stands and each older one is superseded by the next (the
chain is kept both ways). A record that a person approved gives way only to one that a person approved. A rival that is
not active itself supersedes nothing: nobody can knock out what others agreed on by saying otherwise. Nor does a record
that is set aside because it gainsays a rule.

Records that say the opposite of each other are both held as candidates, whatever stands behind either; one that a
person approved stays. Somebody must have said it: text of tools opposes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..reconcile.draft import Draft
from .gates import Verdict, is_approved


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A record after its contests."""

    verdict: Verdict
    supersedes: tuple[str, ...] = ()
    superseded_by: str | None = None
    replaced_at: str | None = None
    """When what supersedes it was first said."""
    conflicts: tuple[str, ...] = ()
    contradicts: int = 0
    """Independent voices that say the opposite."""


def settled(
    drafts: Sequence[Draft], verdicts: Mapping[str, Verdict], opposed: Mapping[str, Collection[str]]
) -> dict[str, Standing]:
    """Weigh drafts that may contest each other; by id, as are the verdicts. `opposed` is symmetric."""
    by_id = {draft.id: draft for draft in drafts}
    conflicts = _conflicts(by_id, verdicts, opposed)
    now = {id_: _held(verdicts[id_]) if conflicts.get(id_) else verdicts[id_] for id_ in by_id}
    chains = _chains(drafts, now)
    standing = {}
    for id_ in by_id:
        newer = chains.newer.get(id_)
        standing[id_] = Standing(
            verdict=Verdict("superseded", ("newer_value",)) if newer else now[id_],
            supersedes=tuple(sorted(chains.older.get(id_, ()))),
            superseded_by=newer,
            replaced_at=by_id[newer].first if newer else None,
            conflicts=tuple(sorted(conflicts.get(id_, ()))),
            contradicts=sum(by_id[other].backing.said for other in conflicts.get(id_, ())),
        )
    return standing


def _held(verdict: Verdict) -> Verdict:
    """What a conflict makes of a verdict."""
    if is_approved(verdict):
        return verdict
    return Verdict("candidate", tuple(sorted({*verdict.reasons, "conflict"})))


def _conflicts(
    by_id: Mapping[str, Draft], verdicts: Mapping[str, Verdict], opposed: Mapping[str, Collection[str]]
) -> dict[str, set[str]]:
    live = {
        id_
        for id_, draft in by_id.items()
        if verdicts[id_].status not in ("rejected", "expired", "quarantined") and draft.backing.said
    }
    return {id_: set(opposed.get(id_, ())) & live for id_ in live if set(opposed.get(id_, ())) & live}


@dataclass(frozen=True, slots=True)
class _Chains:
    newer: dict[str, str]
    older: dict[str, list[str]]


def _chains(drafts: Sequence[Draft], verdicts: Mapping[str, Verdict]) -> _Chains:
    groups: dict[str, list[Draft]] = {}
    for draft in drafts:
        if draft.group and verdicts[draft.id].status == "active":
            groups.setdefault(draft.group, []).append(draft)
    chains = _Chains({}, {})
    for rivals in groups.values():
        line = sorted(rivals, key=lambda draft: (is_approved(verdicts[draft.id]), draft.moment, draft.id))
        for older, newer in pairwise(line):
            chains.newer[older.id] = newer.id
            chains.older.setdefault(newer.id, []).append(older.id)
    return chains
