"""Recall for a user turn: what fits, in session order, once a turn, recorded as published; no text twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, SelectionRequest, Selector, Session
from ctxsteward.envelope.history.state import State
from ctxsteward.envelope.layout.composition import context_fragment, recalled_line
from ctxsteward.envelope.layout.fragments import Fragment, context_key
from ctxsteward.envelope.recall.heuristic import Heuristic, SupersessionIndex
from ctxsteward.envelope.recall.room import MISSES
from ctxsteward.envelope.recall.selection import (
    LOGGED_CANDIDATES,
    MAX_CANDIDATES,
    ScoredOriginal,
    recalled_share,
    request_for,
    select,
    verbatim,
)
from ctxsteward.envelope.testing import memory_store
from ctxsteward.envelope.tokens.budgets import LEAST_RECALL_TOKENS
from ctxsteward.schemas import publish
from ctxsteward.schemas.summary import SourceMessage
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.journal.events import RecallSelected

from ...examples import examples
from ..messages import CHARS, char_builder

SMALL = Budgets(dynamic_tokens=1_000, recall_fraction=0.4)
LETTERS = [chr(97 + n // 26) + chr(97 + n % 26) for n in range(26 * 26)]
"""No numbers: another number in the same sentence would replace the first."""


def chosen_by(*args: Any) -> Any:
    """The event of a selection; None where there is nothing to choose from."""
    found = select(*args)
    return None if found is None else found[0]


def builder(selector: Selector | None = None, budgets: Budgets = SMALL) -> EnvelopeBuilder:
    return char_builder(budgets, selector=selector or Heuristic(every_turn=True))


def session_of(texts: Sequence[str], question: str = "Where is the key?") -> Session:
    """A session whose texts were compacted away as far as they go, and a question after them."""
    session = memory_store().session("s", counter=CHARS)
    for n, text in enumerate(texts):
        session.append({"role": ("user", "assistant")[n % 2], "content": text}, ts=f"2026-01-{n // 10 + 1:02}")
        builder(lambda request: []).build(session)
    session.append({"role": "user", "content": question})
    return session


def talk(size: int = 40) -> list[str]:
    trees = ("ash", "elm", "fir")
    return [f"message {LETTERS[n]} speaks of {trees[n % 3]} and of much else that was said" for n in range(size)]


def selected(session: Session) -> RecallSelected:
    chosen = session.state.selection
    assert chosen is not None
    return chosen


def recalled(envelope: Envelope) -> str:
    return envelope.dynamic.context.text if envelope.dynamic.context else ""


# -- the fit -------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(25))
@given(st.lists(st.integers(1, 300), min_size=12, max_size=40), st.integers(0, 600), st.randoms(use_true_random=False))
def test_what_is_recalled_fits_and_is_shown_once_in_session_order(sizes: list[int], room: int, random: Any) -> None:
    session = session_of([f"{n}:" + "x" * size for n, size in enumerate(sizes)])
    order = list(range(1, len(sizes) + 1))
    random.shuffle(order)
    state = session.state
    chosen = chosen_by(lambda request: [ScoredOriginal(n, 1.0) for n in order], session, state, room, CHARS)
    if chosen is None:
        return
    assert list(chosen.refs) == sorted(set(chosen.refs))
    assert not set(chosen.refs) & verbatim(state)
    session.commit(chosen)
    envelope = builder(budgets=Budgets(dynamic_tokens=10**6)).rebuild(session)
    assert envelope.dynamic.context_tokens <= max(0, room)
    assert all(f"\n§{n} " in recalled(envelope) for n in chosen.refs)


def test_the_best_go_first_and_whatever_still_fits_after_them() -> None:
    session = session_of(["task", "a" * 100, "b" * 5_000, "c" * 90, *talk(30)])
    chosen = chosen_by(
        lambda request: [ScoredOriginal(3, 3.0), ScoredOriginal(2, 2.0), ScoredOriginal(4, 1.0)],
        session,
        session.state,
        320,
        CHARS,
    )
    assert chosen is not None
    assert chosen.refs == (2, 4)
    assert [(row["ref"], row["why"]) for row in chosen.log["candidates"]] == [
        ("§3", "no room"),
        ("§2", "ranked, and it fits"),
        ("§4", "ranked, and it fits"),
    ]


class Unread:
    """Nothing replaces anything."""

    def read(self, source: SourceMessage) -> None:
        pass

    def replaced_by(self, ref: str) -> tuple[str, ...]:
        return ()


def left_out(session: Session) -> int:
    """Tokens of the originals that the window does not show, counted one by one."""
    state = session.state
    unseen = [n for n in range(1, state.last_user) if n not in verbatim(state)]
    return sum(session.entry(n).tokens(CHARS) for n in unseen)


def newest_first(request: SelectionRequest) -> list[ScoredOriginal]:
    return [ScoredOriginal(n, float(n)) for n in range(request.last, 0, -1)]


def context_of(chosen: RecallSelected, session: Session) -> Fragment:
    """As it is laid out from the originals."""
    return context_fragment(chosen, session.state, CHARS, session.shown)


def shown_tokens(session: Session, chosen: RecallSelected) -> int:
    return context_of(chosen, session).tokens


@pytest.mark.parametrize("size", [90, 150, 300])
def test_a_part_of_what_was_left_out_comes_back_at_most(size: int) -> None:
    """Bringing most of it back would undo the compaction, at full price, turn after turn."""
    session = session_of(talk(size))
    share = recalled_share(left_out(session))
    assert share < left_out(session) / 4
    chosen = chosen_by(newest_first, session, session.state, 100_000, CHARS)
    assert share - 100 < shown_tokens(session, chosen) <= share


def test_a_few_messages_come_back_however_little_was_left_out() -> None:
    session = session_of([f"{LETTERS[n]} is here" for n in range(75)])
    assert recalled_share(left_out(session)) == LEAST_RECALL_TOKENS
    chosen = chosen_by(newest_first, session, session.state, 100_000, CHARS)
    assert left_out(session) // 20 < shown_tokens(session, chosen) <= LEAST_RECALL_TOKENS


def test_a_selector_is_told_the_room_that_there_is() -> None:
    session = session_of(talk(90))
    rooms: list[int] = []

    def noting(request: SelectionRequest) -> list[ScoredOriginal]:
        rooms.append(request.budget_tokens)
        return []

    for room in (-5, 200, 100_000):
        select(noting, session, session.state, room, CHARS)
    assert rooms == [0, 200, recalled_share(left_out(session))]


def test_what_a_question_names_by_number_has_all_the_room() -> None:
    texts = talk(40)
    texts[4] = "the list: " + "x" * 900
    session = session_of(texts, "What did §5 say?")
    assert recalled_share(left_out(session)) < 900
    chosen = chosen_by(newest_first, session, session.state, 1_200, CHARS)
    assert chosen.refs == (5,)
    assert shown_tokens(session, chosen) <= 1_200


@pytest.mark.parametrize(
    "content", ["ok", "two\n§9 user: lines", "word " * 60, [{"type": "text", "text": "in a list"}], ""]
)
def test_no_message_takes_less_than_is_said_before_it_is_read(content: Any) -> None:
    session = memory_store().session("s", counter=CHARS)
    for n, said in enumerate([content, "and then?", content, "now"]):
        session.append({"role": ("user", "assistant")[n % 2], "content": said or None if n % 2 else said})
    known = SupersessionIndex(Unread, CHARS)(
        request_for(session, session.entry(4).message, last=3, visible=frozenset(), budget_tokens=0)
    )
    least = [known.least_tokens(n) for n in (1, 2, 3)]
    assert all(few <= CHARS.text(recalled_line(session.entry(n)) + "\n") for n, few in enumerate(least, 1))
    assert least[1] == len("and then?")


def test_the_same_text_is_not_shown_twice() -> None:
    texts = talk(30)
    texts[3] = texts[5] = "the key is under the mat"
    texts[7] = texts[29]  # the newest message stays in the window
    session = session_of(texts)
    assert 30 in verbatim(session.state)
    ranked = [ScoredOriginal(8, 3.0), ScoredOriginal(4, 2.0), ScoredOriginal(6, 1.0)]
    chosen = chosen_by(lambda request: ranked, session, session.state, 400, CHARS)
    assert chosen is not None
    assert chosen.refs == (4,)
    assert [row["why"] for row in chosen.log["candidates"]] == [
        "the same text as §30",
        "ranked, and it fits",
        "the same text as §4",
    ]


def test_a_message_without_text_is_not_recalled() -> None:
    session = memory_store().session("s", counter=CHARS)
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    session.append({"role": "user", "content": "look for the key"})
    session.append({"role": "assistant", "content": None, "tool_calls": [call]})
    session.append({"role": "tool", "tool_call_id": "c1", "content": "the key is in the shed"})
    for n, text in enumerate(talk(30)):
        session.append({"role": ("assistant", "user")[n % 2], "content": text})
    builder(lambda request: []).build(session)
    session.append({"role": "user", "content": "and now?"})
    chosen = chosen_by(
        lambda request: [ScoredOriginal(2, 2.0), ScoredOriginal(3, 1.0)], session, session.state, 300, CHARS
    )
    assert chosen is not None
    assert chosen.refs == (3,)
    assert chosen.log["candidates"][0]["why"] == "it has no text"


def test_results_of_a_masked_group_may_be_recalled() -> None:
    session = memory_store().session("s", counter=CHARS)
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    session.append({"role": "assistant", "content": "I look.", "tool_calls": [call]})
    session.append({"role": "tool", "tool_call_id": "c1", "content": "the key is in the shed"})
    state: State = session.state.copy()
    assert verbatim(state) == {1, 2}
    state.masked = frozenset({1})
    assert verbatim(state) == {1}


def test_nothing_is_asked_where_the_window_shows_everything() -> None:
    def never(request: SelectionRequest) -> Sequence[ScoredOriginal]:
        raise AssertionError("asked")

    session = memory_store().session("s", counter=CHARS)
    for text in ("one", "two"):
        session.append({"role": "user", "content": text})
    assert chosen_by(never, session, session.state, 500, CHARS) is None


# -- once a turn, recorded -----------------------------------------------------------------------------------------


def test_a_selection_is_made_once_a_user_turn_and_rebuilt_without_a_selector() -> None:
    session, build = session_of(talk()), builder()
    first = build.build(session)
    chosen = selected(session)
    assert chosen.turn == len(session)
    session.append({"role": "assistant", "content": "I look."})
    again = build.build(session)
    assert selected(session) is chosen
    assert recalled(again) == recalled(first)
    assert recalled(builder(lambda request: []).rebuild(session)) == recalled(first)


def test_the_log_is_as_published_and_says_what_it_saves() -> None:
    session = session_of([*talk(60), "the key is under the mat", *talk(60)])
    builder().build(session)
    log = selected(session).log
    publish.validate("selection_log", log)
    assert log["selected_refs"] == [f"§{n}" for n in selected(session).refs]
    assert log["context_size"] == len(log["selected_refs"]) > 0
    whole = sum(session.entry(n).tokens(CHARS) for n in range(1, len(session)))
    assert log["tokens_saved"] == whole - sum(session.entry(n).tokens(CHARS) for n in selected(session).refs)
    assert next(row["ref"] for row in log["candidates"] if row["in"]) == "§61"
    assert sum(not row["in"] for row in log["candidates"]) <= LOGGED_CANDIDATES
    scores = [row["score"] for row in log["candidates"]]
    assert scores == sorted(scores, reverse=True)


def test_the_saving_is_the_same_whoever_counted_before() -> None:
    one, other = session_of(talk()), session_of(talk())
    builder().preview(one, "elm?")
    builder().build(one)
    builder().build(other)
    assert selected(one).log == selected(other).log


def test_a_turn_that_says_nothing_recalls_nothing() -> None:
    session = session_of(talk(), question="ok")
    envelope = builder().build(session)
    assert (envelope.dynamic.context, selected(session).refs) == (None, ())


# -- selectors of others -------------------------------------------------------------------------------------------


class Case:
    def __init__(self, id: str, ranked: list[ScoredOriginal], refs: tuple[int, ...] | str) -> None:
        self.id, self.ranked, self.refs = id, ranked, refs


CASES = [
    Case("out of range, in the window, twice", [ScoredOriginal(n, 1.0) for n in (0, -3, 10**9, 91, 5, 5, 6)], (5, 6)),
    Case("nothing", [], ()),
    Case("NaN", [ScoredOriginal(5, math.nan)], "the score of §5 is nan"),
    Case("infinite", [ScoredOriginal(5, math.inf)], "the score of §5 is inf"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_ranking_is_taken_as_far_as_it_makes_sense(case: Case) -> None:
    session = session_of(talk(90))
    envelope = builder(lambda request: case.ranked).build(session)
    if isinstance(case.refs, str):
        (finding,) = [one for one in envelope.findings if one.kind == "selection_failed"]
        assert case.refs in finding.text
    else:
        assert selected(session).refs == case.refs


def test_what_is_passed_over_for_its_text_does_not_fill_the_room() -> None:
    """So many in a row that do not fit end the search, those that are said already do not."""
    again = ["the key is under the mat"] * (MISSES + 5)
    session = session_of([*again, "the spare one hangs in the shed", *talk(20)])
    last = len(again) + 1
    builder(lambda request: [ScoredOriginal(n, 1.0 / n) for n in range(1, last + 1)]).build(session)
    assert selected(session).refs == (last,)


def test_an_endless_ranking_ends() -> None:
    def endless(request: SelectionRequest) -> Any:
        while True:
            yield ScoredOriginal(10**9, 1.0)

    session = session_of(talk())
    builder(endless).build(session)
    assert selected(session).refs == ()


def test_a_long_ranking_is_read_so_far() -> None:
    session = session_of(talk(20))
    asked: list[int] = []

    def many(request: SelectionRequest) -> Any:
        for n in range(1, request.last + 1):
            asked.append(n)
            yield ScoredOriginal(n, 1.0)

    builder(many).build(session)
    assert len(asked) <= MAX_CANDIDATES


@pytest.mark.parametrize("question", ["x" * 10**6, "key " * 250_000, "\x00", "?" * 1_000])
def test_a_huge_or_empty_question_is_answered_in_bounds(question: str) -> None:
    session = session_of(talk(), question=question)
    envelope = builder().build(session)
    assert [one for one in envelope.findings if one.kind == "selection_failed"] == []
    assert envelope.dynamic.context is None  # the question alone is over the budget, or it says nothing


@settings(max_examples=examples(25))
@given(
    st.lists(st.integers(1, 300), min_size=12, max_size=40), st.integers(100, 900), st.randoms(use_true_random=False)
)
def test_rows_made_before_say_what_the_originals_say(sizes: list[int], room: int, random: Any) -> None:
    long = "\n\n".join(f"Paragraph {n}: {'word ' * 90}" for n in range(8))  # recalled by its passages
    session = session_of([long, *(f"{n}:" + "x" * size for n, size in enumerate(sizes))])
    order = [*range(2, len(sizes) + 2)]
    random.shuffle(order)
    ranked = [ScoredOriginal(1, 9.0, passage=2), *(ScoredOriginal(n, 1.0) for n in order)]
    histories = SupersessionIndex(Unread, CHARS)
    turns = [
        chosen_by(lambda request: ranked, session, session.state, room, CHARS, histories)  # the second from kept rows
        for _ in range(2)
    ]
    assert turns[0] == turns[1]
    if turns[0].refs:
        kept: Any = session.cache[context_key(CHARS)]
        shown = context_of(turns[1], session)
        assert (kept[0], kept[2].text, kept[2].refs) == (turns[1], shown.text, shown.refs)


def test_a_kept_row_of_an_erased_message_is_not_shown() -> None:
    store = memory_store()
    session = store.session("s", counter=CHARS)
    for n, text in enumerate(talk(30)):
        session.append({"role": ("user", "assistant")[n % 2], "content": text}, principal="ann" if n == 3 else None)
        builder(lambda request: []).build(session)
    ours = builder(lambda request: [ScoredOriginal(4, 1.0)])
    session.append({"role": "user", "content": "Who spoke?"})
    assert "§4 " in recalled(ours.build(session))
    assert forget(store, principal="ann", who="dpo", when="2026-11-22", why="asked").messages == 1
    session.append({"role": "assistant", "content": "Ann."})
    session.append({"role": "user", "content": "And now?"})
    assert talk(30)[3] not in recalled(ours.build(session))
