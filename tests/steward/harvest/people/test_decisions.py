"""Decisions: what was settled, and what is still open or somebody else's."""

from __future__ import annotations

import pytest

from .said import said_en, said_zh
from .talk import found, strengths, talk, task


@pytest.mark.parametrize("text", [*said_en.DECISIONS, *said_zh.DECISIONS])
def test_what_was_settled_is_found(text: str) -> None:
    assert strengths(text, "decisions")


@pytest.mark.parametrize("sets", [pytest.param(said_en, id="English"), pytest.param(said_zh, id="Chinese")])
def test_nearly_all_are_strict(sets: object) -> None:
    texts = getattr(sets, "DECISIONS")  # noqa: B009
    assert sum("strict" in strengths(text, "decisions") for text in texts) / len(texts) >= 0.9


@pytest.mark.parametrize("text", [*said_en.NOT_DECISIONS, *said_zh.NOT_DECISIONS])
def test_what_is_open_is_no_decision(text: str) -> None:
    assert found(text, "decisions") == []


@pytest.mark.parametrize(
    ("replayed", "reach"),
    [
        pytest.param(talk("We decided to use Postgres."), "session", id="in talk"),
        pytest.param(talk("We decided to use Postgres.", project="ledger"), "project", id="of a project"),
        pytest.param(talk("I've decided to learn Greek."), "user", id="one's own"),
        pytest.param(task("I've decided to take the early one."), "session", id="in a task"),
        pytest.param(talk("我决定学希腊语。"), "user", id="自己的"),
    ],
)
def test_a_decision_reaches_as_far_as_its_words(replayed: object, reach: str) -> None:
    assert {seen.reach for seen in found(replayed, "decisions")} == {reach}  # type: ignore[arg-type]
