"""A dated Chinese conversation with questions, in LoCoMo's shape; the text stands beside this in `chinese.txt`."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("chinese.txt")


def sample() -> dict[str, Any]:
    """One LoCoMo sample: sessions by day, questions with the ids of the turns that answer them."""
    conversation: dict[str, Any] = {"speaker_a": "林悦", "speaker_b": "陈浩"}
    questions: list[dict[str, Any]] = []
    ids: dict[str, str] = {}
    days = 0
    for line in SOURCE.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("=="):
            days += 1
            day = date.fromisoformat(line.removeprefix("==").strip())
            conversation[f"session_{days}_date_time"] = f"9:00 am on {day.day} {day:%B}, {day.year}"
            conversation[f"session_{days}"] = []
        elif line.startswith("?"):
            category, labels, question = line.removeprefix("?").strip().split("|")
            evidence = [ids[label] for label in labels.split(",")]
            questions.append({"question": question, "category": int(category), "evidence": evidence})
        else:
            speaker, label, text = line.split("|")
            turns = conversation[f"session_{days}"]
            dia_id = f"D{days}:{len(turns) + 1}"
            turns.append({"speaker": speaker, "dia_id": dia_id, "text": text})
            if label:
                ids[label] = dia_id
    return {"sample_id": "chinese", "conversation": conversation, "qa": questions}
