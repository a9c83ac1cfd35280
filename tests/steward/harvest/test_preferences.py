"""Wishes: how many are found, what is never one, how far each reaches, which slot it takes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from ctxsteward.envelope.transcripts import read_transcripts
from ctxsteward.steward.harvest.harvester import HARVESTERS
from ctxsteward.steward.harvest.people.utterances import listen
from ctxsteward.steward.ingest import TranscriptOrigin, replay, said_in

from .said import said_en, said_zh
from .talk import found, said, strengths, talk, task

DATA = Path(__file__).parents[3] / "../shared/data"
BOTH = [pytest.param(said_en, id="English"), pytest.param(said_zh, id="Chinese")]


def is_strict(text: str) -> bool:
    """A durable cue: a standing wish, or a named fact of the person."""
    return "strict" in strengths(text, "preferences", "facts")


def share(texts: list[str], *wanted: str) -> float:
    return sum(bool(strengths(text, "preferences", "facts") & set(wanted)) for text in texts) / len(texts)


# -- how many --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sets", BOTH)
def test_most_standing_wishes_are_strict(sets: object) -> None:
    """0.8 is the bar; these sets were written beside the cues, so they must give more."""
    for name in ("DURABLE", "LATER_DURABLE", "LAST_DURABLE"):
        texts = getattr(sets, name)
        assert share(texts, "strict") >= 0.85, name


@pytest.mark.parametrize("text", said_zh.STANDING)
def test_what_somebody_has_long_done_or_liked_needs_no_company(text: str) -> None:
    (seen,) = found(text, "preferences")
    assert (seen.kind, seen.strength, seen.reach) == ("preference", "strict", "user")
    is_aversion = any(word in text for word in ("不喜欢", "不爱", "讨厌", "反感"))
    assert seen.polarity == ("negative" if is_aversion else "positive")


@pytest.mark.parametrize("text", said_zh.NOT_STANDING)
def test_what_only_looks_long_liked_gives_nothing_strict(text: str) -> None:
    assert "strict" not in strengths(text, "preferences", "facts")


@pytest.mark.parametrize("sets", BOTH)
def test_nearly_every_wish_is_seen(sets: object) -> None:
    texts = [*getattr(sets, "DURABLE"), *getattr(sets, "WEAK"), *getattr(sets, "LATER_DURABLE")]  # noqa: B009
    assert share(texts, "strict", "broad") >= 0.95


@pytest.mark.parametrize("sets", BOTH)
def test_a_liking_or_a_request_needs_company(sets: object) -> None:
    texts = getattr(sets, "WEAK")  # noqa: B009
    assert [text for text in texts if "strict" in strengths(text, "preferences")] == []


@pytest.mark.parametrize("text", [*said_en.NONE, *said_en.LATER_NONE, *said_en.LAST_NONE])
def test_nothing_strict_in_english_that_wishes_nothing(text: str) -> None:
    assert not any(seen.kind == "preference" for seen in found(text, "preferences") if seen.strength == "strict")


@pytest.mark.parametrize("text", [*said_zh.NONE, *said_zh.LATER_NONE, *said_zh.LAST_NONE])
def test_nothing_strict_in_chinese_that_wishes_nothing(text: str) -> None:
    assert not any(seen.kind == "preference" for seen in found(text, "preferences") if seen.strength == "strict")


@pytest.mark.skipif(not (DATA / "locomo").exists(), reason=f"no {DATA}")
def test_real_talk_gives_strict_wishes_only_where_there_are_some() -> None:
    """Thousands of turns: friends who chat, and customers of an airline, whose wishes are of their trip."""
    strict, turns, beyond = 0, 0, []
    for path in ("locomo/locomo_dev.json", "tau_bench_airline/runs_even_tasks.jsonl"):
        for transcript in read_transcripts(DATA / path):
            origin = TranscriptOrigin(source=path, session=transcript.session, format=transcript.format, digest="")
            replayed = replay(said_in(transcript), origin)
            turns += len({sentence.said.ref for sentence in listen(replayed).sentences})
            wishes = [seen for seen in HARVESTERS["preferences"](replayed) if seen.strength == "strict"]
            strict += len(wishes)
            beyond += [seen.text for seen in wishes if seen.reach != "session"]
    assert turns > 3_000
    assert strict / turns < 0.01
    telling = ("allergic", "intolerant", "favorite", "favourite", "for me", "I love it when you")
    assert [text for text in beyond if not any(sign in text for sign in telling)] == []


# -- what is never one -----------------------------------------------------------------------------------------------


class Never(NamedTuple):
    """A text in which somebody seems to wish something."""

    reason: str
    text: str


NEVER = [
    Never("a question", "Do you always answer in French?"),
    Never("a question without its mark", "do you always answer in French"),
    Never("a quotation", 'The sign says "never use the lift, always take the stairs".'),
    Never("a quotation of one's own", "I once wrote “from now on, answer me in French” in a letter."),
    Never("a quoted line", "> From now on, answer me in French.\nWhat did she mean?"),
    Never("fenced code", "```\n# never use tabs\nalways use spaces\n```"),
    Never("an unclosed fence", "```\nNever use tabs in this file."),
    Never("code in a line", "It prints `never use tabs in this file` and stops."),
    Never("marked-up material", "<document>From now on, answer me in French.</document> Is this rude?"),
    Never("a supposition", "If I were vegan, what would I eat?"),
    Never("a supposition later on", "What happens if I never use the lift"),
    Never("indifference", "I don't mind where I sit."),
    Never("no preference", "I have no preference, honestly."),
    Never("irony", "Oh great, I just love it when you lose my booking."),
    Never("irony with a face", "Sure, never use my first name 🙄"),
    Never("a joke", "Never use vowels with me, just kidding."),
    Never("somebody else's", "My sister prefers aisle seats."),
    Never("told of somebody", "She told me to never use the lift."),
    Never("denied", "I never said that I prefer aisle seats."),
    Never("the past", "I used to prefer aisle seats."),
    Never("to translate", "Translate this: From now on, answer me in French."),
    Never("to sum up", "Please summarize the email below:\nCall me Ann. Never use emojis."),
    Never("a mail", "From: ann@example.org\nSubject: hello\nNever use emojis when you write to me."),
    Never("a story to write", "Write a story about a king. Never use his name. Call me Ann."),
    Never("a role", "Pretend you are my butler. Always call me Sir."),
    Never("a user story", "As a user, I prefer to log in with one click."),
    Never("问句", "你以后都用中文回答吗？"),
    Never("引用", "他说“以后请都用中文回答我”。"),
    Never("代码", "```\n# 不要用制表符\n```"),
    Never("假设", "如果我吃素，该点什么？"),
    Never("无所谓", "坐哪里都行，无所谓。"),
    Never("反话", "呵呵，我最喜欢排队了。"),
    Never("别人", "我妹妹更喜欢靠过道的座位。"),
    Never("转述", "老板说以后一律用英文回复。"),
    Never("否认", "我没说过我更喜欢靠过道。"),
    Never("以前", "我以前更喜欢靠过道的座位。"),
    Never("材料", "请翻译下面这段：以后请都用中文回答我。"),
    Never("写作", "帮我写一封给房东的信，说以后请都用中文回答我。"),
    Never("扮演", "假装你是我的管家。以后都叫我老爷。"),
]


@pytest.mark.parametrize("case", NEVER, ids=lambda case: case.reason)
def test_what_is_not_meant_gives_nothing_strict(case: Never) -> None:
    assert "strict" not in strengths(case.text, "preferences", "facts"), found(case.text, "preferences", "facts")


def test_a_document_is_not_talk() -> None:
    page = "\n".join(f"Section {number}. Some prose about the weather, of no use." for number in range(60))
    assert "strict" not in strengths(f"{page}\nNever use emojis when you write to me.", "preferences")


def test_only_people_are_heard() -> None:
    wish = "From now on, answer me in French."
    for role in ("assistant", "tool", "system"):
        assert found(talk(said(wish, role)), "preferences", "facts", "corrections", "decisions") == []
    assert found(talk(said(wish, "assistant", speaker="helper")), "preferences") == []
    assert found(talk(said(wish, trust="tool_external")), "preferences") == []
    assert found(talk(wish), "preferences") != []


# -- reach -----------------------------------------------------------------------------------------------------------


class Reaches(NamedTuple):
    """Where a wish holds."""

    text: str
    chat: str
    """In talk."""
    task: str
    """While an assistant works for the person."""


REACHES = [
    Reaches("From now on, answer me in French.", "user", "user"),
    Reaches("I'm allergic to peanuts.", "user", "user"),
    Reaches("Call me Ann.", "user", "user"),
    Reaches("I prefer aisle seats.", "user", "session"),
    Reaches("I prefer the seat at the back for this flight.", "session", "session"),
    Reaches("I like jazz.", "user", "session"),
    Reaches("Always use the blue card for this trip.", "session", "session"),
    Reaches("以后请都用中文回答我。", "user", "user"),
    Reaches("我更喜欢靠过道的座位。", "user", "session"),
    Reaches("这次我更喜欢靠过道。", "session", "session"),
]


@pytest.mark.parametrize("case", REACHES, ids=lambda case: case.text)
def test_a_wish_reaches_as_far_as_its_words(case: Reaches) -> None:
    assert {seen.reach for seen in found(case.text, "preferences")} == {case.chat}
    assert {seen.reach for seen in found(task(case.text), "preferences")} == {case.task}


def test_a_wish_of_a_project_reaches_the_project() -> None:
    text = "In this repo, never use tabs for indentation."
    assert {seen.reach for seen in found(talk(text, project="ledger"), "preferences")} == {"project"}
    assert {seen.reach for seen in found(talk(text), "preferences")} <= {"user", "session"}


# -- slots -----------------------------------------------------------------------------------------------------------


class Same(NamedTuple):
    """Wordings of one wish."""

    slot: str
    value: str | int | None
    texts: tuple[str, ...]


SAME = [
    Same("name", "Ann", ("Call me Ann.", "My name is Ann.", "I go by Ann.", "叫我Ann。")),
    Same("home", "Oslo", ("I live in Oslo.", "My home is in Oslo.", "We're based in Oslo these days.")),
    Same("home", "奥斯陆", ("我住在奥斯陆。", "我家在奥斯陆。", "我们去年搬到了奥斯陆。")),
    Same(
        "daughter", "Mia", ("My daughter is called Mia.", "Our daughter's name is Mia.", "I have a daughter named Mia.")
    ),
    Same("daughter", "米娅", ("我女儿叫米娅。", "我有个叫米娅的女儿。", "我女儿的名字叫米娅。")),
    Same("allergy", "peanut", ("I'm allergic to peanuts.", "I have a peanut allergy.")),
    Same("allergy", "花生", ("我对花生过敏。", "我花生过敏。", "记住我对花生过敏。")),
    Same("seat", "aisle", ("I prefer aisle seats.", "Always book me an aisle seat.", "我更喜欢靠过道的座位。")),
    Same("birthday", "05-03", ("My birthday is May 3.", "I was born on the 3rd of May 1988.", "我生日是五月三号。")),
    Same("job", "nurse", ("I work as a nurse.", "I'm a nurse.")),
    Same(
        "answer_length", "short", ("Keep your answers short.", "Be concise in all your replies.", "回答尽量简短一点。")
    ),
    Same("answer_language", "French", ("Reply in French, please.", "From now on, answer me in French.")),
    Same("indentation", "tabs", ("I prefer tabs over spaces.", "比起空格，我更喜欢用制表符。")),
]


@pytest.mark.parametrize("case", SAME, ids=lambda case: f"{case.slot} {case.value}")
def test_wordings_of_one_wish_share_slot_and_value(case: Same) -> None:
    for text in case.texts:
        seen = found(text, "preferences", "facts")
        assert (case.slot, case.value) in {(one.slot.attribute, one.value) for one in seen}, text


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
    assert {seen.sensitivity for seen in found("I'm allergic to peanuts.", "preferences")} == {"sensitive"}
    assert {seen.sensitivity for seen in found("我只吃清真食品。", "preferences")} == {"sensitive"}
    assert {seen.sensitivity for seen in found("Call me Ann.", "preferences")} == {"personal"}
