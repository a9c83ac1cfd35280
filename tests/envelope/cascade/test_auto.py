"""`mode: auto`: anchors always, the rest as ranked and as fits, all of it accounted for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope.recall.selection import Ranking, ScoredOriginal, SelectionRequest
from ctxsteward.envelope.testing import WordOverlap
from ctxsteward.evals.prompt_cost import openai_faults
from ctxsteward.schemas import Finding
from ctxsteward.schemas.message import Wire
from ctxsteward.schemas.publish import validate

from ...examples import examples
from .runs import answers, calls, cascade, context, kinds, past_of, rendered, says, texts, user

Rows = list[tuple[str | None, Wire]]

ROWS: Rows = [
    ("a", user("the red pot")),
    ("a", calls("look", "x")),
    ("a", answers("error: no pot", "x")),
    ("a", says("a is done")),
    ("b", user("the blue cup")),
    ("b", calls("look", "y")),
    ("b", answers("a cup", "y")),
    ("b", says("b is done")),
]


def automatic(**auto: Any) -> Any:
    return cascade(
        {"name": "a"}, {"name": "b"}, {"name": "c", "instructions": "pot", "context": {"mode": "auto", **auto}}
    )


class Ranked:
    """A selector that says what it is told, and remembers what it was asked."""

    def __init__(self, name: str, *numbers: int) -> None:
        self.__name__, self._numbers = name, numbers
        self.asked: list[SelectionRequest] = []

    def __call__(self, request: SelectionRequest) -> Sequence[ScoredOriginal]:
        self.asked.append(request)
        return [ScoredOriginal(number, 1.0 / place) for place, number in enumerate(self._numbers, 1)]


SEMANTIC = {"strategy": "semantic"}


def test_anchors_are_the_input_the_previous_output_and_callouts() -> None:
    shown = context(
        automatic(selection=SEMANTIC), "c", past_of(ROWS, pins=[1]), input={"x": 1}, selector=Ranked("semantic")
    )

    assert texts(shown) == [
        '[Original Input]:\n{\n  "x": 1\n}',
        "[Output from b]:\nb is done",
        "[Conversation from a]:",
        "the red pot",
    ]
    assert (shown.log.anchor_refs, shown.log.selected_refs) == (("§1", "§8"), ())
    assert [message.wire["role"] for message in shown.messages] == ["user"] * 4


def test_errors_are_anchored_where_asked_for_and_come_with_their_call() -> None:
    only_errors = automatic(anchors={"include": ["errors"]}, selection=SEMANTIC)
    shown = context(only_errors, "c", past_of(ROWS), input={"x": 1}, selector=Ranked("semantic"))

    assert [message.numbers for message in shown.messages] == [(), (2,), (3,)]
    assert openai_faults({"messages": rendered(shown, "openai-chat")}) == []


def test_a_phase_that_is_opened_again_sees_its_own_newest_steps() -> None:
    rows: Rows = [("c", user("task")), *((("c"), says(f"step {n}")) for n in range(1, 6)), ("a", says("x"))]
    shown = context(
        automatic(anchors={"window": 2, "include": []}, selection=SEMANTIC),
        "c",
        past_of(rows),
        selector=Ranked("semantic"),
    )
    assert texts(shown) == ["[Conversation from c]:", "step 4", "step 5"]


def test_a_selected_message_brings_its_tool_group_and_keeps_the_order_of_the_past() -> None:
    shown = context(automatic(selection=SEMANTIC), "c", past_of(ROWS), selector=Ranked("semantic", 7, 1, 7, 99, -1))

    assert [number for message in shown.messages for number in message.numbers] == [8, 1, 6, 7]
    assert shown.log.selected_refs == ("§1", "§6", "§7")
    assert openai_faults({"messages": rendered(shown, "openai-chat")}) == []
    validate("selection_log", shown.log.model_dump(mode="json"))


def test_the_selector_is_asked_for_the_phases_task() -> None:
    selector = Ranked("semantic")
    context(automatic(selection={"max_tokens": 300}), "c", past_of(ROWS, pins=[5]), selector=selector)
    (request,) = selector.asked

    assert (request.query.text, request.last, request.visible) == ("pot", 7, frozenset((5, 8)))
    assert request.entry(3).ordinal == 3
    assert request.message(3).text == ""
    assert request.budget_tokens < 300  # less the anchors


def test_from_limits_the_candidates_and_exclude_takes_out_of_them() -> None:
    def candidates(**auto: Any) -> set[int]:
        selector = Ranked("semantic", *range(1, 9))
        shown = context(
            automatic(selection=SEMANTIC, anchors={"include": []}, **auto), "c", past_of(ROWS), selector=selector
        )
        return {number for message in shown.messages for number in message.numbers}

    assert candidates() == set(range(1, 9))
    assert candidates(**{"from": ["a"]}) == {1, 2, 3, 4}
    assert candidates(**{"from": ["*"]}, exclude=["a"]) == {5, 6, 7, 8}
    assert candidates(**{"from": [{"phase": "a", "if": "state.no"}, "b"]}) == {5, 6, 7, 8}


def test_the_heuristic_weighs_rank_recency_and_callouts() -> None:
    weights = {"recency_weight": 0.2, "keyword_weight": 0.7, "callout_weight": 0.1}
    example = automatic(selection=weights, anchors={"include": []})
    shown = context(example, "c", past_of(ROWS, pins=[5]), selector=WordOverlap())
    by_ref = {candidate.ref: candidate for candidate in shown.log.candidates}

    assert by_ref["§1"].signals == {"recency": 0.125, "keyword": 1.0, "callout": 0.0}
    assert by_ref["§1"].score == pytest.approx(0.2 * 0.125 + 0.7)
    assert by_ref["§5"].signals == {"recency": 0.625, "keyword": 0.0, "callout": 1.0}
    assert shown.log.candidates[0].ref == "§1"


def test_limits_hold_and_what_did_not_fit_is_logged() -> None:
    few = automatic(selection={**SEMANTIC, "max_messages": 2}, anchors={"include": []})
    small = automatic(selection={**SEMANTIC, "max_tokens": 60}, anchors={"include": []})
    by_count = context(few, "c", past_of(ROWS), selector=Ranked("semantic", 1, 2, 3, 4, 5))
    by_tokens = context(small, "c", past_of(ROWS), selector=Ranked("semantic", 2, 1, 4))

    assert by_count.log.selected_refs == ("§1", "§4")
    assert [(c.ref, c.in_, c.why) for c in by_tokens.log.candidates] == [
        ("§1", True, "ranked, and it fits"),
        ("§4", True, "ranked, and it fits"),
        ("§2", False, "no room"),
    ]
    assert by_tokens.tokens <= 60


def test_anchors_alone_over_the_limit_leave_no_room_and_say_so() -> None:
    selector = Ranked("semantic", 1, 2, 3)
    shown = context(automatic(selection={"max_tokens": 10}), "c", past_of(ROWS), input={"x": 1}, selector=selector)

    assert kinds(shown) == ["anchors_over_budget"]
    assert texts(shown) == ['[Original Input]:\n{\n  "x": 1\n}', "[Output from b]:\nb is done"]
    assert (selector.asked, shown.log.selected_refs) == ([], ())


def test_without_a_selector_the_words_rank() -> None:
    shown = context(automatic(selection={"max_messages": 1}), "c", past_of(ROWS))
    assert (kinds(shown), shown.log.strategy) == ([], "heuristic")
    assert shown.log.selected_refs == ("§1",)  # it names the pot, and is older than all others
    assert {candidate.why for candidate in shown.log.candidates[1:]} == {"over max_messages"}


def broken(request: SelectionRequest) -> Sequence[ScoredOriginal]:
    raise RuntimeError("no model")


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param(broken, id="raises"),
        pytest.param(lambda request: [ScoredOriginal(1, float("nan"))], id="no-score"),
        pytest.param(lambda request: [ScoredOriginal(1, 1.0, {"luck": float("inf")})], id="no-signal"),
        pytest.param(lambda request: [1, 2], id="no-scores-at-all"),
        pytest.param(lambda request: None, id="nothing"),
    ],
)
def test_a_selector_that_fails_leaves_the_ranking_to_the_words_and_says_so(selector: Any) -> None:
    shown = context(automatic(selection={"strategy": "hybrid"}), "c", past_of(ROWS), selector=selector)
    words = context(automatic(), "c", past_of(ROWS))

    assert (kinds(shown), shown.log.strategy) == (["selection_failed"], "heuristic")
    assert shown.findings[0].field == "context.selection.strategy"
    assert shown.wires == words.wires


def test_what_a_ranking_says_of_itself_is_in_the_log_and_the_findings() -> None:
    def told(request: SelectionRequest) -> Ranking:
        gone = Finding(kind="selection_fell_back", field="selector", text="the model is away")
        return Ranking(scored=(ScoredOriginal(7, 1.0),), strategy="semantic", reasoning="it says cup", findings=(gone,))

    shown = context(automatic(selection={"strategy": "hybrid"}), "c", past_of(ROWS), selector=told)
    assert (shown.log.strategy, shown.log.reasoning) == ("semantic", "it says cup")
    assert [(f.kind, f.field, f.text) for f in shown.findings] == [
        ("selection_fell_back", "context.selection.strategy", "the model is away")
    ]


def test_of_a_phase_that_is_no_source_a_selector_is_shown_nothing() -> None:
    selector = Ranked("semantic")
    context(automatic(**{"from": ["b"]}, anchors={"include": []}), "c", past_of(ROWS), selector=selector)
    assert selector.asked[0].visible == {1, 2, 3, 4}


def test_another_strategy_than_the_configured_one_is_noted() -> None:
    shown = context(automatic(selection={"strategy": "llm"}), "c", past_of(ROWS), selector=Ranked("heuristic", 1))
    assert kinds(shown) == ["strategy_replaced"]


def test_a_phase_that_retains_its_output_only_is_no_candidate_otherwise() -> None:
    example = cascade(
        {"name": "a", "context_retention": "output_only"},
        {"name": "c", "context": {"mode": "auto", "selection": SEMANTIC, "anchors": {"include": ["callouts"]}}},
    )
    shown = context(example, "c", past_of(ROWS[:4], pins=[1]), selector=Ranked("semantic", 1, 2, 3, 4))
    assert [number for message in shown.messages for number in message.numbers] == [4]


@settings(max_examples=examples(80))
@given(
    ranking=st.lists(st.integers(-2, 12), max_size=12),
    max_tokens=st.integers(1, 400),
    max_messages=st.integers(1, 9),
    pins=st.lists(st.integers(1, 8), max_size=3, unique=True),
)
def test_any_selection_is_valid_within_its_limits_and_repeats_nothing(
    ranking: list[int], max_tokens: int, max_messages: int, pins: list[int]
) -> None:
    example = automatic(selection={**SEMANTIC, "max_tokens": max_tokens, "max_messages": max_messages})
    shown = context(example, "c", past_of(ROWS, pins=pins), input={"x": 1}, selector=Ranked("semantic", *ranking))
    numbers = [number for message in shown.messages for number in message.numbers]

    assert len(numbers) == len(set(numbers))
    assert {8, *pins} <= set(numbers)
    assert len(shown.log.selected_refs) <= max_messages
    if "anchors_over_budget" in kinds(shown):
        assert shown.log.selected_refs == ()
    else:
        assert shown.tokens <= max_tokens
    assert openai_faults({"messages": rendered(shown, "openai-chat")}) == []
