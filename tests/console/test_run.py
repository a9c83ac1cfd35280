"""`ctxsteward run` and `handoff`: a cascade against a script or an endpoint, priced; where work stands, handed on."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ctxsteward.envelope import open_store
from ctxsteward.evals.subjects.http import post_json
from ctxsteward.schemas import InputError
from ctxsteward.schemas.publish import validate

from ..model_server import ModelServer, Reply, SeenRequest
from .commands import run

CASCADE = """\
cascade_id: tea
phases:
  - name: dig
    instructions: Find {{ input.topic }}.
    tackle: [search]
    rules: {loop_until: sourced, max_attempts: 3}
    intra_context: {loop_history_limit: 2}
  - {name: write, instructions: Write., context: {from: [dig]}}
"""
SCRIPT = """\
replies:
  - phase: dig
    text: I look.
    calls: [{tool: search, arguments: {q: tea}, result: 3 hits}]
  - {phase: dig, text: It is port 7., refused: no source}
  - phase: dig
    text: |-
      It is port 8.
      SCRATCHPAD:## Current Plan
      - [x] find it
      - [ ] write it
      ## Key Decisions
      - use port 8
      ## Blockers
      - the ledger is closed
  - {phase: write, text: Port 8 it is.}
"""
TOOLS = '''\
def search(q: str, pages: int = 1) -> dict:
    """Search the ledger."""
    return {"hits": pages, "of": q}

def sourced(text):
    return ("ledger" in text, "say where you found it")

def longest(phase, attempts):
    return max(attempts, key=lambda one: len(one.text)).attempt
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("tea.yaml", CASCADE), ("replies.yaml", SCRIPT), ("tools.py", TOOLS)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


TOPIC = ("--input", '{"topic": "tea"}')
SCRIPTED = ("run", "tea.yaml", "--script", "replies.yaml", *TOPIC)


def test_a_cascade_is_played_against_a_script_and_priced(folder: Path) -> None:
    found = json.loads(run(*SCRIPTED, "--json", "--price", "2.5").stdout)

    assert list(found) == ["run", "status", "phases", "state", "efficiency"]
    assert [(one["phase"], one["status"], one["calls"], one["tries"]) for one in found["phases"]] == [
        ("dig", "done", 3, 2),
        ("write", "done", 1, 1),
    ]
    assert [row["phase"] for row in found["efficiency"]] == ["dig", "write", "all"]
    assert list(found["efficiency"][-1]) == [
        "phase",
        "calls",
        "compactions",
        "sent_tokens",
        "everything_tokens",
        "saved",
        "sent_priced",
        "everything_priced",
        "priced_ratio",
        "cached_tokens",
        "dollars",
    ]


def test_runs_are_listed_and_their_mean_is_told_by_cascade(folder: Path) -> None:
    (folder / "more.yaml").write_text(CASCADE.replace("cascade_id: tea", "cascade_id: more"), encoding="utf-8")
    priced = {}
    for cascade, name in (("tea.yaml", "first"), ("tea.yaml", "second"), ("more.yaml", "third")):
        topic = json.dumps({"topic": f"the {name} tea, " * len(priced)})
        played = run("run", cascade, "--script", "replies.yaml", "--input", topic, "--session", name, "--json")
        priced[name] = json.loads(played.stdout)["efficiency"][-1]
    each = json.loads(run("runs", "--json").stdout)["runs"]
    means = json.loads(run("runs", "--by", "cascade", "--price", "2", "--json").stdout)["runs"]

    assert [(row["name"], row["sent_tokens"]) for row in each] == [
        (name, priced[name]["sent_tokens"]) for name in ("first", "second", "third")
    ]
    assert sorted((row["name"], row["runs"], row["calls"]) for row in means) == [("more", 1, 4), ("tea", 2, 4)]
    tea = next(row for row in means if row["name"] == "tea")
    both = [priced["first"], priced["second"]]
    assert tea["everything_tokens"] == sum(row["everything_tokens"] for row in both) / 2
    saved = sum(row["everything_priced"] - row["sent_priced"] for row in both) / 2
    assert tea["dollars_saved"] == pytest.approx(saved * 2 / 1e6, abs=1e-6)
    assert "tea" in run("runs", "--by", "cascade").stdout


LONG = """\
cascade_id: long
phases:
  - {name: dig, instructions: Find the slow host., tackle: [slow]}
