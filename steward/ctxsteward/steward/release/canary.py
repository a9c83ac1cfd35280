"""The canary: give a new version to some sessions, then keep it, extend the trial, or roll it back.

`Decisions.canary` runs it at the end of a night: `arms_of` counts, `decide` judges, `settle` acts. Which session
gets which version is decided in `assignment`.

**Deciding** is pure:

    rollback   a signal is significantly worse, or a replayed guard fell
    extend     too few principals so far, or a signal looks worse but could be chance
    keep       otherwise; and after `max_nights` without proof

Signals of both arms are compared one-sided, each at its share of `LEVEL` (Bonferroni), so that `LEVEL` bounds the
chance of a false rollback.

**Counting.** `arms_of` counts each principal once in an arm, however many sessions and turns they had, so that nobody
can decide about a version by talking more. A principal who corrected the assistant in any turn counts as a correction;
one with whom the assistant complied with most fired records counts as obeyed. A session of an unknown user counts as a
principal. A session counts by its newest reading, for its version at that time; a forgotten session does not count.

Raises `StoreError`, and what `ProfileVersions.rollback` raises.
Source: Fisher 1935 (exact test on 2 x 2 tables); the layered-envelope design (signals).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ctxsteward.envelope import Store
from ctxsteward.schemas import InputError
from ctxsteward.store.profiles.versions import Version

from ..harvest.batches import BatchRecords, SessionUse, newest
from ..night.chain import Night
from ..settings import CanaryLimits, NightSettings
from .approvals import Approvals
from .assignment import canary_begun
from .promotion import rollback

Signal = Literal["correction_rate", "obeyed_rate"]
SIGNALS: tuple[Signal, ...] = ("correction_rate", "obeyed_rate")
Kind = Literal["keep", "extend", "rollback"]
LEVEL = 0.05
"""Chance of rolling back a challenger that is no worse."""
TOLERANCE = 0.05
"""A rate that is worse by more than this, without proof, extends the canary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryArm:
    """Numbers of principals of one version; a session of an unknown user counts as a principal."""

    sessions: int = 0
    """All principals."""
    turns: int = 0
    """Principals who said anything."""
    corrections: int = 0
    """Principals who said something and corrected the assistant."""
    fired: int = 0
    """Principals with whom the trigger of a shown record came up."""
    obeyed: int = 0
    """Principals with whom the assistant complied with most fired records."""

    def bad(self) -> tuple[tuple[int, int], ...]:
        """Return, for each of `SIGNALS`, the bad principals and all principals; raises `InputError`."""
        for part, whole in (("corrections", "turns"), ("obeyed", "fired")):
            count, of = getattr(self, part), getattr(self, whole)
            if not 0 <= count <= of:
                raise InputError(f"canary: {count} {part} of {of} {whole}; count each once")
        return ((self.corrections, self.turns), (self.fired - self.obeyed, self.fired))


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryDecision:
    """The decision about a canary, with its reasons."""

    kind: Kind
    reasons: tuple[str, ...]


def decide(
    champion: CanaryArm,
    challenger: CanaryArm,
    *,
    nights: int,
    failed_guards: Sequence[str] = (),
    limits: CanaryLimits | None = None,
) -> CanaryDecision:
    """Decide after this many nights whether to keep, extend or roll back the challenger."""
    limits = limits or CanaryLimits()
    worse, unclear = [f"guard {name} fell" for name in failed_guards], list[str]()
    for signal, (bad, of), (bad_new, of_new) in zip(SIGNALS, champion.bad(), challenger.bad(), strict=True):
        p = chance(bad, of, bad_new, of_new)
        if p < LEVEL / len(SIGNALS):
            worse.append(f"{signal} is worse (p = {p:.3g})")
        elif of and of_new and bad_new / of_new - bad / of > TOLERANCE:
            unclear.append(f"{signal} looks worse (p = {p:.3g})")
    if worse:
        return CanaryDecision(kind="rollback", reasons=tuple(worse))
    if nights >= limits.max_nights:
        short = challenger.sessions < limits.min_sessions
        why = f"nothing was proved against it in {nights} nights" + (", of few principals" if short else "")
        return CanaryDecision(kind="keep", reasons=(why,))
    if challenger.sessions < limits.min_sessions:
        why = f"{challenger.sessions} of {limits.min_sessions} principals"
        return CanaryDecision(kind="extend", reasons=(why,))
    if unclear:
        return CanaryDecision(kind="extend", reasons=tuple(unclear))
    why = f"no signal is worse with {challenger.sessions} principals"
    return CanaryDecision(kind="keep", reasons=(why,))


def settle(
    store: Store,
    profile: str,
    decision: CanaryDecision,
    approvals: Approvals,
    *,
    version: int,
    who: str,
    when: str,
    tenant: str = "default",
    epoch: int | None = None,
) -> Version | None:
    """Carry out a decision about the canary `version`: store how it ended, and roll back if so decided.

    Return the version that came into force, or None if nothing changed. A call repeated after a kill completes the
    first one.
    """
    versions = store.profiles(profile, tenant=tenant)
    canary = canary_begun(versions.at(version))
    if decision.kind == "extend" or canary is None:
        return None
    landed = None
    if decision.kind == "rollback" and versions.newest().number == version:
        why = f"canary {version}: {'; '.join(decision.reasons)}"[:2_000]
        landed = rollback(
            store, profile, int(canary["champion"]), who=who, why=why, when=when, tenant=tenant, epoch=epoch
        )
    approvals.settle_canary(version, decision.kind, decision.reasons, when=when)
    return landed


def chance(bad: int, all_: int, bad_new: int, all_new: int) -> float:
    """Return the one-sided p-value of Fisher's exact test that the new arm has so many bad principals or more.

    >>> round(chance(1, 100, 9, 100), 4), chance(0, 0, 5, 10)
    (0.0092, 1.0)
    """
    if not all_ or not all_new:
        return 1.0
    total, marked = all_ + all_new, bad + bad_new
    first = _log_choose(total, all_new)
    tail = (
        math.exp(_log_choose(marked, each) + _log_choose(total - marked, all_new - each) - first)
        for each in range(bad_new, min(marked, all_new) + 1)
        if all_new - each <= total - marked
    )
    return min(1.0, math.fsum(tail))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def arms_of(
    store: Store, settings: NightSettings, nights: Iterable[Night], versions: tuple[int, int]
) -> tuple[CanaryArm, CanaryArm]:
    """Count the principals in the sessions that these nights read, for champion and challenger (`versions`)."""
    batches = BatchRecords(store, settings.tenant, settings.profile, extractor="")
    addresses = sorted({address for night in nights for address in night.batches})
    results = [batches.read(address) for address in addresses]
    forgotten = frozenset(store.vault(settings.tenant).erased())
    uses = newest(use for result in results for use in result.uses if forgotten.isdisjoint(use.rests))
    champion, challenger = (arm_of(uses, number) for number in versions)
    return champion, challenger


def arm_of(uses: Sequence[SessionUse], version: int) -> CanaryArm:
    """Count the principals of one version; `uses` has one reading of each session."""
    principals: dict[str, Counter[str]] = {}
    for use in uses:
        if use.version == version:
            principals.setdefault(use.voice or use.reading, Counter()).update(use.arm)
    counts = list(principals.values())
    return CanaryArm(
        sessions=len(counts),
        turns=sum(bool(count["turns"]) for count in counts),
        corrections=sum(bool(count["corrections"]) for count in counts),
        fired=sum(bool(count["fired"]) for count in counts),
        obeyed=sum(bool(count["fired"]) and 2 * count["obeyed"] > count["fired"] for count in counts),
    )
