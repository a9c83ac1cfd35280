"""The simple strategies: each does what it says, of any conversation."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.evals.subjects import Conversation, Prompt, Task, answers
from ctxsteward.evals.subjects.baselines import (
    HITS,
    KEPT_RESULTS,
    OMITTED,
    WINDOW_MESSAGES,
    Bm25Dialogue,
    OffloadDialogue,
    RandomDialogue,
    RecallDialogue,
    RetrievalDialogue,
    SummaryDialogue,
    everything,
    masking,
    newest_tokens,
    text_of,
    window,
)
from ctxsteward.evals.subjects.registry import BASELINES, subject_named
from ctxsteward.schemas.message import Wire

from ...examples import examples

TASK = Task("talk", 200)
WORDS = ("port", "shelf", "rust", "书架", "端口", "8443", "the", "moved", "\n", "“", 'a"')


def tokens(wire: Wire) -> int:
    """A token a word, and two for the message."""
    return 2 + len(text_of(wire).split())


@st.composite
def conversations(draw: st.DrawFn) -> list[Wire]:
    """Turns of a user's message, tool calls or none, and a reply; the last may be open."""
    texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join)
    said: list[Wire] = []
    for turn in range(draw(st.integers(1, 12))):
        said.append({"role": "user", "content": draw(texts)})
        if draw(st.booleans()):
            call = {"id": f"c{turn}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            said.append({"role": "assistant", "content": None, "tool_calls": [call]})
            said.append({"role": "tool", "tool_call_id": f"c{turn}", "content": draw(texts)})
        said.append({"role": "assistant", "content": draw(texts)})
    return said[: len(said) - draw(st.integers(0, 1))]


def heard(said: Sequence[Wire], budget_tokens: int = 200) -> Conversation:
    return Conversation(said, budget_tokens, tokens, TASK._replace(budget_tokens=budget_tokens))


def filled(kind: type[RecallDialogue], said: Sequence[Wire], budget_tokens: int = 200) -> RecallDialogue:
    dialogue = kind(TASK._replace(budget_tokens=budget_tokens), tokens)
    for wire in said:
        dialogue.add(wire)
    return dialogue


@settings(max_examples=examples(60))
@given(said=conversations(), budget_tokens=st.integers(5, 300))
@pytest.mark.parametrize("name", BASELINES)
def test_what_a_baseline_sends_was_said_or_is_its_own_and_reads_as_messages(
    name: str, said: list[Wire], budget_tokens: int
) -> None:
    subject = subject_named(name)
    assert subject is not None
    dialogue = subject.open(TASK._replace(budget_tokens=budget_tokens), tokens)
    for wire in said:
        answers.say(dialogue, wire)
    before = answers.ask(name, dialogue).messages
    sent = answers.ask(name, dialogue, "what of the port?").messages
    asked = {"role": "user", "content": "what of the port?"}
    assert sent[-1] == asked
    own = [wire for wire in sent if wire not in said and wire != asked]
    if name in ("masking", "offload"):
        assert all(wire["role"] == "tool" and len(str(wire["content"])) < 20 for wire in own)
    else:
        assert len(own) <= (name in ("bm25", "retrieval", "random", "summary"))
    assert answers.ask(name, dialogue).messages == before


@settings(max_examples=examples(150))
@given(said=conversations(), budget_tokens=st.integers(1, 300))
def test_the_newest_tokens_stay_within_the_budget_or_are_what_is_newest(said: list[Wire], budget_tokens: int) -> None:
    sent = list(newest_tokens(heard(said, budget_tokens)))
    assert sent == said[len(said) - len(sent) :]
    assert sent[0]["role"] == "user" or sent == said[-1:]
    assert sum(map(tokens, sent)) <= budget_tokens or sent == said[-1:]


@given(said=conversations())
@settings(max_examples=examples(30))
def test_everything_and_the_window_are_ends_of_what_was_said(said: list[Wire]) -> None:
    assert list(everything(heard(said)).messages) == said
    assert list(window(heard(said))) == said[-WINDOW_MESSAGES:]


@given(said=conversations())
@settings(max_examples=examples(60))
def test_masking_keeps_the_newest_result_and_the_shape_of_all(said: list[Wire]) -> None:
    sent = masking(heard(said)).messages
    assert [wire["role"] for wire in sent] == [wire["role"] for wire in said]
    results = [wire["content"] for wire in sent if wire["role"] == "tool"]
    assert results[:-1] == [OMITTED] * (len(results) - 1)
    assert [wire for wire in sent if wire["role"] != "tool"] == [wire for wire in said if wire["role"] != "tool"]
    assert results[-1:] == [wire["content"] for wire in said if wire["role"] == "tool"][-1:]


@given(said=conversations(), query=st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join))
@settings(max_examples=examples(60))
def test_an_index_that_grew_finds_what_a_fresh_one_finds(said: list[Wire], query: str) -> None:
    grown = Bm25Dialogue(TASK, tokens)
    for wire in said:
        grown.search(query)
        grown.prompt(query)
        grown.add(wire)
    fresh = filled(Bm25Dialogue, said)
    assert grown.search(query) == fresh.search(query)
    assert grown.prompt("which port?") == fresh.prompt("which port?")
    assert len(grown.search(query)) <= HITS