"""
SLOW = '''

def slow(n: int) -> str:
    """Look at a host; it takes as long as a model does."""
    time.sleep(0.05)
    return f"host h-{n} answers on port {7000 + n}. " + "request served " * 60
'''


def test_a_model_structures_the_compactions_of_a_run_and_what_that_took_is_told(folder: Path) -> None:
    (folder / "long.yaml").write_text(LONG, encoding="utf-8")
    (folder / "tools.py").write_text("import time\n" + TOOLS + SLOW, encoding="utf-8")
    calls = [
        {"phase": "dig", "text": f"I look at host h-{n}.", "calls": [{"tool": "slow", "arguments": {"n": n}}]}
        for n in range(30)
    ]
    rows = [*calls, {"phase": "dig", "text": "Host h-7 is slow."}]
    (folder / "long.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    args = ("run", "long.yaml", "--script", "long.jsonl", "--tool", "slow=tools.py:slow", "--budget")
    args = (*args, "dynamic_tokens=3000", "--store", f"file:{folder / 'store'}")

    def script(request: SeenRequest) -> Reply:
        said = request.body["messages"][-1]["content"].splitlines()
        shown = [json.loads(line) for line in said if line.startswith('{"ref"')]
        lines = [
            {
                "section": "decisions",
                "text": row["text"].split(".")[0],
                "cites": [row["ref"]],
                "said_by": "assistant",
                "kind": "fact",
            }
            for row in shown
            if row["role"] == "assistant"
        ]
        return Reply(text=json.dumps({"bullets": lines}))

    with ModelServer(script) as server:
        address = f"{server.url}/v1#small"
        found = json.loads(run(*args, "--summary-model", address, "--session", "one", "--json").stdout)
        assert server.requests
        printed = run(*args, "--summary-model", address, "--session", "two").stdout
    assert found["status"] == "done"
    (spent,) = found["summaries"]
    assert (spent["session"], spent["failures"], spent["calls"] > 0, spent["prompt_tokens"] > 0) == (
        "one",
        0,
        True,
        True,
    )
    assert "two: " in printed
    assert "calls for summaries, 0 without an answer" in printed
    with open_store(f"file:{folder / 'store'}") as store:
        reports = [event.report for event in store.session("one").reports()]
        assert any(report.origin is not None and report.origin.grounded for report in reports)
        assert {bullet.section for bullet in store.session("one").state.bullets} >= {"decisions", "technical"}


def test_a_recording_plays_the_same_run_again(folder: Path) -> None:
    first = json.loads(run(*SCRIPTED, "--json", "--record", "again.jsonl").stdout)
    again = run("run", "tea.yaml", "--script", "again.jsonl", *TOPIC, "--session", "again", "--json").stdout

    assert json.loads(again) == {**first, "run": "again"}
    told = run(*SCRIPTED, "--record", "none/x.jsonl", code=2).stderr
    assert told == "ctxsteward: none/x.jsonl: no such file or directory; check the path and its permissions\n"


def test_a_run_that_stopped_goes_on(folder: Path) -> None:
    lines = SCRIPT.rstrip().splitlines(keepends=True)
    (folder / "replies.yaml").write_text("".join(lines[:-1]), encoding="utf-8")
    assert "phase 'write' asks for reply 1; it has 0" in run(*SCRIPTED, code=2).stderr
    (folder / "replies.yaml").write_text(SCRIPT, encoding="utf-8")

    assert json.loads(run(*SCRIPTED, "--json").stdout)["status"] == "done"


@pytest.mark.parametrize("columns", ["80", "200"])
def test_people_see_phases_and_what_they_cost(folder: Path, columns: str) -> None:
    printed = run(*SCRIPTED, "--price", "2.5", COLUMNS=columns).stdout
    for word in ("run tea: done", "dig", "everything", "saved", "cache-priced", "ratio", "$ sent", "$ everything"):
        assert word in printed


def test_a_failed_phase_exits_with_1(folder: Path) -> None:
    (folder / "replies.yaml").write_text(
        "replies:\n" + "  - {phase: dig, text: No., refused: still wrong}\n" * 3, encoding="utf-8"
    )
    found = json.loads(run(*SCRIPTED, "--json", code=1).stdout)

    assert found["status"] == "failed"
    assert found["phases"][0]["reason"] == "'sourced' refused 3 attempts, the last one: still wrong"


# -- an endpoint -----------------------------------------------------------------------------------------------------


class Endpoint(BaseHTTPRequestHandler):
    """OpenAI's chat completions, as far as they are asked here."""

    asked: ClassVar[list[tuple[str | None, dict[str, Any]]]] = []
    replies: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.headers.get("Authorization"), body))
        data = self.replies[len(self.asked) - 1]
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


