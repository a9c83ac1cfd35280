"""The bounded tool with which a model reads an original again: `resolve_reference(ref, offset, limit, grep)`.

Its schema is a constant, its output is text within `limit` characters; `grep` filters lines by a literal text. Errors
are answers, never exceptions: a model that asks for a reference that is none is told so.
"""

from __future__ import annotations

from ctxsteward.schemas import ContextError, Wire

from .accounting import text_of
from .session import Session

DEFAULT_LIMIT_CHARS = 4_000
MAX_LIMIT_CHARS = 20_000


def resolve_reference_tool() -> Wire:
    """The tool's schema, in OpenAI form; renderers translate it."""
    return {
        "type": "function",
        "function": {
            "name": "resolve_reference",
            "description": "Read an earlier message of this conversation in full, by its reference.",
            "parameters": {
                "type": "object",
                "properties": {
                    "ref": {"type": "string", "description": "§12, 12, §12.2 or tool:3"},
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
    start, size = _whole(offset), _whole(limit)
    if start is None or size is None:
        return "error: `offset` and `limit` are whole numbers"
    if grep is not None and not isinstance(grep, str):
        return "error: `grep` is text"
    try:
        message = session.resolve(str(ref))
    except ContextError as error:
        return f"error: {error}"
    text = text_of(message)
    if grep:
        text = "\n".join(line for line in text.split("\n") if grep.lower() in line.lower())
    start = min(max(0, start), len(text))
    shown = text[start : start + max(1, min(size, MAX_LIMIT_CHARS))]
    left = len(text) - start - len(shown)
    return f"{shown}\n[{left} more characters; offset={start + len(shown)}]" if left > 0 else shown


def _whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal() and len(value) <= 18:
        return int(value)
    return None
