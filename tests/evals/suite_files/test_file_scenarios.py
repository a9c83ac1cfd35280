"""Playing a suite file: each figure moves with what it is about, and simple strategies fail where they should."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ctxsteward.envelope import Budgets
from ctxsteward.evals.subjects import Conversation
from ctxsteward.evals.subjects.port import Strategy
from ctxsteward.evals.subjects.registry import subject_named
from ctxsteward.evals.suite_files.file_scenarios import play_job, with_room
from ctxsteward.evals.suite_files.suite_reader import load_suite
from ctxsteward.evals.suites.kit.suite import Setup
from ctxsteward.evals.suites.results import played
from ctxsteward.schemas.eval_result import EvalResult
from ctxsteward.schemas.message import Wire

from ..subjects.talks import FunctionSubject

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "support-desk.yaml"
HEAD = "schema_version: 1\nname: desk\nabout: What was said is shown.\n"
TALK = """\
scenarios:
  - id: talk
    messages:
      - {role: user, content: The code is A-1 and the town is Ghent.}
      - {role: assistant, content: Noted.}
      - {role: user, content: Now the code is B-2.}
      - {role: assistant, content: Changed.}
    asks:
"""


SAID = [
    {"role": "user", "content": "The code is A-1 and the town is Ghent."},
    {"role": "assistant", "content": "Noted."},
    {"role": "user", "content": "Now the code is B-2."},
    {"role": "assistant", "content": "Changed."},
]


def figures(text: str, folder: Path, strategy: Strategy | None = None) -> dict[str, float | None]:
    (folder / "s.yaml").write_text(text, encoding="utf-8")
    suite = load_suite(folder / "s.yaml")
    setup = Setup(subject=None if strategy is None else FunctionSubject("own", strategy))
    return {metric.name: metric.value for metric in result(suite.path, setup).metrics}


def result(path: Path, setup: Setup) -> EvalResult:
    suite = load_suite(path)
    return played(suite.eval_suite, suite.jobs, setup, workers=1, gates=suite.gates, when="2026-11-23", play=play_job)


def only(*places: int) -> Strategy:
    """Sends these messages, from 1, and the question."""

    def strategy(conversation: Conversation) -> Sequence[Wire]:
        said = list(conversation.messages)
        asked = [] if said[-1] in SAID else said[-1:]
        return [*(said[place - 1] for place in places if place <= len(said) - len(asked)), *asked]

    return strategy


def test_ours_holds_the_gates_of_the_example_and_simple_strategies_do_not() -> None:
    failed = {
        name: [gate.metric for gate in result(EXAMPLE, Setup(subject=subject_named(name))).gates if not gate.passed]
        for name in ("ours", "everything", "window", "newest-tokens", "bm25", "random")
    }
    assert failed == {
        "ours": [],
        "everything": ["within_budget"],
        "window": ["orders_shown", "within_budget"],
        "newest-tokens": ["orders_shown"],
        "bm25": ["valid"],
        "random": ["valid"],
    }


ALL = "      - {after: 4, question: Code and town?, wants: [B-2, Ghent], avoids: [A-1], of: [1, 3]"


def test_all_that_is_wanted_must_be_shown(tmp_path: Path) -> None:
    assert figures(HEAD + TALK + ALL + "}", tmp_path)["shown"] == 1
    assert figures(HEAD + TALK + ALL + "}", tmp_path, only(3))["shown"] == 0


@pytest.mark.parametrize(("judge", "stale"), [("", 0), ("judge: {stale: always}\n", 1)])
def test_an_outdated_value_counts_alone_or_always(judge: str, stale: float, tmp_path: Path) -> None:
    assert figures(HEAD + judge + TALK + ALL + "}", tmp_path, only(1, 3))["stale"] == stale
    assert figures(HEAD + judge + TALK + ALL + "}", tmp_path, only(1))["stale"] == 1
    assert figures(HEAD + judge + TALK + ALL + "}", tmp_path, only(3))["stale"] == 0


@pytest.mark.parametrize(
    ("metric", "both", "one"),
    [
        ("{name: own, about: x}", 1, 0),
        ("{name: own, about: x, kind: mean}", 1, 0.5),
        ("{name: own, about: x, kind: count}", 0, 1),
        ("{name: own, about: x, better: lower}", 1, 0),
    ],
)
def test_a_figure_of_the_file_s_own_is_what_its_kind_says(metric: str, both: float, one: float, tmp_path: Path) -> None:
    text = f"{HEAD}metrics: [{metric}]\n{TALK}{ALL}, metric: own}}"
    assert figures(text, tmp_path, only(1, 3))["own"] == both
    assert figures(text, tmp_path, only(3))["own"] == one


def test_what_must_not_be_shown_does_not_count_as_shown(tmp_path: Path) -> None:
    text = f"{HEAD}metrics: [{{name: leaks, about: x, better: lower}}]\n{TALK}{ALL}, metric: leaks}}"
    assert figures(text, tmp_path, only(2))["shown"] is None


def test_a_subject_without_references_and_search_is_unscored_where_sources_are_asked_for(tmp_path: Path) -> None:
    assert figures(HEAD + TALK + ALL + "}", tmp_path)["reachable"] == 1
    assert figures(HEAD + TALK + ALL + "}", tmp_path, only(1, 2, 3, 4))["reachable"] is None


def test_a_cached_price_is_the_file_s(tmp_path: Path) -> None:
    """A strategy that rewrites its prefix costs more the cheaper a cached token is."""
    long = TALK.replace("is Ghent.", "is Ghent " + "as you know " * 1_000)
    free, full = (
        figures(f"{HEAD}judge: {{cached_price: {price}}}\n{long}{ALL}}}", tmp_path, only(3, 2, 1))["cost_ratio"]
        for price in ("0.0", "1.0")
    )
    assert free is not None
    assert full is not None
    assert 1 < full < 1.25  # what is written anew costs 1.25, what is read again 1
    assert free > 1.5


def test_a_long_system_prompt_has_room_unless_the_team_set_one(tmp_path: Path) -> None:
    text = HEAD + TALK.replace("    messages:", f"    system: {'Be kind to people. ' * 200}\n    messages:") + ALL + "}"
    assert figures(text, tmp_path)["shown"] == 1
    scenario = load_suite(tmp_path / "s.yaml").jobs[0]
    team = Setup(budgets=Budgets(system_tokens=50))
    assert with_room(team, scenario) is team
    assert with_room(Setup(), scenario).budgets.system_tokens > 800
    broken = result(tmp_path / "s.yaml", team)
    assert list(broken.errors) == ["desk/talk"]
    assert not broken.passed


def test_the_budget_is_the_scenario_s_then_the_suite_s(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(HEAD + "budget_tokens: 70\n" + TALK + ALL + "}", encoding="utf-8")
    assert load_suite(tmp_path / "s.yaml").jobs[0].budget_tokens == 70
    text = (
        HEAD + "budget_tokens: 70\n" + TALK.replace("    messages:", "    budget_tokens: 90\n    messages:") + ALL + "}"
    )
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    assert load_suite(tmp_path / "s.yaml").jobs[0].budget_tokens == 90
