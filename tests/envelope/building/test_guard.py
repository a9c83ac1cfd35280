"""The guard: at 80 % of what the window leaves a request a finding, at 90 % a compaction, and never for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Session
from ctxsteward.evals.prompt_cost import openai_faults
from ctxsteward.schemas import WindowExceeded

from ...examples import SOAK
from ..messages import call, char_builder, opened, reply, result, user

WINDOW, RESERVE = 10_000, 2_000
USABLE = WINDOW - RESERVE
TOOL = {"type": "function", "function": {"name": "f", "description": "d" * 2_400, "parameters": {"type": "object"}}}
"""About a third of what the window leaves: no budget counts it."""


def builder(**more: Any) -> EnvelopeBuilder:
    budgets = Budgets(dynamic_tokens=7_400, recall_fraction=0.0)
    return char_builder(budgets, window_tokens=WINDOW, output_reserve_tokens=RESERVE, selector=None, **more)


def looping(session: Session, steps: int, chars: int = 400) -> Iterator[int]:
    """A tool loop: one user turn, then steps."""
    session.append(user("Find out what stalls the relay."))
    for step in range(1, steps + 1):
        session.append(call(f"c{step}", text=f"I look {step}."))
        session.append(result(f"c{step}", f"row {step} " + "x" * chars))
        yield step


def warned(envelope: Any) -> bool:
    return any(finding.kind == "window_nearly_full" for finding in envelope.findings)


def test_inside_a_tool_loop_it_warns_at_80_percent_and_compacts_at_90() -> None:
    session, maker = opened(tools=[TOOL]), builder()
    compacted, warnings, previous = [], [], 0
    for step in looping(session, 40):
        envelope = maker.build(session)
        assert envelope.tokens <= 0.9 * USABLE
        assert warned(envelope) == (envelope.tokens >= 0.8 * USABLE)
        if envelope.reports:
            compacted.append(step)
            assert previous + 600 > 0.9 * USABLE  # not before it was due
            (report,) = envelope.reports
            assert report.post_tokens <= 0.9 * report.pre_tokens
        warnings.append(warned(envelope))
        previous = envelope.tokens
        assert openai_faults(envelope.render("openai-chat")) == []

    assert len(compacted) >= 3
    assert any(warnings)
    assert min(late - early for early, late in pairwise(compacted)) > 1


def test_without_the_guard_the_window_is_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EnvelopeBuilder, "_guard_tokens", lambda self, head: None)
    session, maker = opened(tools=[TOOL]), builder()

    steps = looping(session, 40)
    with pytest.raises(WindowExceeded):
        sum(maker.build(session).tokens for _ in steps)


def test_it_goes_by_calibrated_counts() -> None:
    plain, corrected = builder(), builder()
    for _ in range(8):
        corrected.calibrate({"prompt_tokens": 1_300}, prompt_tokens=1_000)
    assert corrected.calibration > 1.2
    first: dict[str, int] = {}
    for name, maker in (("plain", plain), ("corrected", corrected)):
        session = opened(tools=[TOOL])
        for step in looping(session, 20):
            envelope = maker.build(session)
            assert envelope.tokens <= 0.9 * USABLE
            if envelope.reports:
                first.setdefault(name, step)

    assert first["corrected"] < first["plain"]


def test_it_does_not_compact_again_before_a_tenth_was_said() -> None:
    session, maker = opened(tools=[TOOL]), builder()
    for _ in looping(session, 40):
        if maker.build(session).reports:
            break
    before = session.state.compactions
    session.append(call("late", text="Almost."))
    session.append(result("late", "y" * 3_500))

    assert maker.build(session).reports == () or session.state.compactions == before + 1
    for _ in range(3):
        maker.build(session)  # nothing was said meanwhile
    assert session.state.compactions <= before + 1


def test_what_may_not_leave_is_not_tried_again_and_again() -> None:
    session, maker = opened(tools=[TOOL]), builder()
    session.append(user("u" * 4_500), pin="keep")
    session.append(reply("ok"))
    session.append(user("go on"))
    for _ in range(5):
        envelope = maker.build(session)

    assert warned(envelope)
    assert session.state.compactions == 0


def test_many_compactions_keep_size_task_and_saving() -> None:
    """With CTXSTEWARD_SOAK=1 two hundred."""
    count = 200 if SOAK else 60
    session, maker = opened(tools=[TOOL]), builder()
    sizes: list[int] = []
    reports = []
    for _ in looping(session, 2_000):
        envelope = maker.build(session)
        sizes.append(envelope.tokens)
        reports += envelope.reports
        if len(reports) >= count:
            break

    assert len(reports) == count
    assert max(sizes) <= 0.9 * USABLE
    assert all(report.post_tokens <= 0.9 * report.pre_tokens for report in reports)
    text = "\n".join(str(message["content"]) for message in envelope.render("openai-chat")["messages"])
    assert "Find out what stalls the relay." in text
    assert text.count("<000000000 bullets") <= 1
