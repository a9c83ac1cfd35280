"""Which format a JSON value is in, by its shape alone; a name given by the caller must agree.

    message     an object with `role`: one line of a JSONL transcript, or one element of an array
    chat        an array of messages, or a request body {"messages": […], "system"?, "tools"?}
    tau-bench   {"task_id", "trial", "reward", "info", "traj": [messages]}
    swe-agent   {"history": […]} of a `.traj` file
    locomo      {"sample_id", "conversation": {"speaker_a", "speaker_b", "session_1": […], …}}

`openai` and `anthropic` are both `chat`; their messages tell them apart (`chat.py`).
"""

from __future__ import annotations

from typing import Literal

from ctxsteward.schemas import InvalidTranscript

from .places import show

FORMATS = ("auto", "openai", "anthropic", "tau-bench", "swe-agent", "locomo")
"""What `format` may be. `Transcript.format` is never `auto`."""

Shape = Literal["message", "chat", "tau-bench", "swe-agent", "locomo"]

_MARKS: dict[str, Shape] = {
    "role": "message",
    "traj": "tau-bench",
    "history": "swe-agent",
    "conversation": "locomo",
    "messages": "chat",
}
_NAMES: dict[Shape, str] = {
    "message": "a message",
    "chat": "a list of messages or a request",
    "tau-bench": "a tau-bench run",
    "swe-agent": "a SWE-agent run",
    "locomo": "a LoCoMo sample",
}
_EXPECTED = {
    "auto": "a message with `role`, a request with `messages`, a tau-bench run with `traj`, "
    "a SWE-agent run with `history`, or a LoCoMo sample with `conversation`",
    "tau-bench": "a tau-bench run with `traj`",
    "swe-agent": "a SWE-agent run with `history`",
    "locomo": "a LoCoMo sample with `conversation`",
    "openai": "a message with `role`, or a request with `messages`",
    "anthropic": "a message with `role`, or a request with `messages`",
}


def known_format(name: str) -> str:
    """The name itself, or a refusal that lists the known ones."""
    if name not in FORMATS:
        raise InvalidTranscript("format", "", f"unknown format {name!r:.40}", f"expected one of {', '.join(FORMATS)}")
    return name


def shape_of(value: object, format: str, source: str, where: str) -> Shape:
    """The shape of one value, which a given format must fit."""
    shapes = list(_shapes(value))
    wanted = ("message", "chat") if format in ("openai", "anthropic") else (format,)
    for shape in shapes:
        if format == "auto" or shape in wanted:
            return shape
    hint = f"expected {_EXPECTED[format]}"
    if shapes:
        hint += f"; this is {_NAMES[shapes[0]]}: read it with format='auto'"
    raise InvalidTranscript(source, where, f"found {show(value)}", hint)


def is_transcript_list(value: list[object]) -> bool:
    """Whether an array holds transcripts; otherwise it is one, an array of messages."""
    return not any(isinstance(item, dict) and "role" in item for item in value) and any(
        isinstance(item, list) or (isinstance(item, dict) and not _MARKS.keys().isdisjoint(item)) for item in value
    )


def _shapes(value: object) -> list[Shape]:
    if isinstance(value, list):
        return ["chat"]
    if isinstance(value, dict):
        return [shape for mark, shape in _MARKS.items() if mark in value]
    return []
