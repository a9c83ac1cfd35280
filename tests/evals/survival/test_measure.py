"""The survival eval as a whole: what counts as shown, bars that hold today, and folders that are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.evals.survival.measure import measure
from ctxsteward.evals.survival.play import OURS, SurvivalRow, play
from ctxsteward.evals.survival.talk_generators import GeneratedKind, generated_talk, talk_texts
from ctxsteward.evals.survival.talks import Talk, UserStatement, line_shows, window_lines
from ctxsteward.schemas import ContextError

BEAM = Path(__file__).parents[3] / "../shared/sets/beam"
NEWER = UserStatement(text="Oslo moved to week 9", words=("Oslo", "week 9"), stale=("Oslo", "week 7"))


@pytest.mark.parametrize(
    ("said", "counts"),
    [
        pytest.param(["Oslo is in week 9"], (1, 0, 1), id="newest"),
        pytest.param(["Oslo is in week 7"], (0, 1, 0), id="stale alone"),
        pytest.param(["Oslo, week 7", "Oslo, week 9"], (1, 0, 0), id="both: shown and not resolved"),
        pytest.param(["Oslo moves from week 7 to week 9"], (1, 0, 1), id="a line with both is not stale"),
        pytest.param(["Oslo is near", "week 9"], (0, 0, 0), id="value and name apart say nothing"),
        pytest.param(["Oslo is in week 95"], (0, 0, 0), id="inside a longer number"),
    ],
)
def test_a_line_shows_a_statement_by_all_its_words(said: list[str], counts: tuple[int, int, int]) -> None:
    talk = Talk(name="t", messages=tuple({"role": "user", "content": text} for text in said), statements=(NEWER,))
    ours = next(play(talk, "t", 500))
    assert (ours.shown, ours.stale_alone, ours.resolved) == counts


@pytest.mark.parametrize(
    ("kind", "statements", "updates"),
    [pytest.param("dense", 24, 6, id="dense"), pytest.param("updates", 12, 8, id="updates")],
)
@pytest.mark.parametrize("half", ["dev", "held_out"])
def test_generated_talks_say_each_statement_once_and_are_the_same_for_a_seed(
    kind: GeneratedKind, statements: int, updates: int, half: Any
) -> None:
    for way in talk_texts(kind, half):
        first, again, other = (generated_talk(kind, way, seed, half) for seed in (0, 0, 1))
        assert first.messages == again.messages
        assert first.statements != other.statements
        assert (len(first.statements), sum(bool(s.stale) for s in first.statements)) == (statements, updates)
        lines = {text: window_lines(text) for text in (str(wire["content"]) for wire in first.messages)}
        for statement in first.statements:
            assert [text for text in lines if line_shows(lines[text], statement.words)] == [statement.text]


def test_facts_with_new_values_are_64_in_sessions_of_80_to_150_messages() -> None:
    talks = [generated_talk("updates", way, seed, "dev") for way in talk_texts("updates", "dev") for seed in (0, 1)]
    assert sum(bool(s.stale) for talk in talks for s in talk.statements) == 64
    assert all(80 <= len(talk.messages) <= 150 for talk in talks)


def test_our_window_holds_its_bars_on_dense_talk_of_the_development_half() -> None:
    sums: dict[str, SurvivalRow] = {}
    for way in talk_texts("dense", "dev"):
        for budget in (1_000, 2_000):
            for row in play(generated_talk("dense", way, 0, "dev"), "dense", budget):
                row = row._replace(budget=0)
                sums[row.strategy] = sums[row.strategy].plus(row) if row.strategy in sums else row
    ours = sums[OURS]
    assert ours.shown >= 0.8 * sums["oracle"].shown
    assert ours.shown > 3 * sums["random, anyone"].shown
    assert ours.stale_alone == 0
    assert ours.resolved >= 0.6 * ours.updates


CHAT = [
    {
        "turns": [
            [
                {"role": "user", "id": 0, "content": "The spare key hangs in the shed. ->-> 1,1"},
                {"role": "assistant", "id": 1, "content": "Good to know."},
            ]
        ]
    }
]
ASKED = {"recall": [{"question": "Where is the spare key?", "answer": "In the shed", "source_chat_ids": [0]}]}


def chats(folder: Path, chat: object = CHAT, asked: object = ASKED) -> Path:
    for number in (1, 3):
        for name, document in (("chat", chat), ("probing_questions", asked)):
            text = document if isinstance(document, str) else json.dumps(document)
            (folder / f"10K-{number}-{name}.json").write_text(text, encoding="utf-8")
    return folder


def test_what_a_question_needs_of_a_chat_is_shown_at_every_budget_that_holds_the_chat(tmp_path: Path) -> None:
    rows = [row for row in measure(["chats"], data=chats(tmp_path)) if row.strategy == OURS]
    assert [(row.budget, row.statements, row.shown, row.user_turns) for row in rows] == [
        (2_000, 1, 1, 1),
        (4_000, 1, 1, 1),
        (8_000, 1, 1, 1),
    ]


def without_questions(folder: Path) -> None:
    next(chats(folder).glob("*questions.json")).unlink()
    next(folder.glob("*questions.json")).unlink()


@pytest.mark.parametrize(
    ("make", "error"),
    [
        pytest.param(lambda folder: None, "need at least two files named", id="empty"),
        pytest.param(lambda folder: (folder / "x-1-chat.json").touch(), "found 1", id="one chat is no two halves"),
        pytest.param(lambda folder: chats(folder, chat="{"), "the JSON ends too early", id="no JSON"),
        pytest.param(lambda folder: chats(folder, chat={}), "expected a list of batches", id="no batches"),
        pytest.param(lambda folder: chats(folder, chat=[{}]), "expected a list `turns`", id="a batch without turns"),
        pytest.param(without_questions, "expected the questions of", id="no questions"),
        pytest.param(
            lambda folder: chats(folder, asked=[]), "expected an object of abilities", id="a list of questions"
        ),
        pytest.param(lambda folder: chats(folder, asked={}), "chats: nothing to look at; 1 chats", id="nobody asks"),
        pytest.param(
            lambda folder: chats(folder, asked={"a": [{"question": "Who?", "source_chat_ids": [1]}]}),
            "none has a user message that a question needs",
            id="only the assistant answers",
        ),
    ],
)
def test_a_folder_without_something_to_look_at_is_refused(
    make: Callable[[Path], object], error: str, tmp_path: Path
) -> None:
    make(tmp_path)
    with pytest.raises(ContextError, match=error):
        measure(["chats"], data=tmp_path)
