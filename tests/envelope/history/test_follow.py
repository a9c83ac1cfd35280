"""`Session.follow`: whole histories, as frameworks hand them over, against the log."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Session, Store, open_store
from ctxsteward.envelope.history.said_message import said_message
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.schemas import InputError, InvalidMessage, Message
from ctxsteward.schemas.message import Wire

from ...examples import examples

SYSTEM = "You plan trips."


def user(text: Any) -> Wire:
    return {"role": "user", "content": text}


def answer(text: str) -> Wire:
    return {"role": "assistant", "content": text}


def call(id: str, argument: str = "Kyoto") -> Wire:
    function = {"name": "weather", "arguments": f'{{"city": "{argument}"}}'}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def result(id: str, text: str) -> Wire:
    return {"role": "tool", "tool_call_id": id, "content": text}


def talk(turns: int) -> list[Wire]:
    """Two of three turns have a tool call; some answers are the same."""
    said: list[Wire] = []
    for turn in range(turns):
        said.append(user(f"day {turn}: my budget is {turn}000 yen, remember the name Hana{turn}. " + "And so on. " * 9))
        if turn % 3:
            said += [call(f"c{turn}"), result(f"c{turn}", f"rain on day {turn}, " + "wet " * 40)]
        said.append(answer("fine"))
    return said


def in_session(session: Session) -> list[bytes]:
    return [said_message(entry.message).said for entry in session.entries()]


def said(messages: list[Wire]) -> list[bytes]:
    return [said_message(Message.from_wire(message)).said for message in messages]


def written(store: Store) -> dict[str, list[tuple[str, int]]]:
    """Every log's records."""
    found = {}
    for name in store.sessions():
        key = store.session(name).key
        found[name] = [(record.kind, record.ordinal) for record in store.journal.read(key, 0)]
    return found


# -- known histories ---------------------------------------------------------------------------------------


def test_a_history_that_grows_is_appended_and_built_on_call_by_call() -> None:
    store, builder = open_store("memory:"), EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=400))
    root, history = store.session("s", system=SYSTEM), talk(12)
    for stop in range(1, len(history) + 1):
        session = root.follow([{"role": "system", "content": SYSTEM}, *history[:stop]])
        assert session is root
        if history[stop - 1]["role"] in ("user", "tool"):
            builder.build(session)

    assert in_session(root) == said(history)
    assert len(root.reports()) > 1
    assert store.sessions() == ["s"]


@pytest.mark.parametrize("reopened", [False, True], ids=["one process", "another process each time"])
def test_any_beginning_of_a_history_is_no_event(tmp_path: Path, reopened: bool) -> None:
    history = talk(9)
    with open_store(tmp_path) as store:
        root = store.session("s")
        root.follow(history)
        before = written(store)
        for stop in range(len(history) + 1):
            for _ in range(2):
                session = (store.session("s") if reopened else root).follow(history[:stop])
                assert in_session(session) == said(history[:stop])
        assert written(store) == before


NOISE: dict[str, Callable[[Wire], Wire]] = {
    "nulls": lambda wire: {**wire, "refusal": None, "function_call": None, "audio": None},
    "key order": lambda wire: dict(reversed(wire.items())),
    "blocks": lambda wire: {
        **wire,
        "content": [{"type": "text", "text": wire["content"]}] if wire.get("content") else wire.get("content"),
    },
    "cache marks": lambda wire: (
        {
            **wire,
            "content": [{"type": "text", "text": wire["content"], "cache_control": {"type": "ephemeral"}}],
        }
        if wire["role"] == "user"
        else wire
    ),
    "an id of the framework": lambda wire: {**wire, "id": "lc-7"},
    "arguments spaced": lambda wire: (
        {
            **wire,
            "tool_calls": [
                {**one, "index": 0, "function": {**one["function"], "arguments": '{  "city":"Kyoto"}'}}
                for one in wire["tool_calls"]
            ],
        }
        if "tool_calls" in wire
        else wire
    ),
    "empty text beside calls": lambda wire: {**wire, "content": ""} if "tool_calls" in wire else wire,
}


@pytest.mark.parametrize("noise", NOISE)
def test_what_providers_and_frameworks_add_is_no_difference(noise: str) -> None:
    root, history = open_store("memory:").session("s"), talk(4)
    root.follow(history)

    assert root.follow([NOISE[noise](message) for message in history]) is root
    assert in_session(root) == said(history)


