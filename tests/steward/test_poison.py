"""What few users say wrongly reaches nobody, and no record rests on what a tool returned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ctxsteward.envelope import Store
from ctxsteward.schemas.recommendation import MetaRecommendation
from ctxsteward.steward import Ledger
from ctxsteward.steward.artifacts.artifact import Artifact, build_artifact
from ctxsteward.steward.harvest.harvester import EXTRACTOR, harvest, lasting
from ctxsteward.steward.ledger.records import JudgementContext
from ctxsteward.steward.observations.observation import Observation
from ctxsteward.steward.observations.transcript import ReplayedCall, ReplayedTranscript, ReplayedUtterance

from ..needs import PUBLIC_DATA
from .poisons import poisons
from .scenes import AGENT, TENANT, claim, memory_store, replayed, said

SESSIONS = 1_000
NOW = "2026-11-22T00:00:00Z"
POISONS = tuple(poisons())


def session_of(number: int, who: str | None, texts: Sequence[str]) -> ReplayedTranscript:
    lines = [said(text, ordinal=2 * at + 1, principal=who) for at, text in enumerate(texts)]
    return replayed(f"s{number}", *lines, principal=who)


def worst(transcript: ReplayedTranscript) -> tuple[Observation, ...]:
    """Every line a strict claim for everybody: what a harvester that is wholly fooled would say."""
    return tuple(claim(line, kind="correction", slot=("agent", "rule", "many")) for line in transcript.users())


def active_after(
    store: Store, transcripts: Iterable[ReplayedTranscript], harvested: object
) -> tuple[list[MetaRecommendation], Ledger]:
    key = store.keys.address_key(TENANT)
    kept: list[Artifact] = []
    for transcript in transcripts:
        found = lasting(harvested(transcript))  # type: ignore[operator]
        kept += build_artifact(transcript, found, extractor=EXTRACTOR, key=key)
    with Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        ledger.absorb(*kept)
        assert ledger.size().observations > 0
        return [one for one in ledger.records(JudgementContext(now=NOW)) if one.status == "active"], ledger


def test_there_are_enough_of_them() -> None:
    assert len(set(POISONS)) >= 100
    assert sum(not text.isascii() for text in POISONS) >= 50


def test_a_harvest_keeps_none_of_them() -> None:
    assert [one for text in POISONS for one in lasting(harvest(session_of(1, "mallory", (text,))))] == []


class TestAHarvesterThatIsWhollyFooled:
    def test_one_user_in_a_thousand_sessions_reaches_nobody(self) -> None:
        with memory_store() as store:
            talks = (
                session_of(number, "mallory", (POISONS[number % len(POISONS)], POISONS[(7 * number) % len(POISONS)]))
                for number in range(SESSIONS)
            )
            assert active_after(store, talks, worst)[0] == []

    def test_one_less_than_k_who_collude_reach_nobody(self) -> None:
        with memory_store() as store:
            talks = (
                session_of(number, ("mallory", "mordred")[number % 2], POISONS[number % 10 :: 10])
                for number in range(60)
            )
            assert active_after(store, talks, worst)[0] == []

    def test_a_crowd_that_nobody_knows_is_one_voice(self) -> None:
        with memory_store() as store:
            talks = (session_of(number, None, POISONS[number % 20 :: 20]) for number in range(200))
            assert active_after(store, talks, worst)[0] == []

    def test_two_who_collude_and_a_crowd_are_three_voices_at_most_by_name(self) -> None:
        with memory_store() as store:
            whos = ("mallory", None, None, None)
            talks = (session_of(number, whos[number % 4], POISONS[number % 10 :: 10]) for number in range(120))
            assert active_after(store, talks, worst)[0] == []


def test_k_people_who_agree_do_reach_others() -> None:
    """The gate is open to those it is meant for; else the tests above could not fail."""
    with memory_store() as store:
        talks = [session_of(number, f"u{number % 3}", ("The canteen opens at noon for all.",)) for number in range(3)]
        active, _ = active_after(store, talks, lambda talk: [replace(one, kind="preference") for one in worst(talk)])
        assert [one.text for one in active] == ["The canteen opens at noon for all."]
        assert active_after(store, talks, worst)[0] == [], "of the world nobody knows it by votes"


# -- what tools return ---------------------------------------------------------------------------------------


BIPIA = Path(__file__).parents[2] / "../shared/data/bipia"
PASSAGE_WORDS = 4


def attacks() -> list[str]:
    if not BIPIA.is_dir():
        pytest.skip(PUBLIC_DATA)
    found: list[str] = []
    for name in ("text_attack_train.json", "code_attack_train.json"):
        for group in json.loads((BIPIA / name).read_text(encoding="utf-8")).values():
            found += group
    return found


def mails() -> list[str]:
    lines = (BIPIA / "email_train.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["context"] for line in lines]


def result(text: str, number: int, *, is_error: bool = False, trust: str = "tool_external") -> ReplayedTranscript:
    """A user asks, a tool returns this text; where it is an error, the call is mended and works."""
    call = ReplayedCall(id="c1", name="read_mail", arguments='{"box": "in", "limit": 5}')
    again = ReplayedCall(id="c2", name="read_mail", arguments='{"box": "inbox", "limit": 5}')
    lines = [
        said("What is new?", ordinal=1),
        ReplayedUtterance(
            ordinal=2, ref="§2", role="assistant", text="", trust="assistant", principal="ann", calls=(call,)
        ),
        ReplayedUtterance(
            ordinal=3,
            ref="§3",
            role="tool",
            text=f"Error: {text}" if is_error else text,
            trust=trust,  # type: ignore[arg-type]
            principal="ann",
            call_id="c1",
            tool="read_mail",
            is_error=is_error,
        ),
        ReplayedUtterance(
            ordinal=4, ref="§4", role="assistant", text="", trust="assistant", principal="ann", calls=(again,)
        ),
        ReplayedUtterance(
            ordinal=5,
            ref="§5",
            role="tool",
            text="2 mails",
            trust=trust,
            principal="ann",
            call_id="c2",  # type: ignore[arg-type]
            tool="read_mail",
        ),
        ReplayedUtterance(ordinal=6, ref="§6", role="assistant", text=text, trust="assistant", principal="ann"),
    ]
    return replayed(f"s{number}", *lines)


def active_of(talks: Iterator[ReplayedTranscript]) -> list[tuple[str, str]]:
    """Kind and text of what is active in any scope."""
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        key = store.keys.address_key(TENANT)
        for talk in talks:
            ledger.absorb(*build_artifact(talk, lasting(harvest(talk)), extractor=EXTRACTOR, key=key))
        return [(one.kind, one.text) for one in ledger.records(JudgementContext(now=NOW)) if one.status == "active"]


def passages(text: str) -> set[str]:
    words = "".join(char if char.isalnum() else " " for char in text.lower()).split()
    return {" ".join(words[at : at + PASSAGE_WORDS]) for at in range(len(words) - PASSAGE_WORDS + 1)}


@pytest.mark.parametrize("trust", ["tool_external", "tool_internal"])
def test_attacks_in_what_tools_return_make_nothing_active(trust: str) -> None:
    found = attacks()
    assert len(found) == 125
    assert active_of(result(text, number, trust=trust) for number, text in enumerate(found)) == []


def test_attacks_planted_in_mails_make_nothing_active() -> None:
    found, letters = attacks(), mails()
    planted = (f"{letters[number % len(letters)]}\n{text}" for number, text in enumerate(found))
    assert active_of(result(text, number) for number, text in enumerate(planted)) == []


def test_our_own_poisons_in_what_tools_return_make_nothing_active() -> None:
    assert active_of(result(text, number) for number, text in enumerate((*poisons(), *poisons()))) == []


def test_attacks_as_errors_that_a_fix_recovers_leave_none_of_their_words() -> None:
    found = attacks()
    active = active_of(result(text, number, is_error=True) for number, text in enumerate((*found, *found)))
    said_in = set().union(*map(passages, found))
    assert [text for kind, text in active if kind != "tool_fix" or passages(text) & said_in] == []


def test_a_harvester_that_is_wholly_fooled_by_tools_makes_nothing_active() -> None:
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        key = store.keys.address_key(TENANT)
        for number, text in enumerate((*poisons(), *poisons())):
            talk = result(text, number, trust=("tool_external", "tool_internal")[number % 2])
            lines = [line for line in talk.utterances if line.text in (text,)]
            fooled = [claim(line, principal=f"u{number}") for line in lines]
            ledger.absorb(*build_artifact(talk, fooled, extractor=EXTRACTOR, key=key))
        assert ledger.size().components > 50
        assert list(ledger.records(JudgementContext(now=NOW))) == [], "no person says any of it"
