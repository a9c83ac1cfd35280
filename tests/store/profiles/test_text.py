"""Profiles from YAML and from prose: what is refused, and the bytes of the head."""

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ctxsteward.schemas.errors import InputTooLarge, InvalidProfile
from ctxsteward.schemas.profile import BLOCKS, MetaRecord, ProfileDocument, is_claim_id
from ctxsteward.store.profiles.text import (
    MAX_PROFILE_BYTES,
    Profile,
    TextBlock,
    canonical_json,
    line_writer,
    meta_blocks,
    meta_text,
    records_named,
    references_of,
    static_blocks,
    system_blocks,
)
from ctxsteward.store.profiles.version_codec import lines_of

from ...tables import table

SHOP = Path(__file__).with_name("shop.yaml").read_text(encoding="utf-8")

REORDERED = Path(__file__).with_name("shop_reordered.yaml").read_text(encoding="utf-8")


def test_the_head_reads_as_short_keyed_blocks() -> None:
    profile = Profile.from_yaml(SHOP)
    assert system_blocks(profile) == (
        TextBlock("persona", "persona:\n  voice: calm,   short sentences"),
        TextBlock(
            "policies",
            "policies:\n  refunds: Refund only with an order number. (must, locked)\n"
            "  window: Refund after delivery. (should, 14 days)\n"
            "  emails: No customer emails in tickets.",
        ),
    )
    assert static_blocks(profile) == (
        TextBlock("rails", "rails:\n  secrets: Never print a secret. (must not)"),
        TextBlock("surface", "surface:\n  length: Short answers.\n    Tables for figures."),
    )


def test_only_an_approved_record_renders_as_the_operators_text() -> None:
    assert meta_blocks(Profile.from_yaml(SHOP)) == (
        TextBlock("meta.approved", "recommendations:\n  units: Money is shown in euro and cents. [s-3§8]"),
        TextBlock(
            "meta.reference",
            "learned, for reference, not instructions:\n"
            "  pool: Pool exhaustion precedes 504s at checkout. [s-7§12, s-9§40]",
        ),
    )


def test_key_order_and_quoting_leave_no_trace() -> None:
    one, other = Profile.from_yaml(SHOP), Profile.from_yaml(REORDERED)
    assert one == other
    assert one.digest == other.digest
    assert (system_blocks(one), static_blocks(one)) == (system_blocks(other), static_blocks(other))
    assert meta_text(one) == meta_text(other)


def test_entries_keep_the_order_of_their_author() -> None:
    there, back = Profile.from_yaml("rails: {b: x, a: y}"), Profile.from_yaml("rails: {a: y, b: x}")
    assert static_blocks(there)[0].text == "rails:\n  b: x\n  a: y"
    assert there.digest != back.digest


def test_a_value_that_the_text_states_is_not_repeated() -> None:
    stated = Profile.from_yaml("policies: {w: {text: Refund within 14 days., value: 14, unit: days}}")
    part_of_another = Profile.from_yaml("policies: {w: {text: Refund within 14.5 days., value: 14, unit: days}}")
    assert system_blocks(stated)[0].text == "policies:\n  w: Refund within 14 days."
    assert system_blocks(part_of_another)[0].text == "policies:\n  w: Refund within 14.5 days. (14 days)"


def test_an_empty_block_has_no_heading() -> None:
    profile = Profile.from_yaml("persona: You answer in one sentence.\n")
    assert system_blocks(profile)[0].text == "You answer in one sentence."
    assert (static_blocks(profile), meta_text(profile)) == ((), "")


def test_the_digest_is_over_the_whole_document() -> None:
    profile = Profile.from_text("You are calm.")
    committed = Profile.from_document(ProfileDocument(persona=profile.persona, version=1))
    assert committed.digest != profile.digest
    assert Profile.from_document(ProfileDocument(persona=profile.persona)).digest == profile.digest


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t\r"), min_size=1, max_size=200))
def test_prose_renders_exactly_as_written(text: str) -> None:
    if text.strip():
        profile = Profile.from_text(text)
        assert system_blocks(profile)[0].text == text
        assert profile.persona[0].locked


@pytest.mark.parametrize(
    "text", ["", " \n", "x" * 262_145, "\x00", "\ud800"], ids=["empty", "blank", "long", "NUL", "surrogate"]
)
def test_prose_that_no_entry_could_hold_is_refused(text: str) -> None:
    with pytest.raises(InvalidProfile) as caught:
        Profile.from_text(text)
    assert (caught.value.source, caught.value.where) == ("profile text", "persona")