def test_an_object_of_a_framework_that_is_changed_in_place_is_seen() -> None:
    store, history = open_store("memory:"), talk(3)
    root = store.session("s")
    root.follow(history)
    history[0]["content"] = "no: another beginning"

    assert in_session(root.follow(history)) == said(history)
    assert store.sessions() == ["s", "s-fork-0-1"]


# -- histories that go another way -------------------------------------------------------------------------


def test_an_answer_made_again_is_one_fork_with_what_was_decided_before_it() -> None:
    store, builder = open_store("memory:"), EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=400))
    root, history = store.session("s"), talk(8)
    for stop, message in enumerate(history, 1):
        session = root.follow(history[:stop])
        if message["role"] in ("user", "tool"):
            last = builder.build(session)
    again = root.follow(history[:-1])
    first_time = [record for record in written(store)["s"] if record[0] != "manifest"]
    envelope = builder.build(again)

    assert envelope.address == last.address
    assert [record for record in written(store)["s"] if record[0] != "manifest"] == first_time
    for _ in range(2):
        other = root.follow([*history[:-1], answer("different")])
        assert (other.id, in_session(other)) == (
            f"s-fork-{len(history) - 1}-1",
            said([*history[:-1], answer("different")]),
        )
        assert [finding.kind for finding in other.findings] == ["history_forked"]
    assert other.state.compactions == root.state.compactions > 0
    assert builder.build(root.follow([*history[:-1], answer("different"), user("and?")])).section("dynamic").text
    assert store.sessions() == ["s", other.id]


def test_what_is_built_on_where_nothing_was_built_yet_stands_in_a_fork() -> None:
    store, builder = open_store("memory:"), EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=400))
    root, history = store.session("s"), talk(12)
    root.follow(history)
    envelope = builder.build(root.follow(history[:-1]))

    assert envelope.section("dynamic").tokens <= 400
    assert store.sessions() == ["s", f"s-fork-{len(history) - 1}-1"]
    assert store.manifest(envelope.address)["session"] == f"s-fork-{len(history) - 1}-1"
    other = root.follow([*history[:-1], answer("different")])
    assert (other.id, len(other)) == (f"s-fork-{len(history) - 1}-1", len(history))


EVERY = settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))


@st.composite
def visits(draw: st.DrawFn) -> list[list[Wire]]:
    """Histories as one conversation shows them: it grows, is edited, regenerated, and looked at again."""
    shown: list[list[Wire]] = [[user("start")]]
    for number in range(draw(st.integers(1, 12))):
        base = draw(st.sampled_from(shown))
        keep = draw(st.integers(0, len(base)))
        more = [user("x") if draw(st.booleans()) else user(f"u{number}")] * draw(st.integers(0, 2))
        more += [answer(draw(st.sampled_from(["ok", "no", f"a{number}"])))] * draw(st.integers(0, 1))
        shown.append(base[:keep] + more)
    return shown


@EVERY
@given(visits(), st.booleans())
def test_every_history_stands_in_one_log_and_coming_again_is_no_event(shown: list[list[Wire]], reopened: bool) -> None:
    store = open_store("memory:")
    root = store.session("s")
    for history in shown:
        if reopened:
            root = store.session("s")
        session = root.follow(copy.deepcopy(history))
        kinds = {finding.kind for finding in session.findings}
        if "history_compacted" not in kinds:
            assert in_session(session) == said(history)
        before = written(store)
        again = root.follow(copy.deepcopy(history))
        assert (again.id, in_session(again)) == (session.id, in_session(session))
        assert written(store) == before


# -- histories that a framework compacted ------------------------------------------------------------------


def compacted(history: list[Wire], kept: int) -> list[Wire]:
    return [user("Here is a summary of the conversation so far: they plan a trip."), *history[-kept:]]


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("head", ["summary", "nothing", "the task"])
def test_a_framework_that_compacts_loses_nothing(tmp_path: Path, head: str, reopened: bool) -> None:
    history = talk(9)
    stands_in = {"summary": compacted(history, 0)[:1], "nothing": [], "the task": history[:1]}[head]
    with open_store(tmp_path) as store:
        root = store.session("s")
        root.follow(history)
        for turn in range(3):
            if reopened:
                root = store.session("s")
            history += [user(f"more {turn}"), answer(f"sure {turn}")]
            session = root.follow([*stands_in, *history[-8:]])
            assert in_session(session) == said(history)
            assert [finding.kind for finding in session.findings][-1:] == ["history_compacted"]
        assert store.sessions() == ["s"]


