"""Two people who talk: who they are, what their words are worth, and what no other format gives them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxsteward.schemas import Wire
from ctxsteward.schemas.message import take_wire
from ctxsteward.steward.ingest import Origin, replay
from ctxsteward.steward.ingest.metadata import SessionMeta
from ctxsteward.steward.ingest.replaying import MAX_PRINCIPAL_CHARS, Said, person
from ctxsteward.steward.replayed import Replayed


def told(*roles: str, format: str, meta: SessionMeta | None = None, **more: object) -> Replayed:
    names = {"user": "Ann", "assistant": "Bob"}
    every: Sequence[Said] = [
        Said(number, message(role, f"{names[role]}: hello there"), speaker=names[role], **more)  # type: ignore[arg-type]
        for number, role in enumerate(roles, 1)
    ]
    origin = Origin(source="talk.json", session="talk-1", format=format, digest="")
    return replay(every, origin, meta or SessionMeta())


def message(role: str, text: str) -> object:
    wire: Wire = {"role": role, "content": text}
    return take_wire(wire)[1]


def test_both_are_principals_of_their_own_conversation() -> None:
    replayed = told("assistant", "user", format="locomo")
    assert [(one.role, one.trust, one.principal) for one in replayed.utterances] == [
        ("assistant", "user", "Bob@talk-1"),
        ("user", "user", "Ann@talk-1"),
    ]
    assert replayed.principal == "Ann@talk-1"


@pytest.mark.parametrize("format", ["openai", "anthropic", "tau-bench", "swe-agent", "store"])
def test_a_name_in_the_text_makes_no_person_of_an_assistant(format: str) -> None:
    replayed = told("user", "assistant", format=format)
    assert [one.trust for one in replayed.utterances] == ["user", "assistant"]
    assert {one.principal for one in replayed.utterances} == {"talk-1"}


def test_metadata_name_the_user_and_nobody_else() -> None:
    replayed = told("user", "assistant", format="locomo", meta=SessionMeta(principal="ada"))
    assert [one.principal for one in replayed.utterances] == ["ada", "Bob@talk-1"]


def test_what_was_injected_is_nobodys_word() -> None:
    replayed = told("user", "assistant", format="locomo", is_injected=True)
    assert {one.trust for one in replayed.utterances} == {"tool_external"}


@given(st.text(min_size=1, max_size=300), st.text(min_size=1, max_size=200))
def test_a_person_is_one_short_line(name: str, session: str) -> None:
    found = person(name, session)
    assert 0 < len(found) <= MAX_PRINCIPAL_CHARS
    assert found.isprintable()
