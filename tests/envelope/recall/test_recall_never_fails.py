"""Recall never fails, whatever the run, the budget and the question; and a failure says whose fault it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, ScoredOriginal, SelectionRequest, Session
from ctxsteward.envelope.recall.heuristic import Heuristic
from ctxsteward.envelope.testing import memory_store
from ctxsteward.envelope.transcripts.files import read_transcripts
from ctxsteward.schemas import publish

from ...examples import drawn, examples
from ..agent_histories import agent_history
from ..messages import CHARS, char_builder

DATA = Path(__file__).parents[3] / "../shared/data"
FILLER = "The pump on level four hums and nobody minds it much. "
LONG_CHANGE = "Change of plan: my budget is 120,000 yen. " + FILLER * 30
"""Its first passage replaces an older budget; there are several passages."""


def failures(envelope: Envelope) -> list[str]:
    """Findings that say that recall did not come about."""
    return [one.text for one in envelope.findings if one.kind in ("selection_failed", "recall_failed")]


def spoken(maker: EnvelopeBuilder, said: dict[int, str], upto: int = 30) -> Session:
    session = memory_store().session("s", counter=CHARS)
    for n in range(1, upto + 1):
        text = said.get(n, f"talk of {chr(96 + n % 26) * 5} " + "and more " * 4)
        session.append({"role": ("assistant", "user")[n % 2], "content": text})
        maker.build(session)
    return session


def choosing(picks: Sequence[ScoredOriginal], dynamic_tokens: int = 4_000) -> EnvelopeBuilder:
    budgets = Budgets(dynamic_tokens=dynamic_tokens, recall_fraction=0.6)
    return char_builder(budgets, selector=lambda request: picks)


# -- the look-up of what came along --------------------------------------------------------------------------------


def test_what_came_along_in_passages_is_logged_by_its_passages() -> None:
    """§3 is ranked; of §11, which is long, the passage that replaces it comes along."""
    maker = choosing([ScoredOriginal(3, 1.0)])
    session = spoken(maker, {3: "My budget is 90,000 yen.", 11: LONG_CHANGE}, upto=200)
    session.append({"role": "user", "content": "What is it now?"})
    assert failures(maker.build(session)) == []
    chosen = session.state.recalled
    assert chosen is not None
    assert (chosen.refs, chosen.passages) == ((3, 11), {11: (1,)})
    why = {row["ref"]: (row["in"], row["why"]) for row in chosen.log["candidates"]}
    assert why == {"§3": (True, "ranked, and it fits"), "§11.1": (True, "it replaces what a candidate says")}


PICKS = st.lists(
    st.builds(ScoredOriginal, st.integers(1, 40), st.just(1.0), st.just({}), st.integers(0, 4)), max_size=30
)
PLACES = st.lists(st.integers(1, 40), min_size=2, max_size=8, unique=True).map(sorted)
ASKED = st.sampled_from(["What is it now?", "See §3 and §11-§14.", "What did §7 say about the pump on level four?"])


@given(PLACES, PICKS, ASKED, st.integers(300, 6_000))
@settings(max_examples=examples(60))
def test_no_ranking_makes_recall_fail(
    places: list[int], picks: list[ScoredOriginal], asked: str, dynamic_tokens: int
) -> None:
    """Budgets that replace one another, short and long; whole messages and passages in any order."""
    said = {n: LONG_CHANGE.replace("120", str(100 + n)) if n % 2 else f"My budget is {n}0,000 yen." for n in places}
    maker = choosing(picks, dynamic_tokens)
    session = spoken(maker, said, upto=40)
    session.append({"role": "user", "content": asked})
    assert failures(maker.build(session)) == []
    if session.state.recalled is not None and session.state.recalled.log:
        publish.validate("selection_log", session.state.recalled.log)


# -- runs, budgets, questions --------------------------------------------------------------------------------------


def questions(wires: Sequence[dict[str, Any]]) -> list[str]:
    """What somebody may ask about a run: texts out of it, and references into it."""
    texts = [wire["content"][:300] for wire in wires if isinstance(wire.get("content"), str) and wire["content"]]
    return [*texts[:: max(1, len(texts) // 6)], f"What did §{len(wires) // 2} say?", "Repeat the last error message."]


def asked_of(wires: Sequence[dict[str, Any]], dynamic_tokens: int) -> Iterator[Envelope]:
    session = memory_store().session("s")
    maker = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=dynamic_tokens))
    session.extend(wires)
    maker.build(session)
    for question in questions(wires):
        yield maker.preview(session, question)


@pytest.mark.parametrize("dynamic_tokens", [900, 2_000, 8_000])
def test_recall_never_fails_on_generated_runs(dynamic_tokens: int) -> None:
    envelopes = [one for seed in range(4) for one in asked_of(agent_history(seed, steps=40), dynamic_tokens)]
    assert len(envelopes) >= 24
    assert any(one.dynamic.context is not None for one in envelopes)
    assert [text for one in envelopes for text in failures(one)] == []


@pytest.mark.skipif(not DATA.is_dir(), reason="the real data (../shared/data) is not here")
@pytest.mark.parametrize("dynamic_tokens", drawn([8_000, 16_000], 1, "recall on real runs"))
def test_recall_never_fails_on_real_runs(dynamic_tokens: int) -> None:
    """Several runs behind one another, so that 16,000 tokens do not hold all of them."""
    files = [DATA / "tau_bench_airline/runs_even_tasks.jsonl", *sorted((DATA / "swe_agent").glob("*.traj"))]
    runs = [[entry.wire for entry in one.entries()] for path in files for one in islice(read_transcripts(path), 14)]
    joined = [[wire for run in runs[at : at + 7] for wire in run] for at in range(0, len(runs), 7)]
    envelopes = [one for wires in joined for one in asked_of(wires, dynamic_tokens)]
    assert len(envelopes) >= 30
    assert any(one.dynamic.context is not None for one in envelopes)
    assert [text for one in envelopes for text in failures(one)] == []


# -- whose fault it is -----------------------------------------------------------------------------------------------


def test_a_fault_of_ours_is_not_told_as_one_of_the_selector(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> Any:
        raise KeyError("§38")

    maker = choosing([ScoredOriginal(3, 1.0)], dynamic_tokens=1_000)
    session = spoken(maker, {}, upto=60)
    session.append({"role": "user", "content": "What is it now?"})
    monkeypatch.setattr("ctxsteward.envelope.recall.room.RecallRoom.fill", broken)
    (finding,) = (one for one in maker.build(session).findings if one.kind == "recall_failed")
    assert finding.text == (
        "nothing was recalled for this turn: recall itself failed, not the selector: KeyError: '§38'; "
        "this is a fault of ctxsteward, please report it"
    )


def test_a_fault_of_our_own_ranker_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Heuristic, request: SelectionRequest) -> Any:
        raise ZeroDivisionError("division by zero")

    maker = char_builder(Budgets(dynamic_tokens=1_000), selector="heuristic")
    session = spoken(maker, {}, upto=60)
    session.append({"role": "user", "content": "What is it now?"})
    monkeypatch.setattr(Heuristic, "__call__", broken)
    findings = maker.build(session).findings
    assert [one.kind for one in findings if one.kind.endswith("_failed")] == ["recall_failed"]


def test_a_selector_of_the_caller_is_named_where_it_fails() -> None:
    class OverHttp:
        def __call__(self, request: SelectionRequest) -> Sequence[ScoredOriginal]:
            raise TimeoutError("the index is down")

    maker = char_builder(Budgets(dynamic_tokens=1_000), selector=OverHttp())
    session = spoken(maker, {}, upto=60)
    session.append({"role": "user", "content": "What is it now?"})
    (finding,) = (one for one in maker.build(session).findings if one.kind == "selection_failed")
    assert (
        finding.text
        == "nothing was recalled for this turn: the selector OverHttp failed: TimeoutError: the index is down"
    )
