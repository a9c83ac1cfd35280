"""The base class of values that are published or stored as JSON: frozen, without unknown fields."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """A frozen pydantic model without extra fields, whose validator is built at its first use."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    LATER: ClassVar[frozenset[str]] = frozenset()
    """Names of fields that documents of earlier versions lack."""
