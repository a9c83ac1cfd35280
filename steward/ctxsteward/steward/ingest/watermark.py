"""How far a source has been read, so that no item is harvested twice and no late item is lost.

A night asks `due` for the items to read (`setup.open_night`), and its link keeps the watermark that `advanced` returns.
A watermark has a time, the *floor*, and marks of the processed items at or above it. Items below the floor count as
processed. The floor trails the newest item by the overlap, so that an item that arrives late (a slow upload, a clock
that runs behind) is still due within the overlap. Due items that were not processed hold the floor down, so they are
due again. A changed item has another version, and so another mark.

A mark is an address of name and version under the tenant's key, because a plain digest of a short text in a stored
watermark could be guessed. The JSON form is ``{"schema_version": 1, "source", "high_seconds", "floor_seconds", "marks":
{mark: modified_seconds}}`` with at most `MAX_MARKS` marks. If more items are inside the overlap, the floor rises; if
unprocessed items hold it down, the newest marks are dropped, and those items are read again.

Times are the source's, in Unix seconds. A time after `now_seconds` comes from a fast clock and does not move the floor.
Everything is pure. Raises `InvalidTranscript` for a malformed watermark, `UnsupportedVersion`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError

from ctxsteward.schemas.errors import InvalidTranscript, UnsupportedVersion
from ctxsteward.store.crypto.keyring import AddressKey, address_of

from .items import SourceItem

VERSION = 1
OVERLAP_SECONDS = 24 * 3600.0
MAX_MARKS = 50_000
MARK_DIGITS = 32

Mark = Callable[[str, str], str]
"""Return the mark of an item's name and version."""


def marker(key: AddressKey, source: str) -> Mark:
    """Return the function that marks items of this source under a tenant's key."""

    def mark(name: str, version: str) -> str:
        data = json.dumps([source, name, version]).encode()
        return address_of(key, "", "ingest", data)[:MARK_DIGITS]

    return mark


Seconds = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class Watermark(BaseModel):
    """How far a source has been read; a new watermark stands for an unread source."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    source: StrictStr
    high_seconds: Seconds | None = None
    """Time of the newest item seen, or None."""
    floor_seconds: Seconds | None = None
    """Items before this time count as processed; None before the first night."""
    marks: Mapping[str, Seconds] = Field(default_factory=dict)
    """Modification times of the processed items at or above the floor, by mark."""

    def to_json(self) -> dict[str, object]:
        """Return the stored form, sorted, so that equal watermarks are equal bytes."""
        return {"schema_version": VERSION, **self.model_dump(), "marks": dict(sorted(self.marks.items()))}

    @classmethod
    def from_json(cls, value: object) -> Watermark:
        if isinstance(value, Mapping) and value.get("schema_version") != VERSION:
            raise UnsupportedVersion("a watermark", value.get("schema_version"), VERSION)
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            found = f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")
            raise InvalidTranscript("watermark", "", found, "run once with --full") from error


def due(
    items: Iterable[SourceItem],
    watermark: Watermark,
    *,
    mark: Mark,
    since_seconds: float | None = None,
    until_seconds: float | None = None,
    full: bool = False,
) -> tuple[SourceItem, ...]:
    """Return the items to read, sorted by name.

    `since_seconds` replaces the floor; `until_seconds` leaves items that changed then or later to a later night; `full`
    takes processed items, too.
    """
    floor_seconds = watermark.floor_seconds if since_seconds is None and not full else since_seconds
    return tuple(
        sorted(
            item
            for item in items
            if (until_seconds is None or item.modified_seconds < until_seconds)
            and (floor_seconds is None or item.modified_seconds >= floor_seconds)
            and (full or mark(item.name, item.version) not in watermark.marks)
        )
    )


def advanced(
    watermark: Watermark,
    items: Iterable[SourceItem],
    tonight: Iterable[SourceItem],
    left: Iterable[SourceItem] = (),
    *,
    mark: Mark,
    now_seconds: float,
    overlap_seconds: float = OVERLAP_SECONDS,
) -> Watermark:
    """Return the watermark after the items due `tonight` were processed, except for those `left`.

    Store it only with the promotion. `items` are all listed items.
    """
    listed = set(items)
    done = set(tonight) - set(left)
    if not listed:
        return watermark
    marks = {**watermark.marks, **{mark(item.name, item.version): item.modified_seconds for item in done}}
    floor_before = -math.inf if watermark.floor_seconds is None else watermark.floor_seconds
    high_seconds = max(min(item.modified_seconds, now_seconds) for item in listed)
    if watermark.high_seconds is not None:
        high_seconds = max(high_seconds, watermark.high_seconds)
    held_seconds = min((item.modified_seconds for item in left), default=math.inf)
    for item in listed - done:
        if floor_before <= item.modified_seconds < held_seconds and mark(item.name, item.version) not in marks:
            held_seconds = item.modified_seconds  # the item was not due tonight, and must become due later
    floor_seconds = min(max(floor_before, high_seconds - overlap_seconds), held_seconds)
    floor_seconds, marks = _bounded(floor_seconds, held_seconds, marks)
    return Watermark(source=watermark.source, high_seconds=high_seconds, floor_seconds=floor_seconds, marks=marks)


def _bounded(floor_seconds: float, held_seconds: float, marks: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """Return the floor, and at most `MAX_MARKS` marks at or above it."""
    newest = sorted(((seconds, mark) for mark, seconds in marks.items() if seconds >= floor_seconds), reverse=True)
    if len(newest) > MAX_MARKS:
        first_dropped_seconds = newest[MAX_MARKS][0]
        floor_seconds = min(max(floor_seconds, math.nextafter(first_dropped_seconds, math.inf)), held_seconds)
        newest = [pair for pair in newest if pair[0] >= floor_seconds][-MAX_MARKS:]
    return floor_seconds, {mark: seconds for seconds, mark in newest}
