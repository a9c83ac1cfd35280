"""What a profile document may hold."""

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from ctxsteward.schemas.profile import BLOCKS, MAX_ENTRY_CHARS, MetaRecord, ProfileDocument, ProfileEntry

RECORD = {"id": "r", "text": "Pool exhaustion precedes 504s.", "sources": ("s-1§4",)}


@dataclass(frozen=True)
class Case:
    id: str
    model: type[ProfileEntry] | type[MetaRecord] | type[ProfileDocument]
    fields: dict[str, Any]


REFUSED = [
    Case("unknown field", ProfileEntry, {"id": "a", "text": "x", "colour": "red"}),
    Case("capital in an id", ProfileEntry, {"id": "Refunds", "text": "x"}),
    Case("id with a slash would be a path", ProfileEntry, {"id": "../a", "text": "x"}),
    Case("id ending in a newline", ProfileEntry, {"id": "a\n", "text": "x"}),
    Case("id of 65 characters", ProfileEntry, {"id": "a" * 65, "text": "x"}),
    Case("blank text", ProfileEntry, {"id": "a", "text": " \n"}),
    Case("one character too long", ProfileEntry, {"id": "a", "text": "x" * (MAX_ENTRY_CHARS + 1)}),
    Case("NUL in a text", ProfileEntry, {"id": "a", "text": "x\x00"}),
    Case("escape sequence in a text", ProfileEntry, {"id": "a", "text": "\x1b[2J"}),
    Case("lone surrogate", ProfileEntry, {"id": "a", "text": "\ud800"}),
    Case("modality outside the enum", ProfileEntry, {"id": "a", "text": "x", "modality": "shall"}),
    Case("truth value as a value", ProfileEntry, {"id": "a", "text": "x", "value": True}),
    Case("infinity as a value", ProfileEntry, {"id": "a", "text": "x", "value": math.inf}),
    Case("NaN as a value", ProfileEntry, {"id": "a", "text": "x", "value": math.nan}),
    Case("unit of two lines", ProfileEntry, {"id": "a", "text": "x", "unit": "days\n"}),
    Case("locked by a word", ProfileEntry, {"id": "a", "text": "x", "locked": "yes"}),
    Case("record under 8 characters", MetaRecord, {**RECORD, "text": "too few"}),
    Case("record over 280 characters", MetaRecord, {**RECORD, "text": "x" * 281}),
    Case("record of two lines", MetaRecord, {**RECORD, "text": "first line\nsecond line"}),
    Case("record with a line separator", MetaRecord, {**RECORD, "text": "first line\u2028second line"}),
    Case("record without a source", MetaRecord, {**RECORD, "sources": ()}),
    Case("pointer that closes its bracket", MetaRecord, {**RECORD, "sources": ("s-1§4]",)}),
    Case("pointer with a blank", MetaRecord, {**RECORD, "sources": ("s-1 §4",)}),
    Case("month 13", MetaRecord, {**RECORD, "ts": "2026-13-01"}),
    Case("version 0", ProfileDocument, {"version": 0}),
    Case("another schema version", ProfileDocument, {"schema_version": 2}),
    Case("same id twice in a block", ProfileDocument, {"rails": [{"id": "a", "text": "x"}] * 2}),
    Case("same record id twice", ProfileDocument, {"meta": [RECORD, RECORD]}),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_is_no_profile_is_refused(case: Case) -> None:
    with pytest.raises(ValidationError):
        case.model.model_validate(case.fields)


def test_an_entry_at_the_limit_is_taken() -> None:
    assert len(ProfileEntry(id="a", text="x" * MAX_ENTRY_CHARS).text) == MAX_ENTRY_CHARS


def test_the_same_id_may_stand_in_two_blocks() -> None:
    entry = ProfileEntry(id="tone", text="calm")
    document = ProfileDocument(persona=(entry,), surface=(entry,))
    assert document.persona == document.surface


def test_blocks_are_the_fields_that_hold_entries() -> None:
    fields = [
        name for name in ProfileDocument.model_fields if name not in {"schema_version", "name", "version", "meta"}
    ]
    assert tuple(fields) == BLOCKS


def test_a_document_cannot_be_changed() -> None:
    document = ProfileDocument()
    with pytest.raises(ValidationError, match="frozen"):
        document.name = "other"


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60).filter(str.strip)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
entries = st.builds(
    ProfileEntry,
    id=st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,20}", fullmatch=True),
    text=texts,
    modality=st.sampled_from(["must", "must_not", "should", "may", None]),
    value=st.none() | numbers,
    locked=st.booleans(),
)
blocks = st.lists(entries, max_size=4, unique_by=lambda entry: entry.id).map(tuple)


@given(st.builds(ProfileDocument, persona=blocks, policies=blocks, rails=blocks, surface=blocks))
def test_json_gives_the_same_document_back(document: ProfileDocument) -> None:
    assert ProfileDocument.model_validate_json(document.model_dump_json()) == document
