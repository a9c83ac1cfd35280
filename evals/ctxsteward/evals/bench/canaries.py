"""Typed canaries after five and more compactions at 20 % of the tokens: what the rendered envelope still shows.

Scenarios are seeded; `dev` phrasings were seen while the summarizer was written, `held_out` ones only when it was
done, the stories are handwritten. Reachable: the newest message that states a canary is named by a reference that the
envelope shows, singly or in the range of the compacted messages, and resolves to the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ctxsteward.envelope import Budgets, EnvelopeBuilder
from ctxsteward.envelope.testing import memory_store
from ctxsteward.envelope.tokens.tokenizer import count_message, load_tokenizer
from ctxsteward.schemas import Message
from ctxsteward.schemas.message import encode_wire

from ..canaries import KINDS, CanaryKind, CanaryScenario, KindScore, scenario, score
from ..canary_stories import stories
from ..replay import named_in, window_of
from . import BenchmarkRow, row

NAME = "canaries"
WINDOW_FRACTION = 0.2
MIN_ROUNDS = 5
SEEDS = range(6)


@dataclass(slots=True, kw_only=True)
class CanaryBenchOutcome:
    """One scenario run through the builder."""

    name: str
    by_kind: dict[CanaryKind, KindScore]
    stale: int
    reachable: int
    compactions: int
    missed: list[str]

    @property
    def recall(self) -> float:
        return sum(s.found for s in self.by_kind.values()) / max(1, sum(s.total for s in self.by_kind.values()))


def play(case: CanaryScenario, nonce: str = "000000000") -> CanaryBenchOutcome:
    """Append a scenario message by message, build at each call, and score the last envelope."""
    tokenizer = load_tokenizer("o200k_base")
    tokens = sum(count_message(Message.from_wire(wire), tokenizer) for wire in case.messages)
    budgets = Budgets(dynamic_tokens=int(WINDOW_FRACTION * tokens), recall_fraction=0)
    builder = EnvelopeBuilder(model="gpt-4o", budgets=budgets)
    session = memory_store(nonce=nonce).session(case.name)
    envelope = None
    compactions = 0
    for wire in case.messages:
        session.append(wire)
        if wire["role"] != "assistant":
            envelope = builder.build(session)
            compactions += len(envelope.reports)
    assert envelope is not None
    text = window_of(envelope)
    found = score(case, text)
    shown = named_in(text).union(ordinal for group in session.state.groups for ordinal in group.ordinals)
    reachable = sum(
        canary.ordinals[-1] in shown
        and encode_wire(session.resolve(f"§{canary.ordinals[-1]}"))
        == encode_wire(case.messages[canary.ordinals[-1] - 1])
        for canary in case.canaries
    )
    return CanaryBenchOutcome(
        name=case.name,
        by_kind=found.by_kind,
        stale=len(found.stale),
        reachable=reachable,
        compactions=compactions,
        missed=[f"{c.kind}: {c.value}" for c in found.missed],
    )


def run(data: object = None) -> Iterator[BenchmarkRow]:
    """Yield the figures."""
    for split in ("dev", "held_out"):
        for language in ("en", "zh"):
            outcomes = [play(scenario(seed, language, split=split)) for seed in SEEDS]
            yield from _rows(f"{split} {language}", outcomes)
    for story in stories():
        yield from _rows(f"story {story.name}", [play(story)])


def _rows(label: str, outcomes: list[CanaryBenchOutcome]) -> Iterator[BenchmarkRow]:
    totals = {kind: KindScore(*map(sum, zip(*(o.by_kind[kind] for o in outcomes if kind in o.by_kind), strict=True)))
              for kind in KINDS if any(kind in o.by_kind and o.by_kind[kind].total for o in outcomes)}  # fmt: skip
    found, total = sum(s.found for s in totals.values()), sum(s.total for s in totals.values())
    yield row(NAME, f"{label}: canaries in the window of {total}", 100 * found / total, "%", at_least=85)
    safety = totals.get("safety_rule", KindScore(0, 0))
    if safety.total:
        yield row(NAME, f"{label}: safety rules", 100 * safety.found / safety.total, "%", at_least=100)
    kinds = ", ".join(f"{kind} {s.found}/{s.total}" for kind, s in totals.items())
    yield BenchmarkRow(bench=NAME, what=f"  {kinds}", value="")
    yield row(NAME, f"{label}: stale values", sum(o.stale for o in outcomes), at_most=0)
    yield row(
        NAME,
        f"{label}: reachable by a shown reference",
        100 * sum(o.reachable for o in outcomes) / total,
        "%",
        at_least=100,
    )
    yield row(
        NAME,
        f"{label}: fewest compactions in a scenario",
        min(o.compactions for o in outcomes),
        at_least=MIN_ROUNDS,
    )
