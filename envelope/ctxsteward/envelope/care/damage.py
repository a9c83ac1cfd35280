"""What can be wrong with a store, by name: stable, so that alarms may depend on them.

A *damage* means that something which was stored cannot be had any more, or not as it was: the check fails. A *note* is
what crashes and clean-ups leave behind in a store that is whole.

    journal     journal_missing  journal_damaged  log_altered  record_altered  record_missing  manifest_altered
                manifest_missing  forgotten_altered
    chains      link_altered  link_misplaced  link_missing  tail_missing  drain_altered
    sessions    segment_altered  segment_missing  original_altered  parent_missing
    content     blob_altered  blob_missing  key_damaged  key_missing  keys_wrong  check_altered
    erasure     tombstone_altered  tombstone_missing  key_after_tombstone  content_after_erasure
    any         later_version  tenant_unknown
    notes       blob_erased  temporary_left  probe_left  foreign_object
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ctxsteward.schemas import Finding

_BACKUP = "restore it from a backup"
_JOURNAL = "restore the journal from a backup"

DAMAGE: dict[str, str] = {
    "journal_missing": "sessions that were not drained are lost with it",
    "journal_damaged": f"SQLite finds the journal's file malformed; {_JOURNAL}",
    "log_altered": f"the log's row is not that of its records; `--repair` counts it anew if it can; else {_JOURNAL}",
    "record_altered": f"`--repair` takes it from the object store if it is there; else {_JOURNAL}",
    "record_missing": f"`--repair` takes it from the object store if it is there; else {_JOURNAL}",
    "manifest_altered": "`--repair` takes it from the object store, or drops it: the envelope can be built again",
    "manifest_missing": "`--repair` takes it from the object store",
    "link_altered": _BACKUP,
    "link_misplaced": _BACKUP,
    "link_missing": _BACKUP,
    "tail_missing": _BACKUP,
    "drain_altered": f"the journal's mark is not where the chain ends; {_JOURNAL}",
    "segment_altered": _BACKUP,
    "segment_missing": _BACKUP,
    "original_altered": f"two copies of a record differ; {_BACKUP}",
    "forgotten_altered": f"who was forgotten is not known; {_JOURNAL}, and repeat what was forgotten since",
    "parent_missing": f"a fork's parent is gone; {_JOURNAL}",
    "blob_altered": _BACKUP,
    "blob_missing": _BACKUP,
    "key_damaged": f"content under it cannot be read; {_BACKUP}",
    "key_missing": f"content under it cannot be read, and no tombstone says why; {_BACKUP}",
    "keys_wrong": "these are not the keys that the tenant's objects were written with; pass the right ones",
    "check_altered": _BACKUP,
    "tombstone_altered": _BACKUP,
    "tombstone_missing": f"a subject was forgotten and nothing says so; {_BACKUP}, or forget it again",
    "key_after_tombstone": "an erasure did not finish; `--repair` destroys the key",
    "content_after_erasure": "an erasure did not finish; repeat `store forget`",
    "later_version": "written by a later program, or altered; check it with that program",
    "tenant_unknown": "the name is too long to be read from its folder; name it with `--tenant`",
}
"""Kinds of damage, and what to do."""

NOTES: dict[str, str] = {
    "blob_erased": "its subject was forgotten: nobody can read it",
    "temporary_left": "an unfinished write; `store gc` removes it",
    "probe_left": "a try whether the store honours conditional writes; `store gc` removes it",
    "foreign_object": "not ours; it is left alone",
}
"""Kinds of notes, and what they mean."""


class Standing(NamedTuple):
    """Findings, told apart."""

    damage: tuple[Finding, ...]
    notes: tuple[Finding, ...]


def damage(kind: str, where: str, what: str) -> Finding:
    """A finding of one of these kinds at a key, or at a place in the journal."""
    hint = DAMAGE.get(kind) or NOTES[kind]
    return Finding(kind=kind, field=where, text=f"{what}; {hint}")


def told_apart(findings: Iterable[Finding]) -> Standing:
    """Damage and notes, each in the order found."""
    every = tuple(findings)
    return Standing(
        tuple(one for one in every if one.kind in DAMAGE), tuple(one for one in every if one.kind not in DAMAGE)
    )
