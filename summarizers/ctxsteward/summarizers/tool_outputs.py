"""Two or three high-signal bullets for a tool output: its shape, its errors, its identifiers.

A bullet opens with ``NAME: `` or ``NAME ARGUMENTS: ``, arguments quoted from the call, then either verbatim
pieces of the output or the shape template ``JSON with keys a, b, c; 240 rows`` / ``N lines`` / ``table with
columns a, b; N rows``, whose names occur in the output and whose numbers are counts. Only the head and the
tail of a long output are looked at (`HEAD_CHARS`, `TAIL_CHARS`); JSON is parsed up to `MAX_JSON_CHARS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ctxsteward.language.values import DISTINCTIVE, normalize
from ctxsteward.schemas import LossKind

from .quotes import ELLIPSIS, quote
from .salience import SentenceReading, read_sentence

HEAD_CHARS = 6_000
TAIL_CHARS = 2_000
MAX_JSON_CHARS = 60_000
MAX_NAME_CHARS = 80
MAX_KEYS = 8
MAX_PAIRS = 6
LINE_CHARS = 160

_PAIR = re.compile(r'"([\w .-]{1,40})"\s*:\s*("(?:[^"\\\n]|\\.){1,80}"|-?\d[\d.]*|true|false)')
_ID_KEY = re.compile(
    r"(?:^|_|\b)(?:id|ids|code|number|no|ref|reference|confirmation|tracking|ticket|order|sku|hash|sha|commit|uuid|key|url|path|email"
    r"|phone|version|status|state|total|amount|price|balance|count|date|time|name|user|eta|reservation|flight)s?$|[a-z](?:Id|No|Number|Code|Url|Key)$",
    re.IGNORECASE,
)
_STRONG_KEY = re.compile(
    r"confirm|reference|tracking|ticket|order|reservation|invoice|booking|_id$|^id$|[a-z]Id$|sku|commit|hash|url",
    re.IGNORECASE,
)
_ERROR_LINE = re.compile(
    r"\b(?:error|exception|traceback|failed|failure|fatal|panic|denied|refused|timed out"
    r"|timeout|not found|no such|abort|critical|unable to|cannot)\b"
    r"|错误|失败|异常|超时|拒绝|Error\b|Exception\b",
    re.IGNORECASE,
)
_ERROR_KEY = re.compile(
    r'"(?:error|errors|message|detail|reason|exception|err_msg)"\s*:\s*("(?:[^"\\\n]|\\.){1,160}"|\{|\[)',
    re.IGNORECASE,
)
_ACTION = re.compile(
    r"book|cancel|create|send|edit|write|update|delete|modify|replace|submit|commit|post|pay|refund|exchange|transfer|assign|set_|insert|move|rename|deploy|apply",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """One result with the call that asked for it, if known."""

    text: str
    name: str | None
    arguments: str
    """The call's arguments as the model wrote them; empty if unknown."""
    is_error: bool
    refs: tuple[str, ...]
    order: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBullet:
    """A candidate bullet about a tool output."""

    text: str
    kind: LossKind
    worth: float
    values: frozenset[str]


def tool_bullets(output: ToolOutput) -> list[ToolBullet]:
    """The shape, the errors and the identifiers of one output, best first; one to three bullets."""
    name = _short(output.name or "", MAX_NAME_CHARS) or "tool"
    text = output.text
    if len(text) > HEAD_CHARS + TAIL_CHARS:
        look = text[:HEAD_CHARS] + "\n" + text[-TAIL_CHARS:]
    else:
        look = text
    arguments = _short(output.arguments, 90) if output.arguments not in ("", "{}") else ""
    label = f"{name} {arguments}" if arguments else name
    acted = bool(_ACTION.search(name))
    found = list(
        _json_bullets(text, look, name, label, acted)
        if look[:1] in "{["
        else _plain_bullets(text, look, name, label, acted)
    )
    if output.is_error and found:
        best = found[0]
        found[0] = ToolBullet(text=best.text, kind="error", worth=max(58.0, best.worth), values=best.values)
    if not found:
        found = [ToolBullet(text=f"{label}: 0 lines", kind="fact", worth=24.0 if acted else 15.0, values=frozenset())]
    return found[:3]


def _json_bullets(text: str, look: str, name: str, label: str, acted: bool) -> Iterator[ToolBullet]:
    error = _ERROR_KEY.search(look)
    if error is not None and error[1][0] == '"':
        yield ToolBullet(text=f"{label}: {quote(error.group())}", kind="error", worth=57.0, values=frozenset())
    pairs = _pairs(look)
    if pairs:
        strong = any(_STRONG_KEY.search(key) for key, _, _ in pairs)
        shown = ELLIPSIS.join(quote(raw) for _, raw, _ in pairs)
        values = frozenset(normalize(value) for _, _, value in pairs)
        worth = (66.0 if acted else 54.0) if strong else (58.0 if acted else 42.0)
        yield ToolBullet(text=f"{label}: {shown}", kind="identifier" if strong else "fact", worth=worth, values=values)
    shape = _json_shape(text) if not pairs or len(text) > 1_500 else ""
    if shape:
        yield ToolBullet(text=f"{name if pairs else label}: {shape}", kind="fact", worth=26.0, values=frozenset())


