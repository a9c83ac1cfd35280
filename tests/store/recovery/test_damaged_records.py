"""A damaged or missing record: regenerated where it can be, a stand-in where not, never served, always said."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Profile, Session, Store, open_store
from ctxsteward.envelope.testing import FirstLine
from ctxsteward.schemas import Erased, Message, Ref
from ctxsteward.schemas.errors import Damaged, UnsupportedVersion
from ctxsteward.schemas.message import Wire
from ctxsteward.store.crypto.keyring import address_of, subject_of
from ctxsteward.store.journal.events import (
    BlankRecord,
    Event,
    MessageAppended,
    NoteSet,
    RecallSelected,
    SessionHead,
    from_record,
    to_record,
)
from ctxsteward.store.journal.log import Log, coded
from ctxsteward.store.journal.port import ForgottenSubject, JournalRecord, SessionKey

from ...examples import drawn
from .spoiling import (
    CHARS,
    PLANTED,
    SPOILS,
    WORDS,
    answer,
    builder,
    call,
    converse,
    faults,
    kinds,
    opened,
    positions,
    record_at,
    reply,
    result,
    spoil,
    use,
    user,
)


def store_at(tmp_path: Path) -> Store:
    return open_store(f"file:{tmp_path}")


@contextmanager
def session_at(tmp_path: Path) -> Iterator[tuple[Store, Session]]:
    with store_at(tmp_path) as store:
        yield store, opened(store)


@pytest.fixture(scope="module")
def conversation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which there was one."""
    root = tmp_path_factory.mktemp("conversation")
    with store_at(root) as store:
        converse(store)
    return root


@pytest.fixture
def conversed(conversation: Path, tmp_path: Path) -> Path:
    """A copy of it: `tmp_path`."""
    shutil.copytree(conversation, tmp_path, dirs_exist_ok=True)
    return tmp_path


def every_ordinal_is_accounted_for(session: Session, envelope: Envelope) -> bool:
    shown = [ordinal for fragment in envelope.dynamic.strip.fragments for ordinal in fragment.refs]
    cited = {Ref.parse(ref).ordinal for bullet in session.state.bullets for ref in bullet.citations}
    lost = {Ref.parse(loss.ref).ordinal for event in session.reports() for loss in event.report.losses}
    return len(shown) == len(set(shown)) and set(range(1, len(session) + 1)) <= {*shown, *cited, *lost}


# -- compactions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", SPOILS)
def test_a_damaged_compaction_is_made_again_from_the_originals(conversed: Path, way: str) -> None:
    with session_at(conversed) as (store, session):
        session.append(user("and now?"))
        said = [entry.message.wire for entry in session.entries()]
        newest = positions(store, "compaction")[-1]
        length = store.journal.length(session.key)
    spoil(conversed, newest, SPOILS[way])
    with session_at(conversed) as (store, session):
        assert store.journal.length(session.key) == session.state.position == length
        assert [entry.message.wire for entry in session.entries()] == said
        envelope = builder().build(session)
        if way not in ("kind", "missing"):
            assert "compaction_regenerated" in kinds(envelope)
        assert envelope.reports
        assert (faults(envelope), envelope.section("dynamic").overflow_tokens) == ([], 0)
        assert every_ordinal_is_accounted_for(session, envelope)
    with store_at(conversed) as store:  # what was made again is what later readers start from
        session = opened(store)
        envelope = builder().build(session)
        assert kinds(envelope) == set()
        assert envelope.metrics["degraded"] == 0


def test_a_compaction_made_again_is_the_one_that_was_lost(tmp_path: Path) -> None:
    """From originals, and with the same means: the same bullets, under another address."""
    with session_at(tmp_path) as (_, session):
        session.extend((user if n % 2 == 0 else reply)(f"message {n} " + "word " * 12) for n in range(30))
        first = builder(selector=None).build(session)
    spoil(tmp_path, positions_of(tmp_path, "compaction")[-1], SPOILS["code"])
    with store_at(tmp_path) as store:
        again = builder(selector=None).build(opened(store))
    assert again.render("anthropic") == first.render("anthropic")
    assert again.reports[0].id != first.reports[0].id
    assert again.metrics["degraded"] == 0, "nothing is gone"


