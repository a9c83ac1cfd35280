"""Talks of the survival eval: what they state, and that nothing shows a statement by chance."""

from __future__ import annotations

from itertools import permutations

import pytest

from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.evals.asked_chats import AskedChat, ChatQuestion
from ctxsteward.evals.canaries import Half
from ctxsteward.evals.survival.chats import chat_talk
from ctxsteward.evals.survival.play import OURS, play
from ctxsteward.evals.survival.rules import FURTHER_MESSAGES, rule_talks
from ctxsteward.evals.survival.talks import Talk, UserStatement, line_shows, window_lines


def chat(*said: str, questions: tuple[ChatQuestion, ...] = ()) -> AskedChat:
    roles = ("user", "assistant")
    messages = tuple(
        NewMessage(message={"role": roles[at % 2], "content": text}, id=str(at)) for at, text in enumerate(said)
    )
    return AskedChat("small", messages, questions)


def test_a_question_needs_the_sentence_that_shares_rare_words_with_its_answer() -> None:
    asked = ChatQuestion("When does the sprint end?", ("0",), "The first sprint ends on March 29.")
    talk = chat_talk(chat("Hello there, friend. Our sprint ends on March 29. Thanks.", "Noted.", questions=(asked,)))
    assert [statement.text for statement in talk.statements] == ["Our sprint ends on March 29."]
    assert set(talk.statements[0].words) == {"sprint", "ends", "march", "29"}


def test_an_answer_of_the_assistant_is_no_statement() -> None:
    asked = ChatQuestion("Which port?", ("1",), "Port 5432.")
    assert chat_talk(chat("Which port is it?", "It is port 5432.", questions=(asked,))).statements == ()


@pytest.mark.parametrize("half", ["dev", "held_out"])
def test_each_rule_is_said_once_and_long_before_the_end(half: Half) -> None:
    talks = list(rule_talks(half))
    assert sum(len(talk.statements) for talk in talks) == 20
    for talk in talks:
        texts = [str(wire["content"]) for wire in talk.messages]
        lines = [window_lines(text) for text in texts]
        for statement in talk.statements:
            shown = [at for at, text in enumerate(lines) if line_shows(text, statement.words)]
            assert len(shown) == 1
            assert texts[shown[0]] == statement.text
            assert len(texts) - shown[0] > FURTHER_MESSAGES


def test_rules_stand_in_the_talk_of_chats_where_chats_are_given() -> None:
    said = [f"{'Question' if at % 2 == 0 else 'Reply'} number {at}" for at in range(40)]
    english = next(rule_talks("dev", [chat(*said)]))
    plain = {str(wire["content"]) for wire in english.messages} - {s.text for s in english.statements}
    assert plain == {*said, "Noted."}


NEWER = UserStatement(text="Oslo moved to week 9", words=("Oslo", "week 9"), stale=("Oslo", "week 7"))


@pytest.mark.parametrize("budget", [300, 0.3])
def test_strategies_that_trivially_find_a_statement_show_it_and_others_do_not(budget: float) -> None:
    words = ("garden", "kitchen", "window", "river", "street", "summer", "winter")
    idle = [
        {"role": role, "content": f"we talk a little about the {word} and about the {other}"}
        for word, other in permutations(words, 2)
        for role in ("user", "assistant")
    ]
    first = {"role": "user", "content": "Oslo is set for week 7"}
    messages = (*idle[:6], first, *idle[6:8], {"role": "user", "content": NEWER.text}, *idle[8:])
    rows = {row.strategy: row for row in play(Talk(name="t", messages=messages, statements=(NEWER,)), "t", budget)}
    assert rows["oracle"].shown == 1
    assert rows["rare words"].shown == 1
    assert rows["newest"].shown == 0
    assert all(row.statements == row.updates == 1 for row in rows.values())
    assert rows[OURS].user_turns == sum(wire["role"] == "user" for wire in messages)
    assert rows[OURS].compactions > 0
