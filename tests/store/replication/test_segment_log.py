"""Bodies of a session's links: they come back whole, name nobody, open in their place alone, end with their keys."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.schemas import Erased
from ctxsteward.schemas.errors import Damaged
from ctxsteward.store.crypto.keyring import MasterKeys, subject_of
from ctxsteward.store.crypto.vault import Vault, derived_subject
from ctxsteward.store.journal.port import JournalRecord, Manifest
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.replication.segment_log import (
    SEGMENT_BYTES,
    SEGMENT_RECORDS,
    Rewrite,
    Segment,
    SegmentPart,
    Takeover,
    decode,
    encode,
    session_id,
    span_of,
)

from ...examples import examples

FOLDER = "sessions/acme/00ab/log"
SESSION = "s-42 of Ann"


def vault() -> Vault:
    return Vault(MemoryObjects(), MasterKeys(b"m" * 32), "acme")


def message(text: str, principal: str | None = None, *, erased: bool = False) -> JournalRecord:
    body = {"address": "ab", "tokens": {}} | ({"principal": principal} if principal else {})
    return JournalRecord(
        "message", json.dumps(body | ({"erased": True} if erased else {})), ordinal=1, wire=text, mac="00"
    )


NOTE = JournalRecord("note", '{"name":"plan","text":"secret plan"}', mac="11")
PARTS: list[SegmentPart] = [
    Segment(owner="a", start=0, records=(NOTE, message("hello"), message("hi", "ann")), session=SESSION),
    Segment(owner="a", start=7, records=(message("x"),), manifests=(Manifest("ff", '{"position":1}'),)),
    Takeover(owner="b", length=8),
    Rewrite(
        owner="b", records={2: message("[erased]", "ann", erased=True), 5: NOTE}, manifests=(Manifest("ee", "{}"),)
    ),
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_a_part_comes_back_whole_through_json(part: SegmentPart) -> None:
    held = vault()
    body = json.loads(json.dumps(encode(part, held, FOLDER, SESSION)))
    assert decode(body, held, FOLDER) == part


@settings(max_examples=examples(100))
@given(st.lists(st.tuples(st.text(max_size=40), st.sampled_from([None, "ann", "bob\x00"])), max_size=6))
def test_any_text_comes_back(texts: list[tuple[str, str | None]]) -> None:
    held = vault()
    part = Segment(owner="a", start=3, records=tuple(message(text, who) for text, who in texts))
    assert decode(encode(part, held, FOLDER, SESSION), held, FOLDER) == part


def test_a_body_holds_no_word_of_anybody_and_no_name_of_the_session() -> None:
    body = json.dumps(encode(PARTS[0], vault(), FOLDER, SESSION))
    assert not [word for word in ("hello", "secret", "ann", "Ann", "s-42", "plan") if word in body]


def test_the_first_link_names_its_session_to_who_has_the_keys() -> None:
    held = vault()
    body = encode(PARTS[0], held, FOLDER, SESSION)
    assert session_id(body, held, FOLDER) == SESSION
    held.destroy_key(subject_of(SESSION, None), who="w", when="n", why="y")
    assert session_id(body, held, FOLDER) is None


@pytest.mark.parametrize("move", ["other position", "other folder", "swapped", "other start", "manifest elsewhere"])
def test_a_record_opens_at_its_own_place_alone(move: str) -> None:
    held = vault()
    part = Segment(owner="a", start=4, records=(NOTE, NOTE), manifests=(Manifest("ff", "{}"), Manifest("ee", "{}")))
    body, folder = encode(part, held, FOLDER, SESSION), FOLDER
    match move:
        case "other position":
            body["records"] = [body["records"][1], body["records"][1]]
        case "other folder":
            folder = "sessions/acme/00ac/log"
        case "swapped":
            body["records"].reverse()
        case "other start":
            body["start"] = 5
        case "manifest elsewhere":
            body["manifests"][0][0] = "ee"
    with pytest.raises(Damaged):
        decode(body, held, folder)


def test_each_principal_has_a_key_and_the_rest_the_derived_one() -> None:
    held = vault()
    records = (message("a", "ann"), message("b", "bob"), message("c"), NOTE, message("[erased]", "ann", erased=True))
    body = encode(Segment(owner="a", start=0, records=records), held, FOLDER, SESSION)
    subjects = [subject_of(SESSION, "ann"), subject_of(SESSION, "bob"), SESSION, derived_subject(SESSION)]
    assert body["keys"] == [held.subject_address(subject) for subject in subjects]
    assert [index for index, _ in body["records"]] == [0, 1, 2, 3, 3]


def test_what_was_forgotten_reads_as_none_and_the_rest_stays() -> None:
    held = vault()
    body = encode(Segment(owner="a", start=0, records=(message("a", "ann"), message("c"))), held, FOLDER, SESSION)
    held.destroy_key(subject_of(SESSION, "ann"), who="w", when="n", why="y")
    part = decode(body, held, FOLDER)
    assert isinstance(part, Segment)
    assert part.records == (None, message("c"))


def test_a_forgotten_principal_is_not_drained_and_derived_records_take_the_next_key() -> None:
    held = vault()
    held.destroy_key(subject_of(SESSION, "ann"), who="w", when="n", why="y")
    held.destroy_key(derived_subject(SESSION, 0), who="w", when="n", why="y")
    with pytest.raises(Erased):
        encode(Segment(owner="a", start=0, records=(message("a", "ann"),)), held, FOLDER, SESSION)
    body = encode(Segment(owner="a", start=0, records=(NOTE,)), held, FOLDER, SESSION)
    assert body["keys"] == [held.subject_address(derived_subject(SESSION, 1))]
    held.destroy_key(SESSION, who="w", when="n", why="y")
    with pytest.raises(Erased):
        encode(Segment(owner="a", start=0, records=(NOTE,)), held, FOLDER, SESSION)


BROKEN = {
    "no kind": lambda body: body | {"kind": "gift"},
    "no owner": lambda body: {name: value for name, value in body.items() if name != "owner"},
    "a key that is not there": lambda body: body | {"keys": []},
    "no base64": lambda body: body | {"records": [[0, "§§"]]},
    "cut": lambda body: body | {"records": [[0]]},
    "no list": lambda body: body | {"records": 7},
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_body_that_is_none_is_damaged(broken: str) -> None:
    held = vault()
    body = encode(replace(PARTS[1], records=(NOTE,)), held, FOLDER, SESSION)  # type: ignore[type-var]
    with pytest.raises(Damaged):
        decode(BROKEN[broken](body), held, FOLDER)


def test_segments_are_bounded() -> None:
    small, large = message("x"), message("x" * (SEGMENT_BYTES // 2))
    assert span_of([small] * 5000, []) == (SEGMENT_RECORDS, 0)
    assert span_of([large] * 9, [Manifest("a", "{}")]) == (2, 0)
    assert span_of([message("x" * 3 * SEGMENT_BYTES)] * 2, []) == (1, 0)
    assert span_of([], [Manifest("a", "{}")] * 3) == (0, 3)