def _pairs(look: str) -> list[tuple[str, str, str]]:
    """Key-value pairs worth showing: (key, verbatim text, value); one for each key, identifiers first."""
    found: dict[str, tuple[str, str, str]] = {}
    for match in _PAIR.finditer(look, 0, HEAD_CHARS):
        if match[1] not in found and _ID_KEY.search(match[1]):
            found[match[1]] = (match[1], match.group(), match[2].strip('"'))
            if len(found) >= 3 * MAX_PAIRS:
                break
    ranked = sorted(found.values(), key=lambda pair: not _STRONG_KEY.search(pair[0]))[:MAX_PAIRS]
    return [pair for pair in found.values() if pair in ranked]


def _json_shape(text: str) -> str:
    if len(text) > MAX_JSON_CHARS:
        return f"{text.count(chr(10)) + 1} lines"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return f"{text.count(chr(10)) + 1} lines"
    rows = len(value) if isinstance(value, list) else 0
    first = value[0] if rows else value
    keys = [key for key in first if _plain_key(key, text)][:MAX_KEYS] if isinstance(first, dict) else []
    if not keys:
        return f"JSON; {rows} rows" if rows else ""
    shape = "JSON with keys " + ", ".join(keys)
    return f"{shape}; {rows} rows" if rows else shape


def _plain_key(key: str, text: str) -> bool:
    return key.isprintable() and 0 < len(key) <= 40 and "§" not in key and key in text


def _plain_bullets(text: str, look: str, name: str, label: str, acted: bool) -> Iterator[ToolBullet]:
    lines = [line for line in look.splitlines() if line.strip()]
    if not lines:
        return
    total = text.count("\n") + 1
    errors = [line for line in lines if _ERROR_LINE.search(line, 0, 400)]
    if errors:
        shown = ELLIPSIS.join(_short(line, LINE_CHARS) for line in dict.fromkeys((errors[0], errors[-1])))
        yield ToolBullet(text=f"{label}: {shown}", kind="error", worth=56.0, values=frozenset())
    salient = _salient(lines, set(errors))
    if salient is not None:
        reading, line = salient
        values = frozenset(value.norm for value in reading.values)
        strong = any(value.kind in DISTINCTIVE for value in reading.values)
        worth = (64.0 if acted else 48.0) if strong else (55.0 if acted else 40.0)
        yield ToolBullet(text=f"{label}: {line}", kind="identifier" if strong else "fact", worth=worth, values=values)
    columns = _columns(lines)
    if columns:
        yield ToolBullet(
            text=f"{name}: table with columns {columns}; {total} rows",
            kind="fact",
            worth=28.0,
            values=frozenset(),
        )
    elif (not errors and salient is None) or total > 3:
        ends = (
            ELLIPSIS.join(dict.fromkeys((_short(lines[0], 80), _short(lines[-1], 80))))
            if total > 1
            else _short(lines[0], LINE_CHARS)
        )
        yield ToolBullet(
            text=f"{label}: {ends}…{total} lines" if total > 2 else f"{label}: {ends}",
            kind="fact",
            worth=38.0 if acted else 24.0,
            values=frozenset(),
        )


def _salient(lines: list[str], errors: set[str]) -> tuple[SentenceReading, str] | None:
    """The line with the most telling values, among the first and last dozen."""
    best: tuple[float, SentenceReading, str] | None = None
    for line in lines[:8] + lines[8:][-4:]:
        line = line.strip()
        if line in errors or len(line) > 400:
            continue
        reading = read_sentence(line[:240], "tool")
        score = reading.worth + 3.0 * len(reading.values)
        if reading.values and (best is None or score > best[0]):
            best = (score, reading, _short(line, LINE_CHARS))
    return None if best is None else (best[1], best[2])


def _columns(lines: list[str]) -> str:
    """The header of a pipe, tab or comma table, quoted."""
    head = lines[0].strip()
    for mark in ("|", "\t", ","):
        if (
            head.count(mark) >= 2
            and len(lines) > 2
            and lines[-1].count(mark) == head.count(mark)
            and len(head) <= LINE_CHARS
        ):
            cells = [cell.strip() for cell in head.split(mark)]
            return ", ".join(quote(cell) for cell in cells if cell and "…" not in quote(cell))
    return ""


def _short(line: str, limit: int) -> str:
    line = quote(line)
    return line if len(line) <= limit else line[:limit].rstrip()
