"""Values and ports of an erasure: its request, whom it calls, and what it reports. `store/erasure` does the work.

An *eraser* is a callable of whatever holds text derived from what people said: cards, indexes, recordings, exports.
*Elsewhere* is the object store's copy of the sessions (`RemoteSessions`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from ctxsteward.schemas import Finding

from .port import Journal, SessionKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What is forgotten of one session, for whatever holds text derived from it."""

    tenant: str
    session: str
    principal: str | None
    """None: the whole session."""
    ordinals: frozenset[int] | None
    """Messages that were forgotten; None: all."""


Eraser = Callable[[Sequence[Deletion]], int]
"""Deletes what was derived from this, and says how many texts that were. It is told the same twice: the second number
is what it had left, and must be 0."""


@runtime_checkable
class NamedEraser(Protocol):
    """An eraser that has a name in receipts; others go by the name of their function or class."""

    place: str


@runtime_checkable
class Holder(Protocol):
    """An eraser that can say what it holds: then tombstones reach it for sessions, too, that have no log here."""

    def __call__(self, deletions: Sequence[Deletion], /) -> int: ...

    def sessions(self, tenant: str) -> Iterable[str]:
        """Ids of sessions it holds something of."""


class ReachedSessions(NamedTuple):
    """What could be found, and what could not be read on the way."""

    names: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


class RemoteSessions(Protocol):
    """Sessions as the object store has them, drained there by this machine or another."""

    def sessions(self, tenant: str) -> ReachedSessions:
        """Ids of those that are not forgotten."""

    def holds(self, key: SessionKey) -> bool:
        """Whether a session is there, whatever a listing says."""

    def parent(self, key: SessionKey) -> str | None:
        """Of which session it is a fork. Raises where it cannot be read."""

    def subjects(self, key: SessionKey) -> ReachedSessions:
        """Addresses of the subjects under whose keys its records are encrypted."""

    def claim(self, key: SessionKey) -> None:
        """Take it over, and bring the local journal up to date."""

    def rewritten(self, key: SessionKey, positions: Iterable[int]) -> None:
        """Records at these positions were replaced, or have lost their key: drain them again."""


class DerivedRecords(Protocol):
    """Records that a package above the store makes of one tenant's sessions, and that an erasure must reach.

    The entry points of the group ``ctxsteward.erasure`` make them: each is called with the store and the tenant.
    """

    def subjects(self) -> tuple[dict[str, set[str]], list[Finding]]:
        """By session, the addresses of all subjects whose keys open something made from it; what cannot be read is
        passed over with a finding."""

    def withdraw(self, request: ErasureRequest) -> int:
        """Destroy the keys of records that have lost their support; return how many."""

    def withdrawn_keys(self) -> frozenset[str]:
        """Addresses of the keys of all withdrawn records."""

    def watch_files(self) -> Callable[[], list[Finding]]:
        """Look at local files before the erasure deletes them; return a function that reports, after it, the files
        that it could not reach."""


class ErasureRequest(NamedTuple):
    """In whose name, when, and why; written into every tombstone."""

    who: str
    when: str
    """ISO 8601."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedPlace:
    """How much of what was to be forgotten stood at a place, and how much stands there now."""

    place: str
    before: int
    """Before the first erasure of this subject; a repeat says the same."""
    after: int
    """Counted anew at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder:
    """A place out of reach, where words may still be."""

    place: str
    until: str | None
    """ISO 8601; None: until somebody does what `remedy` says."""
    remedy: str
    calls: tuple[str, ...] = ()
    """Leading digits of the addresses of envelopes that may have shown the words; logs name calls by them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainHead:
    """The newest link of a chain when the erasure was done. Its code vouches for the whole chain below it."""

    chain: str
    number: int
    mac: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What was done. Repeating it counts only what was left to do, but for `places`."""

    tenant: str
    who: str
    when: str
    why: str
    session: str | None = None
    """As asked for; None, too, where other machines' tombstones were applied."""
    principal: str | None = None
    sessions: tuple[str, ...] = ()
    """Erased whole, or with messages of the principal; forks included."""
    forks: tuple[str, ...] = ()
    """Those of `sessions` that came in as forks."""
    subjects: int = 0
    """Erased: each has a tombstone and no key."""
    messages: int = 0
    """Deleted, or redacted in place."""
    derived: int = 0
    """Compactions, selections, notes and other records, deleted or redacted."""
    manifests: int = 0
    """Of envelopes: deleted, or rid of their findings."""
    recommendations: int = 0
    """Withdrawn."""
    elsewhere: int = 0
    """Texts that erasers have deleted."""
    findings: tuple[Finding, ...] = ()
    """What could not be reached, or not be told whether it should be."""
    places: tuple[ErasedPlace, ...] = ()
    heads: tuple[ChainHead, ...] = ()
    """Of the tenant's governed chains, and of the sessions' logs in the object store."""
    remains: tuple[Remainder, ...] = ()
    receipt: str = field(default="", repr=False)
    """All of this in signed form (`erasure.receipt`); empty where other machines' tombstones were applied."""

    @property
    def complete(self) -> bool:
        """Whether all of it was reached. Where not, mend what the findings name and repeat the erasure."""
        return not self.findings and not any(place.after for place in self.places)


def erasures(journal: Journal, tenant: str) -> int:
    """How many erasures of this tenant the processes of this journal have made: what a process remembers is valid as
    long as the number stays."""
    return journal.seen(_erasures_name(tenant))


def note_erasure(journal: Journal, tenant: str) -> None:
    """Have all processes of this journal drop what they keep in memory."""
    journal.see(_erasures_name(tenant), erasures(journal, tenant) + 1)


def _erasures_name(tenant: str) -> str:
    return f"erasures/{tenant}"
