"""The values of ingest: an item that a source lists, its bytes once loaded, and an item skipped or quarantined.

One item is one file, object or session; a file may hold many transcripts (`transcripts`). Times are the source's, in
Unix seconds; sizes are in bytes. Every value is picklable, because items go to worker processes.

A refused item is a `QuarantinedItem` with a reason from a closed set, so that one bad transcript stops no other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from ..harvest.usage import WatchedRecord

SIDECAR_SUFFIX = ".session.json"
"""``chat.jsonl.session.json`` and ``chat.session.json`` are sidecars of ``chat.jsonl``."""
TRANSCRIPT_SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj")
COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".zip")
MAX_ITEM_BYTES = 64 * 1024 * 1024
MAX_SIDECAR_BYTES = 256 * 1024

SkipReason = Literal["own_output", "other_profile", "between_people", "open", "deleted", "empty"]
"""own_output: the steward wrote it. other_profile: it belongs to another agent of the tenant. between_people: two
people talk without an agent. open: it has not ended. deleted: its people withdrew it. empty: it has no messages."""
Reason = Literal[
    "too_large",
    "unreadable",
    "invalid",
    "bad_metadata",
    "orphan_metadata",
    "time_limit",
    "cpu_limit",
    "memory_limit",
    "worker_died",
    "failed",
]
"""too_large: over a cap. unreadable: the source refuses it. invalid: not a transcript. bad_metadata: the sidecar cannot
be used. orphan_metadata: a sidecar without a transcript. failed: an error of this program, such as a harvester's."""


class SourceItem(NamedTuple):
    """One file, object or session, as its source lists it."""

    source: str
    """URI of the source; in a night the URI of the settings."""
    name: str
    """Stable from night to night, and unique in the source."""
    version: str
    """Changes whenever the content or its sidecar does: ``SIZE@TIME``, and ``+SIZE@TIME`` for a sidecar."""
    revision: int = 0
    """Grows from version to version: the length of a log, the time of a file; 0 if the source does not know."""
    modified_seconds: float = 0.0
    """Time of the last write to the transcript or its sidecar."""


class FileStamp(NamedTuple):
    """Size and time of last write of one file, from a listing."""

    size_bytes: int
    modified_ns: int

    def __str__(self) -> str:
        return f"{self.size_bytes}@{self.modified_ns}"


def listed(source: str, name: str, *stamps: FileStamp) -> SourceItem:
    """Make an item from the stamp of its file, and of its sidecar if it has one.

    >>> listed("in", "a.json", FileStamp(10, 2_000_000_000), FileStamp(5, 3_000_000_000)).version
    '10@2000000000+5@3000000000'
    """
    modified_seconds = max(stamp.modified_ns for stamp in stamps) / 1e9
    return SourceItem(source, name, "+".join(map(str, stamps)), int(modified_seconds * 1e6), modified_seconds)


def is_named_like_transcript(name: str) -> bool:
    """Whether a file with this name is listed.

    >>> [is_named_like_transcript(name) for name in ("a.jsonl", "a.json.gz", "a.json.session.json", "README.md")]
    [True, True, False, False]
    """
    lower = name.lower()
    for suffix in COMPRESSED_SUFFIXES:
        lower = lower.removesuffix(suffix)
    return lower.endswith(TRANSCRIPT_SUFFIXES) and not lower.endswith(SIDECAR_SUFFIX)


def is_named_like_sidecar(name: str) -> bool:
    """Whether a name is that of a sidecar, in upper or lower case, so that a misspelled one is reported."""
    return name.lower().endswith(SIDECAR_SUFFIX)


def sidecar_of(name: str, exists: Callable[[str], bool]) -> str | None:
    """Return the sidecar of a transcript, by its whole name or else by its stem; None if there is none.

    If two transcripts share the stem, the stem names neither.

    >>> sidecar_of("a.jsonl", {"a.jsonl", "a.session.json"}.__contains__)
    'a.session.json'
    >>> sidecar_of("a.jsonl", {"a.jsonl", "a.json", "a.session.json"}.__contains__)
    """
    whole, short = sidecars_of(name)
    if exists(whole):
        return whole
    stem = short.removesuffix(SIDECAR_SUFFIX)
    is_alone = sum(exists(stem + suffix) for suffix in TRANSCRIPT_SUFFIXES) == 1
    return short if is_alone and exists(short) else None


def sidecars_of(name: str) -> tuple[str, str]:
    """Return the names that a transcript's sidecar may have.

    >>> sidecars_of("a.jsonl")
    ('a.jsonl.session.json', 'a.session.json')
    """
    stem = next((name.removesuffix(suffix) for suffix in TRANSCRIPT_SUFFIXES if name.endswith(suffix)), name)
    return name + SIDECAR_SUFFIX, stem + SIDECAR_SUFFIX


def orphans(names: Collection[str]) -> frozenset[str]:
    """Return the sidecars among these names that have no transcript."""
    sidecars = frozenset(filter(is_named_like_sidecar, names))
    if not sidecars:
        return sidecars
    return sidecars - {sidecar_of(name, names.__contains__) for name in names if is_named_like_transcript(name)}


def written_seconds(version: str) -> float | None:
    """Return the time of the last write to an item without its sidecar, or None if the version has no time.

    >>> written_seconds("10@2000000000+5@3000000000"), written_seconds("12@0.{}")
    (2.0, None)
    """
    written_ns = version.partition("+")[0].partition("@")[2]
    return int(written_ns) / 1e9 if written_ns.isdecimal() else None


def sizes_of(version: str) -> tuple[int, ...]:
    """Return the sizes in a version: of the item, and of its sidecar if it has one.

    >>> sizes_of("10@2000000000+5@3000000000")
    (10, 5)
    """
    return tuple(int(stamp.partition("@")[0]) for stamp in version.split("+"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedItem:
    """The bytes of an item."""

    source: str
    """Name in evidence: the item's name, or ``store``."""
    name: str
    data: bytes
    sidecar: bytes | None = None
    sidecar_name: str = ""
    written_seconds: float | None = None
    """Time of the last write, if the source knows it; used for messages of an item without times."""
    layout: Literal["file", "log"] = "file"
    """file: a transcript format. log: a session of a store, as `sources.StoreSource.read` writes it."""
    shown: tuple[str, ...] = ()
    """Ids of records that the session was shown, if the source knows them before parsing."""
    watched: tuple[WatchedRecord, ...] = ()
    """The records with these ids, from the ledger (`night.batch_harvest`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedItem:
    """A transcript that is not for the steward."""

    source: str
    name: str
    reason: SkipReason
    session: str | None = None
    """None for the whole item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedItem:
    """A transcript that could not be used."""

    source: str
    name: str
    reason: Reason
    detail: str
    """Explanation for people; may quote some redacted characters of the transcript."""
