"""tau-bench runs and both generations of SWE-agent's `.traj`, on small runs written for the purpose."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxsteward.envelope.transcripts import Transcript, parse_transcripts

SYSTEM = {"role": "system", "content": "You are an agent."}
TASK = {"role": "user", "content": "Fix the bug."}


def read(value: Any, source: str = "runs.json") -> list[Transcript]:
    return list(parse_transcripts(json.dumps(value), source))


def wires(transcript: Transcript) -> list[dict[str, Any]]:
    return [entry.wire for entry in transcript.entries()]


def history(*steps: dict[str, Any]) -> Transcript:
    (transcript,) = read({"trajectory": [], "history": [SYSTEM | {"agent": "main"}, *steps], "info": {}}, "a/x.traj")
    return transcript


def old(thought: str, action: str | None, **extra: Any) -> dict[str, Any]:
    content = f"{thought}```\n{action}```"
    return {
        "role": "assistant",
        "content": content,
        "thought": thought,
        "action": action,
        "agent": "main",
    } | extra


def command(position: int, name: str, action: str, thought: str | None) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps({"command": action}, ensure_ascii=False)}
    call = {"id": f"call_{position}", "type": "function", "function": function}
    return {"role": "assistant", "content": thought, "tool_calls": [call]}


def result(id: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


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


@pytest.mark.parametrize(
    ("action", "name"),
    [
        ("open a.py", "open"),
        ("./run.sh", "bash"),
        ("a.py x", "bash"),
        ("x" * 65, "bash"),
        ("é", "bash"),
        (" pwd", "pwd"),
    ],
    ids=["command", "path", "dot", "too long for a provider", "not ASCII", "leading space"],
)
def test_a_call_is_named_after_the_first_word_if_a_provider_allows_it(action: str, name: str) -> None:
    assert wires(history(TASK, old("T", action)))[1] == command(2, name, action, "T")


def test_an_empty_thought_is_no_content() -> None:
    assert wires(history(TASK, old(" \n", "ls")))[1]["content"] is None


@pytest.mark.parametrize("action", ["", " \n", None])
def test_a_step_without_an_action_makes_no_call_and_the_answer_stays_a_user_message(
    action: str | None,
) -> None:
    step = old("I give up.", action)
    transcript = history(TASK, step, {"role": "user", "content": "Bad format."})
    assert wires(transcript)[1:] == [
        {"role": "assistant", "content": step["content"]},
        {"role": "user", "content": "Bad format."},
    ]


def test_a_second_user_message_without_a_waiting_call_stays_one() -> None:
    transcript = history(TASK, old("T", "ls"), {"role": "user", "content": "a"}, {"role": "user", "content": "b"})
    assert wires(transcript)[2:] == [result("call_2", "a"), {"role": "user", "content": "b"}]


CALLS = [
    {"id": id, "type": "function", "function": {"name": "open", "arguments": '{"path": "a"}'}} for id in ("c1", "c2")
]


def test_a_new_step_keeps_its_calls_and_answers_each_of_their_ids() -> None:
    transcript = history(
        TASK,
        {
            "role": "assistant",
            "content": "T",
            "thought": "T",
            "action": "open a",
            "tool_calls": CALLS,
            "agent": "m",
        },
        {"role": "tool", "content": "text", "tool_call_ids": ["c1", "c2"], "message_type": "observation"},
    )
    assert wires(transcript)[1:] == [
        {"role": "assistant", "content": "T", "tool_calls": CALLS},
        result("c1", "text"),
        result("c2", "text"),
    ]


def test_a_new_step_without_ids_answers_the_calls_before_it() -> None:
    calls = {"role": "assistant", "content": "T", "tool_calls": CALLS[:1]}
    transcript = history(TASK, calls, {"role": "tool", "content": "text", "tool_call_ids": None})
    assert wires(transcript)[2:] == [result("c1", "text")]


def test_a_user_who_speaks_after_a_new_step_is_not_taken_for_its_result() -> None:
    calls = {"role": "assistant", "content": "T", "tool_calls": CALLS[:1]}
    assert wires(history(TASK, calls, TASK))[2:] == [TASK]


def test_a_demonstration_is_an_example_and_the_task_follows() -> None:
    transcript = history({"role": "user", "content": "Example", "is_demo": True}, TASK, old("T", "ls"))
    assert [(entry.phase, entry.wire["role"]) for entry in transcript.entries()] == [
        ("demo", "user"),
        ("task", "user"),
        ("task", "assistant"),
    ]


def test_a_demonstration_in_steps_does_not_swallow_the_task() -> None:
    demo = [{"role": "user", "content": "Example", "is_demo": True}, old("D", "submit", is_demo=True)]
    transcript = history(*demo, TASK)
    assert [(entry.phase, entry.wire["role"]) for entry in transcript.entries()] == [
        ("demo", "user"),
        ("demo", "assistant"),
        ("task", "user"),
    ]


def test_cache_marks_of_the_agent_are_left_behind() -> None:
    block = {"type": "text", "text": "main.py"}
    marked = {
        "role": "user",
        "content": [block | {"cache_control": {"type": "ephemeral"}}],
        "cache_control": {},
    }
    assert wires(history(TASK, old("T", "ls"), marked))[2:] == [result("call_2", [block])]
