"""The governed text of the head as values: the parts of a profile and their greatest lengths.

A profile has four blocks of keyed entries (`persona`, `policies`, `rails`, `surface`) and the active meta
records. A document is an atomic version. Blocks have a fixed order; entries keep the order of their
author. Lengths are in characters. All limits are here: code that reads a profile file
maps pydantic's `ValidationError` to the place in it.

Source: the layered-envelope design (governed slices); meta records of 8-280 characters with citations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple, TypeVar, get_args

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr

from .frozen import FrozenModel

BlockName = Literal["persona", "policies", "rails", "surface"]
Modality = Literal["must", "must_not", "should", "may"]
Polarity = Literal["positive", "negative"]

BLOCKS: tuple[BlockName, ...] = get_args(BlockName)
"""Blocks of entries, in the order in which they render."""


class BlockSpec(NamedTuple):
    """The properties of a block."""

    section: Literal["system", "static"]
    """Section of the envelope that shows the block."""
    has_rules: bool
    """Whether its entries, locked or not, are rules that records and other entries must not contradict."""
    stops_when_emptied: bool
    """Whether the drift check blocks a version that empties the block, instead of only warning."""
    may_be_missing: bool = False
    """Whether earlier versions lack the block: then its absence is no damage, and no address covers it while empty."""


BLOCK_SPECS: Mapping[BlockName, BlockSpec] = MappingProxyType(
    {
        "persona": BlockSpec("system", has_rules=False, stops_when_emptied=True),
        "policies": BlockSpec("system", has_rules=True, stops_when_emptied=True),
        "rails": BlockSpec("static", has_rules=True, stops_when_emptied=False),
        "surface": BlockSpec("static", has_rules=False, stops_when_emptied=False),
    }
)

ENTRY_ID = r"^[a-z0-9][a-z0-9_.-]{0,63}$"
MAX_ENTRY_CHARS = 256 * 1024
"""The limit of a whole profile; budgets and the model's window limit the head."""
CLAIM_ID_DIGITS = 16
"""Hex digits of the id of a harvested record."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_POINTER = r"^[^\s,\[\]]{1,160}$"


def _written(text: str) -> str:
    if not text.strip():
        raise ValueError("empty text")
    if control := _CONTROL.search(text):
        raise ValueError(f"the control character U+{ord(control[0]):04X}")
    return text


def _one_line(text: str) -> str:
    if text.splitlines() != [text]:
        raise ValueError("a line break in a record of one line")
    return text


def _timestamp(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r}, which is not an ISO 8601 time") from None
    return text


@lru_cache(maxsize=4096)
def instant(ts: str | None) -> float:
    """Return the Unix time of an ISO 8601 time, in UTC if it has no zone; -inf for None or an invalid time.

    Compare times by this and never as texts, whose order differs between zones.

    >>> instant("1970-01-02T00:00:00+01:00"), instant(None)
    (82800.0, -inf)
    """
    if ts is None:
        return float("-inf")
    try:
        parsed = datetime.fromisoformat(ts)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return float("-inf")


OneLine = AfterValidator(_one_line)
ADDRESS_PATTERN = r"^[0-9a-f]{64}$"
Hex = Annotated[str, Field(pattern=ADDRESS_PATTERN)]
"""64 lower-case hex digits."""
Timestamp = Annotated[StrictStr, AfterValidator(_timestamp)]
"""An ISO 8601 time as text, as it was given."""
EntryId = Annotated[StrictStr, Field(pattern=ENTRY_ID)]
EntryText = Annotated[StrictStr, Field(max_length=MAX_ENTRY_CHARS), AfterValidator(_written)]
RecordText = Annotated[StrictStr, Field(min_length=8, max_length=280), AfterValidator(_written), OneLine]
Pointer = Annotated[StrictStr, Field(pattern=_POINTER)]
Number = StrictInt | Annotated[float, Field(strict=True, allow_inf_nan=False)]
Scalar = Number | Annotated[StrictStr, Field(min_length=1, max_length=160), OneLine]


def is_claim_id(id: str) -> bool:
    """Return whether this is the id of a harvested meta record; people give their records other ids.

    >>> is_claim_id("0f3c9a7be2114d58"), is_claim_id("opening-hours")
    (True, False)
    """
    return re.fullmatch(rf"[0-9a-f]{{{CLAIM_ID_DIGITS}}}", id) is not None


class ProfileEntry(FrozenModel):
    """One rule, trait or setting; drift reports, patches and the changelog name it by `id`."""

    id: EntryId
    text: EntryText
    modality: Modality | None = None
    polarity: Polarity | None = None
    """Whether the text asks for something or forbids it; None if not stated."""
    value: Scalar | None = None
    """The decisive figure of the rule, in `unit`; only a person can change it in a locked entry."""
    unit: Annotated[StrictStr, Field(min_length=1, max_length=40), OneLine] | None = None
    locked: StrictBool = False
    """Whether only people can change the entry."""


class MetaRecord(FrozenModel):
    """One insight that was admitted to the head, with pointers to the originals that it cites."""

    id: EntryId
    text: RecordText
    sources: Annotated[tuple[Pointer, ...], Field(min_length=1, max_length=16)]
    """Pointers such as ``s-42§128``, without blanks, commas or brackets."""
    approved: StrictBool = False
    """Whether a person approved it, so that it renders as text of the operator and not as labelled reference data."""
    ts: Timestamp | None = None
    """ISO 8601 time of its admission; None without a clock."""


_Keyed = TypeVar("_Keyed", ProfileEntry, MetaRecord)


def _unique(keyed: tuple[_Keyed, ...]) -> tuple[_Keyed, ...]:
    seen: set[str] = set()
    for one in keyed:
        if one.id in seen:
            raise ValueError(f"the id {one.id!r} twice")
        seen.add(one.id)
    return keyed


Block = Annotated[tuple[ProfileEntry, ...], AfterValidator(_unique)]


class ProfileDocument(FrozenModel):
    """One version of the governed text; ids are unique within a block.

    >>> ProfileDocument(persona=(ProfileEntry(id="voice", text="calm"),)).persona[0].text
    'calm'
    """

    schema_version: Literal[1] = 1
    name: EntryId = "default"
    version: Annotated[StrictInt, Field(ge=1)] | None = None
    """Number in the chain of versions; None for a profile that was read from a file and not committed."""
    persona: Block = ()
    policies: Block = ()
    rails: Block = ()
    surface: Block = ()
    meta: Annotated[tuple[MetaRecord, ...], AfterValidator(_unique)] = ()
    """Records, the most valuable first; if they do not fit, the last ones are left out."""
