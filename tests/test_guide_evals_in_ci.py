"""The guide to evals in CI tells the truth: its workflow runs, step by step, passes, and fails where a gate is missed.

The steps of ``docs/examples/context-evals.yml`` that are commands are run by the shell that a runner uses, in a
repository made up for it; the step that installs is what this environment was made by. Actions of others are not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from ruamel.yaml import YAML

from ctxsteward.evals import result_history as history
from ctxsteward.evals.subjects import Task, answers
from ctxsteward.evals.subjects.http import HttpDialogue
from ctxsteward.evals.suites.catalogue import NAMES, suite_named
from ctxsteward.evals.suites.gates import check, load_gates
from ctxsteward.schemas.eval_result import EvalResult

from .evals.subjects.servers import serving
from .shell import PROGRAM, Shell

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"
GUIDE = ROOT / "docs" / "guide-evals-in-ci.md"
EVERY = os.environ.get("CTXSTEWARD_SOAK") == "1"
"""Play all suites, as the workflow does unless told; else the shortest one: CI plays them all in a step of its own."""
PROFILE = "persona: {who: You help the people of a library.}\n"


def workflow() -> dict[str, Any]:
    document: dict[str, Any] = YAML(typ="safe").load((EXAMPLES / "context-evals.yml").read_text(encoding="utf-8"))
    return document


def steps() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = workflow()["jobs"]["evals"]["steps"]
    return found


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "ctxsteward"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    (tmp_path / "profile.yaml").write_text(PROFILE)
    (tmp_path / "context-gates.yaml").write_bytes((EXAMPLES / "context-gates.yaml").read_bytes())
    return tmp_path


def run(repository: Path, suite: str, scenarios: int) -> int:
    """Run the workflow's commands as a runner does: a step that fails ends the job, but for what always runs."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CTXSTEWARD_")} | {
        "PATH": f"{repository / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "SCENARIOS": str(scenarios),
        "SUITE": suite,
        "GITHUB_SHA": "4f2a9c1",
        "GITHUB_STEP_SUMMARY": str(repository / "summary.md"),
        "PYTHONIOENCODING": "utf-8",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    failed = 0
    for step in steps():
        if "run" not in step or step.get("name") == "install" or (failed and step.get("if") != "always()"):
            continue
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, timeout=300)
        print(done.stdout, done.stderr)  # shown where a test fails
        failed = failed or done.returncode
    return failed


def test_the_workflow_passes_and_leaves_its_reports(repository: Path) -> None:
    assert run(repository, "all" if EVERY else "verbatim", 3 if EVERY else 1) == 0
    (result, *_) = results = history.read(repository / ".evals" / "history.jsonl")
    assert [one.suite for one in results] == (list(NAMES) if EVERY else ["verbatim"])
    assert (result.revision, result.setup["budgets.dynamic_tokens"]) == ("4f2a9c1", 2000)
    assert Xml.parse(repository / ".evals" / "junit.xml").getroot().get("failures") == "0"
    assert (repository / "summary.md").read_text(encoding="utf-8").startswith("# Context evals: passed")


def test_a_missed_gate_fails_the_job_and_the_report_is_shown_all_the_same(repository: Path) -> None:
    gates = repository / "context-gates.yaml"
    gates.write_text("schema_version: 1\ngates:\n  verbatim:\n    last_user: {above: 1}\n")
    assert run(repository, "verbatim", 1) == 1
    assert "❌ above 1" in (repository / "summary.md").read_text(encoding="utf-8")


def test_the_gates_beside_the_workflow_are_over_figures_that_there_are() -> None:
    for suite, gates in load_gates(EXAMPLES / "context-gates.yaml").items():
        check(gates, suite, (metric.name for metric in suite_named(suite).metrics))


