"""agent-framework's own agent with our history and view, in an environment of its own (`make integrations`)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ...needs import FRAMEWORKS

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-integrations" / "bin" / "python"
ROOMS = ("schemas", "envelope", "summarizers", "steward", "evals", "flows", "console")
BUDGET_TOKENS = 700
HEAD = "You keep a shop's books."
pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason=FRAMEWORKS)


def played(*specs: object) -> dict[str, Any]:
    """What came of these runs, in a process of its own."""
    done = subprocess.run(
        [PYTHON, Path(__file__).with_name("agent_framework_run.py"), *map(str, specs)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(str(ROOT / room) for room in ROOMS)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All modes; `after` is what a second process made of the store of `ours`."""
    store = f"file:{tmp_path_factory.mktemp('store')}"
    specs = ["ours", 1, 30, store, "theirs", 1, 60, "memory:", "view", 1, 60, "memory:", "aside", 1, 15, "memory:"]
    specs += [
        "profile",
        1,
        3,
        "memory:",
        "broken",
        1,
        4,
        "memory:",
        "per_call",
        1,
        8,
        "memory:",
        "dear",
        1,
        12,
        "memory:",
    ]
    specs += ["failing", 1, 10, "memory:", "theirs_failing", 1, 10, "memory:"]
    return {**played(*specs), "after": played("ours", 31, 60, store)["ours"]}