def test_a_tool_result_that_a_framework_cleared_is_the_same_message() -> None:
    root, history = open_store("memory:").session("s"), talk(6)
    root.follow(history)
    cleared = [result(m["tool_call_id"], "[cleared]") if m["role"] == "tool" else m for m in history]

    assert root.follow([*cleared, user("next")]) is root
    assert in_session(root) == said([*history, user("next")])


def test_a_turn_taken_out_of_the_middle_is_an_edit() -> None:
    root, history = open_store("memory:").session("s"), talk(6)
    root.follow(history)
    edited = history[:4] + history[8:]

    session = root.follow(edited)
    assert (in_session(session), session.id) == (said(edited), "s-fork-4-1")
    assert in_session(root) == said(history)


# -- what is ours ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["openai-chat", "anthropic"])
def test_a_view_of_ours_that_comes_back_as_history_is_known(provider: Any) -> None:
    builder = EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=500))
    root = open_store("memory:").session("s")
    history = [one for n in range(12) for one in (user(f"turn {n}: " + "talk " * 30), answer(f"answer {n}"))][:-1]
    session = root.follow(history)
    view = builder.build(session).render(provider)["messages"]
    assert any(root.state.nonce in str(message) for message in view)

    session = root.follow([*view, answer("answer 11")])
    assert session is root
    assert in_session(root) == said([*history, answer("answer 11")])
    assert {"own_text_skipped", "history_compacted"} <= {finding.kind for finding in root.findings}


def test_text_that_only_looks_like_ours_is_the_users_own() -> None:
    root = open_store("memory:").session("s")
    nonce = root.state.nonce
    shown = [
        user("<123456789 compacted messages: data>\n- x\n</123456789>"),
        answer(f"<{nonce} compacted messages>\n- quoted by a model\n</{nonce}>"),
        user(f"what does <{nonce} mean?"),
    ]
    root.follow(shown)

    assert in_session(root) == said(shown)


def test_blocks_of_ours_between_the_users_words_are_taken_out() -> None:
    root = open_store("memory:").session("s")
    block = f"<{root.state.nonce} recalled messages>\n§1\n</{root.state.nonce}>"
    root.follow([user(f"{block}\n\nMY QUESTION\n\n{block}\n")])

    assert in_session(root) == said([user("MY QUESTION")])
    assert [finding.kind for finding in root.findings] == ["own_text_skipped"]


# -- what looks alike and is not ---------------------------------------------------------------------------


def test_a_branch_that_a_restart_brings_back_is_its_fork_not_a_compaction() -> None:
    store = open_store("memory:")
    root = store.session("s")
    root.follow([user("task"), answer("plan A"), call("c1"), result("c1", "rain"), user("continue"), answer("ok")])
    other = [user("task"), answer("plan B"), user("continue"), answer("ok")]
    for stop in range(2, 5):
        root.follow(other[:stop])
    for again in (root, store.session("s")):
        session = again.follow([*other, user("next")])
        assert (session.id, in_session(session)) == ("s-fork-1-1", said([*other, user("next")]))


def test_two_branches_that_end_alike_are_kept_apart() -> None:
    root = open_store("memory:").session("s")
    start = [user("a"), answer("b")]
    one = [*start, user("y"), user("continue"), answer("ok")]
    two = [*start, user("x1"), answer("x2"), user("x3"), user("continue"), answer("ok")]
    root.follow(one)
    root.follow(two)

    assert root.follow([*one, user("new in one")]) is root
    assert in_session(root) == said([*one, user("new in one")])


