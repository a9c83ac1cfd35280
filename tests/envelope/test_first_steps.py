"""What a new user tries first works, or says in one line what was found and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store, rebuild
from ctxsteward.envelope.recall.strategies import Heuristic, Hybrid, Semantic
from ctxsteward.envelope.testing import CharTokenizer, FirstLine, memory_store
from ctxsteward.schemas import InputError
from ctxsteward.schemas.message import Wire

USER: Wire = {"role": "user", "content": "hi"}
REPLY: Wire = {"role": "assistant", "content": "hello"}
FIND: Wire = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}


def builder(**more: Any) -> EnvelopeBuilder:
    return EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=Budgets(dynamic_tokens=2_000), **more)


def test_a_store_opens_at_a_path(tmp_path: Path) -> None:
    with open_store(tmp_path / "here") as store:
        store.session("s").append(USER)
    with open_store(f"file:{tmp_path / 'here'}") as store:
        assert len(store.session("s")) == 1


@pytest.mark.parametrize("uri", [None, 7, b"memory:", ["memory:"]], ids=repr)
def test_what_is_neither_uri_nor_path_opens_no_store(uri: Any) -> None:
    with pytest.raises(InputError, match="a store is opened by a URI or a path, not"):
        open_store(uri)


@pytest.mark.parametrize("call", ["build", "preview"])
@pytest.mark.parametrize("given", [[USER], (), {"messages": [USER]}, "s-1", None], ids=repr)
def test_an_envelope_of_messages_without_a_session_says_how_to_make_one(call: str, given: Any) -> None:
    with pytest.raises(InputError, match=r"of a session, not of .*; write: session = store\.session"):
        getattr(builder(), call)(given)


def test_a_section_that_is_none_names_those_that_are() -> None:
    session = memory_store().session("s")
    session.append(USER)
    with pytest.raises(InputError, match=r"unknown section 'history'; an envelope has system, static, meta, dynamic"):
        builder().build(session).section("history")


def test_a_selector_may_be_named() -> None:
    assert isinstance(builder().selector, Heuristic)
    assert isinstance(builder(selector="semantic").selector, Semantic)
    assert isinstance(builder(selector="hybrid").selector, Hybrid)
    assert builder(selector=None).selector is None


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("llm", r"or pass ctxsteward\.envelope\.recall\.strategies\.ModelSelector\(model\)"),
        ("bm25", "known: heuristic, semantic, hybrid; or pass a callable"),
    ],
)
def test_a_selector_that_is_none_names_those_that_are(name: str, hint: str) -> None:
    with pytest.raises(InputError, match=hint):
        builder(selector=name)


def test_a_named_hybrid_recalls_whether_its_model_is_there_or_not() -> None:
    session = memory_store().session("s")
    session.append({"role": "user", "content": "the valve is blue"})
    session.extend({"role": ("assistant", "user")[n % 2], "content": f"{n} " + "word " * 40} for n in range(40))
    session.append({"role": "user", "content": "what colour is the valve?"})
    made = EnvelopeBuilder(tokenizer="o200k_base", summarizer=FirstLine(), selector="hybrid")
    assert "the valve is blue" in made.build(session).section("dynamic").text


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        ("find", "tools is str; pass a list of tool schemas"),
        (FIND, "tools is dict; pass a list of tool schemas"),
        (7, "tools is int; pass a list of tool schemas"),
        ([print], r"tools\[0\] is builtin_function_or_method; a tool schema is a dict"),
        ([FIND, "find"], r"tools\[1\] is str; a tool schema is a dict"),
        ([{"type": "function"}], r"tools\[0\]\.name is None; a tool has a name"),
        ([{"type": "function", "function": "find"}], r"tools\[0\]\.function is str; write"),
        ([{"type": "function", "function": {}}], r"tools\[0\]\.function\.name is None; a tool has a name"),
        ([{"name": 3, "input_schema": {}}], r"tools\[0\]\.name is 3; a tool has a name"),
        ([{"name": "find", "input_schema": "x"}], r"tools\[0\]\.input_schema is str; write a JSON Schema"),
        ([{"name": "find", "parameters": []}], r"tools\[0\]\.parameters is list; write a JSON Schema"),
    ],
    ids=repr,
)
def test_tools_of_a_wrong_shape_are_refused_by_place(tools: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        memory_store().session("s", tools=tools)


@pytest.mark.parametrize(
    "tool",
    [
        FIND,
        {"name": "find", "input_schema": {"type": "object"}},
        {"type": "function", "name": "find", "parameters": None},
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "web_search"},
        {"type": "custom", "custom": {"name": "free"}},
        {"google_search": {}},
        {"functionDeclarations": [{"name": "find"}]},
    ],
    ids=repr,
)
def test_tools_of_every_provider_are_taken(tool: Wire) -> None:
    assert memory_store().session("s", tools=[tool]).state.head.tools == (tool,)


def test_another_system_text_or_other_tools_on_reopening_replace_what_was_and_say_so() -> None:
    store = memory_store()
    store.session("s", system="Be brief.", tools=[FIND])
    assert [finding.kind for finding in store.session("s").findings] == []
    assert [finding.kind for finding in store.session("s", system="Be brief.", tools=[FIND]).findings] == []
    again = store.session("s", system="Be long.", tools=[{**FIND, "strict": True}])
    assert [(finding.kind, finding.field) for finding in again.findings] == [
        ("head_replaced", "system"),
        ("head_replaced", "tools"),
    ]
    assert again.state.head.system == ("Be long.",)


# -- the same turn again ---------------------------------------------------------------------------------------------


def test_an_entry_says_whether_its_append_wrote_it() -> None:
    session = memory_store().session("s")
    first = session.append(USER, id="t1")
    again = session.append(USER, id="t1")
    assert (first.is_new, again.is_new, first == again) == (True, False, True)
    assert first.is_new, "what was returned before stays what it was"
    assert session.append(USER).is_new


def test_so_do_the_entries_of_a_batch() -> None:
    from ctxsteward.envelope.history.tool_groups import NewMessage

    session = memory_store().session("s")
    session.append(USER, id="t1")
    batch = [NewMessage(message=USER, id=id) for id in ("t1", "t2", "t2")]
    assert [entry.is_new for entry in session.extend(batch)] == [False, True, False]


def test_a_turn_that_was_answered_and_is_sent_again_gives_the_request_that_was_answered() -> None:
    store = memory_store()
    session, maker = store.session("s", system="Be brief."), EnvelopeBuilder(tokenizer="o200k_base")
    session.append({"role": "user", "content": "before"})
    session.append(REPLY)
    session.append(USER, id="t1")
    first = maker.build(session)
    session.append({"role": "assistant", "content": "an answer that was lost on the way"})
    session.append(USER, id="t1")
    again = maker.build(session)
    for provider in ("anthropic", "openai-chat"):
        assert again.render(provider) == first.render(provider)
        assert again.render(provider)["messages"][-1]["role"] == "user"
    assert again.address == first.address
    assert [(finding.kind, finding.ref) for finding in again.findings] == [("turn_already_answered", "§4")]
    assert rebuild(store, again.address).render("anthropic") == again.render("anthropic")
    session.append({"role": "user", "content": "next"}, id="t2")
    after = maker.build(session)
    assert "lost on the way" in after.section("dynamic").text
    assert after.findings == ()


def test_a_turn_with_tools_that_is_sent_again_keeps_what_its_tools_said() -> None:
    session, maker = memory_store().session("s"), builder()
    session.append(USER, id="t1")
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    session.append({"role": "assistant", "content": None, "tool_calls": [call]})
    session.append(USER, id="t1")
    assert [f.kind for f in maker.build(session).findings] == ["tool_call_without_result"], "it has no answer yet"
    session.append({"role": "tool", "tool_call_id": "c", "content": "found"})
    session.append(REPLY)
    session.append(USER, id="t1")
    messages = maker.build(session).render("openai-chat")["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]


def test_a_reply_that_a_caller_leaves_at_the_end_stays_where_it_is() -> None:
    session = memory_store().session("s")
    session.append(USER, id="t1")
    session.append({"role": "assistant", "content": "It begins"}, id="r1")
    session.extend([])
    envelope = builder().build(session)
    assert envelope.render("openai-chat")["messages"][-1]["content"] == "It begins"
    assert envelope.findings == ()
