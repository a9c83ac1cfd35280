# ruff: noqa: E501  -- a pattern reads better than wrapped ones
"""Recognize an error in a tool's answer, and give it a code of a closed set.

An answer is an error if its transcript flags it, or if it has the *shape* of one: JSON with an error key, a false
`success` or a status of 400 and more; a line at its head or tail that opens like an error message (``Error: ``,
``bash: x: command not found``, ``错误：``), a traceback, an exit code other than 0. The word "error" inside prose, a
listing or a log makes no error. Only `HEAD_CHARS` and `TAIL_CHARS` of an answer are read, and JSON up to
`MAX_JSON_CHARS`.

The code is that of the first rule in ``error_codes.yaml`` that matches the error's lines. The rules are set by hand.

>>> failure('{"error": {"code": 404, "message": "no such order"}}').code
'not_found'
>>> failure("Error: date must be YYYY-MM-DD").code, failure("权限不足，拒绝访问").code
('invalid_argument', 'permission')
>>> failure("3 results, 0 errors") is None
True

Source: RFC 9110 (status codes); the error classes of Python and Node; messages of POSIX shells and compilers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Literal, NamedTuple, get_args

from ruamel.yaml import YAML

ErrorCode = Literal[
    "syntax",
    "import",
    "assertion",
    "unknown_tool",
    "rate_limited",
    "timeout",
    "connection",
    "authentication",
    "missing_argument",
    "unexpected_argument",
    "payment",
    "permission",
    "too_large",
    "not_found",
    "conflict",
    "insufficient",
    "state",
    "invalid_argument",
    "unavailable",
    "other",
]
"""other: no rule matches."""
ERROR_CODES: tuple[ErrorCode, ...] = get_args(ErrorCode)
TRANSIENT: frozenset[ErrorCode] = frozenset(("rate_limited", "timeout", "connection", "unavailable"))
"""Errors that may be gone when the same call is made again."""

MALFORMED: frozenset[ErrorCode] = frozenset(
    ("syntax", "import", "unknown_tool", "missing_argument", "unexpected_argument", "invalid_argument", "not_found")
)
"""The call itself was written wrong. All others: it was refused, could not be done, or nothing is known."""
REFUSED: frozenset[ErrorCode] = frozenset(("permission", "authentication", "payment", "insufficient", "conflict"))
"""The call was understood and turned down: what gets past it may weaken a check."""


class _Rule(NamedTuple):
    """A pattern of the messages of one code."""

    code: ErrorCode
    says: re.Pattern[str]


@cache
def _rules() -> tuple[_Rule, ...]:
    """Return the rules of ``error_codes.yaml``, in the order in which they are tried."""
    rows = YAML(typ="safe").load(files(__package__).joinpath("error_codes.yaml").read_text(encoding="utf-8"))
    every = ((row["code"], "|".join(row["says"].splitlines())) for row in rows)
    return tuple(_Rule(code, re.compile(pattern, re.IGNORECASE)) for code, pattern in every)


STATUS_CODES: dict[int, ErrorCode] = {
    400: "invalid_argument",
    401: "authentication",
    402: "payment",
    403: "permission",
    404: "not_found",
    405: "permission",
    408: "timeout",
    409: "conflict",
    410: "not_found",
    412: "conflict",
    413: "too_large",
    422: "invalid_argument",
    429: "rate_limited",
    500: "unavailable",
    502: "unavailable",
    503: "unavailable",
    504: "timeout",
}

_LEAD = r"(?:\x1b\[[\d;]*m|<[a-z_]{1,24}>|E(?= {3,})|[\s\[(*#>!✗❌⚠️-]){0,12}"
OPENING = re.compile(
    r"^" + _LEAD + r"(?:"
    r"(?<=error>)"
    r"|(?:[A-Za-z_][\w.]{0,60}\.)?[A-Z]\w{0,60}(?:Error|Exception)\b(?=\s*[:(\[]|\s*$| while )"
    r"|no \w{1,40}(?: \w{1,40})? (?:was|were|has been|have been) (?:performed|made|applied|executed|written|saved)\b"
    r"|(?!(?:no|zero|without) )(?:[A-Za-z_-]{1,24} ){0,3}?(?:error|exception|failure|err)s?\s*(?:code\s*)?(?:[:：\])(\[](?!\s*(?:0|none|无)\s*(?:$|[,;)，]))|\d{3}\b|E\d+|-\s|$)"
    r"|error (?:executing|calling|running|invoking|processing|parsing|while|when|during|from|in)\b|npm err!|curl: \(\d+\)"
    r"|(?:[a-z_]\w{0,40}\.){1,6}(?:errors?|exceptions?)\.\w{1,60}: "
    r"|(?:[A-Za-z_-]{1,24} ){0,2}(?:failed|timed out)\s*(?:[:：(]|with\b|$)"
    r"|E\d{3,4} \w{0,40}Error\b|(?:fatal|panic|E\d{3,4}|uncaught exception|exception in thread)\b\s*[:：\[\"]"
    r"|(?:[\w./+-]{1,60}: )?(?:[\w./+-]{1,80}:\d+(?::\d+)?: )(?:fatal )?error: "
    r"|(?:/?(?:[\w.]+/){0,4})?(?:ba|z|da|k|tc)?sh: "
    r"|[\w./+-]{1,60}: (?:cannot |can't |fatal: |error: |unrecogni[sz]ed |invalid |missing |illegal |no module named )"
    r"|[^\n]{1,120}: (?:No such file|command not found|Permission denied|Is a directory|Not a directory|cannot open)"
    r"|(?:command|process|script|tool|execution|request|call|operation) (?:has )?(?:failed|timed out|exited with (?:exit )?(?:code|status) -?[1-9])"
    r"|execution timed out|your (?:command|last command)\b.{0,80}\btimed out|your proposed edit has introduced"
    r"|usage: "
    r"|(?:exit|return) ?(?:code|status)[:= ]+-?[1-9]|returned non-zero exit status"
    r"|\[?(?:[\w-]{1,24} )?(?:http|status)(?: status)?(?: code)?[:= /.\d]{0,8}\s*[45]\d\d\b|[45]\d\d (?:client|server) error"
    r"|\[?(?:错误|失败|异常|报错|出错)\s*(?:码|代码|信息)?\s*[:：\]】(（]|[^\n]{0,24}(?:失败|出错|报错|异常)(?:了)?\s*(?:[:：。！，,]|$)"
    r")",
    re.IGNORECASE | re.MULTILINE,
)
PLAIN = re.compile(
    r"^"
    + _LEAD
    + r"(?:(?:failed|unable|could not|couldn't|cannot|can't|invalid|missing|unknown|no such|unauthori[sz]ed|forbidden"
    r"|permission denied|access denied|not found|bad request|too many requests|rate limit(?:ed)?|timed out|timeout|internal server error"
    r"|service unavailable|request timed out|connection (?:refused|reset))\b"
    r"|(?:the |this |that )?[\w'\"`./:-]{1,60}(?: [\w'\"`./:-]{1,40}){0,6} (?:was |were |is |are |does |do |could |can)?"
    r"(?:not (?:be )?(?:found|exist|allowed|permitted|available|supported|valid|authori[sz]ed)|required|denied|missing|invalid|timed out)\b"
    r"|[\w.]{1,60}\(\) (?:missing|got an? |takes )"
    r"|(?:the |this |that )?[\w'\"`./:-]{1,60}(?: [\w'\"`./:-]{1,40}){0,6} (?:already exists?|is not an? [^\n]{1,80}\b(?:should|must))\b"
    r"|no \w+ (?:is )?(?:open|found|matches|active)\b|no matches? found"
    r"|[^\n]{0,40}(?:不存在|未找到|找不到|无效|不能为空|缺少|权限不足|拒绝访问|无权|超时|不允许|不足|格式(?:不正确|错误|有误)|查无|请先))",
    re.IGNORECASE,
)
TRACEBACK = re.compile(
    r"^Traceback \(most recent call last\):|^[ \t]+at [\w.$<>]+ ?\(.{1,120}:\d+(?::\d+)?\)$", re.MULTILINE
)
RAISED = re.compile(
    r"^(?:[A-Za-z_][\w.]{0,80}\.)?[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Exit|Warning)\b.*$|^\w{2,60}(?:Error|Exception)\b.*$",
    re.MULTILINE,
)
PYTEST = re.compile(r"^(?:=+ .{0,80}\b\d+ failed\b.*|FAILED .*|FAILED \(.*)$", re.MULTILINE)


HEAD_CHARS = 2_000
TAIL_CHARS = 2_000
EDGE_LINES = 3
SPAN_CHARS = 160
MAX_JSON_CHARS = 64_000
SHORT_CHARS = 240
"""Longest answer in which plain words such as "not found" suffice for an error."""


class ToolFailure(NamedTuple):
    """An error with its code, and the characters of the answer with its message."""

    code: ErrorCode
    start: int
    stop: int
    message: str
    """The tool's own words, for comparisons with arguments; a record must not hold them."""


