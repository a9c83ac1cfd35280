"""Facts: what is worth keeping of what people say of themselves, whose it is, and under which question it is found."""

from __future__ import annotations

import pytest

from ctxsteward.steward.harvest.harvester import harvest
from ctxsteward.steward.harvest.people.facts import cue_score
from ctxsteward.steward.harvest.people.utterances import listen

from .said import said_en, said_zh
from .talk import found, said, talk, task


@pytest.mark.parametrize("text", [*said_en.FACTS, *said_zh.FACTS])
def test_a_fact_is_found(text: str) -> None:
    assert found(text, "facts")


@pytest.mark.parametrize("text", [*said_en.NOT_FACTS, *said_zh.NOT_FACTS])
def test_small_talk_is_no_fact(text: str) -> None:
    assert found(text, "facts") == []


@pytest.mark.parametrize("sets", [pytest.param(said_en, id="English"), pytest.param(said_zh, id="Chinese")])
def test_facts_score_above_small_talk(sets: object) -> None:
    def scores(name: str) -> list[float]:
        return sorted(cue_score(sentence) for text in getattr(sets, name) for sentence in listen(talk(text)).sentences)

    high, low = scores("FACTS"), scores("NOT_FACTS")
    assert sum(one > other for one in high for other in low) / (len(high) * len(low)) > 0.97


def test_the_score_is_of_the_sentence_alone() -> None:
    sentence = "My brother Tom just finished his PhD in physics."
    (alone,) = listen(talk(sentence)).sentences
    many = listen(talk("I like rain.", sentence, "My brother Tom just finished his PhD in physics.")).sentences
    assert {cue_score(one) for one in many[1:]} == {cue_score(alone)}


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
        "It went alright yesterday.", "That's awesome, I'm so happy with it!", "I'm a huge fan, I love it!",
        "I felt so supported and accepted by everyone.", "We can make a real difference together as a family!",
        "Hey Maria, last week was really amazing.", "Since I was 17 or so, I'd say.", "They inspire me and my family.",
        "Watching it with my family last night was amazing.", "I'm always looking for ways to improve myself.",
    ],
)  # fmt: skip
def test_what_names_nothing_is_no_fact(text: str) -> None:
    assert found(people(("Ann", text)), "facts") == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "I went to Woodhaven last month.", "I fractured my wrist on Monday.", "It was a poetry reading in Rome in May.",
        "My favorite is the banana split sundae.", 'I finished "Dune" by Frank Herbert yesterday.',
        "Last Friday I took my kids to a pottery workshop.", "I adopted a puppy from a shelter two weeks ago.",
    ],
)  # fmt: skip
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


def test_inside_a_task_a_scored_fact_is_of_the_task() -> None:
    for scored in (
        "The flight from Boston on May 20 was moved to Tuesday.",
        "The 2 bags of my wife were added on Monday.",
    ):
        assert {seen.reach for seen in found(task(scored), "facts")} == {"session"}
    life = "My brother Tom just finished his PhD in physics last week."
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


# -- what an assistant has replied to --------------------------------------------------------------------------------

KEYS = "We keep the spare keys at the Nairobi branch."
TAKEN_UP = "Your spare keys are at the Nairobi branch; shall I note where you keep them?"
KEYS_ZH, TAKEN_UP_ZH = "我把备用钥匙放在北京分行的柜子里。", "备用钥匙在北京分行的柜子里，已记下。"


@pytest.mark.parametrize(
    ("text", "reply", "is_fact"),
    [
        pytest.param(KEYS, TAKEN_UP, True, id="the reply takes it up"),
        pytest.param(KEYS, "Let us begin with today's exercise then.", False, id="the reply passes over it"),
        pytest.param("That's the Nairobi branch with our spare keys.", TAKEN_UP, False, id="it points elsewhere"),
        pytest.param("You keep our spare keys at the Nairobi branch.", TAKEN_UP, False, id="of the other"),
        pytest.param("Spare keys are kept at the Nairobi branch.", TAKEN_UP, False, id="of nobody here"),
        pytest.param(KEYS_ZH, TAKEN_UP_ZH, True, id="chinese, taken up"),
        pytest.param(KEYS_ZH, "好的，我们先看今天的练习。", False, id="chinese, passed over"),
    ],
)
def test_what_a_reply_takes_up_is_a_fact(text: str, reply: str, is_fact: bool) -> None:
    replied = talk(said(text), said(reply, "assistant", 2))
    assert (found(replied, "facts") != []) is is_fact


def test_what_nobody_replied_to_and_talk_between_people_is_scored_as_it_stands() -> None:
    assert found(KEYS, "facts") != []
    replied = said("Bo: Cool.", "assistant", 2, speaker="Bo")
    between = talk(said(f"Ann: {KEYS}", speaker="Ann"), replied, format="locomo")
    assert [sentence.echoed for sentence in listen(between).sentences] == [None, None]


def test_a_named_fact_needs_no_reply() -> None:
    replied = talk(said("My daughter is called Mia."), said("Let us begin.", "assistant", 2))
    assert [one.strength for one in found(replied, "facts")] == ["strict"]
