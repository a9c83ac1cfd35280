"""What is told of results: JUnit that a parser reads, Markdown that nothing breaks, a history that loses nothing."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from ctxsteward.evals import result_history as history
from ctxsteward.evals.result_formats import junit, markdown
from ctxsteward.schemas import InputError

from ..suites.made import made, played

GREEN = made(played(0, 10, 10), played(1, 9, 10))
RED = made(played(0, 3, 10, stale=2), played(1, 9, 10), played(2, 0, 0, error="ValueError: \x00 & <"))


def test_junit_has_a_case_a_gate_and_one_for_what_broke_off() -> None:
    root = Xml.fromstring(junit([GREEN, RED]))
    assert {name: root.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "5", "failures": "2", "errors": "1",
    }  # fmt: skip
    cases = [(case.get("name"), [child.tag for child in case]) for case in root[1].iter("testcase")]
    assert cases == [
        ("shown at least 0.9", ["failure"]), ("stale at most 0", ["failure"]), ("made/ci-2", ["error"]),
    ]  # fmt: skip
    failure = root[1].find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "0.6 is not at least 0.9"
    assert failure.text is not None
    assert failure.text.splitlines()[0] == "made/ci-0, turn 0: not shown: '�[31m| <b>'"
    properties = {one.get("name"): one.get("value") for one in root[1].iter("property")}
    assert (properties["unknown"], properties["shown"]) == ("unscored", "0.6")


def test_markdown_names_what_failed_and_cannot_be_broken_by_what_was_found() -> None:
    page = markdown([RED], {})
    assert page.startswith("# Context evals: failed\n\nNot all of 2 gates passed; 3 scenarios, 180 turns.\n")
    assert "| shown | 60 % | 30 % to 90 % | 20 | ❌ at least 0.9 |  |" in page
    assert "A suite \\| of \\<made\\> figures." in page
    assert "- `made/ci-2` broke off: ValueError: \x00 & \\<" in page
    widths = {line.count("|") - line.count("\\|") for line in page.splitlines() if line.startswith("|")}
    assert widths == {7}
    assert "No gates were asked for" in markdown([made(played(0, 1, 1), gates={})], {})


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


def test_a_run_is_compared_with_the_newest_of_its_suite_and_split() -> None:
    other = GREEN.model_copy(update={"split": "docs"})
    assert history.before((GREEN, other), RED) == GREEN
    assert history.before((other,), RED) is None
    found = history.difference(RED, GREEN)
    moved = {one.metric: (one.before, one.now, one.moved, one.worse) for one in found.changes}
    assert moved == {
        "shown": (0.95, 0.6, True, True), "stale": (0, 2, True, True), "cost": (0.5, 0.5, False, False),
        "unknown": (None, None, False, False),
    }  # fmt: skip
    assert (found.newly_failed, found.newly_passed) == (("shown at least 0.9", "stale at most 0"), ())
    assert history.difference(GREEN, RED).newly_passed == ("shown at least 0.9", "stale at most 0")


def test_a_trend_is_the_newest_runs_of_a_figure_oldest_first() -> None:
    runs = [made(played(0, n, 30)) for n in range(30)]
    values = history.trend(runs, "made", "ci", "shown")
    assert len(values) == history.TREND
    assert values[-1] == pytest.approx(29 / 30, abs=1e-6)
    assert history.trend(runs, "made", "ci", "unknown") == (None,) * history.TREND
    assert history.trend(runs, "other", "ci", "shown") == ()


def test_markdown_says_how_far_a_figure_moved_since_the_run_before() -> None:
    page = markdown([RED], {"made": history.difference(RED, GREEN)})
    assert "-35 points worse" in page
    assert "+2 worse" in page
