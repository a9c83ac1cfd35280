"""The documents tell the truth: their Python runs and prints what they say, their commands run, their pictures are new.

A ```python fence is run, in order, with the names of the fences before it; what it prints is the ```text fence that
follows. ```python no-run needs a framework's SDK. In a ```console fence each `$` line is a command. Random nonces are
compared as one and the same. The provider is scripted: it judges each request by the published rules.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import socket
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from benchmarks.bench import NAME, bench_block, main
from benchmarks.pictures import evidence_svg, question_svg
from benchmarks.rows import BenchmarkRow
from ctxsteward.console.cli import cli
from ctxsteward.evals.documents import block_of, markers, with_block
from ctxsteward.evals.suites.catalogue import NAMES, suite_named
from ctxsteward.schemas import errors
from ctxsteward.schemas.findings import FINDING_KINDS

from .model_server import ModelServer, Reply, SeenRequest
from .needs import CURL_AND_JQ
from .scripted_providers import install
from .shell import Done, Shell
from .test_guide_nightly_steward import shown

ROOT = Path(__file__).parents[1]
DATA = ROOT / "console" / "ctxsteward" / "console" / "data"
DOCS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN = {"DATA": str(DATA), "COLUMNS": "100"}
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Fence(NamedTuple):
    info: str
    body: str
    line: int


def fences(path: Path) -> list[Fence]:
    text = path.read_text(encoding="utf-8")
    return [Fence(m[1].strip(), m[2], text[: m.start()].count("\n") + 2) for m in FENCE.finditer(text)]


def alike(printed: str) -> str:
    """Without what differs from run to run: the session's nonce, blanks at line ends."""
    return re.sub(r"(?<=<)(/?)\d{9}\b", r"\1000000000", "\n".join(map(str.rstrip, printed.splitlines())).strip())


def run_python(path: Path, names: dict[str, Any]) -> int:
    """Run a document's Python; how many fences that were."""
    found = [fence for fence in fences(path) if fence.info in ("python", "text")]
    for at, fence in enumerate(found):
        if fence.info == "text":
            continue
        out = io.StringIO()
        code = compile("\n" * (fence.line - 1) + fence.body, str(path), "exec")
        with contextlib.redirect_stdout(out):
            exec(code, names)
        follows = found[at + 1] if at + 1 < len(found) and found[at + 1].info == "text" else None
        assert alike(out.getvalue()) == alike(follows.body if follows else ""), f"{path.name}:{fence.line}"
    return sum(fence.info == "python" for fence in found)


# -- documents -------------------------------------------------------------------------------------


def test_the_readme_prints_what_it_says() -> None:
    assert run_python(ROOT / "README.md", {"__name__": "readme"}) == 1


ELSEWHERE = {
    "README.md": "tests/test_docs.py::test_the_readme_prints_what_it_says",
    "keep-a-store.md": "tests/test_durability_doc.py::test_the_python_prints_what_it_says",
    "guide-evals-in-ci.md": "tests/test_guide_evals_in_ci.py::test_the_guide_shows_a_strategy_fail_and_another_pass",
    "guide-integrations.md": "tests/envelope/integrations/test_clients.py::test_the_guide_is_true",
    "guide-nightly-steward.md": "tests/test_guide_nightly_steward.py::"
    "test_the_guide_to_the_nightly_steward_prints_what_it_says",
    "guide-observability.md": "tests/test_guide_observability.py::test_the_python_prints_what_it_says",
}
"""Pages whose Python needs a server or a process of its own, and the test that runs it."""
APART = frozenset(("README.md", "guide-integrations.md"))
"""Pages with ```python no-run: a client's SDK or a framework is needed."""


def pages_with_python() -> list[Path]:
    return [path for path in DOCS if any(fence.info.split()[:1] == ["python"] for fence in fences(path))]


def test_pages_with_python_are_found_and_only_integrations_have_code_apart() -> None:
    pages = {path.name for path in pages_with_python()}
    assert len(pages) >= 12
    assert set(ELSEWHERE) - pages == set()
    apart = {path.name for path in pages_with_python() if any(fence.info == "python no-run" for fence in fences(path))}
    assert apart == APART


def test_the_test_that_runs_a_page_exists() -> None:
    for test in ELSEWHERE.values():
        path, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")


def weather(request: SeenRequest) -> Reply:
    """Ask for the tool of the page on FastAPI once, and answer then."""
    asks = request.body.get("tools") and request.body["messages"][-1]["role"] == "user"
    return Reply(calls=(("weather", {}),)) if asks else Reply(text="Sunny all week.")


