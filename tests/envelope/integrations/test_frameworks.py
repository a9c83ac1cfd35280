"""Agents of LangChain, pydantic-ai and openai-agents over our adapters, in an environment of their own.

Their tests stand beside this file, in `langchain_run.py` and so on, and are run by that environment's pytest; each is
told here.
"""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ...needs import FRAMEWORKS

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
EXAMPLES = ROOT / "docs" / "examples" / "integrations"
PYTHON = ROOT / ".venv-integrations" / "bin" / "python"
ROOMS = ("schemas", "envelope", "summarizers", "steward", "evals", "flows", "console")
pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason=FRAMEWORKS)

SCRIPTS = [HERE / f"{name}_run.py" for name in ("guide", "langchain", "openai_agents", "pydantic_ai")]
TESTS = [
    (path.stem, node.name)
    for path in SCRIPTS
    for node in ast.parse(path.read_text("utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
]
PRINTED = {
    "langchain_agent": """
162 messages in the state, 9 sent
the frame number is in what was sent: True
""",
    "pydantic_ai_agent": """
162 messages in the history, 25 sent
the frame number is in what was sent: True
""",
    "openai_agents_session": """
162 items in the session, 8 sent
the frame number is in what was sent: True
""",
}


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(str(ROOT / room) for room in ROOMS), "PYTHONWARNINGS": "ignore"}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], list[str]]:
    """What went wrong in each test of each script; nothing where it passed."""
    folder = tmp_path_factory.mktemp("told")
    quiet = [
        PYTHON,
        "-m",
        "pytest",
        "--noconftest",
        "-c",
        os.devnull,
        "--rootdir",
        HERE,
        "-p",
        "no:cacheprovider",
        "-q",
    ]
    running = []
    for path in SCRIPTS:
        command = [*quiet, f"--junitxml={folder / path.stem}.xml", path]
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        running.append((path, subprocess.Popen(command, env=environment(), cwd=folder, **pipes)))
    results: dict[tuple[str, str], list[str]] = {}
    try:
        for path, process in running:
            said, _ = process.communicate(timeout=400)
            file = folder / f"{path.stem}.xml"
            assert file.exists(), said[-3000:]
            for case in ElementTree.parse(file).iter("testcase"):
                wrong = [one.text or one.tag for one in case if one.tag in ("failure", "error", "skipped")]
                results.setdefault((path.stem, case.get("name", "").partition("[")[0]), []).extend(wrong)
    finally:
        for _, process in running:
            process.kill()
            process.wait()
    return results


@pytest.mark.parametrize(("script", "name"), TESTS, ids=["-".join(test) for test in TESTS])
def test_in_its_own_environment(told: dict[tuple[str, str], list[str]], script: str, name: str) -> None:
    assert told[script, name] == []


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_is_written_here(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [PYTHON, EXAMPLES / f"{name}.py"], env=environment(), cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.returncode) == (PRINTED[name].lstrip(), 0), done.stderr[-2000:]