def test_a_record_that_is_missing_at_the_end_counts_as_a_message(tmp_path: Path) -> None:
    """Nothing tells what it was, and an ordinal is never given twice."""
    with store_at(tmp_path) as store:
        opened(store).extend([user("one"), reply("two")])
    spoil(tmp_path, 3, SPOILS["missing"])
    with session_at(tmp_path) as (_, session):
        assert session.append(user("three")).ordinal == 3
        assert faults(builder().build(session)) == []


def positions_of(root: Path, kind: str) -> list[int]:
    with store_at(root) as store:
        return positions(store, kind)


def test_with_all_compactions_damaged_the_log_is_folded_from_its_beginning(conversed: Path) -> None:
    with store_at(conversed) as store:
        epoch = opened(store).state.compactions
        where = positions(store, "compaction")
    assert len(where) > 2
    for position in where:
        spoil(conversed, position, SPOILS["code"])
    with session_at(conversed) as (_, session):
        assert session.state.bullets == ()
        assert session.state.groups[0].first == 1
        assert session.state.compactions == epoch, "an epoch is never given twice"
        envelope = builder().build(session)
        assert (faults(envelope), envelope.section("dynamic").overflow_tokens) == ([], 0)
        assert [event.report.id for event in session.reports()] == [report.id for report in envelope.reports]


# -- what else was decided ---------------------------------------------------------------------------------


@pytest.mark.parametrize("way", SPOILS)
@pytest.mark.parametrize("kind", ["selection", "note", "pin"])
def test_a_damaged_decision_is_passed_over(tmp_path: Path, kind: str, way: str) -> None:
    with store_at(tmp_path) as store:
        session = converse(store, maker=builder(100_000))
        session.record(RecallSelected(turn=session.state.last_user, refs=(2,), log={}))
        session.append(user("and now?"))
        said = [entry.message.wire for entry in session.entries()]
        position = positions(store, kind)[-1]
    spoil(tmp_path, position, SPOILS[way])
    with session_at(tmp_path) as (_, session):
        assert [entry.message.wire for entry in session.entries()] == said
        envelope = builder(100_000).build(session)
        found = kinds(envelope) & {"record_damaged", "record_skipped"}
        assert len(found) == 1
        assert envelope.metrics["degraded"] == int(found == {"record_damaged"})
        assert faults(envelope) == []


def test_a_note_that_is_lost_leaves_the_one_before(tmp_path: Path) -> None:
    with session_at(tmp_path) as (_, session):
        session.note("plan", "old")
        session.note("plan", "new")
    spoil(tmp_path, 3, SPOILS["body"])
    with store_at(tmp_path) as store:
        assert opened(store).state.notes == {"plan": "old"}


# -- the head ----------------------------------------------------------------------------------------------

ONE, TWO = Profile.from_text("first", name="one"), Profile.from_text("second", name="two")


@pytest.mark.parametrize("way", SPOILS)
@pytest.mark.parametrize("compacted", [False, True])
def test_a_damaged_head_leaves_the_one_before(tmp_path: Path, way: str, compacted: bool) -> None:
    with store_at(tmp_path) as store:
        session = opened(store, profile=ONE, system="Be brief.")
        session.append(user("hi"))
        session.repin(TWO)
        session.append(reply("hello"))
        if compacted:
            session.extend((user if n % 2 == 0 else reply)(f"message {n} " + "word " * 12) for n in range(30))
            assert builder().build(session).reports
        moved = positions(store, "head")[-1]
    spoil(tmp_path, moved, SPOILS[way])
    with session_at(tmp_path) as (_, session):
        assert session.state.head.profile is not None
        assert session.state.head.profile["name"] == "one"
        envelope = builder().build(session)
        assert "record_damaged" in kinds(envelope)
        assert envelope.metrics["degraded"] == 1


@pytest.mark.parametrize("way", SPOILS)
@pytest.mark.parametrize("compacted", [False, True])
def test_without_any_head_a_session_does_not_open(tmp_path: Path, way: str, compacted: bool) -> None:
    with store_at(tmp_path) as store:
        converse(store, turns=20 if compacted else 1)
    spoil(tmp_path, 1, SPOILS[way])
    with store_at(tmp_path) as store, pytest.raises(Damaged, match="head is damaged"):
        opened(store)


