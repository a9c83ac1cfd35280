"""What every adapter does: sessions by name, heads, failures; and histories of response items."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import (
    Budgets,
    ConversationName,
    Conversations,
    Profile,
    Session,
    Store,
    conversation,
    open_store,
)
from ctxsteward.envelope.integrations.conversations import (
    OnError,
    PreparedCall,
    current_conversation,
    named_conversation,
    split_head,
)
from ctxsteward.envelope.render.openai_responses import messages_of_items
from ctxsteward.schemas import Erased, InputError, Message
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.journal.port import SessionKey

from ...examples import examples
from .loops import responses_faults

Wire = dict[str, Any]
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Look. " * 20, "parameters": {"type": "object"}},
}
NAME = ConversationName("chat-1")


@pytest.fixture
def memory() -> Iterator[Store]:
    with open_store("memory:") as store:
        yield store


def user(text: str) -> Wire:
    return {"role": "user", "content": text}


# -- names -------------------------------------------------------------------------------------------------


def test_a_name_holds_for_a_task_and_the_tasks_made_there() -> None:
    async def inside() -> ConversationName | None:
        await asyncio.sleep(0)
        return current_conversation()

    async def run() -> list[ConversationName | None]:
        with conversation("a", tenant="t"):
            first = asyncio.ensure_future(inside())
            with conversation("b", principal="ada"):
                second = asyncio.ensure_future(inside())
        return [await first, await second, current_conversation()]

    assert asyncio.run(run()) == [ConversationName("a", "t"), ConversationName("b", principal="ada"), None]


def test_what_is_said_around_a_call_goes_before_the_default() -> None:
    with conversation("inner"):
        assert named_conversation(NAME).id == "inner"
    assert named_conversation(NAME) == NAME
    with pytest.raises(InputError, match="no session is named for this call of the model"):
        named_conversation()


# -- around a call -----------------------------------------------------------------------------------------


def test_who_says_it_is_kept_with_what_the_user_says(memory: Store) -> None:
    conversations = Conversations(memory, on_error="raise")
    name = ConversationName("s", "acme", "ada")
    call = conversations.prepare(name, [user("Hello?")], model="gpt-4o")
    assert call is not None
    conversations.finish(call, [{"role": "assistant", "content": "Hello."}])
    session = memory.session("s", tenant="acme")
    assert [entry.event.principal for entry in session.entries()] == ["ada", None]
    assert conversations.standing(name).id == "s"


def test_the_profile_and_the_requests_own_texts_are_the_head(memory: Store) -> None:
    conversations = Conversations(memory, profile=Profile.from_text("You are a clerk."), on_error="raise")
    history = [{"role": "system", "content": [{"type": "text", "text": "Be kind."}]}, user("Hello?")]
    call = conversations.prepare(NAME, history, system=["Be brief."], model="gpt-4o")
    assert call is not None
    shown = [message["content"] for message in call.render("openai-chat")["messages"]]
    assert shown == ["You are a clerk.", "Be brief.", "Be kind.", "Hello?"]


def test_a_failure_of_ours_says_what_it_is_and_quotes_nothing(
    memory: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversations = Conversations(memory, budgets=Budgets(tools_tokens=5))
    with caplog.at_level(logging.WARNING):
        assert conversations.prepare(NAME, [user("secret " * 200)], tools=[TOOL], model="gpt-4o") is None
        monkeypatch.setattr(Session, "follow", _secret_told)
        assert conversations.prepare(NAME, [user("secret")]) is None
    failed = "could not build the context of this call; the caller's own request is sent: "
    assert [record.getMessage() for record in caplog.records] == [
        f"{failed}BudgetExceeded: section 'tools' needs 62 tokens but its budget is 5 (look 62); raise "
        "`budgets.tools_tokens` or shorten these blocks: the head is never cut",
        f"{failed}RuntimeError",
    ]
    assert memory.sessions() == ["chat-1"]  # what was said is kept, though it could not be shown


def _secret_told(*_: object, **__: object) -> None:
    raise RuntimeError("secret")


class Mistake(NamedTuple):
    arguments: dict[str, Any]
    says: str


MISTAKES = {
    "a message of no known role": Mistake(
        {"messages": [{"role": "nobody", "content": "x"}]}, "message field `role`: found 'nobody'; expected"
    ),
    "an id that is none": Mistake(
        {"name": ConversationName("bad\nname")}, "session 'bad\\nname' is not usable as an id"
    ),
    "a principal that is none": Mistake(
        {"name": ConversationName("s", principal="")}, "`principal` is ''; write a text"
    ),
    "a tool without a name": Mistake(
        {"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name is None"
    ),
    "a system text that is none": Mistake({"system": [4]}, "system[0] is 4; write text"),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=list(MISTAKES))
@pytest.mark.parametrize("on_error", ["fallback", "raise"])
def test_a_mistake_of_the_caller_is_raised_with_its_full_text(
    mistake: Mistake, on_error: OnError, memory: Store
) -> None:
    arguments: dict[str, Any] = {"name": NAME, "messages": [user("Hello?")], **mistake.arguments}
    with pytest.raises(InputError) as error:
        Conversations(memory, on_error=on_error).prepare(**arguments)
    assert str(error.value).startswith(mistake.says)


def test_each_step_after_the_call_fails_by_itself(memory: Store, caplog: pytest.LogCaptureFixture) -> None:
    told = list[Any]()
    conversations = Conversations(memory, on_call=lambda call: (told.append(call), 1 / 0))
    call = conversations.prepare(NAME, [user("Hello?")], model="gpt-4o")
    assert call is not None
    sent = call.render("openai-chat")
    sent["messages"][-1] = user("Something else.")
    with caplog.at_level(logging.WARNING):
        conversations.finish(call, [{"role": "nobody"}], usage={"odd": 1}, sent=sent, provider="openai-chat")
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "could not keep the answer; the next history brings it",
        "could not read the usage report",
        "what was sent is not the envelope that was built",
        "on_call failed",
    ]
    assert [finding.kind for finding in told[0].findings] == ["altered_text"]


def test_a_turn_costs_no_more_in_an_old_session(memory: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages that are read and counted anew, at the 120th call as at the 30th."""
    read = list[object]()
    from_wire = Message.from_wire

    def counted(wire: object) -> Message:
        read.append(wire)
        return from_wire(wire)

    monkeypatch.setattr(Message, "from_wire", counted)
    conversations, history, costs = Conversations(memory, budgets=Budgets(dynamic_tokens=600), on_error="raise"), [], []
    for turn in range(120):
        history.append(user(f"Order {turn * 7} to the harbour, please, before day {turn}."))
        read.clear()
        call = conversations.prepare(NAME, list(history), model="gpt-4o")
        assert call is not None
        history.append({"role": "assistant", "content": f"Order {turn * 7} is on its way."})
        conversations.finish(call, history[-1:])
        costs.append(len(read))
    assert max(costs[80:]) <= max(costs[20:40])


