"""The typed-canary eval, and the builder's window held to it through repeated compaction."""

from __future__ import annotations

import os
from collections import Counter
from typing import NamedTuple

import pytest

from benchmarks.canary_chats import CanaryScenario, found_in, scenario, stale_in, stories
from ctxsteward.envelope import Budgets, EnvelopeBuilder, load_tokenizer, open_store
from ctxsteward.envelope.render.text import section_text
from ctxsteward.envelope.tokens.tokenizer import count_message
from ctxsteward.evals.canaries import KINDS, Half, TypedCanary, normalize
from ctxsteward.evals.phrasings import Language
from ctxsteward.schemas import Message

WINDOW_FRACTION = 0.2
SEEDS = range(6) if os.environ.get("CTXSTEWARD_SOAK") == "1" else range(1)


class Window(NamedTuple):
    text: str
    compactions: int


def compacted(conversation: CanaryScenario) -> Window:
    """Build at each user turn and at the end, within a fifth of what was said, without recall."""
    tokenizer = load_tokenizer("o200k_base")
    size = sum(count_message(Message.from_wire(wire), tokenizer) for wire in conversation.messages)
    budgets = Budgets(dynamic_tokens=int(WINDOW_FRACTION * size), recall_fraction=0)
    builder = EnvelopeBuilder(tokenizer=tokenizer, budgets=budgets)
    with open_store("memory:") as store:
        session = store.session(conversation.name)
        compactions = 0
        for wire in conversation.messages:
            session.append(wire)
            if wire["role"] == "user":
                compactions += len(builder.build(session).reports)
        window = builder.build(session)
    return Window(section_text(window.section("dynamic").fragments), compactions + len(window.reports))


@pytest.mark.parametrize("split", ["dev", "held_out"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_canaries_survive_repeated_compaction_to_a_fifth(language: Language, split: Half) -> None:
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for seed in SEEDS:
        conversation = scenario(seed, language, split=split)
        window = compacted(conversation)
        assert window.compactions >= 5
        assert stale_in(conversation, window.text) == []
        found.update(canary.kind for canary in found_in(conversation, window.text))
        total.update(canary.kind for canary in conversation.canaries)
    assert found["safety_rule"] == total["safety_rule"]
    assert found.total() >= 0.95 * total.total(), {kind: (found[kind], total[kind]) for kind in total}


@pytest.mark.parametrize("story", stories(), ids=lambda story: story.name)
def test_canaries_of_handwritten_conversations_survive(story: CanaryScenario) -> None:
    window = compacted(story)
    found = found_in(story, window.text)
    missed = [canary for canary in story.canaries if canary not in found]
    assert window.compactions >= 5
    assert len(found) >= 0.85 * len(story.canaries), [canary.value for canary in missed]
    assert stale_in(story, window.text) == []
    assert [canary for canary in missed if canary.kind == "safety_rule"] == []


@pytest.mark.parametrize("split", ["dev", "held_out"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_scenario_plants_every_kind_where_it_says(language: Language, split: Half) -> None:
    conversation = scenario(7, language, split=split)
    assert 25 <= len(conversation.canaries) <= 40
    assert {canary.kind for canary in conversation.canaries} == set(KINDS)
    assert sum(message["role"] == "user" for message in conversation.messages) >= 100
    for canary in conversation.canaries:
        newest = conversation.messages[canary.ordinals[-1] - 1]["content"]
        assert canary.value in newest
        for stale in canary.stale:
            assert stale in conversation.messages[canary.ordinals[0] - 1]["content"]


def test_an_old_value_alone_is_stale_and_beside_the_new_one_is_not() -> None:
    canary = TypedCanary(kind="updated_value", value="45 days", stale=("30 days",), ordinals=(1, 2))
    conversation = CanaryScenario(name="x", messages=(), canaries=(canary,))
    assert stale_in(conversation, "it is 30 days") == [canary]
    assert stale_in(conversation, "it is 30 days\nnow 45  days") == []


def test_a_value_inside_a_longer_number_is_not_found() -> None:
    canary = TypedCanary(kind="number", value="432", ordinals=(1,))
    conversation = CanaryScenario(name="x", messages=(), canaries=(canary,))
    assert found_in(conversation, "port 5432") == []
    assert found_in(conversation, "1,432 items") == []
    assert found_in(conversation, "432 items") == [canary]


@pytest.mark.parametrize(("one", "other"), [("1,200 Units", "1200units"), ("５００元", "500元"), ("a\n b", "ab")])
def test_normalized_forms_agree(one: str, other: str) -> None:
    assert normalize(one) == normalize(other)
