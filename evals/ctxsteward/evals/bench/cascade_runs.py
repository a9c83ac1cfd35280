"""What a cascade's run cost, beside sending everything; and the auto-context design's three scenarios, played.

`efficiency_of` reads a run from its store: the envelope of every model call is rebuilt, and the judge of the cost eval
(`prompt_cost`) prices what was sent. *Everything* is the same head and all that the run has said by then: of the phases
before (of soundings the attempt that counts), and of this phase all tries with why they were refused. Nothing of it is
cut, masked or chosen. Calls are read in the order of phases, attempts and numbers; the prefix of each is what it shares
with the call before, across phases too where the tools are the same. Calls of evaluators count on both sides alike.

`SCENARIOS` are the three rows of the design's table at its volumes: a research phase of 15 turns, a phase that is tried
10 times, soundings of 5. Texts are drawn from a seed; the model is scripted. The task states constraints and the model
makes decisions (*canaries*); a late result of each is looked for in every later window. `evidence` says whether each
tool result that left a window is led to by a reference in it. They are printed by ``ctxsteward evals bench runs``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from ctxsteward.envelope import (
    Budgets,
    Counter,
    EnvelopeBuilder,
    Policy,
    Session,
    Store,
    memory_store,
    model_info,
    rebuild,
)
from ctxsteward.envelope.cascade import (
    CascadeRunner,
    RunLedger,
    cascade_of,
    recorded_calls,
    script_of,
    sub_cascade_of,
)
from ctxsteward.schemas import Cascade, InputError, Wire

from ..prompt_cost import Bill, PricedPrompt, Prices, PromptJudge, PromptPiece, Sizer
from ..replay import reachable_ordinals
from .benchmark_row import BenchmarkRow, row

ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEfficiency:
    """What the calls of one phase took, or of all."""

    phase: str
    calls: int
    compactions: int
    sent_tokens: int
    everything_tokens: int
    sent_priced: float
    """In tokens at full price."""
    everything_priced: float
    cached_tokens: int
    """Of those sent."""

    @property
    def saved(self) -> float:
        """Part of everything's tokens that was not sent."""
        return round(1 - self.sent_tokens / self.everything_tokens, 4) if self.everything_tokens else 0.0

    @property
    def priced_ratio(self) -> float:
        """Cache-priced, to sending everything."""
        return round(self.sent_priced / self.everything_priced, 4) if self.everything_priced else 1.0

    def document(self, dollars_per_million: float | None = None) -> dict[str, Any]:
        """Stable keys; with a price, in dollars, too."""
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
    """One call of a run, as it was sent and as sending everything would have been."""

    phase: str
    session: str
    sent: tuple[PromptPiece, ...]
    everything: tuple[PromptPiece, ...]
    tools_tokens: int
    rewritten: bool
    reachable: frozenset[int]
    """Ordinals of the call's session that its envelope shows or leads to."""


def prices_of(model: str, cached: float, write: float) -> Prices:
    """A model's prices: of a cached token and of one that is written, relative to a plain one."""
    return Prices(cached=cached, write=write, block_tokens=model_info(model).cache_block_tokens)