# -- the first record --------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", SPOILS)
def test_without_its_first_record_a_session_opens_with_another_nonce(tmp_path: Path, way: str) -> None:
    with store_at(tmp_path) as store:
        converse(store, turns=2, maker=builder(100_000))
        nonce = opened(store).state.nonce
    spoil(tmp_path, 0, SPOILS[way])
    nonces = set()
    for _ in range(2):
        with store_at(tmp_path) as store:
            envelope = builder(100_000).build(opened(store))
            nonces.add(envelope.nonce)
            assert envelope.metrics["degraded"] == 1
    assert len(nonces) == 1
    assert nonces != {nonce}


@pytest.mark.parametrize("way", SPOILS)
def test_a_fork_that_no_longer_says_of_what_does_not_open(tmp_path: Path, way: str) -> None:
    with store_at(tmp_path) as store:
        fork = converse(store, turns=2).fork(id="fork")
        fork.append(user("and now?"))
    spoil(tmp_path, 0, SPOILS[way], "fork")
    with store_at(tmp_path) as store, pytest.raises(Damaged, match="where it begins"):
        opened(store, "fork")


def forked(tmp_path: Path) -> int:
    """Two forks, of which one has a message of its own; returns how many records they share with their parent."""
    with session_at(tmp_path) as (_, session):
        for text in ("first", "second"):
            session.append(user(text))
            session.append(reply(f"to the {text}"))
        session.note("plan", "behind the second")
        session.fork(id="fork").append(user("said in the fork"))
        bare = session.fork(id="bare")
        session.append(user("said in the parent"))
        assert (bare.origins()[0].position, bare.origins()[0].ordinal) == (7, 4)
        return 7


def check_forks(root: Path) -> None:
    with store_at(root) as store:
        for name, words in ("fork", ["said in the fork", "said later"]), ("bare", ["said later"]):
            fork = opened(store, name)
            assert fork.append(user("said later")).ordinal == 4 + len(words)
            window = {entry.ordinal: entry for group in fork.state.groups for entry in group.entries}
            assert list(window) == list(range(1, 5 + len(words)))
            assert [entry.message.text for ordinal, entry in window.items() if ordinal > 4] == words
            assert fork.resolve(f"§{4 + len(words)}").text == "said later"


@pytest.mark.parametrize("way", [*SPOILS, *WORDS])
def test_whatever_is_damaged_in_the_part_that_a_fork_shares_it_gives_no_ordinal_twice(tmp_path: Path, way: str) -> None:
    shared = forked(tmp_path / "whole")
    for position in range(2, shared if way in SPOILS else shared - 1):  # the note behind the messages has no words
        root = tmp_path / str(position)
        shutil.copytree(tmp_path / "whole", root)
        spoil(root, position, (SPOILS | WORDS)[way])
        check_forks(root)


@pytest.mark.parametrize("kept", range(2, 8))
def test_a_fork_whose_parent_is_only_partly_here_gives_no_ordinal_twice(tmp_path: Path, kept: int) -> None:
    forked(tmp_path)
    with store_at(tmp_path) as store:
        store.journal.truncate(SessionKey("default", "s"), kept)
    check_forks(tmp_path)


# -- originals ---------------------------------------------------------------------------------------------

OPENAI: list[Wire] = [
    user("one"),
    call("a", "b"),
    result("a", "first"),
    result("b", "second"),
    reply("done"),
    user("thanks"),
    reply("welcome"),
    user("bye"),
]
ANTHROPIC: list[Wire] = [
    user("one"),
    use("a", "b"),
    answer("a", "b"),
    reply("done"),
    user("thanks"),
    use("c"),
    answer("c"),
    reply("welcome"),
    user("bye"),
]
SAID = {"openai": OPENAI, "anthropic": ANTHROPIC}


ORIGINALS = [(d, n + 1, way) for d, said in SAID.items() for n in range(len(said)) for way in (*SPOILS, *WORDS)]


