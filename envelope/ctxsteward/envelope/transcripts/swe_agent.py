"""SWE-agent `.traj` files: the agent's `history`, rewritten as clean OpenAI chat messages.

Two generations are read. The newer one has `tool_calls`, and results in role `tool` with `tool_call_ids` (a
list). In the older one the assistant's content holds a thought and a fenced action, kept apart in `thought`
and `action`, and the observation comes back as a user message: it becomes a call ``call_<position in
history>`` with the arguments ``{"command": action}`` and a result in role `tool`. SWE-agent's own keys
(agent, thought, action, message_type, cache_control, …) are left behind.

The first user message that is no demonstration is the task. A demonstration (`is_demo`) stays an entry,
with phase `demo`; in such a file all else has phase `task`. An assistant message without an action makes no
call, and the user message after it stays one. Shape: SWE-agent/SWE-agent, `sweagent/types.py` and the run
files it publishes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxsteward.schemas import InvalidTranscript, Message, Wire

from .strict_json import at, checked, show
from .transcript import Transcript, TranscriptEntry, TranscriptValue, inferred, tools_inferred

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What a provider allows as a tool's name."""


def read_trajectory(item: TranscriptValue) -> Transcript:
    """The transcript of one `.traj` file."""
    assert isinstance(item.value, dict)
    where, history = at(item.place, "history"), item.value["history"]
    if not isinstance(history, list) or not history:
        raise InvalidTranscript(item.source, where, f"found {show(history)}", "expected an array of messages")
    has_demo = any(isinstance(step, dict) and step.get("is_demo") is True for step in history)
    system: list[str] = []
    entries: list[TranscriptEntry] = []
    for is_demo, message in _messages(history, item.source, where):
        if not entries and not is_demo and message.role in ("system", "developer"):
            system.append(message.text)
        else:
            phase = ("demo" if is_demo else "task") if has_demo else None
            entries.append(TranscriptEntry(wire=message.wire, phase=phase))
    stubs = inferred(entry.wire for entry in entries)
    return Transcript(
        source=item.source,
        format="swe-agent",
        session=item.session,
        system=tuple(text for text in system if text),
        tools=tuple(stubs.values()),
        findings=tools_inferred(stubs),
        open_entries=tuple(entries).__iter__,
    )


class _PendingCalls(NamedTuple):
    """Calls whose observation is still to come."""

    ids: tuple[str, ...] = ()
    comes_as_user: bool = False
    """The older generation: the next user message is the observation."""


def _messages(history: list[object], source: str, where: str) -> Iterator[tuple[bool, Message]]:
    """Whether it is of a demonstration, and the message; a result for several calls is one message each."""
    waiting, was_demo = _PendingCalls(), False
    for position, step in enumerate(history):
        place = f"{where}[{position}]"
        original = checked(step, source, place)
        is_demo = original.wire.get("is_demo") is True
        wires, waiting = _rewritten(original.wire, position, waiting if is_demo == was_demo else _PendingCalls())
        was_demo = is_demo
        for wire in wires:
            yield is_demo, original if wire == original.wire else checked(wire, source, place)


def _rewritten(step: Wire, position: int, waiting: _PendingCalls) -> tuple[list[Wire], _PendingCalls]:
    """The clean messages of a step, and the calls that wait for an observation after it."""
    role, content = step["role"], _clean(step.get("content"))
    if role == "assistant" and step.get("tool_calls"):
        ids = tuple(call["id"] for call in step["tool_calls"] if isinstance(call.get("id"), str))
        return [{"role": role, "content": content, "tool_calls": step["tool_calls"]}], _PendingCalls(ids)
    if role == "assistant" and _has_text(step.get("action")):
        return [_thought_and_action(step, position)], _PendingCalls((f"call_{position}",), comes_as_user=True)
    if role == "assistant":
        return [{"role": role, "content": content}], _PendingCalls()
    if role == "tool" or (role == "user" and waiting.comes_as_user):
        ids = _answered(step) or waiting.ids or ("",)
        still = tuple(id for id in waiting.ids if id not in ids)
        return [{"role": "tool", "tool_call_id": id, "content": content} for id in ids], _PendingCalls(still)
    return [{"role": role, "content": content}], waiting


def _thought_and_action(step: Wire, position: int) -> Wire:
    action: str = step["action"]
    thought = step.get("thought")
    first_word = action.split(maxsplit=1)[0]
    function = {
        "name": first_word if _NAME.fullmatch(first_word) else "bash",
        "arguments": json.dumps({"command": action}, ensure_ascii=False),
    }
    call = {"id": f"call_{position}", "type": "function", "function": function}
    return {"role": "assistant", "content": thought if _has_text(thought) else None, "tool_calls": [call]}


def _answered(step: Wire) -> tuple[str, ...]:
    ids = step.get("tool_call_ids")
    if isinstance(ids, list):
        return tuple(id for id in ids if isinstance(id, str))
    single = step.get("tool_call_id")
    return (single,) if isinstance(single, str) else ()


def _clean(content: object) -> object:
    """Content without the cache marks that SWE-agent puts into its blocks."""
    if not isinstance(content, list):
        return content
    return [
        {key: value for key, value in block.items() if key != "cache_control"} if isinstance(block, dict) else block
        for block in content
    ]


def _has_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
