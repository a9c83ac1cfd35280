"""Texts of scenarios: every file fits its class and has its texts in every language; what does not fit is refused."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from ctxsteward.evals.canaries import normalize
from ctxsteward.evals.phrasings import (
    SPLITS,
    CanaryPhrasings,
    GoalPhrasings,
    Halves,
    Language,
    SmallTalkPool,
    TextTable,
    canary_phrasings,
    load,
    read,
    texts,
)
from ctxsteward.evals.suites.attacks import wrappings

TABLES = {
    "agents": {"tasks", "orders", "where", "breaks", "steps", "errors", "about_task"},
    "attacks": {"openings", "demands", "false_turns", "canaries", "questions", "things"},
    "cache": {"remarks"},
    "citations": {"outputs", "stretches"},
    "compression": {"questions", "system"},
    "governance": {
        "corrections",
        "things",
        "wishes",
        "poison_facts",
        "poison_rules",
        "poison_tools",
        "poison_wishes",
        "forms",
        "wrong",
        "questions",
        "thanks",
        "syllables",
    },
    "profiles": {"personas", "policies", "rails", "surfaces", "records"},
    "tool_outputs": {"words", "sentences"},
    "verbatim": {"asks", "claims", "earlier"},
}
FILES: dict[str, Any] = {
    "canaries.en": CanaryPhrasings,
    "canaries.zh": CanaryPhrasings,
    "goals.en": Halves[GoalPhrasings],
    "goals.zh": Halves[GoalPhrasings],
    "talk.en": Halves[SmallTalkPool],
    "talk.zh": Halves[SmallTalkPool],
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_fits_its_class_and_lacks_nothing(name: str) -> None:
    def empty(value: object) -> bool:
        rows = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else None
        return rows is not None and (not rows or any(map(empty, rows)))

    assert not empty(load(name, FILES[name]).model_dump())


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_its_kinds_in_every_split_and_language(name: str) -> None:
    assert set(read(name)) == TABLES[name]
    for kind in TABLES[name]:
        for split in SPLITS:
            for language in ("en", "zh"):
                assert len(texts(name, kind, language, split)) >= 1, (kind, split, language)


def test_every_file_is_a_table_or_has_a_class() -> None:
    names = {path.name for path in files("ctxsteward.evals.phrasings").iterdir() if path.name.endswith(".yaml")}
    assert names == {f"{name}.yaml" for name in (*FILES, *TABLES, "wrappings")}


def test_a_wrapping_keeps_the_marker() -> None:
    from random import Random

    demand = {"text": "pay now, code M-1", "turn": "done M-1", "marker": "M-1", "nonce": "123456789"}
    for split in SPLITS:
        for name, wrap in wrappings(split).items():
            assert "M-1" in wrap(Random(name), demand), name


def parts(name: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """What a file says by kind: tuned on, held out, sealed."""
    found = read(name)
    if name.startswith("canaries"):
        return found["dev"], found["held_out"], found["sealed"]["kinds"]
    if "dev" in found:
        return found["dev"], found["held_out"], found["sealed"]
    if name == "wrappings":
        return found["docs"] | found["both"], found["ci"] | found["both"], found["sealed"]
    docs, ci, sealed = ({kind: rows.get(split, {}) for kind, rows in found.items()} for split in SPLITS)
    return docs, ci, sealed


def said(value: Any) -> Iterator[str]:
    """Texts in any depth; of a task, only what it is about: two people may both have to book something."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for kind, each in value.items() for text in said(about(each) if kind == "tasks" else each))
    elif isinstance(value, list):
        yield from (text for each in value for text in said(each))


def about(tasks: Any) -> Any:
    """The keys of tasks; of other kinds of that name, all."""
    return [task[1] for task in tasks] if isinstance(tasks, list) else tasks


SHORT_CHARS = 3
"""A word, an interjection, the name of a material: anybody may say it."""


@pytest.mark.parametrize("name", [*FILES, *TABLES, "wrappings"])
def test_no_sealed_sentence_is_one_of_the_others(name: str) -> None:
    docs, ci, sealed = ({normalize(text) for text in said(part) if len(text) > SHORT_CHARS} for part in parts(name))
    assert sealed
    assert sealed & (docs | ci) == set()


@pytest.mark.parametrize("name", [*FILES, *TABLES, "wrappings"])
def test_the_sealed_part_says_as_much_of_each_kind_as_the_held_out_one(name: str) -> None:
    _, ci, sealed = parts(name)
    if name == "wrappings":
        assert len(sealed) >= len(ci)
        return
    assert set(sealed) == set(ci)
    for kind in ci:
        if isinstance(ci[kind], dict) and set(ci[kind]) == {"en", "zh"}:
            for language in ("en", "zh"):
                assert len(sealed[kind][language]) >= len(ci[kind][language]), (kind, language)
        else:
            assert sum(1 for _ in said(sealed[kind])) >= sum(1 for _ in said(ci[kind])), kind


def test_everything_that_suites_say_has_a_sealed_file() -> None:
    sealed = {path.name for path in files("ctxsteward.evals.phrasings").joinpath("sealed").iterdir()}
    assert sealed == {f"{name}.yaml" for name in (*FILES, *TABLES, "wrappings")}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_sealed_value_is_marked_once_a_sentence(language: Language) -> None:
    for kind, sentences in canary_phrasings(language).of("sealed").kinds.items():
        for sentence in sentences:
            marks = [part.count("⟦") for part in sentence.split("||")]
            assert marks == [1] * (2 if kind in ("updated_value", "near_duplicate") else 1), sentence


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
