"""A changelog entry: who committed which version of a profile, when and why, and what changed by key and address.

Persona, policies, rails and surface are the operator's, so their entries go by key. Meta records are derived from what
users said, so they go by address alone: no entry ever holds derived text, and erasing a record leaves its changelog
standing. `before` and `after` are addresses (HMAC under the tenant's key); equal addresses are equal content.

Source: the layered-envelope design (governed slices); the state design (changelogs hold addresses only).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from .profile import BlockName, EntryId, OneLine, Timestamp
from .seal import Hex

ChangedBlock = Literal[BlockName, "meta"]
ChangeKind = Literal["added", "changed", "removed", "moved"]

Who = Annotated[StrictStr, Field(min_length=1, max_length=200), OneLine]
Why = Annotated[StrictStr, Field(min_length=1, max_length=2_000), OneLine]


class _ChangelogValue(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Change(_ChangelogValue):
    """One entry or record that differs from the version before."""

    block: ChangedBlock
    kind: ChangeKind
    """moved: same content, another place among its neighbours."""
    key: EntryId | None
    """The entry's id; null in meta, whose ids may tell something about people."""
    before: Hex | None
    """Address of what stood there; null where it was added."""
    after: Hex | None
    """Address of what stands there now; null where it was removed."""


class ChangelogEntry(_ChangelogValue):
    """One commit of a profile.

    >>> entry = ChangelogEntry(profile="support", version=1, parent=None, commit_id="c1", epoch=0, who="ada",
    ...                        when="2026-11-03T04:00:00Z", why="first version", restores=None, changes=())
    >>> entry.version
    1
    """

    schema_version: Literal[1] = 1
    profile: EntryId
    version: Annotated[StrictInt, Field(ge=1)]
    parent: Annotated[StrictInt, Field(ge=1)] | None
    """The version it was made from; null for the first."""
    commit_id: Annotated[StrictStr, Field(min_length=1, max_length=128)]
    """Made by the writer before its first try: the same commit repeated has the same id."""
    epoch: Annotated[StrictInt, Field(ge=0)]
    """Of the writer; 0 where nobody has ever taken a lease."""
    who: Who
    when: Timestamp
    """ISO 8601 time, as told."""
    why: Why
    restores: Annotated[StrictInt, Field(ge=1)] | None
    """The version whose content this is again; null where it is no rollback."""
    changes: tuple[Change, ...]
