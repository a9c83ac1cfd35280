"""Peers side by side: the judge over a small peer in a process of its own, over ours, and over the real ones."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.canary_chats import CanaryScenario
from benchmarks.conversations import conversation
from benchmarks.libraries import AdapterProcess, canonical
from benchmarks.peer_adapter import PEERS
from benchmarks.peers import (
    EVERYTHING,
    NAME,
    EnvelopeSubject,
    Inputs,
    PeerFigures,
    calls_of,
    columns,
    figures_table,
    measure,
    peers,
    peers_block,
    read_inputs,
)
from ctxsteward.envelope.testing import CharTokenizer
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.envelope.transcripts.transcript import TranscriptEntry
from ctxsteward.evals.canaries import TypedCanary
from ctxsteward.evals.documents import block_of, write_blocks
from ctxsteward.evals.prompt_cost import Sizer
from ctxsteward.evals.recall import Question
from ctxsteward.evals.replay import AgentRun
from ctxsteward.evals.subjects import Task
from ctxsteward.evals.subjects.registry import NamedSubject

from ..evals.subjects.talks import FunctionSubject
from ..needs import LIBRARIES, PUBLIC_DATA

ROOT = Path(__file__).parents[2]
DATA = ROOT / "../shared/data"
PYTHON = ROOT / ".venv-peers" / "bin" / "python"
SIZER = Sizer(Counter(CharTokenizer()))
SMALL = Task("small", 100)
TASK = "Find out why the nightly import fails."

FAKE = """
import json, sys, time
kept, later = [], {}
for line in sys.stdin:
    request = json.loads(line)
    match sys.argv[1], request["op"]:
        case "silent", "send":
            time.sleep(60)
        case "dies", "send":
            sys.exit(3)
        case "babbles", "send":
            answer = None
            print("not an answer", flush=True)
            continue
        case "refuses", _:
            answer = {"error": "no such class"}
        case _, "open":
            kept, answer = [], {"version": "1.0", "can": ["resolve"]}
        case _, "send":
            kept += request["messages"]
            references = {f"#{n}": n for n in range(1, len(kept) + 1)}
            answer = {"messages": kept[-2:], "references": references, "cpu_seconds": 0.25}
        case _, "preview":
            answer = {"messages": [*kept, *request["messages"]][-2:], "references": {}, "cpu_seconds": 0.25}
        case _, "resolve":
            held = request["ahead_seconds"] < 1800
            answer = {"text": str(kept[int(request["reference"][1:]) - 1]["content"]) if held else None}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Callable[..., AdapterProcess]]:
    """Starts the small peer, which sends the newest two messages and holds the rest for half an hour."""
    script = tmp_path / "fake.py"
    script.write_text(FAKE, encoding="utf-8")
    started: list[AdapterProcess] = []

    def start(kind: str = "works", answer_seconds: float = 30.0) -> AdapterProcess:
        started.append(AdapterProcess(kind, Path(sys.executable), adapter=script, answer_seconds=answer_seconds))
        return started[-1]

    yield start
    for process in started:
        process.close()


def entries(*wires: dict[str, Any]) -> tuple[TranscriptEntry, ...]:
    return tuple(TranscriptEntry(wire=wire, id=f"D1:{n}") for n, wire in enumerate(wires, 1))


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def looked(n: int) -> list[dict[str, Any]]:
    call = {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": '{"page":1}'}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{n}", "content": f"page {n} " + "x" * 40},
    ]


def parsed(wire: dict[str, Any]) -> dict[str, Any]:
    """A message with the arguments of its calls as values: clients write their JSON with or without spaces."""
    calls = [(call["id"], json.loads(call["function"]["arguments"])) for call in wire.get("tool_calls") or ()]
    return {**canonical(wire), "tool_calls": calls}


