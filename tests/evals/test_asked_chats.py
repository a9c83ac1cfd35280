"""Chats with questions: what is read, what is refused, and that a ranking without knowledge scores little."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope.recall.heuristic import Heuristic
from ctxsteward.evals.asked_chats import answering_passage, is_chat_folder, measure_chats, read_chats
from ctxsteward.evals.rankings import RANKINGS
from ctxsteward.schemas import InputError

from ..needs import PUBLIC_DATA

BEAM = Path(__file__).parents[2] / "../shared/sets/beam"
FACTS = {6: "the spare key hangs in the shed", 14: "my sister lives in Oslo", 22: "we sold the piano in spring"}


def chat(turn_count: int = 30) -> list[dict[str, Any]]:
    """Turns, each with a long reply, and a fact here and there."""
    turns: list[list[dict[str, Any]]] = []
    for n in range(turn_count):
        said = FACTS.get(2 * n, f"What of walk number {n}?")
        reply = "\n\n".join(f"Step {m} of walk {n}: shoes, water, a map and the hill. " * 6 for m in range(6))
        turns.append(
            [
                {"role": "user", "id": 2 * n, "content": f"{said} ->-> 1,{n}"},
                {"role": "assistant", "id": 2 * n + 1, "content": reply},
            ]
        )
    return [{"batch_number": 1, "turns": turns}]


ASKED = {
    "information_extraction": [
        {"question": "Where is the spare key?", "source_chat_ids": [6]},
        {"question": "Where does my sister live?", "source_chat_ids": {"first": [14], "second": ["chat 22"]}},
    ],
    "abstention": [{"question": "What is my shoe size?"}],
}


def folder(tmp_path: Path, **changed: object) -> Path:
    for number in (1, 3):
        names = {"chat": chat(), "probing_questions": ASKED, **changed}
        for name, document in names.items():
            text = document if isinstance(document, str) else json.dumps(document)
            (tmp_path / f"10K-{number}-{name}.json").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_chat_loses_its_generators_mark_and_keeps_what_can_be_answered(tmp_path: Path) -> None:
    assert is_chat_folder(folder(tmp_path))
    (first,), (second,) = read_chats(tmp_path), read_chats(tmp_path, "held-out")
    assert (first.name, second.name) == ("10K-1", "10K-3")
    assert first.messages[6].message == {"role": "user", "content": "the spare key hangs in the shed"}
    assert [question.evidence for question in first.questions] == [("6",), ("14", "22")]


def test_ours_finds_what_a_window_forgot_and_no_ranking_beats_the_oracle(tmp_path: Path) -> None:
    chats = read_chats(folder(tmp_path))
    shown = {
        name: measure_chats(chats, RANKINGS[name], budgets_tokens=(300,))[0].user
        for name in ("heuristic", "recency", "oracle")
    }
    assert shown["recency"] + 50 <= shown["heuristic"] <= shown["oracle"] == 100.0  # a bullet may say it as it was said


def test_the_passage_that_answers_is_the_one_that_says_what_the_answer_says() -> None:
    parts = [f"Part {n}: " + "walk the hill, carry water and a map. " * 11 for n in range(5)]
    parts[3] = "Part 3: the ferry to Tromso leaves at six. " + "carry water and a map. " * 15
    passage = answering_passage("\n\n".join(parts), "At six, by ferry to Tromso")
    assert passage.startswith("Part 3: the ferry")
    assert len(passage) < 600


def test_a_reply_counts_by_passage_where_it_does_not_whole(tmp_path: Path) -> None:
    said = chat()
    reply = said[0]["turns"][12][1]
    reply["content"] += "\n\nThe ferry to Tromso leaves at six from pier nine. " + "Bring a coat and a scarf. " * 12
    asked = {"a": [{"question": "When does the ferry to Tromso leave?", "answer": "at six", "source_chat_ids": [25]}]}
    (row,) = measure_chats(
        read_chats(folder(tmp_path, chat=said, probing_questions=asked)),
        partial(Heuristic, every_turn=True),
        budgets_tokens=(400,),
    )
    assert (row.assistant, row.assistant_passages, row.assistant_questions) == (0.0, 100.0, 1)


REFUSED = [
    pytest.param({"chat": "not json"}, "not JSON", id="no JSON"),
    pytest.param({"chat": {}}, "expected a list of batches", id="an object"),
    pytest.param({"chat": [{"turns": 7}]}, "[0]", id="turns that are a number"),
    pytest.param({"chat": [{"turns": [[{"role": "user"}]]}]}, "[0].turns[0][0]", id="a message without content"),
    pytest.param({"chat": [{"turns": [[{"role": "x", "content": ""}]]}]}, "role", id="another role"),
    pytest.param({"probing_questions": []}, "expected an object of abilities", id="questions in a list"),
    pytest.param({"probing_questions": {"a": 7}}, "a: found the number 7", id="an ability that is a number"),
    pytest.param({"probing_questions": {"a": [{}]}}, "a[0]", id="no question"),
]


@pytest.mark.parametrize(("changed", "names"), REFUSED)
def test_a_file_of_another_shape_is_refused_by_name(tmp_path: Path, changed: dict[str, object], names: str) -> None:
    with pytest.raises(InputError) as refused:
        read_chats(folder(tmp_path, **changed))
    assert str(tmp_path) in str(refused.value)
    assert names in str(refused.value)


def test_a_folder_of_one_chat_has_no_halves_and_missing_questions_are_named(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "10K-1-probing_questions.json").unlink()
    with pytest.raises(InputError, match="is missing"):
        read_chats(tmp_path)
    (tmp_path / "10K-1-chat.json").unlink()
    with pytest.raises(InputError, match="need at least two files"):
        read_chats(tmp_path)


@pytest.mark.skipif(not BEAM.exists(), reason=PUBLIC_DATA)
def test_on_real_chats_of_long_replies_most_of_what_users_said_is_shown() -> None:
    (chat, *_) = read_chats(BEAM)
    at_900, at_4000 = measure_chats([chat], Heuristic, budgets_tokens=(900, 4_000))
    assert at_900.user >= 45
    assert at_4000.user >= 60
