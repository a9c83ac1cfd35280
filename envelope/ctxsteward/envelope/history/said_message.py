"""Decide when two messages are the same, whoever wrote them down, for `follow`.

Role, texts, calls, results and media count, in their order. Fields without meaning for the model (`_NOISE`), thinking
and the formatting of JSON do not count. `without_own_text` removes text that this package had put into a prompt.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, NamedTuple

from ctxsteward.schemas import Message, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from ctxsteward.schemas.message import OpaquePart

_DIGEST_BYTES = 16
_NOISE = frozenset(("cache_control", "citations", "id", "index", "status", "signature", "partial"))
"""Fields of blocks that mean nothing to the model, or that only their provider sets."""
_PLACEHOLDER = re.compile(r"\s*[\[<({].{0,200}[\])>}]\s*", re.DOTALL)


class SaidMessage(NamedTuple):
    """The content by which two messages are compared."""

    said: bytes
    """Digest of role, texts, calls, results and media, in their order."""
    frame: bytes
    """The same digest without the text and media of tool results."""
    answers: tuple[str, ...] = ()
    """Ids of the calls that the message's tool results answer."""
    chars: int = 0
    """Characters of its texts and results."""
    is_spoken: bool = False
    """Whether it has a user's own words or media."""
    is_head: bool = False
    """Whether it is a system or developer message."""


def said_message(message: Message) -> SaidMessage:
    """Return the content of a message for comparison.

    >>> one = Message.from_wire({"role": "user", "content": "hi"})
    >>> other = Message.from_wire({"content": [{"type": "text", "text": "hi"}], "role": "user", "name": None})
    >>> said_message(one) == said_message(other)
    True
    """
    frame: list[Any] = []
    results: list[Any] = []
    answers: list[str] = []
    content = message.wire.get(message.content_field)
    blocks = content if isinstance(content, list) and message.role != "tool" else []
    for at, part in enumerate(message.parts):
        block = blocks[at] if at < len(blocks) else None
        if isinstance(part, TextPart):
            if frame and frame[-1][0] == "text":
                frame[-1] = ("text", f"{frame[-1][1]}\n{part.text}")
            else:
                frame.append(("text", part.text))
        elif isinstance(part, ToolCallPart):
            frame.append(("call", part.id, part.name, _plain_arguments(part.arguments)))
        elif isinstance(part, ToolResultPart):
            answers.append(part.call_id)
            frame.append(("result", part.call_id))
            if message.dialect == "gemini":
                media: list[Any] = [image.model_dump() for image in part.images]
            else:
                media = _media(content if message.role == "tool" else block)
            results.append((part.text, media))
        elif not isinstance(part, ThinkingPart):
            frame.append(("opaque" if isinstance(part, OpaquePart) else "media", _quiet(block)))
    role = "tool" if answers else "system" if message.role == "developer" else message.role
    name = message.wire.get("name") if message.role == "user" else None
    framed = _digest([role, name, frame])
    texts = [text for kind, text, *_ in frame if kind == "text"]
    return SaidMessage(
        said=_digest([framed.hex(), results]) if results else framed,
        frame=framed,
        answers=tuple(answers),
        chars=sum(map(len, texts)) + sum(len(text) for text, _ in results),
        is_head=role == "system",
        is_spoken=message.role == "user" and any(kind in ("text", "media", "opaque") for kind, *_ in frame),
    )


def is_reduced(logged: Message, handed: Message, ref: str) -> bool:
    """Return whether each result of a handed message is that of the logged one: whole, an excerpt, or a placeholder.

    >>> def result(text): return Message.from_wire({"role": "tool", "tool_call_id": "c", "content": text})
    >>> whole = result("Error: no connection after 30 seconds")
    >>> is_reduced(whole, result("[cleared]"), "§3"), is_reduced(whole, result("sunny"), "§3")
    (True, False)
    """
    pairs = zip(logged.tool_results, handed.tool_results, strict=True)
    return all(
        log_result.text == other.text or _reduces(log_result.text, other.text, ref) for log_result, other in pairs
    )


def _reduces(whole: str, shown: str, ref: str) -> bool:
    if len(shown) >= len(whole):
        return False
    if _PLACEHOLDER.fullmatch(shown) or ref in shown:
        return True
    shared = _shared_start(whole, shown) + _shared_start(whole[::-1], shown[::-1])
    return bool(shown.strip()) and shared >= 0.6 * len(shown)


def _shared_start(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def without_own_text(message: Message, nonce: str) -> Message | None:
    """Return the message without blocks fenced with this session's nonce, or None if nothing else is in it."""
    if not any(isinstance(part, TextPart) and nonce in part.text for part in message.parts):
        return message
    name = message.content_field
    content = message.wire[name]
    kept: Any
    if isinstance(content, str):
        kept = _without_blocks(content, nonce)
        return message if kept == content else Message.from_wire({**message.wire, name: kept}) if kept else None
    texts = [_without_blocks(_block_text(block), nonce) for block in content]
    kept = [
        block if text == _block_text(block) else {**block, "text": text} if isinstance(block, dict) else text
        for block, text in zip(content, texts, strict=True)
        if text or not _block_text(block)
    ]
    if kept == content:
        return message
    return Message.from_wire({**message.wire, name: kept}) if kept else None


def _without_blocks(text: str, nonce: str) -> str:
    fence = re.escape(nonce)
    block = re.compile(rf"<{fence}(?: [^>\n]*)?>\n(?:(?!<{fence}).)*?</{fence}(?: [^>\n]*)?>", re.DOTALL)
    rest = block.sub("", text)
    return rest.strip() if rest != text else text


def _media(content: object) -> list[Any]:
    """Return the blocks of a tool's output other than text."""
    inner = content.get("content") if isinstance(content, dict) else content
    blocks = inner if isinstance(inner, list) else []
    return [_quiet(block) for block in blocks if isinstance(block, dict) and block.get("type") != "text"]


def _quiet(value: object) -> object:
    """Return a block without null fields and fields that mean nothing to the model."""
    if isinstance(value, dict):
        return {key: _quiet(item) for key, item in value.items() if key not in _NOISE and item is not None}
    return [_quiet(item) for item in value] if isinstance(value, list) else value


def _digest(value: object) -> bytes:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()


def _block_text(block: object) -> str:
    text = block.get("text") if isinstance(block, dict) and block.get("type", "text") == "text" else block
    return text if isinstance(text, str) else ""


def _plain_arguments(arguments: str) -> str:
    """Return arguments as canonical JSON; return text that is no JSON unchanged."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return arguments
