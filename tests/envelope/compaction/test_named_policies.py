"""Policies by name, one of a caller's own, and a compaction that is asked for."""

from __future__ import annotations

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Policy, Session
from ctxsteward.envelope.cascade.intra_phase import intra_policy
from ctxsteward.envelope.compaction.importance import policy_named
from ctxsteward.envelope.compaction.policy import CompactionChoice, Window, asked_policy, phase_log
from ctxsteward.schemas import InputError
from ctxsteward.schemas.cascade import IntraContext, PolicyName
from ctxsteward.schemas.summary import CompressionReport

from ..messages import call, char_builder, opened, reply, result, user

LONG, SHORT = "x" * 600, "y" * 100


# -- the middle first --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("to", "level"),
    [
        pytest.param(0.8, "20 %", id="a fifth of them is enough"),
        pytest.param(0.6, "50 %", id="half of them"),
        pytest.param(0.3, "100 %", id="all of them"),
    ],
)
def test_tool_results_leave_from_the_middle_by_the_first_level_that_is_enough(to: float, level: str) -> None:
    session = opened()
    budgets = Budgets(dynamic_tokens=24_000, compact_at_fraction=0.9, compact_to_fraction=to, recall_fraction=0)
    built = char_builder(budgets, policy=policy_named("middle_out"), selector=None)
    session.append(user("Find out."))
    reports: list[CompressionReport] = []
    for step in range(40):
        session.append(call(f"c{step}", name="look"))
        session.append(result(f"c{step}", LONG))
        envelope = built.build(session)
        reports += envelope.reports
        if reports:
            break
    assert reports[0].policy == f"middle-out/1 threshold {level}"
    assert reports[0].post_tokens <= to * 24_000
    lines = [w["content"] != LONG for w in envelope.render("openai-chat")["messages"] if w["role"] == "tool"]
    at = [n for n, is_line in enumerate(lines) if is_line]
    assert at == list(range(at[0], at[-1] + 1))
    assert lines[0] is (level == "100 %")
    assert not lines[-1]


# -- the log of a call -------------------------------------------------------------------------------------------------


def masking(window: Window, need_tokens: int) -> CompactionChoice:
    """A choice of a caller's own: all tool results but the newest four."""
    old = [group for group in window.state.groups if len(group.entries) > 1][:-4]
    return CompactionChoice(mask=tuple(g for g in old if g.first not in window.state.masked), is_summarized=False)


def is_due(window: Window) -> bool:
    return len([g for g in window.state.groups if len(g.entries) > 1 and g.first not in window.state.masked]) > 4


def test_a_call_s_selection_log_names_what_it_was_shown_under_a_policy_of_one_s_own() -> None:
    """Named as a policy that earlier versions had: what they have written is read."""
    session = opened()
    policy = Policy(name="ski_rental/1 keep=4", due=is_due, choose=masking)
    built = char_builder(Budgets(dynamic_tokens=100_000), policy=policy, selector=None)
    session.append(user("Find out."))
    for step in range(9):
        session.append(call(f"c{step}", name="look"))
        session.append(result(f"c{step}", LONG))
        envelope = built.build(session)
    assert {event.report.policy for event in session.reports()} == {"ski_rental/1 keep=4"}
    log = phase_log(session, envelope.dynamic, "own")
    assert (log.selection_type, log.strategy) == ("intra_phase", "own")
    assert (log.full_history_size, log.context_size, log.masked_count) == (19, 19, 5)
    assert log.anchor_refs == ("§1", "§18", "§19")
    assert log.selected_refs == ("§12", "§13", "§14", "§15", "§16", "§17")
    lines = [f"[text result, 600 characters, §{ordinal}]" for ordinal in (3, 5, 7, 9, 11)]
    assert log.tokens_saved == sum(600 - len(line) for line in lines)
    assert {(c.ref, c.in_, c.why) for c in log.candidates} >= {("§2", False, "masked"), ("§12", True, "whole")}
    wires = [w for w in envelope.render("openai-chat")["messages"] if w["role"] == "tool"]
    assert [wire["content"] == LONG for wire in wires] == [False] * 5 + [True] * 4


def test_a_policy_that_is_no_longer_there_is_refused_with_the_names_that_are() -> None:
    with pytest.raises(InputError, match="no policy named 'ski_rental'; known: threshold, middle_out, importance"):
        EnvelopeBuilder("gpt-4o", policy="ski_rental")  # type: ignore[arg-type]


# -- when it is asked for ----------------------------------------------------------------------------------------------


def talked(turns: int = 8) -> tuple[Session, EnvelopeBuilder]:
    """A talk that is far from its budget."""
    session, builder = opened(), char_builder(Budgets(dynamic_tokens=100_000), selector=None)
    for turn in range(turns):
        session.extend([user(f"Question {turn}: {SHORT}"), reply(f"Answer {turn}: {SHORT}")])
    return session, builder


def test_what_is_asked_for_is_made_though_nothing_is_due() -> None:
    session, builder = talked()
    assert builder.build(session).reports == ()
    shown = builder.preview(session, policy=asked_policy())
    assert session.reports() == [], "a preview writes nothing"
    (report,) = builder.build(session, policy=asked_policy()).reports
    assert (report.policy, report.pre_tokens, report.post_tokens) == (
        "asked/1",
        shown.reports[0].pre_tokens,
        shown.reports[0].post_tokens,
    )
    assert report.post_tokens < report.pre_tokens * 0.75
    assert builder.build(session).reports == (), "it is for one call"
    assert builder.build(session).section("dynamic").budget_tokens == 100_000


def test_it_stops_where_what_may_leave_takes_as_few_tokens_as_asked() -> None:
    kept = []
    for keep_tokens in (0, 400, 800):
        session, builder = talked()
        builder.build(session, policy=asked_policy(keep_tokens))
        kept.append(len(session.state.groups))
    assert kept[0] < kept[1] < kept[2] < 16


def test_where_all_may_stay_that_is_asked_nothing_is_made() -> None:
    session, builder = talked()
    envelope = builder.build(session, policy=asked_policy(100_000))
    assert envelope.reports == ()
    assert [finding.kind for finding in envelope.findings] == ["compaction_refused"]
    assert len(session.state.groups) == 16


def test_what_is_asked_for_again_at_once_saves_too_little() -> None:
    session, builder = talked()
    builder.build(session, policy=asked_policy(0))
    again = builder.build(session, policy=asked_policy(0))
    assert [finding.kind for finding in again.findings] == ["compaction_refused"]


@pytest.mark.parametrize(
    ("name", "label"), [("middle_out", "middle-out/1 threshold"), ("importance", "importance/1 threshold")]
)
def test_middle_out_and_importance_go_by_name_in_builders_and_cascades(name: PolicyName, label: str) -> None:
    assert EnvelopeBuilder(tokenizer="o200k_base", policy=name).policy.name == label
    assert intra_policy(IntraContext(policy=name)).name == label