def completion(text: str | None, **more: Any) -> bytes:
    message = {"role": "assistant", "content": text, "refusal": None, **more}
    usage = {"prompt_tokens": 120, "completion_tokens": 7, "total_tokens": 127}
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}).encode()


@pytest.fixture
def endpoint() -> Iterator[str]:
    Endpoint.asked.clear()
    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


PLAYED = ("--tool", "search=tools.py:search", "--validator", "sourced=tools.py:sourced")


def test_an_endpoint_is_asked_with_tools_and_its_usage_is_kept(
    folder: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXSTEWARD_API_KEY", "sk-test")
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "tea"}'}}
    Endpoint.replies = [
        completion(None, tool_calls=[call]),
        completion("Port 7."),
        completion("Port 8, by the ledger."),
        completion("Done."),
    ]
    found = json.loads(run("run", "tea.yaml", "--base-url", f"{endpoint}#tiny", *TOPIC, *PLAYED, "--json").stdout)

    assert found["status"] == "done"
    assert [body["model"] for _, body in Endpoint.asked] == ["tiny"] * 4
    assert {key for key, _ in Endpoint.asked} == {"Bearer sk-test"}
    assert Endpoint.asked[0][1]["tools"][0]["function"]["description"] == "Search the ledger."
    assert '{"hits": 1, "of": "tea"}' in [message["content"] for message in Endpoint.asked[1][1]["messages"]]
    assert "[Validation Failed]\nsay where you found it" in json.dumps(Endpoint.asked[2][1]).encode().decode(
        "unicode_escape"
    )


@pytest.mark.parametrize("reply", [b"nope", b"{}", b'{"choices": []}', b'{"choices": [{"message": 7}]}'])
def test_an_answer_that_is_none_is_refused(folder: Path, endpoint: str, reply: bytes) -> None:
    Endpoint.replies = [reply]

    assert (
        "its answer is no chat completion"
        in run("run", "tea.yaml", "--base-url", endpoint, *TOPIC, *PLAYED, code=2).stderr
    )


def test_the_endpoint_selects_where_a_strategy_asks_for_a_model(folder: Path, endpoint: str) -> None:
    (folder / "auto.yaml").write_text(
        """\
cascade_id: auto
phases:
  - {name: look, instructions: Look.}
  - name: tell
    instructions: Tell.
    context: {mode: auto, anchors: {include: []}, selection: {strategy: llm, selector_model: cheap}}
""",
        encoding="utf-8",
    )
    chosen = json.dumps({"selected": ["§2", "§9"], "reasoning": "it says"})
    Endpoint.replies = [completion("The relay stalls."), completion(chosen), completion("Told.")]
    found = json.loads(run("run", "auto.yaml", "--base-url", f"{endpoint}#large", "--json").stdout)

    assert [body["model"] for _, body in Endpoint.asked] == ["large", "cheap", "large"]
    assert "The relay stalls." in json.dumps(Endpoint.asked[2][1])
    assert [one["kind"] for one in found["phases"][1]["findings"]] == ["not_on_menu"]


