"""`search_context`, ranges of `resolve_reference`, and both as a model calls them: bounded, one session."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ctxsteward.envelope import Budgets, EnvelopeBuilder, SelectionRequest, Session, Store, resolve_reference
from ctxsteward.envelope.recall.model_tools import (
    DEFAULT_LIMIT_CHARS,
    MAX_LIMIT_CHARS,
    MAX_RANGE_MESSAGES,
    MAX_RESULT_CHARS,
    MAX_RESULTS,
    NOTHING_FOUND,
    answer_call,
    answer_search,
    passage,
    search_context,
)
from ctxsteward.envelope.recall.selection import ScoredOriginal
from ctxsteward.envelope.testing import CharTokenizer, memory_store
from ctxsteward.language.words import terms

from ..messages import CHARS

TEXTS = ["the red key is in the shed", "noted", "the blue key is lost", "sad", "we ate soup", "and bread"]


def session_of(texts: list[str], *, store: Store | None = None, tenant: str = "t") -> Session:
    session = (store or memory_store()).session("s", tenant=tenant, counter=CHARS)
    for n, text in enumerate(texts):
        session.append({"role": ("user", "assistant")[n % 2], "content": text}, ts=f"2026-01-{n // 2 + 1:02}T09:00:00")
    return session


@pytest.fixture
def session() -> Session:
    return session_of(TEXTS)


# -- search --------------------------------------------------------------------------------------------------------


def test_an_answer_is_in_session_order_under_the_days(session: Session) -> None:
    assert answer_search(session, "where is the blue key", k=2, shown=frozenset()) == (
        "2026-01-01 §1-§2:\n§1 user: the red key is in the shed\n2026-01-02 §3-§4:\n§3 user: the blue key is lost"
    )


def test_what_the_window_shows_is_not_found_again(session: Session) -> None:
    assert answer_search(session, "key") == NOTHING_FOUND
    assert [hit.ref for hit in search_context(session, "key", shown={1, 2})][:1] == ["§3"]


def test_each_day_has_its_best_before_any_has_its_second() -> None:
    session = session_of(["key key key", "key key", "a key was here", "x", "the key", "y"])
    found = [hit.ordinal for hit in search_context(session, "key", k=4, shown=frozenset())]
    assert {(ordinal + 1) // 2 for ordinal in found[:3]} == {1, 2, 3}


def test_a_quote_of_part_of_a_word_finds_the_message_that_holds_it() -> None:
    session = session_of(["the red key", "ticket OPS-8841-in-80 is open", "the blue key", "x"])
    found = search_context(session, 'which message said "41-in-8"?', shown=frozenset())
    assert [hit.ref for hit in found][:1] == ["§2"]
    assert search_context(session, 'which message said "41-in-8"?', shown=frozenset({2})) == ()
    assert search_context(session, 'which message said "41-in-9"?', shown=frozenset()) == ()


def test_output_is_bounded() -> None:
    session = session_of([f"key {'long ' * (5_000 if n % 6 == 5 else 300)}" for n in range(60)])
    answer = answer_search(session, "key " * 250_000, k=10**6, shown=frozenset())
    rows = [row for row in answer.splitlines() if row.startswith("§")]
    assert len(rows) == MAX_RESULTS
    assert max(map(len, rows)) <= MAX_RESULT_CHARS + 20


@pytest.mark.parametrize("query", ["", " \n", "?!", "what was it", "🙂", "unheard", "x" * 10**6])
def test_a_query_that_says_nothing_finds_nothing(session: Session, query: str) -> None:
    assert search_context(session, query, shown=frozenset()) == ()
    assert answer_search(session, query) == NOTHING_FOUND


@pytest.mark.parametrize("k", [1, 3, 3.0, "3", MAX_RESULTS, MAX_RESULTS + 1, 10**30])
def test_a_number_of_results_is_read_as_a_model_writes_it(session: Session, k: object) -> None:
    assert answer_search(session, "key", k=k, shown=frozenset()).startswith("2026-01-01")


@pytest.mark.parametrize(
    "k",
    [0, -1, 1.5, True, None, "", "ten", "--3", "٣", [3], {}, float("nan"), float("inf"), float("-inf"), "9" * 5_000],
)
def test_a_number_of_results_that_is_none_is_answered(session: Session, k: object) -> None:
    assert answer_search(session, "key", k=k) == f"error: `k` is a whole number from 1 to {MAX_RESULTS}"


@pytest.mark.parametrize(
    "arguments", [{}, {"query": None}, {"query": 7}, {"query": ["x"]}, {"query": "x", "session": "o"}]
)
def test_arguments_a_model_made_up_are_answered(session: Session, arguments: dict[str, Any]) -> None:
    assert answer_search(
        session,
        **{k: v for k, v in arguments.items() if k != "session"} | ({"other": 1} if "session" in arguments else {}),
    ).startswith("error: the arguments are")


def test_another_tenants_session_of_the_same_name_is_not_found() -> None:
    store = memory_store()
    session_of(["the vault code is 4711", "noted"], store=store, tenant="acme")
    mine = session_of(["hello", "hi"], store=store, tenant="zeta")
    assert answer_search(mine, "vault code", shown=frozenset()) == NOTHING_FOUND


def test_what_was_appended_later_is_found(session: Session) -> None:
    search_context(session, "key", shown=frozenset())
    session.append({"role": "user", "content": "the vault code is 4711"})
    assert search_context(session, "vault", shown=frozenset())[0].ordinal == 7


def test_a_search_and_a_build_that_share_a_selector_both_end() -> None:
    """The selector keeps things behind a lock of its own, as those that rank by words or vectors do."""
    session = session_of([f"key {'long ' * 40}{n}" for n in range(40)])
    keeps, asked, held = threading.Lock(), threading.Event(), threading.Event()
    rankings: list[int] = []

    def selector(request: SelectionRequest) -> Sequence[ScoredOriginal]:
        with keeps:
            asked.set()
            held.wait(0.3)  # until the build has the session, where it can have it
            rankings.append(request.last)
            return [ScoredOriginal(request.entry(1).ordinal, 1.0)]

    budgets = Budgets(dynamic_tokens=2_000)
    EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=budgets, selector=None).build(session)
    session.append({"role": "user", "content": "which key?"})
    builder = EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=budgets, selector=selector)

    def build() -> None:
        asked.wait(10)
        with session.lock:
            held.set()
            builder.build(session)

    work = (lambda: search_context(session, "key", selector=selector), build)
    threads = [threading.Thread(target=target, daemon=True) for target in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    assert rankings == [41, 40]


# -- ranges --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ref", ["§3-§5", "3-5", "§3-5", " §3 - §5 ", "§3–§5"])
def test_a_range_is_read_as_the_days_show_it(session: Session, ref: str) -> None:
    assert resolve_reference(session, ref) == "§3 user: the blue key is lost\n§4 assistant: sad\n§5 user: we ate soup"


def test_a_range_has_the_bounds_of_one_reference(session: Session) -> None:
    assert resolve_reference(session, "§1-§6", grep="KEY").splitlines() == [
        "§1 user: the red key is in the shed",
        "§3 user: the blue key is lost",
    ]
    assert resolve_reference(session, "§1-§6", limit=10) == "§1 user: t\n[138 more characters; offset=10]"
    long = session_of(["x" * 1_000] * 60)
    assert len(resolve_reference(long, "§1-§60")) <= DEFAULT_LIMIT_CHARS + 60
    assert len(resolve_reference(long, "§1-§60", limit=10**9)) <= MAX_LIMIT_CHARS + 60


@pytest.mark.parametrize(
    "ref",
    [
        "§5-§3",
        "§1-§7",
        "§7-§9",
        f"§1-§{MAX_RANGE_MESSAGES + 1}",
        "§0-§3",
        "§1-",
        "-§3",
        "§1-§2-§3",
        "§1.1-§2.1",
        "§1-§" + "9" * 5_000,
    ],
)
def test_a_range_that_is_none_is_answered(session: Session, ref: str) -> None:
    answer = resolve_reference(session, ref)
    assert answer.startswith("error: ")
    assert len(answer) < 400


# -- as a model calls them -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("resolve_reference", '{"ref": "§2"}', "noted"),
        ("resolve_reference", {"ref": "§2"}, "noted"),
        ("search_context", '{"query": "unheard"}', NOTHING_FOUND),
        ("search_context", "not json", "error: the arguments are a JSON object"),
        ("search_context", "[]", "error: the arguments are a JSON object"),
        ("search_context", "[" * 100_000, "error: the arguments are a JSON object"),
        ("search_context", '{"query": "key", "shown": []}', "error: the arguments are `k`, `query`"),
        (
            "resolve_reference",
            '{"ref": "§2", "session": "o"}',
            "error: the arguments are `grep`, `limit`, `offset`, `ref`",
        ),
        ("book_flight", "{}", None),
    ],
)
def test_a_call_is_answered(session: Session, name: str, arguments: Any, answer: str | None) -> None:
    assert answer_call(session, name, arguments) == answer


# -- the passage -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("the spare key of the boathouse hangs behind the clock", "where is the boathouse key?"),
        ("备用钥匙挂在船屋的钟后面", "船屋的钥匙在哪里"),
    ],
)
@pytest.mark.parametrize("before", [0, 40, 400, 4_000])
@pytest.mark.parametrize("after", [0, 400])
def test_a_hit_shows_the_passage_that_matched_wherever_it_stands(
    said: str, query: str, before: int, after: int
) -> None:
    filling = "再说一遍吧" if not said.isascii() else "some other words. "
    text = filling * before + said + " " + filling * after
    shown = passage(text, frozenset(terms(query)))
    assert said in shown
    assert len(shown) <= MAX_RESULT_CHARS
    assert shown.startswith("…") is not " ".join(text.split()).startswith(shown[:50])


@given(st.text(max_size=900), st.text(max_size=40), st.integers(16, 300))
def test_a_passage_is_a_stretch_of_the_text_within_its_limit(text: str, query: str, limit: int) -> None:
    shown = passage(text, frozenset(terms(query)), limit)
    whole = " ".join(text.split())
    assert len(shown) <= limit
    assert shown.removeprefix("…").removesuffix("…") in whole or shown in whole
