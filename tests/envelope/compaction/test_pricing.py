"""Policies by price: the arithmetic of rent and rewriting, what they wait for, and what the budget takes from them."""

from __future__ import annotations

from typing import Any

import pytest

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Prices, Session
from ctxsteward.envelope.cascade.phase import intra_policy
from ctxsteward.envelope.compaction.policy import phase_log
from ctxsteward.envelope.compaction.pricing import asked_policy, price_policy, rewriting_pays
from ctxsteward.schemas import CompressionReport, InputError
from ctxsteward.schemas.cascade import IntraContext, PolicyName

from ..messages import call, char_builder, opened, reply, result, user

LONG, SHORT = "x" * 600, "y" * 100


def grown(
    policy: PolicyName,
    steps: int,
    *,
    prices: Prices | None = None,
    kept_steps: int = 2,
    dynamic_tokens: int = 100_000,
    first: str = LONG,
    then: str = SHORT,
    **more: Any,
) -> tuple[Session, list[Envelope]]:
    """A task and so many steps, built before each call; the first result is `first`, the others `then`."""
    session = opened()
    chosen = price_policy(policy, prices, kept_steps=kept_steps, **more)
    built = char_builder(Budgets(dynamic_tokens=dynamic_tokens), policy=chosen, selector=None)
    session.append(user("Find out."), ts="2026-01-01T00:00:00+00:00")
    envelopes = [built.build(session)]
    for step in range(steps):
        session.append(call(f"c{step}", name="look"))
        session.append(result(f"c{step}", first if not step else then))
        envelopes.append(built.build(session))
    return session, envelopes


def compacted_at(envelopes: list[Envelope]) -> list[int]:
    """0-based calls before which the window was compacted."""
    return [at for at, envelope in enumerate(envelopes) if envelope.reports]


CACHED = Prices(cached=0.1, block_tokens=0)


@pytest.mark.parametrize(
    ("paid", "expected"),
    [
        pytest.param(359.9, False, id="less rent than the price"),
        pytest.param(360.0, True, id="as much"),
    ],
)
def test_masking_pays_once_the_rent_has_reached_its_price(paid: float, expected: bool) -> None:
    """Of 2,000 tokens 1,000 are in the cache; 400 stay a prefix and 100 go: 1,940 instead of 1,100 + … by hand below.

    Leaving costs 1,000 · 0.1 + 1,000 = 1,100. Masking costs 400 · 0.1 + 1,500 − 100 · … = 40 + 1,500 - 80 = 1,460.
    """
    leaving = CACHED.of(2_000, 1_000)
    masking = CACHED.of(2_000 - 180, 400)
    assert (leaving, masking) == (1_100, 1_460)
    assert rewriting_pays(paid, 2_000, 1_000, 400, 180, CACHED) is expected


def test_ski_rental_waits_for_the_rent_and_masks_once() -> None:
    """The first result is droppable at call 3; to leave it costs 0.1 of it a call, and 0.9 what stands behind it."""
    _, envelopes = grown("ski_rental", 14, prices=CACHED)
    (first, *_) = compacted_at(envelopes)
    _, never = grown("never", 14, prices=CACHED)
    _, eager = grown("every_turn", 14, prices=CACHED)
    assert compacted_at(never) == []
    assert compacted_at(eager)[0] == 3
    assert 3 < first < 14


def test_the_longer_what_stands_behind_the_longer_it_waits() -> None:
    """Results of 20 characters are no longer than a masked line, so the first one alone is droppable."""
    short, longer = (compacted_at(grown("ski_rental", 30, prices=CACHED, then="y" * size)[1]) for size in (4, 30))
    assert short[0] < longer[0]


def test_where_nothing_is_cached_there_is_nothing_to_wait_for() -> None:
    """A block that no prompt reaches: every token is paid for anew, so masking is free."""
    _, envelopes = grown("ski_rental", 6, prices=Prices(block_tokens=10**6))
    assert compacted_at(envelopes)[0] == 3


@pytest.mark.parametrize(
    ("seconds", "compacts"),
    [
        pytest.param(299, False, id="within the cache's life"),
        pytest.param(301, True, id="after it"),
    ],
)
def test_an_expired_cache_is_rewritten_for_nothing(seconds: int, compacts: bool) -> None:
    session = opened()
    built = char_builder(Budgets(dynamic_tokens=9_000), policy=price_policy("ski_rental", CACHED))
    session.append(user("Find out."))
    for step, text in enumerate((LONG, "y" * 2_900, *("z" * 4 for _ in range(7)))):
        session.append(call(f"c{step}", name="look"))
        session.append(result(f"c{step}", text))
        assert not built.build(session).reports
    session.append(reply("z" * 900), ts="2026-01-01T10:00:00+00:00")
    session.append(user("And now?"), ts=f"2026-01-01T10:0{seconds // 60}:{seconds % 60:02d}+00:00")
    assert bool(built.build(session).reports) is compacts


