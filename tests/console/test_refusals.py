"""Bad usage and bad input of every command: exit code 2, one line on stderr that names the thing, nothing changed."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import zlib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from shutil import copy, copytree
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from ctxsteward.console.cli import cli
from ctxsteward.console.steward.context import shipped_folder
from ctxsteward.envelope import Profile, open_store
from ctxsteward.steward.ingest.worker_pool import InProcess

from ..evals.suites.made import made, played
from .steward.scenes import PROFILE, people, transcript, value

CASES: dict[str, dict[str, list[str]]] = YAML(typ="safe").load(Path(__file__).with_name("refusals.yaml"))
MORE = {
    "early night": {"--store": "file:store"},
    "steward": {"--store": "file:store"},
    "propose": {"--store": "file:fern", "--token": "TOKEN_FERN"},
    "suites": {"--workers": "1"},
}
"""Options that a group's commands are given where a case has none of its own."""
RUN = made(played(0, 9, 10))
FILES = {
    "notes.txt": "Morning. Pager went off.\n",
    "flawed.yaml": "personas: x\n",
    "sales.yaml": "name: sales\npersona: Be kind.\n",
    "desk.yaml": PROFILE.replace("locked: true", "locked: false"),
    "empty.yaml": "",
    "rules.yaml": "[{id: a, statement: Tents stay at night., tools: [move], shown_by: at night}]",
    "bad.yaml": "store: x\n  - : [\n",
    "typo.yaml": "profil: desk\n",
    "wrong.yaml": "workers: many\n",
    "tiny.yaml": "cascade_id: tiny\nphases:\n  - {name: ask}\n  - {name: answer, context: {from: [ask]}}\n",
    "silent.json": '[{"role": "user", "content": "hi"}]',
    "run.json": '[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello."}]',
    "one.json": RUN.model_dump_json(),
    "two.json": made(played(0, 8, 10)).model_dump_json(),
    "docs.json": RUN.model_copy(update={"split": "docs"}).model_dump_json(),
    "budget.json": RUN.model_copy(update={"setup": RUN.setup | {"budgets.dynamic_tokens": 900}}).model_dump_json(),
    "agents-gates.yaml": "schema_version: 1\ngates: {agents: {last_turn: {at_least: 1}}}\n",
    "seven.json": made(played(7, 8, 10)).model_dump_json(),
    "locomo.json": json.dumps(
        [
            {
                "sample_id": 1,
                "conversation": {
                    "speaker_a": "Ann",
                    "speaker_b": "Bob",
                    "session_1_date_time": "1:56 pm on 8 May, 2023",
                    "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "The key hangs in the shed."}],
                },
                "qa": [{"question": "Where is the key?", "category": 4, "evidence": ["D1:1"]}],
            }
        ]
    ),
}


class Folder(NamedTuple):
    path: Path
    words: dict[str, str]
    """What words in capitals stand for."""

    def contents(self) -> set[tuple[str, int]]:
        """Names of all files, and what is in those of object stores; keys, leases and SQLite's own come and go."""
        found = set()
        for place, folders, names in os.walk(self.path):
            folders[:] = [name for name in folders if name not in ("keys", "writers")]
            of_objects = "objects" in place.split(os.sep)
            for path in (os.path.join(place, name) for name in names if "sqlite-" not in name):
                found.add((path, zlib.crc32(Path(path).read_bytes()) if of_objects else 0))
        return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Stores with sessions, a profile, one night; and files of all kinds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root := tmp_path_factory.mktemp("refusals"))
        patch.setattr("ctxsteward.steward.setup.WorkerPool", lambda worker, count, limits: InProcess(worker))
        for name, text in FILES.items():
            Path(name).write_text(text, encoding="utf-8")
        Path("empty").mkdir()
        for name in ("demo.jsonl", "demo-profile.yaml"):
            copy(str(files("ctxsteward.console") / "data" / name), name)
        copy(shipped_folder() / "profile.yaml", "fern.yaml")
        for who in ("ada", "bob", "cem"):
            transcript(Path(f"logs/{who}.json"), "From now on, keep your answers short.", "Yes.", principal=who)
        for args in (
            "build demo.jsonl",
            "backfill --snapshot --profile demo-profile.yaml --store file:held",
            "steward run --store file:fern",
        ):
            assert CliRunner().invoke(cli, args.split()).exit_code == 0
        night = value("run", "--transcripts", "logs", "--profile", "desk.yaml", "--store", "file:store")
        copytree("fern", "alone")
        for where, names in {"cards": (), "bare": (), "two": ("desk", "other")}.items():
            with open_store(f"file:{where}") as store:
                for name in names:
                    profile = Profile.from_text("You are brief.").model_copy(update={"name": name})
                    store.profiles(name).commit(profile, who="a", why="b", when="2026-11-22")
                for name in ("one", "two") if where == "cards" else ():
                    store.session(name).append({"role": "user", "content": "Noted."})
        of_desk, of_fern = people(Path("store")), people(Path("fern"))
        held = value("review", "--all", "--store", "file:fern")["records"]
    return Folder(
        root,
        {
            "TOKEN_ADA": of_desk["ada"],
            "TOKEN_OTTO": of_desk["otto"],
            "TOKEN_FERN": of_fern["ada"],
            "DESK": night["records"]["new"][0]["id"],
            "RECORD": held[0]["id"],
            "NINES": "9" * 5_000,
            "LONG": "x" * 501,
        },
    )


