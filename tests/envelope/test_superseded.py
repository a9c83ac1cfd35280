"""What a later message replaces is recalled only beside it, and says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Scored, SelectionRequest, Session, Store
from ctxsteward.envelope.counting import Counter
from ctxsteward.envelope.selection import request_for, verbatim
from ctxsteward.envelope.superseded import Superseded
from ctxsteward.envelope.testing import CharTokenizer, FirstLine, memory_store
from ctxsteward.schemas import SourceMessage
from ctxsteward.summarizers import replacing

CHARS = Counter(CharTokenizer())
ONCE = {3: "My budget is 90,000 yen.", 11: "Change of plan: my budget is 120,000 yen."}
TWICE = {**ONCE, 7: "Change of plan: my budget is 100,000 yen."}


def builder(picks: Sequence[int], recall_fraction: float = 0.6) -> EnvelopeBuilder:
    def choose(request: SelectionRequest) -> Sequence[Scored]:
        return [Scored(ordinal, 1.0) for ordinal in picks]

    budgets = Budgets(dynamic_tokens=1_000, recall_fraction=recall_fraction)
    return EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=budgets, summarizer=FirstLine(), selector=choose)


def spoken(maker: EnvelopeBuilder, said: Mapping[int, str], store: Store | None = None) -> Session:
    session = (store or memory_store()).session("s", counter=CHARS)
    for n in range(1, 31):
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
    assert [row["why"] for row in chosen.log["candidates"]] == ["§11 replaces it and does not fit"]


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
    assert again.state.recalled.superseded == {3: 11}
    assert maker.rebuild(again).dynamic.context is not None
    assert recalled(builder(picks=[]), again) == text


@pytest.mark.parametrize("ordinal", [2, 5, 11])
def test_what_nothing_replaces_is_unmarked(ordinal: int) -> None:
    maker = builder(picks=[ordinal])
    text = recalled(maker, spoken(maker, ONCE))
    assert f"§{ordinal} " in text
    assert "superseded" not in text


def test_every_message_is_read_once_and_a_draft_is_not_remembered() -> None:
    read: list[str] = []

    def noted() -> object:
        inner = replacing()

        def reader(message: SourceMessage) -> Sequence[str]:
            read.append(message.ref)
            return inner(message)

        return reader

    maker = builder(picks=[3])
    session = spoken(maker, ONCE)
    superseded = Superseded(noted)  # type: ignore[arg-type]

    def ask(last: int) -> Mapping[int, int]:
        query = session.entry(len(session)).message
        return superseded(request_for(session, query, last=last, visible=verbatim(session.state), budget_tokens=1))

    assert [ask(10), ask(20), ask(20), ask(30)] == [{}, {3: 11}, {3: 11}, {3: 11}]
    assert read == [f"§{n}" for n in range(1, 31)]
    assert ask(5) == {}  # it forgets what a shorter log does not hold
    assert len(read) == 35