def test_only_what_leads_is_head() -> None:
    later = [user("hi"), {"role": "system", "content": "not head"}]
    assert split_head([{"role": "developer", "content": "A"}, {"role": "system", "content": "B"}, *later]) == (
        ["A", "B"],
        later,
    )
    item = {"role": "developer", "content": [{"type": "input_text", "text": "C"}]}
    assert split_head(messages_of_items([item])) == ([{"type": "text", "text": "C"}], [])
    assert split_head([]) == ([], [])


# -- response items ----------------------------------------------------------------------------------------

TEXT = st.text("aé§<> \n", min_size=1, max_size=12).filter(str.strip)
REASONING = st.builds(
    lambda id, text: {"type": "reasoning", "id": id, "summary": [], "encrypted_content": text},
    st.uuids().map(lambda id: f"rs_{id.hex[:8]}"),
    TEXT,
)
SAID = st.builds(
    lambda id, text: {
        "type": "message",
        "id": id,
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": [], "x_new": 1}],
    },
    st.uuids().map(lambda id: f"msg_{id.hex[:8]}"),
    TEXT,
)
SEARCH = st.just({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}})
FILE = {"type": "input_file", "file_id": "file-1", "x_new": {"deep": [1]}}
ASKED = st.builds(
    lambda text, more: {"role": "user", "content": [{"type": "input_text", "text": text}, *more]},
    TEXT,
    st.sampled_from([[], [FILE], [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]]),
)


