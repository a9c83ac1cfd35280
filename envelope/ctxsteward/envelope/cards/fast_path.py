"""Summaries by rule: what needs no summarizer, and what stands in where one fails.

A tool result: its error, else how many images it holds, else the first keys of its JSON object, else its beginning and
its size. A text of under 200 characters is its own summary. Blanks and control characters become one blank each.

Source: the auto-context design (fast paths of the card generator).
"""

from __future__ import annotations

import json
import re
from typing import Any

from ctxsteward.schemas import ImagePart, Message, OpaquePart, ToolResultPart
from ctxsteward.schemas.cards import MAX_SUMMARY_CHARS

from ..accounting import said_by

FAST_PATH = "fast-path"
"""`generator_model` of these summaries."""
OWN_SUMMARY_CHARS = 200
SHOWN_CHARS = 100
"""Of a tool's error or text."""
SHOWN_KEYS = 5
MAX_JSON_CHARS = 262_144
"""A larger result is shown as text; reading it for five keys costs too much."""

_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def fast_summary(message: Message) -> str | None:
    """The summary of a tool message or a short text; None for what a summarizer is to read."""
    said = one_line(said_by(message)) if not is_long(message) else None
    if said is None:
        return None
    results = "; ".join(tool_summary(result) for result in message.tool_results)
    return shortened("; ".join(part for part in (said, results) if part) or media(message))


def is_long(message: Message) -> bool:
    """Whether what a message says (not its tool results) has 200 characters and more."""
    return len(said_by(message)) >= OWN_SUMMARY_CHARS


def tool_summary(result: ToolResultPart) -> str:
    """What a tool answered, in a line.

    >>> tool_summary(ToolResultPart(call_id="c", text='{"error": "no such table", "code": 7}'))
    'Tool error: no such table'
    >>> tool_summary(ToolResultPart(call_id="c", text='{"rows": [], "took_ms": 3}'))
    'Tool result with keys: rows, took_ms'
    """
    body = _object(result.text)
    error = body.get("error")
    if error or result.is_error:
        return f"Tool error: {_begin(_error_text(error) if error else result.text)}"
    listed = body.get("images")
    images = len(result.images) + (len(listed) if isinstance(listed, list) else 0)
    if images:
        return f"Tool returned {images} image{'s' if images > 1 else ''}"
    if body:
        return shortened(f"Tool result with keys: {', '.join(_begin(key) for key in list(body)[:SHOWN_KEYS])}")
    if len(result.text) < SHOWN_CHARS:
        return f"Tool result: {one_line(result.text) or '(empty)'}"
    return f"Tool result: {_begin(result.text)}... ({len(result.text)} characters)"


def media(message: Message) -> str:
    """What a message without text holds: ``[2 images]``, ``[document]``."""
    images = sum(isinstance(part, ImagePart) for part in message.parts)
    kinds = [part.type for part in message.parts if isinstance(part, OpaquePart)]
    named = ([f"{images} image{'s' if images > 1 else ''}"] if images else []) + kinds
    return f"[{one_line(', '.join(named))}]" if named else ""


def shortened(text: str) -> str:
    """The text, or its beginning that fits a card."""
    return text if len(text) <= MAX_SUMMARY_CHARS else text[: MAX_SUMMARY_CHARS - 1].rstrip() + "…"


def one_line(text: str) -> str:
    """The text without line breaks, control characters and repeated blanks."""
    return _BLANKS.sub(" ", text).strip()


def _begin(text: str) -> str:
    return one_line(text[: SHOWN_CHARS * 4])[:SHOWN_CHARS]


def _error_text(error: Any) -> str:
    said = error.get("message") if isinstance(error, dict) else error
    return said if isinstance(said, str) else json.dumps(error, ensure_ascii=False)


def _object(text: str) -> dict[str, Any]:
    """The JSON object a text is; empty where it is none, or too large to look into."""
    if len(text) > MAX_JSON_CHARS or not text.lstrip().startswith("{"):
        return {}
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}
