"""Names of people: which are refused, which are one person when people are counted, and what forgetting reaches."""

from __future__ import annotations

import json
import random
import unicodedata
from pathlib import Path

import pytest
from confusable_homoglyphs.confusables import confusables_data
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Session, open_store
from ctxsteward.envelope.history.tool_groups import NewMessage, ParsedMessage
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import Erased, InputError
from ctxsteward.schemas.message import take_wire
from ctxsteward.steward.ingest.transcripts import read_metadata
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.names import skeleton, unseen

from ..examples import examples

TOLD = {"who": "dpo", "when": "2026-11-22", "why": "request 7"}
HELLO = {"role": "user", "content": "my dog is called CANARY"}

UNSEEN = [
    pytest.param("eve\x00", "U+0000", id="NUL"),
    pytest.param("\x1b[2Jeve", "U+001B", id="an escape sequence"),
    pytest.param("eve\nada", "U+000A", id="a line break"),
    pytest.param("eve\x85", "U+0085", id="NEL"),
    pytest.param("eve\u2028", "U+2028", id="a line separator"),
    pytest.param("e\u200bve", "U+200B", id="a zero-width space"),
    pytest.param("e\u200dve", "U+200D", id="a joiner"),
    pytest.param("e\u2060ve", "U+2060", id="a word joiner"),
    pytest.param("\ufeffeve", "U+FEFF", id="a byte-order mark"),
    pytest.param("e\u00adve", "U+00AD", id="a soft hyphen"),
    pytest.param("\u202eeve", "U+202E", id="an override of direction"),
    pytest.param("eve\u3164", "U+3164", id="a Hangul filler"),
    pytest.param("eve\ufe0f", "U+FE0F", id="a variation selector"),
    pytest.param("eve\u2800", "U+2800", id="a blank Braille cell"),
    pytest.param("eve\U000e0041", "U+E0041", id="a tag character"),
]
"""Each makes a name that looks like another one."""


@pytest.mark.parametrize(("name", "code"), UNSEEN)
def test_a_name_with_a_character_that_nobody_sees_is_refused_and_the_character_is_named(name: str, code: str) -> None:
    session = memory_store().session("s")
    with pytest.raises(InputError, match=f"`principal` .*U\\+{code[2:]}.*write the name without it") as refused:
        session.append(HELLO, principal=name)
    with pytest.raises(InputError, match=f"U\\+{code[2:]}"):
        session.extend([NewMessage(message=HELLO, principal=name)])
    assert "\n" not in str(refused.value)
    assert len(session) == 0


@pytest.mark.parametrize(("name", "code"), UNSEEN)
def test_a_sidecar_with_such_a_name_is_refused(name: str, code: str) -> None:
    with pytest.raises(InputError, match="principal"):
        read_metadata(json.dumps({"principal": name}).encode(), "chat.jsonl.session.json")


@pytest.mark.parametrize("name", ["   ", "\u00a0", "\u3000"])
def test_a_name_of_blanks_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="`principal`"):
        memory_store().session("s").append(HELLO, principal=name)


@pytest.mark.parametrize("name", ["ann", "Ève", "李雷", "Ann Lee", "user-17@acme.example", "Дарья", "علي", "😀"])
def test_names_that_can_be_read_are_kept_as_they_came(name: str) -> None:
    session = memory_store().session("s")
    assert session.append(HELLO, principal=name).event.principal == name
    assert unseen(name) is None


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("eve", "Eve", "еve", "eve ", "ｅｖｅ", "ℯve", "\u00a0EVE", "e\u200bve"), id="eve"),
        pytest.param(("alice", "аlice", "aIice", "al1ce", "Alice", "𝒂lice"), id="one, l and I"),
        pytest.param(("Leo", "leo", "LEO", "1eo"), id="a capital that looks like itself alone"),
        pytest.param(("Νick", "Nick", "nick"), id="a Greek capital"),
        pytest.param(("ΝΙΝΑ", "NINA", "nina"), id="Greek throughout"),
        pytest.param(("Вася", "вася", "ВАСЯ", "Bася"), id="Cyrillic in both cases"),
        pytest.param(("bob", "b0b", "BОB"), id="nought and O"),
        pytest.param(("modem", "rnodem", "MODEM"), id="r and n"),
        pytest.param(("straße", "STRASSE"), id="a capital of two letters"),
        pytest.param(("Ann Lee", "AnnLee", "Ann\u2009Lee"), id="spaces"),
    ],
)
def test_names_that_look_alike_are_one_voice(names: tuple[str, ...]) -> None:
    assert len({skeleton(name) for name in names}) == 1


def test_names_that_can_be_told_apart_are_several() -> None:
    names = [
        "ada",
        "ben",
        "cleo",
        "ann",
        "any",
        "dan",
        "day",
        "jun",
        "yun",
        "lin",
        "liu",
        "wang",
        "王",
        "玉",
        "nan",
        "van",
        "user-2",
        "user-3",
        "task-12",
        "task-13",
        "Ann@talk-1",
        "Ann@talk-2",
        "é",
        "e",
    ]
    assert len({skeleton(name) for name in names}) == len(names)


def test_no_look_alike_of_a_letter_makes_a_second_voice() -> None:
    draws = random.Random(7)
    alike = {
        letter: [one["c"] for one in confusables_data[letter] if len(one["c"]) == 1 and one["c"].isalpha()]
        for letter in "aceopxyi"
    }
    names = ["eve", "coco", "pia", "alice", "zoe"]
    for name in names:
        for _ in range(100):
            forged = "".join(draws.choice([c, c.upper(), *alike.get(c, ())]) for c in name)
            assert skeleton(forged) == skeleton(name), forged


@settings(max_examples=examples(100))
@given(st.text(max_size=40))
def test_a_skeleton_is_its_own_and_says_the_same_for_either_form(name: str) -> None:
    assert skeleton(name) == skeleton(unicodedata.normalize("NFD", name))
    assert skeleton(f" {name}\u200b") == skeleton(name)


def parsed(session: Session, one: NewMessage) -> ParsedMessage:
    wire, decoded = take_wire(one.message)
    return ParsedMessage(wire, decoded, {session.counter.name: session.counter.message(decoded)}, one)


def test_a_store_that_holds_such_names_opens_and_forgets_exactly_the_one_that_is_named(tmp_path: Path) -> None:
    names = ["eve", "Eve", "еve", "eve ", "e\u200bve", "eve\x00", "\x1beve"]
    with open_store(f"file:{tmp_path / 'store'}") as store:
        session = store.session("s")
        wires = [{"role": "user", "content": f"CANARY-{number}"} for number in range(len(names))]
        old = [NewMessage(message=wire, principal=name) for wire, name in zip(wires, names, strict=True)]
        session._append_batch([parsed(session, one) for one in old])  # as before anybody looked at names
    for number, name in enumerate(names):
        with open_store(f"file:{tmp_path / 'store'}") as store:
            assert forget(store, principal=name, **TOLD).messages == 1
            session = store.session("s")
            with pytest.raises(Erased):
                session.resolve(f"§{number + 1}")
            left = [session.resolve(f"§{at}").text for at in range(number + 2, len(names) + 1)]
            assert left == [f"CANARY-{at}" for at in range(number + 1, len(names))]
