"""Call a subject and check its answers; the judge calls dialogues only through this module.

Input and output are copied as JSON, so that a subject cannot change the conversation or its earlier prompts. Coroutines
are awaited. Output that a subject prints goes to stderr, since stdout has the results; ``sys.exit`` is an error of its
scenario; a process that a subject forks ends before it would return to the judge.

Raises `InputError` with the value found and the expected answer, and the subject's own exceptions.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from ctxsteward.schemas import InputError
from ctxsteward.schemas.message import Wire

from .port import Archive, Dialogue, Index, Outputs, Prompt

MAX_MESSAGES = 100_000
MAX_TEXTS = 1_000
"""Most texts of a search; far fewer are read."""
ROLES = ("system", "developer", "user", "assistant", "tool")
EXAMPLE = '{"role": "user", "content": "…"}'


def say(dialogue: Dialogue, message: Wire) -> None:
    """Add a message to a dialogue."""
    _answer(lambda: dialogue.add(json.loads(json.dumps(message))), lambda nothing: None)


def ask(name: str, dialogue: Dialogue, question: str | None = None) -> Prompt:
    """Return what a dialogue would send."""
    return _answer(lambda: dialogue.prompt(question), lambda answer: prompt_of(name, answer))


def resolved(dialogue: Dialogue, reference: str) -> str | None:
    """Resolve a reference; None if it does not resolve."""
    return _looked_up(lambda: dialogue.resolve(reference), "resolve") if isinstance(dialogue, Archive) else None


def tool_output(dialogue: Dialogue, number: int) -> str | None:
    """Return the n-th tool output, or None."""
    return _looked_up(lambda: dialogue.tool_output(number), "tool_output") if isinstance(dialogue, Outputs) else None


def searched(dialogue: Index, query: str) -> list[str]:
    """Return the texts that one search shows."""

    def texts_of(answer: object) -> list[str]:
        if isinstance(answer, Iterable) and not isinstance(answer, (str, bytes, Mapping)):
            texts = list(islice(answer, MAX_TEXTS))
            if all(isinstance(text, str) for text in texts):
                return texts
        raise InputError(f"the subject's `search` gave {_kind(answer)}; give a list of texts")

    return _answer(lambda: dialogue.search(query), texts_of)


def _looked_up(give: Callable[[], object], method: str) -> str | None:
    def text_of(answer: object) -> str:
        if not isinstance(answer, str):
            raise InputError(f"the subject's `{method}` gave {_kind(answer)}; give the text, or raise LookupError")
        return answer

    try:
        return _answer(give, text_of)
    except LookupError:
        return None


Checked = TypeVar("Checked")


def _answer(give: Callable[[], object], check: Callable[[Any], Checked]) -> Checked:
    """Return a subject's checked answer; the check is guarded, too, since a generator runs while it is read."""
    with _held():
        answer = give()
        if inspect.isawaitable(answer):
            awaitable: Awaitable[object] = answer

            async def awaited() -> object:  # `asyncio.run` takes coroutines only
                return await awaitable

            answer = asyncio.run(awaited())
        return check(answer)


@contextmanager
def _held() -> Iterator[None]:
    process = os.getpid()
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (SystemExit, asyncio.CancelledError) as error:
        raise InputError(
            f"the subject ended itself ({type(error).__name__} {error}); return or raise instead"
        ) from error
    finally:
        if os.getpid() != process:  # in a fork of the subject; the judge's code must run once only
            os._exit(0)


def raised_at(problem: Exception) -> str:
    """Return where the caller's own code raised it (``, at mine.py:7 in words``); empty if it was not running."""
    ours = Path(__file__).parents[1]
    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if "site-packages" not in frame.filename]
    own = [frame for frame in frames if not any(room in frame.filename for room in ("/ctxsteward/", str(ours)))]
    return f", at {Path(own[-1].filename).name}:{own[-1].lineno} in {own[-1].name}" if own else ""


# -- prompts ---------------------------------------------------------------------------------------------------------