@st.composite
def turns(draw: st.DrawFn) -> list[Wire]:
    """A history of items in which calls and outputs are pairs."""
    items: list[Wire] = []
    for turn in range(draw(st.integers(1, 4))):
        items.append(draw(ASKED))
        for step in range(draw(st.integers(0, 2))):
            ids = [f"call_{turn}_{step}_{at}" for at in range(draw(st.integers(1, 2)))]
            items += draw(st.lists(REASONING, max_size=1))
            items += [
                {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": "look", "arguments": "{}"}
                for id in ids
            ]
            output = draw(st.one_of(TEXT, st.just([{"type": "input_text", "text": "found"}])))
            items += [
                {"type": "function_call_output", "call_id": id, "output": output, "status": "completed"} for id in ids
            ]
        items += [*draw(st.lists(SEARCH, max_size=1)), *draw(st.lists(REASONING, max_size=1)), draw(SAID)]
    return [*items, draw(ASKED)]


@given(turns())
@settings(max_examples=examples(60))
def test_items_come_back_as_they_were(items: list[Wire]) -> None:
    with open_store("memory:") as store:
        conversations = Conversations(store, budgets=Budgets(dynamic_tokens=50_000), on_error="raise")
        call = conversations.prepare(NAME, messages_of_items(items), model="gpt-5")
        assert call is not None
        assert call.render("openai-responses")["input"] == items
        again = conversations.prepare(NAME, messages_of_items(items), model="gpt-5")
        assert again is not None
        assert len(again.session) == len(messages_of_items(items))


@given(turns(), st.integers(40, 200))
@settings(max_examples=examples(40))
def test_items_in_a_narrow_window_are_valid_for_every_provider(items: list[Wire], budget: int) -> None:
    from ctxsteward.evals.prompt_cost import anthropic_faults, openai_faults

    with open_store("memory:") as store:
        conversations = Conversations(store, budgets=Budgets(dynamic_tokens=budget), on_error="raise")
        for stop in range(1, len(items) + 1):
            if items[stop - 1].get("role") == "user":
                call = conversations.prepare(NAME, messages_of_items(items[:stop]), model="gpt-5")
                assert call is not None
                assert responses_faults(call.render("openai-responses")) == []
                assert openai_faults(call.render("openai-chat")) == []
                assert anthropic_faults(call.render("anthropic")) == []


def test_a_call_of_the_computer_and_its_picture() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "click"}]},
        {
            "type": "computer_call",
            "id": "cc_1",
            "call_id": "c1",
            "action": {"type": "click", "x": 1, "y": 2},
            "pending_safety_checks": [],
            "status": "completed",
        },
        {
            "type": "computer_call_output",
            "call_id": "c1",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"},
        },
    ]
    messages = [Message.from_wire(wire) for wire in messages_of_items(items)]
    assert [call.name for call in messages[1].tool_calls] == ["computer_call"]
    assert [len(result.images) for result in messages[2].tool_results] == [1]
    with open_store("memory:") as store:
        call = Conversations(store, on_error="raise").prepare(NAME, messages_of_items(items))
        assert call is not None
        assert call.render("openai-responses")["input"] == items


def test_what_is_no_item_is_refused() -> None:
    with pytest.raises(InputError, match="an item of `input` is str; expected a dict with `type` or `role`"):
        messages_of_items(["hello"])


# -- what was erased ---------------------------------------------------------------------------------------

WHO = {"who": "dpo", "why": "request 7", "when": "2026-11-22"}
ANN = ConversationName("s", principal="ann")


def talked(conversations: Conversations, name: ConversationName, turns: int) -> list[Wire]:
    """The caller's history of so many turns."""
    history: list[Wire] = []
    for turn in range(turns):
        history.append(user(f"The secret of day {turn} is plum{turn}."))
        call = conversations.prepare(name, list(history), model="gpt-4o")
        assert call is not None
        history.append({"role": "assistant", "content": f"I keep day {turn} in mind."})
        conversations.finish(call, history[-1:])
    return history


def erased_skips(call: PreparedCall) -> list[str]:
    return [one.text for one in call.findings if one.kind == "erased_skipped"]


@pytest.mark.parametrize("on_error", ["fallback", "raise"])
@pytest.mark.parametrize("is_same_process", [True, False], ids=["the same process", "another process"])
@pytest.mark.parametrize(
    "what",
    [{"session": "s"}, {"principal": "ann"}, {"session": "s", "principal": "ann"}],
    ids=["session", "principal", "principal in the session"],
)
def test_what_was_erased_is_never_sent_again(
    what: dict[str, str], is_same_process: bool, on_error: OnError, memory: Store, caplog: pytest.LogCaptureFixture
) -> None:
    conversations = Conversations(memory, on_error=on_error)
    history = talked(conversations, ANN, 6)
    forget(memory, **what, **WHO)
    if not is_same_process:
        conversations = Conversations(memory, on_error=on_error)
    for turn in range(3):
        caplog.clear()
        history.append(user(f"Which day is it, and is it number {turn}?"))
        call = conversations.prepare(ANN, list(history), model="gpt-4o")
        assert call is not None
        sent = json.dumps([call.render("openai-chat"), call.render("anthropic"), call.render("gemini")])
        assert "plum" not in sent
        assert f"number {turn}?" in sent
        assert len(erased_skips(call)) == 1
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "erased" in caplog.text
        history.append({"role": "assistant", "content": f"Friday, number {turn}."})
        conversations.finish(call, history[-1:])
    rows = [record.body for name in memory.sessions() for record in memory.journal.read(memory_key(name), 0)]
    assert not any("plum" in body or "number 0?" in body for body in rows)


