"""The auto-context design's three scenarios, played at its volumes, and their cost compared with sending everything.

They are a research phase of 15 turns, a phase that is tried 10 times, and soundings of 5. Texts are drawn from a seed;
the model is scripted. The task states constraints and the model makes decisions (*canaries*); every later window is
searched for each. `evidence` is the share of tool results that are shown, or to which a reference in the window leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby, pairwise
from pathlib import Path
from random import Random
from typing import Any

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Policy, Store
from ctxsteward.envelope.cascade import CascadeRunner, script_of
from ctxsteward.envelope.cascade.config import cascade_of
from ctxsteward.envelope.testing import memory_store
from ctxsteward.evals.documents import table
from ctxsteward.evals.prompt_cost import Prices, Sizer
from ctxsteward.evals.run_cost import JudgedCall, PhaseEfficiency, efficiency_of, judged_calls

from .rows import BenchmarkRow, row

CONSTRAINTS = (
    "never write to the table ledger_2019",
    "keep every answer under 300 words",
    "the deploy window closes at 17:40 on Friday",
)
DECISIONS = ("decided to use port 8443 for the relay", "decided to keep retries at 4")
LINE_TOKENS = 20
"""Of a line that names what a cut took out, at its least."""
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
    """The design's volume: about the tokens of sending everything."""
    saved: float
    """Least share of these tokens that must be saved."""
    cascade: Mapping[str, Any]
    replies: Callable[[], list[dict[str, Any]]]
    dynamic_tokens: int
    constraints: Sequence[str] = CONSTRAINTS
    decisions: Sequence[str] = DECISIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioFigures:
    """Figures of a played scenario."""

    name: str
    efficiency: PhaseEfficiency
    constraints_kept: float
    """Share of constraints that are in the window, over all calls."""
    decisions_kept: float
    """Share of earlier decisions that are in the window, over all calls."""
    evidence_reachable: float
    """Share of the session's earlier tool results that are shown, or to which a reference leads, over all calls."""
    cheapest_ratio: float
    """Cache-priced ratio of the cheapest cuts in hindsight, which leave only the newest step and one line."""
    read_ratio: float
    """Cache-priced ratio if the provider's cache were written only where the next call reads it."""


def _prose(random: Random, tokens: int) -> str:
    """Return rows of about `tokens` tokens."""
    lines = []
    while tokens > 0:
        words = " ".join(random.choice(_WORDS) for _ in range(9))
        lines.append(f"{random.randrange(10_000):04} {words} {random.randrange(1_000)}.")
        tokens -= 15
    return "\n".join(lines)


def _turns(
    phase: str, turns: int, result_tokens: int, seed: str, attempt: int | None = None, **last: Any
) -> list[dict[str, Any]]:
    """Return turns with a tool result each, and the final reply; decisions are in the second and third turn."""
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


def play_scenario(
    scenario: RunScenario,
    prices: Prices | None = None,
    *,
    intra_context: bool | Mapping[str, Any] = True,
    scratchpad: bool = True,
) -> ScenarioFigures:
    """Play a scenario in memory with a scripted model, and return its figures.

    Fields of `intra_context` override the scenario's; False: phases have no such block. Without `scratchpad` the model
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
            cheapest_ratio=_cheapest(calls, sizer, prices or Prices()) / rows[-1].everything_priced,
            read_ratio=_written_if_read(calls, sizer, prices or Prices()) / rows[-1].everything_priced,
        )


def _tokens(call: JudgedCall) -> int:
    return call.tools_tokens + sum(piece.tokens for piece in call.sent)


def _cheapest(calls: Sequence[JudgedCall], sizer: Sizer, prices: Prices) -> float:
    """Price the cheapest schedule of cuts, each session by itself; a cut leaves the newest steps and a line."""
    sessions = groupby(calls, key=lambda call: call.session)
    return sum(_cheapest_of(list(of_session), sizer, prices) for _, of_session in sessions)


def _cheapest_of(calls: Sequence[JudgedCall], sizer: Sizer, prices: Prices) -> float:
    first, everything = _tokens(calls[0]), [sum(piece.tokens for piece in call.everything) for call in calls]
    notes = first - calls[0].tools_tokens - sizer.shared_tokens(calls[0].sent, calls[1].sent) if calls[1:] else 0
    steps = [after - before for before, after in pairwise(everything)]

    @cache
    def rest(at: int, dropped: int) -> float:
        """Price the calls from `at` on if the call before shows its steps from `dropped` on."""
        if at == len(calls):
            return 0.0
        before = prompt(at - 1, dropped) - notes if at else 0
        return min(
            prices.of(prompt(at, now), before if now == dropped else min(before, first - notes)) + rest(at + 1, now)
            for now in range(dropped, max(dropped, at - 1) + 1)
        )

    def prompt(at: int, dropped: int) -> int:
        return first + LINE_TOKENS * (dropped > 0) + sum(steps[dropped:at])

    return rest(0, 0)


def _written_if_read(calls: Sequence[JudgedCall], sizer: Sizer, prices: Prices) -> float:
    """Price the prompts as they were sent if each token is written only where the next call reads it."""
    shared = [0, *(sizer.shared_tokens(before.sent, now.sent) + now.tools_tokens for before, now in pairwise(calls)), 0]
    read = [tokens if prices.served(tokens) else 0 for tokens in shared]
    priced = 0.0
    for call, had, reads in zip(calls, read, read[1:], strict=False):
        tokens, written = _tokens(call), max(0, reads - had)
        priced += prices.cached * had + prices.write * written + tokens - had - written
    return priced


def scenarios_block() -> Iterator[str]:
    """Yield a table of the scenarios' cache-priced ratios: ours, and what hindsight could reach."""
    played = [play_scenario(scenario) for scenario in SCENARIOS]
    ratios = ((one.name, one.efficiency.priced_ratio, one.cheapest_ratio, one.read_ratio) for one in played)
    head = ("run of a cascade", "ours", "cheapest cuts", "ours, written if read")
    yield from table(head, ((name, *(f"{ratio:.2f}" for ratio in row)) for name, *row in ratios))


def _builder_of(scenario: RunScenario) -> Callable[[Policy], EnvelopeBuilder]:
    budgets = Budgets.agent()._with({"dynamic_tokens": scenario.dynamic_tokens, "recall_fraction": 0.2})
    return lambda policy: EnvelopeBuilder(model="gpt-4o", budgets=budgets, policy=policy)


def _kept(calls: Sequence[JudgedCall], canaries: Sequence[str]) -> Iterator[bool]:
    """Yield for each call and each canary of its history whether the canary is in the sent prompt."""
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
    """Yield a few rows for each scenario."""
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
