"""`resolve_reference`: bounded output, every wrong argument answered, nothing of another session."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from ctxsteward.envelope import Session, Store, resolve_reference, resolve_reference_tool
from ctxsteward.envelope.recall.model_tools import DEFAULT_LIMIT_CHARS, MAX_LIMIT_CHARS

from ..messages import CHARS

LONG = "\n".join(f"line {n}: {'ERROR' if n % 100 == 7 else 'fine'}" for n in range(4_000))


def _use(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "look_up", "input": {}}


@pytest.fixture
def session(store: Store) -> Session:
    session = store.session("s", counter=CHARS)
    session.append({"role": "user", "content": LONG})
    session.append({"role": "assistant", "content": [_use("a"), _use("b")]})
    results = [{"type": "tool_result", "tool_use_id": id, "content": f"result {id}"} for id in "ab"]
    session.append({"role": "user", "content": [*results, {"type": "text", "text": "and?"}]})
    return session


def test_the_schema_is_one_and_describes_the_arguments() -> None:
    parameters = resolve_reference_tool()["function"]["parameters"]
    jsonschema.Draft202012Validator.check_schema(parameters)
    assert set(parameters["properties"]) == {"ref", "offset", "limit", "grep"}
    parameters["properties"].clear()
    assert resolve_reference_tool()["function"]["parameters"]["properties"], "what one caller changes is its own"


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        ("§3.1", "result a"),
        ("3.2", "result b"),
        ("tool:2", "result b"),
        (" tool:1 ", "result a"),
        ("§3", "and?\nresult a\nresult b"),
    ],
)
def test_every_spelling_resolves(session: Session, ref: str, text: str) -> None:
    assert resolve_reference(session, ref) == text


@pytest.mark.parametrize("limit", [1, 10, 500, MAX_LIMIT_CHARS, MAX_LIMIT_CHARS * 10, 0, -5])
def test_output_is_bounded(session: Session, limit: int) -> None:
    shown, _, left = resolve_reference(session, "§1", limit=limit).rpartition("\n")
    assert len(shown) == max(1, min(limit, MAX_LIMIT_CHARS))
    assert left.startswith("[")
    assert f"offset={len(shown)}]" in left


def test_offsets_walk_through_the_whole_text(session: Session) -> None:
    pieces, offset = [], 0
    while True:
        answer = resolve_reference(session, "§1", offset=offset)
        shown = answer[:DEFAULT_LIMIT_CHARS]
        pieces.append(shown)
        offset += len(shown)
        if offset >= len(LONG):
            break
        assert answer[len(shown) :] == f"\n[{len(LONG) - offset} more characters; offset={offset}]"
    assert "".join(pieces) == LONG


def test_grep_filters_lines_by_literal_text(session: Session) -> None:
    assert resolve_reference(session, "§1", grep="error").count("\n") == 39
    assert resolve_reference(session, "§1", grep=".*(") == ""
    assert resolve_reference(session, "§1", offset=10**9) == ""


BAD_REFS = (
    "",
    "§",
    "§0",
    "§99",
    "§3.9",
    "§3.0",
    "-1",
    "§1.2.3",
    "tool:",
    "tool:0",
    "tool:9",
    "tool:x",
    "tool:-1",
    "tool:²",
    "tool:99999999999999999999999",
    "tool:" + "9" * 5_000,
    "§" + "9" * 12,
    "٣",
    "../../etc",
    "x" * 10_000,
    "§1\x00",
)


def test_a_bad_reference_is_answered(session: Session) -> None:
    for ref in BAD_REFS:
        answer = resolve_reference(session, ref)
        assert answer.startswith("error: "), ref
        assert len(answer) < 400, ref


BAD_ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"ref": None},
    {"ref": 7.5},
    {"ref": ["§1"]},
    {"ref": "§1", "limit": "ten"},
    {"ref": "§1", "limit": None},
    {"ref": "§1", "offset": "x"},
    {"ref": "§1", "offset": None},
    {"ref": "§1", "grep": 7},
    {"ref": "§1", "offset": float("nan")},
    {"ref": "§1", "limit": float("inf")},
)


@pytest.mark.parametrize("arguments", BAD_ARGUMENTS, ids=repr)
def test_arguments_a_model_made_up_are_answered(session: Session, arguments: dict[str, Any]) -> None:
    """They come from a model's JSON, not from typed code: nothing raises, and output stays bounded."""
    assert len(resolve_reference(session, **arguments)) <= DEFAULT_LIMIT_CHARS + 100


def test_another_sessions_reference_is_not_found(store: Store, session: Session) -> None:
    other = store.session("other", counter=CHARS)
    elsewhere = store.session("s", tenant="acme", counter=CHARS)
    other.append({"role": "user", "content": "mine"})
    assert resolve_reference(other, "§1") == "mine"
    for reader, ref in ((other, "§2"), (other, "§3.1"), (other, "tool:1"), (elsewhere, "§1"), (elsewhere, "tool:1")):
        answer = resolve_reference(reader, ref)
        assert answer.startswith("error: ")
        assert "names nothing" in answer
