"""The canary: a new version for some of the sessions, until what they show says keep it, wait, or go back.

`Decisions.canary` runs it at the end of a night: `arms_of` counts, `decide` judges, `settle` acts. Which session
gets which version is decided in `assignment`.

**Deciding** is pure:

    rollback   a signal is worse at the level, or a replayed guard fell
    extend     too few principals yet, or a signal looks worse and could still be chance
    keep       else; and after `max_nights`, when nothing was proved

Signals of both arms are compared one-sided; the level is shared out over them (Bonferroni), so that `LEVEL` bounds the
chance of a false rollback.

**Counting.** `arms_of` counts principals, each once in an arm, however many sessions and turns they had: nobody can
roll a version back, or keep it, by talking more. Who corrected the assistant in any turn corrected it; who saw it
follow most of the records that came up saw it obey. A session of nobody known counts as a principal. A session counts
by its newest reading, under the version it was under then; a forgotten one does not count.

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
"""A rate that is worse by more than this, and not by proof, is looked at longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryArm:
    """What the sessions of one version showed."""

    sessions: int = 0
    """Principals; a session of nobody known counts as one. So are all that follow."""
    turns: int = 0
    """Principals who said anything."""
    corrections: int = 0
    """Of those: who corrected the assistant."""
    fired: int = 0
    """Principals with whom a shown record's trigger came up."""
    obeyed: int = 0
    """Of those: with whom the assistant complied most times."""

    def bad(self) -> tuple[tuple[int, int], ...]:
        """For each of `SIGNALS`: how many speak against the version, and of how many. Raises `InputError`."""
        for part, whole in (("corrections", "turns"), ("obeyed", "fired")):
            count, of = getattr(self, part), getattr(self, whole)
            if not 0 <= count <= of:
                raise InputError(f"canary: {count} {part} of {of} {whole}; count each once")
        return ((self.corrections, self.turns), (self.fired - self.obeyed, self.fired))


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryDecision:
    """How the canary goes on."""

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
    """Keep, extend or roll back, after this many nights."""
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
    """Act on a decision about the canary that `version` is: note how it ended, and roll back where it says so.

    Gives the version that came into force; None where nothing changed. Repeated after a kill it does what was left.
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
    """Fisher's exact test, one-sided: how likely so many bad ones, or more, fall to the new arm by chance.

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
    """What the sessions that these nights have read showed of `versions`: of the champion, then of the challenger."""
    batches = BatchRecords(store, settings.tenant, settings.profile, extractor="")
    read = [batches.read(address).uses for address in sorted({one for night in nights for one in night.batches})]
    forgotten = frozenset(store.vault(settings.tenant).erased())
    uses = newest(use for one in read for use in one if forgotten.isdisjoint(use.rests))
    champion, challenger = (arm_of(uses, number) for number in versions)
    return champion, challenger


def arm_of(uses: Sequence[SessionUse], version: int) -> CanaryArm:
    """What sessions, each by one reading, showed of a version; each principal counts once."""
    shown: dict[str, Counter[str]] = {}
    for use in uses:
        if use.version == version:
            shown.setdefault(use.voice or use.reading, Counter()).update(use.arm)
    people = list(shown.values())
    return CanaryArm(
        sessions=len(people),
        turns=sum(bool(one["turns"]) for one in people),
        corrections=sum(bool(one["corrections"]) for one in people),
        fired=sum(bool(one["fired"]) for one in people),
        obeyed=sum(bool(one["fired"]) and 2 * one["obeyed"] > one["fired"] for one in people),
    )
