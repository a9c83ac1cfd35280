"""A context card: the summary of one message, so that a selector reads lines instead of originals.

A card is derived: it is made from its original, never replaces it, and can be made again at any time. A message of
fewer than 200 characters is its own summary; for a longer one the card has at most 300 characters.

Embeddings are rounded to 32-bit floats, like in every index, so that a card equals the one that was written.

Source: the auto-context design (table of context cards).
"""

from __future__ import annotations

from array import array
from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AwareDatetime, Field, model_validator

from .findings import Ref
from .frozen import FrozenModel

MAX_SUMMARY_CHARS = 300
MAX_KEYWORDS = 20
MAX_KEYWORD_CHARS = 64
MAX_DIMENSIONS = 8192
MAX_NAME_CHARS = 200

_STORABLE = r"^[^\x00]*$"
"""Pattern of text without NUL, which some databases cannot store."""

CardRole = Literal["user", "assistant", "tool"]


def _single(values: tuple[float, ...] | None) -> tuple[float, ...] | None:
    return None if values is None else tuple(array("f", values))


def _in_range(values: tuple[float, ...] | None) -> tuple[float, ...] | None:
    if values is not None and any(abs(value) > 3.4e38 for value in values):
        raise ValueError("a value does not fit a 32-bit float")
    return values


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


_Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS, pattern=_STORABLE)]
_Keyword = Annotated[str, Field(min_length=1, max_length=MAX_KEYWORD_CHARS, pattern=_STORABLE)]
_Value = Annotated[float, Field(allow_inf_nan=False)]
_Vector = Annotated[tuple[_Value, ...], Field(min_length=1, max_length=MAX_DIMENSIONS)]


class ContextCard(FrozenModel):
    """The summary of one message; `ref` names the original in its session."""

    tenant: _Name
    session: _Name
    """Session whose log has the original; for the shared part of a fork its parent."""
    ref: Annotated[str, Field(pattern=r"^§[1-9][0-9]{0,11}$")]
    address: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Address of the original; if the original was replaced, its address differs from the card's."""
    summary: Annotated[str, Field(max_length=MAX_SUMMARY_CHARS, pattern=_STORABLE)]
    keywords: Annotated[tuple[_Keyword, ...], Field(max_length=MAX_KEYWORDS)] = ()
    """Keywords in lower case, the most significant first."""
    embedding: Annotated[_Vector | None, AfterValidator(_in_range), AfterValidator(_single)] = None
    """Embedding of the summary; null without an embedder."""
    embedding_model: _Name | None = None
    estimated_tokens: Annotated[int, Field(ge=0)]
    """Tokens of the whole original."""
    role: CardRole
    """Role of the message; `tool` for every message of only tool results, whatever its wire role."""
    phase_name: _Name | None = None
    """Phase of the message, or else of the message before it; null before the first phase."""
    turn_number: Annotated[int, Field(ge=1)] | None = None
    """Number of the user turn within the phase, from 1; null before the first turn."""
    is_anchor: bool = False
    """Whether the message is pinned to stay verbatim."""
    is_callout: bool = False
    """Whether the message is pinned by anyone, with any strength."""
    callout_name: _Name | None = None
    generated_at: Annotated[AwareDatetime, AfterValidator(_in_utc)]
    generator_model: _Name
    """Author of the summary: `fast-path` for rules, else a summarizer's name."""
    message_timestamp: _Name | None = None
    """Timestamp that was passed when the message was appended."""

    @property
    def ordinal(self) -> int:
        """The message's ordinal in its session."""
        return Ref.parse(self.ref).ordinal

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if (self.embedding is None) != (self.embedding_model is None):
            raise ValueError("embedding and embedding_model come together, or not at all")
        if (self.is_anchor or self.callout_name is not None) and not self.is_callout:
            raise ValueError("an anchor, and whatever has a callout_name, is a callout")
        return self
