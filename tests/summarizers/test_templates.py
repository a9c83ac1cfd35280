"""The prompts: seven sections, guardrails, slots that are filled once."""

from __future__ import annotations

import pytest

from ctxsteward.summarizers.templates import fill_template, strip_analysis, template_text


def test_the_history_template_has_seven_sections_and_the_guardrails() -> None:
    text = template_text("summarize_history")
    for heading in (
        "User intent",
        "Technical context",
        "Files and code",
        "Errors and fixes",
        "Key decisions",
        "Pending tasks",
        "Current state",
    ):
        assert f"**{heading}**" in text
    assert "Do not alter quotes" in text
    assert "Cite the source" in text
    assert "Do not mention that a summary happened" in text


def test_slots_are_filled_once_and_not_expanded_again() -> None:
    text = fill_template("summarize_tool_log", tool="ls", ref="§12", log="costs $budget_tokens", budget_tokens=90)
    assert "costs $budget_tokens" in text
    assert "At most" not in text
    assert "at most 90 tokens" in text


def test_an_empty_slot_is_an_error() -> None:
    with pytest.raises(KeyError, match="standing"):
        fill_template("summarize_history", history="x", budget_tokens=100)


def test_an_unknown_slot_is_an_error() -> None:
    with pytest.raises(ValueError, match="no slot"):
        fill_template("summarize_tool_log", tool="ls", ref="§1", log="", budget_tokens=1, extra="x")


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("<analysis>a</analysis>b", "b"),
        ("a<ANALYSIS>b", "a"),
        ("<analysis>\n1\n</analysis>\n\n2", "2"),
        ("a", "a"),
    ],
)
def test_analysis_is_stripped(reply: str, kept: str) -> None:
    assert strip_analysis(reply) == kept
