"""What reaches users beside the code: metadata, workflows, forms, types, the files that are published."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from . import package, typed_names
from .needs import LINTERS as LINTERS_NEEDED, judged

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


# -- workflows and forms -----------------------------------------------------------------------------------


def test_zizmor_finds_nothing_in_the_workflows_and_finds_what_is_planted(tmp_path: Path) -> None:
    done = judged("zizmor", "--offline", "--pedantic", "--strict-collection", "--no-progress", GITHUB)
    assert done.returncode == 0, done.stdout + done.stderr
    for source in WORKFLOWS:
        text = source.read_text(encoding="utf-8")
        worse = text.replace("permissions: {contents: read}", "permissions: write-all", 1)
        assert worse != text
        (tmp_path / source.name).write_text(worse, encoding="utf-8")
    found = judged("zizmor", "--offline", "--no-progress", *sorted(tmp_path.iterdir()))
    assert found.returncode != 0
    assert found.stdout.count("excessive-permissions") >= len(WORKFLOWS)


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("github-workflows", WORKFLOWS),
        (
            "github-issue-forms",
            [path for path in sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")) if path.stem != "config"],
        ),
        ("github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"]),
        ("dependabot", [GITHUB / "dependabot.yml"]),
        ("citation-file-format", [ROOT / "CITATION.cff"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_of_the_repository_have_the_form_that_their_reader_expects(schema: str, paths: list[Path]) -> None:
    assert paths
    done = judged("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *paths)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_and_say_which_version_that_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (.*)", text)
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []
    assert text.startswith("# Not run where this project is built today")


def test_one_action_is_one_commit_everywhere() -> None:
    used = {one for path in WORKFLOWS for one in re.findall(r"uses: (\S+) # (\S+)", path.read_text(encoding="utf-8"))}
    assert len({action.partition("@")[0] for action, _ in used}) == len(used)


def test_ci_runs_every_python_that_the_project_names() -> None:
    workflow = YAML(typ="safe").load((GITHUB / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    named = {one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)}
    matrix = workflow["jobs"]["tests"]["strategy"]["matrix"]
    assert set(matrix["python"]) == named
    assert {one.partition("-")[0] for one in matrix["os"]} == {"ubuntu", "macos"}


def test_targets_that_workflows_and_ci_call_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    called = [*WORKFLOWS, ROOT / ".ci" / "run"]
    asked = {
        name
        for path in called
        for line in re.findall(r"\bmake ([a-z -]+)", path.read_text(encoding="utf-8"))
        for name in line.split()
    }
    assert {"docs", "package", "test"} <= asked
    assert asked - targets == set()


# -- metadata ----------------------------------------------------------------------------------------------


def test_the_version_is_the_same_wherever_it_stands() -> None:
    citation = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"]
    assert citation["repository-code"] == PROJECT["urls"]["Source"]
    for path, pattern in (
        ("deploy/compose.yaml", r"image: ctxsteward:(\S+)"),
        ("deploy/kubernetes/kustomization.yaml", r"newTag: (\S+)"),
        ("docs/deploy.md", r"-t ctxsteward:(\S+)"),
    ):
        assert re.findall(pattern, (ROOT / path).read_text(encoding="utf-8")) == [PROJECT["version"]], path


def test_the_page_of_extras_names_every_extra_and_no_other() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    section = page.partition("\n## Extras\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`\[([\w-]+)\]`", row)}
    assert named == set(PROJECT["optional-dependencies"])


def test_a_project_says_where_its_things_are() -> None:
    assert {"Documentation", "Source", "Issues", "Changelog", "Security"} <= set(PROJECT["urls"])
    for name in ("CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "CITATION.cff"):
        assert (ROOT / name).is_file(), name


# -- what is published -------------------------------------------------------------------------------------


def jobs_before(jobs: dict[str, Any], name: str) -> set[str]:
    """The jobs that a job waits for, and those that they wait for."""
    needs = jobs[name].get("needs", [])
    direct = {needs} if isinstance(needs, str) else set(needs)
    return direct.union(*(jobs_before(jobs, needed) for needed in direct))


def test_nothing_is_published_before_the_package_and_the_evals_have_passed() -> None:
    jobs = YAML(typ="safe").load(GITHUB / "workflows" / "release.yml")["jobs"]
    publishing = [name for name, job in jobs.items() if "write" in job.get("permissions", {}).values()]
    assert publishing == ["publish", "announce"]
    for name in publishing:
        before = [jobs[needed] for needed in jobs_before(jobs, name) if needed not in publishing]
        assert {step["run"] for job in before for step in job["steps"] if "run" in step} >= {
            "make package",
            "make evals",
        }
        # A condition, or a failure that is passed over, would let a release go out without them.
        for job in (*before, jobs[name]):
            assert not {"if", "continue-on-error"} & {key for part in (job, *job["steps"]) for key in part}


def test_the_text_of_a_release_is_its_part_of_the_changelog() -> None:
    changelog = (
        "# C\n\n## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n- b\n\n## [0.1.0] - 2026-11-01\n\n- a\n"
    )
    assert package.notes(changelog, "v0.2.0") == "### Added\n\n- b\n"
    assert package.notes(changelog, "0.1.0") == "- a\n"
    for version in ("v0.3.0", "Unreleased"):
        with pytest.raises(package.Refused, match=r"says nothing of .*; it has Unreleased, 0\.2\.0, 0\.1\.0"):
            package.notes(changelog, version)


def test_a_tag_of_another_version_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert package.main(["--notes", "v9.9.9"]) == 1
    assert capsys.readouterr().err == f"the tag v9.9.9 is not v{PROJECT['version']}, which the project says\n"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel and a source distribution of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    return folder


def test_both_files_say_what_the_project_says_and_hold_what_they_should(dist: Path, tmp_path: Path) -> None:
    wheel, source = package.built(dist)
    package.check_metadata(wheel)
    package.check_sources(wheel, source)
    with pytest.raises(package.Refused, match="found 0 and 0"):
        package.built(tmp_path)


# -- types -------------------------------------------------------------------------------------------------

needs_checker = pytest.mark.skipif(not typed_names.CHECKER.exists(), reason=LINTERS_NEEDED)


@needs_checker
def test_the_promised_python_is_typed() -> None:
    """Update: annotate what `python -m tests.typed_names --missing` names."""
    rooms = typed_names.judged()
    assert [room.room for room in rooms] == list(typed_names.JUDGED)
    assert [(room.room, room.fraction, room.missing) for room in rooms if not room.is_met] == []


@needs_checker
def test_a_type_that_is_written_nowhere_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages" / "ctxsteward" / "store"
    folder.mkdir(parents=True)
    for marked in (folder, folder.parent):
        (marked / "py.typed").touch()
    (folder.parent / "__init__.py").touch()
    (folder / "__init__.py").write_text(
        "class Held:\n    def __init__(self, limits: list[int]) -> None:\n        self.limits = sorted(limits)\n",
        encoding="utf-8",
    )
    (room,) = typed_names.judge(["store"], tmp_path / "site-packages")
    assert not room.is_met
    assert room.missing == ("ctxsteward/store/__init__.py:3: limits",)
