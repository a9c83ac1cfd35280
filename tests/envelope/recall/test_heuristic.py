"""The default selector: it sees one session up to the question, whatever it knew before, from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import SelectionRequest, Session, Store
from ctxsteward.envelope.history.tool_groups import LogEntry
from ctxsteward.envelope.recall.heuristic import MAX_QUERY_CHARS, SILENT, Heuristic, units_of
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import Message, TextPart
from ctxsteward.schemas.message import Wire

from ...examples import examples
from ..messages import CHARS


def session_of(texts: list[str], *, store: Store | None = None, id: str = "s", tenant: str = "t") -> Session:
    session = (store or memory_store()).session(id, tenant=tenant, counter=CHARS)
    for n, text in enumerate(texts):
        session.append({"role": ("user", "assistant")[n % 2], "content": text}, ts=f"2026-01-{n // 4 + 1:02}T09:00:00")
    return session


def asking(session: Session, query: str, *, last: int | None = None, **more: Any) -> SelectionRequest:
    return SelectionRequest(
        tenant=session.tenant,
        session=session.id,
        generation=more.pop("generation", 0),
        query=Message(role="user", dialect="openai", parts=(TextPart(text=query),), wire={}),
        last=len(session) if last is None else last,
        visible=more.pop("visible", frozenset()),
        pinned=frozenset(),
        budget_tokens=more.pop("budget_tokens", 500),
        entry=more.pop("entry", session.entry),
    )


def refs(selector: Heuristic, request: SelectionRequest) -> list[tuple[int, float]]:
    return [(one.ordinal, one.score) for one in selector(request)]


SAID = ("ash", "birch", "cedar", "elm", "fir", "gum", "Ann:", "Bob:", "?")
texts = st.lists(st.lists(st.sampled_from(SAID), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=12)


@settings(max_examples=examples(40))
@given(texts, st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_a_ranking_depends_only_on_the_originals_up_to_the_question(said: list[str], lasts: list[int]) -> None:
    """In whatever order earlier and later states are asked about."""
    session, kept = session_of(said), Heuristic(every_turn=True)
    for last in lasts:
        last = min(last, len(said))
        fresh = Heuristic(every_turn=True)(asking(session_of(said[:last]), "ash and fir, Bob?"))
        assert refs(kept, asking(session, "ash and fir, Bob?", last=last)) == [(o.ordinal, o.score) for o in fresh]


def test_what_is_visible_is_not_ranked() -> None:
    session = session_of(["ash"] * 6)
    assert {
        ordinal for ordinal, _ in refs(Heuristic(every_turn=True), asking(session, "ash", visible=frozenset({1, 2, 5})))
    } == {
        3,
        4,
        6,
    }


def test_tenants_and_sessions_are_apart() -> None:
    store, selector = memory_store(), Heuristic(every_turn=True)
    mine = session_of(["the vault code is 4711", "noted"], store=store)
    others = [session_of(["ash", "elm"], store=store, tenant="u"), session_of(["ash", "elm"], store=store, id="other")]
    assert refs(selector, asking(mine, "vault code"))
    assert [refs(selector, asking(other, "vault code")) for other in others] == [[], []]


def test_a_turn_of_a_draft_is_not_taken_for_the_logs() -> None:
    session, selector = session_of(["ash", "elm"]), Heuristic(every_turn=True)
    draft = session.draft()
    draft.append({"role": "user", "content": "the secret plan"})
    assert refs(selector, asking(draft, "secret"))
    session.append({"role": "user", "content": "nothing of it"})
    assert refs(selector, asking(session, "secret")) == []


def test_replaced_originals_are_read_anew() -> None:
    session, selector = session_of(["the secret plan", "elm"]), Heuristic(every_turn=True)
    assert refs(selector, asking(session, "secret"))
    erased = session_of(["[erased]", "elm"])
    assert refs(selector, asking(session, "secret", entry=erased.entry, generation=1)) == []


def counted(session: Session) -> tuple[Callable[[int], LogEntry], list[int]]:
    read: list[int] = []

    def entry(ordinal: int) -> LogEntry:
        read.append(ordinal)
        return session.entry(ordinal)

    return entry, read


def test_a_turn_reads_what_was_appended_since() -> None:
    session, selector = session_of(["ash"] * 8), Heuristic(every_turn=True)
    entry, read = counted(session)
    selector(asking(session, "ash", entry=entry))
    assert read == list(range(1, 9))
    read.clear()
    session.append({"role": "user", "content": "elm"})
    selector(asking(session, "ash", entry=entry))
    assert read == [8, 9]  # 8: is it still the one that was indexed?


def test_the_index_used_longest_ago_leaves() -> None:
    store, selector = memory_store(), Heuristic(every_turn=True, max_sessions=2)
    sessions = [session_of(["ash", "elm"], store=store, id=name) for name in "abc"]
    for session in (sessions[0], sessions[1], sessions[0], sessions[2]):
        selector(asking(session, "ash"))
    rereads = []
    for session in (sessions[0], sessions[2], sessions[1]):
        entry, read = counted(session)
        selector(asking(session, "ash", entry=entry))
        rereads.append(len(read))
    assert rereads == [1, 1, 2]


def test_an_original_that_cannot_be_read_leaves_no_half_index() -> None:
    session, selector = session_of(["ash", "ash", "ash"]), Heuristic(every_turn=True)

    def broken(ordinal: int) -> LogEntry:
        if ordinal == 3:
            raise OSError("the disk is gone")
        return session.entry(ordinal)

    with pytest.raises(OSError, match="the disk is gone"):
        selector(asking(session, "ash", entry=broken))
    assert refs(selector, asking(session, "ash")) == refs(Heuristic(every_turn=True), asking(session, "ash"))


def test_threads_share_one_selector() -> None:
    store, selector = memory_store(), Heuristic(every_turn=True, max_sessions=3)
    sessions = [session_of([f"{tree} number {n}" for n in range(40)], store=store, id=tree) for tree in ("ash", "elm")]
    alone = {
        session.id: refs(Heuristic(every_turn=True), asking(session, f"{session.id} number 7")) for session in sessions
    }
    start = threading.Barrier(8)

    def ask(worker: int) -> bool:
        start.wait(10)
        session = sessions[worker % 2]
        return all(refs(selector, asking(session, f"{session.id} number 7")) == alone[session.id] for _ in range(20))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(8)))


@pytest.mark.parametrize("query", ["", "?!…", "ok", "what was it", "🙂", "\x00", "x" * 10**6])
def test_a_query_that_says_nothing_finds_nothing(query: str) -> None:
    assert list(Heuristic(every_turn=True)(asking(session_of(["ash", "elm"]), query))) == []


ZANZIBAR = [
    text for _ in range(9) for text in ("Which ferry goes to Zanzibar?", "The ferry Azam goes to Zanzibar at 7.")
]


@pytest.mark.parametrize(
    ("query", "recalls"),
    [
        ("At what time does the Zanzibar ferry go?", True),
        ("Thanks, bye!", False),
        ("How tall is the Eiffel tower?", False),
        ('Thanks for "goes to Zanzibar"', True),  # who quotes refers to something
        ("When did you say it goes?", True),  # a question about the conversation itself
        ("Great, as you said it goes.", False),
        ("Which of ours goes?", True),  # the user's own things
        ("Which of them goes?", False),
        ("How many people live in the US?", False),
    ],
)
def test_a_turn_without_need_of_memory_recalls_nothing_and_the_log_says_why(query: str, recalls: bool) -> None:
    ranking = Heuristic()(asking(session_of(ZANZIBAR), query))
    assert (bool(ranking), ranking.reasoning) == (recalls, None if recalls else SILENT)


def test_somebody_who_searches_is_answered_at_every_turn() -> None:
    request = asking(session_of(["Buy thyme.", "ok", *ZANZIBAR]), "thyme, bye")
    assert not Heuristic()(request)
    assert refs(Heuristic(every_turn=True), request)[0][0] == 1


def test_a_question_whose_words_were_said_once_uses_a_fifth_of_the_room() -> None:
    said = [*ZANZIBAR * 5, "My passport expires in May.", "Noted. " * 40]
    request = asking(session_of(said), "When does the passport expire?", budget_tokens=400)
    some, many = ({ordinal for ordinal, _ in refs(one, request)} for one in (Heuristic(), Heuristic(every_turn=True)))
    assert (len(said) - 1 in some, len(said) in some, len(said) in many) == (True, False, True)


def test_of_a_long_query_beginning_and_end_count() -> None:
    session = session_of(["ash one", "elm two", "fir three", "gum four"])
    query = f"ash {'x ' * MAX_QUERY_CHARS} fir {'y ' * MAX_QUERY_CHARS} elm"
    assert {ordinal for ordinal, _ in refs(Heuristic(every_turn=True), asking(session, query))} >= {1, 2}


def test_a_chinese_question_finds_its_answer() -> None:
    session = session_of(["我住在上海", "好的", "服务器端口是8443", "记下了", "我喜欢喝茶", "明白"])
    assert refs(Heuristic(every_turn=True), asking(session, "服务器的端口是多少？"))[0][0] == 3


@pytest.mark.parametrize(
    ("message", "asks", "speaker"),
    [
        ({"content": "Caroline: Shall we?"}, True, "caroline"),
        ({"content": "Really? Yes, at 5:30."}, True, None),
        ({"content": "see http://x.example/?q=1"}, False, None),
        ({"content": "好吗？可以"}, True, None),
        ({"content": "error: no such file"}, False, None),
        ({"content": "Mary Ann: hello"}, False, "mary ann"),
        ({"content": "hello", "name": "Mary_Ann"}, False, "mary_ann"),
        ({"content": "Bob: hello", "name": " "}, False, "bob"),
    ],
)
def test_what_a_text_says_of_itself(message: Wire, asks: bool, speaker: str | None) -> None:
    session = memory_store().session("s", counter=CHARS)
    (turn,) = units_of(session.append({"role": "assistant", **message}))
    assert (turn.asks, turn.speaker, turn.passage) == (asks, speaker, 0)


def test_a_long_message_is_indexed_by_passages_and_what_was_said_before_it_is_not_found_there_again() -> None:
    session = memory_store().session("s", counter=CHARS)
    session.append({"role": "user", "content": "How do I grow a quince?"})
    parts = [
        f"Step {n}: {word} the quince. " + f"{word} it well, all around the stem. " * 12
        for n, word in enumerate(("water", "prune", "mulch", "shade", "stake"))
    ]
    entry = session.append({"role": "assistant", "content": "\n\n".join(parts)})
    assert [turn.passage for turn in units_of(entry)] == [1, 2, 3, 4, 5]
    found = Heuristic(every_turn=True)(asking(session, "What do I mulch?"))
    assert str(found[0].ref) == "§2.3"
    assert Heuristic(every_turn=True)(asking(session, "quince"))[0].ordinal == 1


@pytest.mark.parametrize(("asked_for", "has_passage"), [("you", True), ("I", False)])
def test_most_of_the_room_is_for_replies_if_a_turn_asks_what_the_assistant_said(
    asked_for: str, has_passage: bool
) -> None:
    session = memory_store().session("s", counter=CHARS)
    for n in range(30):
        session.append({"role": "user", "content": f"What tools suit a quince of {n} years? It stands in my garden."})
    parts = [f"{word} the quince. " + f"{word} it well, all around. " * 22 for word in ("Prune", "Mulch", "Stake")]
    session.append({"role": "assistant", "content": "\n\n".join(parts)})
    ranked = Heuristic()(asking(session, f"What did {asked_for} say about the quince?", budget_tokens=300))
    assert any(one.ref.part for one in ranked[:8]) == has_passage


def test_tool_calls_and_results_are_indexed() -> None:
    session = memory_store().session("s", counter=CHARS)
    call = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "etc/hosts.cfg"}'}}
    session.append({"role": "user", "content": "look"})
    session.append({"role": "assistant", "content": None, "tool_calls": [call]})
    session.append({"role": "tool", "tool_call_id": "c1", "content": "gateway 10.0.0.7"})
    assert refs(Heuristic(every_turn=True), asking(session, "read_file"))[0][0] == 2
    assert refs(Heuristic(every_turn=True), asking(session, "what is at 10.0.0.7"))[0][0] == 3


@pytest.mark.parametrize("ts", ["2026-05-08T09:00:00", "2026-05-08"])
def test_a_date_is_found_as_people_say_it(ts: str) -> None:
    session = memory_store().session("s", counter=CHARS)
    for day, text in (("2026-04-01", "ash"), (ts, "elm"), ("2026-06-02", "fir")):
        session.append({"role": "user", "content": text}, ts=day)
    assert refs(Heuristic(every_turn=True), asking(session, "what happened on 8 May?"))[0][0] == 2
