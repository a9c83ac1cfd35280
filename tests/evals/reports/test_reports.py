"""What is told of results: JUnit that a parser reads, Markdown that nothing breaks, a history that loses nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from ctxsteward.evals import result_history as history
from ctxsteward.evals.result_formats import junit, markdown
from ctxsteward.evals.suites.gates import Gate
from ctxsteward.schemas import InputError
from ctxsteward.schemas.eval_result import EvalResult

from ..suites.made import made, played

GREEN = made(played(0, 10, 10), played(1, 9, 10))
RED = made(played(0, 3, 10, stale=2), played(1, 9, 10), played(2, 0, 0, error="ValueError: \x00 & <"))
WORSE = made(played(0, 3, 10, stale=2), played(1, 9, 10))


@pytest.mark.parametrize("allowed", [False, True])
def test_an_undecided_gate_is_told_as_such_in_every_form(allowed: bool) -> None:
    gates = {
        "shown": (Gate(rule="at_least", bound=0.9, allow_undecided=allowed),),
        "unknown": (Gate(rule="above", bound=0.5, allow_undecided=allowed),),
    }
    found = made(played(0, 6, 10), gates=gates)
    assert found.passed == allowed
    page = markdown([found])
    assert page.startswith("# Context evals: undecided\n\n0 of 2 gates passed, 1 undecided, 1 unscored; 1 scenarios")
    assert "## ❔ made" in page
    assert "| ❔ at least 0.9 |" in page
    assert "| ➖ above 0.5 |" in page
    assert "**shown** undecided: 0.6 is not at least 0.9, but one scenario leaves it between" in page
    root = Xml.fromstring(junit([found]))
    assert {name: root.get(name) for name in ("tests", "failures", "skipped", "errors")} == {
        "tests": "2",
        "failures": str(int(not allowed)),
        "skipped": str(1 + allowed),
        "errors": "0",
    }
    cases = [case[0] for case in root.iter("testcase")]
    assert [case.tag for case in cases] == ["skipped" if allowed else "failure", "skipped"]
    assert (cases[0].get("message") or "").startswith("undecided: 0.6 is not at least 0.9")


def test_in_a_result_of_an_earlier_version_only_a_failed_gate_fails_the_run() -> None:
    row = json.loads(made(played(0, 6, 10), gates={"shown": (Gate(rule="at_least", bound=0.9),)}).model_dump_json())
    del row["gates"][0]["fails_run"]
    (gate,) = EvalResult.model_validate(row).gates
    assert (gate.verdict, gate.fails_run) == ("undecided", False)


def test_junit_has_a_case_a_gate_and_one_for_what_broke_off() -> None:
    root = Xml.fromstring(junit([GREEN, RED]))
    assert {name: root.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "5",
        "failures": "2",
        "errors": "1",
    }
    cases = [(case.get("name"), [child.tag for child in case]) for case in root[1].iter("testcase")]
    assert cases == [
        ("shown at least 0.9 over 2 scenarios", ["failure"]),
        ("stale at most 0", ["failure"]),
        ("made/ci-2", ["error"]),
    ]
    failure = root[1].find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "0.6 is not at least 0.9 over 2 scenarios"
    assert failure.text is not None
    assert failure.text.splitlines()[0] == "made/ci-0, turn 0: not shown: '�[31m| <b>'"
    properties = {one.get("name"): one.get("value") for one in root[1].iter("property")}
    assert (properties["unknown"], properties["shown"]) == ("unscored", "0.6")


def test_markdown_names_what_failed_and_cannot_be_broken_by_what_was_found() -> None:
    page = markdown([RED])
    assert page.startswith("# Context evals: failed\n\n0 of 2 gates passed, 2 failed; 3 scenarios, 180 turns.\n")
    assert "| shown | 60 % | 13.16 % to 93.69 % | 20 |  | ❌ at least 0.9 over 2 scenarios | 24 points off |  |" in page
    assert "| ❌ at most 0 | a miss in 42 % of scenarios |" in page
    assert "A suite \\| of \\<made\\> figures." in page
    assert "- `made/ci-2` broke off: ValueError: \x00 & \\<" in page
    widths = {line.count("|") - line.count("\\|") for line in page.splitlines() if line.startswith("|")}
    assert widths == {9}
    assert "No gates were asked for" in markdown([made(played(0, 1, 1), gates={})])


def test_a_history_is_appended_to_and_read_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "history.jsonl"
    assert history.read(path) == ()
    history.append(path, [GREEN])
    history.append(path, [RED, GREEN])
    assert history.read(path) == (GREEN, RED, GREEN)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{}", "history.jsonl:2: not a result (suite: Field required)"),
        ("not JSON", "history.jsonl:2: not a result (the line: Invalid JSON"),
        ('{"schema_version": 2}', "history.jsonl:2: not a result (schema_version: Input should be 1)"),
    ],
)
def test_a_line_that_is_no_result_is_named_and_the_file_stays(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(f"{GREEN.model_dump_json()}\n{line}\n")
    before = path.read_bytes()
    with pytest.raises(InputError) as caught:
        history.read(path)
    assert told in str(caught.value)
    assert path.read_bytes() == before


def test_a_history_that_is_a_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a readable history"):
        history.read(tmp_path)
    with pytest.raises(InputError, match="cannot be written"):
        history.append(tmp_path, [GREEN])


def test_a_run_is_compared_with_the_newest_that_asked_the_same() -> None:
    other = GREEN.model_copy(update={"split": "docs"})
    assert history.before((GREEN, other), WORSE) == GREEN
    assert history.before((other,), WORSE) is None


OTHERS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("another size", {"scenarios": 26}, ("scenarios: 26 and 2",)),
    ("others of the same size", {"scenario_ids": ("made/ci-0", "made/ci-7")}, ("scenarios: 1 others and 1 in both",)),
    (
        "another budget",
        {"setup": GREEN.setup | {"budgets.dynamic_tokens": 900}},
        ("budgets.dynamic_tokens: 900 and not set",),
    ),
    ("another summarizer", {"setup": GREEN.setup | {"summarizer": "own"}}, ("summarizer: own and extractive",)),
    (
        "two things",
        {"setup": GREEN.setup | {"tokenizer": "x"}, "scenarios": 4},
        ("tokenizer: x and o200k_base", "scenarios: 4 and 2"),
    ),
]


@pytest.mark.parametrize(("changes", "differs"), [row[1:] for row in OTHERS], ids=[row[0] for row in OTHERS])
def test_a_run_that_asked_something_else_is_not_compared_and_it_is_told_what(
    changes: dict[str, Any], differs: tuple[str, ...]
) -> None:
    other = GREEN.model_copy(update=changes)
    assert history.before((other,), WORSE) is None
    assert history.incomparable((other,), WORSE) == differs
    assert history.before((GREEN, other), WORSE) == GREEN
    assert history.trend((GREEN, other, WORSE), WORSE) == (GREEN, WORSE)
    assert f"Not compared: the last run differs in {'; '.join(differs).replace('_', chr(92) + '_')}." in markdown(
        [WORSE], (other,)
    )


def test_another_product_or_revision_asked_the_same_and_an_empty_history_differs_in_nothing() -> None:
    other = GREEN.model_copy(update={"product": "ctxsteward 9", "revision": "abc", "when": "2027-01-01"})
    assert history.before((other,), WORSE) == other
    assert history.incomparable((), WORSE) == ()


def earlier_version(result: EvalResult) -> str:
    """A result as versions wrote it that knew no verdicts, distinct things or values by scenario."""
    document = json.loads(result.model_dump_json())
    for name in ("scenario_ids", "by_scenario"):
        del document[name]
    for metric in document["metrics"]:
        del metric["distinct"], metric["distinct_value"]
        metric["method"] = metric["method"] and "bootstrap"
    for gate in document["gates"]:
        del gate["verdict"], gate["detects"], gate["promise"]
    return json.dumps(document)


def test_a_history_of_an_earlier_version_is_read_and_compared_with(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(f"{earlier_version(GREEN)}\n{earlier_version(WORSE)}\n")
    green, worse = history.read(path)
    assert [gate.verdict for gate in (*green.gates, *worse.gates)] == ["passed", "passed", "failed", "failed"]
    assert history.before((green,), WORSE) == green
    assert history.before((green, worse, WORSE), worse) == green


def test_a_trend_is_the_newest_runs_of_a_figure_oldest_first() -> None:
    runs = [made(played(0, n, 30)) for n in range(30)]
    found = history.trend(runs, runs[3])
    assert found == tuple(runs[-history.TREND :])
    assert history.values(found, "shown")[-1] == pytest.approx(29 / 30, abs=1e-6)
    assert history.values(found, "unknown") == (None,) * history.TREND
    assert history.trend(runs, made(played(0, 1, 1), played(1, 1, 1))) == ()


def test_markdown_says_how_far_a_figure_moved_since_the_run_before() -> None:
    page = markdown([WORSE], (GREEN,))
    assert "-35 points worse" in page
    assert "+2 worse" in page
