"""Texts of scenarios: every file fits its class and has its texts in every language; what does not fit is refused."""

from __future__ import annotations

from importlib.resources import files

import pytest
from pydantic import ValidationError

from ctxsteward.evals.phrasings import (
    CanaryPhrasings,
    GoalPhrasings,
    Halves,
    Phrasings,
    SmallTalkPool,
    StoryTexts,
    load,
)
from ctxsteward.evals.suites.agents import AgentTexts
from ctxsteward.evals.suites.attacks import AttackTexts
from ctxsteward.evals.suites.governance_scripts import GovernanceTexts
from ctxsteward.evals.suites.kit.profiles import ProfileTexts
from ctxsteward.evals.suites.tool_outputs import ToolOutputTexts

FILES: dict[str, type[Phrasings]] = {
    "agents": AgentTexts, "attacks": AttackTexts, "canaries.en": CanaryPhrasings, "canaries.zh": CanaryPhrasings,
    "goals.en": Halves[GoalPhrasings], "goals.zh": Halves[GoalPhrasings], "governance": GovernanceTexts,
    "profiles": ProfileTexts, "stories": StoryTexts, "talk.en": Halves[SmallTalkPool],
    "talk.zh": Halves[SmallTalkPool], "tool_outputs": ToolOutputTexts,
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_fits_its_class_and_lacks_nothing(name: str) -> None:
    def empty(value: object) -> bool:
        rows = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else None
        return rows is not None and (not rows or any(map(empty, rows)))

    texts = load(name, FILES[name])
    assert isinstance(texts, StoryTexts) or not empty(texts.model_dump())  # a value of a story may have no older form


def test_every_file_has_a_class() -> None:
    names = {path.name for path in files("ctxsteward.evals.phrasings").iterdir() if path.name.endswith(".yaml")}
    assert names == {f"{name}.yaml" for name in FILES}


def test_a_file_of_another_class_is_refused() -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        load("attacks", GovernanceTexts)