def test_soundings_are_chosen_by_a_function(folder: Path) -> None:
    (folder / "s.yaml").write_text("cascade_id: s\nphases: [{name: a, soundings: {factor: 2}}]\n", encoding="utf-8")
    (folder / "s.jsonl").write_text(
        '{"phase": "a", "attempt": 1, "text": "Short."}\n{"phase": "a", "attempt": 2, "text": "Longer."}\n',
        encoding="utf-8",
    )
    found = run("run", "s.yaml", "--script", "s.jsonl", "--evaluator", "tools.py:longest", "--json").stdout

    assert json.loads(found)["phases"][0]["chosen"] == 2


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("tea.yaml",), "run: say who answers: --script FILE, or --base-url URL"),
        (("tea.yaml", "--script", "replies.yaml", "--base-url", "http://x"), "run: say who answers"),
        (("none.yaml", "--script", "replies.yaml"), "none.yaml: no such file"),
        (("tea.yaml", "--script", "none.yaml"), "none.yaml: no such file"),
        (("tea.yaml", "--script", "tools.py"), "tools.py"),
        (("tea.yaml", "--base-url", "here"), "--base-url here: not an address"),
        (("tea.yaml", "--base-url", "http://[x"), "--base-url http://[x: not an address"),
        (("tea.yaml", "--base-url", "http://127.0.0.1:9/v1"), "tool 'search' has no function; add --tool search="),
        (("tea.yaml", "--base-url", "http://127.0.0.1:9/v1", *PLAYED[:2]), "validator 'sourced' of 'dig' has no"),
        (("tea.yaml", "--base-url", "http://127.0.0.1:9/v1", *PLAYED), "no answer"),
        (("tea.yaml", "--script", "replies.yaml", "--tool", "search"), "--tool search: write NAME=MODULE:FUNCTION"),
        (("tea.yaml", "--script", "replies.yaml", "--tool", "a=tools.py:none"), "tools.py has no 'none'"),
        (("tea.yaml", "--script", "replies.yaml", "--tool", "a=tools.py:__doc__"), "a"),
        (("tea.yaml", "--script", "replies.yaml", "--input", "{"), "--input"),
        (("tea.yaml", "--script", "replies.yaml", "--cached-price", "2"), "prices: a cached token at 2"),
        (("tea.yaml", "--script", "replies.yaml", "--budget", "x=1"), "'x' is no budget"),
        (("tea.yaml", "--script", "replies.yaml", "--summary-model", "small"), "model small: no address; write https:"),
        (("tea.yaml", "--script", "replies.yaml", "--model", "gpt-4p"), "--model gpt-4p: no such model"),
    ],
)
def test_what_is_asked_wrongly_is_refused_in_one_line(folder: Path, args: tuple[str, ...], says: str) -> None:
    told = run("run", *args, *(() if "--input" in args else TOPIC), code=2).stderr

    assert says in told
    assert len(told.splitlines()) == 1


def test_a_key_goes_over_plain_http_to_this_machine_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXSTEWARD_API_KEY", "sk-test")
    told = run("run", "tea.yaml", "--base-url", "http://example.com/v1", *PLAYED, code=2).stderr

    assert "a key over plain HTTP can be read on its way" in told
    assert "sk-test" not in told


SECRET = "sk-live-hush"
TINY = "cascade_id: k\nphases: [{name: dig, instructions: x}]\n"