@pytest.mark.parametrize(
    ("dialect", "ordinal", "way"), drawn(ORIGINALS, 40, "damaged originals", kind=lambda case: (case[0], case[2]))
)
def test_a_damaged_original_is_never_served_and_stops_nothing(
    tmp_path: Path, dialect: str, ordinal: int, way: str
) -> None:
    said = SAID[dialect]
    with session_at(tmp_path) as (store, session):
        session.extend(said)
        where = store.journal.position(session.key, ordinal)
        assert where is not None
    spoil(tmp_path, where, {**SPOILS, **WORDS}[way])
    with session_at(tmp_path) as (_, session):
        last_is_gone_without_a_trace = ordinal == len(said) and way == "no message"
        assert len(session) == len(said) - last_is_gone_without_a_trace
        envelope = builder().build(session)
        assert faults(envelope) == []
        assert envelope.metrics["degraded"] == 1
        if last_is_gone_without_a_trace:
            return
        for reader in (session, session.fork(id="fork")):
            with pytest.raises(Damaged, match=f"§{ordinal} is damaged"):
                reader.resolve(f"§{ordinal}")
        rest = [n for n in range(1, len(said) + 1) if n != ordinal]
        assert [session.resolve(n).wire for n in rest] == [said[n - 1] for n in rest]
        assert [f.ref for f in envelope.findings if f.kind == "original_damaged"] == [f"§{ordinal}"]
        text = str(envelope.render("openai-chat")["messages"])
        assert f"[§{ordinal}: the original is damaged and cannot be shown]" in text
        session.append(user("and now?"))
        assert faults(builder().build(session)) == []
        assert session.append(user("later")).ordinal == len(said) + 2


@pytest.mark.parametrize("way", ["code", "missing", "words", "no wire"])
def test_a_damaged_original_keeps_its_role_and_its_pairs(tmp_path: Path, way: str) -> None:
    for ordinal in (2, 4):
        root = tmp_path / f"{ordinal}"
        with store_at(root) as store:
            session = opened(store)
            session.extend(OPENAI)
            where = store.journal.position(session.key, ordinal) or 0
        spoil(root, where, {**SPOILS, **WORDS}[way])
        with store_at(root) as store:
            shown = builder().build(opened(store)).render("openai-chat")["messages"]
        assert [message["role"] for message in shown] == [wire["role"] for wire in OPENAI]
        assert [message["tool_call_id"] for message in shown[2:4]] == [call["id"] for call in shown[1]["tool_calls"]]
        assert [message["content"] for message in shown[2:4]].count("second") == (ordinal == 2)


@pytest.mark.parametrize("way", ["code", "missing", "words", "no wire", "no message"])
def test_damaged_originals_behind_a_compaction_and_in_a_kept_group(conversed: Path, way: str) -> None:
    with session_at(conversed) as (store, session):
        in_window = [n for group in session.state.groups for n in group.ordinals]
        gone = [n for n in range(1, len(session) + 1) if n not in in_window]
        newest = positions(store, "compaction")[-1]
        kept = [n for n in in_window if (store.journal.position(session.key, n) or 0) < newest]
        assert len(kept) > 1
        assert gone
        where = {n: store.journal.position(session.key, n) for n in (gone[3], kept[0], kept[-1])}
    for position in where.values():
        spoil(conversed, position or 0, {**SPOILS, **WORDS}[way])
    with session_at(conversed) as (_, session):
        envelope = builder().build(session)
        assert faults(envelope) == []
        assert {f.ref for f in envelope.findings if f.kind == "original_damaged"} == {
            f"§{n}" for n in (kept[0], kept[-1])
        }
        for ordinal in where:
            with pytest.raises(Damaged):
                session.resolve(ordinal)


def test_a_recalled_original_that_is_damaged_is_not_recalled(tmp_path: Path) -> None:
    with store_at(tmp_path) as store:
        session, maker = opened(store), builder(700)
        session.extend([user("hi"), reply("the secret word is xylophone")])
        session.extend((user if n % 2 == 0 else reply)(f"message {n} " + "pad " * 12) for n in range(25))
        maker.build(session)
        session.append(user("what is the secret word xylophone"))
        assert 2 in (maker.build(session).dynamic.context or pytest.fail("nothing was recalled")).refs
        where = store.journal.position(session.key, 2)
    spoil(tmp_path, where or 0, WORDS["words"])
    with session_at(tmp_path) as (_, session):
        envelope = builder(700).build(session)
        assert (
            "[§2: the original is damaged" in (envelope.dynamic.context or pytest.fail("the choice is in the log")).text
        )
        assert [f.ref for f in envelope.findings if f.kind == "original_damaged"] == ["§2"]
        assert (envelope.metrics["degraded"], faults(envelope)) == (1, [])
        session.append(user("once more: the secret word xylophone"))
        context = builder(700).build(session).dynamic.context
        assert context is None