def prompt_of(name: str, answer: object) -> Prompt:
    """Convert a strategy's answer to an independent prompt without `envelope`, which only our builder may set."""
    if not isinstance(answer, Prompt):
        return Prompt(messages=_messages(name, answer))
    fields: tuple[tuple[str, object, Callable[[Any], bool], str], ...] = (
        ("references", answer.references, _are_references, "a dict from each reference to a 1-based place"),
        ("summary", answer.summary, lambda given: given is None or isinstance(given, str), "a text or None"),
        ("lost", answer.lost, lambda given: given is None or _are_places(given), "a set of 1-based places or None"),
        ("compacted", answer.compacted, lambda given: given is None or isinstance(given, bool), "a bool or None"),
        ("anthropic", answer.anthropic, lambda given: given is None or callable(given), "a function or None"),
        ("cpu_seconds", answer.cpu_seconds, _is_duration, "seconds or None"),
    )
    for field, given, fits, wanted in fields:
        if not fits(given):
            raise InputError(f"subject {name}: `{field}` of its Prompt is {_kind(given)}; give {wanted}")
    return replace(
        answer,
        messages=_messages(name, answer.messages),
        references=dict(answer.references),
        envelope=None,
        lost=None if answer.lost is None else frozenset(answer.lost),
        anthropic=None if answer.anthropic is None else partial(_answer, answer.anthropic, partial(_request, name)),
    )


def _request(name: str, answer: object) -> Wire:
    messages = answer.get("messages") if isinstance(answer, dict) else None
    if not isinstance(messages, list) or not all(map(_is_anthropic, messages)):
        raise InputError(f"subject {name}: its `anthropic` gave {_kind(answer)}; give a request with `messages`")
    copied: Wire = json.loads(json.dumps(answer))
    return copied


def _is_anthropic(message: object) -> bool:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        return False
    content = message.get("content")
    return isinstance(content, str) or (isinstance(content, list) and all(isinstance(part, dict) for part in content))


def _are_places(given: object) -> bool:
    return isinstance(given, (set, frozenset, list, tuple)) and all(map(_is_place, given))


def _are_references(given: object) -> bool:
    return isinstance(given, Mapping) and all(isinstance(ref, str) and _is_place(n) for ref, n in given.items())


def _is_place(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given > 0


def _is_duration(given: object) -> bool:
    return given is None or (isinstance(given, (int, float)) and 0 <= given < float("inf"))


def _messages(name: str, answer: object) -> list[Wire]:
    if isinstance(answer, (str, bytes, Mapping)) or not isinstance(answer, Iterable):
        what = "an async generator" if inspect.isasyncgen(answer) else _kind(answer)
        raise InputError(f"subject {name}: it returned {what}; return a list of chat messages, or a Prompt")
    messages = list(islice(answer, MAX_MESSAGES + 1))
    if len(messages) > MAX_MESSAGES:
        raise InputError(f"subject {name}: it returned more than {MAX_MESSAGES:,} messages; return what a call is sent")
    for number, message in enumerate(messages, 1):
        if fault := _message_fault(message):
            raise InputError(
                f"subject {name}: message {number} of what it returned {fault}; write an OpenAI chat message "
                f"such as {EXAMPLE}"
            )
    try:
        copied: list[Wire] = json.loads(json.dumps(messages, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"subject {name}: what it returned is not JSON ({error}); return plain dicts") from error
    return copied


def _message_fault(message: object) -> str:
    """Return the fault of a message as the end of a sentence; a field that is read must also be counted."""
    if not isinstance(message, dict):
        return f"is {_kind(message)}"
    role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
    if role not in ROLES:
        return f"has role {role!r:.40}, not one of {', '.join(ROLES)}"
    if content is None and role != "assistant":
        return f"of role {role} has no content"
    if (
        content is not None
        and not isinstance(content, str)
        and not (isinstance(content, list) and all(map(_is_part, content)))
    ):
        return f"has content {_kind(content)}, neither a text nor a list of parts of type text or image_url"
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        return "of role tool has no tool_call_id"
    if calls and role != "assistant":
        return f"of role {role} has tool_calls"
    return _call_fault(calls)


def _is_part(part: object) -> bool:
    if not isinstance(part, dict):
        return False
    if part.get("type") == "image_url":
        return part.keys() <= {"type", "image_url"} and isinstance(part.get("image_url"), dict)
    return part.get("type") == "text" and isinstance(part.get("text"), str)


def _call_fault(calls: object) -> str:
    if calls is None:
        return ""
    if not isinstance(calls, list):
        return f"has tool_calls {_kind(calls)}, not a list"
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(call.get("id"), str):
            return f"has a tool call without id or function: {call!r:.60}"
        if not isinstance(function.get("name"), str) or not isinstance(function.get("arguments"), str):
            return f"has a tool call whose name or arguments are not text: {function!r:.60}"
    return ""


def _kind(value: object) -> str:
    return "nothing (None)" if value is None else f"{type(value).__name__} {value!r:.60}"
