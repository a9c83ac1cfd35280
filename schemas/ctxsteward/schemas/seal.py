"""A seal: a code over an envelope's address and where it belongs, made with a tenant's seal key.

It carries what is needed to judge a payload that it travels with: whose envelope it was, of which session, at which
log position, under which profile version. It holds no digest, which would answer questions about short texts: content
is bound through the address, an HMAC of the tenant's. Keys rotate; `key_id` names the one that was used.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

ADDRESS_PATTERN = r"^[0-9a-f]{64}$"
Hex = Annotated[str, Field(pattern=ADDRESS_PATTERN)]
"""64 lower-case hex digits."""


class SealDocument(BaseModel):
    """Who sealed which envelope with which key."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    alg: Literal["HMAC-SHA-256"]
    key_id: Annotated[str, Field(min_length=1, max_length=64)]
    """Which of the tenant's seal keys."""
    mac: Hex
    """Over all other fields but `alg`, each length-prefixed."""
    schema_version: Annotated[int, Field(ge=1)]
    renderer_version: Annotated[int, Field(ge=1)]
    tenant: str
    session: str
    profile_version: str | None
    """Address of the profile in force; null without a profile."""
    position: Annotated[int, Field(ge=0)]
    """Log position the envelope was built at."""
    address: Hex
    """The envelope's address: covers its sections, their order, tokens, budgets and tools."""
