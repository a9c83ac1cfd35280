"""The canary: a new version for a part of the sessions, until what they show says keep it, wait, or go back.

Which session gets which version: `assignment`. Signals of both arms are compared one-sided: is the challenger *worse*?
The level is shared out over the signals (Bonferroni), so that `level` bounds the chance of a false rollback by any of
them. A replayed guard that fell is a reason by itself.

    rollback   a signal is worse at the level, or a guard fell
    extend     too few sessions yet, or a signal looks worse and could still be chance
    keep       else; and after `max_nights`, when nothing was proved

Deciding is pure; `settle` is the action. Raises what `ProfileVersions.rollback` raises.
Source: Fisher 1935 (exact test on 2 x 2 tables); safe on small counts, where normal approximations are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ctxsteward.envelope.store import Store
from ctxsteward.envelope.versions import Version
from ctxsteward.schemas import InputError

from .approvals import Approvals
from .assignment import told_of
from .promotion import rollback
from .settings import CanaryLimits

Signal = Literal["audit_findings", "correction_rate", "obeyed_rate"]
Kind = Literal["keep", "extend", "rollback"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """What the sessions of one version showed."""

    sessions: int = 0
    audited: int = 0
    """Envelopes that an auditor has seen."""
    audit_findings: int = 0
    """Of those: with a finding."""
    turns: int = 0
    """User turns."""
    corrections: int = 0
    """Of those: the user corrected the assistant."""
    fired: int = 0
    """Times a shown record's trigger came up."""
    obeyed: int = 0
    """Of those: complied with."""


class Compared(NamedTuple):
    """One signal in both arms."""

    signal: Signal
    champion: float | None
    """Rate; None: nothing to judge by."""
    challenger: float | None
    p: float
    """Chance of a difference so bad, or worse, between two equal arms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """How the canary goes on."""

    kind: Kind
    reasons: tuple[str, ...]
    tests: tuple[Compared, ...]


def decide(
    champion: Arm,
    challenger: Arm,
    *,
    nights: int,
    failed_guards: Sequence[str] = (),
    limits: CanaryLimits | None = None,
) -> Decision:
    """Keep, extend or roll back, after this many nights."""
    limits = limits or CanaryLimits()
    tests = _tests(champion, challenger)
    level = limits.level / len(tests)
    worse = [f"{test.signal} is worse (p = {test.p:.3g})" for test in tests if test.p < level]
    fell = [f"guard {name} fell" for name in failed_guards]
    if worse or fell:
        return Decision(kind="rollback", reasons=(*fell, *worse), tests=tests)
    if nights >= limits.max_nights:
        short = challenger.sessions < limits.min_sessions
        why = f"nothing was proved against it in {nights} nights" + (", of few sessions" if short else "")
        return Decision(kind="keep", reasons=(why,), tests=tests)
    if challenger.sessions < limits.min_sessions:
        why = f"{challenger.sessions} of {limits.min_sessions} sessions"
        return Decision(kind="extend", reasons=(why,), tests=tests)
    unclear = [f"{test.signal} looks worse (p = {test.p:.3g})" for test in tests if _gap(test) > limits.tolerance]
    if unclear:
        return Decision(kind="extend", reasons=tuple(unclear), tests=tests)
    return Decision(kind="keep", reasons=(f"no signal is worse in {challenger.sessions} sessions",), tests=tests)


def settle(
    store: Store, profile: str, decision: Decision, approvals: Approvals, *, version: int, who: str, when: str,
    tenant: str = "default", epoch: int | None = None,
) -> Version | None:  # fmt: skip
    """Act on a decision about the canary that `version` is: note how it ended, and roll back where it says so.

    Gives the version that came into force; None where nothing changed. Repeated after a kill it does what was left.
    """
    versions = store.profiles(profile, tenant=tenant)
    canary = told_of(versions.at(version))
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


def _tests(champion: Arm, challenger: Arm) -> tuple[Compared, ...]:
    audited = (*_bad(champion, "audit_findings", "audited"), *_bad(challenger, "audit_findings", "audited"))
    corrected = (*_bad(champion, "corrections", "turns"), *_bad(challenger, "corrections", "turns"))
    missed = (*_missed(champion), *_missed(challenger))
    return (
        _compared("audit_findings", *audited),
        _compared("correction_rate", *corrected),
        _compared("obeyed_rate", *missed),
    )


def _bad(arm: Arm, name: str, of: str) -> tuple[int, int]:
    bad, all_ = getattr(arm, name), getattr(arm, of)
    if not 0 <= bad <= all_:
        raise InputError(f"canary: {bad} {name} of {all_} {of}; count each once")
    return bad, all_


def _missed(arm: Arm) -> tuple[int, int]:
    obeyed, fired = _bad(arm, "obeyed", "fired")
    return fired - obeyed, fired


def _compared(signal: Signal, bad: int, all_: int, bad_new: int, all_new: int) -> Compared:
    rates = [None if not of else part / of for part, of in ((bad, all_), (bad_new, all_new))]
    if signal == "obeyed_rate":
        rates = [None if rate is None else 1 - rate for rate in rates]
    return Compared(signal, rates[0], rates[1], chance(bad, all_, bad_new, all_new))


def _gap(test: Compared) -> float:
    """By how much the challenger's rate is worse."""
    if test.champion is None or test.challenger is None:
        return 0.0
    gap = test.challenger - test.champion
    return -gap if test.signal == "obeyed_rate" else gap


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
