"""A session: one entry an id, whole batches, notes, pins, heads that change, forks of forks, references, threads."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from pydantic import BaseModel

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, Session, Store
from ctxsteward.envelope.history.session import BATCH_MESSAGES
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import InputError, InvalidMessage, Message, Ref, ReferenceNotFound
from ctxsteward.schemas.errors import InvalidReference
from ctxsteward.store.journal.events import SessionHead, from_record

from ..histories import Wire
from ..in_threads import in_threads
from ..messages import call, char_builder, opened, reply, result, tool, user


def builder(dynamic_tokens: int = 1_000) -> EnvelopeBuilder:
    return char_builder(Budgets(dynamic_tokens=dynamic_tokens))


def wires(session: Session) -> list[Wire]:
    return [entry.message.wire for entry in session.entries()]


# -- one entry an id ---------------------------------------------------------------------------------------


def test_an_id_is_one_entry_in_batches_and_across_reopening(store: Store) -> None:
    session = opened(store)
    first = session.append(user("one"), id="a")
    batch = [
        NewMessage(message=user("other words"), id="a"),
        NewMessage(message=user("two"), id="b"),
        NewMessage(message=user("two again"), id="b"),
        user("without an id"),
        user("without an id"),
    ]
    entries = session.extend(batch)
    assert [entry.ordinal for entry in entries] == [1, 2, 2, 3, 4]
    assert entries[0] == first
    reopened = opened(store)
    assert [entry.ordinal for entry in reopened.extend(batch[:3])] == [1, 2, 2]
    assert reopened.append(user("x"), id="b") == entries[1]
    assert wires(reopened) == [user("one"), user("two"), user("without an id"), user("without an id")]


def test_an_id_of_a_message_that_was_compacted_is_still_known(store: Store) -> None:
    session, maker = opened(store), builder()
    for n in range(40):
        session.append(user(f"message {n} " + "word " * 20), id=f"m-{n}")
        maker.build(session)
    assert session.state.compacted_to > 3
    for reader in (session, opened(store)):
        assert reader.append(user("again"), id="m-2").ordinal == 3
        assert len(reader) == 40


def test_a_batch_of_known_ids_alone_writes_nothing(store: Store) -> None:
    session = opened(store)
    session.append(user("one"), id="a")
    length = store.journal.length(session.key)
    assert [entry.ordinal for entry in session.extend([NewMessage(message=user("x"), id="a")] * 3)] == [1, 1, 1]
    assert store.journal.length(session.key) == length


def test_what_is_told_beside_a_message_is_kept_beside_it(store: Store) -> None:
    said: Wire = {"role": "user", "content": "hi", "phase": "the provider's own"}
    session = opened(store)
    session.append(
        said, id="m-1", phase="draft", pin="soft", ts="2026-11-03T10:00:00Z", principal="dana", origin="s-7§3"
    )
    event = opened(store).entry("§1").event
    assert (event.id, event.phase, event.pin, event.ts, event.principal, event.origin) == (
        "m-1",
        "draft",
        "soft",
        "2026-11-03T10:00:00Z",
        "dana",
        "s-7§3",
    )
    assert opened(store).resolve("§1").wire == said


# -- batches -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param({"role": "nobody", "content": "x"}, id="an unknown role"),
        pytest.param("just text", id="no dict"),
        pytest.param({"role": "user", "content": float("nan")}, id="NaN"),
    ],
)
def test_a_bad_message_stops_its_batch_whole(store: Store, bad: object) -> None:
    session = opened(store)
    session.append(user("one"))
    state, length = session.state.copy(), store.journal.length(session.key)
    with pytest.raises(InvalidMessage):
        session.extend([user("two"), call("a"), bad, user("four")])
    assert session.state == state
    assert store.journal.length(session.key) == length
    assert session.append(user("two")).ordinal == 2


def test_batches_before_the_bad_one_stay(store: Store) -> None:
    session = opened(store)
    with pytest.raises(InvalidMessage):
        session.extend([*(user(f"{n}") for n in range(BATCH_MESSAGES + 5)), {"role": "nobody"}])
    assert len(session) == len(opened(store)) == BATCH_MESSAGES


def test_extend_takes_a_generator_and_nothing(store: Store) -> None:
    session = opened(store)
    assert session.extend([]) == []
    assert [entry.ref for entry in session.extend(user(f"{n}") for n in range(3))] == ["§1", "§2", "§3"]


# -- what is taken -----------------------------------------------------------------------------------------


class Reply(BaseModel):
    """As an SDK returns it."""

    role: str = "assistant"
    content: str | None = "Sure."
    tool_calls: list[Wire] | None = None
    refusal: str | None = None
    index: int = 3


def test_an_sdk_s_object_is_taken_without_its_empty_fields() -> None:
    session = opened()
    session.append(Reply())
    session.append(Message.from_wire(user("a message of ours")))
    assert wires(session) == [{"role": "assistant", "content": "Sure.", "index": 3}, user("a message of ours")]


def test_input_is_neither_kept_nor_changed() -> None:
    given: Wire = {
        "role": "user",
        "content": [
            {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}},
            {"type": "x_new", "n": [1]},
        ],
        "x_unknown": {"deep": [1, {"two": None}]},
    }
    flat: Wire = {"role": "user", "content": "flat", "x": 1}
    before = deepcopy((given, flat))
    session = opened()
    session.extend([given, flat])
    for provider in ("openai-chat", "anthropic", "gemini", "openai-responses", "text"):
        builder().build(session).render(provider)
    assert (given, flat) == before
    given["content"].append({"type": "text", "text": "later"})
    given["x_unknown"]["deep"].clear()
    flat["content"] = "changed"
    assert wires(session) == list(before)


# -- notes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plan", "a", "sub-task_2", "计划", "x" * 64])
def test_a_note_s_name_is_letters_digits_and_dashes(name: str) -> None:
    session = opened()
    session.note(name, "text")
    assert session.state.notes == {name: "text"}


@pytest.mark.parametrize("name", ["", "-", "a b", "a:b", "a\nb", "x" * 65, "</000000000>", "é\u0301"])
def test_another_name_is_refused(name: str) -> None:
    session = opened()
    with pytest.raises(InputError, match="note name"):
        session.note(name, "text")
    assert session.state.notes == {}


def test_notes_survive_compaction_and_reopening(store: Store) -> None:
    session, maker = opened(store), builder()
    session.note("plan", "old")
    session.note("plan", "ship\non Friday")
    for n in range(30):
        session.append((user, reply)[n % 2]("word " * 20))
        maker.build(session)
    assert session.state.compactions
    assert opened(store).state.notes == {"plan": "ship\non Friday"}


# -- pins --------------------------------------------------------------------------------------------------


def test_a_pin_is_named_changed_and_given_up() -> None:
    session = opened()
    session.extend([user("one"), reply("two")])
    session.pin("§1", name="the goal")
    session.pin("2", "soft")
    assert {n: tuple(pin) for n, pin in session.state.pins.items()} == {1: ("keep", "the goal"), 2: ("soft", None)}
    session.pin("§1", None)
    session.pin("§2", "keep")
    assert {n: tuple(pin) for n, pin in session.state.pins.items()} == {2: ("keep", None)}


@pytest.mark.parametrize(
    ("ref", "error"), [("§9", ReferenceNotFound), ("nine", InvalidReference), ("§0", InvalidReference)]
)
def test_only_what_is_there_can_be_pinned(ref: str, error: type[Exception]) -> None:
    session = opened()
    session.append(user("one"))
    with pytest.raises(error):
        session.pin(ref)
    assert session.state.pins == {}


# -- heads -------------------------------------------------------------------------------------------------

ONE, TWO = Profile.from_text("first", name="one"), Profile.from_text("second", name="two")


def head(session: Session) -> tuple[str | None, tuple[str, ...], list[str]]:
    now = session.state.head
    return (now.profile["name"] if now.profile else None, now.system, [tool["function"]["name"] for tool in now.tools])


def heads(store: Store) -> int:
    records = store.journal.read(opened(store).key, 0)
    return sum(isinstance(from_record(record), SessionHead) for record in records)


@pytest.mark.parametrize("again", [{}, {"profile": ONE, "system": "Be brief.", "tools": [tool("find")]}])
def test_a_session_reopened_with_nothing_or_the_same_keeps_its_head_and_writes_nothing(
    store: Store, again: dict[str, Any]
) -> None:
    opened(store, profile=ONE, system="Be brief.", tools=[tool("find")])
    for _ in range(2):
        session = opened(store, **again)
        assert (head(session), session.findings, heads(store)) == (("one", ("Be brief.",), ["find"]), [], 1)


def test_other_tools_and_another_system_message_are_taken_over(store: Store) -> None:
    opened(store, system="Be brief.", tools=[tool("find")])
    session = opened(store, system=["Be kind.", "Be brief."])
    assert head(session) == (None, ("Be kind.", "Be brief."), ["find"])
    assert head(opened(store, tools=[tool("delete")])) == (None, ("Be kind.", "Be brief."), ["delete"])
    assert heads(store) == 3


def test_a_session_keeps_its_profile_says_so_and_moves_when_told(store: Store) -> None:
    opened(store, profile=ONE)
    session = opened(store, profile=TWO)
    assert head(session)[0] == "one"
    (finding,) = session.findings
    assert finding.kind == "profile_pinned"
    assert "session.repin(profile)" in finding.text
    version = builder().build(session).profile_version
    session.repin(TWO)
    assert head(opened(store, profile=TWO))[0] == "two"
    assert opened(store, profile=TWO).findings == []
    assert builder().build(session).profile_version != version


def test_a_session_without_a_profile_takes_the_first_one(store: Store) -> None:
    opened(store)
    session = opened(store, profile=ONE)
    assert (head(session)[0], session.findings) == ("one", [])


def test_a_head_survives_compaction_and_reopening(store: Store) -> None:
    session, maker = opened(store, profile=ONE, system="Be brief."), builder()
    for n in range(30):
        session.append((user, reply)[n % 2]("word " * 20))
        maker.build(session)
    assert session.state.compactions
    assert head(opened(store)) == ("one", ("Be brief.",), [])


# -- forks -------------------------------------------------------------------------------------------------


def test_regenerating_is_a_fork_before_the_reply(store: Store) -> None:
    session = opened(store)
    session.extend([user("a joke?"), reply("No."), user("please")])
    again = session.fork(at=1, id="s-again")
    again.append(reply("Why did the chicken …"))
    assert wires(again) == [user("a joke?"), reply("Why did the chicken …")]
    assert wires(session) == [user("a joke?"), reply("No."), user("please")]
    assert wires(opened(store, "s-again")) == wires(again)


def test_a_fork_of_a_fork_at_every_message_has_that_past(store: Store) -> None:
    session, maker = opened(store, system="Be brief."), builder()
    for n in range(24):
        session.append((user, reply)[n % 2](f"{n} " + "word " * 20))
        maker.build(session)
    child = session.fork(at=20, id="child")
    for n in range(100, 124):
        child.append((user, reply)[n % 2](f"{n} " + "word " * 20))
        maker.build(child)
    past = wires(child)
    assert [wire["content"].split()[0] for wire in past] == [*map(str, range(20)), *map(str, range(100, 124))]
    for at in (1, 7, 19, 20, 21, 30, 44):
        grandchild = child.fork(at=at, id=f"grandchild-{at}")
        assert wires(grandchild) == past[:at], at
        grandchild.append(user("and now?"))
        assert maker.build(grandchild).render("openai-chat")["messages"][-1] == user("and now?")
        assert wires(opened(store, f"grandchild-{at}")) == [*past[:at], user("and now?")]


def test_a_fork_takes_the_head_the_notes_and_the_pins_of_its_time(store: Store) -> None:
    session = opened(store, profile=ONE, system="Be brief.")
    session.append(user("one"))
    session.note("plan", "early")
    session.pin("§1")
    session.append(reply("two"))
    session.note("plan", "late")
    early, late = session.fork(at=2, id="early"), session.fork(id="late")
    assert (early.state.notes, late.state.notes) == ({"plan": "early"}, {"plan": "late"})
    assert (set(early.state.pins), head(early)) == ({1}, ("one", ("Be brief.",), []))
    assert early.state.nonce == late.state.nonce == session.state.nonce


def test_a_fork_shares_ids_of_its_past_only(store: Store) -> None:
    session = opened(store)
    for n in range(4):
        session.append(user(f"{n}"), id=f"m-{n}")
    fork = session.fork(at=2, id="fork")
    assert fork.append(user("x"), id="m-1").ordinal == 2
    assert fork.append(user("a new third"), id="m-3").ordinal == 3
    assert wires(fork) == [user("0"), user("1"), user("a new third")]


@pytest.mark.parametrize(
    ("at", "error"),
    [(9, ReferenceNotFound), (0, InvalidReference), ("§9", ReferenceNotFound), ("last", InvalidReference)],
)
def test_a_fork_at_a_message_that_is_not_there_is_refused(at: Any, error: type[Exception]) -> None:
    session = opened()
    session.append(user("one"))
    with pytest.raises(error):
        session.fork(at=at, id="fork")


def test_a_fork_s_name_must_be_free(store: Store) -> None:
    session = opened(store)
    session.append(user("one"))
    session.fork(id="fork")
    with pytest.raises(InputError, match="'fork' exists already"):
        session.fork(id="fork")


def test_a_fork_amid_a_tool_group_shows_a_placeholder_and_goes_on(store: Store) -> None:
    session = opened(store)
    session.extend([user("look"), call("a", "b"), result("a", "1"), result("b", "2")])
    fork = session.fork(at=3, id="fork")
    shown = builder().build(fork).render("openai-chat")["messages"]
    assert [message["content"] for message in shown[2:]] == ["1", "[no result was recorded for this call]"]
    fork.append(result("b", "another two"))
    assert builder().build(fork).render("openai-chat")["messages"][-1]["content"] == "another two"


# -- references --------------------------------------------------------------------------------------------


@pytest.fixture
def session() -> Session:
    made = opened()
    made.extend([user("one"), call("a", "b"), result("a", "first"), result("b", "second"), reply("done")])
    blocks: list[Wire] = [{"type": "tool_use", "id": id, "name": "f", "input": {}} for id in ("c", "d")]
    made.append({"role": "assistant", "content": blocks})
    made.append(
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": id, "content": f"result {id}"} for id in ("c", "d")],
        }
    )
    return made


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        ("§1", "one"),
        ("1", "one"),
        (" §5 ", "done"),
        (Ref(5), "done"),
        ("§3", "first"),
        ("§3.1", "first"),
        ("§7.2", "result d"),
        (Ref(7, 1), "result c"),
        ("tool:1", "first"),
        ("tool:2", "second"),
        ("tool:4", "result d"),
    ],
)
def test_every_form_of_a_reference_resolves(session: Session, ref: str | Ref, text: str) -> None:
    message = session.resolve(ref)
    assert text in (message.text, *(row.text for row in message.tool_results))


def test_an_original_comes_back_as_it_was_and_one_result_as_a_tool_message(session: Session) -> None:
    assert session.resolve("§3").wire == result("a", "first")
    assert session.resolve("§7.2").wire == result("d", "result d")
    assert session.tool_output(3).wire == result("c", "result c")
    assert session.tool_output(1).wire == result("a", "first")


@pytest.mark.parametrize(
    ("ref", "says"),
    [
        ("§8", "it holds §1 to §7"),
        ("§1.2", "that message holds 1 passage"),
        ("§7.3", "that message holds 2 tool results"),
        ("tool:5", "it holds 4 tool outputs"),
        ("tool:0", "it holds 4 tool outputs"),
    ],
)
def test_a_reference_to_nothing_says_what_there_is(session: Session, ref: str, says: str) -> None:
    with pytest.raises(ReferenceNotFound) as missing:
        session.resolve(ref)
    assert isinstance(missing.value, KeyError)
    assert says in str(missing.value)


def test_entries_are_a_range(session: Session) -> None:
    assert [entry.ordinal for entry in session.entries(3, 5)] == [3, 4, 5]
    assert [entry.ordinal for entry in session.entries(6, 99)] == [6, 7]
    assert session.entries(9) == []


# -- threads -----------------------------------------------------------------------------------------------


def test_eight_threads_with_a_session_each_lose_nothing_and_agree_on_one_order() -> None:
    store = memory_store()
    sessions = [opened(store) for _ in range(8)]

    def work(n: int) -> None:
        for m in range(50):
            sessions[n].append(user(f"{n}/{m}"))

    assert in_threads(8, work) == []
    reference = opened(store)
    said = [wire["content"] for wire in wires(reference)]
    assert sorted(said) == sorted(f"{n}/{m}" for n in range(8) for m in range(50))
    for n in range(8):
        assert [text for text in said if text.startswith(f"{n}/")] == [f"{n}/{m}" for m in range(50)]
        sessions[n].refresh()
        assert sessions[n].state == reference.state


def test_eight_threads_with_the_same_ids_write_each_message_once() -> None:
    store = memory_store()
    sessions = [opened(store) for _ in range(8)]

    def work(n: int) -> None:
        for m in range(50):
            assert sessions[n].append(user(f"{m}"), id=f"m-{m}").message.text == f"{m}"

    for _ in range(3):
        assert in_threads(8, work) == []
    assert wires(opened(store)) == [user(f"{m}") for m in range(50)]


def test_threads_that_append_and_build_compact_once_at_a_time() -> None:
    store = memory_store()
    sessions = [opened(store) for _ in range(4)]

    def work(n: int) -> None:
        maker = builder(1_500)
        for m in range(30):
            sessions[n].append(user(f"{n}/{m} " + "word " * 10))
            envelope = maker.build(sessions[n])
            assert envelope.dynamic.tokens <= 1_500

    assert in_threads(4, work) == []
    reference = opened(store)
    assert len(reference) == 120
    assert reference.state.compactions == len(reference.reports()) > 3
    lost = {Ref.parse(loss.ref).ordinal for event in reference.reports() for loss in event.report.losses}
    cited = {Ref.parse(ref).ordinal for bullet in reference.state.bullets for ref in bullet.citations}
    kept = {n for group in reference.state.groups for n in group.ordinals}
    assert set(range(1, 121)) == kept | lost | cited
