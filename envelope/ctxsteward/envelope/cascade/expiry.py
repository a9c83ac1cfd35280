"""Expiry: which of a phase's messages other phases are no longer shown, by `context_ttl`.

The age of a message is the number of steps (assistant messages) of its phase after it. Tool results that are too old
become one line, so that their calls stay answered; images become one line; other messages are left out, an assistant
message with tool calls together with its results. The originals stay in their log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ctxsteward.schemas import Message, Wire
from ctxsteward.schemas.cascade import TtlKind

from .images import without_images
from .past import Past, PastMessage

EXPIRED_IMAGE = "[image expired]"


class Left(NamedTuple):
    """A message that is still shown."""

    message: PastMessage
    original: Message
    wire: Wire
    """As it is shown; the original's own where nothing of it expired."""


class Expiry:
    """A phase's time limits, applied to its own messages."""

    def __init__(self, past: Past, phase: str, limits: Mapping[TtlKind, int | None]) -> None:
        self.limits = {kind: limit for kind, limit in limits.items() if limit is not None}
        self._ages = past.ages(phase) if self.limits else {}
        self.hidden = 0
        """Messages that were shortened or left out."""

    def hides_images(self, message: PastMessage) -> bool:
        """Whether the message's images are too old."""
        return self._over("images", message)

    def applied(self, messages: Iterable[PastMessage]) -> Iterator[Left]:
        """The messages that are still shown, and how."""
        leaving = False
        for message in messages:
            original = message.message
            leaving = self._leaves(message, original) or (leaving and message.joins)
            if leaving:
                self.hidden += 1
                continue
            wire = original.wire
            if original.tool_results and self._over("tool_results", message):
                wire = _without_results(wire, f"[tool result expired, {message.origin}]")
            if self.hides_images(message):
                wire = without_images(wire, None, EXPIRED_IMAGE)
            self.hidden += wire is not original.wire
            yield Left(message, original, wire)

    def _leaves(self, message: PastMessage, original: Message) -> bool:
        if original.role == "assistant":
            return self._over("assistant", message)
        return original.role == "user" and not original.tool_results and self._over("user", message)

    def _over(self, kind: TtlKind, message: PastMessage) -> bool:
        limit = self.limits.get(kind)
        return limit is not None and self._ages.get(message.number, 0) > limit


def _without_results(wire: Wire, line: str) -> Wire:
    if wire["role"] == "tool":
        return {**wire, "content": line}
    blocks = [
        {**block, "content": line} if isinstance(block, dict) and block.get("type") == "tool_result" else block
        for block in wire["content"]
    ]
    return {**wire, "content": blocks}
