"""Undoing a compaction: what it took out stands in the window again, by one event that every reader understands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Session, Store, open_store, rebuild
from ctxsteward.envelope.compaction.undo import newest_standing
from ctxsteward.envelope.testing import CharTokenizer, FirstLine, memory_store
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.schemas import InputError
from ctxsteward.store.maintenance.fsck import fsck

CHARS = Counter(CharTokenizer())
SMALL, LARGE = 2_000, 20_000


def builder(dynamic_tokens: int) -> EnvelopeBuilder:
    return EnvelopeBuilder(
        tokenizer=CharTokenizer(), budgets=Budgets(dynamic_tokens=dynamic_tokens), summarizer=FirstLine()
    )


def real(dynamic_tokens: int) -> EnvelopeBuilder:
    return EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=dynamic_tokens))


def talk(session: Session, turns: int, made: EnvelopeBuilder, first: int = 0) -> list[str]:
    """Addresses of the envelopes of these turns."""
    addresses = []
    for turn in range(first, first + turns):
        session.append({"role": "user", "content": f"Question {turn} " + "x" * 80}, pin="soft" if turn == 1 else None)
        addresses.append(made.build(session).address)
        session.append({"role": "assistant", "content": f"Answer {turn} " + "y" * 80})
    return addresses


def compacted(store: Store, turns: int = 14) -> Session:
    session = store.session("s", counter=CHARS)
    talk(session, turns, builder(SMALL))
    assert session.compactions()
    return session


def shown(session: Session) -> list[int]:
    return [ordinal for group in session.state.groups for ordinal in group.ordinals]


def undo_all(session: Session, made: EnvelopeBuilder) -> int:
    """How many compactions there were to undo."""
    number = 0
    while newest_standing(session.replica.log) is not None:
        made.show_again(session)
        number += 1
    with pytest.raises(InputError, match="has no compaction of its own to undo"):
        made.show_again(session)
    return number


def test_what_the_newest_compaction_took_out_is_shown_again_and_the_envelope_reports_it() -> None:
    session = compacted(memory_store())
    newest = session.compactions()[-1]
    before = set(shown(session))
    bullets = session.state.bullets
    envelope = builder(LARGE).show_again(session)
    (report,) = envelope.reports
    assert report.policy == f"shown-again/1 {newest.report.id}"
    assert (report.losses, report.source_addresses) == ((), ())
    assert report.pre_tokens < report.post_tokens <= envelope.section("dynamic").tokens
    returned = set(shown(session)) - before
    assert len(returned) == len(newest.report.source_addresses) > 0
    assert before < set(shown(session))
    assert len(session.state.bullets) < len(bullets)
    text = envelope.section("dynamic").text
    assert all(session.resolve(ordinal).text in text for ordinal in returned)


def test_undoing_as_often_as_was_compacted_shows_the_whole_history_as_a_session_that_never_compacted() -> None:
    store = memory_store()
    session = compacted(store, 30)
    number = len(session.compactions())
    assert number > 1
    assert undo_all(session, builder(200_000)) == number
    whole = store.session("whole", counter=CHARS)
    talk(whole, 30, builder(200_000))
    assert shown(session) == shown(whole) == list(range(1, 61))
    assert (session.state.bullets, session.state.masked, session.state.shortened) == ((), frozenset(), {})
    assert session.state.pins == whole.state.pins
    texts = [builder(200_000).build(one).section("dynamic").text for one in (session, whole)]
    assert texts[0] == texts[1]


def test_it_stays_shown_through_later_turns_and_may_be_compacted_again() -> None:
    session = compacted(memory_store())
    builder(LARGE).show_again(session)
    stands = set(shown(session))
    talk(session, 3, builder(LARGE), first=14)
    assert stands < set(shown(session))
    talk(session, 1, builder(SMALL), first=17)
    assert not stands < set(shown(session))
    again = builder(LARGE).show_again(session)
    assert stands < set(shown(session))
    assert len(again.reports) == 1


def test_what_would_not_fit_is_refused_with_the_budget_that_it_takes_and_nothing_is_written() -> None:
    session = memory_store().session("s", counter=CHARS)
    for turn in range(40):
        session.append({"role": "user", "content": f"Question {turn} " + "x" * 80})
        if builder(SMALL).build(session).reports:
            break
        session.append({"role": "assistant", "content": f"Answer {turn} " + "y" * 80})
    length, state = session.journal.length(session.key), shown(session)
    with pytest.raises(InputError, match=r"would have [\d,]+ tokens.*dynamic_tokens=\d+") as refused:
        builder(SMALL).show_again(session)
    assert (session.journal.length(session.key), shown(session)) == (length, state)
    needed = int(re.findall(r"dynamic_tokens=(\d+)", str(refused.value))[0])
    builder(needed).show_again(session)
    stands = shown(session)
    builder(needed).build(session)
    assert shown(session) == stands


def test_a_session_that_was_never_compacted_has_nothing_to_undo() -> None:
    session = memory_store().session("s", counter=CHARS)
    talk(session, 2, builder(LARGE))
    with pytest.raises(InputError, match="has no compaction of its own to undo"):
        builder(LARGE).show_again(session)


def test_every_envelope_before_and_after_rebuilds_byte_for_byte_in_a_process_that_reads_the_log_anew(
    tmp_path: Path,
) -> None:
    uri, small, large = f"file:{tmp_path}", real(500), real(20_000)
    texts: dict[str, str] = {}
    with open_store(uri) as store:
        session = store.session("s")
        for number, made in enumerate((small, large, small)):
            for address in talk(session, 24, made, first=24 * number):
                texts[address] = rebuild(store, address).section("dynamic").text
            envelope = large.show_again(session)
            texts[envelope.address] = envelope.section("dynamic").text
        reader = store.at("default", "s")
        assert (shown(reader), reader.state.bullets) == (shown(session), session.state.bullets)
    with open_store(uri) as store:
        assert {address: rebuild(store, address).section("dynamic").text for address in texts} == texts
        assert store.session("s").state == reader.state
        assert fsck(store, read_data=True).damage == ()


def test_another_session_object_that_was_open_reads_the_undo_from_the_log() -> None:
    store = memory_store()
    session = compacted(store)
    other = store.session("s", counter=CHARS)
    builder(LARGE).show_again(session)
    other.refresh()
    assert shown(other) == shown(session)
    assert other.state == session.state
