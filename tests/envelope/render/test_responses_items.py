"""Items of OpenAI's responses in a session, appended one by one: they go back as they came, and pair for everyone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Budgets, Session
from ctxsteward.envelope.history.tool_groups import LogEntry, MissingMessage, claimed, mended, unanswered
from ctxsteward.envelope.render.request import dropped_fields
from ctxsteward.evals.prompt_cost import anthropic_faults, openai_faults
from ctxsteward.schemas import InvalidMessage, Message
from ctxsteward.store.erasure.redacted_log import redacted

from ...examples import examples
from ..histories import PIXEL, Wire, histories
from ..messages import char_builder, session_of

WIDE = Budgets(dynamic_tokens=1_000_000, arrival_cap_tokens=100_000)
ASKED: Wire = {"role": "user", "content": [{"type": "input_text", "text": "Weather in Bonn and Kiel?"}]}
SAID: Wire = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Sun."}],
}


def thought(n: int = 1) -> Wire:
    return {"type": "reasoning", "id": f"rs_{n}", "summary": [], "encrypted_content": "c2VjcmV0"}


def called(id: str, name: str = "sun") -> Wire:
    return {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": name, "arguments": '{"city": "Bonn"}'}


def done(id: str, output: Any = "8 h") -> Wire:
    return {"type": "function_call_output", "call_id": id, "output": output}


def is_blank(item: Wire) -> bool:
    """Whether a reply says nothing: it is in no request."""
    content = item.get("content")
    texts = [content] if isinstance(content, str) else [block.get("text", "x") for block in content or ()]
    return item.get("role") == "assistant" and not "".join(texts).strip()


def sent_to(provider: str, session: Session) -> Wire:
    return char_builder(WIDE).build(session).render(provider, cache=False)  # type: ignore[arg-type]


@st.composite
def items(draw: st.DrawFn) -> list[Wire]:
    """A conversation as items: replies of reasoning, texts and calls, each call answered in some order."""
    made: list[Wire] = [ASKED]
    for turn in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            made.append(thought(turn))
        ids = [f"c{turn}_{n}" for n in range(draw(st.integers(0, 3)))]
        if not ids or draw(st.booleans()):
            made.append({**SAID, "id": f"msg_{turn}"})
        for id in ids:
            made += [*([thought(100 + len(made))] if draw(st.booleans()) else []), called(id)]
        made += [done(id, draw(st.sampled_from(("8 h", "", [{"type": "input_text", "text": "8 h"}])))) for id in ids]
        if draw(st.booleans()):
            made.append(ASKED)
    return made


@settings(max_examples=examples(150), derandomize=True, database=None)
@given(conversation=items())
def test_items_go_back_as_they_came(conversation: list[Wire]) -> None:
    session = session_of()
    for item in conversation:
        session.append(item)
    assert sent_to("openai-responses", session)["input"] == conversation
    session.replica.load()
    assert sent_to("openai-responses", session)["input"] == conversation


@settings(max_examples=examples(150), derandomize=True, database=None)
@given(conversation=items(), cut=st.integers(1, 20))
def test_items_are_valid_for_other_providers_at_every_step(conversation: list[Wire], cut: int) -> None:
    session = session_of(*conversation[:cut])
    assert openai_faults({"messages": sent_to("openai-chat", session)["messages"]}) == []
    assert anthropic_faults(sent_to("anthropic", session)) == []
    for provider in ("gemini", "text"):
        sent_to(provider, session)
    tight = char_builder(Budgets(dynamic_tokens=600)).build(session)
    assert openai_faults({"messages": tight.render("openai-chat")["messages"]}) == []


@settings(max_examples=examples(150), derandomize=True, database=None)
@given(history=histories("mixed"))
def test_what_responses_were_sent_is_taken_and_sent_again_the_same(history: tuple[Wire, ...]) -> None:
    rendered = [item for item in sent_to("openai-responses", session_of(*history))["input"] if not is_blank(item)]
    assert sent_to("openai-responses", session_of(*rendered))["input"] == rendered


def test_a_picture_from_one_call_stands_behind_the_outputs_of_all_calls() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    calls = [{"type": "tool_use", "id": id, "name": "look_up", "input": {}} for id in ("c1", "c2")]
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [picture]}
    session = session_of(
        {"role": "assistant", "content": calls},
        {"role": "user", "content": [result]},
        {"role": "user", "content": "ok"},
    )
    kinds = [item.get("type", item.get("role")) for item in sent_to("openai-responses", session)["input"]]
    assert kinds == ["function_call", "function_call", "function_call_output", "function_call_output", "user", "user"]


@settings(max_examples=examples(100), derandomize=True, database=None)
@given(conversation=items())
def test_a_session_read_back_has_the_groups_it_was_written_with(conversation: list[Wire]) -> None:
    session = session_of(*conversation)
    groups, waiting, ids = session.state.groups, session.state.open_calls, session.state.call_ids
    session.replica.load()
    assert (session.state.groups, session.state.open_calls, session.state.call_ids) == (groups, waiting, ids)


@settings(max_examples=examples(100), derandomize=True, database=None)
@given(conversation=items())
def test_erased_items_keep_their_pairs_and_say_nothing(conversation: list[Wire]) -> None:
    wires = [entry.message.wire for entry in session_of(*conversation).extend(conversation)]
    before = [(message.tool_calls, message.tool_results) for message in map(Message.from_wire, wires)]
    after = [(message.tool_calls, message.tool_results) for message in map(Message.from_wire, map(redacted, wires))]
    assert [[call.id for call in calls] for calls, _ in before] == [[call.id for call in calls] for calls, _ in after]
    assert [[one.call_id for one in results] for _, results in before] == [
        [one.call_id for one in results] for _, results in after
    ]
    assert "Bonn" not in str([redacted(wire) for wire in wires])


def test_calls_of_one_reply_are_one_group_with_their_results() -> None:
    session = session_of(ASKED, thought(), called("a"), called("b"), done("b"), done("a"), SAID)
    assert [group.ordinals for group in session.state.groups] == [(1,), (2, 3, 4, 5, 6), (7,)]
    assert char_builder(WIDE).build(session).findings == ()


def test_a_call_after_a_result_begins_a_group_of_its_own() -> None:
    session = session_of(ASKED, called("a"), called("b"), done("a"), called("c"))
    assert [group.ordinals for group in session.state.groups] == [(1,), (2, 3, 4), (5,)]


def test_results_of_a_reply_of_several_items_are_never_compacted_before_the_model_has_seen_them() -> None:
    said = [{"role": "user", "content": f"{n} " + "word " * 60} for n in range(8)]
    session = session_of(*said, called("a"), called("b"), done("a", "x" * 300), done("b", "y" * 300))
    shown = char_builder(Budgets(dynamic_tokens=900)).build(session).render("openai-responses")["input"]
    assert [item.get("call_id") for item in shown if "call_id" in item] == ["a", "b", "a", "b"]


def test_reasoning_alone_is_sent_to_its_provider_and_dropped_with_a_finding_for_others() -> None:
    envelope = char_builder(WIDE).build(session_of(ASKED, thought()))
    assert envelope.render("openai-responses")["input"][1] == thought()
    assert len(envelope.render("openai-chat")["messages"]) == 1
    (finding,) = dropped_fields(envelope, "openai-chat")
    assert (finding.kind, finding.ref, finding.field) == ("field_dropped", "§2", "content[0] (thinking)")


@pytest.mark.parametrize(
    ("item", "names"),
    [
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "`call_id`: found nothing"),
        ({"type": "function_call", "call_id": "c", "arguments": "{}"}, "`name`: found nothing"),
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": {}}, "`arguments`: found {}"),
        ({"type": "function_call_output", "output": "x"}, "`call_id`: found nothing"),
        ({"type": "function_call_output", "call_id": "c", "output": 3}, "`output`: found 3"),
        ({"type": "text", "text": "hi"}, "`role`: found nothing"),
        ({"type": 3}, "`role`: found nothing"),
    ],
)
def test_an_item_that_is_none_is_refused_by_its_field(item: Wire, names: str) -> None:
    with pytest.raises(InvalidMessage) as refused:
        session_of(item)
    assert names in str(refused.value)


@pytest.mark.parametrize("readable", [True, False])
@pytest.mark.parametrize("hole", range(5))
def test_an_item_that_cannot_be_read_leaves_the_others_of_its_reply_in_pairs(hole: int, readable: bool) -> None:
    group = session_of(ASKED, thought(), called("a"), called("b"), done("a"), done("b")).state.groups[1]
    rows: list[LogEntry | MissingMessage] = list(group.entries)
    lost = group.entries[hole]
    rows[hole] = MissingMessage(ordinal=lost.ordinal, said=claimed(lost.event.wire) if readable else None)

    made = mended(rows, "user")
    assert unanswered(made) == []
    assert made.ordinals == group.ordinals


def test_a_history_of_items_is_followed() -> None:
    session = session_of()
    history = [ASKED, thought(), called("a"), called("b"), done("a"), done("b"), SAID]
    for end in (1, 4, 6, 7, 7):
        followed = session.follow(history[:end])
    assert (followed.id, len(followed), followed.findings) == (session.id, 7, [])