@pytest.mark.parametrize(
    ("logged", "handed"),
    [
        pytest.param(
            user([{"type": "text", "text": "read"}, {"type": "document", "source": {"data": "AAAA"}}]),
            user([{"type": "text", "text": "read"}, {"type": "document", "source": {"data": "BBBB"}}]),
            id="another document",
        ),
        pytest.param(
            user([{"type": "text", "text": "t"}, {"type": "image_url", "image_url": {"url": "http://x/a"}}]),
            user([{"type": "image_url", "image_url": {"url": "http://x/a"}}, {"type": "text", "text": "t"}]),
            id="another order",
        ),
        pytest.param({**user("yes"), "name": "alice"}, {**user("yes"), "name": "bob"}, id="another speaker"),
        pytest.param(
            user(
                [
                    {"type": "tool_result", "tool_use_id": "c", "content": "a long result"},
                    {"type": "text", "text": "A: book it"},
                ]
            ),
            user([{"type": "tool_result", "tool_use_id": "c", "content": "a long"}, {"type": "text", "text": "B: no"}]),
            id="other words beside a result",
        ),
        pytest.param(result("c", "Error: no connection after 30 s"), result("c", "sunny"), id="a tool that ran again"),
    ],
)
def test_what_says_something_else_is_an_edit(logged: Wire, handed: Wire) -> None:
    root = open_store("memory:").session("s")
    root.follow([call("c"), logged, answer("one")])
    session = root.follow([call("c"), handed, answer("one")])

    assert (session.id, in_session(session)) == ("s-fork-1-1", said([call("c"), handed, answer("one")]))


def test_a_changing_system_message_is_the_heads_and_no_fork() -> None:
    store = open_store("memory:")
    root, history = store.session("s"), talk(3)
    for day in range(4):
        session = root.follow([{"role": "system", "content": f"Today is day {day}."}, *history[: 2 + day]])
        assert session is root
    assert [finding.kind for finding in root.findings] == ["system_not_in_head"]
    assert in_session(root) == said(history[:5])


def test_a_compacting_framework_is_told_of_once() -> None:
    root, history = open_store("memory:").session("s"), talk(8)
    root.follow(history)
    for turn in range(12):
        history += [user(f"more {turn}"), answer(f"sure {turn}")]
        root.follow([user("A summary of it all."), *history[-8:]])
    assert [finding.kind for finding in root.findings] == ["history_compacted"]
    assert in_session(root) == said(history)


def test_answers_made_again_and_again_are_built_and_kept_in_one_fork_each() -> None:
    store, builder = open_store("memory:"), EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=400))
    root, history = store.session("s"), talk(12)
    root.follow(history)
    for number in range(4):
        past = root.follow(history[:-1])
        built = builder.build(past)
        kept = root.follow([*history[:-1], answer(f"again {number}")])
        assert store.manifest(built.address)["session"] == kept.id == f"s-fork-{len(history) - 1}-{number + 1}"
        assert kept.state.compactions >= 1
    assert len(store.sessions()) == 5


def test_what_was_told_of_a_past_session_goes_with_it_into_its_fork() -> None:
    store, builder = open_store("memory:"), EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=400))
    root, history = store.session("s"), talk(12)
    root.follow(history)
    past = root.follow([user("A summary of it all."), *history[-8:-1]])
    builder.build(past)

    assert past.id.startswith("s-fork-")
    assert [finding.kind for finding in past.findings] == ["history_compacted"]


def test_a_past_session_follows_as_the_conversation_does() -> None:
    root, history = open_store("memory:").session("s"), talk(3)
    root.follow(history)
    past = root.follow(history[:3])

    assert in_session(past.follow([*history[:3], answer("other")])) == said([*history[:3], answer("other")])


# -- several writers, bad input ----------------------------------------------------------------------------


def test_two_processes_that_follow_one_history_write_it_once(tmp_path: Path) -> None:
    history = talk(10)
    stores = [open_store(tmp_path) for _ in range(3)]
    failures: list[BaseException] = []

    def follow(store: Store) -> None:
        try:
            root = store.session("s")
            for stop in range(1, len(history) + 1):
                root.follow(copy.deepcopy(history[:stop]))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=follow, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    root = stores[0].session("s")
    assert failures == []
    assert in_session(root) == said(history)
    assert stores[0].sessions() == ["s"]
    for store in stores:
        store.close()


def test_what_others_appended_beside_it_is_part_of_the_history() -> None:
    root, history = open_store("memory:").session("s"), talk(3)
    root.follow(history[:3])
    root.append(history[3])
    root.extend(history[4:6])

    assert root.follow(history) is root
    assert in_session(root) == said(history)