_JSON_ERROR = re.compile(
    r"""^\s*[{\[]\s*['"](?:error|errors|err|exception|error_message)['"]\s*:\s*(?!null|None|false|False|""|''|\[\s*\]|\{\s*\}|0\b)""",
)
_HINTS = ("err", "status", 'ode"', "Err", "exception", '"success"', '"ok"', '"type"', '"result"', "错误", r"\\u9519")
"""Parts of text, one of which every JSON object with an error has."""
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


def failure(text: str, *, is_error: bool = False) -> ToolFailure | None:
    """Return the error that an answer reports, or None; `is_error` says that the transcript flags the answer."""
    reported = _in_json(text) or _in_lines(text)
    if reported is None and is_error:
        stop = len(text[:SPAN_CHARS].rstrip())
        return ToolFailure(error_code(text[:HEAD_CHARS]), 0, stop, text[:HEAD_CHARS])
    return reported


def error_code(message: str, status: int | None = None) -> ErrorCode:
    """Return the code of the first rule that matches a message; a status code decides if the message is vague."""
    code: ErrorCode = next((rule.code for rule in _rules() if rule.says.search(message)), "other")
    if code in ("other", "state", "invalid_argument") and status in STATUS_CODES:
        return STATUS_CODES[status]
    return code


def says(text: str, code: ErrorCode) -> bool:
    """Whether a rule of a code matches a text."""
    return any(rule.says.search(text) for rule in _rules() if rule.code == code)


