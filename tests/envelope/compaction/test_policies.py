"""Every policy over random agent histories: valid for both providers, nothing lost, nothing that must stay gone.

Histories have parallel, failed and pending calls, thinking blocks, repeated outputs and long reasoning. Counts are
characters.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Policy, Session, Store
from ctxsteward.envelope.cascade.intra_phase import intra_policy
from ctxsteward.envelope.compaction.importance import policy_named
from ctxsteward.envelope.tokens.budgets import MIN_PROGRESS_FRACTION
from ctxsteward.evals.prompt_cost import anthropic_faults, openai_faults
from ctxsteward.schemas import CompressionReport, InvalidMessage, Ref
from ctxsteward.schemas.cascade import IntraContext
from ctxsteward.store.crypto.keyring import memory_keys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.summarizers import extractive

from ...examples import drawn, examples
from ..agent_histories import RULE, SAME, TASK, Wire, agent_history
from ..histories import NONCE, histories
from ..messages import CHARS, call, char_builder, opened, result, user

POLICIES: dict[str, Callable[[], Policy]] = {
    "threshold": Policy,
    "intra": lambda: intra_policy(IntraContext()),
    "intra, narrow": lambda: intra_policy(IntraContext(window=1, mask_observations_after=0, preserve_errors=False)),
    "intra, wide": lambda: intra_policy(IntraContext(window=50, mask_observations_after=50)),
    "middle out": lambda: policy_named("middle_out"),
    "importance": lambda: policy_named("importance"),
}
ROOMY, NARROW = 60_000, 4_000


def builder(policy: Policy, dynamic_tokens: int, **more: Any) -> EnvelopeBuilder:
    return char_builder(Budgets(dynamic_tokens=dynamic_tokens), policy=policy, summarizer=extractive, **more)


def play(session: Session, wires: list[Wire], build: EnvelopeBuilder) -> list[Envelope]:
    """Append, and build before each reply and at the end."""
    envelopes = []
    for wire in wires:
        if wire["role"] == "assistant":
            envelopes.append(build.build(session))
        session.append(wire)
    return [*envelopes, build.build(session)]


def said(envelope: Envelope) -> str:
    return json.dumps(envelope.render("anthropic"), ensure_ascii=False)


@settings(max_examples=examples(60))
@given(
    seed=st.integers(0, 10_000),
    name=st.sampled_from(sorted(POLICIES)),
    dialect=st.sampled_from(("openai", "anthropic")),
    dynamic_tokens=st.sampled_from((NARROW, 9_000, ROOMY)),
    steps=st.integers(1, 30),
    pending=st.booleans(),
)
def test_under_any_policy_envelopes_are_valid_and_nothing_is_lost(
    seed: int, name: str, dialect: str, dynamic_tokens: int, steps: int, pending: bool
) -> None:
    wires = agent_history(seed, steps=steps, dialect=dialect, pending=pending)
    session = opened()
    for envelope in play(session, wires, builder(POLICIES[name](), dynamic_tokens)):
        assert openai_faults(envelope.render("openai-chat")) == []
        assert anthropic_faults(envelope.render("anthropic")) == []
        refs = {ref for report in envelope.reports for ref in report.kept_refs}
        refs |= {loss.ref for report in envelope.reports for loss in report.losses}
        for ref in refs:
            session.resolve(ref)
    last = envelope
    shown = said(last)
    assert TASK.split(".")[0] in shown
    newest = session.entry(session.state.ordinal).message
    for text in (newest.text, *(one.text for one in newest.tool_results)):
        assert json.dumps(text[:60], ensure_ascii=False)[1:-1] in shown
    assert [session.entry(n).message.wire for n in range(1, session.state.ordinal + 1)] == wires
    everywhere = {n for group in session.state.groups for n in group.ordinals}
    everywhere |= {Ref.parse(ref).ordinal for bullet in session.state.bullets for ref in bullet.citations}
    assert all(n in everywhere or n <= session.state.compacted_to for n in range(1, session.state.ordinal + 1))


@settings(max_examples=examples(60))
@given(wires=histories("mixed", max_size=14), name=st.sampled_from(sorted(POLICIES)), narrow=st.booleans())
def test_under_any_policy_a_broken_history_is_repaired(wires: tuple[Wire, ...], name: str, narrow: bool) -> None:
    session = opened()
    built = builder(POLICIES[name](), 900 if narrow else ROOMY)
    for wire in wires:
        try:
            session.append(wire)
        except InvalidMessage:
            continue
        envelope = built.build(session)
        assert openai_faults(envelope.render("openai-chat")) == []
        assert anthropic_faults(envelope.render("anthropic")) == [] or not envelope.render("anthropic")["messages"]


@pytest.mark.parametrize("name", sorted(POLICIES))
@pytest.mark.parametrize("dynamic_tokens", [NARROW, ROOMY])
def test_the_same_log_gives_the_same_bytes_and_a_cold_process_decides_alike(name: str, dynamic_tokens: int) -> None:
    wires = agent_history(len(name), steps=14)
    warm = [said(envelope) for envelope in play(opened(), wires, builder(POLICIES[name](), dynamic_tokens))]
    journal, objects, keys = MemoryJournal(), MemoryObjects(), memory_keys()
    cold = []
    session: Session | None = None
    for wire in [*wires, None]:
        if session is None or wire is None or wire["role"] == "assistant":
            # another process: neither it nor its builder has seen anything
            store = Store(journal, objects, keys, uri="memory:", draw_nonce=lambda: NONCE)
            session = store.session("s", counter=CHARS)
        if wire is None or wire["role"] == "assistant":
            cold.append(said(builder(POLICIES[name](), dynamic_tokens).build(session)))
        if wire is not None:
            session.append(wire)
    assert cold == warm


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_rule_of_the_task_stands_after_every_policy(name: str) -> None:
    session = opened()
    last = play(session, agent_history(7, steps=60), builder(POLICIES[name](), 6_000))[-1]
    assert RULE.split(",")[0] in said(last)


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"threshold"}))
def test_over_the_budget_every_policy_compacts(name: str) -> None:
    """Behind 40 steps, and behind the 80 steps that go on from them."""
    half, whole = agent_history(11, steps=40), agent_history(11, steps=80)
    assert whole[: len(half)] == half
    envelopes = play(opened(), whole, builder(POLICIES[name](), 12_000))
    behind_half = envelopes[sum(wire["role"] == "assistant" for wire in half)]
    assert max(one.section("dynamic").tokens for one in (behind_half, envelopes[-1])) <= 12_000


# -- a session that goes on -------------------------------------------------------------------------------------------


LONG_RUN = ("intra", "middle out", "importance")


@pytest.mark.parametrize("name", LONG_RUN)
def test_after_200_compactions_the_window_is_bounded_flat_and_holds_its_rules(name: str) -> None:
    """One policy, another each time, and all with CTXSTEWARD_SOAK=1; else it is after 50."""
    least = 200 if name in drawn(LONG_RUN, 1, "200 compactions") else 50
    session = opened()
    built = builder(POLICIES[name](), NARROW)
    compactions: list[CompressionReport] = []
    sizes: list[int] = []
    session.append(user(TASK))
    step = 0
    while len(compactions) < least:
        step += 1
        session.append(call(f"c{step}", text=f"I look at host {step}.", name="look", arguments=f'{{"host": {step}}}'))
        session.append(result(f"c{step}", SAME if step % 3 == 0 else f"host{step} answers " + f"line {step} ok\n" * 40))
        envelope = built.build(session)
        sizes.append(envelope.section("dynamic").tokens)
        for report in envelope.reports:
            assert report.pre_tokens - report.post_tokens >= report.pre_tokens * MIN_PROGRESS_FRACTION
            compactions.append(report)
        assert step % 20 or RULE.split(",")[0] in said(envelope)
    assert step <= 2_000
    assert max(sizes[len(sizes) // 2 :]) <= max(max(sizes[: len(sizes) // 2]), NARROW)
    for bullet in session.state.bullets:
        assert "compacted messages" not in bullet.text
        assert all(session.resolve(ref) is not None for ref in bullet.citations)


@pytest.mark.parametrize("name", ["threshold", "intra"])
def test_a_turn_of_an_old_session_costs_no_more_work_than_one_of_a_young_one(name: str) -> None:
    """Calls of Python functions a build, at their most between two compactions."""
    session = opened()
    built = builder(POLICIES[name](), 6_000)
    session.append(user(TASK))
    work: list[int] = []
    for step in range(400):
        session.append(call(f"c{step}", name="look"))
        session.append(result(f"c{step}", f"line {step} ok\n" * 20))
        count = 0

        def counted(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(counted)
        envelope = built.build(session)
        sys.setprofile(None)
        if not envelope.reports:
            work.append(count)
    young, old = max(work[: len(work) // 2]), max(work[len(work) // 2 :])
    assert old <= 1.2 * young


@pytest.mark.parametrize("name", ["threshold", "intra", "middle out"])
def test_what_would_save_less_than_a_tenth_is_not_even_tried(name: str) -> None:
    session = opened()
    envelopes = play(session, agent_history(5, steps=60), builder(POLICIES[name](), ROOMY))
    kinds = {finding.kind for envelope in envelopes for finding in envelope.findings}
    assert sum(len(envelope.reports) for envelope in envelopes) >= 2
    assert "compaction_refused" not in kinds
