"""What windows remember of long talks: the figures of a small talk whose answers are known, and of the public one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxsteward.envelope import Counter, load_tokenizer
from ctxsteward.evals.bench.remembered_talks import (
    main,
    measure_remembered,
    measure_way,
    read_talks,
    run,
    ways,
)
from ctxsteward.evals.prompt_cost import Sizer

from ..needs import PUBLIC_DATA

LOCOMO = Path(__file__).parents[2] / "../shared/data/locomo/locomo_dev.json"
PADDING = "We also talked about the weather, the garden and the neighbours for quite a while. " * 3
WAYS = {
    "sliding window", "extractive bullets", "extractive log", "model's log, raw", "model's log, held", "recall",
    "recall, extractive log", "recall, model's log, raw", "recall, model's log, held",
}  # fmt: skip


def a_talk(path: Path, talks: int = 1, turns: int = 60) -> Path:
    """Ann says once, at the beginning, where she keeps her key; a model has noted it in other words."""
    said = [
        {"speaker": "Ann" if n % 2 == 0 else "Ben", "dia_id": f"D1:{n + 1}", "text": f"Number {n}. {PADDING}"}
        for n in range(turns)
    ]
    said[2]["text"] = "I keep the cellar key under the blue flowerpot."
    recorded = [["Ann keeps the cellar key under the blue flowerpot.", "D1:3"], ["Ann owns a zeppelin.", "D1:5"]]
    sample = {
        "sample_id": "talk", "conversation": {
            "speaker_a": "Ann", "speaker_b": "Ben", "session_1_date_time": "1:00 pm on 8 May, 2023", "session_1": said,
        },
        "qa": [{"question": "Where is the key?", "answer": "blue flowerpot", "evidence": ["D1:3"], "category": 4}],
        "observation": {"session_1_observation": {"Ann": recorded}},
    }  # fmt: skip
    path.write_text(json.dumps([sample] * talks), encoding="utf-8")
    return path


def test_a_log_tells_what_a_sliding_window_has_lost_and_recall_shows_it_word_for_word(tmp_path: Path) -> None:
    found = measure_remembered(read_talks(a_talk(tmp_path / "talk.json")), 1_500, 400)
    assert set(found) == WAYS
    assert found["sliding window"][:4] == (0, 0, 0, 0)
    assert found["model's log, raw"][1:4] == (1, 1, 1)
    assert found["recall"][:4] == (1, 1, 1, 1)
    assert found["sliding window"].price > found["extractive bullets"].price
    assert found["recall"].log_tokens == 0 < found["model's log, raw"].log_tokens


def test_raw_takes_what_the_checks_refuse(tmp_path: Path) -> None:
    (talk,) = read_talks(a_talk(tmp_path / "talk.json"))
    sizer = Sizer(Counter(load_tokenizer("o200k_base")))
    logs = {}
    for name in ("model's log, raw", "model's log, held"):
        (row,) = measure_way(talk, ways(talk, 1_500, 700)[name], sizer)
        logs[name] = row
    assert logs["model's log, raw"] != logs["model's log, held"]


def test_without_the_data_the_bench_says_so_and_bad_data_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [row.value for row in run(None)] == [row.value for row in run(tmp_path)] == ["-"]
    assert main([str(a_talk(tmp_path / "two.json", talks=2, turns=4))]) == 2
    assert "2 conversations" in capsys.readouterr().err
    assert main([]) == 2


@pytest.mark.skipif(not LOCOMO.exists(), reason=PUBLIC_DATA)
def test_the_public_talks_are_read_whole() -> None:
    talks = read_talks(LOCOMO)
    assert len(talks) == 5
    assert all(len(talk.recorded) > 50 and len(talk.questions) > 50 for talk in talks)
    assert all(line.turns for talk in talks for line in talk.recorded)