def test_a_history_with_an_invalid_message_writes_nothing() -> None:
    store = open_store("memory:")
    root = store.session("s")
    before = written(store)
    with pytest.raises(InvalidMessage, match="role"):
        root.follow([user("fine"), {"role": "nobody", "content": "x"}])

    assert written(store) == before


def test_a_user_turn_is_by_its_principal_and_what_was_forgotten_does_not_come_back() -> None:
    from ctxsteward.store.erasure.forget import forget

    store, history = open_store("memory:"), talk(3)
    root = store.session("s")
    root.follow(history, principal="mia")
    assert {e.event.principal for e in root.entries() if e.message.role == "user"} == {"mia"}
    assert {e.event.principal for e in root.entries() if e.message.role != "user"} == {None}
    forget(store, tenant="default", session="s", principal="mia", who="ops", why="asked", when="2026-01-01")
    length = len(root)

    root.follow(history, principal=None)
    assert len(root) == length
    assert "Hana" not in str([record.wire for record in store.journal.read(root.key, 0)])


def test_what_is_erased_hides_nothing_new_and_comes_back_in_no_fork() -> None:
    from ctxsteward.schemas import Erased
    from ctxsteward.store.erasure.forget import forget

    store = open_store("memory:")
    root = store.session("s")
    root.follow([user("a"), answer("fine"), user("my secret is 42")], principal="mia")
    forget(store, tenant="default", session="s", principal="mia", who="ops", why="asked", when="2026-01-01")
    new = root.follow([user("a"), answer("fine"), user("a wholly different question")], principal="bob")
    assert "a wholly different question" in [entry.message.text for entry in new.entries()]
    with pytest.raises(Erased):
        root.follow([user("a"), answer("regenerated"), user("my secret is 42")], principal="mia")
    assert "secret" not in str(
        [record.wire for name in store.sessions() for record in store.journal.read(store.session(name).key, 0)]
    )


def test_a_fork_that_was_forgotten_makes_room_for_another() -> None:
    from ctxsteward.store.erasure.forget import forget

    store = open_store("memory:")
    root = store.session("s")
    root.follow([user("a"), answer("b")])
    root.follow([user("a"), answer("c")])
    forget(store, tenant="default", session="s-fork-1-1", who="ops", why="asked", when="2026-01-01")

    session = store.session("s").follow([user("a"), answer("d")])
    assert (session.id, in_session(session)) == ("s-fork-1-2", said([user("a"), answer("d")]))


def test_two_messages_of_one_id_are_refused_and_nothing_is_written() -> None:
    store = open_store("memory:")
    root = store.session("s")
    before = written(store)
    with pytest.raises(InputError, match="two messages of the id 'm-1'"):
        root.follow([NewMessage(message=user("a"), id="m-1"), NewMessage(message=answer("b"), id="m-1")])
    assert written(store) == before


def test_arguments_that_are_too_deep_to_read_are_text() -> None:
    deep = {"name": "f", "arguments": "[" * 200_000}
    wire = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": deep}]}
    root = open_store("memory:").session("s")

    assert len(root.follow([user("a"), wire])) == 2


def test_ids_tell_nothing_of_what_was_said() -> None:
    """The same words in another session, or of another tenant, go by other ids."""
    store = open_store("memory:")
    ids = [
        store.session(name, tenant=tenant).follow([user("yes")]).entries()[0].event.id
        for name, tenant in (("a", "t"), ("b", "t"), ("a", "u"))
    ]
    assert len(set(ids)) == 3


def test_a_fork_that_another_machine_wrote_is_read_in_and_gone_on_with(tmp_path: Path) -> None:
    """Two journals over one object store: the fork moves with its conversation, and no second one is made."""
    uri = f"file:{tmp_path / 'objects'}"
    start, other = [user("a"), answer("b")], [user("a"), answer("c"), user("d")]
    with open_store(uri, journal=tmp_path / "one") as here:
        root = here.session("s")
        root.follow(start)
        root.follow(other).note("plan", "written there")
        assert here.flush(20)
    with open_store(uri, journal=tmp_path / "two") as there:
        session = there.session("s").follow([*other, answer("e")])
        assert (session.id, in_session(session)) == ("s-fork-1-1", said([*other, answer("e")]))
        assert session.state.notes["plan"] == "written there"
        assert there.flush(20)
        assert there.sessions() == ["s", "s-fork-1-1"]