def test_every_n_waits_n_steps_from_when_something_could_go() -> None:
    _, envelopes = grown("every_n", 12, every_steps=4, then=LONG)
    assert compacted_at(envelopes) == [6, 10]


def test_the_newest_steps_stay_word_for_word() -> None:
    _, envelopes = grown("every_turn", 9, kept_steps=4, then=LONG)
    wires = [w for w in envelopes[-1].render("openai-chat")["messages"] if w["role"] == "tool"]
    assert [wire["content"] == LONG for wire in wires] == [False] * 5 + [True] * 4
    assert wires[0]["content"] == "[text result, 600 characters, §3]"


def test_masked_lines_need_no_bullets_and_the_prefix_before_them_stays() -> None:
    session, envelopes = grown("every_turn", 9, then=LONG)
    assert session.state.bullets == ()
    before, after = (envelope.render("openai-chat")["messages"] for envelope in envelopes[-2:])
    same = next(at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other)
    assert after[same]["role"] == "tool"


def test_over_the_budget_the_kept_steps_give_way_with_a_finding() -> None:
    session, envelopes = grown("never", 9, kept_steps=50, dynamic_tokens=3_000, then=LONG)
    told = [f.text for envelope in envelopes for f in envelope.findings if f.kind == "policy_fell_back"]
    assert told
    assert all("never/1 keep=50: its own rules leave" in text and "§2" in told[0] for text in told)
    assert max(envelope.section("dynamic").tokens for envelope in envelopes) <= 3_000
    assert session.state.bullets


def test_a_pinned_result_is_not_masked() -> None:
    session = opened()
    built = char_builder(Budgets(dynamic_tokens=20_000), policy=price_policy("every_turn", kept_steps=1))
    session.append(user("Find out."))
    session.append(call("c0", name="look"))
    session.append(result("c0", LONG), pin="soft")
    for step in range(1, 6):
        session.append(call(f"c{step}", name="look"))
        session.append(result(f"c{step}", LONG))
        envelope = built.build(session)
    assert envelope.render("openai-chat")["messages"][2]["content"] == LONG


def test_a_policy_by_name_weighs_the_model_s_prices() -> None:
    named = EnvelopeBuilder("claude-sonnet-4-5", policy="ski_rental").policy
    assert named.name == "ski_rental/1 keep=8"
    assert EnvelopeBuilder("gpt-4o", policy="threshold").policy == EnvelopeBuilder("gpt-4o").policy


def test_one_call_may_be_built_under_another_policy() -> None:
    session, _ = grown("never", 9, then=LONG)
    built = char_builder(Budgets(dynamic_tokens=100_000), selector=None)
    assert not built.build(session).reports
    assert built.build(session, policy=price_policy("every_turn", kept_steps=1)).reports
    assert built.policy.name.startswith("deep-oldest-first")


@pytest.mark.parametrize(
    ("name", "more", "told"),
    [
        pytest.param("ski", {}, "no policy named 'ski'; known: threshold, ski_rental, never", id="name"),
        pytest.param("never", {"kept_steps": 0}, "kept_steps=0: expected a whole number of steps", id="no floor"),
        pytest.param("never", {"kept_steps": True}, "kept_steps=True: expected", id="a truth value"),
        pytest.param("every_n", {"every_steps": 1.5}, "every_steps=1.5: expected", id="a part of a step"),
        pytest.param("every_n", {"every_steps": "x" * 99}, "every_steps='xxx", id="a text"),
    ],
)
def test_what_is_no_policy_is_refused(name: Any, more: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told.replace("(", r"\(")):
        price_policy(name, **more)


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
    budgets = Budgets(dynamic_tokens=24_000, compact_to_fraction=to, recall_fraction=0)
    built = char_builder(budgets, policy=price_policy("middle_out"), selector=None)
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


def test_a_call_s_selection_log_names_what_it_was_shown() -> None:
    session, envelopes = grown("every_turn", 9, kept_steps=4, then=LONG)
    log = phase_log(session, envelopes[-1].dynamic, "every_turn")
    assert (log.selection_type, log.strategy) == ("intra_phase", "every_turn")
    assert (log.full_history_size, log.context_size, log.masked_count) == (19, 19, 5)
    assert log.anchor_refs == ("§1", "§18", "§19")
    assert log.selected_refs == ("§12", "§13", "§14", "§15", "§16", "§17")
    lines = [f"[text result, 600 characters, §{ordinal}]" for ordinal in (3, 5, 7, 9, 11)]
    assert log.tokens_saved == sum(600 - len(line) for line in lines)
    assert {(c.ref, c.in_, c.why) for c in log.candidates} >= {("§2", False, "masked"), ("§12", True, "whole")}
    assert phase_log(session, envelopes[-1].dynamic, "every_turn") == log


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
