"""What a cascade does with input that is wrong, hostile or damaged: refused by place, or done without, and said.

What is refused when the text is read is in `test_reading`; what templates refuse in `test_templates`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import pytest

from ctxsteward.envelope.cascade import open_phase, read_run
from ctxsteward.envelope.cascade.auto_selection import Strategies
from ctxsteward.envelope.cascade.past import PhaseLog, read_past
from ctxsteward.envelope.testing import HashEmbedder, memory_store
from ctxsteward.schemas import InputError, StoreError
from ctxsteward.schemas.errors import InvalidCascade

from .runs import CHARS, cascade, context, kinds, past_of, rendered, says, texts, user

ROWS = [("a", user("where is the red pot?")), ("a", says("the red pot is in the shed")), ("a", says("soup is ready"))]

# -- refused ---------------------------------------------------------------------------------------------------


RAISES = {
    "divides by nothing": "1 / state.zero",
    "asks a text for its length squared": "state.word * state.word",
    "counts without end": "range(1000000000)|list",
    "reaches out by a key it computed": "{{ state[state.dunder] }}",
    "works for ever": "{% for a in range(999) %}{% for b in range(999) %}{{ a * b }}{% endfor %}{% endfor %}",
}


@pytest.mark.parametrize("case", RAISES)
@pytest.mark.parametrize("mode", ["explicit", "auto"])
def test_a_condition_that_raises_opens_no_phase_and_names_its_place(case: str, mode: str) -> None:
    source = {"phase": "a", "include": ["output"], "if": RAISES[case]}
    example = cascade({"name": "a"}, {"name": "b", "context": {"mode": mode, "from": [source]}})
    state = {"zero": 0, "word": "w", "dunder": "__class__"}
    store = memory_store()
    open_phase(store, example, "a", run="r", counter=CHARS).session.append(says("done"), phase="a")
    started = time.process_time()

    with pytest.raises(InvalidCascade, match=r"phases\[1\]\.context\.from\[0\]\.condition: "):
        open_phase(store, example, "b", run="r", state=state, counter=CHARS)
    assert time.process_time() - started < 2
    assert len(store.session("r.b", counter=CHARS)) == 0
    with pytest.raises(InvalidCascade):
        context(example, "b", past_of(ROWS), state=state)


# -- a model that chooses --------------------------------------------------------------------------------------


def selecting(instructions: str = "Find the red pot.", **selection: Any) -> Any:
    settings = {"mode": "auto", "anchors": {"from_phases": [], "include": []}, "selection": selection}
    return cascade({"name": "a"}, {"name": "b", "instructions": instructions, "context": settings})


REPLIES: dict[str, object] = {
    "an id that is not on the menu": {"selected": ["§99"], "reasoning": ""},
    "its own words for an id": {"selected": ["the second"], "reasoning": ""},
    "nothing selected": {"selected": [], "reasoning": "none fits"},
    "nothing": "",
    "null": "null",
    "prose": "I would show the second message, because it names the pot.",
    "prose around its answer": 'Sure! {"selected": ["§2"], "reasoning": ""}',
    "another shape": {"ids": ["§2"]},
    "numbers": {"selected": [2], "reasoning": ""},
    "a list": ["§2"],
    "deeply nested": "[" * 50_000,
    "a megabyte": "x" * 1_000_000,
}


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("strategy", ["llm", "hybrid"])
def test_a_model_that_answers_anything_else_changes_nothing_that_is_sent(reply: str, strategy: str) -> None:
    answer = REPLIES[reply]
    ask = lambda prompt: answer if isinstance(answer, str) else json.dumps(answer)  # noqa: E731
    without = Strategies(embedder=HashEmbedder(64))
    with_model = Strategies(embedder=HashEmbedder(64), models={"m": ask})
    stand_in = selecting(strategy="heuristic" if strategy == "llm" else "hybrid")
    shown = context(selecting(strategy=strategy), "b", past_of(ROWS), strategies=with_model)
    expected = context(stand_in, "b", past_of(ROWS), strategies=without)

    for provider in ("openai-chat", "anthropic"):
        assert rendered(shown, provider) == rendered(expected, provider)
    assert (shown.log.strategy, kinds(shown)) == (expected.log.strategy, ["selection_fell_back"])
    assert len(shown.findings[0].text) < 500


# -- embeddings and indexes ------------------------------------------------------------------------------------


class Misshapen(HashEmbedder):
    """Says it has 8 dimensions and answers with others."""

    def __init__(self, vector: Sequence[float]) -> None:
        super().__init__(8)
        self._answer = list(vector)

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._answer for _ in texts]


@pytest.mark.parametrize(
    "vector", [[1.0] * 7, [1.0] * 9, [], [float("nan")] * 8], ids=["7 of 8", "9 of 8", "none", "no numbers"]
)
@pytest.mark.parametrize("strategy", ["semantic", "hybrid"])
def test_embeddings_of_another_dimension_leave_the_ranking_to_the_words(vector: list[float], strategy: str) -> None:
    shown = context(selecting(strategy=strategy), "b", past_of(ROWS), strategies=Strategies(embedder=Misshapen(vector)))
    words = context(selecting(), "b", past_of(ROWS))

    assert rendered(shown, "openai-chat") == rendered(words, "openai-chat")
    assert (shown.log.strategy, kinds(shown)) == ("heuristic", ["selection_fell_back"])


def test_cards_that_cannot_be_read_cost_the_summaries_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> object:
        raise StoreError("no route to the store")

    monkeypatch.setattr("ctxsteward.envelope.cards.cards_of", gone)
    ask = lambda prompt: '{"selected": ["§2"], "reasoning": ""}'  # noqa: E731
    strategies = Strategies(models={"m": ask}, cards="leading")
    shown = context(selecting(strategy="llm"), "b", past_of(ROWS), strategies=strategies)

    assert texts(shown) == ["[Conversation from a]:", "the red pot is in the shed"]
    assert (shown.log.strategy, kinds(shown)) == ("llm", ["summaries_missing"])


# -- tenants ---------------------------------------------------------------------------------------------------


def test_a_run_of_another_tenant_is_not_seen() -> None:
    store, example = memory_store(), cascade({"name": "a"}, {"name": "b", "context": {"from": ["a"]}})
    acme = open_phase(store, example, "a", run="r", tenant="acme", counter=CHARS)
    acme.session.append(says("the vault code is 4711"), phase="a")

    for mode in ({"from": ["a"]}, {"mode": "auto"}):
        other = cascade({"name": "a"}, {"name": "b", "instructions": "vault code?", "context": mode})
        opened = open_phase(store, other, "b", run="r", tenant=f"zeta{len(mode)}{mode.get('mode', '')}", counter=CHARS)
        assert opened.context.wires == []
        assert kinds_of(opened) <= {"source_not_run"}
    assert read_run(store, example, "r", tenant="zeta").messages == ()


def kinds_of(opened: Any) -> set[str]:
    return {finding.kind for finding in opened.context.findings}


def test_logs_of_two_tenants_are_no_past() -> None:
    store = memory_store()
    sessions = [store.session("s", tenant=tenant, counter=CHARS) for tenant in ("acme", "zeta")]
    with pytest.raises(InputError, match="logs of tenants 'acme', 'zeta'; a past is one tenant's"):
        read_past(sessions[0], PhaseLog(sessions[1], 1, "a"))


# -- questions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["heuristic", "semantic", "llm", "hybrid"])
@pytest.mark.parametrize(
    "filler", ["pot ", "word ", "锅", "?", "\n"], ids=["hits", "words", "chinese", "signs", "lines"]
)
def test_a_question_of_a_megabyte_costs_no_more_than_a_long_one(strategy: str, filler: str) -> None:
    prompts: list[str] = []
    ask = lambda prompt: prompts.append(prompt) or '{"selected": ["§2"], "reasoning": ""}'  # type: ignore[func-returns-value]  # noqa: E731
    strategies = Strategies(embedder=HashEmbedder(64), models={"m": ask})
    example = selecting("Where is the red pot? {{ input.pasted }}", strategy=strategy, similarity_threshold=0.0)
    pasted = filler * (1_000_000 // len(filler.encode()))
    past = past_of(ROWS)
    started = time.process_time()
    shown = context(example, "b", past, input={"pasted": pasted}, strategies=strategies, state={})

    assert time.process_time() - started < 3
    assert "the red pot is in the shed" in texts(shown)
    assert max(map(len, prompts), default=0) < 5_000


@pytest.mark.parametrize("question", ["???", "🙂🙂", "the and of it", "—", "   "])
@pytest.mark.parametrize("strategy", ["heuristic", "semantic", "llm", "hybrid"])
def test_a_question_without_words_takes_the_newest_that_fit(question: str, strategy: str) -> None:
    ask = lambda prompt: "no idea"  # noqa: E731
    strategies = Strategies(embedder=Misshapen([0.0] * 8), models={"m": ask})
    shown = context(selecting(question, strategy=strategy, max_messages=1), "b", past_of(ROWS), strategies=strategies)

    assert texts(shown) == ["[Conversation from a]:", "soup is ready"]
    assert shown.log.strategy == "heuristic"
    assert (kinds(shown) == []) is (strategy == "heuristic")