def test_an_id_of_a_damaged_message_is_still_that_message(tmp_path: Path) -> None:
    with session_at(tmp_path) as (_, session):
        session.append(user("one"), id="m-1")
        session.append(reply("two"))
    spoil(tmp_path, 2, WORDS["words"])
    with session_at(tmp_path) as (_, session):
        entry = session.append(user("one"), id="m-1")
        assert (entry.ordinal, len(session), session.findings) == (1, 2, [])
        assert PLANTED not in entry.message.text


def test_a_tool_output_is_not_taken_from_a_neighbour(tmp_path: Path) -> None:
    with session_at(tmp_path) as (store, session):
        session.extend([*OPENAI, call("c"), result("c", "third")])
        where = store.journal.position(session.key, 4)
    spoil(tmp_path, where or 0, "UPDATE records SET outputs = 999")
    with session_at(tmp_path) as (_, session):
        assert [session.tool_output(n).tool_results[0].text for n in (1, 3)] == ["first", "third"]
        with pytest.raises(Damaged):
            session.tool_output(2)


def test_messages_that_changed_places_are_put_back_by_their_ordinals(tmp_path: Path) -> None:
    with session_at(tmp_path) as (store, session):
        session.extend(OPENAI)
        expected = builder().build(session).render("anthropic")
        key = session.key
        first, second = (store.journal.position(key, n) or 0 for n in (5, 7))
        swapped = {first: record_at(store, second), second: record_at(store, first)}
        store.journal.rewrite(key, swapped)
        again = opened(store)
        envelope = builder().build(again)
        assert envelope.render("anthropic") == expected
        assert (kinds(envelope), envelope.metrics["degraded"]) == ({"record_skipped"}, 0)
        assert again.append(user("and now?")).ordinal == 9


def test_a_decision_that_was_moved_is_passed_over(tmp_path: Path) -> None:
    with session_at(tmp_path) as (store, session):
        session.note("plan", "one")
        session.note("plan", "two")
        one, two = record_at(store, 2), record_at(store, 3)
        store.journal.rewrite(session.key, {2: two, 3: one})
        assert opened(store).state.notes == {}
        assert builder().build(opened(store)).metrics["degraded"] == 1


def test_a_live_session_reads_again_what_was_replaced(tmp_path: Path) -> None:
    with session_at(tmp_path) as (store, session):
        session.extend(OPENAI)
        builder().build(session)
        position = store.journal.position(session.key, 6) or 0
        record = record_at(store, position)
        store.journal.rewrite(session.key, {position: record._replace(mac="0" * 64)})
        assert "original_damaged" in kinds(builder().build(session))
        store.journal.rewrite(session.key, {position: record})
        envelope = builder().build(session)
        assert (kinds(envelope), envelope.metrics["degraded"]) == (set(), 0)
        assert session.resolve(6).wire == OPENAI[5]


# -- repair ------------------------------------------------------------------------------------------------


def unread(store: Store) -> Session:
    log = Log(store.journal, SessionKey("default", "s"), store.keys.address_key("default"))
    return Session(log, lambda: CHARS, lambda: "0" * 9, store.keys)


DERIVED = ("compaction", "head", "note", "opened")
REPAIRS = [("message", way) for way in (*SPOILS, *WORDS)] + [(kind, way) for kind in DERIVED for way in SPOILS]


@pytest.mark.parametrize(("kind", "way"), REPAIRS)
def test_a_record_that_is_to_be_had_elsewhere_is_fetched(conversed: Path, kind: str, way: str) -> None:
    with session_at(conversed) as (store, session):
        said, state = [entry.message.wire for entry in session.entries()], session.state.copy()
        copies = store.journal.read(session.key, 0)
        where = positions(store, kind)[-1]
    spoil(conversed, where, {**SPOILS, **WORDS}[way])
    with store_at(conversed) as store:
        session = unread(store)
        session.replica.log.repair = lambda key, position: copies[position]
        session.replica.load()
        assert session.state == state
        assert [entry.message.wire for entry in session.entries()] == said
        envelope = builder().build(session)
        assert kinds(envelope) <= {"record_restored"}
        assert (envelope.metrics["degraded"], faults(envelope)) == (0, [])


