"""tau-bench runs and both generations of SWE-agent's `.traj`, on small runs written for the purpose."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxsteward.envelope.transcripts.files import parse_transcripts
from ctxsteward.envelope.transcripts.transcript import Transcript
from ctxsteward.schemas.message import Wire

from ..messages import reply, result, user

SYSTEM = {"role": "system", "content": "You are an agent."}
TASK = {"role": "user", "content": "Fix the bug."}


def read(value: Any, source: str = "runs.json") -> list[Transcript]:
    return list(parse_transcripts(json.dumps(value), source))


def wires(transcript: Transcript) -> list[Wire]:
    return [entry.wire for entry in transcript.entries()]


def history(*steps: Wire) -> Transcript:
    (transcript,) = read({"trajectory": [], "history": [SYSTEM | {"agent": "main"}, *steps], "info": {}}, "a/x.traj")
    return transcript


def old(thought: str, action: str | None, **extra: Any) -> Wire:
    content = f"{thought}```\n{action}```"
    return {"role": "assistant", "content": content, "thought": thought, "action": action, "agent": "main"} | extra


def command(position: int, name: str, action: str, thought: str | None) -> Wire:
    function = {"name": name, "arguments": json.dumps({"command": action}, ensure_ascii=False)}
    call = {"id": f"call_{position}", "type": "function", "function": function}
    return {"role": "assistant", "content": thought, "tool_calls": [call]}


def test_a_run_is_named_after_its_task_and_trial() -> None:
    runs = [{"task_id": 4, "trial": trial, "reward": 1.0, "info": {}, "traj": [SYSTEM, TASK]} for trial in (0, 1)]
    transcripts = read(runs)
    assert [one.session for one in transcripts] == ["runs-task4-trial0", "runs-task4-trial1"]
    assert [(one.format, one.system, wires(one)) for one in transcripts] == [
        ("tau-bench", ("You are an agent.",), [TASK])
    ] * 2


def test_a_run_twice_in_a_file_keeps_sessions_apart() -> None:
    run = {"task_id": 4, "trial": 0, "traj": [TASK]}
    assert [one.session for one in read([run, run])] == ["runs-task4-trial0", "runs-task4-trial0-1"]


def test_a_run_that_crashed_has_no_entries_and_says_so() -> None:
    (transcript,) = read({"task_id": 1, "trial": 0, "reward": 0.0, "info": {"error": "x"}, "traj": []})
    assert wires(transcript) == []
    assert [finding.kind for finding in transcript.findings] == ["empty_run"]


def test_an_old_step_becomes_a_call_and_its_observation_the_result() -> None:
    transcript = history(TASK, old("Look.\n", "ls -a\n"), {"role": "user", "content": "main.py", "agent": "main"})
    assert transcript.system == ("You are an agent.",)
    assert (transcript.format, transcript.session) == ("swe-agent", "x")
    assert wires(transcript) == [TASK, command(2, "ls", "ls -a\n", "Look.\n"), result("call_2", "main.py")]
    assert [tool["function"]["name"] for tool in transcript.tools] == ["ls"]
    assert {entry.phase for entry in transcript.entries()} == {None}


CALLS = [
    {"id": id, "type": "function", "function": {"name": "open", "arguments": '{"path": "a"}'}} for id in ("c1", "c2")
]
NEW = {"role": "assistant", "content": "T", "tool_calls": CALLS[:1]}
BLOCK = {"type": "text", "text": "main.py"}
NAMED = {"open a.py": "open", "./run.sh": "bash", "a.py x": "bash", "x" * 65: "bash", "é": "bash", " pwd": "pwd"}
"""By the first word of a command, where a provider would allow it as a name."""
STEPS: dict[str, tuple[list[Wire], list[Wire]]] = {
    **{
        f"a command {action[:9]!r}": ([old("T", action)], [command(2, name, action, "T")])
        for action, name in NAMED.items()
    },
    "an empty thought is no content": ([old(" \n", "ls")], [command(2, "ls", "ls", None)]),
    **{
        f"no call for the action {action!r}, and the answer stays a user's": (
            [old("I give up.", action), user("Bad format.")],
            [reply(old("I give up.", action)["content"]), user("Bad format.")],
        )
        for action in ("", " \n", None)
    },
    "a second user message without a waiting call stays one": (
        [old("T", "ls"), user("a"), user("b")],
        [command(2, "ls", "ls", "T"), result("call_2", "a"), user("b")],
    ),
    "a new step keeps its calls and answers each of their ids": (
        [
            {**NEW, "thought": "T", "action": "open a", "tool_calls": CALLS, "agent": "m"},
            {"role": "tool", "content": "text", "tool_call_ids": ["c1", "c2"], "message_type": "observation"},
        ],
        [{**NEW, "tool_calls": CALLS}, result("c1", "text"), result("c2", "text")],
    ),
    "a new step without ids answers the calls before it": (
        [NEW, {"role": "tool", "content": "text", "tool_call_ids": None}],
        [NEW, result("c1", "text")],
    ),
    "a user who speaks after a new step is not taken for its result": ([NEW, TASK], [NEW, TASK]),
    "cache marks of the agent are left behind": (
        [
            old("T", "ls"),
            {"role": "user", "content": [BLOCK | {"cache_control": {"type": "ephemeral"}}], "cache_control": {}},
        ],
        [command(2, "ls", "ls", "T"), result("call_2", [BLOCK])],
    ),
}


@pytest.mark.parametrize(("steps", "expected"), STEPS.values(), ids=STEPS.keys())
def test_steps_become_messages(steps: list[Wire], expected: list[Wire]) -> None:
    assert wires(history(TASK, *steps)) == [TASK, *expected]


EXAMPLE = {"role": "user", "content": "Example", "is_demo": True}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([EXAMPLE, TASK, old("T", "ls")], [("demo", "user"), ("task", "user"), ("task", "assistant")]),
        (
            [EXAMPLE, old("D", "submit", is_demo=True), TASK],
            [("demo", "user"), ("demo", "assistant"), ("task", "user")],
        ),
    ],
    ids=["a message", "steps"],
)
def test_a_demonstration_is_an_example_and_the_task_follows(steps: list[Wire], expected: list[Any]) -> None:
    assert [(entry.phase, entry.wire["role"]) for entry in history(*steps).entries()] == expected
