"""What a later message replaces is recalled only beside it, and says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, SelectionRequest, Session, Store
from ctxsteward.envelope.recall.heuristic import SupersessionIndex
from ctxsteward.envelope.recall.selection import ScoredOriginal, request_for, verbatim
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import Message, Ref
from ctxsteward.schemas.summary import SourceMessage
from ctxsteward.summarizers import Reader

from ..messages import CHARS, char_builder

ONCE = {3: "My budget is 90,000 yen.", 11: "Change of plan: my budget is 120,000 yen."}
TWICE = {**ONCE, 7: "Change of plan: my budget is 100,000 yen."}


def builder(picks: Sequence[int], recall_fraction: float = 0.6) -> EnvelopeBuilder:
    def choose(request: SelectionRequest) -> Sequence[ScoredOriginal]:
        return [ScoredOriginal(ordinal, 1.0) for ordinal in picks]

    budgets = Budgets(dynamic_tokens=1_000, recall_fraction=recall_fraction)
    return char_builder(budgets, selector=choose)


def spoken(maker: EnvelopeBuilder, said: Mapping[int, str], store: Store | None = None, upto: int = 30) -> Session:
    session = (store or memory_store()).session("s", counter=CHARS)
    for n in range(1, upto + 1):
        text = said.get(n, f"talk of {chr(96 + n) * 5} " + "and more " * 4)
        session.append({"role": ("assistant", "user")[n % 2], "content": text})
        maker.build(session)
    session.append({"role": "user", "content": "What is it now?"})
    return session


def recalled(maker: EnvelopeBuilder, session: Session) -> str:
    context = maker.build(session).dynamic.context
    return context.text if context else ""


def test_an_old_value_comes_with_the_new_one_and_names_it() -> None:
    maker = builder(picks=[3])
    session = spoken(maker, ONCE)
    text = recalled(maker, session)
    assert "§3 user, superseded by §11: My budget is 90,000 yen.\n" in text
    assert "§11 user: Change of plan: my budget is 120,000 yen.\n" in text
    chosen = session.state.recalled
    assert chosen is not None
    why = {row["ref"]: row["why"] for row in chosen.log["candidates"]}
    assert why == {"§3": "ranked, and it fits", "§11": "it replaces what a candidate says"}


def test_of_a_chain_the_newest_comes() -> None:
    maker = builder(picks=[3])
    text = recalled(maker, spoken(maker, TWICE))
    assert "§3 user, superseded by §11: " in text
    assert "§7 " not in text


def test_an_old_value_stays_away_where_the_new_one_does_not_fit() -> None:
    maker = builder(picks=[3], recall_fraction=0.1)
    session = spoken(maker, ONCE)
    assert recalled(maker, session) == ""
    chosen = session.state.recalled
    assert chosen is not None
    assert [row["why"] for row in chosen.log["candidates"]] == ["§11 replaces it: no room"]


def test_a_new_value_that_the_window_shows_is_not_shown_twice() -> None:
    said = {3: ONCE[3], 30: ONCE[11]}
    maker = builder(picks=[3])
    session = spoken(maker, said)
    text = recalled(maker, session)
    assert 30 in {ordinal for group in session.state.groups for ordinal in group.ordinals}
    assert "§3 user, superseded by §30: " in text
    assert "§30 assistant" not in text


def test_it_is_recorded_and_shown_again_by_a_reader_without_any_rule() -> None:
    store = memory_store()
    maker = builder(picks=[3])
    text = recalled(maker, spoken(maker, ONCE, store))
    again = store.session("s", counter=CHARS)
    assert again.state.recalled is not None
    assert again.state.recalled.superseded == {3: (11,)}
    assert maker.rebuild(again).dynamic.context is not None
    assert recalled(builder(picks=[]), again) == text


@pytest.mark.parametrize("ordinal", [2, 5, 11])
def test_what_nothing_replaces_is_unmarked(ordinal: int) -> None:
    maker = builder(picks=[ordinal])
    text = recalled(maker, spoken(maker, ONCE))
    assert f"§{ordinal} " in text
    assert "superseded" not in text


def test_each_thing_that_was_replaced_is_followed_to_its_newest() -> None:
    """§3 says two things, replaced by two messages; §7 replaces one of them and says a third that §11 replaces."""
    said = {
        3: "My budget is 90,000 yen. The train leaves at 14:30.",
        7: "Change of plan: my budget is 120,000 yen.",
        11: "Correction: the train leaves at 16:45.",
    }
    maker = builder(picks=[3])
    text = recalled(maker, spoken(maker, said, upto=90))
    assert "§3 user, superseded by §7, §11: " in text
    assert "120,000" in text
    assert "16:45" in text


def test_a_chain_of_other_things_is_no_chain() -> None:
    said = {
        3: "My budget is 90,000 yen.",
        7: "Change of plan: my budget is 120,000 yen. The train leaves at 14:30.",
        11: "Correction: the train leaves at 16:45.",
    }
    maker = builder(picks=[3])
    text = recalled(maker, spoken(maker, said, upto=90))  # what comes back of so much holds all three
    assert "§3 user, superseded by §7: " in text
    assert "§7 user, superseded by §11: " in text
    assert "120,000" in text


def test_a_bullet_that_cites_the_newer_one_for_something_else_is_not_enough() -> None:
    said = {**ONCE, 11: "We must stay in the hotel HX-4471. Change of plan: my budget is 120,000 yen."}
    maker = builder(picks=[3])
    session = spoken(maker, said)
    text = recalled(maker, session)
    assert "§11" in {ref for bullet in session.state.bullets for ref in bullet.citations} | {"§11"}
    assert "§11 user: We must stay" in text


def test_an_old_value_goes_when_a_compaction_takes_the_new_one_from_under_it() -> None:
    said = {3: ONCE[3], 27: ONCE[11]}
    maker = builder(picks=[3], recall_fraction=0.3)
    session = spoken(maker, said)
    assert "§3 user, superseded by §27: " in recalled(maker, session)
    for n in range(12):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        session.append({"role": "assistant", "content": None, "tool_calls": [call]})
        session.append({"role": "tool", "tool_call_id": f"c{n}", "content": "word " * 12})
        envelope = maker.build(session)
        verbatim_now = {ordinal for group in session.state.groups for ordinal in group.ordinals}
        context = envelope.dynamic.context.text if envelope.dynamic.context else ""
        assert "§3 " not in context or 27 in verbatim_now or "\n§27 user: " in context
    assert 27 not in {ordinal for group in session.state.groups for ordinal in group.ordinals}


def test_what_is_left_of_a_recall_goes_too_where_there_is_no_room_for_it() -> None:
    """The compaction that takes the newer value away is the one after which the section is still over its budget."""
    maker = builder(picks=[3, 5, 8, 9], recall_fraction=0.4)
    session = spoken(maker, {3: ONCE[3], 27: ONCE[11]})
    assert "§3 user, superseded by §27: " in recalled(maker, session)
    calls = [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id in "abc"]
    session.append({"role": "assistant", "content": None, "tool_calls": calls})
    session.extend([{"role": "tool", "tool_call_id": id, "content": "w " * 100} for id in "abc"])
    envelope = maker.build(session)
    assert len(envelope.reports) == 1
    assert envelope.section("dynamic").overflow_tokens == 0
    assert [finding.kind for finding in envelope.findings] == ["recall_dropped"]


def test_every_message_is_read_once_and_a_shorter_log_is_read_anew() -> None:
    read: list[str] = []

    class Noted(Reader):
        def read(self, message: SourceMessage) -> None:
            read.append(message.ref)
            super().read(message)

    maker = builder(picks=[3])
    session = spoken(maker, ONCE)
    histories = SupersessionIndex(Noted, CHARS)

    def ask(last: int) -> tuple[int, ...]:
        query = session.entry(len(session)).message
        request = request_for(session, query, last=last, visible=verbatim(session.state), budget_tokens=1)
        return tuple(ref.ordinal for ref in histories(request).replaced_by(Ref(3)))

    assert [ask(10), ask(20), ask(20), ask(30)] == [(), (11,), (11,), (11,)]
    assert read == [f"§{n}" for n in range(1, 31)]
    assert ask(5) == ()
    assert len(read) == 35


def test_a_long_chain_of_updates_stays_quick_and_small() -> None:
    reader = Reader()
    for n in range(1, 3_001):
        wire = {"role": "user", "content": f"Update: my budget is now {1000 + n} yen."}
        reader.read(SourceMessage(ref=f"§{n}", message=Message.from_wire(wire)))
    assert {reader.replaced_by(f"§{n}") for n in range(1, 3_000)} == {("§3000",)}
    assert len(reader._updates._open) <= 2


def test_a_reply_begun_for_the_model_is_no_loop() -> None:
    maker = builder(picks=[3])
    session = spoken(maker, ONCE)
    session.append({"role": "assistant", "content": "Answer:"})
    assert "§3 user, superseded by §11: " in recalled(maker, session)


@pytest.mark.parametrize("asks", ["Go on.", "Go on from §3."])
def test_within_a_tool_loop_nothing_is_chosen_unless_a_compaction_hides_what_the_question_names(asks: str) -> None:
    """What the first call of a turn did without costs the bill more than it gives, also where the prefix is new."""
    asked: list[int] = []

    def choose(request: SelectionRequest) -> Sequence[ScoredOriginal]:
        asked.append(request.last)
        return []

    budgets = Budgets(dynamic_tokens=1_000, recall_fraction=0.4)
    maker = char_builder(budgets, selector=choose)
    session = memory_store().session("s", counter=CHARS)
    for text in ("Sort the shed.", "word " * 20, asks):
        session.append({"role": "user", "content": text})
        session.append({"role": "assistant", "content": "Fine."})
    session.append({"role": "user", "content": asks})
    compacted = 0
    for n in range(20):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        session.append({"role": "assistant", "content": None, "tool_calls": [call]})
        session.append({"role": "tool", "tool_call_id": f"c{n}", "content": "word " * 12})
        compacted += bool(maker.build(session).reports)
    assert compacted
    assert len(asked) == ("§3" in asks)