@pytest.mark.parametrize(
    "page", [page for page in pages_with_python() if page.name not in ELSEWHERE], ids=lambda page: page.name
)
def test_a_page_prints_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of its own, with a scripted provider in place of the SDK's client."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    if page.name == "guide-chat-service.md":
        install(monkeypatch.setattr)
    with ModelServer(weather) as server:  # stands for the provider where a page has OpenAI's own client
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        assert run_python(page, {"__name__": page.stem}) > 0


@pytest.mark.skipif(not all(map(shutil.which, ("sh", "curl", "jq"))), reason=CURL_AND_JQ)
def test_the_tutorials_service_survives_its_death_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    (tmp_path / "trips").mkdir()
    (service,) = re.findall(r"`service\.py`:\n\n```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "trips" / "service.py").write_text(service)
    shell = Shell(tmp_path / "trips", {"API": f"http://127.0.0.1:{port}"})
    commands = shown(page)
    try:
        for command, printed in commands:
            assert (command, shell.run(command.replace("8732", port)).stdout) == (command, printed)
    finally:
        shell.run("kill $(cat pid)")
    assert sum(command.startswith("kill") for command, _ in commands) == 2


SENT = ROOT / "docs" / "guide-see-what-was-sent.md"
CONSOLE = re.compile(r"^```console\n.*?^```$", re.MULTILINE | re.DOTALL)


def printed_anew(page: str, shell: Shell) -> str:
    """A page with what its commands print now, in order."""

    def fence(found: re.Match[str]) -> str:
        parts = []
        for command, _ in shown(found[0]):
            done = Done(0, "", "") if command.startswith("export ") else shell.run(command)
            printed = "\n".join(line.rstrip() for line in (done.stdout + done.stderr).splitlines())
            parts.append(f"$ {command}\n{printed}".rstrip() + "\n")
        return f"```console\n{''.join(parts)}```"

    return CONSOLE.sub(fence, page)


@pytest.mark.skipif(shutil.which("sh") is None, reason="no POSIX shell")
def test_the_page_on_what_was_sent_prints_what_it_says(tmp_path: Path) -> None:
    page = SENT.read_text(encoding="utf-8")
    assert printed_anew(page, Shell(tmp_path, SHOWN)) == page, "rewrite: python -m tests.test_docs"


def test_every_finding_and_error_has_a_remedy() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    rows = {name for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    raised = {name for name, error in vars(errors).items() if getattr(error, "__module__", "") == errors.__name__}
    assert {*FINDING_KINDS, *(name for name in raised if name[0].isupper())} - rows - {
        "ContextError",
        "StoreError",
    } == set()


def test_a_fence_says_what_it_is() -> None:
    kinds = {"python", "python no-run", "text", "console", "sh", "yaml", "toml", "json", "mermaid"}
    assert [(path.name, fence.info) for path in DOCS for fence in fences(path) if fence.info not in kinds] == []


FIGURES = {metric.name for name in NAMES for metric in suite_named(name).metrics}
SPLIT = re.compile(r"`(docs|ci|sealed)`")


def unnamed(text: str) -> list[str]:
    """Paragraphs and tables that give a figure of a suite as a percentage, and do not say of which split."""
    return [
        block
        for block in re.split(r"\n\s*\n", text)
        if "%" in block and FIGURES & set(re.findall(r"`(\w+)`", block)) and not SPLIT.search(block)
    ]


def test_a_figure_of_a_suite_names_its_split() -> None:
    assert [(path.name, said) for path in DOCS for said in unnamed(path.read_text(encoding="utf-8"))] == []


def test_a_figure_without_its_split_is_found() -> None:
    assert unnamed("Text.\n\n`goals_shown` is 97 % of them.\n\n`goals_shown` is 97 % on `ci`.") == [
        "`goals_shown` is 97 % of them."
    ]


PUBLIC_TALK = re.compile(r"LoCoMo|BEAM|chats of long replies")
HALF = re.compile(r"development|held.out|every half", re.IGNORECASE)
MEASURED = re.compile(r"\d\s*%|\d points?\b|percent")


def without_half(text: str) -> list[str]:
    """Paragraphs and rows that give a figure of public conversations and do not say of which half."""
    prose = FENCE.sub("", text)
    blocks = [
        block for part in re.split(r"\n\s*\n", prose) for block in (part.split("\n|") if "|---" in part else [part])
    ]
    return [b for b in blocks if PUBLIC_TALK.search(b) and MEASURED.search(b) and not HALF.search(b)]


def test_a_figure_of_public_conversations_names_its_half() -> None:
    pages = [path for path in DOCS if path.name != "CHANGELOG.md"]
    assert [(path.name, said) for path in pages for said in without_half(path.read_text(encoding="utf-8"))] == []


def test_a_figure_without_its_half_is_found() -> None:
    said = "LoCoMo shows 80 %.\n\nLoCoMo's development half shows 80 %.\n\n| a | b |\n|---|---|\n| BEAM | 3 % |"
    assert without_half(said) == ["LoCoMo shows 80 %.", " BEAM | 3 % |"]


def test_the_tests_that_a_document_names_exist() -> None:
    written = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    known = set(re.findall(r"^ *def (test_\w+)", written, re.MULTILINE))
    missing = []
    for path in (ROOT / "docs").rglob("*.md"):
        for name, more in re.findall(r"`(test_\w+)(…?)`", path.read_text(encoding="utf-8")):
            if name not in known and not (more and any(one.startswith(name) for one in known)):
                missing.append(f"{path.name}: {name}")
    assert missing == []


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Runs commands of a page in a folder of its own."""
    return Shell(tmp_path_factory.mktemp("commands"), {"DATA": str(DATA)})


@pytest.mark.skipif(shutil.which("sh") is None, reason="no POSIX shell")
def test_the_table_of_commands_lists_each_command_and_its_examples_run(shell: Shell) -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    examples = re.findall(r"\| `(ctxsteward [^`]+)` \|$", page, re.MULTILINE)
    listed = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    known = re.findall(r"^  (\w+)  ", shell.run("ctxsteward --help").stdout.split("Commands:")[1], re.MULTILINE)
    assert sorted(listed) == sorted(known)
    for command in examples:
        if command == "ctxsteward demo":
            continue  # its picture is drawn from a run of it
        done = shell.run(command)
        assert (done.code, done.stderr.count("Traceback")) == (0, 0), command


# -- pictures and tables ---------------------------------------------------------------------------

REDRAW = "out of date: run `python -m benchmarks.pictures docs/img`"


def test_the_picture_of_the_question_is_of_this_version_and_says_what_the_demo_found() -> None:
    drawn = (ROOT / "docs" / "img" / "question.svg").read_text(encoding="utf-8")
    assert drawn == question_svg(), REDRAW
    told = json.loads(CliRunner().invoke(cli, ["demo", "--json"]).stdout)
    shown = [
        f"{told[name]:,}" for name in ("window_tokens", "window_priced_tokens", "sent_tokens", "sent_priced_tokens")
    ]
    assert [figure for figure in shown if figure not in drawn] == []


def test_the_picture_of_evidence_is_of_the_tables_of_its_page() -> None:
    page = (ROOT / "docs" / "selection.md").read_text(encoding="utf-8")
    assert (ROOT / "docs" / "img" / "evidence.svg").read_text(encoding="utf-8") == evidence_svg(page), REDRAW


def test_a_table_goes_between_the_markers_and_touches_nothing_else() -> None:
    rows = [BenchmarkRow(bench="warm", what="  w", value="1 ms", bar="≤ 2", ok=True)]
    begin, end = markers(NAME)
    written = with_block(f"before {begin}old{end} after", NAME, bench_block("old", rows))
    assert written.startswith(f"before {begin}\n")
    assert written.endswith(f"\n| warm | w | 1 ms | ≤ 2 | ok |\n{end} after")
    assert "old" not in written
    assert with_block(written, NAME, bench_block(block_of(written, NAME), rows)) == written


def test_rows_of_benchmarks_that_did_not_run_stay_in_the_table() -> None:
    imported = BenchmarkRow(bench="import", what="i", value="1 s", bar="≤ 2", ok=True)
    warm = BenchmarkRow(bench="warm", what="w", value="1 ms", bar="≤ 2", ok=True)
    both = "\n".join(bench_block("", [imported, warm]))
    assert "\n".join(bench_block(both, [imported])) == both
    assert "\n".join(bench_block(both, [replace(imported, value="2 s")])) == both.replace("1 s", "2 s")


def test_a_row_without_a_bar_is_written_where_a_page_quotes_it() -> None:
    plain = BenchmarkRow(bench="warm", what="w", value="1 ms", bar="", ok=None)
    rows = [plain, replace(plain, what="append in a folder, p50 of 200 turns"), replace(plain, what="m", bar="≤ 0")]
    assert [line.split(" | ")[1] for line in bench_block("", rows) if "warm" in line] == [row.what for row in rows[1:]]


def test_a_file_without_markers_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plain.md"
    path.write_text("# no markers\n")
    with pytest.raises(SystemExit) as exit:
        main(["import", "--write", str(path)])
    assert exit.value.code == 2
    begin, end = markers(NAME)
    assert f"no {begin} followed by {end}" in capsys.readouterr().err
    assert path.read_text() == "# no markers\n"


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        here = Path(folder, "here")
        here.mkdir()
        SENT.write_text(printed_anew(SENT.read_text(encoding="utf-8"), Shell(here, SHOWN)), encoding="utf-8")
