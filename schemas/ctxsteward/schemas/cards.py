"""A context card: what an index says about one message, so that a selector reads lines instead of originals.

A card is secondary: it is made from its original, is never the original, and can be made again at any time. It
belongs to one message of one session (tenant, session, ordinal); of two, the one generated later stands. A message of
under 200 characters is its own summary; of a longer one the card holds at most 300 characters.

Embeddings are rounded to 32-bit floats, as every index keeps them, so that a card read back equals the one written.

Source: the auto-context design (table of context cards).
"""

from __future__ import annotations

from array import array
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, AwareDatetime, Field, model_validator

from .findings import Ref
from .frozen import FrozenModel

MAX_SUMMARY_CHARS = 300
MAX_KEYWORDS = 20
MAX_KEYWORD_CHARS = 64
MAX_DIMENSIONS = 8192
MAX_NAME_CHARS = 200

_STORABLE = r"^[^\x00]*$"
"""NUL cannot be kept by every database."""

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
    """What an index says about one message; the original is found by `ref` in its session."""

    tenant: _Name
    session: _Name
    """Whose log holds the original; for the shared part of a fork that is its parent."""
    ref: Annotated[str, Field(pattern=r"^§[1-9][0-9]{0,11}$")]
    address: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Of the original: a card whose original was replaced no longer agrees with it."""
    summary: Annotated[str, Field(max_length=MAX_SUMMARY_CHARS, pattern=_STORABLE)]
    keywords: Annotated[tuple[_Keyword, ...], Field(max_length=MAX_KEYWORDS)] = ()
    """Lower case, most telling first."""
    embedding: Annotated[_Vector | None, AfterValidator(_in_range), AfterValidator(_single)] = None
    """Of the summary; null where no embedder was at hand."""
    embedding_model: _Name | None = None
    estimated_tokens: Annotated[int, Field(ge=0)]
    """Of the whole original."""
    role: CardRole
    """`tool` for every message that holds nothing but tool results, whatever its wire role."""
    phase_name: _Name | None = None
    """Its own phase, or that of the message before it; null before the first phase."""
    turn_number: Annotated[int, Field(ge=1)] | None = None
    """User turn within the phase, from 1; null before the first."""
    is_anchor: bool = False
    """Pinned to stay verbatim."""
    is_callout: bool = False
    """Pinned by anyone, with any strength."""
    callout_name: _Name | None = None
    generated_at: Annotated[AwareDatetime, AfterValidator(_in_utc)]
    generator_model: _Name
    """Who wrote the summary: `fast-path` for rules, else a summarizer's name."""
    message_timestamp: _Name | None = None
    """As it was given when the message was appended."""

    @classmethod
    def stored(cls, fields: dict[str, Any]) -> Self:
        """A card from all its fields as an index keeps them; they were checked when it was put, and are not again.

        A tenth of the time of `model_construct`, which does the same field by field: a session is read before every
        selection.
        """
        card = cls.__new__(cls)
        for name, value in (
            ("__dict__", fields),
            ("__pydantic_fields_set__", set(fields)),
            ("__pydantic_extra__", None),
            ("__pydantic_private__", None),
        ):
            object.__setattr__(card, name, value)
        return card

    @property
    def ordinal(self) -> int:
        """The message's place in its session."""
        return Ref.parse(self.ref).ordinal

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if (self.embedding is None) != (self.embedding_model is None):
            raise ValueError("embedding and embedding_model come together, or not at all")
        if (self.is_anchor or self.callout_name is not None) and not self.is_callout:
            raise ValueError("an anchor, and whatever has a callout_name, is a callout")
        return self
