"""What the steward learns of what people wrote down: two people, one to develop on, one held out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.evals.bench.noted_chats import NotedRow, measure_noted, noted_cells, read_noted
from ctxsteward.schemas import ContextError

KEYS = "We keep the spare keys at the Nairobi branch."


def dialogue(*turns: tuple[str, str], notes: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "current_time": "2026-01-05 (Monday)",
        "dialogue_turns": [{"speaker": speaker, "content": text} for speaker, text in turns],
        "extracted_memory": [{"content": note} for note in notes],
    }


TAKEN_UP = dialogue(
    ("User", f"{KEYS} Shall we begin?"),
    ("Assistant", "Your spare keys are at the Nairobi branch; noted where you keep them."),
    notes=("The user keeps spare keys at the Nairobi branch.", "The user owns a red bicycle from Lyon."),
)
IDLE = dialogue(("User", "Hello there."), ("Assistant", "Hello."))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, dialogues in (("Ada", [TAKEN_UP, IDLE]), ("Ben", [TAKEN_UP])):
        (tmp_path / f"{name}.json").write_text(json.dumps({"dialogues": dialogues}))
    return tmp_path


def test_a_note_is_found_where_a_record_of_its_session_says_it(folder: Path) -> None:
    sessions = read_noted(folder, "development")
    assert {place: len(session.notes) for place, session in sessions.items()} == {
        ("Ada", 0): 2, ("Ada", 1): 0, ("Ben", 0): 2,
    }  # fmt: skip
    ours, *baselines, every = measure_noted(sessions, "development")
    assert ours == NotedRow("development", "ours", records=2, noted=2, notes=4, found=2)
    assert every == NotedRow("development", "every sentence", records=5, noted=2, notes=4, found=2)
    assert [row.records for row in baselines] == [2, 2, 2]
    assert noted_cells([ours]) == [["development", "ours", "2", "0.50", "50.0", "15 to 85", "100.0", "34 to 100"]]


def test_the_halves_are_other_people(folder: Path) -> None:
    (folder / "Cem.json").write_text(json.dumps({"dialogues": [IDLE]}))
    people = [{person for person, _ in read_noted(folder, half)} for half in ("development", "held out")]
    assert people == [{"Ada", "Ben"}, {"Cem"}]


@pytest.mark.parametrize(
    ("document", "told"),
    [
        pytest.param("[]", "dialogues is missing; expected a list of dated sessions", id="a list"),
        pytest.param('{"dialogues": 3}', "dialogues is missing", id="no list"),
        pytest.param('{"dialogues": [3]}', "dialogues[0].dialogue_turns is missing", id="no session"),
        pytest.param('{"dialogues": [{"dialogue_turns": [{}]}]}', "dialogue_turns[0] has no `content`", id="no text"),
        pytest.param('{"dialogues": [{"dialogue_turns": []}]}', "extracted_memory is missing", id="no notes"),
        pytest.param("{", "the JSON ends too early", id="cut off"),
    ],
)
def test_what_is_no_such_file_is_told_with_its_place(folder: Path, document: str, told: str) -> None:
    (folder / "Ada.json").write_text(document)
    with pytest.raises(ContextError) as refused:
        read_noted(folder)
    assert "Ada.json" in str(refused.value)
    assert told in str(refused.value).replace(": ", " ")


def test_one_file_makes_no_halves(tmp_path: Path) -> None:
    with pytest.raises(ContextError, match="0 JSON files; two halves take the chats of two people at least"):
        read_noted(tmp_path)
