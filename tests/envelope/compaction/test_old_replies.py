"""Replies before the newest one are shown as beginning and end once anything was compacted. Tokens are characters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Session, Store, open_store
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import Ref
from ctxsteward.schemas.message import Wire

from ..messages import CHARS, call, char_builder, reply, result, user

BUDGETS = Budgets(dynamic_tokens=4_000, recall_fraction=0)
TURNS = 40


def long_reply(turn: int) -> str:
    return f"Reply {turn} begins. " + "Some words follow here. " * 30 + f"Code X-{4_000 + turn}. " + "More words. " * 20


def turns(count: int = TURNS) -> Iterator[tuple[Wire, Wire]]:
    for turn in range(count):
        yield user(f"Question {turn} about the harbour?"), reply(long_reply(turn))


def played(builder: EnvelopeBuilder, store: Store | None = None, count: int = TURNS) -> tuple[Session, list[Any]]:
    """The session, and its envelopes at the user turns."""
    session, envelopes = (store or memory_store()).session("s", counter=CHARS), []
    for asked, answered in turns(count):
        session.append(asked)
        envelopes.append(builder.build(session))
        session.append(answered)
    return session, envelopes


def replies(envelope: Any) -> list[str]:
    messages = envelope.render("openai-chat")["messages"]
    return [message["content"] for message in messages if message["role"] == "assistant"]


def test_the_newest_reply_is_whole_and_older_ones_are_beginning_and_end() -> None:
    _, envelopes = played(char_builder(BUDGETS))
    compacted = next(n for n, envelope in enumerate(envelopes) if envelope.reports)
    looked_at = 0
    for before, after in pairwise(envelopes[compacted:]):
        if after.reports:
            continue
        *old, newest = replies(after)
        assert newest == replies(before)[-1] or newest.startswith("Reply ")
        assert "resolves to the whole" not in newest
        assert all("resolves to the whole" in text and len(text) < 300 for text in old)
        looked_at += len(old)
    assert looked_at > TURNS / 4


def test_before_the_first_compaction_every_reply_is_whole() -> None:
    _, envelopes = played(char_builder(BUDGETS))
    compacted = next(n for n, envelope in enumerate(envelopes) if envelope.reports)
    assert compacted > 2
    whole = [long_reply(turn) for turn in range(compacted - 1)]
    assert replies(envelopes[compacted - 1]) == whole


def test_what_stands_before_the_turn_context_only_grows_between_compactions() -> None:
    _, envelopes = played(char_builder(BUDGETS))
    pairs = [(one, two) for one, two in pairwise(envelopes) if two.metrics["compactions"] and not two.reports]
    assert len(pairs) > TURNS / 3
    for before, after in pairs:
        stable = [fragment.digest for fragment in before.dynamic.stable]
        assert [fragment.digest for fragment in after.dynamic.stable][: len(stable)] == stable
        assert len(after.dynamic.stable) > len(stable)


def test_anthropics_mark_stands_where_the_next_request_still_begins_alike() -> None:
    _, envelopes = played(char_builder(BUDGETS))
    pairs = [(one, two) for one, two in pairwise(envelopes) if two.metrics["compactions"] > 1 and not two.reports]
    assert pairs
    for before, after in pairs:
        marked = before.render("anthropic", cache=True)["messages"]
        plain, later = (one.render("anthropic", cache=False)["messages"] for one in (before, after))
        places = [n for n, message in enumerate(marked) if "cache_control" in message["content"][-1]]
        assert len(places) == 2
        assert plain[: places[0] + 1] == later[: places[0] + 1]
        assert plain[: places[0] + 2] != later[: places[0] + 2]  # the reply behind it is short by then


def test_the_next_compaction_reports_what_old_replies_no_longer_show() -> None:
    session, _ = played(char_builder(BUDGETS))
    first, second = session.reports()[:2]
    hidden = {ordinal for ordinal in second.shortened if ordinal not in first.shortened}
    reported = {Ref.parse(loss.ref).ordinal for loss in second.report.losses}
    assert hidden
    assert hidden <= reported


@pytest.mark.parametrize("turn", [5, 20, TURNS])
def test_a_session_that_is_read_again_shows_the_same(tmp_path: Path, turn: int) -> None:
    builder, uri = char_builder(BUDGETS), f"file:{tmp_path}"
    with open_store(uri) as store:
        session = store.session("s", counter=CHARS)
        for asked, answered in [*turns()][:turn]:
            session.append(asked)
            shown = builder.build(session)
            session.append(answered)
        session.append(user("And now?"))
        shown = builder.build(session)
    with open_store(uri) as store:
        again = char_builder(BUDGETS).build(store.session("s", counter=CHARS))
    assert again.render("openai-chat") == shown.render("openai-chat")
    assert again.address == shown.address


def test_a_policy_with_rules_of_its_own_for_what_stays_keeps_replies_whole() -> None:
    _, envelopes = played(char_builder(BUDGETS, policy="importance"))
    assert any(envelope.reports for envelope in envelopes)
    assert not any("resolves to the whole" in text for envelope in envelopes for text in replies(envelope)[:-1])


def test_short_and_pinned_replies_stay_whole() -> None:
    builder = char_builder(BUDGETS)
    session, _ = played(builder, count=20)
    assert session.reports()
    session.append(user("A short one, please."))
    session.append(reply("Short."))
    session.append(user("And a long one to keep."))
    kept = session.append(reply(long_reply(77)))
    session.pin(kept.ref)
    for asked, answered in turns(3):
        session.append(asked)
        envelope = builder.build(session)
        session.append(answered)
    assert long_reply(77) in replies(envelope)
    assert {group.first for group in session.state.groups} > set(session.state.shortened)
    assert not {kept.ordinal, kept.ordinal - 2}.intersection(session.state.shortened)


def test_a_reply_before_tool_calls_is_not_shortened_behind_the_mark() -> None:
    """Such a reply is not the one that a user answers: it stays as it is until the next compaction."""
    builder, session = char_builder(BUDGETS), memory_store().session("s", counter=CHARS)
    stable: list[bytes] = []
    compared = 0
    for turn, (asked, answered) in enumerate(turns()):
        session.append(asked)
        envelope = builder.build(session)
        now = [fragment.digest for fragment in envelope.dynamic.stable]
        if not envelope.reports:
            assert now[: len(stable)] == stable
            compared += bool(session.reports())
        stable = now
        session.append(answered)
        if turn % 3 == 1:
            session.extend([call(f"c{turn}"), result(f"c{turn}", "done")])
    assert compared > TURNS / 4


def test_a_reply_stays_whole_if_the_turn_behind_it_called_tools() -> None:
    """The results behind it would be written to the provider's cache again."""
    session, _ = played(char_builder(BUDGETS), count=20)
    assert session.reports()
    before = session.state.ordinal
    session.extend([user("And now?"), call("c1"), result("c1", "done"), reply(long_reply(50)), user("Then?")])
    session.extend([reply(long_reply(51)), user("And at last?")])

    assert before not in session.state.shortened
    assert before + 4 in session.state.shortened


def test_a_log_of_an_earlier_version_is_read_as_it_was_shown() -> None:
    session = memory_store().session("s", counter=CHARS)
    session.extend([user("Hello?"), reply(long_reply(0)), user("And now?"), call("c1"), result("c1", "done")])
    session.append(reply(long_reply(1)))
    for stays in (True, False):
        state = session.state.copy()
        state.reply_tokens, state.loops_stay = 50, stays
        state._shorten_replies()
        assert (2 in state.shortened) is not stays
