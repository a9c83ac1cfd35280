"""The bounded tool with which a model reads an original again: `resolve_reference(ref, offset, limit, grep)`.

Its schema is a constant, its output is text within `limit` characters; `grep` filters lines by a literal text. Errors
are answers, never exceptions: a model that asks for a reference that is none is told so.
"""

from __future__ import annotations

from ctxsteward.schemas import ContextError, Wire

from .compaction import text_of
from .session import Session

DEFAULT_LIMIT_CHARS = 4_000
MAX_LIMIT_CHARS = 20_000


def resolve_reference_tool() -> Wire:
    """The tool's schema, in OpenAI form; renderers translate it."""
    return {
        "type": "function",
        "function": {
            "name": "resolve_reference",
            "description": "Read an earlier message of this conversation in full, by its reference (§12, §12.2, tool:3).",
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
    session: Session, ref: str, *, offset: int = 0, limit: int = DEFAULT_LIMIT_CHARS, grep: str | None = None
) -> str:
    """Answer a call of the tool, in at most `limit` characters and one line that says what is left."""
    try:
        message = session.resolve(str(ref))
    except ContextError as error:
        return f"error: {error}"
    text = text_of(message)
    if grep:
        text = "\n".join(line for line in text.split("\n") if grep.lower() in line.lower())
    start = max(0, int(offset))
    shown = text[start : start + max(1, min(int(limit), MAX_LIMIT_CHARS))]
    left = len(text) - start - len(shown)
    return f"{shown}\n[{left} more characters; offset={start + len(shown)}]" if left > 0 else shown
