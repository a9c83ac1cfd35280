"""What users say wrongly, however often and in whatever company short of k, reaches nobody but themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from ctxsteward.envelope import Store
from ctxsteward.schemas.recommendation import MetaRecommendation
from ctxsteward.steward.artifacts import Artifact, build_artifact
from ctxsteward.steward.harvest.harvester import EXTRACTOR, harvest
from ctxsteward.steward.ledger import JudgementContext, Ledger
from ctxsteward.steward.observation import Observation
from ctxsteward.steward.transcript import ReplayedTranscript

from .poisons import poisons
from .scenes import AGENT, TENANT, claim, memory_store, replayed, said

SESSIONS = 1_000
NOW = "2026-11-22T00:00:00Z"
POISONS = tuple(poisons())


def session_of(number: int, who: str | None, texts: Sequence[str]) -> ReplayedTranscript:
    name = f"s{number}"
    principal = who or name
    lines = [said(text, ordinal=2 * at + 1, principal=principal) for at, text in enumerate(texts)]
    return replayed(name, *lines, principal=principal)


def worst(transcript: ReplayedTranscript) -> tuple[Observation, ...]:
    """Every line a strict claim for everybody: what a harvester that is wholly fooled would say."""
    return tuple(
        claim(line, reach="shared", kind="fact", slot=("agent", "rule", "many")) for line in transcript.users()
    )


def active_after(
    store: Store, transcripts: Iterable[ReplayedTranscript], harvested: object
) -> tuple[list[MetaRecommendation], Ledger]:
    key = store.keys.address_key(TENANT)
    kept: list[Artifact] = []
    for transcript in transcripts:
        kept += build_artifact(transcript, harvested(transcript), extractor=EXTRACTOR, key=key)  # type: ignore[operator]
    with Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        ledger.absorb(*kept)
        assert ledger.size().observations > 0
        return [one for one in ledger.records(JudgementContext(now=NOW)) if one.status == "active"], ledger


def beyond(active: Iterable[MetaRecommendation], authors: set[str]) -> list[str]:
    """Active records that reach somebody who did not say so."""
    return [
        one.text
        for one in active
        if (one.scope.user not in authors and not (one.scope.session or "").startswith("s"))
        or one.kind in ("policy", "persona")
    ]


def test_there_are_enough_of_them() -> None:
    assert len(set(POISONS)) >= 100
    assert sum(not text.isascii() for text in POISONS) >= 50


@pytest.mark.parametrize("harvested", [harvest, worst], ids=["harvested", "wholly fooled"])
class TestPoison:
    def test_one_user_in_a_thousand_sessions_reaches_only_herself(self, harvested: object) -> None:
        with memory_store() as store:
            talks = (
                session_of(number, "mallory", (POISONS[number % len(POISONS)], POISONS[(7 * number) % len(POISONS)]))
                for number in range(SESSIONS)
            )
            active, _ = active_after(store, talks, harvested)
            assert beyond(active, {"mallory"}) == []

    def test_one_less_than_k_who_collude_reach_only_themselves(self, harvested: object) -> None:
        with memory_store() as store:
            talks = (
                session_of(number, ("mallory", "mordred")[number % 2], POISONS[number % 10 :: 10])
                for number in range(60)
            )
            active, _ = active_after(store, talks, harvested)
            assert beyond(active, {"mallory", "mordred"}) == []
            assert all(one.scope.is_shared is False for one in active)

    def test_a_crowd_that_nobody_knows_is_one_voice(self, harvested: object) -> None:
        with memory_store() as store:
            talks = (session_of(number, None, POISONS[number % 20 :: 20]) for number in range(200))
            active, _ = active_after(store, talks, harvested)
            assert beyond(active, set()) == []
            assert all(one.scope.session is not None for one in active)

    def test_two_who_collude_and_a_crowd_are_three_voices_at_most_by_name(self, harvested: object) -> None:
        with memory_store() as store:
            whos = ("mallory", None, None, None)
            talks = (session_of(number, whos[number % 4], POISONS[number % 10 :: 10]) for number in range(120))
            active, _ = active_after(store, talks, harvested)
            assert beyond(active, {"mallory"}) == []


def test_k_people_who_agree_do_reach_others() -> None:
    """The gate is open to those it is meant for; else the tests above could not fail."""
    with memory_store() as store:
        talks = (session_of(number, f"u{number % 3}", ("The canteen opens at noon for all.",)) for number in range(3))
        active, _ = active_after(store, talks, worst)
        assert [one.scope.is_shared for one in active] == [True]