def test_what_is_elsewhere_is_checked_too(tmp_path: Path) -> None:
    with session_at(tmp_path) as (store, session):
        session.extend(OPENAI)
        copies = store.journal.read(session.key, 0)
        where = store.journal.position(session.key, 5) or 0
    spoil(tmp_path, where, WORDS["words"])
    forged = copies[where]._replace(wire=f'{{"role": "assistant", "content": "{PLANTED}"}}')
    for elsewhere in (forged, copies[where + 1], None):
        with store_at(tmp_path) as store:
            session = unread(store)
            session.replica.log.repair = lambda key, position, record=elsewhere: record
            session.replica.load()
            with pytest.raises(Damaged):
                session.resolve(5)
            assert faults(builder().build(session)) == []


# -- erased ------------------------------------------------------------------------------------------------


def test_an_erased_original_says_who_when_and_why(tmp_path: Path) -> None:
    with session_at(tmp_path) as (store, session):
        session.append(user("my number is 555"), principal="dana")
        session.append(reply("noted"))
        key, position = session.key, store.journal.position(session.key, 1) or 0
        event = from_record(record_at(store, position))
        assert isinstance(event, MessageAppended)
        wire = '{"role": "user", "content": "[erased]"}'
        address = address_of(session.address_key, subject_of("s", "dana"), "message", wire.encode())
        gone = replace(event, wire=wire, erased=True, tokens={}, address=address)
        store.journal.forget("default", ForgottenSubject("s", "dana", "dpo", "2026-11-20", "asked to"))
        store.journal.rewrite(key, {position: coded(session.address_key, "s", position, to_record(gone))})
        for reader in (session, opened(store), session.fork(id="fork")):
            envelope = builder().build(reader)
            assert envelope.render("openai-chat")["messages"][0]["content"] == "[erased]"
            assert envelope.metrics["degraded"] == 0
            with pytest.raises(Erased, match=r"§1 .* erased by dpo on 2026-11-20: asked to"):
                reader.resolve("§1")
            assert isinstance(reader.entry("§1").message, Message)
        with pytest.raises(Erased, match="principal 'dana'"):
            session.append(user("again"), principal="dana")
        assert session.append(user("somebody else")).ordinal == 3


def test_a_forgotten_session_does_not_come_back(tmp_path: Path) -> None:
    with store_at(tmp_path) as store:
        live = opened(store)
        live.append(user("one"))
        store.journal.forget("default", ForgottenSubject("s", None, "dpo", "2026-11-20", "asked to"))
        store.journal.truncate(live.key, 0)
        for call_it in (lambda: opened(store), lambda: live.append(user("two")), lambda: builder().build(live)):
            with pytest.raises(Erased, match="erased by dpo"):
                call_it()
        with pytest.raises(Erased, match="erased by dpo"):
            opened(store, "other").fork(id="s")
        assert store.journal.length(live.key) == 0


def test_a_blank_record_holds_its_place(conversed: Path) -> None:
    with session_at(conversed) as (store, session):
        where = positions(store, "compaction")[-1]
        blank = coded(session.address_key, "s", where, to_record(BlankRecord(was="compaction")))
        store.journal.rewrite(session.key, {where: blank})
        again = opened(store)
        assert again.state.position == session.state.position
        assert again.state.compactions == session.state.compactions
        assert faults(builder().build(again)) == []


# -- other versions ----------------------------------------------------------------------------------------


def test_fields_of_a_later_minor_version_are_left_alone() -> None:
    events: list[Event] = [
        NoteSet(name="plan", text="x"),
        SessionHead(system=("Be brief.",)),
        MessageAppended(ordinal=1, wire='{"role": "user", "content": "x"}', address="ab"),
    ]
    for event in events:
        record = to_record(event)
        later = record._replace(body=record.body[:-1] + ',"later":{"x":1}}')
        assert from_record(later) == event


def test_a_record_of_an_unknown_kind_is_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedVersion):
        from_record(JournalRecord("verdict", "{}"))
    with session_at(tmp_path) as (store, session):
        later = coded(session.address_key, "s", 2, JournalRecord("verdict", "{}"))
        store.journal.append(session.key, 2, [later])
        for act in (lambda: opened(store), session.refresh):
            with pytest.raises(UnsupportedVersion, match="verdict"):
                act()


def test_counts_of_another_tokenizer_are_counted_again(tmp_path: Path) -> None:
    with store_at(tmp_path) as store:
        opened(store).extend(OPENAI)
        maker = EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=900), summarizer=FirstLine())
        session = opened(store)
        fresh = store.session("fresh")
        fresh.extend(OPENAI)
        assert maker.build(session).tokens == maker.build(fresh).tokens
