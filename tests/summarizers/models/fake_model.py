"""Doubles of a `ChatModel`, and what a well-behaved one would answer."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ctxsteward.schemas import ChatReply, ChatRequest, Message, SourceMessage, TokenUsage, Wire
from ctxsteward.summarizers.models import GroundingText

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
            {"text": row["text"].split("\n")[0][:120].strip(), "cites": [row["ref"]], "said_by": row["role"],
             "kind": "fact"}
            for row in rows_of(request) if row.get("text", "").strip()
        )
    )  # fmt: skip


def source_message(ref: str, role: str, text: str) -> SourceMessage:
    wire: Wire = {"role": role, "content": text}
    if role == "tool":
        wire["tool_call_id"] = f"call-{ref}"
    return SourceMessage(ref=ref, message=Message.from_wire(wire))


def foreign_pieces(text: str, refs: Sequence[str], sources: Mapping[str, GroundingText]) -> list[str]:
    """What of a shown line stands in none of what it cites: labels apart, of which each is one's who is cited."""
    cited = [sources[ref] for ref in refs]
    labels = {*(one.role for one in cited), *(one.text.split(":")[0].split("：")[0] for one in cited)}
    found = []
    for piece in unicodedata.normalize("NFC", text).split("…"):
        rests = [piece.strip(), *(piece.strip().removeprefix(f"{label}: ") for label in labels)]
        if not any(rest in one.text for rest in rests for one in cited):
            found.append(piece)
    return found
