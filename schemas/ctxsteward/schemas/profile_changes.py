"""Changes of a profile: the changelog entry of a version, and the drift report of a challenger.

**A changelog entry** has author, time and reason of a commit, and the changed keys and addresses. Persona, policies,
rails and surface are text of the operator, so their entries are named by key. Meta records are derived from users'
words, so they are named only by address: no entry contains derived text, and it stays valid when a record is erased.
`before` and `after` are addresses (HMAC under the tenant's key); equal addresses mean equal content.

**A drift report** has the differences between a challenger and the profile in force, and a level.
Findings about persona, policies, rails and surface have a key and may quote a word or a figure.
Meta records are derived from users' words: a report that is stored or shown to others names them by address and
contains none of their text. Shares are of words (in Chinese, of characters), in 0..1.

Source: the layered-envelope design (governed slices; drift detection between successive personas and policies); the
state design (changelogs hold addresses only); RFC 6902 (patches).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, StrictBool, StrictInt, StrictStr
from pydantic.json_schema import SkipJsonSchema

from .frozen import FrozenModel
from .profile import BlockName, EntryId, EntryText, Hex, OneLine, Timestamp

ChangedBlock = Literal[BlockName, "meta"]
ChangeKind = Literal["added", "changed", "removed", "moved"]

Who = Annotated[StrictStr, Field(min_length=1, max_length=200), OneLine]
Why = Annotated[StrictStr, Field(min_length=1, max_length=2_000), OneLine]


class Change(FrozenModel):
    """One entry or record that differs from the previous version."""

    block: ChangedBlock
    kind: ChangeKind
    """Kind of the change; moved means equal content at another place among its neighbours."""
    key: EntryId | None
    """The entry's id; null in meta, whose ids may reveal something about people."""
    before: Hex | None
    """Address of the previous content; null if it was added."""
    after: Hex | None
    """Address of the new content; null if it was removed."""


class ChangelogEntry(FrozenModel):
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
    """Number of the previous version; null for the first."""
    commit_id: Annotated[StrictStr, Field(min_length=1, max_length=128)]
    """Id that the writer draws before its first attempt, so that a repeated commit has the same id."""
    epoch: Annotated[StrictInt, Field(ge=0)]
    """Epoch of the writer; 0 if nobody has ever taken a lease."""
    who: Who
    when: Timestamp
    """ISO 8601 time, as given by the writer."""
    why: Why
    restores: Annotated[StrictInt, Field(ge=1)] | None
    """Number of the version whose content a rollback restores; null for another commit."""
    changes: tuple[Change, ...]
    promotion: Annotated[SkipJsonSchema[Mapping[str, Any] | None], Field(exclude=True)] = None
    """Addresses of the version's drift report, evals and approvals. None for the first version, a rollback, or a
    version from before promotions were required."""


DriftLevel = Literal["INFO", "WARN", "BLOCK"]
"""INFO: only wording. WARN: a person should read it. BLOCK: two people must approve it."""
DriftKind = Literal[
    "polarity_flip",
    "contradiction",
    "touches_locked",
    "number_change",
    "modality_change",
    "removed",
    "added",
    "reworded",
    "renamed",
    "unlocked",
    "locked",
    "empty_output",
    "large_delta",
    "large_removal",
]

LEVELS: tuple[DriftLevel, ...] = get_args(DriftLevel)
"""All levels, from the least to the worst."""

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class DriftLimits(FrozenModel):
    """The thresholds of the levels; no other place has these numbers.

    >>> DriftLimits().block_delta
    0.6
    """

    warn_delta: Share = 0.20
    """A larger share of changed text is a WARN."""
    warn_removed: Share = 0.10
    """A larger share of removed old text is a WARN."""
    block_delta: Share = 0.60
    """A larger share of changed text is a BLOCK."""
    block_locked_delta: Share = 0.85
    """A larger share of changed text in one locked entry is a BLOCK, because its key then has another rule."""
    window_nights: Annotated[StrictInt, Field(ge=1, le=366)] = 7
    """Number of nights that the cumulative comparison looks back."""
    unrelated: Annotated[tuple[EntryText, ...], Field(max_length=1_000)] = ()
    """New lines, word for word, that a person has compared with the locked ones and found to change none of them. Every
    other new line in a profile with locked lines needs two people."""


class DriftFinding(FrozenModel):
    """One difference that a reviewer should see."""

    kind: DriftKind
    level: DriftLevel
    block: ChangedBlock | None
    """Block of the difference; null for the whole document."""
    key: Annotated[StrictStr, Field(max_length=128)] | None
    """The entry's id; for a meta record its address, if the report is stored."""
    before: Annotated[StrictStr, Field(max_length=200)] | None
    """The previous word, figure or mark; null for a meta record, if the report is stored."""
    after: Annotated[StrictStr, Field(max_length=200)] | None
    """The new word, figure or mark."""
    text: Annotated[StrictStr, Field(max_length=400)]
    """Description of the difference, without quotes of a record."""


class CumulativeDrift(FrozenModel):
    """The comparison with the last version that a person approved, or with the version at the start of the window."""

    base: Annotated[StrictInt, Field(ge=1)]
    """Number of the version compared with."""
    versions: Annotated[StrictInt, Field(ge=1)]
    """Number of versions committed since then, including this one."""
    level: DriftLevel
    delta: Share
    removed: Share
    findings: tuple[DriftFinding, ...]
    """Findings above INFO."""


class DriftReport(FrozenModel):
    """The differences between a champion and its challenger, with a level.

    >>> DriftReport(profile="support", champion=None, level="INFO", delta=0.0, removed=0.0, meta_delta=0.0,
    ...             findings=(), touched=(), touches_locked=False, approves=(), cumulative=None,
    ...             limits=DriftLimits()).level
    'INFO'
    """

    schema_version: Literal[1] = 1
    profile: EntryId
    champion: Annotated[StrictInt, Field(ge=1)] | None
    """Number of the version in force; null if there is none yet."""
    level: DriftLevel
    """The worst level of all findings, including the cumulative ones."""
    delta: Share
    """Changed share of the text of persona, policies, rails and surface: words added and removed / words of both."""
    removed: Share
    """Share of their old words that was removed."""
    meta_delta: Share
    """Changed share of the meta records' text."""
    findings: tuple[DriftFinding, ...]
    """Findings in the order of the blocks and keys."""
    touched: tuple[Annotated[StrictStr, Field(pattern=r"^[a-z]+\.[a-z0-9][a-z0-9_.-]{0,63}$")], ...]
    """Entries of persona, policies, rails and surface that differ, as ``policies.refunds``."""
    touches_locked: StrictBool
    """Whether one of them is locked in either version, or is about the subject of a locked entry."""
    approves: tuple[Annotated[StrictStr, Field(max_length=128)], ...]
    """Meta records that would newly speak in the operator's name, as ids or addresses."""
    cumulative: CumulativeDrift | None
    """Comparison over several versions; null if there is no earlier version."""
    limits: DriftLimits