def efficiency_of(
    store: Store, cascade: Cascade, run: str, *, counter: Counter, prices: Prices | None = None, tenant: str = "default"
) -> tuple[PhaseEfficiency, ...]:
    """A row for each phase with a call, sub-cascades' as ``PHASE/…``, and one for all where there are several."""
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
        rows.append(PhaseEfficiency(phase=ALL, **{name: sum(getattr(one, name) for one in rows) for name in names}))
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
    """Bills of what was sent and of everything, by phase."""
    bills: dict[str, tuple[Bill, Bill]] = {}
    before: tuple[tuple[PromptPiece, ...], tuple[PromptPiece, ...]] = ((), ())
    tools_tokens: int | None = None
    for call in calls:
        if call.tools_tokens != tools_tokens:  # other schemas: nothing behind them is cached
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
    """The run's calls in order, rebuilt. Raises `InputError` where there are none."""
    ledger = RunLedger(store, run, tenant)
    said = _RunHistory(store, cascade, run, tenant, ledger)
    calls = list(recorded_calls(ledger))
    if not calls and not ledger.all("sub-"):
        raise InputError(f"run {run!r} has made no call of a model: there is nothing to price")
    for call in calls:
        envelope = rebuild(store, call["envelope"], tenant=tenant)
        sent = sizer.pieces(envelope.render("openai-chat", cache=False)["messages"])
        head = next((at for at, piece in enumerate(sent) if piece.wire.get("role") != "system"), len(sent))
        wires = said.upto(call, int(envelope.metrics["messages"]))
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
    """All that a run has said, by phase, attempt and try."""

    def __init__(self, store: Store, cascade: Cascade, run: str, tenant: str, ledger: RunLedger) -> None:
        self._store, self._tenant, self._cascade = store, tenant, cascade
        self._sessions: dict[str, Session] = {}
        self._own: dict[tuple[str, str], list[tuple[int, Wire]]] = {}
        self._by_chain: dict[tuple[str, int], list[str]] = {}
        """Sessions of a phase's attempt, tries in order."""
        for call in recorded_calls(ledger):
            sessions = self._by_chain.setdefault((call["phase"], call["attempt"] or 0), [])
            if call["session"] not in sessions and not call["session"].endswith("..evaluator"):
                sessions.append(call["session"])
        index = {phase.name: at for at, phase in enumerate(cascade.phases)}
        self._reasons = {
            chain: [one["reason"] for one in ledger.all(f"refused-{index[chain[0]]:03}-{chain[1]:03}-").values()]
            for chain in self._by_chain
        }
        self._chosen = {phase.name: ledger.get(f"chosen-{phase.name}") or 0 for phase in cascade.phases}

    def upto(self, call: Mapping[str, Any], messages: int) -> list[Wire] | None:
        """What a call would be sent; None: it is an evaluator's, which is shown what it was."""
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
                again = f"[Validation Failed]\n{reason}\n\nAttempt #{at + 1}: mend what the validation found."
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


# -- scenarios ------------------------------------------------------------------------------------------------------

