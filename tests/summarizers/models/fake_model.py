"""Doubles of a `ChatModel`, and what a well-behaved one would answer."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ctxsteward.schemas import ChatReply, ChatRequest, Message, TokenUsage
from ctxsteward.schemas.message import Wire
from ctxsteward.schemas.summary import SourceMessage
from ctxsteward.summarizers.models.grounding import GroundingText

Answer = Callable[[ChatRequest], ChatReply | str]


class FakeModel:
    """Answers as a function says; remembers what it was asked."""

    def __init__(self, answer: Answer, name: str = "fake") -> None:
        self.name, self._answer = name, answer
        self.asked: list[ChatRequest] = []

    def reply(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        given = self._answer(request)
        return given if isinstance(given, ChatReply) else ChatReply(text=given, usage=TokenUsage(prompt_tokens=100))

    async def reply_async(self, request: ChatRequest) -> ChatReply:
        return self.reply(request)


def rows_of(request: ChatRequest) -> list[dict[str, str]]:
    """The messages that a request shows, as the model reads them."""
    lines = request.messages[0]["content"].splitlines()
    return [json.loads(line) for line in lines if line.startswith('{"ref"')]


def bullets_json(*bullets: dict[str, Any]) -> str:
    return json.dumps({"bullets": list(bullets)}, ensure_ascii=False)


def faithful(request: ChatRequest) -> str:
    """The beginning of every message, quoted."""
    return bullets_json(
        *(
            {
                "text": row["text"].split("\n")[0][:120].strip(),
                "cites": [row["ref"]],
                "said_by": row["role"],
                "kind": "fact",
            }
            for row in rows_of(request)
            if row.get("text", "").strip()
        )
    )


def source_message(ref: str, role: str, text: str) -> SourceMessage:
    wire: Wire = {"role": role, "content": text}
    if role == "tool":
        wire["tool_call_id"] = f"call-{ref}"
    return SourceMessage(ref=ref, message=Message.from_wire(wire))


def foreign_pieces(text: str, refs: Sequence[str], sources: Mapping[str, GroundingText]) -> list[str]:
    """What of a shown line stands in none of what it cites: labels apart, of which each is one's whose words follow.

    A label is the role of what follows, or of a user's text the name that a user's message begins with.
    """
    said = [(role, unicodedata.normalize("NFC", part)) for ref in refs for role, part in sources[ref].said]
    names = {part.split(":")[0].split("：")[0] for role, part in said if role == "user"}
    found, label = [], ""
    for piece in unicodedata.normalize("NFC", text).split("…"):
        rest = piece.strip()
        for one in ("system", "developer", "assistant", "tool", "user", *names):
            if rest.startswith((f"{one}: ", f"{one}：")):
                label = one
                is_said = any(rest in part for role, part in said if role == "user")
                rest = rest if is_said else rest.removeprefix(f"{one}: ")
                break
        role = label if label in ("system", "developer", "assistant", "tool") else "user"
        if not any(rest in part for who, part in said if who == role):
            found.append(piece)
    return found
