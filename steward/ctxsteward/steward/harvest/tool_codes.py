"""Whether a tool's answer is an error, and which one: free text in, a code of a closed set out.

An answer is an error if its transcript flags it, or if its *shape* says so: JSON with an error key, a false `success`
or a status of 400 and more; a line at its head or tail that opens as error messages do (``Error: ``, ``bash: x:
command not found``, ``错误：``), a traceback, an exit code other than 0. A word such as "error" inside prose, a listing
or a log is none. Only `HEAD_CHARS` and `TAIL_CHARS` of an answer are looked at, and JSON up to `MAX_JSON_CHARS`.

The code is the first of `tool_words.RULES` that the error's own lines meet.
No text leaves this module but the message, which no record may hold.

>>> failure('{"error": {"code": 404, "message": "no such order"}}').code
'not_found'
>>> failure("Error: date must be YYYY-MM-DD").code, failure("权限不足，拒绝访问").code
('invalid_argument', 'permission')
>>> failure("3 results, 0 errors") is None
True
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from .tool_words import OPENING, PLAIN, PYTEST, RAISED, RULES, STATUS_CODES, TRACEBACK, ErrorCode

HEAD_CHARS = 2_000
TAIL_CHARS = 2_000
SPAN_CHARS = 160
MAX_JSON_CHARS = 64_000
SHORT_CHARS = 240
"""An answer this short may say "not found" without further marks."""


class Failure(NamedTuple):
    """An error: its code, and where in the answer its message stands (characters)."""

    code: ErrorCode
    start: int
    stop: int
    message: str
    """The tool's own words, for comparisons with arguments inside the process; never for a record."""


_JSON_ERROR = re.compile(
    r"""^\s*[{\[]\s*['"](?:error|errors|err|exception|error_message)['"]\s*:\s*(?!null|None|false|False|""|''|\[\s*\]|\{\s*\}|0\b)""",
)
_HINTS = ("err", "status", 'ode"', "Err", "exception", '"success"', '"ok"', '"type"', '"result"', "错误", r"\\u9519")
"""Without any of these a JSON object reports no error."""
_NOTHING = ("none", "null", "no", "false", "ok", "success")
_FEW_KEYS = 4
_ERROR_KEYS = ("error", "errors", "exception", "err", "error_message", "errorMessage", "错误")
_STATUS_KEYS = ("status", "status_code", "statusCode", "http_status", "code", "errcode", "error_code")
_EXIT_KEYS = ("exit_code", "exitCode", "returncode", "return_code")
_MESSAGE_KEYS = (
    "message",
    "msg",
    "errmsg",
    "detail",
    "details",
    "reason",
    "description",
    "stderr",
    "title",
    "type",
    "code",
    "name",
)
_FAILED_WORDS = frozenset(("error", "failed", "failure", "fail", "err", "失败", "错误"))


def failure(text: str, *, is_error: bool = False) -> Failure | None:
    """The error that an answer reports, or None; `is_error`: flagged by its transcript."""
    found = _structured(text)
    if found is None and text:
        found = _shaped(text)
    if found is None and is_error:
        stop = len(text[:SPAN_CHARS].rstrip())
        found = Failure(_code(text[:HEAD_CHARS]), 0, stop, text[:HEAD_CHARS])
    return found


def _code(message: str, status: int | None = None) -> ErrorCode:
    """The first rule that a message meets; a status code decides where no message does."""
    code: ErrorCode = next((code for code, rule in RULES if rule.search(message)), "other")
    if code in ("other", "state", "invalid_argument") and status in STATUS_CODES:
        return STATUS_CODES[status]
    return code


def _structured(text: str) -> Failure | None:
    head = text[:64].lstrip()
    if head[:1] not in ("{", "["):
        return None
    if len(text) <= MAX_JSON_CHARS and any(hint in text for hint in _HINTS):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            reported = _reported(value)
            if reported is None:
                return None
            message, status = reported
            return Failure(_code(message, status), *_line(text, len(text) - len(text.lstrip())), message)
    if match := _JSON_ERROR.match(text):
        message = text[match.start() : match.start() + HEAD_CHARS]
        return Failure(_code(message), *_line(text, match.start()), message)
    return None


