"""Wishes: which are kept, what is never one, how far each reaches, which slot it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxsteward.envelope.transcripts.files import read_transcripts
from ctxsteward.steward.harvest.harvester import lasting
from ctxsteward.steward.harvest.people.utterances import listen
from ctxsteward.steward.ingest.replayer import replay, said_in

from ....needs import PUBLIC_DATA
from .said import cases, said_en, said_zh
from .talk import alone, found, said, strengths, talk, task

DATA = Path(__file__).parents[4] / "../shared/data"
BOTH = [pytest.param(said_en, id="English"), pytest.param(said_zh, id="Chinese")]


def is_strict(text: str) -> bool:
    """A durable cue: a standing wish."""
    return "strict" in strengths(text, "preferences")


# -- which are kept --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sets", BOTH)
def test_what_somebody_likes_does_or_asks_for_once_is_for_nobody_else(sets: object) -> None:
    texts = [*getattr(sets, "WEAK"), *getattr(sets, "STANDING", ())]  # noqa: B009
    assert [text for text in texts if lasting(found(text, "preferences"))] == []


@pytest.mark.parametrize("sets", BOTH)
def test_of_standing_wishes_those_about_form_alone_are_for_everybody(sets: object) -> None:
    texts = [text for name in ("DURABLE", "LATER_DURABLE", "LAST_DURABLE") for text in getattr(sets, name)]
    assert [text for text in texts if lasting(found(text, "preferences"))] == getattr(sets, "FOR_EVERYBODY")  # noqa: B009


@pytest.mark.parametrize("sets", BOTH)
def test_nothing_strict_where_nothing_is_wished(sets: object) -> None:
    texts = [text for name in ("NONE", "LATER_NONE", "LAST_NONE") for text in getattr(sets, name)]
    kinds = {text: {seen.kind for seen in found(text, "preferences") if seen.strength == "strict"} for text in texts}
    assert len(kinds) > 100
    assert [text for text in texts if "preference" in kinds[text]] == []


@pytest.mark.skipif(not (DATA / "locomo").exists(), reason=PUBLIC_DATA)
def test_real_talk_gives_strict_wishes_only_where_there_are_some() -> None:
    """Thousands of turns: friends who chat, and customers of an airline, whose wishes are of their trip."""
    strict, turns, shared = 0, 0, []
    for path in ("locomo/locomo_dev.json", "tau_bench_airline/runs_even_tasks.jsonl"):
        for transcript in read_transcripts(DATA / path):
            said = said_in(transcript)
            replayed = replay(said, source=path, session=transcript.session, format=transcript.format, digest="")
            turns += len({sentence.said.ref for sentence in listen(replayed)})
            wishes = [seen for seen in alone("preferences", replayed) if seen.strength == "strict"]
            strict += len(wishes)
            shared += [seen.text for seen in wishes if seen.reach == "shared"]
    assert turns > 1_000
    assert strict / turns < 0.01
    assert shared == []


# -- what is never one -----------------------------------------------------------------------------------------------


def test_what_is_not_meant_or_only_looks_long_liked_gives_nothing_strict() -> None:
    texts = [*cases.NEVER.values(), *said_zh.NOT_STANDING]
    assert [text for text in texts if is_strict(text)] == []


def test_a_document_is_not_talk() -> None:
    page = "\n".join(f"Section {number}. Some prose about the weather, of no use." for number in range(60))
    assert "strict" not in strengths(f"{page}\nNever use emojis when you write to me.", "preferences")


def test_only_people_are_heard() -> None:
    wish = "From now on, answer me in French."
    for role in ("assistant", "tool", "system"):
        assert found(talk(said(wish, role)), "preferences", "corrections") == []
    assert found(talk(said(wish, "assistant")), "preferences") == []
    assert found(talk(said(wish, trust="tool_external")), "preferences") == []
    assert found(talk(wish), "preferences") != []


# -- reach -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "in_talk", "in_task"), cases.REACHES)
def test_a_wish_reaches_as_far_as_its_words(text: str, in_talk: str, in_task: str) -> None:
    assert {seen.reach for seen in found(text, "preferences")} == {in_talk}
    assert {seen.reach for seen in found(task(text), "preferences")} == {in_task}


def test_a_wish_of_a_project_is_not_for_everybody() -> None:
    text = "In this repo, never use emojis."
    assert {seen.reach for seen in found(talk(text, project="ledger"), "preferences")} == {"session"}


# -- slots -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("slot", "value", "texts"), cases.SAME)
def test_wordings_of_one_wish_share_slot_and_value(slot: str, value: str, texts: list[str]) -> None:
    for text in texts:
        assert (slot, value) in {(one.slot.attribute, one.value) for one in found(text, "preferences")}, text


def test_a_wish_and_its_opposite_share_a_slot() -> None:
    for wish, opposite in (
        ("Always use emojis with me.", "Never use emojis with me."),
        ("Always use semicolons in my code.", "Don't use semicolons in anything you write for me."),
        ("以后都加上表情。", "不要用表情符号。"),
    ):
        (one,), (other,) = found(wish, "preferences"), found(opposite, "preferences")
        assert one.slot == other.slot
        assert (one.polarity, other.polarity) == ("positive", "negative")


def test_modality_and_amount_are_told() -> None:
    (seen,) = found("Never book a connection under 45 minutes.", "preferences")
    assert (seen.modality, seen.polarity, seen.value, seen.unit) == ("must_not", "negative", 45, "minute")
    (seen,) = found("Always use emojis with me.", "preferences")
    assert seen.modality == "must"


def test_what_is_about_health_or_faith_is_sensitive() -> None:
    assert {seen.sensitivity for seen in found("Always plan my meals for diabetes.", "preferences")} == {"sensitive"}
    assert {seen.sensitivity for seen in found("以后都给我订清真餐。", "preferences")} == {"sensitive"}
    assert {seen.sensitivity for seen in found("Never use emojis.", "preferences")} == {"none"}
