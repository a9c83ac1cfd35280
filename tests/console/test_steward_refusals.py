"""Mistakes at ``ctxsteward steward``: exit code 2 and exactly one line on stderr that names the thing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from ctxsteward.envelope import Profile
from ctxsteward.envelope.store import open_store

from .steward_scenes import PROFILE, people, run, transcript


class Case(NamedTuple):
    id: str
    args: str
    """Inside a folder with `store` (one profile), `two` (two profiles), `empty`, `bare` (no profile), `logs`."""
    names: str
    """What the line must say."""


S = "--store file:store"
CASES = [
    Case("no such verb", "nap", "No such command 'nap'"),
    Case("missing path", f"run --transcripts nowhere {S}", "--transcripts nowhere: source 'nowhere': no such folder"),
    Case("empty folder", f"run --transcripts empty {S}", "--transcripts empty: no transcript is there"),
    Case("no such scheme", f"run --transcripts ftp://host/x {S}", "source 'ftp://host/x' is none"),
    Case(
        "unknown profile",
        f"run --transcripts logs --profile-name nobody {S}",
        "tenant 'default' has desk",
    ),
    Case(
        "several profiles",
        "run --transcripts logs --store file:two",
        "several profiles; name one with --profile-name: desk, other",
    ),
    Case(
        "store without profile",
        "run --transcripts logs --store file:bare",
        "has committed no profile; make the first version",
    ),
    Case(
        "two profiles told",
        f"run --transcripts logs --profile desk.yaml --profile-name x {S}",
        "the file's profile is 'desk'",
    ),
    Case("a profile that is none", f"run --transcripts logs --profile logs/a.json {S}", "logs/a.json"),
    Case("bad time", f"run --transcripts logs --since yesterday {S}", "--since yesterday: "),
    Case("bad date", f"run --transcripts logs --night today {S}", "--night today: "),
    Case("no workers", f"run --transcripts logs --workers 0 {S}", "--workers 0: "),
    Case("a share of all and more", f"run --transcripts logs --canary 1.5 {S}", "--canary 1.5: "),
    Case("unknown runner", f"run --transcripts logs --runner ray {S}", "--runner"),
    Case("a dry run on Dask", f"run --transcripts logs --dry-run --runner dask {S}", "a dry run keeps everything"),
    Case("missing settings", f"run --settings nowhere.yaml {S}", "--settings nowhere.yaml: no such file"),
    Case(
        "settings of nothing",
        f"run --settings empty.yaml {S}",
        "empty.yaml: nothing; write a mapping",
    ),
    Case("bad YAML", f"run --settings bad.yaml {S}", "bad.yaml:2: no YAML"),
    Case("unknown setting", f"run --settings typo.yaml {S}", "typo.yaml:1: profil: no such key; allowed: store"),
    Case("bad setting", f"run --settings wrong.yaml {S}", "wrong.yaml:1: workers: found the text 'many'"),
    Case("bad people", f"run --transcripts logs --actors typo.yaml {S}", "typo.yaml: salt: found"),
    Case("missing people", f"review --actors nowhere.yaml {S}", "actors nowhere.yaml: no such file"),
    Case("no store", "status --store file:none", "--store file:none: no such folder"),
    Case("no store scheme", "run --store here", "store 'here' is none"),
    Case("store in a file", "run --store file:desk.yaml", "desk.yaml"),
    Case("another tenant", f"status --tenant acme {S}", "tenant 'acme' has committed no profile"),
    Case("a tenant that is none", "status --tenant= " + S, "tenant ''"),
    Case("negative limit", f"status --limit -1 {S}", "--limit"),
    Case("diff of one", f"diff 1 {S}", "Missing argument 'B'"),
    Case("diff of no version", f"diff 1 99 {S}", "version 99 of profile 'desk'"),
    Case("diff of a word", f"diff one 2 {S}", "'one' is not a valid integer"),
    Case("drift of one", f"drift 1 {S}", "give both versions, or none"),
    Case("why of nothing", f"why nothing {S}", "nothing: no record has this id"),
    Case("why of everything", f"why {S} --as x", "--as"),
    Case("promote of nothing", f"promote nothing --as otto --token TOKEN_OTTO {S}", "nothing: no record has this id"),
    Case("promote without people", "promote x --store file:two --profile-name desk", "say who you are"),
    Case("rollback to nothing", f"rollback 99 --as otto --token TOKEN_OTTO {S}", "version 99 of profile 'desk'"),
    Case("rollback to 0", f"rollback 0 {S}", "0 is not in the range"),
    Case("rollback by a reviewer", f"rollback 1 --as ada --token TOKEN_ADA {S}", "actor 'ada' is no operator"),
    Case("unknown actor", f"rollback 1 --as eve --token TOKEN_ADA {S}", "actor 'eve' is not in the configuration"),
    Case(
        "wrong token",
        f"review RECORD --approve --as ada --token TOKEN_OTTO {S}",
        "the token is not that of",
    ),
    Case("short token", f"review RECORD --approve --as ada --token abc {S}", "a token of 3 characters"),
    Case("no token", f"review RECORD --approve --as ada {S}", "no token: give --token"),
    Case(
        "answer to nothing",
        f"review nothing --approve --as ada --token TOKEN_ADA {S}",
        "nothing: no record has this id",
    ),
    Case("answer without an id", f"review --approve {S}", "say what: the id of a request"),
    Case("a note on nothing", f"review --note hello {S}", "go with --approve or --reject"),
    Case(
        "answer with nobody",
        "review x --approve --store file:two --profile-name desk",
        "nobody is configured",
    ),
    Case("changelog as JSON", f"log --markdown --json {S}", "--markdown goes with neither"),
    Case("an actor of blanks", f"actors --add a/b --role reviewer {S}", "actor 'a/b'"),
    Case("an actor without a role", f"actors --add ada {S}", "say what they may do"),
    Case("people of a bucket", "actors --add ada --role reviewer --store s3://bucket/x", "name the file with --actors"),
    Case("nobody to list", "actors --store file:two", "nobody is configured"),
    Case("a night's page nowhere", f"run --transcripts logs --html nowhere/page.html {S}", "--html nowhere/page.html"),
    Case("a page nowhere", f"status --html nowhere/page.html {S}", "nowhere/page.html: no such file or directory"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refusals")
    transcript(folder / "logs" / "a.json", "From now on answer in French, please.", "D'accord.")
    (folder / "empty").mkdir()
    (folder / "desk.yaml").write_text(PROFILE)
    (folder / "empty.yaml").write_text("")
    (folder / "bad.yaml").write_text("store: x\n  - : [\n")
    (folder / "typo.yaml").write_text("profil: desk\n")
    (folder / "wrong.yaml").write_text("workers: many\n")
    run(
        "run",
        "--transcripts",
        str(folder / "logs"),
        "--profile",
        str(folder / "desk.yaml"),
        "--store",
        f"file:{folder / 'store'}",
    )
    (folder / "tokens.json").write_text(json.dumps(people(folder / "store")))
    with open_store(f"file:{folder / 'two'}") as store:
        for name in ("desk", "other"):
            store.profiles(name).commit(
                Profile.from_text("You are brief.").model_copy(update={"name": name}),
                who="a",
                why="b",
                when="2026-11-22",
            )
    open_store(f"file:{folder / 'bare'}").close()
    return folder


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_mistake_is_one_line_that_names_it(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    tokens = json.loads((folder / "tokens.json").read_text())
    record = record_of(folder)
    places = {"TOKEN_OTTO": tokens["otto"], "TOKEN_ADA": tokens["ada"], "RECORD": record}
    result = run(*(places.get(word, word) for word in case.args.split()), code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("ctxsteward: ")
    assert result.stderr.count("\n") == 1
    assert case.names in result.stderr


def record_of(folder: Path) -> str:
    from ctxsteward.steward.ledger import Ledger

    with (
        open_store(f"file:{folder / 'store'}") as store,
        Ledger.open(folder / "store" / "ledgers" / "default" / "desk.sqlite", store, "default", "desk") as ledger,
    ):
        return next(iter(ledger.records())).id


@pytest.mark.parametrize("package", ["rensa", "prefect"])
def test_a_missing_extra_is_named(package: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, package, None)
    extra = {"rensa": "steward", "prefect": "flows"}[package]
    runner = ("--runner", "dask") if package == "prefect" else ()
    result = run("run", "--transcripts", "logs", *runner, "--store", "file:store", code=2)
    assert f"needs the extra `{extra}`" in result.stderr
    assert f"pip install 'ctxsteward[{extra}]'" in result.stderr


@pytest.mark.parametrize("args", ["review", "why 0123456789abcdef"])
def test_records_are_read_with_the_extra_only_and_that_is_one_line(args: str, tmp_path: Path) -> None:
    store = f"file:{tmp_path / 'store'}"
    with open_store(store) as opened:
        opened.profiles("desk").commit(
            Profile.from_text("You help."), who="ada", when="2026-11-22T09:00:00Z", why="agreed"
        )
    without = "import sys; sys.modules['rensa'] = None; from ctxsteward.console.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", without, "steward", *args.split(), "--store", store], capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "ctxsteward: this needs rensa, which the extra `steward` brings; pip install 'ctxsteward[steward]'"
    ]


@pytest.mark.parametrize(
    "args",
    ["--transcripts nowhere", "--transcripts empty", "--settings typo.yaml", "--night today", "--profile nowhere.yaml"],
)
def test_what_is_refused_before_it_starts_leaves_no_store(
    args: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    run("run", *args.split(), "--store", f"file:{tmp_path / 'new'}", code=2)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named() -> None:
    result = run("run", "--store", "file:/proc/ctxsteward", code=2)
    assert "/proc/ctxsteward" in result.stderr
    assert result.stderr.count("\n") == 1