def test_the_example_prints_what_it_says() -> None:
    example = ROOT / "docs" / "examples" / "integrations" / "agent_framework_history.py"
    rooms = os.pathsep.join(str(ROOT / room) for room in ROOMS)
    done = subprocess.run(
        [PYTHON, example], env=os.environ | {"PYTHONPATH": rooms}, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("162 messages in the history, 10 sent\nthe frame number is in what was sent: True\n")


def messages(state: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Saved messages without the ids that the framework draws anew in each run."""
    text = json.dumps(state)
    drawn = {content["id"] for message in state for content in message["contents"] if content.get("id")}
    for id in drawn:
        text = text.replace(id, "")
    plain: list[dict[str, Any]] = json.loads(text)
    return plain


def answers_stand_behind_their_calls(wires: list[dict[str, Any]]) -> bool:
    """Each call answered by the next messages, and nothing answered that was not called."""
    waiting: set[str] = set()
    for wire in wires:
        if wire["role"] == "tool":
            if wire["tool_call_id"] not in waiting:
                return False
            waiting.discard(wire["tool_call_id"])
            continue
        if waiting:
            return False
        waiting = {call["id"] for call in wire.get("tool_calls") or ()}
    return not waiting and wires[0]["role"] == "user"


def test_sixty_turns_stay_in_the_budget_and_each_request_is_valid(runs: dict[str, Any]) -> None:
    requests = [*runs["ours"]["requests"], *runs["after"]["requests"]]
    tokens = [*runs["ours"]["tokens"], *runs["after"]["tokens"]]
    assert (len(requests), {one["stream"] for one in requests}) == (len(runs["theirs"]["requests"]), {True, False})
    assert [at for at, one in enumerate(requests) if not answers_stand_behind_their_calls(one["wires"])] == []
    assert {one["instructions"] for one in requests} == {HEAD}
    assert max(tokens) <= BUDGET_TOKENS < max(runs["theirs"]["tokens"]) // 40
    assert (runs["ours"]["warned"], runs["after"]["warned"]) == ([], [])
    assert {*runs["ours"]["overflow"], *runs["after"]["overflow"]} == {0}
    assert runs["after"]["reports"] > runs["ours"]["reports"] > 0


def test_nothing_is_lost_and_all_is_there_once_in_order_after_a_restart(runs: dict[str, Any]) -> None:
    theirs = runs["theirs"]["state"]["in_memory"]["messages"]
    assert messages(runs["after"]["history"]) == messages(theirs)
    said = [(wire["role"], wire["content"]) for wire in runs["after"]["log"]]
    expected = [one for message in theirs for one in spoken(message)]
    assert said == expected
    assert runs["after"]["forks"] == []
    asked = next(one["wires"] for one in runs["after"]["requests"] if "turn 50" in str(one["wires"][-1]["content"]))
    assert "My budget is 4711 yen." in str(asked)


def spoken(message: dict[str, Any]) -> list[tuple[str, str | None]]:
    if message["role"] == "tool":
        return [("tool", content["result"]) for content in message["contents"]]
    texts = [content["text"] for content in message["contents"] if content["type"] == "text"]
    return [(message["role"], "".join(texts) or None)]


def test_the_framework_s_own_state_is_as_it_is_without_us(runs: dict[str, Any]) -> None:
    theirs = runs["theirs"]["state"]
    assert messages(runs["view"]["state"]["in_memory"]["messages"]) == messages(theirs["in_memory"]["messages"])
    assert set(runs["view"]["state"]) == {"in_memory"}
    assert runs["ours"]["state"] == {"ctxsteward": {}}
    assert max(runs["view"]["tokens"]) <= BUDGET_TOKENS
    assert [*runs["ours"]["tokens"], *runs["after"]["tokens"]] == runs["view"]["tokens"]


def test_the_context_is_told_what_a_message_stands_for(runs: dict[str, Any]) -> None:
    replaced = runs["after"]["replaced"]
    assert {role for role, _ in replaced} == {"user", "tool"}
    assert max(count for role, count in replaced if role == "user") > 100
    assert {count for role, count in replaced if role == "tool"} == {1}


def test_what_another_provider_adds_is_shown_in_each_request_and_not_logged(runs: dict[str, Any]) -> None:
    added = [
        [wire["content"] for wire in one["wires"]].count("(Today is Tuesday.)") for one in runs["aside"]["requests"]
    ]
    assert set(added) == {1}
    assert all(
        one["wires"][at + 1]["content"].startswith("This is turn ")
        for one in runs["aside"]["requests"]
        for at, wire in enumerate(one["wires"])
        if wire["content"] == "(Today is Tuesday.)"
    )
    assert "Tuesday" not in json.dumps([runs["aside"]["log"], runs["aside"]["history"]])
    assert runs["aside"]["forks"] == []


def test_a_profile_of_ours_stands_before_the_agent_s_instructions(runs: dict[str, Any]) -> None:
    assert {one["instructions"] for one in runs["profile"]["requests"]} == {f"You count twice.\n\n{HEAD}"}


def test_where_ours_fails_the_framework_s_own_request_is_sent_with_a_warning(runs: dict[str, Any]) -> None:
    calls = len(runs["broken"]["requests"])
    sent = [one["wires"] for one in runs["broken"]["requests"]]
    assert sent == [one["wires"] for one in runs["theirs"]["requests"][:calls]]
    warning = "could not build the context of this call; the caller's own request is sent: ZeroDivisionError"
    assert runs["broken"]["warned"] == [warning] * calls


def test_a_turn_that_failed_and_is_asked_again_is_in_the_history_once(runs: dict[str, Any]) -> None:
    failing, theirs = runs["failing"], runs["theirs_failing"]
    assert messages(failing["history"]) == messages(theirs["state"]["in_memory"]["messages"])
    assert len(failing["requests"]) == len(theirs["requests"])
    assert [
        at for at, one in enumerate(failing["requests"]) if not answers_stand_behind_their_calls(one["wires"])
    ] == []
    said = [(wire["role"], wire["content"]) for wire in failing["log"]]
    assert said == [one for message in failing["history"] for one in spoken(message)]
    assert (failing["forks"], failing["warned"]) == ([], [])


def test_usage_corrects_the_estimates(runs: dict[str, Any]) -> None:
    assert runs["ours"]["calibration"] == 1.0
    assert 1.45 <= runs["dear"]["calibration"] <= 1.55
    assert max(runs["dear"]["tokens"][4:]) * 1.45 <= BUDGET_TOKENS


def test_histories_loaded_behind_all_middleware_are_kept_and_sent_whole(runs: dict[str, Any]) -> None:
    per_call = runs["per_call"]
    calls = len(per_call["requests"])
    assert [one["wires"] for one in per_call["requests"]] == [
        one["wires"] for one in runs["theirs"]["requests"][:calls]
    ]
    saved = [one for message in per_call["history"] for one in spoken(message)]
    theirs = [one for message in runs["theirs"]["state"]["in_memory"]["messages"] for one in spoken(message)]
    assert saved == theirs[: len(saved)]
    assert per_call["log"] == []


def test_the_examples_in_its_docstrings_hold(runs: dict[str, Any]) -> None:
    assert runs["doctests_failed"] == 0