@pytest.mark.parametrize("query", ["", '"', "*", "said MATCH", "NEAR(", "AND", "'; DROP TABLE said", "端口", "§1"])
def test_no_query_is_a_fault_of_the_index(query: str) -> None:
    dialogue = filled(Bm25Dialogue, [{"role": "user", "content": "the 端口 is 8443"}])
    assert dialogue.search(query) == (["the 端口 is 8443"] if query == "端口" else [])


@pytest.mark.parametrize("kind", [Bm25Dialogue, RetrievalDialogue, RandomDialogue])
@given(said=conversations(), budget_tokens=st.integers(20, 300))
@settings(max_examples=examples(60))
def test_what_is_recalled_is_bounded_and_word_for_word(
    kind: type[RecallDialogue], said: list[Wire], budget_tokens: int
) -> None:
    sent = filled(kind, said, budget_tokens).prompt("which port is it, the 8443?").messages
    recalled = [wire for wire in sent if str(wire["content"]).startswith("Said earlier:")]
    for wire in recalled:
        rest = str(wire["content"]).removeprefix("Said earlier:\n")
        assert tokens(wire) <= budget_tokens * kind.recalled_fraction + 2 + 2
        rows = {f"{each['role']}: {text_of(each)}" for each in said}
        assert any(rest.startswith(row) for row in rows)
    newest = [wire for wire in sent if wire not in recalled]
    assert newest[:-1] == said[len(said) - len(newest) + 1 :]


def test_recall_stands_between_no_call_and_its_result() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    said: list[Wire] = [
        {"role": "user", "content": "the port is 8443"},
        {"role": "assistant", "content": "yes " * 80},
        {"role": "user", "content": "look for the port"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "8443"},
    ]
    sent = filled(Bm25Dialogue, said, 100).prompt().messages
    assert [wire["role"] for wire in sent] == ["user", "user", "assistant", "tool"]


@given(said=conversations(), budget_tokens=st.integers(20, 300))
@settings(max_examples=examples(60))
def test_a_summary_is_of_first_sentences_and_denies_its_losses(said: list[Wire], budget_tokens: int) -> None:
    dialogue = SummaryDialogue(TASK._replace(budget_tokens=budget_tokens), tokens)
    for wire in said:
        dialogue.add(wire)
    prompt: Prompt = dialogue.prompt()
    assert prompt.lost == frozenset()
    for line in (prompt.summary or "").splitlines():
        assert any(line.removeprefix("- ") in text_of(wire) for wire in said)
    assert (prompt.messages[0]["role"] == "system") is bool(prompt.summary)


def test_only_the_newest_references_of_offloaded_results_resolve() -> None:
    dialogue = OffloadDialogue(TASK, tokens)
    for n in range(KEPT_RESULTS + 3):
        dialogue.add({"role": "tool", "tool_call_id": f"c{n}", "content": f"page {n}"})
    references = dialogue.prompt().references
    found = {}
    for reference, place in references.items():
        assert answers.resolved(dialogue, reference) in (None, f"page {place - 1}")
        found[place] = answers.resolved(dialogue, reference) is not None
    assert found == {place: place > 3 for place in range(1, KEPT_RESULTS + 3)}
    assert answers.resolved(dialogue, "no number") is None
