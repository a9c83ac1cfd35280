"""Corrections: what is one, what only looks like one, what it cites, whom it is for."""

from __future__ import annotations

import pytest

from ctxsteward.steward import Ledger
from ctxsteward.steward.artifacts.artifact import build_artifact
from ctxsteward.steward.harvest.harvester import EXTRACTOR, harvest, lasting

from ...scenes import AGENT, TENANT, memory_store, replayed, said as spoken
from .said import cases, said_en, said_zh
from .talk import found, said, strengths, talk, task

BOTH = [pytest.param(said_en, id="English"), pytest.param(said_zh, id="Chinese")]


@pytest.mark.parametrize("sets", BOTH)
def test_most_corrections_are_found(sets: object) -> None:
    texts = getattr(sets, "CORRECTIONS")  # noqa: B009
    assert sum("strict" in strengths(text, "corrections") for text in texts) / len(texts) >= 0.85


def test_what_corrects_nothing_gives_nothing_strict() -> None:
    texts = [*said_en.NOT_CORRECTIONS, *said_zh.NOT_CORRECTIONS, *cases.CONTRASTS]
    assert [text for text in texts if "strict" in strengths(text, "corrections")] == []


RIGHT = ("text", "attribute", "value", "reach")


@pytest.mark.parametrize(RIGHT, cases.RIGHT)
def test_a_correction_says_what_is_right(text: str, attribute: str, value: str, reach: str) -> None:
    (seen,) = found(text, "corrections")
    assert (seen.slot.attribute, seen.value, seen.reach) == (attribute, value, reach)


@pytest.mark.parametrize(RIGHT, [*cases.PROTESTED, *cases.THINGS])
def test_a_thing_put_right_is_for_all_and_what_was_said_wrong_reaches_as_far_as_what_is_right(
    text: str, attribute: str, value: str, reach: str
) -> None:
    """Of "you said it wrong, X" it is X that is durable, for everybody, or of this talk alone."""
    (seen,) = found(text, "corrections")
    assert (seen.slot.attribute, seen.value, seen.reach, seen.strength) == (attribute, value, reach, "strict")
    if [text, attribute, value, reach] in cases.THINGS:
        assert seen.slot.subject == attribute.removeprefix("correction:")


def test_inside_a_task_what_is_so_for_everybody_stays_so() -> None:
    assert {seen.reach for seen in found(task("Actually, refunds take 5 days, not 3."), "corrections")} == {"shared"}
    assert {seen.reach for seen in found(task("No, the flight leaves at 8, not 9."), "corrections")} == {"session"}
    assert {seen.reach for seen in found(task("No, my flight leaves at 8, not 9."), "corrections")} == {"session"}


@pytest.mark.parametrize("texts", cases.THREE, ids=lambda texts: texts[0])
def test_three_people_who_correct_the_same_thing_agree(texts: list[str]) -> None:
    with memory_store() as store:
        key = store.keys.address_key(TENANT)
        for people, reason in ((2, "needs_principals"), (3, "needs_confirmation")):
            with Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
                for number, text in enumerate(texts[:people]):
                    who = f"u{number}"
                    transcript = replayed(f"s{number}", spoken(text, principal=who), principal=who)
                    ledger.absorb(
                        *build_artifact(transcript, lasting(harvest(transcript)), extractor=EXTRACTOR, key=key)
                    )
                records = list(ledger.records())
                assert [(one.status, one.reasons, one.support.principals) for one in records] == [
                    ("candidate", (reason,), people)
                ]


def test_inside_a_task_a_correction_is_of_the_task() -> None:
    assert {seen.reach for seen in found(task("The budget is 4,000, not 40,000."), "corrections")} == {"session"}
    assert {seen.reach for seen in found(task("No, I live in Oslo, not Bergen."), "corrections")} == {"session"}


def test_a_bare_protest_is_cited_beside_what_is_right() -> None:
    (seen,) = found("That's wrong. The limit is 50 requests per second.", "corrections")
    assert seen.text == "The limit is 50 requests per second."
    assert [place.relation for place in seen.places] == ["supports", "corrects"]


def test_no_as_an_answer_corrects_nothing() -> None:
    asked = said("Do you need a car?", "assistant", 1)
    assert found(talk(asked, said("No. The train is fine.", ordinal=2)), "corrections") == []


def test_only_the_person_is_cited() -> None:
    wrong = said("Your flight leaves on Tuesday.", "assistant", 1)
    (seen,) = found(talk(wrong, said("No, it's Thursday, not Tuesday.", ordinal=2)), "corrections")
    assert {place.ref for place in seen.places} == {"§2"}