def memory_key(name: str) -> SessionKey:
    return SessionKey("default", name)


def test_the_number_of_skipped_messages_is_told(memory: Store) -> None:
    conversations = Conversations(memory)
    history = talked(conversations, ANN, 3)
    forget(memory, principal="ann", **WHO)
    call = conversations.prepare(ANN, [*history, user("And now?")], model="gpt-4o")
    assert call is not None
    assert erased_skips(call) == [
        "3 of the 7 messages handed over were erased on purpose; they are not shown. Delete them from the history that "
        "you keep"
    ]
    forget(memory, session="s", **WHO)
    call = conversations.prepare(ANN, [*history, user("And now?")], model="gpt-4o")
    assert call is not None
    assert "6 of the 7 messages handed over are not shown" in erased_skips(call)[0]


def test_a_history_edited_after_an_erasure_says_nothing_of_it(memory: Store) -> None:
    """Which of the older messages in another history were erased cannot be known; none of them is sent."""
    conversations = Conversations(memory)
    history = talked(conversations, ANN, 4)
    forget(memory, principal="ann", **WHO)
    edited = [*history[:3], {"role": "assistant", "content": "Something else."}, *history[4:], user("And now?")]
    for _ in range(2):
        call = conversations.prepare(ANN, edited, model="gpt-4o")
        assert call is not None
        sent = json.dumps(call.render("openai-chat"))
        assert "plum" not in sent
        assert "And now?" in sent


def test_what_was_said_after_an_erasure_stays_known_within_the_process(memory: Store) -> None:
    conversations = Conversations(memory)
    history = talked(conversations, ANN, 3)
    forget(memory, session="s", **WHO)
    history += [user("My cat is Tom."), {"role": "assistant", "content": "Noted."}, user("Who is my cat?")]
    call = conversations.prepare(ANN, history, model="gpt-4o")
    assert call is not None
    shown = json.dumps(call.render("openai-chat"))
    assert "My cat is Tom." in shown
    assert "plum" not in shown


def test_a_call_that_says_nothing_beyond_what_was_erased_is_refused(memory: Store) -> None:
    conversations = Conversations(memory)
    history = talked(conversations, ANN, 3)
    forget(memory, session="s", **WHO)
    with pytest.raises(Erased, match="session 's' was erased by dpo on 2026-11-22: request 7"):
        conversations.prepare(ANN, history, model="gpt-4o")


def test_tools_of_a_forgotten_conversation_find_nothing_of_it(memory: Store) -> None:
    conversations = Conversations(memory, tools=True)
    history = talked(conversations, ANN, 3)
    forget(memory, session="s", **WHO)
    assert conversations.prepare(ANN, [*history, user("And now?")], model="gpt-4o") is not None
    found = conversations.answer_tool(ANN, "search_context", {"query": "secret plum"})
    assert found is not None
    assert "plum" not in found


# -- callers that do not hand over the same history --------------------------------------------------------


def found(turn: int) -> str:
    return f"Retrieved for you:\nThe manual, page {turn * 7}: turn valve {turn} twice.\n\n"


def pasted_calls(memory: Store, turns: int, paste: Callable[[int, str], str]) -> tuple[Conversations, list[Wire]]:
    """Each call has text pasted into its last user turn; the history keeps the plain question."""
    conversations, history = Conversations(memory, on_error="raise"), list[Wire]()
    for turn in range(turns):
        question = f"What of valve {turn}?"
        call = conversations.prepare(NAME, [*history, user(paste(turn, question))], model="gpt-4o")
        assert call is not None
        assert call.render("openai-chat")["messages"][-1] == user(paste(turn, question))
        answer = {"role": "assistant", "content": f"Turn valve {turn}."}
        conversations.finish(call, [answer])
        history += [user(question), answer]
    return conversations, history


PASTES: dict[str, Callable[[int, str], str]] = {
    "before the question": lambda turn, question: found(turn) + question,
    "behind the question": lambda turn, question: f"{question}\n\n{found(turn)}",
    "around the question": lambda turn, question: f"{found(turn)}{question}\n\nAnswer from what was retrieved.",
}