@pytest.mark.parametrize("key", [f"{SECRET}\rX: y", f"{SECRET}\n{SECRET}", f"{SECRET}\u2026", f"{SECRET}\x7f"])
def test_a_key_that_no_header_takes_is_refused_and_never_shown_or_stored(
    folder: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    (folder / "k.yaml").write_text(TINY, encoding="utf-8")
    monkeypatch.setenv("CTXSTEWARD_API_KEY", key)
    result = run("run", "k.yaml", "--base-url", "http://127.0.0.1:9/v1", code=2)

    assert result.stderr.strip().endswith("it holds a character that no HTTP header takes; set it anew")
    assert SECRET not in result.output + result.stderr
    kept = [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert kept == []


def test_a_key_s_line_end_is_left_out(folder: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "k.yaml").write_text(TINY, encoding="utf-8")
    monkeypatch.setenv("CTXSTEWARD_API_KEY", f" {SECRET}\r\n")
    Endpoint.replies = [completion("Done.")]
    run("run", "k.yaml", "--base-url", endpoint)

    assert Endpoint.asked[0][0] == f"Bearer {SECRET}"


def test_a_header_that_python_refuses_is_not_quoted() -> None:
    with pytest.raises(InputError) as refused:
        post_json("http://127.0.0.1:9/v1", {}, {"Authorization": f"Bearer {SECRET}\r"}, answer_seconds=1)

    assert "ValueError" in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "http://u:hush@127.0.0.1:9/v1",
        "http://u:hush@example.com/v1",
        "u:hush@host",
        "ftp://u:hush@host/",
        "http://[u:hush@x",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_shown(folder: Path, address: str) -> None:
    told = run("run", "tea.yaml", "--base-url", address, *PLAYED, code=2).stderr

    assert "--base-url: a name or password stands in it" in told
    assert "hush" not in told


def test_functions_that_a_nested_sub_cascade_needs_are_asked_for_before_the_first_call(folder: Path) -> None:
    inner = "{cascade_id: b, phases: [{name: pb, instructions: x, tackle: [dive], rules: {loop_until: deep}}]}"
    (folder / "n.yaml").write_text(
        "cascade_id: n\nphases: [{name: main, sub_cascades: [{ref: a}]}]\n"
        f"cascades: [{{cascade_id: a, phases: [{{name: pa, sub_cascades: [{{ref: b}}]}}], cascades: [{inner}]}}]\n",
        encoding="utf-8",
    )
    asked = ("run", "n.yaml", "--base-url", "http://127.0.0.1:9/v1")

    assert "tool 'dive' has no function" in run(*asked, code=2).stderr
    told = run(*asked, "--tool", "dive=tools.py:search", code=2).stderr
    assert "validator 'deep' of 'pb' has no function" in told


# -- handoff ---------------------------------------------------------------------------------------------------------


def test_a_run_is_handed_over_with_its_phases_and_what_its_scratchpad_says(folder: Path) -> None:
    run(*SCRIPTED)
    found = json.loads(run("handoff", "tea", "--json").stdout)

    validate("handoff", found)
    assert (found["completed_items"], found["remaining_items"]) == (
        ["find it", "phase dig", "phase write"],
        ["write it"],
    )
    assert (found["key_decisions"], found["blocking_issues"], found["branch"]) == (
        ["use port 8"],
        ["the ledger is closed"],
        None,
    )


def test_a_handoff_begins_a_new_session(folder: Path) -> None:
    run(*SCRIPTED)
    told = run("handoff", "tea", "--start", "next")

    assert told.stdout.startswith("## Resuming Session\n")
    with open_store(f"file:{folder}/.ctxsteward") as store:
        session = store.session("next")
        assert session.entry(1).message.text.strip() == told.stdout.strip()
        assert "use port 8" in session.state.notes["scratchpad"]
    assert "session 'next' exists already" in run("handoff", "tea", "--start", "next", code=2).stderr


def test_the_workspace_s_branch_head_and_changed_files_are_told(folder: Path) -> None:
    def git(*args: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *identity, *args], check=True, capture_output=True)

    run(*SCRIPTED)
    (folder / ".gitignore").write_text(".ctxsteward\n__pycache__\n", encoding="utf-8")
    git("init", "-b", "fix")
    git("add", ".")
    git("commit", "-m", "first")
    (folder / "tools.py").write_text(TOOLS + "\n", encoding="utf-8")
    (folder / "new file.txt").write_text("x", encoding="utf-8")
    found = json.loads(run("handoff", "tea", "--json").stdout)

    assert (found["branch"], len(found["head_commit"]), found["modified_files"], found["created_files"]) == (
        "fix",
        40,
        ["tools.py"],
        ["new file.txt"],
    )


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("nobody",), "no session 'nobody'; it holds"),
        (("tea", "--store", "file:none"), "--store file:none: no such folder"),
        (("tea", "--workspace", "replies.yaml"), "handoff"),
    ],
)
def test_a_handoff_of_nothing_is_refused(folder: Path, args: tuple[str, ...], says: str) -> None:
    run(*SCRIPTED)

    assert says in run("handoff", *args, code=2).stderr
