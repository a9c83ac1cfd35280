"""Facts: what is worth keeping of what people say of themselves, whose it is, and under which question it is found."""

from __future__ import annotations

import pytest

from ctxsteward.steward.harvest.harvester import harvest
from ctxsteward.steward.harvest.people.utterances import Sentence, listen
from ctxsteward.steward.harvest.people.worth import stated, worth

from .said import said_en, said_zh
from .talk import found, said, talk, task


def told(text: str) -> tuple[Sentence, ...]:
    return listen(talk(text))


@pytest.mark.parametrize("sets", [pytest.param(said_en, id="English"), pytest.param(said_zh, id="Chinese")])
def test_facts_are_worth_more_than_small_talk(sets: object) -> None:
    def worths(name: str) -> list[float]:
        return [worth(one, between_people=True) for text in getattr(sets, name) for one in told(text)]

    high, low = worths("FACTS"), worths("NOT_FACTS")
    assert sum(one > other for one in high for other in low) / (len(high) * len(low)) > 0.97


@pytest.mark.parametrize("text", [*said_en.NOT_FACTS, *said_zh.NOT_FACTS])
def test_small_talk_is_no_fact(text: str) -> None:
    assert found(text, "facts") == []


@pytest.mark.parametrize("sets", [pytest.param(said_en, id="English"), pytest.param(said_zh, id="Chinese")])
def test_most_facts_are_found(sets: object) -> None:
    """Of sentences that stand alone; what is not certain waits to be said again."""
    texts = sets.FACTS  # type: ignore[attr-defined]
    assert sum(found(text, "facts") != [] for text in texts) >= 0.9 * len(texts)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("I moved to Oslo.", "I moved to Oslo."),
        ("Sure, I moved to Oslo.", "I moved to Oslo."),
        ("I moved to Oslo, can you find me a flat?", "I moved to Oslo"),
        ("I moved to Oslo in May, but I'm not sure how to find a flat.", "I moved to Oslo in May"),
        ("I was wondering if you know Oslo.", "I was wondering if you know Oslo."),
        ("Can you find me a flat in Oslo?", "Can you find me a flat in Oslo?"),
    ],
)
def test_what_asks_around_a_statement_is_left_out(text: str, part: str) -> None:
    start, stop = stated(text)
    assert text[start:stop] == part


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "My sister Mia moved to Rome in May. She runs a bakery near the river now.",
            "My sister Mia moved to Rome in May. She runs a bakery near the river now.",
        ),
        ("She runs a bakery near the river in Rome now.", None),
        ("It was a bakery near the river in Rome, bought in May.", None),
        ("Do you know Mia? She runs a bakery near the river in Rome now.", None),
    ],
)
def test_a_fact_stands_alone_or_with_the_sentence_that_it_needs(text: str, line: str | None) -> None:
    friend = talk(said(f"Ann: {text}", speaker="Ann", principal="Ann"), format="locomo", principal="Ann")
    assert [one.text for one in found(friend, "facts")] == ([] if line is None else [f"Ann: {line}"])


TWO = "adopted two greyhounds named Rex and Pixel in March 2024 with Paula, my sister."


@pytest.mark.parametrize(
    "before",
    [
        "Please rebook the flight of Tom Becker to Boston.",
        "Imagine I had a brother Tom Becker in Boston.",
        'My brother Tom Becker works at the harbour. "I hate every single one of you people forever"',
    ],
    ids=["a request", "a supposition", "a quotation between"],
)
def test_a_sentence_is_not_joined_to_what_is_no_statement_of_its_speaker(before: str) -> None:
    assert not any("adopted" in one.text for one in found(talk(f"{before} He {TWO}"), "facts"))


def test_a_joined_fact_is_as_sensitive_as_either_sentence() -> None:
    text = f"My brother Tom Becker was diagnosed with epilepsy in Boston. He {TWO}"
    friend = talk(said(f"Ann: {text}", speaker="Ann", principal="Ann"), format="locomo", principal="Ann")
    (one,) = found(friend, "facts")
    assert (one.text, one.sensitivity) == (f"Ann: {text}", "sensitive")


def test_a_named_fact_leaves_what_is_said_after_it() -> None:
    text = "My daughter is called Mia. She plays violin in the Bonn youth orchestra since March 2024 with Paula Meyer."
    assert {one.strength for one in harvest(talk(text))} == {"strict", "scored"}


