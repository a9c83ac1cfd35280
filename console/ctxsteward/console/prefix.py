"""How much of a prompt is an unchanged prefix of the one before: what a provider's prefix cache can serve.

A prompt is compared piece by piece: tool schemas (providers put them first), system, static, meta, then the
fragments of dynamic in order. Where both prompts first differ in the bullets, the bullets' common beginning
counts too. Tokens are the builder's; priced tokens are tokens at the full price of one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ctxsteward.envelope import Envelope

CACHED_PRICE = 0.1
"""Price of a token that the cache served, against one that it did not. Source: published price lists."""


class Piece(NamedTuple):
    """A stretch of a prompt."""

    kind: str
    digest: bytes
    tokens: int
    text: str = ""
    """Of bullets; empty for others."""


def prompt_pieces(envelope: Envelope) -> tuple[Piece, ...]:
    """A prompt in the order in which a provider reads it."""
    head = envelope.head
    tools = hashlib.sha256(json.dumps(head.tools).encode()).digest()
    fragments = (*head.system, *head.static, *head.meta, *envelope.dynamic.fragments)
    return (
        Piece("tools", tools, head.tools_tokens),
        *(Piece(one.kind, one.digest, one.tokens, one.text if one.kind == "bullets" else "") for one in fragments),
    )


def shared_prefix_tokens(before: Sequence[Piece], now: Sequence[Piece], count_tokens: Callable[[str], int]) -> int:
    """Tokens at the beginning of `now` that stand at the beginning of `before` as well.

    >>> def bullets(text): return Piece("bullets", text.encode(), len(text), text)
    >>> head = Piece("text", b"head", 10)
    >>> shared_prefix_tokens([head, bullets("- a\\n")], [head, bullets("- a\\n- b\\n")], len)
    14
    """
    tokens = 0
    for old, new in zip(before, now, strict=False):
        if old.digest != new.digest:
            if old.kind == new.kind == "bullets":
                tokens += count_tokens(_common_prefix(old.text, new.text))
            break
        tokens += new.tokens
    return tokens


def _common_prefix(one: str, other: str) -> str:
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return one[:length]


def priced_tokens(prompt_tokens: int, prefix_tokens: int, cache_block_tokens: int) -> float:
    """The prompt in tokens at full price; a prefix shorter than the provider's block is not cached.

    >>> priced_tokens(3000, 2000, 1024), priced_tokens(1000, 900, 1024)
    (1200.0, 1000.0)
    """
    cached = prefix_tokens if prefix_tokens >= cache_block_tokens else 0
    return prompt_tokens - cached + cached * CACHED_PRICE