def _reported(value: dict[str, object]) -> tuple[str, int | None] | None:
    """The message and status of a JSON error object; None if it is none."""
    status = next((number for key in _STATUS_KEYS if (number := _number(value.get(key))) and 400 <= number < 600), None)
    nested = next((value[key] for key in _ERROR_KEYS if _is_told(value.get(key))), None)
    words = (value.get("status"), value.get("type"), value.get("result")) if _is_report(value) else ()
    fails = (
        nested is not None
        or status is not None
        or any(value.get(key) is False for key in ("success", "ok"))
        or any(value.get(key) is True for key in ("isError", "is_error"))
        or any(isinstance(word, str) and word.lower() in _FAILED_WORDS for word in words)
        or any(_number(value.get(key)) for key in (*_EXIT_KEYS, "errcode", "errno"))
    )
    if not fails:
        return None
    if isinstance(nested, dict):
        status = status or next((n for key in _STATUS_KEYS if (n := _number(nested.get(key))) and 400 <= n < 600), None)
    return " ".join(_messages(nested, value))[:HEAD_CHARS], status


def _is_told(error: object) -> bool:
    """Whether the value of an error key tells of one."""
    return bool(error) and not (isinstance(error, str) and error.strip().lower() in _NOTHING)


def _is_report(value: dict[str, object]) -> bool:
    """Whether an object is about a call's outcome, rather than a thing that has a status."""
    return len(value) <= _FEW_KEYS or not value.keys().isdisjoint(("message", "msg", "detail", "reason"))


def _messages(nested: object, value: dict[str, object]) -> Iterator[str]:
    for item in (nested, value):
        if isinstance(item, list):
            item = next((first for first in item if first), None)
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            yield from (text for key in _MESSAGE_KEYS if isinstance(text := item.get(key), str))


def _number(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and len(value) < 6 and value.isascii() and value.isdigit() else None


def _shaped(text: str) -> Failure | None:
    """An error by the shape of its first or last lines."""
    for start, stop in _windows(text):
        part = text[start:stop]
        if trace := TRACEBACK.search(part):
            raised = [match.start() for match in RAISED.finditer(part, trace.end())]
            at = raised[-1] if raised else trace.start()
            return _at(text, start + at)
        if verdict := PYTEST.search(part):
            return _at(text, start + verdict.start())
    for place in _edges(text):
        if OPENING.match(text, place, min(len(text), place + 400)):
            return _at(text, place)
    if len(text.strip()) <= SHORT_CHARS and (match := PLAIN.match(text)):
        return _at(text, match.start())
    return None


def _windows(text: str) -> Iterator[tuple[int, int]]:
    if len(text) <= HEAD_CHARS + TAIL_CHARS:
        yield 0, len(text)
    else:
        yield len(text) - TAIL_CHARS, len(text)
        yield 0, HEAD_CHARS


def _edges(text: str, lines: int = 3) -> Iterator[int]:
    """Where the first and the last lines with text begin, within the head and the tail."""
    head = list(islice(_lines(text[:HEAD_CHARS]), lines))
    yield from head
    base = max(0, len(text) - TAIL_CHARS)
    tail = [base + place for place in islice(_lines_back(text[base:]), lines)]
    yield from (place for place in reversed(tail) if place not in head and (base == 0 or place > base))


def _lines(text: str) -> Iterator[int]:
    """Where lines begin that are not blank."""
    start = 0
    for line in text.split("\n"):
        if line and not line.isspace():
            yield start
        start += len(line) + 1


def _lines_back(text: str) -> Iterator[int]:
    """The same, from the last one."""
    stop = len(text)
    while stop >= 0:
        start = text.rfind("\n", 0, stop) + 1
        if start < stop and not text[start:stop].isspace():
            yield start
        stop = start - 1


def _at(text: str, place: int) -> Failure:
    message = text[place : place + SHORT_CHARS * 2]
    return Failure(_code(message), *_line(text, place), message)


def _line(text: str, place: int) -> tuple[int, int]:
    """From the place to the end of its line, without blanks around it, at most `SPAN_CHARS`."""
    line = text[place : place + SPAN_CHARS]
    start = place + len(line) - len(line.lstrip())
    line = text[start : start + SPAN_CHARS].split("\n", 1)[0].rstrip()
    return start, start + len(line)
