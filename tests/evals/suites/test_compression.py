"""The compression suite: what it makes, and that each figure can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxsteward.evals.canaries import KINDS, TypedCanary
from ctxsteward.evals.prompt_cost import Prices
from ctxsteward.evals.subjects.ours import EnvelopeDialogue
from ctxsteward.evals.suites import compression
from ctxsteward.evals.suites.compression import CanaryQuestion, judge, late_cpu
from ctxsteward.evals.suites.kit.play import CallMoment, ConversationCost, EndMoment, PrefixJudge, accounted, play
from ctxsteward.evals.suites.kit.suite import Draw, PlayCounts, Score, Setup, drawn
from ctxsteward.evals.suites.results import play_one
from ctxsteward.schemas.message import Wire

from .doubles import Short, Wrong, asked, called, dialogue, quotes_all

EN = Short("compression", "docs", 2)


def test_a_summarizer_that_follows_no_update_is_seen() -> None:
    assert play_one(EN, Wrong(shrink=quotes_all, selector=None)).tallies["updates_followed"].mean < 1


def judged(said: str, canary: TypedCanary) -> dict[str, float]:
    planted = (canary, "zzz")
    ask = CanaryQuestion(metric="canaries_shown", after=2, question="Anything else?", wants=(), planted=(planted,))
    moment = asked(ask, {"role": "user", "content": said}, {"role": "assistant", "content": "Fine."})
    return {score.metric: score.value for score in judge(planted, moment) if score.value is not None}


RULE = TypedCanary(kind="safety_rule", value="never restart it", ordinals=(1,))
PORT = TypedCanary(kind="updated_value", value="5433", ordinals=(1, 2), stale=("5432",))


@pytest.mark.parametrize(
    ("said", "canary", "wanted"),
    [
        ("Please never restart it.", RULE, {"canaries_shown": 1, "safety_rules": 1, "stale": 0, "reachable": 1}),
        ("Please restart it.", RULE, {"canaries_shown": 0, "safety_rules": 0, "stale": 0, "reachable": 1}),
        ("The port is 5432.", PORT, {"canaries_shown": 0, "stale": 1, "updates_followed": 1, "reachable": 1}),
        ("It was 5432, it is 5433.", PORT, {"canaries_shown": 1, "stale": 0, "updates_followed": 1, "reachable": 1}),
        (
            "The port is 5433.",
            TypedCanary(kind="number", value="5433", ordinals=(7,)),
            {"canaries_shown": 1, "stale": 0, "reachable": 0},
        ),
    ],
    ids=["shown", "not shown", "old alone", "old beside new", "nothing leads there"],
)
def test_each_value_can_be_missed(said: str, canary: TypedCanary, wanted: dict[str, float]) -> None:
    assert judged(said, canary) == wanted


def test_messages_of_compactions_that_nobody_recorded_are_not_accounted_for_and_cpu_is_read_from_the_clock() -> None:
    scenario, ticks, built = compression.make(EN), iter(range(10_000)), 0
    stage = PlayCounts(cpu_seconds=lambda: float(next(ticks)))
    for moment in play(scenario, Setup(), stage, dynamic_tokens=1_000):
        built += isinstance(moment, CallMoment)
        if isinstance(moment, EndMoment):
            assert isinstance(moment.dialogue, EnvelopeDialogue)
            moment.dialogue.lost.clear()
            scores = [score.value for score in accounted("accounted", moment) if score.value is not None]
    assert len(scores) == len(scenario.messages)
    assert 0 < sum(scores) < len(scores)
    assert stage.build_cpu_seconds == [1.0] * built


def calls(*texts: str) -> list[CallMoment]:
    """A call behind each user text of one session."""
    by, said, made = dialogue(selector=None), [], []
    for text in texts:
        for wire in ({"role": "user", "content": text}, {"role": "assistant", "content": "Fine."}):
            if wire["role"] == "assistant":
                made.append(called(by, list(said)))
            by.add(wire)
            said.append(wire)
    return made


def test_bytes_that_change_before_the_turn_are_seen() -> None:
    prefix = PrefixJudge()
    same, other = calls("one", "two", "three"), calls("one", "2", "three")
    scores = [score for call in (same[0], same[1], other[2]) for score in prefix.read("prefix_stable", call)]
    assert [score.value for score in scores if score.value is not None] == [1, 0]


def test_bytes_that_change_cost_more() -> None:
    def ratio(rows: list[CallMoment]) -> float:
        costs = ConversationCost(Setup().counter(), Prices(block_tokens=1))
        said: list[Wire] = []
        for call in rows:
            said.append({"role": "user", "content": "one two three " * 9})
            costs.read(replace(call, wires=list(said)))
        return costs.ratio

    same, other = (calls(*(f"{label} {n} " * 20 for n in range(4))) for label in ("one", "two"))
    assert ratio([same[0], other[1], same[2], other[3]]) > 1.5 * ratio(same)


def test_late_builds_are_held_against_early_ones() -> None:
    assert late_cpu([9.0, *[1.0] * 15, *[3.0] * 5], 2) == Score("late_cpu_ratio", 3.0)
    assert late_cpu([1.0] * 30, 0).value is None
    assert late_cpu([1.0] * 12, 1).value is None


def test_every_kind_is_planted_where_it_says() -> None:
    for split in ("docs", "ci"):
        draws = list(drawn("compression", split, 4))
        made = [compression.make(draw) for draw in draws]
        for draw, one in zip(draws, made, strict=True):
            assert one.turns == draw.turns
            last = one.asks[-1]
            assert isinstance(last, CanaryQuestion)
            assert {canary.kind for canary, _ in last.planted} == set(KINDS)
            for canary, _ in last.planted:
                assert canary.value in str(one.messages[canary.ordinals[-1] - 1]["content"])


def test_results_outgrow_the_budget_and_messages_come_again() -> None:
    for draw in [*drawn("compression", "ci", 4)][1:]:
        scenario = compression.make(draw)
        results = [len(m["content"]) for m in scenario.messages if m["role"] == "tool"]
        assert max(results) > 4 * compression.TOKENS_A_TURN * draw.turns
        said = [m["content"] for m in scenario.messages if m["role"] == "user"]
        assert len(set(said)) < len(said)


def test_the_envelope_is_about_a_fifth_of_the_conversation() -> None:
    counter = Setup().builder().counter
    for draw in (Draw("compression", "docs", number) for number in (2, 5)):
        scenario = compression.make(draw)
        tokens = sum(counter.text(str(message["content"])) for message in scenario.messages)
        assert 0.08 < compression.TOKENS_A_TURN * draw.turns / tokens < 0.3