CONSTRAINTS = (
    "never write to the table ledger_2019",
    "keep every answer under 300 words",
    "the deploy window closes at 17:40 on Friday",
)
DECISIONS = ("decided to use port 8443 for the relay", "decided to keep retries at 4")
_WORDS = (
    "sensor",
    "kiln",
    "relay",
    "batch",
    "ledger",
    "index",
    "shard",
    "queue",
    "trace",
    "probe",
    "valve",
    "meter",
    "buffer",
    "frame",
    "route",
    "token",
    "cache",
    "worker",
    "column",
    "export",
    "import",
    "schedule",
    "window",
    "policy",
    "record",
    "segment",
    "digest",
    "replica",
    "cursor",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScenario:
    """A row of the design's table."""

    name: str
    about: str
    everything_tokens: int
    """The design's volume: what sending everything takes, about."""
    saved: float
    """Of it, at least."""
    cascade: Mapping[str, Any]
    replies: Callable[[], list[dict[str, Any]]]
    dynamic_tokens: int
    constraints: Sequence[str] = CONSTRAINTS
    decisions: Sequence[str] = DECISIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioFigures:
    """What playing a scenario came to."""

    name: str
    efficiency: PhaseEfficiency
    constraints_kept: float
    """Of constraints, over all calls: those that stand in the window."""
    decisions_kept: float
    """Of decisions made before, over all calls, the same."""
    evidence_reachable: float
    """Of tool results before each call of its session: shown, or led to by a reference."""


def _prose(random: Random, tokens: int) -> str:
    """About so many tokens of rows."""
    lines = []
    while tokens > 0:
        words = " ".join(random.choice(_WORDS) for _ in range(9))
        lines.append(f"{random.randrange(10_000):04} {words} {random.randrange(1_000)}.")
        tokens -= 15
    return "\n".join(lines)


def _turns(
    phase: str, turns: int, result_tokens: int, seed: str, attempt: int | None = None, **last: Any
) -> list[dict[str, Any]]:
    """Turns with a tool result each, and the reply that ends them; decisions fall on the second and third."""
    random, rows = Random(seed), []
    for turn in range(turns - 1):
        decided = f" I have {DECISIONS[turn - 1]}." if 0 < turn <= len(DECISIONS) else ""
        notes = "\n".join(f"- {one}" for one in DECISIONS[:turn])
        pad = f"\nSCRATCHPAD:## Key Decisions\n{notes}\n## Blockers\n- None" if decided else ""
        call = {
            "tool": "search",
            "arguments": {"q": random.choice(_WORDS), "page": turn},
            "result": _prose(random, result_tokens),
        }
        rows.append({"phase": phase, "text": f"Step {turn + 1}: I look further.{decided}{pad}", "calls": [call]})
    rows.append({"phase": phase, "text": f"Found: {_prose(random, 60)}", **last})
    return rows if attempt is None else [{**one, "attempt": attempt} for one in rows]


def _task(what: str) -> str:
    return f"{what}\nConstraints:\n" + "\n".join(f"- {one}" for one in CONSTRAINTS)


def _phase(name: str, task: str, **more: Any) -> dict[str, Any]:
    intra = {"window": 5, "mask_observations_after": 3, "loop_history_limit": 2}
    return {"name": name, "instructions": _task(task), "tackle": ["search"], "intra_context": intra, **more}


def _tries(tries: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number in range(1, tries + 1):
        why = f"{tries - number} tests fail: case {number} of the relay" if number < tries else None
        rows += _turns("mend", 3, 590, f"try {number}", None, refused=why)
    return rows


SCENARIOS = (
    RunScenario(
        name="research, 15 turns",
        about="one phase of 15 turns with tool results",
        everything_tokens=170_000,
        saved=0.62,
        dynamic_tokens=6_000,
        cascade={"cascade_id": "research", "phases": [_phase("research", "Find out what stalls the relay.")]},
        replies=partial(_turns, "research", 15, 1_640, "research"),
    ),
    RunScenario(
        name="loop_until, 10 tries",
        about="one phase, refused nine times",
        everything_tokens=200_000,
        saved=0.80,
        dynamic_tokens=4_000,
        cascade={
            "cascade_id": "retry",
            "phases": [
                _phase(
                    "mend", "Mend the relay until its tests pass.", rules={"loop_until": "tests", "max_attempts": 10}
                ),
            ],
        },
        replies=partial(_tries, 10),
    ),
    RunScenario(
        name="5 soundings",
        about="five attempts of 10 turns each",
        everything_tokens=500_000,
        saved=0.70,
        dynamic_tokens=4_000,
        cascade={
            "cascade_id": "soundings",
            "phases": [
                _phase("plan", "Plan the move of the relay.", soundings={"factor": 5}),
            ],
        },
        replies=lambda: [one for n in range(1, 6) for one in _turns("plan", 10, 2_260, f"sounding {n}", n)],
    ),
)


EAGER = {"policy": "ski_rental", "mask_observations_after": 0}


def play_scenario(
    scenario: RunScenario,
    prices: Prices | None = None,
    *,
    intra_context: bool | Mapping[str, Any] = True,
    scratchpad: bool = True,
) -> ScenarioFigures:
    """Play it in memory with a scripted model, and read its figures.

    Fields of `intra_context` go over the scenario's; False: phases have no such block. Without `scratchpad` the model
    keeps none.
    """
    phases = [dict(phase) for phase in scenario.cascade["phases"]]
    for phase in phases:
        over = intra_context if isinstance(intra_context, Mapping) else {}
        phase["intra_context"] = None if intra_context is False else {**phase["intra_context"], **over}
    replies = scenario.replies()
    if not scratchpad:
        replies = [{**one, "text": one["text"].partition("\nSCRATCHPAD:")[0]} for one in replies]
    cascade, script = cascade_of({**scenario.cascade, "phases": phases}), script_of(replies, scenario.name)
    with memory_store() as store:
        runner = CascadeRunner(
            store=store,
            cascade=cascade,
            player=script,
            run="run",
            builder=_builder_of(scenario),
            tools={"search": None},
            workers=1,
            scratchpad=scratchpad,
        )
        runner.play()
        sizer = Sizer(_builder_of(scenario)(Policy()).counter)
        rows = efficiency_of(store, cascade, "run", counter=sizer.counter, prices=prices)
        calls = list(judged_calls(store, cascade, "run", sizer=sizer))
        return ScenarioFigures(
            name=scenario.name,
            efficiency=rows[-1],
            constraints_kept=_share(_kept(calls, scenario.constraints)),
            decisions_kept=_share(_kept(calls, scenario.decisions)),
            evidence_reachable=_share(_reached(store, calls)),
        )


def _builder_of(scenario: RunScenario) -> Callable[[Policy], EnvelopeBuilder]:
    budgets = Budgets.agent()._with({"dynamic_tokens": scenario.dynamic_tokens, "recall_fraction": 0.2})
    return lambda policy: EnvelopeBuilder(model="gpt-4o", budgets=budgets, policy=policy)


def _kept(calls: Sequence[JudgedCall], canaries: Sequence[str]) -> Iterator[bool]:
    """For each call and each canary that everything holds by then: whether it stands in what was sent."""
    for call in calls:
        everything = "\n".join(piece.said for piece in call.everything)
        sent = "\n".join(piece.said for piece in call.sent)
        yield from (canary in sent for canary in canaries if canary in everything)


def _reached(store: Store, calls: Sequence[JudgedCall]) -> Iterator[bool]:
    for call in calls:
        session = store.at("default", call.session)
        newest = max(call.reachable, default=0)
        for entry in session.entries(1, newest):
            if entry.message.tool_results:
                yield entry.ordinal in call.reachable and bool(session.resolve(entry.ref).tool_results)


def _share(holds: Iterator[bool]) -> float:
    all_of = list(holds)
    return round(sum(all_of) / len(all_of), 4) if all_of else 1.0


def run(data: Path | None = None) -> Iterator[BenchmarkRow]:
    """The scenarios, a few rows each."""
    for scenario in SCENARIOS:
        found = play_scenario(scenario)
        cost, name = found.efficiency, scenario.name
        yield row("runs", f"{name}: tokens of sending everything, in {cost.calls} calls", cost.everything_tokens)
        yield row("runs", "  saved of them", 100 * cost.saved, "%", at_least=100 * scenario.saved)
        yield row("runs", "  cache-priced, to sending everything", cost.priced_ratio, at_most=0.9999)
        yield row("runs", "  constraints in the window", 100 * found.constraints_kept, "%", at_least=100)
        yield row("runs", "  decisions in the window", 100 * found.decisions_kept, "%", at_least=100)
        yield row("runs", "  tool results shown or led to", 100 * found.evidence_reachable, "%", at_least=100)
        bare = play_scenario(scenario, scratchpad=False)
        yield row("runs", "  decisions in the window without a scratchpad", 100 * bare.decisions_kept, "%")
        plain = play_scenario(scenario, intra_context=False)
        yield row("runs", "  saved without `intra_context`", 100 * plain.efficiency.saved, "%")
        yield row("runs", "  cache-priced without it", plain.efficiency.priced_ratio)
        eager = play_scenario(scenario, intra_context=EAGER)
        once = "  saved where the model sees each result once (`ski_rental`)"
        yield row("runs", once, 100 * eager.efficiency.saved, "%")
        yield row("runs", "  cache-priced then", eager.efficiency.priced_ratio)
