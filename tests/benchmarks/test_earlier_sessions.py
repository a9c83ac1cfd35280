"""The benchmark of earlier sessions reads dated sessions with notes, and compares ways of filling the same room."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.earlier_sessions import ROOM_TOKENS, measure, read_people


def session(number: int, *turns: dict[str, Any]) -> dict[str, Any]:
    return {
        "session_uuid": f"u{number}",
        "current_time": f"2026-01-{number + 1:02} (Monday)",
        "dialogue_turns": list(turns),
        "extracted_memory": [],
    }


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"speaker": "User", "content": text, **more}


def test_a_note_counts_where_a_row_that_fits_says_it(tmp_path: Path) -> None:
    note = {"session_uuid": "u0", "content": "The dog of the person is called Rexolinde and likes cheese."}
    rows = [session(0, said("My dog is called Rexolinde and likes cheese."))]
    rows += [
        session(n, said(f"Day {n} went by with {'much long talk of the garden ' * 4}again.")) for n in range(1, 20)
    ]
    answer = {"speaker": "Assistant", "content": "Rexolinde.", "memory_used": [note]}
    rows.append(session(20, said("What is my dog called, and what does it like?", is_query=True), answer))
    for name in ("ann", "bob"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"dialogues": rows}), encoding="utf-8")

    people = read_people(tmp_path, held_out=False)
    assert [len(person.questions) for person in people] == [1, 1]
    assert read_people(tmp_path, held_out=True) == []
    rows_by_name = {name: row for name, *row in measure(people)}
    assert rows_by_name["ours"][1] == rows_by_name["BM25"][1] == 1.0
    assert all(row[2] <= ROOM_TOKENS for row in rows_by_name.values())
