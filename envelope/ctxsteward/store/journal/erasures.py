"""Values and ports of an erasure: its request, the callables that it calls, its report. `store/erasure` does the work.

An *eraser* deletes text derived from people's words in one component: cards, indexes, recordings, exports.
*Elsewhere* means the object store's copy of the sessions (`RemoteSessions`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from ctxsteward.schemas import Finding

from .port import Journal, SessionKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """The messages of one session that an erasure forgets, for erasers of derived text."""

    tenant: str
    session: str
    principal: str | None
    """The forgotten principal, or None for the whole session."""
    ordinals: frozenset[int] | None
    """Ordinals of the forgotten messages, or None for all."""


Eraser = Callable[[Sequence[Deletion]], int]
"""Delete the texts derived from these messages, and return their number. An erasure calls it twice: the second number
counts texts that the first call left, and must be 0."""


@runtime_checkable
class NamedEraser(Protocol):
    """An eraser with a name for receipts. A receipt names another eraser by its function or class."""

    place: str


@runtime_checkable
class Holder(Protocol):
    """An eraser that lists its sessions, so that an erasure also reaches it for sessions without a log here."""

    def __call__(self, deletions: Sequence[Deletion], /) -> int: ...

    def sessions(self, tenant: str) -> Iterable[str]:
        """Return the ids of the sessions whose texts this eraser has."""


class ReachedSessions(NamedTuple):
    """Names that were found, and findings about objects that could not be read."""

    names: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


class RemoteSessions(Protocol):
    """The sessions in the object store, drained there by this machine or another."""

    def sessions(self, tenant: str) -> ReachedSessions:
        """Return the ids of sessions that are not forgotten."""

    def holds(self, key: SessionKey) -> bool:
        """Return whether a session is there, without trusting a listing."""

    def parent(self, key: SessionKey) -> str | None:
        """Return the session that this one was forked from, or None. Raises if it cannot be read."""

    def subjects(self, key: SessionKey) -> ReachedSessions:
        """Return the addresses of the subjects whose keys encrypt the session's records."""

    def claim(self, key: SessionKey) -> None:
        """Take the session over, and bring the local journal up to date."""

    def rewritten(self, key: SessionKey, positions: Iterable[int]) -> None:
        """Drain the records at these positions again, because they were replaced or have lost their key."""

    def mend(self, key: SessionKey) -> None:
        """Drain records of this journal's again whose key was destroyed before another machine could read them."""


class DerivedRecords(Protocol):
    """Records that a package above the store makes of one tenant's sessions, and that an erasure must reach.

    The entry points of the group ``ctxsteward.erasure`` make them: each is called with the store and the tenant.
    """

    def subjects(self) -> tuple[dict[str, set[str]], list[Finding]]:
        """Return, by session, the addresses of all subjects whose keys open records made from it; and findings about
        records that could not be read."""

    def withdraw(self, request: ErasureRequest) -> int:
        """Destroy the keys of records that have lost their support; return how many."""

    def withdrawn_keys(self) -> frozenset[str]:
        """Return the addresses of the keys of all withdrawn records."""

    def watch_files(self) -> Callable[[], list[Finding]]:
        """Note the local files before the erasure deletes them; return a function that reports afterwards the files
        that the erasure could not reach."""


class ErasureRequest(NamedTuple):
    """Author, time and reason of an erasure; written into every tombstone."""

    who: str
    when: str
    """Time in ISO 8601."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedPlace:
    """Number of things to erase at one place, before and after the erasure."""

    place: str
    before: int
    """Number before the first erasure of this subject; a repeated erasure reports the same number."""
    after: int
    """Number counted again at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder:
    """A place that the erasure cannot reach and that may still contain the words."""

    place: str
    until: str | None
    """Time (ISO 8601) until which it may contain them, or None if it does until a person follows `remedy`."""
    remedy: str
    calls: tuple[str, ...] = ()
    """First digits of the addresses of envelopes that may have shown the words; logs name calls by these digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainHead:
    """The newest link of a chain at the end of the erasure. Its code proves the whole chain."""

    chain: str
    number: int
    mac: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """The report of an erasure. A repeated erasure counts only what the earlier ones had left, except in `places`."""

    tenant: str
    who: str
    when: str
    why: str
    session: str | None = None
    """The requested session; also None if tombstones of other machines were applied."""
    principal: str | None = None
    sessions: tuple[str, ...] = ()
    """Sessions erased whole, or in their messages of the principal; includes forks."""
    forks: tuple[str, ...] = ()
    """Sessions that were included because they are forks."""
    subjects: int = 0
    """Number of erased subjects: each has a tombstone and no key."""
    messages: int = 0
    """Number of messages deleted, or redacted in place."""
    derived: int = 0
    """Number of compactions, selections, notes and other records deleted or redacted."""
    manifests: int = 0
    """Number of envelope manifests deleted, or cleared of their findings."""
    recommendations: int = 0
    """Number of withdrawn records of the steward."""
    elsewhere: int = 0
    """Number of texts that erasers have deleted."""
    findings: tuple[Finding, ...] = ()
    """Findings about data that could not be reached, or that may or may not belong to the erased subject."""
    places: tuple[ErasedPlace, ...] = ()
    heads: tuple[ChainHead, ...] = ()
    """Heads of the tenant's governed chains, and of the sessions' logs in the object store."""
    remains: tuple[Remainder, ...] = ()
    receipt: str = field(default="", repr=False)
    """The report in signed form (`erasure.receipt`); empty if tombstones of other machines were applied."""

    @property
    def complete(self) -> bool:
        """Whether the erasure reached everything. If not, repair what the findings name and repeat it."""
        return not self.findings and not any(place.after for place in self.places)


def erasures(journal: Journal, tenant: str) -> int:
    """Return the number of this tenant's erasures by all processes of this journal. When it changes, a process must
    drop its caches."""
    return journal.seen(_erasures_name(tenant))


def note_erasure(journal: Journal, tenant: str) -> None:
    """Count an erasure, so that all processes of this journal drop their caches."""
    journal.see(_erasures_name(tenant), erasures(journal, tenant) + 1)


def hearing(journal: Journal, tenant: str) -> bool:
    """Return whether `apply_tombstones` has begun in this journal and has not finished."""
    return journal.seen(_hearing_name(tenant)) % 2 == 1


def note_hearing(journal: Journal, tenant: str, *, is_over: bool) -> None:
    """Record that `apply_tombstones` begins or is over. The recorded number only grows, and is odd in between."""
    if hearing(journal, tenant) is is_over:
        journal.see(_hearing_name(tenant), journal.seen(_hearing_name(tenant)) + 1)


def _hearing_name(tenant: str) -> str:
    return f"hearing/{tenant}"


def _erasures_name(tenant: str) -> str:
    return f"erasures/{tenant}"
