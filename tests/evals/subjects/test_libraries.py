"""Other libraries' strategies through their own code, and Inspect solvers, each in its own environment."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ctxsteward.evals.subjects import PEERS
from ctxsteward.evals.subjects.other_processes import LibrarySubject
from ctxsteward.schemas import InputError, Wire

from ...needs import INSPECT, LIBRARIES
from .talks import ASK, TALK, asked, last_call, moments

ROOT = Path(__file__).parents[3]
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
INSPECT_PYTHON = ROOT / ".venv-inspect" / "bin" / "python"
ROOMS = ("schemas", "envelope", "summarizers", "steward", "evals", "flows", "console")
needs_peers = pytest.mark.skipif(not PEERS_PYTHON.is_file(), reason=LIBRARIES)
needs_inspect = pytest.mark.skipif(not INSPECT_PYTHON.is_file(), reason=INSPECT)
LONG: tuple[Wire, ...] = tuple({**wire, "content": f"{wire['content']} " * 12} for wire in TALK * 4)


@needs_peers
@pytest.mark.parametrize("name", ["langchain-trim", "agent-framework", "pydantic-ai-window"])
def test_a_library_sends_all_that_fits_and_less_of_what_does_not(name: str) -> None:
    assert name in PEERS
    subject = LibrarySubject(name, PEERS_PYTHON)
    short = moments(subject, TALK, ASK)
    assert last_call(short).prompt.messages == list(TALK[:11])
    assert asked(short).prompt.messages == [*TALK, {"role": "user", "content": ASK.question}]
    assert (last_call(short).prompt.cpu_seconds or 0) > 0
    sent = last_call(moments(subject, LONG, budget_tokens=1_000)).prompt.messages
    assert 0 < len(sent) < len(LONG) - 1
    assert all(wire in LONG for wire in sent if wire["role"] != "system")


def test_a_library_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"subject strands: .+ is not there; run `make adapters` first"):
        moments(LibrarySubject("strands", tmp_path / "python"))


SOLVERS = """
from inspect_ai.solver import generate, solver, chain, system_message

@solver
def newest():
    async def solve(state, generate):
        state.messages = state.messages[-3:]
        return await generate(state)
    return solve

@solver
def silent():
    async def solve(state, generate):
        state.messages = state.messages[-1:]
        return state
    return solve

@solver
def fails():
    async def solve(state, generate):
        raise RuntimeError("no rows")
    return solve

def told():
    return chain(system_message("Be short."), generate())

def number():
    return 7
"""
JUDGE = """
import json, sys
from ctxsteward.evals.subjects import Task, answers, subject_named
from ctxsteward.schemas import InputError

said = json.load(sys.stdin)
for name in sys.argv[1:]:
    try:
        dialogue = subject_named(name).open(Task("t", 1000), len)
        for wire in said:
            answers.say(dialogue, wire)
        print(json.dumps(answers.ask(name, dialogue).messages))
    except (InputError, RuntimeError) as error:
        print(json.dumps(str(error)))
"""


@needs_inspect
def test_an_inspect_solver_is_judged_by_what_it_would_generate_from(tmp_path: Path) -> None:
    (tmp_path / "solvers.py").write_text(SOLVERS)
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"page": 1}'}}
    said: list[Wire] = [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "page 1"},
        {"role": "user", "content": "And?"},
    ]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(ROOT / room) for room in ROOMS),
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
        "INSPECT_LOG_LEVEL": "error",
    }
    names = [f"inspect:solvers.py:{each}" for each in ("newest", "silent", "told", "fails", "number")]
    done = subprocess.run(
        [INSPECT_PYTHON, "-c", JUDGE, *names, "inspect:solvers:silent"],
        env=environment,
        cwd=tmp_path,
        input=json.dumps(said),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    newest, silent, told, fails, number, by_module = map(json.loads, done.stdout.splitlines())
    assert newest == said[1:]
    assert silent == by_module == said[-1:]
    assert told == [{"role": "system", "content": "Be short."}, *said]
    assert fails == "no rows"
    assert "solvers.py:number: int 7 is no solver" in number
