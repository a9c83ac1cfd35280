"""Asks drafted by rule: what is asked for, when, and what is not because it would tell nothing apart."""

from __future__ import annotations

from typing import Any

import pytest

from ctxsteward.evals.suite_files.drafts import DraftedAsk, drafted

CHATTER = (
    "Could you tell me a little about the weather there",
    "And how are the people who live by the harbour",
    "Is the food any good in the evenings",
    "What would you wear on a boat in spring",
    "Do the shops close early over the holidays",
    "Are there museums that children enjoy",
    "How loud is the old town at night",
    "Which of the bridges is the prettiest",
    "Would you walk or rather take a bicycle",
    "Does it rain much before summer",
)


def talk(*said: str, after: int = len(CHATTER)) -> list[dict[str, Any]]:
    """What a person said first, then small talk."""
    messages: list[dict[str, Any]] = []
    for text in (*said, *(f"{line}?" for line in CHATTER[:after])):
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "I see."}]
    return messages


def asks(messages: list[dict[str, Any]], most: int = 5) -> list[DraftedAsk]:
    return drafted(messages, [message["role"] == "user" for message in messages], most=most)


STATED = [
    ("My membership number is MX-4471 since last autumn.", "MX-4471", "identifier"),
    ("Please keep the whole journey under $640 for both travellers.", "$640", "money"),
    ("The grandmother only walks when it is above 15 degrees outside.", "15 degrees", "quantity"),
    ("We would rather arrive before the weekend in Ghent with everybody.", "Ghent", "proper name"),
    ("We always order the grey tiles from Brandt & Sons for every hall.", "Brandt & Sons", "proper name"),
    ("It is worth 8,450 euros and needs 14 pallets of the grey tiles.", "8,450 euros", "money"),
    ("我们的会员编号是MX-4471，从去年秋天开始一直用。", "MX-4471", "identifier"),
]


@pytest.mark.parametrize(("sentence", "value", "kind"), STATED)
def test_a_value_that_was_stated_is_asked_for_with_its_sentence(sentence: str, value: str, kind: str) -> None:
    (ask,) = asks(talk(sentence))
    assert (ask.value, ask.kind, ask.place, ask.after) == (value, kind, 1, 22)
    assert value not in ask.question
    assert sentence.replace(value, "____").strip() in ask.question


UNASKED = {
    "a question": "Is my membership number MX-4471 still good after last autumn?",
    "digits that become another number beside a raised one": "My order has the number ²512:30x as of last autumn.",
    "few words": "It is MX-4471, as I have it here.",
    "two digits": "The driver should ring at gate 42 when he arrives at the yard.",
    "one digit": "The whole family has 3 rather large bags.",
    "emphasis": "The whole journey was REALLY one-of-a-kind last autumn.",
    "code": "x = membership['MX-4471'] + autumn[0] * {travel: 1}",
    "redacted": "My membership [redacted:email] has the number MX-4471 since autumn.",
    "an address of mail": "My membership runs under ada@example.org since last autumn.",
    "a word that is written without a capital too": "We take the Boat over to the island with everybody.",
}


@pytest.mark.parametrize("sentence", UNASKED.values(), ids=UNASKED.keys())
def test_what_tells_nothing_apart_is_not_asked_for(sentence: str) -> None:
    assert asks(talk(sentence)) == []


def test_a_value_is_asked_for_where_nobody_has_come_back_to_it_for_longest() -> None:
    messages = talk("My membership number is MX-4471 since last autumn.")
    messages[17] = {"role": "assistant", "content": "Your number is MX-4471."}
    (ask,) = asks(messages)
    assert (ask.place, ask.after) == (1, 17)


def test_a_value_that_comes_up_all_the_time_is_not_asked_for() -> None:
    messages = talk("My membership number is MX-4471 since last autumn.")
    for place in range(3, len(messages), 4):
        messages[place] = {"role": "assistant", "content": "MX-4471, I see."}
    assert asks(messages) == []


def test_what_the_assistant_said_first_is_not_asked_for() -> None:
    messages = [{"role": "assistant", "content": "Welcome, MX-4471."}]
    assert asks([*messages, *talk("My membership number is MX-4471 since last autumn.")]) == []


def test_two_sentences_that_say_the_same_of_two_values_are_ambiguous() -> None:
    one, other = (
        f"The rear suspension of the {word} car needs {n} bars." for word, n in (("blue", 150), ("blue", 210))
    )
    assert asks(talk(one, other)) == []


def test_nothing_is_asked_between_a_call_and_its_result() -> None:
    function = {"name": "look", "arguments": '{"number": "MX-4471"}'}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    messages = talk("My membership number is MX-4471 since last autumn.")
    messages[17:18] = [
        call | {"tool_calls": [call["tool_calls"][0] | {"function": function | {"arguments": "{}"}}]},  # type: ignore[index]
        {"role": "tool", "tool_call_id": "c", "content": "MX-4471"},
        messages[17],
    ]
    (ask,) = asks(messages)
    assert messages[ask.after]["role"] != "tool"
    assert ask.after == 17


def test_the_best_come_first_and_no_more_than_are_wanted() -> None:
    messages = talk(
        "We would rather arrive before the weekend in Ghent with everybody.",
        "Please keep the whole journey under $640 for both travellers.",
        "My membership number is MX-4471 since last autumn.",
    )
    assert [ask.kind for ask in asks(messages)] == ["identifier", "money", "proper name"]
    assert [ask.kind for ask in asks(messages, most=1)] == ["identifier"]
