"""Who speaks, and how many voices unknown speakers are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ctxsteward.envelope import open_store
from ctxsteward.envelope.store import Store
from ctxsteward.schemas.message import take_wire
from ctxsteward.steward import Ledger
from ctxsteward.steward.artifacts.artifact import Artifact, build_artifact
from ctxsteward.steward.harvest.harvester import harvest
from ctxsteward.steward.ingest.replayer import TranscriptMessage, replay, said_by
from ctxsteward.steward.observations.transcript import ReplayedTranscript


def told(*roles: str, format: str, is_injected: bool = False) -> ReplayedTranscript:
    names = {"user": "Ann", "assistant": "Bob"}
    every: Sequence[TranscriptMessage] = [
        TranscriptMessage(number, role, f"{names[role]}: hello there", is_injected=is_injected)
        for number, role in enumerate(roles, 1)
    ]
    return replay(every, source="talk.json", session="talk-1", format=format, digest="")


@pytest.mark.parametrize("format", ["openai", "anthropic", "tau-bench", "swe-agent", "store"])
def test_a_name_in_the_text_makes_no_person_of_an_assistant(format: str) -> None:
    replayed = told("user", "assistant", format=format)
    assert [one.trust for one in replayed.utterances] == ["user", "assistant"]
    assert {one.principal for one in replayed.utterances} == {None}


@pytest.mark.parametrize("format", ["openai", "store"])
def test_what_was_injected_is_nobodys_word(format: str) -> None:
    replayed = told("user", "assistant", format=format, is_injected=True)
    assert {one.trust for one in replayed.utterances} == {"tool_external"}


def test_speakers_that_nobody_named_are_one_voice_however_many_sessions_they_had() -> None:
    def heard(store: Store, session: str, principal: str | None) -> tuple[Artifact, ...]:
        said = TranscriptMessage(2, "user", "No, the baggage allowance is 23 kg, not 20 kg.", principal=principal)
        terms = take_wire(
            {
                "role": "tool",
                "tool_call_id": "c1",
                "name": "terms",
                "content": '{"item": "baggage allowance", "is": "23 kg"}',
            }
        )
        replayed = replay(
            [said_by(1, terms[1]), said],
            source=session,
            session=session,
            format="openai",
            digest=session,
            confirming_tools={"terms": ("is",)},
        )
        return build_artifact(replayed, harvest(replayed), extractor="harvest/1", key=store.keys.address_key("acme"))

    with open_store("memory:") as store, Ledger.open(":memory:", store, "acme", "support") as ledger:
        for number in range(40):
            ledger.absorb(*heard(store, f"s-{number}", None))
        ledger.absorb(*heard(store, "t-1", "ann"))
        assert [one for one in ledger.records() if one.scope.is_shared and one.status == "active"] == []
        assert max(one.support.principals for one in ledger.records()) <= 2
        for who in ("bob", "cem"):
            ledger.absorb(*heard(store, f"t-{who}", who))
        (one,) = (one for one in ledger.records() if one.scope.is_shared and one.status == "active")
        assert one.support.principals == 4  # three that are known, and all the others
