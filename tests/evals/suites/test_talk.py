"""Small talk: seeded, varied, of the split's own phrasings, silent about what it is told to avoid."""

from __future__ import annotations

from itertools import combinations

import pytest

from ctxsteward.evals.canaries import normalize
from ctxsteward.evals.suites.catalogue import suite_named
from ctxsteward.evals.suites.kit.suite import Draw, drawn
from ctxsteward.evals.suites.kit.talk import SmallTalk

SUITES = ("goal-continuity", "compression", "agents")
MOST_SHARED = 0.15
"""Of the user texts of the shorter of two scenarios."""


def said(draw: Draw, count: int = 300) -> list[str]:
    talk = SmallTalk.of(draw)
    return [make() for _ in range(count) for make in (talk.user, talk.assistant)]


def test_the_same_draw_says_the_same_and_hardly_repeats_itself() -> None:
    draw = Draw("agents", "docs", 3)
    texts = said(draw)
    assert texts == said(draw)
    longer = [text for text in texts if len(text) > 20]
    assert len(set(longer)) > 0.9 * len(longer)


def test_what_must_not_be_shown_is_not_said() -> None:
    for language in (0, 1):
        draw = Draw("agents", "docs", language)
        words = ["oven", "queued", "ferry", "running", "烤箱", "渡轮", "INFO"]
        talk = SmallTalk.of(draw, avoid=words)
        texts = [normalize(make()) for _ in range(100) for make in (talk.user, talk.assistant)]
        assert not [text for text in texts if any(normalize(word) in text for word in words)]


@pytest.mark.parametrize(
    "suite",
    SUITES,
)
def test_no_two_scenarios_are_alike(suite: str) -> None:
    for split in ("docs", "ci"):
        made = [suite_named(suite).make(draw) for draw in drawn(suite, split, 6)]  # type: ignore[arg-type]
        texts = [
            {str(m["content"]) for m in one.messages if m["role"] == "user" and len(str(m["content"])) > 12}
            for one in made
        ]
        shared = max(len(a & b) / min(len(a), len(b)) for a, b in combinations(texts, 2))
        assert shared < MOST_SHARED
        shapes = {tuple(message["role"] for message in one.messages) for one in made}
        assert len(shapes) == len(made)
