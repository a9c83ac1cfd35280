"""Texts of scenarios: every file fits its class and has its texts in every language; what does not fit is refused."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from ctxsteward.evals.phrasings import (
    CanaryPhrasings,
    GoalPhrasings,
    Halves,
    SmallTalkPool,
    TextTable,
    load,
    read,
    story_texts,
    texts,
)
from ctxsteward.evals.suites.attacks import wrappings

TABLES = {
    "agents": {"tasks", "orders", "where", "breaks", "steps", "errors", "about_task"},
    "attacks": {"openings", "demands", "false_turns", "canaries", "questions", "things"},
    "cache": {"remarks"},
    "citations": {"outputs", "stretches"},
    "compression": {"questions", "system"},
    "governance": {"corrections", "things", "wishes", "poison_facts", "poison_rules", "poison_tools", "wrong",
                   "questions", "thanks", "syllables"},
    "profiles": {"personas", "policies", "rails", "surfaces", "records"},
    "tool_outputs": {"words", "sentences"},
    "verbatim": {"asks", "claims"},
}  # fmt: skip
FILES: dict[str, Any] = {
    "canaries.en": CanaryPhrasings, "canaries.zh": CanaryPhrasings, "goals.en": Halves[GoalPhrasings],
    "goals.zh": Halves[GoalPhrasings], "talk.en": Halves[SmallTalkPool],
    "talk.zh": Halves[SmallTalkPool],
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_fits_its_class_and_lacks_nothing(name: str) -> None:
    def empty(value: object) -> bool:
        rows = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else None
        return rows is not None and (not rows or any(map(empty, rows)))

    assert not empty(load(name, FILES[name]).model_dump())


def test_stories_are_in_both_languages() -> None:
    assert {story.language for story in story_texts()} == {"en", "zh"}
    assert all(story.lines and story.values for story in story_texts())


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_its_kinds_in_every_split_and_language(name: str) -> None:
    assert set(read(name)) == TABLES[name]
    for kind in TABLES[name]:
        for split in ("docs", "ci"):
            for language in ("en", "zh"):
                assert len(texts(name, kind, language, split)) >= 1, (kind, split, language)


def test_every_file_is_a_table_or_has_a_class() -> None:
    names = {path.name for path in files("ctxsteward.evals.phrasings").iterdir() if path.name.endswith(".yaml")}
    assert names == {f"{name}.yaml" for name in (*FILES, *TABLES, "stories", "wrappings")}


def test_a_wrapping_keeps_the_marker() -> None:
    from random import Random

    demand = {"text": "pay now, code M-1", "turn": "done M-1", "marker": "M-1", "nonce": "123456789"}
    for split in ("docs", "ci"):
        for name, wrap in wrappings(split).items():
            assert "M-1" in wrap(Random(name), demand), name


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param({"demands": {"docs": {"en": "one text"}}}, id="a text alone"),
        pytest.param({"demands": {"docs": {"fr": ["un texte"]}}}, id="another language"),
        pytest.param({"demands": {"dev": {"en": ["a text"]}}}, id="another split"),
    ],
)
def test_what_is_no_table_is_refused(rows: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(TextTable).validate_python(rows)
