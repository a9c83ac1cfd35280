"""The governed text of the head, as values: what a profile holds and how long its parts may be.

A profile is four blocks of keyed entries (`persona`, `policies`, `rails`, `surface`) and the active meta
records. One document is one atomic version. Blocks have a fixed order; entries keep the order of their
author. Lengths are in characters. Limits live here only: code that reads a profile file
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
    """What the product does with a block."""

    section: Literal["system", "static"]
    """Where it is shown."""
    has_rules: bool
    """Its entries are rules, locked or not: records and other entries are held to them."""
    stops_when_emptied: bool
    """A version that leaves nothing of it is blocked, not only warned of."""
    may_be_missing: bool = False
    """Versions from before it have none: its absence is no damage, and while it is empty no address covers it."""


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
"""As long as a profile may be: what a head may take is for budgets and the model's window to say."""
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
    """Unix time of an ISO 8601 time; UTC where it names no zone; -inf for none.

    Times are compared by this, never as texts: those of two zones are in another order.

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
"""An ISO 8601 time, as told."""
EntryId = Annotated[StrictStr, Field(pattern=ENTRY_ID)]
EntryText = Annotated[StrictStr, Field(max_length=MAX_ENTRY_CHARS), AfterValidator(_written)]
RecordText = Annotated[StrictStr, Field(min_length=8, max_length=280), AfterValidator(_written), OneLine]
Pointer = Annotated[StrictStr, Field(pattern=_POINTER)]
Number = StrictInt | Annotated[float, Field(strict=True, allow_inf_nan=False)]
Scalar = Number | Annotated[StrictStr, Field(min_length=1, max_length=160), OneLine]


def is_claim_id(id: str) -> bool:
    """Whether a meta record of this id was harvested: people give other names to what they write.

    >>> is_claim_id("0f3c9a7be2114d58"), is_claim_id("opening-hours")
    (True, False)
    """
    return re.fullmatch(rf"[0-9a-f]{{{CLAIM_ID_DIGITS}}}", id) is not None


class ProfileEntry(FrozenModel):
    """One rule, trait or setting; `id` is its key for drift, patches and the changelog."""

    id: EntryId
    text: EntryText
    modality: Modality | None = None
    polarity: Polarity | None = None
    """Whether the text asks for something or against it; None: not stated."""
    value: Scalar | None = None
    """The figure that the rule turns on, in `unit`; a change of it on a locked entry needs a person."""
    unit: Annotated[StrictStr, Field(min_length=1, max_length=40), OneLine] | None = None
    locked: StrictBool = False
    """Only people change a locked entry."""


class MetaRecord(FrozenModel):
    """One insight that was admitted to the head, with pointers to the originals it rests on."""

    id: EntryId
    text: RecordText
    sources: Annotated[tuple[Pointer, ...], Field(min_length=1, max_length=16)]
    """Pointers such as ``s-42§128``: no blanks, commas or brackets."""
    approved: StrictBool = False
    """A person approved it: it renders as the operator's. Else it renders as labelled reference data."""
    ts: Timestamp | None = None
    """ISO 8601 time at which it was admitted, as told; None without a clock."""


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
    """Place in the chain of versions; None: read from a file, not committed."""
    persona: Block = ()
    policies: Block = ()
    rails: Block = ()
    surface: Block = ()
    meta: Annotated[tuple[MetaRecord, ...], AfterValidator(_unique)] = ()
    """The most valuable first: where there is less room than they need, the last ones are left out."""