def _in_json(text: str) -> ToolFailure | None:
    """Return the error that a JSON object reports, even one that was cut short."""
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
            return ToolFailure(error_code(message, status), *_line(text, len(text) - len(text.lstrip())), message)
    if match := _JSON_ERROR.match(text):
        message = text[match.start() : match.start() + HEAD_CHARS]
        return ToolFailure(error_code(message), *_line(text, match.start()), message)
    return None


def _reported(value: dict[str, object]) -> tuple[str, int | None] | None:
    """Return the message and status of a JSON object that reports an error, or None."""
    status = next((number for key in _STATUS_KEYS if (number := _number(value.get(key))) and 400 <= number < 600), None)
    nested = next((value[key] for key in _ERROR_KEYS if _is_error(value.get(key))), None)
    # A large object with a status is rather a thing, an order for example, than the report of a call.
    is_report = len(value) <= _FEW_KEYS or not value.keys().isdisjoint(("message", "msg", "detail", "reason"))
    words = (value.get("status"), value.get("type"), value.get("result")) if is_report else ()
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
    message = " ".join(_messages(nested, value))
    return (message if " " in message.strip() else "\n".join(texts_in(value)))[:HEAD_CHARS], status


def texts_in(value: object) -> Iterator[str]:
    """Yield the texts in JSON, each with its key; a list of plain values is one text."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from (f"{key}: {text}" for text in texts_in(item))
    elif isinstance(value, list):
        if len(value) > 1 and all(isinstance(item, str | int | float) and " " not in f"{item}" for item in value):
            yield ", ".join(map(str, value))
        else:
            for item in value:
                yield from texts_in(item)
    elif isinstance(value, str | int | float):
        yield str(value)


def _is_error(value: object) -> bool:
    """Whether the value of an error key is an error, rather than an empty value or a word such as "none"."""
    return bool(value) and not (isinstance(value, str) and value.strip().lower() in _NOTHING)


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


def _in_lines(text: str) -> ToolFailure | None:
    """Return the error that the first or last lines report."""
    for start, stop in _windows(text):
        part = text[start:stop]
        if trace := TRACEBACK.search(part):
            places = [trace.start(), *(match.start() for match in RAISED.finditer(part, trace.end()))]
            return _at(text, start + places[-1])
        if verdict := PYTEST.search(part):
            return _at(text, start + verdict.start())
    for place in _edges(text):
        if OPENING.match(text, place, min(len(text), place + 400)):
            return _at(text, place)
    if len(text.strip()) <= SHORT_CHARS and (match := PLAIN.match(text)):
        return _at(text, match.start())
    return None


def _windows(text: str) -> Iterator[tuple[int, int]]:
    """Yield the characters of the tail and the head, or of the whole of a short text."""
    if len(text) <= HEAD_CHARS + TAIL_CHARS:
        yield 0, len(text)
    else:
        yield len(text) - TAIL_CHARS, len(text)
        yield 0, HEAD_CHARS


def _edges(text: str) -> Iterator[int]:
    """Yield the starts of the first lines of the head and of the last lines of the tail, without blank lines."""
    head = list(islice(_lines(text[:HEAD_CHARS]), EDGE_LINES))
    yield from head
    base = max(0, len(text) - TAIL_CHARS)
    tail = [base + place for place in islice(_lines_back(text[base:]), EDGE_LINES)]
    yield from (place for place in reversed(tail) if place not in head and (base == 0 or place > base))


def _lines(text: str) -> Iterator[int]:
    """Yield the starts of lines that are not blank."""
    start = 0
    for line in text.split("\n"):
        if line and not line.isspace():
            yield start
        start += len(line) + 1


def _lines_back(text: str) -> Iterator[int]:
    """Yield the starts of lines that are not blank, from the last one."""
    stop = len(text)
    while stop >= 0:
        start = text.rfind("\n", 0, stop) + 1
        if start < stop and not text[start:stop].isspace():
            yield start
        stop = start - 1


def _at(text: str, place: int) -> ToolFailure:
    """Return the error with a message that begins at a place."""
    message = text[place : place + SHORT_CHARS * 2]
    return ToolFailure(error_code(message), *_line(text, place), message)


def _line(text: str, place: int) -> tuple[int, int]:
    """Return the characters from a place to the end of its line, without blanks around, at most `SPAN_CHARS`."""
    line = text[place : place + SPAN_CHARS]
    start = place + len(line) - len(line.lstrip())
    line = text[start : start + SPAN_CHARS].split("\n", 1)[0].rstrip()
    return start, start + len(line)
