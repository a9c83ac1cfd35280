"""The policy by itself: when a compaction is due and what leaves, over windows with candidates priced by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder
from ctxsteward.envelope.compaction.policy import CompactionChoice, Policy, Window, choose, due, paced
from ctxsteward.envelope.testing import FirstLine, memory_store
from ctxsteward.schemas import Ref, SummarizerInput, Summary

from ..messages import call, char_builder, opened, reply, result, user


def windows(budgets: Budgets, *wires: dict[str, object]) -> list[Window]:
    """What the policy was asked about when this had been said; it never compacts."""
    asked: list[Window] = []

    def never(window: Window) -> bool:
        asked.append(window)
        return False

    session = opened()
    session.extend(list(wires))
    char_builder(budgets, policy=Policy(due=never), selector=None).build(session)
    return asked


class Distance(NamedTuple):
    movable_tokens: int
    is_due: bool


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Distance(60, False), id="pays for the cut to the target, saves less than a tenth"),
        pytest.param(Distance(120, True), id="saves a tenth"),
        pytest.param(Distance(30, False), id="does not pay for the cut to the target"),
    ],
)
def test_a_window_within_its_budget_is_compacted_only_where_that_saves_a_tenth(case: Distance) -> None:
    """Trigger 820 and target 780 lie close, so that what may leave pays for the cut long before it is a tenth."""
    budgets = Budgets(dynamic_tokens=1_000, compact_at_fraction=0.82, compact_to_fraction=0.78)
    task, moves = user("t" * 146), reply("x" * (case.movable_tokens - 4))
    (window,) = windows(budgets, task, moves, user("q" * 246), reply("a" * 296), user("n" * 176))
    assert (window.movable_tokens, window.over) == (case.movable_tokens, False)
    assert due(window) is case.is_due


def test_a_compaction_makes_room_for_three_turns_like_those_in_the_window() -> None:
    """Two turns of the mean and one as long as the longest; neither the task nor the turn without a reply counts."""
    budgets = Budgets(dynamic_tokens=2_000, recall_fraction=0)
    turns = [wire for length in (40, 40, 100) for wire in (user("q" * (length - 4)), reply("a" * 16))]
    for said, room_tokens in ((turns[:4], 2 * 60 + 60), (turns, 2 * 80 + 120)):
        (window,) = windows(budgets, user("task"), reply("Yes."), *said, user("n"))
        assert paced(window).target_tokens == budgets.trigger_tokens - room_tokens


def test_a_prompt_too_short_for_a_cache_makes_room_for_one_turn() -> None:
    """Each call bills it whole, cut or not; with 24 tokens more the provider caches it."""
    turns = [wire for length in (40, 40, 80) for wire in (user("q" * (length - 4)), reply("a" * 16))]
    for dynamic_tokens, room_tokens in ((1_000, 100), (1_024, 2 * 73 + 100)):
        budgets = Budgets(dynamic_tokens=dynamic_tokens, recall_fraction=0)
        (window,) = windows(budgets, user("task"), reply("Yes."), *turns, user("n"))
        assert paced(window).target_tokens == budgets.trigger_tokens - room_tokens


def test_a_builder_decides_by_the_shortest_prefix_that_its_model_caches() -> None:
    """3,000 tokens are cached for gpt-4o, and not for Haiku 4.5, which caches from 4,096 on."""
    turns = [wire for length in (40, 40, 80) for wire in (user("q " * (length - 4)), reply("a " * 16))]
    asked: list[Window] = []

    def never(window: Window) -> bool:
        asked.append(window)
        return False

    budgets = Budgets(dynamic_tokens=3_000, recall_fraction=0)
    for model in ("gpt-4o", "claude-haiku-4-5"):
        session = memory_store().session(model)
        session.extend([user("task"), reply("Yes."), *turns, user("n")])
        EnvelopeBuilder(model, budgets=budgets, policy=Policy(due=never), selector=None).build(session)
    cached, uncached = asked
    assert paced(cached).target_tokens < paced(uncached).target_tokens
    assert paced(replace(cached, prices=uncached.prices)) == paced(uncached)


STEPS = (
    user("task"),
    *(wire for n in range(3) for wire in (call(f"c{n}"), result(f"c{n}", "r" * 80))),
    reply("Done so far."),
)


def test_a_step_that_was_masked_frees_no_more_than_was_left_of_it() -> None:
    """105 of three steps of 100: masking frees 10 of the first, dropping it the other 90, and the second is needed."""
    (window,) = windows(Budgets(dynamic_tokens=1_000), *STEPS)
    steps = [row for row in window.candidates if len(row.group.ordinals) == 2]
    priced = [replace(row, tokens=100, masked_tokens=100, must=False, live=True) for row in steps]
    priced[0] = replace(priced[0], masked_tokens=90)
    window.replace_candidates(tuple(priced))
    assert choose(window, 105) == CompactionChoice(drop=(steps[0].group, steps[1].group))
    assert choose(window, 100) == CompactionChoice(drop=(steps[0].group,))
    assert choose(window, 10) == CompactionChoice(mask=(steps[0].group,))


def task_worth_least(source: SummarizerInput, *, budget_tokens: int) -> Summary:
    """A bullet a message, more than fit; what was said first is worth least."""
    bullets = FirstLine()(source, budget_tokens=10 * budget_tokens).bullets
    return Summary(
        bullets=tuple(bullet.model_copy(update={"value": float(value)}) for value, bullet in enumerate(bullets))
    )


def test_the_bullet_of_a_task_that_leaves_stays_though_it_is_worth_least() -> None:
    session = opened()
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}  # it cannot be shortened
    session.append({"role": "user", "content": [{"type": "text", "text": "Port the parser. " * 50}, image]})
    maker = char_builder(Budgets(dynamic_tokens=1_000), summarizer=task_worth_least, selector=None)
    gone: set[int] = set()
    for number in range(60):
        session.append((reply, user)[number % 2](f"message {number} {'x' * 50}"))
        for report in maker.build(session).reports:
            gone |= {Ref.parse(loss.ref).ordinal for loss in report.losses}
    assert len(gone - {1}) > 1, "there was no room for all bullets"
    assert 1 not in {ordinal for group in session.state.groups for ordinal in group.ordinals}
    assert ("§1",) in [bullet.citations for bullet in session.state.bullets]
