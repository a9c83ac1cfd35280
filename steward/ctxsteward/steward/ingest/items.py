"""The values of ingest: an item that a source lists, its bytes once loaded, and an item skipped or quarantined.

One item is one file, object or session; a file may hold many transcripts (`transcripts`). Times are Unix seconds as
the source tells them, sizes are bytes. Every value is picklable: items go to worker processes.

A refused item is a value, `QuarantinedItem`, with a reason of a closed set, so that one bad transcript stops no other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from ..harvest.usage import WatchedRecord

SIDECAR_SUFFIX = ".session.json"
"""``chat.jsonl.session.json`` tells about ``chat.jsonl``; so does ``chat.session.json``."""
TRANSCRIPT_SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj")
COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".zip")
MAX_ITEM_BYTES = 64 * 1024 * 1024
MAX_SIDECAR_BYTES = 256 * 1024

SkipReason = Literal["own_output", "other_profile", "between_people", "open", "deleted", "empty"]
"""own_output: the steward wrote it. other_profile: another agent of the tenant had it. between_people: two people
talk, and nothing is said to an agent. open: it is not over. deleted: its people took it back. empty: no messages."""
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
"""too_large: over a cap, before it was parsed. unreadable: the source refuses it. invalid: no transcript.
orphan_metadata: a sidecar that is beside no transcript. failed: an error of this program, such as a harvester's."""


class SourceItem(NamedTuple):
    """One file, object or session, as its source lists it."""

    source: str
    """URI of its source; in a night the one that the settings name."""
    name: str
    """Stable from night to night, and unique in its source."""
    version: str
    """Differs whenever the content does, or its sidecar: ``SIZE@TIME``, and ``+SIZE@TIME`` of a sidecar."""
    revision: int = 0
    """Grows from reading to reading: the length of a log, the time of a file; 0 where the source does not know."""
    modified_seconds: float = 0.0
    """When the transcript or its sidecar was last written, whichever is later."""


class FileStamp(NamedTuple):
    """What a listing says of one file: size in bytes, and when it was last written."""

    size_bytes: int
    modified_ns: int

    def __str__(self) -> str:
        return f"{self.size_bytes}@{self.modified_ns}"


def listed(source: str, name: str, *stamps: FileStamp) -> SourceItem:
    """An item out of what is known of its file, and of its sidecar where it has one.

    >>> listed("in", "a.json", FileStamp(10, 2_000_000_000), FileStamp(5, 3_000_000_000)).version
    '10@2000000000+5@3000000000'
    """
    modified_seconds = max(stamp.modified_ns for stamp in stamps) / 1e9
    return SourceItem(source, name, "+".join(map(str, stamps)), int(modified_seconds * 1e6), modified_seconds)


def is_named_like_transcript(name: str) -> bool:
    """Whether a file of this name is listed.

    >>> [is_named_like_transcript(name) for name in ("a.jsonl", "a.json.gz", "a.json.session.json", "README.md")]
    [True, True, False, False]
    """
    lower = name.lower()
    for suffix in COMPRESSED_SUFFIXES:
        lower = lower.removesuffix(suffix)
    return lower.endswith(TRANSCRIPT_SUFFIXES) and not lower.endswith(SIDECAR_SUFFIX)


def is_named_like_sidecar(name: str) -> bool:
    """Whether a file of this name tells about another one; in whichever case, so that a slip is named."""
    return name.lower().endswith(SIDECAR_SUFFIX)


def sidecar_of(name: str, exists: Callable[[str], bool]) -> str | None:
    """The sidecar that tells about a transcript: named after all of its name, else after its stem.

    A stem that two transcripts share names neither of them.

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
    """The names that a transcript's sidecar may have.

    >>> sidecars_of("a.jsonl")
    ('a.jsonl.session.json', 'a.session.json')
    """
    stem = next((name.removesuffix(suffix) for suffix in TRANSCRIPT_SUFFIXES if name.endswith(suffix)), name)
    return name + SIDECAR_SUFFIX, stem + SIDECAR_SUFFIX


def orphans(names: Collection[str]) -> frozenset[str]:
    """Sidecars among these names of files that tell about none of them."""
    sidecars = frozenset(filter(is_named_like_sidecar, names))
    if not sidecars:
        return sidecars
    return sidecars - {sidecar_of(name, names.__contains__) for name in names if is_named_like_transcript(name)}


def written_seconds(version: str) -> float | None:
    """When a version's item itself was last written, without its sidecar; None where the version does not say.

    >>> written_seconds("10@2000000000+5@3000000000"), written_seconds("12@0.{}")
    (2.0, None)
    """
    written_ns = version.partition("+")[0].partition("@")[2]
    return int(written_ns) / 1e9 if written_ns.isdecimal() else None


def sizes_of(version: str) -> tuple[int, ...]:
    """The sizes in a version: of the item, and of its sidecar where it has one.

    >>> sizes_of("10@2000000000+5@3000000000")
    (10, 5)
    """
    return tuple(int(stamp.partition("@")[0]) for stamp in version.split("+"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedItem:
    """An item that was read."""

    source: str
    """As evidence names it: the item's name, or ``store``."""
    name: str
    data: bytes
    sidecar: bytes | None = None
    sidecar_name: str = ""
    written_seconds: float | None = None
    """When it was last written, where its source knows: the time of messages where the item itself has none."""
    layout: Literal["file", "log"] = "file"
    """file: in a format that a reader knows. log: a session of a store, as `sources.StoreSource.read` writes it."""
    shown: tuple[str, ...] = ()
    """Ids of records that its session was shown, where the source knows without reading on."""
    watched: tuple[WatchedRecord, ...] = ()
    """The records behind these ids, once they were looked up in the ledger (`night.batch_harvest`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedItem:
    """A transcript that is none of the steward's business."""

    source: str
    name: str
    reason: SkipReason
    session: str | None = None
    """None: the whole item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedItem:
    """A transcript that could not be used."""

    source: str
    name: str
    reason: Reason
    detail: str
    """For people: may quote some characters of the transcript, redacted."""