ids = st.from_regex(r"[a-z][a-z0-9_.-]{0,12}", fullmatch=True)
lines = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=60)
texts = lines.map(str.strip).filter(bool)
entry_fields = st.fixed_dictionaries(
    {"text": texts},
    optional={
        "modality": st.sampled_from(["must", "must_not", "should", "may"]),
        "polarity": st.sampled_from(["positive", "negative"]),
        "value": st.integers(-10_000, 10_000) | st.floats(-1e6, 1e6, allow_nan=False) | texts,
        "locked": st.booleans(),
    },
)
trees = st.fixed_dictionaries(
    {"persona": st.dictionaries(ids, entry_fields, min_size=1, max_size=3)},
    optional={block: st.dictionaries(ids, texts | entry_fields, min_size=1, max_size=4) for block in BLOCKS[1:]},
)


@given(trees)
def test_what_is_written_is_what_is_read(tree: dict[str, object]) -> None:
    profile = Profile.from_yaml(json.dumps(tree, ensure_ascii=False))  # JSON is YAML
    stored = Profile.from_document(ProfileDocument.model_validate_json(canonical_json(profile)))
    assert stored == profile
    assert system_blocks(stored) == system_blocks(profile)
    for block in BLOCKS:
        written = tree.get(block, {})
        assert isinstance(written, dict)
        assert [entry.id for entry in getattr(profile, block)] == list(written)
        for entry, fields in zip(getattr(profile, block), written.values(), strict=True):
            expected = {"text": fields} if isinstance(fields, str) else fields
            assert {name: getattr(entry, name) for name in expected} == expected


@given(st.text(max_size=120))
def test_any_text_is_a_profile_or_a_refusal(text: str) -> None:
    with suppress(InvalidProfile):
        assert Profile.from_yaml(text).model_fields_set


@dataclass(frozen=True)
class Case:
    id: str
    yaml: str
    key: str
    found: str
    hint: str = ""
    where: str = "p.yaml:1"


BAD = [
    *(Case(**row) for row in table(__file__, "refused.yaml")),
    Case("raw surrogate", "persona: \ud800", "", "a lone surrogate", where="p.yaml"),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.id)
def test_a_bad_profile_is_refused_by_place_and_reason(case: Case) -> None:
    with pytest.raises(InvalidProfile) as caught:
        Profile.from_yaml(case.yaml, source="p.yaml")
    error = caught.value
    assert (error.source, error.where) == (case.where, case.key)
    assert error.found.startswith(case.found)
    assert case.hint in error.hint
    assert "\n" not in str(error)


def test_a_file_is_read_with_its_path_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(SHOP, encoding="utf-8")
    assert Profile.load(path) == Profile.from_yaml(SHOP)
    path.write_text("rails:\n  a: 3\n", encoding="utf-8")
    with pytest.raises(InvalidProfile) as caught:
        Profile.load(path)
    assert caught.value.source == f"{path}:2"


def test_a_large_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_bytes(b"\xff" * (MAX_PROFILE_BYTES + 1))  # not even UTF-8: nobody looked inside
    with pytest.raises(InputTooLarge, match="262,145 bytes"):
        Profile.load(path)
    with pytest.raises(InputTooLarge, match="the cap is 262,144"):
        Profile.from_yaml("é" * (MAX_PROFILE_BYTES // 2 + 1))


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [("gone.yaml", None, "no such file"), ("latin.yaml", b"persona: caf\xe9", "byte 12 is not UTF-8")],
)
def test_an_unreadable_file_is_named(tmp_path: Path, name: str, content: bytes | None, found: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidProfile, match=found):
        Profile.load(tmp_path / name)


# -- how a prompt names records ------------------------------------------------------------------------------------

IDS = st.lists(
    st.text("0123456789abcdef", min_size=16, max_size=16)
    | st.sampled_from(
        ["00000000000000a0", "00000000000000a1", "0000000000000000", "0000", "128", "1.2", "cafe", "opening-hours"]
    ),
    unique=True,
    max_size=8,
)


@given(IDS)
def test_a_reference_names_one_record_is_as_short_as_can_be_and_no_number(ids: list[str]) -> None:
    records = [MetaRecord(id=id, text="Eight letters.", sources=("s§1",)) for id in ids]
    references = references_of(ids)
    assert len(set(references.values())) == len(ids)
    for record in records:
        reference = references[record.id]
        assert records_named(records, reference) == (record,)
        assert not re.fullmatch(r"\d+(\.\d+)?", reference), "the number of a message"
        if not is_claim_id(record.id) or reference.endswith(record.id):
            assert reference in (record.id, f"meta:{record.id}")
            continue
        assert (record.id.startswith(reference), len(reference) >= 4, reference.isdecimal()) == (True, True, False)
        shorter = reference[:-1]
        assert len(shorter) < 4 or shorter.isdecimal() or sum(id.startswith(shorter) for id in ids) > 1
    shown = meta_text(Profile(meta=tuple(records)), line_writer(records))
    assert [record for _, record in lines_of(shown, records) if record is not None] == records
