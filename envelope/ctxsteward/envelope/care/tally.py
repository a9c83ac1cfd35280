"""What a check has counted and found so far, what of it could be mended, and who is told how far it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from ctxsteward.schemas import Finding

from ..stores.port import SessionKey
from .damage import damage
from .share import Share


class BrokenRecord(NamedTuple):
    """A journal record that is not there, or not what was written."""

    key: SessionKey
    position: int


class BrokenManifest(NamedTuple):
    """A manifest that is not what was written."""

    key: SessionKey
    address: str


class BrokenLog(NamedTuple):
    """The journal's own row of a log is not what was written."""

    key: SessionKey


class DeadKey(NamedTuple):
    """A data key beside the tombstone of its subject."""

    tenant: str
    subject: str
    """Address of the subject."""


Broken = BrokenRecord | BrokenManifest | BrokenLog | DeadKey


class Tally:
    """Filled by the checks of one run."""

    def __init__(self, *, share: Share | None = None, tell: Callable[[str], object] = lambda text: None) -> None:
        self.share = share or Share()
        self.tell = tell
        self.counts: Counter[str] = Counter()
        """What was looked at, by kind."""
        self.findings: list[Finding] = []
        self.broken: list[tuple[Finding, Broken]] = []
        """Findings that `repair` may know a remedy for."""

    def count(self, kind: str, number: int = 1) -> None:
        self.counts[kind] += number

    def found(self, kind: str, where: str, what: str, broken: Broken | None = None) -> None:
        """Note a finding; `where` is a key, or a place in the journal."""
        finding = damage(kind, where, f"{where}: {what}")
        self.findings.append(finding)
        if broken is not None:
            self.broken.append((finding, broken))

    def mark(self) -> Tally:
        """How it stands now, to go back to."""
        other = Tally(share=self.share, tell=self.tell)
        other.take(self)
        return other

    def take(self, other: Tally) -> None:
        """Stand where the other one stands."""
        self.counts, self.findings, self.broken = other.counts.copy(), [*other.findings], [*other.broken]
