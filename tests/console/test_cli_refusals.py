"""Bad usage and bad input: exit code 2 and exactly one line on stderr that names the thing."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli

DATA = files("ctxsteward.console") / "data"
DEMO = str(DATA / "demo.jsonl")
FORGED = "0f" * 32


class Case(NamedTuple):
    id: str
    args: str
    """`DEMO`, `TEXT` and `FORGED` stand for a transcript, a file that is none, and an address of nothing."""
    names: str
    """What the line must say."""


BUILD = [
    Case("no transcript", "build", "build: Missing argument 'TRANSCRIPT'"),
    Case("no such command", "bild DEMO", "No such command 'bild'"),
    Case("no such option", "build DEMO --modle x", "--modle"),
    Case("missing file", "build nowhere.jsonl", "nowhere.jsonl: no such file"),
    Case("a directory", "build .", ".: a directory"),
    Case("not JSON", "build TEXT", "not JSON"),
    Case("the wrong format", "build DEMO --format tau-bench", "demo.jsonl: line 1"),
    Case("unknown format", "build DEMO --format csv", "unknown format 'csv'"),
    Case("no such run", "build DEMO --run 7", "none of its 1 transcripts is number 7"),
    Case("a negative run", "build DEMO --run -1", "number -1"),
    Case("unknown budget", "build DEMO --budget history=5", "allowed keys: system_tokens"),
    Case("budget without a number", "build DEMO --budget dynamic_tokens", "'' is not a number"),
    Case("budget of words", "build DEMO --budget dynamic_tokens=many", "'many' is not a number"),
    Case("budget 0", "build DEMO --budget dynamic_tokens=0", "`budgets.dynamic_tokens` is 0"),
    Case("half a token", "build DEMO --budget dynamic_tokens=900.5", "`budgets.dynamic_tokens` is 900.5"),
    Case(
        "fraction over 1",
        "build DEMO --budget compact_at_fraction=1.2",
        "`budgets.compact_at_fraction` is 1.2",
    ),
    Case("fraction nan", "build DEMO --budget compact_at_fraction=nan", "`budgets.compact_at_fraction` is nan"),
    Case("head over its budget", "build DEMO --budget system_tokens=20", "section 'system' needs"),
    Case("unknown model", "build DEMO --model gpt-4p", "--model gpt-4p: no such model is known; did you mean"),
    Case(
        "unknown provider",
        "build DEMO --provider openai",
        "--provider openai: no such provider; one of: openai-chat",
    ),
    Case("no store scheme", "build DEMO --store here", "store 'here' is none"),
    Case("unknown store scheme", "build DEMO --store ftp:x", "store 'ftp:x' is none"),
    Case("store in a file", "build DEMO --store file:TEXT", "cannot open a store at TEXT"),
    Case("missing profile", "build DEMO --profile nowhere.yaml", "nowhere.yaml: no such file"),
    Case("a profile that is none", "build DEMO --profile DEMO", "demo.jsonl:"),
    Case("empty user turn", "build DEMO --user-turn=", "--user-turn"),
    Case("unusable session id", "build DEMO --session=", "session ''"),
    Case("unusable tenant", "build DEMO --tenant=", "tenant ''"),
]
READ = [
    Case("replay of nothing", "replay", "replay: give either TRANSCRIPT or --from ADDRESS"),
    Case("replay of both", "replay DEMO --from FORGED", "give either"),
    Case("replay a missing file", "replay nowhere.jsonl", "nowhere.jsonl: no such file"),
    Case("replay for a provider", "replay DEMO --provider text", "--provider goes with --from"),
    Case(
        "rebuild under another budget",
        "replay --from FORGED --budget dynamic_tokens=9",
        "--from takes its profile",
    ),
    Case("rebuild no address", "replay --from demo", "--from demo: not an envelope's address"),
    Case(
        "rebuild without a store",
        "replay --from FORGED --store file:none",
        "--store file:none: no such folder",
    ),
    Case("forged address", "replay --from FORGED", f"--from {FORGED}: no such envelope"),
    Case("report without a store", "report demo --store file:none", "--store file:none: no such folder"),
    Case("report of a forged address", "report FORGED", f"{FORGED} is no compaction and no envelope"),
    Case("report of an unknown session", "report nobody", "no session 'nobody'; it holds demo"),
    Case("another tenant's session", "report demo --tenant other", "no session 'demo'"),
    Case("resolve in an unknown session", "resolve 1 --session nobody", "no session 'nobody'; it holds demo"),
    Case("resolve without a session", "resolve 1", "--session"),
    Case("resolve no reference", "resolve one --session demo", "'one' is not a reference"),
    Case("resolve message 0", "resolve 0 --session demo", "'0' is not a reference"),
    Case("resolve past the end", "resolve §9999 --session demo", "it holds §1 to §267"),
    Case("resolve no such tool result", "resolve §10.1 --session demo", "holds 0 tool results"),
    Case("resolve no such tool output", "resolve tool:9999 --session demo", "tool outputs"),
    Case("resolve from before the start", "resolve 1 --session demo --offset -1", "--offset"),
    Case("rebuild no address of digits", "replay --from deadbeef", "no envelope of tenant 'default' has this address"),
    Case("no command of a group", "evals", "evals: Missing command; one of: bench, cost, list, recall, run; see"),
    Case("unknown schema", "schema envelop", "schema envelop: no such schema; one of: message"),
    Case("unknown shell", "completion tcsh", "completion"),
    Case("demo in no store", "demo --store nowhere", "store 'nowhere' is none"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refusals")
    (folder / "text").write_text("Morning. Pager went off.\n")
    result = CliRunner().invoke(cli, ["build", DEMO, "--store", f"file:{folder / '.ctxsteward'}"])
    assert result.exit_code == 0
    return folder


@pytest.mark.parametrize("case", [*BUILD, *READ], ids=lambda case: case.id)
def test_bad_input_is_one_line_that_names_it(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    places = {"DEMO": DEMO, "TEXT": "text", "FORGED": FORGED}
    args = case.args
    for word, place in places.items():
        args = args.replace(word, place)
    result = CliRunner().invoke(cli, args.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("ctxsteward: ")
    assert result.stderr.count("\n") == 1
    assert case.names.replace("TEXT", "text") in result.stderr


NEEDS_THE_STORE = ("head over its budget", "unusable session id", "unusable tenant")
EARLY = [case for case in BUILD if "store" not in case.args and case.id not in NEEDS_THE_STORE]


@pytest.mark.parametrize("case", EARLY, ids=lambda case: case.id)
def test_what_is_refused_before_it_starts_leaves_no_store(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(cli, case.args.replace("DEMO", DEMO).split())
    assert list(tmp_path.iterdir()) == []
