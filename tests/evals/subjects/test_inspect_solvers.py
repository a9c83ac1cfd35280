"""Inspect solvers as subjects, in the environment of Inspect."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ctxsteward.schemas.message import Wire

from ...needs import INSPECT

ROOT = Path(__file__).parents[3]
INSPECT_PYTHON = ROOT / ".venv-inspect" / "bin" / "python"
ROOMS = ("schemas", "envelope", "summarizers", "steward", "evals", "flows", "console")
needs_inspect = pytest.mark.skipif(not INSPECT_PYTHON.is_file(), reason=INSPECT)


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
from ctxsteward.evals.subjects import Task, answers
from ctxsteward.evals.subjects.registry import subject_named
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