@pytest.mark.parametrize("paste", PASTES.values(), ids=list(PASTES))
def test_text_pasted_into_the_last_user_turn_makes_no_fork(
    paste: Callable[[int, str], str], memory: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        _, history = pasted_calls(memory, 8, paste)
    assert memory.sessions() == ["chat-1"]
    assert len(memory.session("chat-1")) == len(history)
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "a user message came with other text around it than before" in warning


def test_text_pasted_around_a_message_of_the_log_is_shown_and_not_kept(memory: Store) -> None:
    """A router asks with the plain question first, then the answer is made with what was retrieved; in a tool loop."""
    conversations, history = Conversations(memory, on_error="raise"), list[Wire]()
    for turn in range(4):
        plain, pasted = user(f"What of valve {turn}?"), user(f"{found(turn)}What of valve {turn}?")
        calls = [{"id": f"c{turn}", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
        loop = [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": "it is shut"},
        ]
        assert conversations.prepare(NAME, [*history, plain], model="gpt-4o") is not None
        for handed in ([*history, pasted], [*history, pasted, *loop]):
            call = conversations.prepare(NAME, handed, model="gpt-4o")
            assert call is not None
            assert call.render("openai-chat")["messages"][-len(handed) + len(history) :] == handed[len(history) :]
        answer = {"role": "assistant", "content": f"Turn valve {turn}."}
        conversations.finish(call, [answer])
        history += [plain, *loop, answer]
    assert memory.sessions() == ["chat-1"]
    assert [entry.message.wire for entry in memory.session("chat-1").entries()] == history


def test_a_question_that_was_edited_is_a_fork_still(memory: Store) -> None:
    conversations = Conversations(memory, on_error="raise")
    history = talked(conversations, NAME, 2)
    for edited in ("The secret of day 1 is plum1. And more.", "The secret of day 1 is plum1.\nAnd more."):
        call = conversations.prepare(NAME, [*history[:2], user(edited)], model="gpt-4o")
        assert call is not None
        assert call.session.id != "chat-1"


def test_a_caller_that_hands_over_only_the_newest_message_is_told_once(
    memory: Store, caplog: pytest.LogCaptureFixture
) -> None:
    conversations = Conversations(memory, on_error="raise")
    with caplog.at_level(logging.WARNING):
        for turn in range(8):
            call = conversations.prepare(NAME, [user(f"What of valve {turn}?")], model="gpt-4o")
            assert call is not None
            conversations.finish(call, [{"role": "assistant", "content": "Turn it."}])
    (warning,) = [record.getMessage() for record in caplog.records]
    assert warning == (
        "conversation 'chat-1' is kept in a new fork at every call: calls hand over one message each and nothing of "
        'what was said before. Where these are conversations of their own, name each: `with conversation("chat-1"):` '
        "around its calls; where they are one, hand over its whole history at each call"
    )


def test_a_history_that_something_rewrites_is_told_once(memory: Store, caplog: pytest.LogCaptureFixture) -> None:
    conversations, history = Conversations(memory, on_error="raise"), list[Wire]()
    with caplog.at_level(logging.WARNING):
        for turn in range(6):
            history.append(user(f"What of valve {turn}?"))
            call = conversations.prepare(NAME, [user(f"It is {turn} o'clock."), *history], model="gpt-4o")
            assert call is not None
            history.append({"role": "assistant", "content": f"Turn valve {turn}."})
            conversations.finish(call, history[-1:])
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "something rewrites them" in warning


def test_one_edit_is_no_reason_for_a_warning(memory: Store, caplog: pytest.LogCaptureFixture) -> None:
    conversations = Conversations(memory, on_error="raise")
    history = talked(conversations, NAME, 3)
    with caplog.at_level(logging.WARNING):
        for edited in ([*history[:2], user("Another question?")], [*history[:4], user("And another?")], history):
            assert conversations.prepare(NAME, edited, model="gpt-4o") is not None
            assert conversations.prepare(NAME, edited, model="gpt-4o") is not None
    assert caplog.records == []


def test_the_first_call_of_a_conversation_is_logged(memory: Store, caplog: pytest.LogCaptureFixture) -> None:
    conversations = Conversations(memory, on_error="raise")
    with caplog.at_level(logging.INFO, "ctxsteward.envelope.integrations"):
        talked(conversations, NAME, 3)
    (line,) = [record for record in caplog.records if record.name == "ctxsteward.envelope.integrations"]
    assert line.levelname == "INFO"
    call = conversations.prepare(ConversationName("other"), [user("The secret of day 0 is plum0.")], model="gpt-4o")
    assert call is not None
    tokens = call.envelope.metrics["prompt_tokens"]
    assert line.getMessage() == (
        f"conversation 'chat-1': the first call here handed over 1 messages; {tokens} tokens are sent"
    )
