"""What the steward learns of what people wrote down: two people, one to develop on, one held out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import noted_chats
from benchmarks.noted_chats import (
    JudgedLine,
    NotedRow,
    kappa,
    line_key,
    measure_noted,
    measure_worth,
    noted_cells,
    read_noted,
    worth_cells,
)
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
        ("Ada", 0): 2,
        ("Ada", 1): 0,
        ("Ben", 0): 2,
    }
    at_once, ours, *baselines, every = measure_noted(sessions, "development")
    assert at_once == NotedRow("development", "ours, at once", records=0, noted=0, notes=4, found=0)
    assert ours == NotedRow("development", "ours, with what waits", records=2, noted=2, notes=4, found=2)
    assert every == NotedRow("development", "every sentence", records=5, noted=2, notes=4, found=2)
    assert [row.records for row in baselines] == [2, 2, 2]
    assert noted_cells([ours]) == [
        ["development", "ours, with what waits", "2", "0.50", "50.0", "15 to 85", "100.0", "34 to 100"]
    ]


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


# -- what readers say ----------------------------------------------------------------------------------------

HOME = "I moved to Oslo with my sister Nora in May 2026."
SAID = {"messages": [{"role": "user", "content": HOME}, {"role": "assistant", "content": "Noted."}]}


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps({**SAID, "ctxsteward": {"principal": "ada"}}))
    return path


def judge(monkeypatch: pytest.MonkeyPatch, **lines: JudgedLine) -> None:
    monkeypatch.setattr(noted_chats, "judged_lines", lambda: lines)


def test_a_record_counts_by_what_two_readers_said_of_its_line(talk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge(monkeypatch, **{line_key("fact", HOME): JudgedLine("openai", "development", "record", ("useful", "junk"))})
    ours, blind = measure_worth(talk, "development")
    assert (ours.number, ours.judged, ours.useful, ours.bad, ours.same) == (1, 1, 1, 1, 0)
    assert set(ours.checks.values()) == {0}
    assert (blind.lines, blind.number) == ("any sentence", 0)
    assert worth_cells([ours])[0][:6] == ["openai", "development", "ours", "1", "1", "50.0"]


def test_what_nobody_judged_counts_nowhere(talk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge(monkeypatch)
    ours, _ = measure_worth(talk, "development")
    assert (ours.number, ours.judged, ours.kappa) == (1, 0, None)
    assert worth_cells([ours])[0][5:] == [""] * 8


def test_what_needs_no_reader_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge(monkeypatch)
    path = tmp_path / "talk.json"
    told = {"role": "user", "content": "No, the deposit is 90 EUR, not 30 EUR."}
    answer = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "The deposit is 30 EUR."},
    ]
    path.write_text(json.dumps({"messages": [told, *answer], "ctxsteward": {"principal": "ada"}}))
    ours, _ = measure_worth(path, "development")
    assert ours.number == 1, "a tool from outside denies nothing"


def test_agreement_beyond_chance() -> None:
    def lines(*labels: tuple[Any, Any]) -> list[JudgedLine]:
        return [JudgedLine("t", "h", "record", pair) for pair in labels]

    assert kappa(lines(("useful", "useful"), ("junk", "junk"))) == 1.0
    assert kappa(lines(("useful", "junk"), ("junk", "useful"))) == -1.0
    assert kappa(lines(("useful", "useful"), ("useful", "useful"))) is None
    assert kappa([]) is None


def test_the_labels_that_are_kept_are_labels_and_hold_no_text() -> None:
    found = noted_chats.judged_lines()
    assert len(found) > 400
    assert {label for one in found.values() for label in one.labels} <= {
        "useful",
        "useless",
        "junk",
        "wrong",
        "harmful",
    }
    assert all(len(key) == 16 and int(key, 16) >= 0 for key in found)
    assert {one.taken for one in found.values()} == {"record", "sentence"}