def inputs(timed: tuple[int, ...] = (4, 8)) -> Inputs:
    """One agent run of three calls, one canary, one question."""
    run = AgentRun(
        name="run",
        format="openai",
        system=SIZER.pieces([said("system", "You mend things.")]),
        tools_tokens=10,
        messages=SIZER.pieces([said("user", TASK), *looked(1), *looked(2)]),
        seen=(1, 3, 5),
        task=TASK,
        task_ordinal=1,
        ours={},
    )
    case = CanaryScenario(
        name="port",
        messages=(
            said("user", "Staging listens on port 8443."),
            *(said(("assistant", "user")[n % 2], f"number {n}") for n in range(6)),
        ),
        canaries=(TypedCanary(kind="number", value="8443", ordinals=(1,)),),
    )
    talk = (
        entries(said("user", "the key hangs in the shed"), *(said("assistant", f"day {n}") for n in range(5))),
        (Question("Where is the key?", 4, ("D1:1",)),),
    )
    small_talk = tuple(entries(*conversation(size + 4)) for size in timed)
    return Inputs((run,), (case,), (talk,), small_talk, timed_calls=2)


# -- the judge -------------------------------------------------------------------------------------------------------


def figures(made: PeerFigures, *names: str) -> list[float]:
    return [made.figures[name] for name in names]


def test_the_judge_reads_what_a_peer_in_its_own_process_sends(fake: Callable[..., AdapterProcess]) -> None:
    """The newest two messages: history is lost, and half an hour later the way back to it too."""
    made = measure("fake", fake, inputs(), SIZER, note="the newest two messages")
    assert (made.version, made.note, made.unscored) == ("1.0", "the newest two messages", {})
    assert figures(made, "calls", "invalid", "task_shown", "task_reachable") == [3, 0, 0, 1]
    assert figures(made, "canaries shown", "reachable", "later") == [0, 100, 0]
    assert figures(made, "recall", "ms at 4", "ms at 8") == [0, 250, 250]


def test_everything_shows_everything_and_keeps_to_no_budget() -> None:
    made = measure("all", lambda: NamedSubject(EVERYTHING), inputs(), SIZER)
    assert figures(made, "canaries shown", "reachable", "later") == [100, 100, 100]
    assert made.figures["canaries fill"] > 4
    assert figures(made, "task_shown", "recall") == [1, 100]


def test_ours_is_read_by_the_same_judge() -> None:
    made = measure("ours", EnvelopeSubject, inputs(), SIZER)
    assert made.unscored == {}
    assert figures(made, "calls", "invalid", "task_shown", "over_budget") == [3, 0, 1, 0]
    assert figures(made, "reachable", "later") == [100, 100]


def test_a_request_of_nothing_but_system_messages_is_refused() -> None:
    made = measure("nothing", lambda: FunctionSubject("nothing", lambda conversation: []), inputs(), SIZER)
    assert made.figures["invalid"] == made.figures["calls"] > 0


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        pytest.param("refuses", "refuses: no such class", id="says that it cannot"),
        pytest.param("dies", "dies: its process ended with 3", id="ends"),
        pytest.param("babbles", "babbles: its answer is no JSON: b'not an answer'", id="says something else"),
        pytest.param("silent", "silent: no answer within 0.5 s", id="says nothing"),
    ],
)
def test_a_peer_that_fails_is_not_scored_and_says_why(kind: str, why: str, fake: Callable[..., AdapterProcess]) -> None:
    made = measure(kind, lambda: fake(kind, 0.5 if kind == "silent" else 30.0), inputs(), SIZER)
    assert "calls" not in made.figures
    assert why in (made.unscored.get("all"), made.unscored.get("cost"))


# -- the adapter -----------------------------------------------------------------------------------------------------


def test_an_adapter_imports_nothing_of_ours() -> None:
    source = (ROOT / "benchmarks/peer_adapter.py").read_text(encoding="utf-8")
    imports = [line for line in source.splitlines() if line.startswith(("import ", "from "))]
    assert [line for line in imports if "ctxsteward" in line or line.startswith("from .")] == []
    assert {line.split()[1].partition(".")[0] for line in imports} <= sys.stdlib_module_names


@pytest.mark.skipif(not PYTHON.is_file(), reason=LIBRARIES)
@pytest.mark.parametrize("name", PEERS)
def test_a_real_peer_answers_every_request(name: str) -> None:
    made = measure(name, lambda: AdapterProcess(name, PYTHON), inputs(), SIZER)
    assert made.unscored == {}
    assert made.version
    assert made.figures["calls"] == 3
    assert made.figures["tokens"] > 3 * 10
    assert min(figures(made, "ms at 4", "ms at 8")) > 0


