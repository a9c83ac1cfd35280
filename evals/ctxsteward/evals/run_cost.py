"""Compare the cost of a cascade's run with sending everything.

`efficiency_of` reads a run from its store, rebuilds the envelope of every model call, and prices it with the judge of
the cost eval (`prompt_cost`). *Everything* is the same head with all messages of the run so far: of earlier phases (of
soundings the chosen attempt), and of this phase all tries with the reasons for their refusal, nothing cut, masked or
selected. Calls are read in the order of phases, attempts and numbers. The cached prefix of a call is its common
beginning with the call before, also across phases if the tools are the same. Calls of evaluators count alike on both
sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ctxsteward.envelope import Counter, Session, Store, rebuild
from ctxsteward.envelope.cascade.intra_phase import FAILED_LABEL
from ctxsteward.envelope.cascade.runner import sub_cascade_of
from ctxsteward.envelope.cascade.turns import RunLedger
from ctxsteward.schemas import InputError
from ctxsteward.schemas.cascade import Cascade
from ctxsteward.schemas.message import Wire

from .prompt_cost import Bill, PricedPrompt, Prices, PromptJudge, PromptPiece, Sizer
from .replay import reachable_ordinals

ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEfficiency:
    """Cost of the calls of one phase, or of all phases."""

    phase: str
    calls: int
    compactions: int
    sent_tokens: int
    everything_tokens: int
    sent_priced: float
    """Cost of what was sent, in tokens at full price."""
    everything_priced: float
    cached_tokens: int
    """Cached part of `sent_tokens`."""

    @property
    def saved(self) -> float:
        """Return the share of everything's tokens that was not sent."""
        return round(1 - self.sent_tokens / self.everything_tokens, 4) if self.everything_tokens else 0.0

    @property
    def priced_ratio(self) -> float:
        """Return the cache-priced ratio to sending everything."""
        return round(self.sent_priced / self.everything_priced, 4) if self.everything_priced else 1.0

    def document(self, dollars_per_million: float | None = None) -> dict[str, Any]:
        """Return the figures with stable keys; with a price also in dollars."""
        figures = {
            "phase": self.phase,
            "calls": self.calls,
            "compactions": self.compactions,
            "sent_tokens": self.sent_tokens,
            "everything_tokens": self.everything_tokens,
            "saved": self.saved,
            "sent_priced": round(self.sent_priced, 1),
            "everything_priced": round(self.everything_priced, 1),
            "priced_ratio": self.priced_ratio,
            "cached_tokens": self.cached_tokens,
        }
        if dollars_per_million is not None:
            rate = dollars_per_million / 1e6
            dollars = {name: getattr(self, name) * rate for name in _PAID}
            figures["dollars"] = {name: round(value, 6) for name, value in dollars.items()}
        return figures


_PAID = ("sent_tokens", "everything_tokens", "sent_priced", "everything_priced")


class JudgedCall(NamedTuple):
    """A call of a run, as sent and with everything."""

    phase: str
    session: str
    sent: tuple[PromptPiece, ...]
    everything: tuple[PromptPiece, ...]
    tools_tokens: int
    rewritten: bool
    reachable: frozenset[int]
    """Ordinals of the call's session that its envelope shows or names."""


def efficiency_of(
    store: Store, cascade: Cascade, run: str, *, counter: Counter, prices: Prices | None = None, tenant: str = "default"
) -> tuple[PhaseEfficiency, ...]:
    """Return a row per phase with calls, sub-cascades as ``PHASE/…``, and a total if there are several."""
    rows: list[PhaseEfficiency] = []
    _read(store, cascade, run, tenant, Sizer(counter), prices or Prices(), "", rows)
    if len(rows) > 1:
        names = (
            "calls",
            "compactions",
            "sent_tokens",
            "everything_tokens",
            "sent_priced",
            "everything_priced",
            "cached_tokens",
        )
        rows.append(PhaseEfficiency(phase=ALL, **{name: sum(getattr(row, name) for row in rows) for name in names}))
    return tuple(rows)


def _read(
    store: Store,
    cascade: Cascade,
    run: str,
    tenant: str,
    sizer: Sizer,
    prices: Prices,
    above: str,
    rows: list[PhaseEfficiency],
) -> None:
    ledger = RunLedger(store, run, tenant)
    subs = ledger.all("sub-")
    bills = _bills(judged_calls(store, cascade, run, sizer=sizer, tenant=tenant), sizer, prices)
    for index, phase in enumerate(cascade.phases):
        for name, sub in subs.items():
            if name.startswith(f"sub-{index:03}-"):
                below = f"{above}{phase.name}/"
                inner = sub_cascade_of(cascade, sub["cascade"])
                _read(store, inner, sub["run"], tenant, sizer, prices, below, rows)
        if phase.name in bills:
            sent, everything = bills[phase.name]
            rows.append(
                PhaseEfficiency(
                    phase=above + phase.name,
                    calls=sent.calls,
                    compactions=sent.rewrites,
                    sent_tokens=sent.tokens,
                    everything_tokens=everything.tokens,
                    sent_priced=sent.priced,
                    everything_priced=everything.priced,
                    cached_tokens=sent.cached_tokens,
                )
            )


