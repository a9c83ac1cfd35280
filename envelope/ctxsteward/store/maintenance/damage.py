"""The kinds of damage of a store, with stable names for alarms, and the tally of a check run.

*Damage* means that stored data cannot be read any more, or has changed: the check fails. A *note* reports what crashes
and clean-ups leave behind in an intact store.

A *share* of a store (``1/7``) is one of seven parts, which together are the whole store. The split is by SHA-256 of a
name (a session's, a chain's folder, an object's key), so it is the same on every machine and in every run. Seven nights
with one share each check everything that was there all week.

>>> StoreShare.parse("1/1").holds("blobs/acme/ab/…")
True
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ctxsteward.schemas import Finding, InputError
from ctxsteward.schemas.errors import Damaged, UnsupportedVersion

from ..journal.port import SessionKey

_BACKUP = "restore it from a backup"
_SEAL_KEY = "seals of earlier envelopes do not verify; restore the key file from a backup of the key folder"
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
    "report_altered": "the session's log holds the report as well; delete the object, or restore it from a backup",
    "key_damaged": f"content under it cannot be read; {_BACKUP}",
    "key_missing": f"content under it cannot be read, and no tombstone says why; {_BACKUP}",
    "keys_wrong": "these are not the keys that the tenant's objects were written with; pass the right ones",
    "check_altered": _BACKUP,
    "tombstone_altered": _BACKUP,
    "tombstone_missing": f"a subject was forgotten and nothing says so; {_BACKUP}, or forget it again",
    "key_after_tombstone": "an erasure did not finish; `--repair` destroys the key",
    "content_after_erasure": "an erasure did not finish; repeat `store forget`",
    "approval_forged": "people have not agreed to this version; roll back to the one before, and find out who wrote it",
    "people_forged": f"no reviewer vouches for this statement about who may review; {_BACKUP}",
    "seal_key_wrong": _SEAL_KEY,
    "seal_key_missing": _SEAL_KEY,
    "later_version": "written by a later program, or altered; check it with that program",
    "tenant_unknown": "the name is too long to be read from its folder; name it with `--tenant`",
}
"""Kinds of damage, each with advice."""

NOTES: dict[str, str] = {
    "blob_erased": "its subject was forgotten: nobody can read it",
    "report_erased": "its subject was forgotten: nobody can read it; `store gc` removes it",
    "approval_unknown": "it is older than the people enrolled in the store; the log of reviews alone vouches for it",
    "temporary_left": "an unfinished write; `store gc` removes it",
    "probe_left": "a try whether the store honours conditional writes; `store gc` removes it",
    "foreign_object": "not ours; it is left alone",
}
"""Kinds of notes, each with its meaning."""


def damage(kind: str, where: str, what: str) -> Finding:
    """Return a finding of one of these kinds at a key, or at a place in the journal."""
    hint = DAMAGE.get(kind) or NOTES[kind]
    return Finding(kind=kind, field=where, text=f"{what}; {hint}")


MAX_SHARES = 10_000
_FORM = re.compile(r"([0-9]{1,5})/([0-9]{1,5})", re.ASCII)


class StoreShare(NamedTuple):
    """One of `parts` shares of a store; `part` counts from 1."""

    part: int = 1
    parts: int = 1

    @classmethod
    def parse(cls, text: str | None) -> StoreShare:
        """Parse ``1/7``; None means the whole store. Raises `InputError`."""
        if text is None:
            return cls()
        found = _FORM.fullmatch(text)
        share = cls(int(found[1]), int(found[2])) if found else cls(0, 0)
        if not 1 <= share.part <= share.parts <= MAX_SHARES:
            raise InputError(f"invalid subset {text[:40]!r}; write K/N with 1 ≤ K ≤ N ≤ {MAX_SHARES:,}, such as 1/7")
        return share

    def holds(self, name: str) -> bool:
        """Return whether this name belongs to this share."""
        if self.parts == 1:
            return True
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % self.parts == self.part - 1

    def __str__(self) -> str:
        return f"{self.part}/{self.parts}"


class Broken(NamedTuple):
    """A finding that `repair` may be able to remedy, and the damaged thing."""

    finding: Finding
    key: SessionKey
    """The session; for a data key its tenant and the address of its subject."""
    at: int | str = 0
    """Position of the record, or address of the manifest."""


class CheckTally:
    """The counts and findings of one check run."""

    def __init__(self, *, share: StoreShare | None = None, tell: Callable[[str], object] = lambda text: None) -> None:
        self.share: StoreShare = share or StoreShare()
        self.tell = tell
        self.counts: Counter[str] = Counter()
        """Number of checked things by kind."""
        self.findings: list[Finding] = []
        self.broken: list[Broken] = []

    def count(self, kind: str, number: int = 1) -> None:
        self.counts[kind] += number

    def found(self, kind: str, where: str, what: str, *, of: SessionKey | None = None, at: int | str = 0) -> None:
        """Add a finding; `where` is a key, or a place in the journal; `of` and `at` are the fields of `Broken`."""
        finding = damage(kind, where, f"{where}: {what}")
        self.findings.append(finding)
        if of is not None:
            self.broken.append(Broken(finding, of, at))

    @contextmanager
    def reading(self, where: str, kind: str, what: str) -> Iterator[None]:
        """Add a finding if the block fails to read this place because of damage or a later version."""
        try:
            yield
        except UnsupportedVersion as error:
            self.found("later_version", where, str(error))
        except Damaged:
            self.found(kind, where, what)

    def mark(self) -> CheckTally:
        """Return a copy of the current tally, for `take`."""
        other = CheckTally(share=self.share, tell=self.tell)
        other.take(self)
        return other

    def take(self, other: CheckTally) -> None:
        """Replace counts and findings by those of the other tally."""
        self.counts, self.findings, self.broken = other.counts.copy(), [*other.findings], [*other.broken]
