"""The typed-canary eval, and the extractive summarizer held to it through a small compaction loop."""

from __future__ import annotations

import os
from collections import Counter
from typing import NamedTuple

import pytest

from benchmarks.canary_chats import CanaryScenario, found_in, scenario, stale_in, stories
from ctxsteward.evals.canaries import KINDS, Half, TypedCanary, normalize
from ctxsteward.evals.phrasings import Language
from ctxsteward.schemas import Bullet, Message, SummarizerInput
from ctxsteward.schemas.summary import SourceMessage
from ctxsteward.summarizers import extractive

WINDOW_FRACTION = 0.2
BULLET_SHARE = 0.6
SEEDS = range(6) if os.environ.get("CTXSTEWARD_SOAK") == "1" else range(1)


class Window(NamedTuple):
    text: str
    rounds: int


def tokens(text: str) -> int:
    """About an o200k count: 4.3 ASCII characters or 1.3 others a token."""
    ascii_chars = sum(char < "\x80" for char in text)
    return int(ascii_chars / 4.3 + (len(text) - ascii_chars) * 0.75) + 1


def cost(item: SourceMessage) -> int:
    message = item.message
    texts = [
        message.text,
        *(r.text for r in message.tool_results),
        *(c.arguments for c in message.tool_calls),
    ]
    return 4 + tokens("".join(texts))


def weight(bullets: list[Bullet]) -> int:
    return sum(tokens(bullet.text) + 5 for bullet in bullets)


def compacted(conversation: CanaryScenario) -> Window:
    """Append message by message; at 80 % of a fifth of all tokens, shorten all but the newest messages."""
    items = [SourceMessage(ref=f"§{i + 1}", message=Message.from_wire(w)) for i, w in enumerate(conversation.messages)]
    budget = int(WINDOW_FRACTION * sum(map(cost, items)))
    share = int(BULLET_SHARE * budget)
    standing: list[Bullet] = []
    window: list[SourceMessage] = []
    rounds = 0
    for item in items:
        window.append(item)
        if weight(standing) + sum(map(cost, window)) <= 0.8 * budget or len(window) < 7:
            continue
        rounds, keep = rounds + 1, 2
        while sum(map(cost, window[-keep - 1 :])) < 0.15 * budget:
            keep += 1
        source = SummarizerInput(
            messages=tuple(window[:-keep]),
            standing=tuple(standing),
            visible=tuple(window[-keep:]),
            count_tokens=tokens,
        )
        summary = extractive(source, budget_tokens=share)
        assert weight(list(summary.bullets)) <= share
        standing = [b for i, b in enumerate(standing) if i not in summary.superseded] + list(summary.bullets)
        while weight(standing) > share:
            standing.remove(min(standing, key=lambda bullet: bullet.value))
        window = window[-keep:]
    return Window("\n".join([*(b.text for b in standing), *(item.message.text for item in window)]), rounds)


@pytest.mark.parametrize("split", ["dev", "held_out"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_canaries_survive_repeated_compaction_to_a_fifth(language: Language, split: Half) -> None:
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for seed in SEEDS:
        conversation = scenario(seed, language, split=split)
        window = compacted(conversation)
        assert window.rounds >= 5
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
    assert window.rounds >= 5
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