def test_a_statement_before_a_question_is_kept() -> None:
    text = "I moved to Oslo in May 2024 with my sister Nora Berg, can you help me find a flat there?"
    assert [one.text for one in harvest(talk(text))] == ["I moved to Oslo in May 2024 with my sister Nora Berg"]


def people(*lines: tuple[str, str]) -> object:
    """Two friends: Ann is the user, whoever else the assistant."""
    return talk(
        *(
            said(f"{name}: {text}", "user" if name == "Ann" else "assistant", number, speaker=name, principal="Ann")
            for number, (name, text) in enumerate(lines, 1)
        ),
        format="locomo",
        principal="Ann",
    )


@pytest.mark.parametrize(
    "text",
    [
        "It went alright yesterday.",
        "That's awesome, I'm so happy with it!",
        "I'm a huge fan, I love it!",
        "I felt so supported and accepted by everyone.",
        "We can make a real difference together as a family!",
        "Hey Maria, last week was really amazing.",
        "Since I was 17 or so, I'd say.",
        "They inspire me and my family.",
        "Watching it with my family last night was amazing.",
        "I'm always looking for ways to improve myself.",
    ],
)
def test_what_names_nothing_is_no_fact(text: str) -> None:
    assert found(people(("Ann", text)), "facts") == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "I went to Woodhaven last month.",
        "I fractured my wrist on Monday.",
        "My favorite is the banana split sundae.",
        'I finished "Dune" by Frank Herbert yesterday.',
        "Last Friday I took my kids to a pottery workshop.",
        "I adopted a puppy from a shelter two weeks ago.",
    ],
)
def test_what_names_a_thing_an_event_or_a_value_is_one(text: str) -> None:
    assert [one.text for one in found(people(("Ann", text)), "facts")] == [f"Ann: {text}"]  # type: ignore[arg-type]


def test_of_two_people_each_owns_what_they_say() -> None:
    replayed = people(("Ann", "I moved to Oslo last spring."), ("Bob", "I adopted a dog named Rex two weeks ago."))
    ann, bob = found(replayed, "facts")  # type: ignore[arg-type]
    assert (ann.principal, ann.slot.subject, ann.text) == ("Ann", "user", "Ann: I moved to Oslo last spring.")
    assert (bob.principal, bob.slot.subject) == ("Bob", "bob")
    assert bob.text == "Bob: I adopted a dog named Rex two weeks ago."


def test_a_caption_is_nobodys_word() -> None:
    seen = found(
        people(("Ann", "I adopted a dog named Rex two weeks ago. [image: a photo of my sister in Rome]")), "facts"
    )  # type: ignore[arg-type]
    assert [one.text for one in seen] == ["Ann: I adopted a dog named Rex two weeks ago."]


def test_an_answer_is_indexed_under_its_question() -> None:
    asked = said("Thanks! Where did you grow up, and when did you leave?", "assistant", 1)
    (seen,) = found(talk(asked, said("I left Bergen in March with my brother Tom.", ordinal=2)), "facts")
    assert seen.answers == "Where did you grow up, and when did you leave?"
    assert "Bergen" in seen.text
    assert "grow up" not in seen.text


def test_inside_a_task_only_what_is_of_the_speaker_s_life_is_a_fact() -> None:
    for scored in (
        "The flight from Boston on May 20 was moved to Tuesday.",
        "The 2 bags of my wife were added on Monday.",
    ):
        assert found(task(scored), "facts") == []
    life = "My brother Tom just finished his PhD in physics at Bergen in June 2026."
    assert {seen.reach for seen in found(task(life), "facts")} == {"user"}
    assert {seen.reach for seen in found(task("I live in Oslo with my husband."), "facts")} == {"user"}


def test_a_sentence_that_is_a_strict_claim_is_no_scored_fact_beside() -> None:
    text = "From now on, send my brother Tom in Oslo a copy of every invoice on Mondays."
    assert found(text, "facts")
    assert [seen.kind for seen in harvest(talk(text))] == ["preference"]


def test_one_claim_of_one_place_is_told_once() -> None:
    assert [seen.slot.attribute for seen in harvest(talk("I'm allergic to peanuts."))] == ["allergy"]
    assert [seen.kind for seen in harvest(talk("No, I live in Oslo, not Bergen."))] == ["correction"]


@pytest.mark.parametrize("name", ["system", "Assistant", "<b>", "x" * 60, "[INST]"])
def test_a_name_that_is_none_stands_before_nothing(name: str) -> None:
    (seen,) = found(talk(said("I moved to Oslo last spring.", speaker=name)), "facts")
    assert seen.text == "I moved to Oslo last spring."
