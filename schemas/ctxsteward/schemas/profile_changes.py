"""Changes of a profile: the changelog entry of a version, and the drift report of a challenger.

**A changelog entry** says who committed which version, when and why, and what changed by key and address. Persona,
policies, rails and surface are the operator's, so their entries go by key. Meta records are derived from what users
said, so they go by address alone: no entry ever holds derived text, and erasing a record leaves its changelog standing.
`before` and `after` are addresses (HMAC under the tenant's key); equal addresses are equal content.

**A drift report** says how far a challenger has moved from the profile in force, key by key, and whether it may.
Findings about persona, policies, rails and surface go by key and may quote a word or a figure.
Meta records are derived from what users said: in a report that is kept or shown to others they go by address, and
nothing of their text is in it. Shares are of words (of characters, in Chinese), in 0..1.

Source: the layered-envelope design (governed slices; drift detection between successive personas and policies); the
state design (changelogs hold addresses only); RFC 6902 (patches).
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, StrictBool, StrictInt, StrictStr

from .frozen import FrozenModel
from .profile import BlockName, EntryId, EntryText, Hex, OneLine, Timestamp

ChangedBlock = Literal[BlockName, "meta"]
ChangeKind = Literal["added", "changed", "removed", "moved"]

Who = Annotated[StrictStr, Field(min_length=1, max_length=200), OneLine]
Why = Annotated[StrictStr, Field(min_length=1, max_length=2_000), OneLine]


class Change(FrozenModel):
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


DriftLevel = Literal["INFO", "WARN", "BLOCK"]
"""INFO: wording. WARN: somebody should know. BLOCK: two people must agree."""
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
"""From the least to the worst."""

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class DriftLimits(FrozenModel):
    """Where the levels begin: the only place for these numbers.

    >>> DriftLimits().block_delta
    0.6
    """

    warn_delta: Share = 0.20
    """A larger share of changed text is a WARN."""
    warn_removed: Share = 0.10
    """A larger share of the old text gone is a WARN."""
    block_delta: Share = 0.60
    """A larger share of changed text is a BLOCK."""
    block_locked_delta: Share = 0.85
    """A larger share of changed text of one locked entry is a BLOCK: another rule stands under its key."""
    window_nights: Annotated[StrictInt, Field(ge=1, le=366)] = 7
    """How far back the cumulative comparison looks."""
    unrelated: Annotated[tuple[EntryText, ...], Field(max_length=1_000)] = ()
    """New lines, word for word, that a person has read beside the locked ones and found to change none of them. Every
    other new line of a profile with locked lines asks two people."""


class DriftFinding(FrozenModel):
    """One thing that a reviewer should see."""

    kind: DriftKind
    level: DriftLevel
    block: ChangedBlock | None
    """null: the document as a whole."""
    key: Annotated[StrictStr, Field(max_length=128)] | None
    """The entry's id; of a meta record its address, where the report is kept."""
    before: Annotated[StrictStr, Field(max_length=200)] | None
    """The word, figure or mark that was there; null for a meta record, where the report is kept."""
    after: Annotated[StrictStr, Field(max_length=200)] | None
    """What stands there now."""
    text: Annotated[StrictStr, Field(max_length=400)]
    """What was found, in words that quote no record."""


class CumulativeDrift(FrozenModel):
    """The same comparison, from the last version that a person approved, or from where the window begins."""

    base: Annotated[StrictInt, Field(ge=1)]
    """The version compared with."""
    versions: Annotated[StrictInt, Field(ge=1)]
    """How many versions have been committed since, this one counted."""
    level: DriftLevel
    delta: Share
    removed: Share
    findings: tuple[DriftFinding, ...]
    """Those above INFO."""


class DriftReport(FrozenModel):
    """What changed from a champion to its challenger, and how bad that is.

    >>> DriftReport(profile="support", champion=None, level="INFO", delta=0.0, removed=0.0, meta_delta=0.0,
    ...             findings=(), touched=(), touches_locked=False, approves=(), cumulative=None,
    ...             limits=DriftLimits()).level
    'INFO'
    """

    schema_version: Literal[1] = 1
    profile: EntryId
    champion: Annotated[StrictInt, Field(ge=1)] | None
    """The version in force; null: there is none yet."""
    level: DriftLevel
    """The worst of all findings, the cumulative ones included."""
    delta: Share
    """Changed share of the text of persona, policies, rails and surface: words added and removed / words of both."""
    removed: Share
    """Share of their old words that is gone."""
    meta_delta: Share
    """Changed share of the meta records' text."""
    findings: tuple[DriftFinding, ...]
    """In the order of the blocks and keys."""
    touched: tuple[Annotated[StrictStr, Field(pattern=r"^[a-z]+\.[a-z0-9][a-z0-9_.-]{0,63}$")], ...]
    """Entries of persona, policies, rails and surface that differ, as ``policies.refunds``."""
    touches_locked: StrictBool
    """Whether one of them is locked in either version, or says something of what a locked entry is about."""
    approves: tuple[Annotated[StrictStr, Field(max_length=128)], ...]
    """Meta records that would newly speak in the operator's name, as ids or addresses."""
    cumulative: CumulativeDrift | None
    """null: there is no earlier version."""
    limits: DriftLimits