def test_the_guide_shows_gates_that_there_are(tmp_path: Path) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    shown = re.findall(r"^```yaml\n(schema_version.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "gates.yaml").write_text(shown[0], encoding="utf-8")
    for suite, gates in load_gates(tmp_path / "gates.yaml").items():
        check(gates, suite, (metric.name for metric in suite_named(suite).metrics))


SECTION = "## Judge your own context strategy\n"
MY_GATES = """\
schema_version: 1
gates: {verbatim: {last_user: {at_least: 1}, last_assistant: {at_least: 1}, within_budget: {at_least: 1}}}
"""


def section() -> str:
    """What the guide says of other people's strategies."""
    return GUIDE.read_text(encoding="utf-8").partition(SECTION)[2].partition("\n## ")[0]


def fenced(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", section(), re.MULTILINE | re.DOTALL)


def judged(folder: Path) -> list[tuple[str, str]]:
    """The commands of the section, and what each prints."""
    (folder / "strategies.py").write_text(fenced("python")[0])
    (folder / "gates.yaml").write_text(MY_GATES)
    shell = Shell(folder, {"COLUMNS": "80"})
    done = []
    for command in re.findall(r"^\$ (.*)$", fenced("console")[0], re.MULTILINE):
        ran = shell.run(command)
        printed = "\n".join(map(str.rstrip, (ran.stdout + ran.stderr).splitlines()))
        done.append((command, re.sub(r"\d+ s of CPU", "0 s of CPU", printed.strip("\n"))))
    return done


def test_the_guide_shows_a_strategy_fail_and_another_pass(tmp_path: Path) -> None:
    shown = [part.partition("\n") for part in fenced("console")[0].split("$ ")[1:]]
    assert [(command, printed.strip("\n")) for command, _, printed in shown] == judged(tmp_path)
    assert len(fenced("python")[0].split("def fitting")[1].splitlines()) <= 10
    assert len(section().splitlines()) <= 72


def test_the_guide_shows_a_server_that_answers() -> None:
    names: dict[str, Any] = {}
    server, start = fenced("python")[1].rsplit("\n\n", 1)
    assert len(server.splitlines()) <= 10
    exec(server, names)
    address = re.search(r'"127.0.0.1", (\d+)', start)
    assert address is not None
    assert f"http://127.0.0.1:{address[1]}" in section()
    with serving(type("Quiet", (names["Strategy"],), {"log_message": lambda *_: None})) as url:
        dialogue = HttpDialogue(url, Task("talk", 100))
        dialogue.add({"role": "user", "content": "hello"})
        assert answers.ask(url, dialogue, "who?").messages[-1] == {"role": "user", "content": "who?"}


def test_the_example_of_an_object_leads_back_and_searches(tmp_path: Path) -> None:
    (tmp_path / "way_back.py").write_bytes((EXAMPLES / "way_back.py").read_bytes())
    command = "ctxsteward evals run verbatim --only verbatim/docs-1 --json --subject way_back.py:WayBack"
    result = EvalResult.model_validate_json(Shell(tmp_path, {}).run(command).stdout)
    assert (result.errors, result.setup["subject"]) == ({}, "way_back.py:WayBack")
    values = {metric.name: metric.value for metric in result.metrics}
    assert (values["last_user"], values["last_assistant"]) == (1, 1)
    assert values["earlier_reachable"] is not None


def suites_table() -> str:
    """Suites and figures as the guide shows them."""
    rows = [f"| `{name}` | {suite_named(name).about} |" for name in NAMES]
    return "\n".join(["| suite | holds |", "|---|---|", *rows])


def with_table(text: str) -> str:
    """The guide with the suites as they are."""
    start, stop = text.index("<!-- suites -->") + len("<!-- suites -->"), text.index("<!-- /suites -->")
    return f"{text[:start]}\n{suites_table()}\n{text[stop:]}"


def test_the_guide_lists_the_suites_as_they_are() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert with_table(text) == text


if __name__ == "__main__":
    GUIDE.write_text(with_table(GUIDE.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")


# -- a suite of your own ---------------------------------------------------------------------------------------


def own_suite_section() -> str:
    return GUIDE.read_text(encoding="utf-8").partition("## Your own suite\n")[2].partition("\n## ")[0]


def told(text: str) -> list[str]:
    """Lines without what differs from run to run."""
    return [re.sub(r"\d+ s of CPU", "… s of CPU", line.rstrip()) for line in text.splitlines() if line.strip()]


def test_the_guide_s_own_suite_and_draft_print_what_it_says(tmp_path: Path) -> None:
    for name in ("support-desk.yaml", "support-desk.jsonl"):
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    demo = ROOT / "console" / "ctxsteward" / "console" / "data" / "demo.jsonl"
    (tmp_path / "demo.jsonl").write_bytes(demo.read_bytes())
    section, shell = own_suite_section(), Shell(tmp_path, {"COLUMNS": "100"})
    commands = 0
    for fence in re.findall(r"^```console\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
        for part in fence.split("$ ")[1:]:
            command, _, printed = part.partition("\n")
            done = shell.run(command)
            assert told(done.stdout + done.stderr) == told(printed)
            commands += 1
    assert commands == 3
    suite, draft = re.findall(r"^```yaml\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert (EXAMPLES / "support-desk.yaml").read_text(encoding="utf-8").startswith(suite)
    assert draft in (tmp_path / "mine.yaml").read_text(encoding="utf-8")


# -- repeats, and a model as judge -----------------------------------------------------------------------------


def judging_section() -> str:
    return GUIDE.read_text(encoding="utf-8").partition("## A model as judge\n")[2].partition("\n## Repeats")[0]


def counted(text: str) -> str:
    """Without what hangs on the session's nonce: the tokens of its marks, and what they cost."""
    return re.sub(r"[\d,]+ tokens in|cost 0\.\d+", "…", text)


def test_the_guide_s_repeats_and_model_judge_print_what_it_says(tmp_path: Path) -> None:
    for name in ("support-desk-judged.yaml", "support-desk.jsonl", "judges.py"):
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    section, shell = judging_section(), Shell(tmp_path, {"COLUMNS": "100"})
    fences = re.findall(r"^```console\n\$ (.*)\n((?:.*\n)*?)^```$", section, re.MULTILINE)
    assert len(fences) == 1
    for command, printed in fences:
        done = shell.run(command)
        assert told(counted(done.stdout + done.stderr)) == told(counted(printed))
    (judge,) = re.findall(r"^```yaml\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert judge in (EXAMPLES / "support-desk-judged.yaml").read_text(encoding="utf-8")