@pytest.fixture(scope="module")
def untouched(folder: Folder) -> Iterator[None]:
    """What is in the folder has to stay: all commands of these tests together change nothing."""
    before = folder.contents()
    yield
    assert folder.contents() ^ before == set()


def refused(args: list[str], says: str) -> str:
    result = CliRunner().invoke(cli, args)
    assert (result.exit_code, result.stdout) == (2, ""), result.exception
    assert result.stderr.startswith("ctxsteward: ")
    assert result.stderr.count("\n") == 1
    assert says in result.stderr
    assert "s3cret" not in result.stderr
    return result.stderr


@pytest.mark.parametrize(("group", "case"), [(group, case) for group in CASES for case in CASES[group]])
def test_bad_input_is_one_line_that_names_it(
    group: str, case: str, folder: Folder, untouched: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if group == "mcp":
        pytest.importorskip("mcp")
    monkeypatch.chdir(folder.path)
    args, says = CASES[group][case]
    words = shlex.split(args)
    words += [word for option, given in MORE.get(group, {}).items() if option not in words for word in (option, given)]
    refused([folder.words.get(word, word) for word in words], says)


EARLY = [*CASES["early"].values(), *CASES["service"].values(), *CASES["early night"].values()]


@pytest.mark.parametrize(("args", "says"), EARLY, ids=[args for args, _ in EARLY])
def test_what_is_refused_before_it_starts_leaves_no_store(
    args: str, says: str, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.path)
    store = [] if args.startswith("serve token") else ["--store", f"file:{tmp_path / 'new'}"]
    refused([*shlex.split(args), *store], says)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("package", "extra", "more"), [("jsonpatch", "steward", ""), ("prefect", "flows", "--runner dask")]
)
def test_a_missing_extra_is_named(
    package: str, extra: str, more: str, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.path)
    monkeypatch.setitem(sys.modules, package, None)
    says = f"needs the extra `{extra}`"
    args = f"steward run --transcripts logs {more} --store file:store".split()
    assert f"pip install 'ctxsteward[{extra}]'" in refused(args, says)


def test_records_are_read_without_the_extra(folder: Folder) -> None:
    without = """
import sys
from ctxsteward.console.cli import main
sys.modules["jsonpatch"] = None
for args in ("review", "why 0123456789abcdef"):
    sys.argv[1:] = ["steward", *args.split(), "--store", "file:store"]
    try:
        main()
    except SystemExit as ended:
        print(ended.code)
"""
    done = subprocess.run(
        [sys.executable, "-c", without],
        cwd=folder.path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(part for part in sys.path if part)},
    )
    assert done.stdout.split()[-2:] == ["0", "2"]  # nothing waits; no record has that id
    assert len(done.stderr.splitlines()) == 1
    assert "0123456789abcdef" in done.stderr
    assert "extra" not in done.stderr


def test_a_folder_that_cannot_be_written_is_named() -> None:
    refused(["steward", "run", "--store", "file:/proc/ctxsteward"], "/proc/ctxsteward")