def _bills(calls: Iterator[JudgedCall], sizer: Sizer, prices: Prices) -> dict[str, tuple[Bill, Bill]]:
    """Return the bills of the prompts sent and of everything, by phase."""
    bills: dict[str, tuple[Bill, Bill]] = {}
    before: tuple[tuple[PromptPiece, ...], tuple[PromptPiece, ...]] = ((), ())
    tools_tokens: int | None = None
    for call in calls:
        if call.tools_tokens != tools_tokens:  # other tool schemas come first, so nothing is cached
            before, tools_tokens = ((), ()), call.tools_tokens
        pair = bills.setdefault(call.phase, (Bill(), Bill()))
        for bill, pieces, was in zip(pair, (call.sent, call.everything), before, strict=True):
            judge = PromptJudge(
                sizer=sizer,
                prices=prices,
                budget_tokens=1 << 60,
                task="",
                tools_tokens=call.tools_tokens,
                bill=bill,
                _before=was,
            )
            judge.read(PricedPrompt(pieces, call.rewritten))
        before = (call.sent, call.everything)
    return bills


def judged_calls(
    store: Store, cascade: Cascade, run: str, *, sizer: Sizer, tenant: str = "default"
) -> Iterator[JudgedCall]:
    """Rebuild the run's calls in order; raise `InputError` for a run without calls."""
    ledger = RunLedger(store, run, tenant)
    history = _RunHistory(store, cascade, run, tenant, ledger)
    calls = list(ledger.all("call-").values())
    if not calls and not ledger.all("sub-"):
        raise InputError(f"run {run!r} has made no call of a model: there is nothing to price")
    for call in calls:
        envelope = rebuild(store, call["envelope"], tenant=tenant)
        sent = sizer.pieces(envelope.render("openai-chat", cache=False)["messages"])
        head = next((at for at, piece in enumerate(sent) if piece.wire.get("role") != "system"), len(sent))
        wires = history.upto(call, int(envelope.metrics["messages"]))
        everything = sent if wires is None else (*sent[:head], *sizer.pieces(wires))
        yield JudgedCall(
            phase=call["phase"],
            session=call["session"],
            sent=sent,
            everything=everything,
            tools_tokens=int(envelope.metrics["tools_tokens"]),
            rewritten=bool(call["compactions"]),
            reachable=reachable_ordinals(envelope),
        )


class _RunHistory:
    """All messages of a run, by phase, attempt and try."""

    def __init__(self, store: Store, cascade: Cascade, run: str, tenant: str, ledger: RunLedger) -> None:
        self._store, self._tenant, self._cascade = store, tenant, cascade
        self._sessions: dict[str, Session] = {}
        self._own: dict[tuple[str, str], list[tuple[int, Wire]]] = {}
        self._by_chain: dict[tuple[str, int], list[str]] = {}
        """Sessions by phase and attempt, tries in order."""
        for call in ledger.all("call-").values():
            sessions = self._by_chain.setdefault((call["phase"], call["attempt"] or 0), [])
            if call["session"] not in sessions and not call["session"].endswith("..evaluator"):
                sessions.append(call["session"])
        index = {phase.name: at for at, phase in enumerate(cascade.phases)}
        self._reasons = {
            chain: [
                refusal["reason"] for refusal in ledger.all(f"refused-{index[chain[0]]:03}-{chain[1]:03}-").values()
            ]
            for chain in self._by_chain
        }
        self._chosen = {phase.name: ledger.get(f"chosen-{phase.name}") or 0 for phase in cascade.phases}

    def upto(self, call: Mapping[str, Any], messages: int) -> list[Wire] | None:
        """Return everything up to a call, or None for an evaluator's call, which has no history of its own."""
        if call["session"].endswith("..evaluator"):
            return None
        wires: list[Wire] = []
        for phase in self._cascade.phases:
            if phase.name == call["phase"]:
                return wires + self._of_chain((phase.name, call["attempt"] or 0), call["session"], messages)
            wires += self._of_chain((phase.name, self._chosen[phase.name]), None, 0)
        return wires

    def _of_chain(self, chain: tuple[str, int], last: str | None, messages: int) -> list[Wire]:
        wires: list[Wire] = []
        for at, session in enumerate(self._by_chain.get(chain, ())):
            if at:
                reason = self._reasons[chain][at - 1]
                again = f"{FAILED_LABEL}\n{reason}\n\nAttempt #{at + 1}: mend what the validation found."
                wires.append({"role": "user", "content": again})
            own = self._own_of(session, chain[0])
            wires += [wire for ordinal, wire in own if session != last or ordinal <= messages]
            if session == last:
                break
        return wires

    def _own_of(self, id: str, phase: str) -> list[tuple[int, Wire]]:
        key = (id, phase)
        if key not in self._own:
            session = self._store.at(self._tenant, id)
            self._own[key] = [
                (entry.ordinal, entry.message.wire)
                for entry in session.entries()
                if entry.event.phase == phase
                and entry.event.origin is None
                and not (entry.event.id or "").startswith("accepted ")
            ]
        return self._own[key]
