"""The lines of a session's bundle: one JSON object a line, the header first, then the lines of each part in order.

Addresses (HMAC under the tenant's key) are those of the store that wrote the bundle. Nothing is encrypted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, RootModel, StrictInt, StrictStr

from .frozen import FrozenModel
from .profile import Hex, ProfileDocument
from .profile_changes import ChangelogEntry

Count = Annotated[StrictInt, Field(ge=0)]


class BundlePart(FrozenModel):
    """Consecutive lines of one kind."""

    lines: Count
    sha256: Hex
    """SHA-256 of the lines, each with its line break."""


class BundleForgotten(FrozenModel):
    """A principal who was forgotten in a session."""

    principal: StrictStr
    who: StrictStr
    when: StrictStr
    why: StrictStr


class BundleLog(BundlePart):
    """The records of a session, from position 0 on."""

    session: StrictStr
    forgotten: tuple[BundleForgotten, ...]


class BundleHeader(FrozenModel):
    """The first line; the parts follow in the order of the fields."""

    schema_version: Literal[1] = 1
    tenant: StrictStr
    key_check: Hex
    """Equal for two tenants exactly if they have the same address key."""
    logs: Annotated[tuple[BundleLog, ...], Field(min_length=1)]
    """Logs from the oldest ancestor to the session itself; an ancestor's log has only the part that is shared."""
    calls: BundlePart
    versions: BundlePart
    code: StrictStr = ""
    """HMAC of the other fields under the tenant's address key; a store with this key can verify the bundle."""


class BundleRecord(FrozenModel):
    """A record of a log; lines of earlier sessions in it are plain text, with an empty address of their key."""

    kind: StrictStr
    body: StrictStr
    """A JSON object as text."""
    ordinal: Count
    outputs: Count
    id: StrictStr | None
    wire: StrictStr | None
    """The message as it was appended, as JSON text."""


class BundleCall(FrozenModel):
    """The manifest of an envelope, or the report of a section that did not fit."""

    address: Hex
    manifest: dict[str, Any]
    digest: Hex | None
    """SHA-256 of the sections with their tokens, budgets and epochs; null for a report, and for an envelope that the
    log no longer holds whole."""


class BundleVersion(FrozenModel):
    """A committed version of a profile that the session has pinned, for people to read; an import commits nothing."""

    profile: ProfileDocument
    changelog: ChangelogEntry
    promotion: Mapping[str, Any] | None
    """Addresses of the drift report, the gate report and the approvals of the version."""


class BundleLine(RootModel[BundleHeader | BundleRecord | BundleCall | BundleVersion]):
    """A line of a session's bundle."""
