"""`hybrid`: both lists count, a missing one does not, and the fusion is no worse than words alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ctxsteward.envelope.recall.heuristic import Heuristic
from ctxsteward.envelope.recall.selection import FELL_BACK, Ranking, ScoredOriginal, SelectionRequest, fell_back
from ctxsteward.envelope.recall.strategies import Fusion, Hybrid, fused

from ...needs import PUBLIC_DATA
from .chinese import sample
from .sessions import INSTALLED, LOCOMO, request_for

needs_weights = pytest.mark.skipif(not INSTALLED, reason="the extra `dense` is not installed")
rankings = st.lists(st.integers(1, 30), unique=True).map(lambda ordinals: ranked(*ordinals))


def ranked(*ordinals: int) -> Ranking:
    return Ranking(scored=tuple(ScoredOriginal(ordinal, 1.0) for ordinal in ordinals), strategy="fixed")


def fixed(*ordinals: int):  # type: ignore[no-untyped-def]
    return lambda request: ranked(*ordinals)


def failing(request: SelectionRequest) -> Sequence[ScoredOriginal]:
    raise ConnectionError("no route")


def order(ranking: Sequence[ScoredOriginal]) -> list[int]:
    return [scored.ordinal for scored in ranking]


def test_what_both_lists_hold_high_comes_before_what_one_holds_higher() -> None:
    ranking = Hybrid(fixed(1, 2, 3), fixed(4, 2, 5))(request_for("parrot"))

    assert order(ranking) == [2, 1, 3, 4, 5]
    assert (ranking.strategy, ranking.findings) == ("hybrid", ())


def test_a_score_is_the_sum_of_its_signals_and_first_in_both_scores_one() -> None:
    best, second = Hybrid(fixed(2, 1), fixed(2))(request_for("parrot"))

    assert best.score == pytest.approx(1.0)
    assert set(best.signals) == {"lexical", "dense"}
    assert second.score == pytest.approx(sum(second.signals.values()))
    assert set(second.signals) == {"lexical"}


@given(words=rankings, near=rankings)
def test_each_original_of_either_list_is_in_the_fusion_once(words: Ranking, near: Ranking) -> None:
    found = fused(words, near, Fusion())

    assert sorted(order(found)) == sorted({*order(words), *order(near)})
    assert [scored.score for scored in found] == sorted((scored.score for scored in found), reverse=True)


@given(words=rankings, near=rankings)
def test_a_list_of_weight_zero_does_not_change_the_order_of_the_other(words: Ranking, near: Ranking) -> None:
    held = set(order(words))

    assert [n for n in order(fused(words, near, Fusion(dense=0))) if n in held] == order(words)


def replaced(request: SelectionRequest) -> Ranking:
    return fell_back("semantic", ranked(3, 2, 1), "the weights are gone")


@pytest.mark.parametrize(
    ("dense", "reason"),
    [
        pytest.param(failing, "ConnectionError: no route", id="raises"),
        pytest.param(replaced, "the weights are gone", id="stood-aside-for-words: they must not count twice"),
    ],
)
def test_without_a_dense_list_the_words_stand_and_a_finding_says_so(dense, reason: str) -> None:  # type: ignore[no-untyped-def]
    request = request_for("grey parrot named Ziggy")
    ranking = Hybrid(Heuristic(every_turn=True), dense)(request)

    assert ranking.scored == tuple(Heuristic(every_turn=True)(request))
    assert ranking.strategy == "heuristic"
    assert [finding.kind for finding in ranking.findings] == [FELL_BACK]
    assert reason in ranking.findings[0].text


def test_a_model_chooses_from_the_fusion() -> None:
    prompts: list[str] = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return json.dumps({"selected": ["§5"], "reasoning": "it names the parrot"})

    ranking = Hybrid(fixed(1, 2), fixed(5), ask)(request_for("whose parrot?"))

    assert (order(ranking), ranking.strategy, ranking.reasoning) == ([5], "hybrid", "it names the parrot")
    assert [line[:2] for line in prompts[0].splitlines() if line.startswith("§")] == ["§1", "§2", "§5"]


def test_a_model_that_fails_leaves_the_fusion() -> None:
    request = request_for("whose parrot?")
    ranking = Hybrid(fixed(1, 2), fixed(5), lambda prompt: "Certainly!")(request)

    assert ranking.scored == Hybrid(fixed(1, 2), fixed(5))(request).scored
    assert (ranking.strategy, [finding.kind for finding in ranking.findings]) == ("hybrid", [FELL_BACK])


# -- recall with the weights that are shipped --------------------------------------------------------------


@cache
def embedder() -> Any:
    from ctxsteward.envelope.recall.dense import Multilingual

    return Multilingual()


def recall(data: Path, *budgets_tokens: int) -> list[tuple[float, float]]:
    """Mean recall by words alone and by both, at each budget."""
    from ctxsteward.envelope.recall.dense import Semantic
    from ctxsteward.evals.recall import measure

    words = measure(data, selector=Heuristic, budgets_tokens=budgets_tokens)
    both = measure(
        data, selector=lambda: Hybrid(Heuristic(every_turn=True), Semantic(embedder())), budgets_tokens=budgets_tokens
    )
    return [(one.mean, other.mean) for one, other in zip(words, both, strict=True)]


def test_the_chinese_conversation_is_long_and_asks_much() -> None:
    document = sample()
    turns = [turn for key, turns in document["conversation"].items() if isinstance(turns, list) for turn in turns]

    assert len(turns) >= 150
    assert len({turn["text"] for turn in turns}) > 0.98 * len(turns)
    assert len(document["qa"]) >= 40


@needs_weights
def test_embeddings_find_much_in_chinese_that_words_miss(tmp_path: Path) -> None:
    data = tmp_path / "chinese.json"
    data.write_text(json.dumps([sample()]), encoding="utf-8")
    (words, both), (words_at_2000, both_at_2000) = recall(data, 500, 2000)

    assert both >= words + 9
    assert both >= 65
    assert both_at_2000 >= words_at_2000 + 9


@needs_weights
@pytest.mark.skipif(not LOCOMO.exists(), reason=PUBLIC_DATA)
def test_embeddings_find_more_of_a_real_conversation_than_words(tmp_path: Path) -> None:
    data = tmp_path / "one.json"
    data.write_text(json.dumps(json.loads(LOCOMO.read_bytes())[:1]), encoding="utf-8")
    ((words, both),) = recall(data, 900)

    assert both >= words
    assert both >= 81
