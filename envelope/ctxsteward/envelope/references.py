"""The bounded tool with which a model reads originals again: `resolve_reference(ref, offset, limit, grep)`.

One message by its reference, or several in a row by a range (``§11-§18``, as the lines of days in recalled messages
show it). The schema is a constant, the output is text within `limit` characters; `grep` filters lines by a literal
text. Errors are answers, never exceptions: a model that asks for a reference that is none is told so.
"""

from __future__ import annotations

import re

from ctxsteward.schemas import ContextError, Wire

from .accounting import text_of
from .rows import continued
from .session import Session

DEFAULT_LIMIT_CHARS = 4_000
MAX_LIMIT_CHARS = 20_000
MAX_RANGE_MESSAGES = 500
_RANGE = re.compile(r"\s*§?([1-9][0-9]{0,11})\s*[-–]\s*§?([1-9][0-9]{0,11})\s*", re.ASCII)


def resolve_reference_tool() -> Wire:
    """The tool's schema, in OpenAI form; renderers translate it."""
    return {
        "type": "function",
        "function": {
            "name": "resolve_reference",
            "description": "Read an earlier message of this conversation in full, by its reference; "
            "or several in a row, by a range.",
            "parameters": {
                "type": "object",
                "properties": {
                    "ref": {"type": "string", "description": "§12, 12, §12.2, tool:3, or a range: §11-§18"},
                    "offset": {"type": "integer", "minimum": 0, "description": "first character to return"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT_CHARS},
                    "grep": {"type": "string", "description": "only lines that contain this text"},
                },
                "required": ["ref"],
                "additionalProperties": False,
            },
        },
    }


def resolve_reference(
    session: Session,
    ref: object = None,
    *,
    offset: object = 0,
    limit: object = DEFAULT_LIMIT_CHARS,
    grep: object = None,
    **unknown: object,
) -> str:
    """Answer a call of the tool, in at most `limit` characters and one line that says what is left."""
    if unknown or ref is None:
        return "error: the arguments are `ref`, and where wanted `offset`, `limit`, `grep`"
    start, size = whole_number(offset), whole_number(limit)
    if start is None or size is None:
        return "error: `offset` and `limit` are whole numbers"
    if grep is not None and not isinstance(grep, str):
        return "error: `grep` is text"
    try:
        text = _text(session, str(ref))
    except ContextError as error:
        return f"error: {error}"
    if grep:
        text = "\n".join(line for line in text.split("\n") if grep.lower() in line.lower())
    start = min(max(0, start), len(text))
    shown = text[start : start + max(1, min(size, MAX_LIMIT_CHARS))]
    left = len(text) - start - len(shown)
    return f"{shown}\n[{left} more characters; offset={start + len(shown)}]" if left > 0 else shown


def _text(session: Session, ref: str) -> str:
    """What a reference or a range names."""
    named = _RANGE.fullmatch(ref)
    if named is None:
        return text_of(session.resolve(ref))
    first, last = int(named[1]), int(named[2])
    if not first <= last < first + MAX_RANGE_MESSAGES:
        return f"error: §{first}-§{last} is no range of 1 to {MAX_RANGE_MESSAGES} messages, oldest first"
    session.resolve(last)  # one beyond the end is said before anything is read
    entries = [session.entry(ordinal) for ordinal in range(first, last + 1)]
    return "\n".join(f"{entry.ref} {entry.message.role}: {continued(text_of(entry.message))}" for entry in entries)


def whole_number(value: object) -> int | None:
    """A number as a model may write it: ``7``, ``7.0``, ``"7"``; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.isascii() and value.strip().lstrip("-").isdecimal() and len(value) <= 18:
        try:
            return int(value)
        except ValueError:  # "--7"
            return None
    return None