@pytest.mark.skipif(not PYTHON.is_file(), reason=LIBRARIES)
@pytest.mark.parametrize("name", PEERS)
def test_what_fits_the_budget_comes_back_as_it_went_in(name: str) -> None:
    process = AdapterProcess(name, PYTHON)
    try:
        dialogue = process.open(Task("fits", 4_000), len)
        wires = [said("user", TASK), *looked(1), *looked(2), said("assistant", "Done."), said("user", "Thanks.")]
        for wire in wires:
            dialogue.add(wire)
        sent = dialogue.prompt()
        asked = dialogue.prompt("Why?")
    finally:
        process.close()
    assert [parsed(wire) for wire in sent.messages] == [parsed(wire) for wire in wires]
    assert list(asked.messages)[-1] == said("user", "Why?")
    assert len(asked.messages) == len(wires) + 1


# -- the table -------------------------------------------------------------------------------------------------------


def measured(name: str, tokens: int, shown: float) -> PeerFigures:
    figures = {"tokens": tokens, "priced": tokens / 2, "canaries shown": shown}
    return PeerFigures(name=name, version="2.0", note=f"{name} as it comes", figures=figures)


def test_what_wins_a_column_is_bold_whoever_it_is_and_ties_win_alike() -> None:
    rows = [measured(EVERYTHING, 1000, 100), measured("ours", 800, 70), measured("theirs", 700, 70.2)]
    lines = list(figures_table(rows, columns(inputs())[:2] + columns(inputs())[6:7]))
    assert lines[2:] == [
        "| everything | 1.00 | 1.00 | 100 |",
        "| ours | 0.80 | 0.80 | **70** |",
        "| theirs | **0.70** | **0.70** | **70** |",
    ]


def test_what_was_not_scored_is_a_dash_and_its_reason_is_written(tmp_path: Path) -> None:
    failed = PeerFigures(name="theirs", unscored={"all": "theirs: no such class"})
    page = tmp_path / "page.md"
    page.write_text(f"before <!-- {NAME} -->old<!-- /{NAME} --> after", encoding="utf-8")
    write_blocks(page, {NAME: peers_block([measured(EVERYTHING, 1000, 100), failed], inputs(), 61.0)})
    text = page.read_text(encoding="utf-8")
    assert "| theirs | " + " | ".join("-" * len(columns(inputs()))) + " |" in text
    assert "  - all not scored: theirs: no such class" in text
    assert text.startswith(f"before <!-- {NAME} -->\nOne run, 1 minutes.")
    assert text.endswith(f"<!-- /{NAME} --> after")


def test_the_table_of_the_page_is_generated_and_whole() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    block = block_of(page, NAME)
    rows = [line for line in block.splitlines() if line.startswith("|")]
    assert len({row.count("|") for row in rows}) == 1
    for name in peers(PYTHON):
        assert any(row.startswith(f"| {name} |") for row in rows), name
        assert f"- {name}" in block


# -- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not DATA.is_dir(), reason=PUBLIC_DATA)
def test_inputs_of_real_data_are_canonical_and_sampled(tmp_path: Path) -> None:
    (tmp_path / "locomo").symlink_to(DATA / "locomo")
    for folder, pattern, lines in (("tau_bench_airline", "runs_even*.jsonl", 12), ("swe_agent", "*.traj", None)):
        (tmp_path / folder).mkdir()
        for path in sorted((DATA / folder).glob(pattern))[:3]:
            text = path.read_text(encoding="utf-8")
            (tmp_path / folder / path.name).write_text("".join(text.splitlines(keepends=True)[:lines]))
    made = read_inputs(tmp_path, SIZER, every_run=3, seeds=0, every_question=100, sizes=(10,), timed_calls=2)
    assert len(made.runs) == 5
    keys = {frozenset(row.wire) for run in made.runs for said in calls_of(run) for row in said}
    assert keys <= {
        frozenset({"role", "content"}),
        frozenset({"role", "content", "tool_calls"}),
        frozenset({"role", "content", "tool_call_id"}),
    }
    assert made.scenarios == ()
    assert all(questions for _, questions in made.talks)
    assert [len(said) for said in made.timed] == [14]
