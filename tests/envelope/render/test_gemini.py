"""Gemini contents in a session: they go back as they came, and other providers are shown what they can be shown."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings

from ctxsteward.envelope import Budgets, Session
from ctxsteward.envelope.audit import audit
from ctxsteward.envelope.render.request import dropped_fields
from ctxsteward.schemas import InvalidMessage, Message

from ...examples import examples
from ..histories import PIXEL, Wire, histories
from ..messages import call, char_builder, result, session_of

WIDE = Budgets(dynamic_tokens=1_000_000, arrival_cap_tokens=100_000)
ASKED: Wire = {"role": "user", "parts": [{"text": "Weather in Bonn and Kiel?"}]}


def called(name: str, id: str | None = None, **arguments: str) -> Wire:
    ids = {} if id is None else {"id": id}
    return {"functionCall": {**ids, "name": name, "args": arguments}, "thoughtSignature": "c2lnbmVk"}


def answered(name: str, output: Any, **more: str) -> Wire:
    return {"functionResponse": {**more, "name": name, "response": {"output": output}}}


def sent_to(provider: str, session: Session) -> Wire:
    return char_builder(WIDE).build(session).render(provider, cache=False)  # type: ignore[arg-type]


def joined(contents: list[Wire]) -> list[Wire]:
    """Neighbours of one role as one content, as a request has them."""
    made: list[Wire] = []
    for content in deepcopy(contents):
        role = "model" if content.get("role") == "model" else "user"
        if not content["parts"]:
            continue
        if made and made[-1]["role"] == role:
            made[-1]["parts"] += content["parts"]
        else:
            made.append({"role": role, "parts": content["parts"]})
    return made


@settings(max_examples=examples(150), derandomize=True, database=None)
@given(history=histories("gemini", broken=False))
def test_gemini_contents_go_back_to_gemini_as_they_came(history: tuple[Wire, ...]) -> None:
    contents = [{"role": "user", "parts": [{"text": history[0]["content"]}]}, *history[1:]]
    assert sent_to("gemini", session_of(*history))["contents"] == joined(contents)


@settings(max_examples=examples(150), derandomize=True, database=None)
@given(history=histories("mixed"))
def test_what_gemini_was_sent_is_taken_and_sent_again_the_same(history: tuple[Wire, ...]) -> None:
    contents = sent_to("gemini", session_of(*history))["contents"]
    assert sent_to("gemini", session_of(*contents))["contents"] == contents


def test_results_without_ids_go_to_the_first_open_call_of_their_name() -> None:
    calls = {"role": "model", "parts": [called("sun", c="Bonn"), called("rain", c="Bonn"), called("sun", c="Kiel")]}
    results = {"role": "tool", "parts": [answered("rain", "2 mm"), answered("sun", "8 h"), answered("sun", "3 h")]}
    session = session_of(ASKED, calls, results)
    shown = sent_to("openai-chat", session)["messages"]

    ids = [one["id"] for one in shown[1]["tool_calls"]]
    assert len(set(ids)) == 3
    assert [(one["tool_call_id"], one["content"]) for one in shown[2:]] == [
        (ids[1], "2 mm"),
        (ids[0], "8 h"),
        (ids[2], "3 h"),
    ]
    assert session.state.open_calls == []
    assert sent_to("gemini", session)["contents"] == [ASKED, calls, {**results, "role": "user"}]


def test_a_result_without_an_id_answers_a_call_that_has_one_and_is_sent_with_it() -> None:
    session = session_of(ASKED, {"role": "model", "parts": [called("sun", "c7")]}, {"parts": [answered("sun", "8 h")]})
    assert sent_to("gemini", session)["contents"][2]["parts"] == [answered("sun", "8 h", id="c7")]


def test_a_call_that_waits_is_answered_without_an_id_where_it_has_none() -> None:
    session = session_of(ASKED, {"role": "model", "parts": [called("sun")]})
    (part,) = sent_to("gemini", session)["contents"][2]["parts"]
    assert list(part["function_response"]) == ["name", "response"]


def test_names_of_waiting_calls_come_back_with_a_checkpoint() -> None:
    calls = {"role": "model", "parts": [called("sun"), called("rain")]}
    said = [{"role": "user", "content": f"{n} " + "word " * 40} for n in range(12)]
    session = session_of(*said, ASKED, calls)
    char_builder(Budgets(dynamic_tokens=900)).build(session)
    session.replica.load()
    session.append({"parts": [answered("rain", "2 mm")]})
    assert [(waiting.name) for waiting in session.state.open_calls] == ["sun"]


def test_other_providers_are_shown_texts_calls_results_and_images() -> None:
    photo = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
    session = session_of(
        {"role": "user", "parts": [{"text": "What is it?"}, photo]},
        {"role": "model", "parts": [{"text": "Let me see."}, called("look", "c1", at="1")]},
        {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "look", "response": {"error": "dark"}}}]},
    )
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    assert sent_to("anthropic", session)["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "What is it?"}, {"type": "image", "source": source}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "1"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "dark", "is_error": True}],
        },
    ]


@pytest.mark.parametrize("provider", ["openai-chat", "openai-responses", "anthropic"])
def test_a_text_beside_a_result_is_shown_to_every_provider(provider: str) -> None:
    calls = {"role": "model", "parts": [called("sun", "c1")]}
    session = session_of(ASKED, calls, {"parts": [answered("sun", "8 h", id="c1"), {"text": "hurry up"}]})
    assert "hurry up" in str(sent_to(provider, session))


def test_what_another_provider_cannot_be_shown_is_a_finding() -> None:
    thought = {"text": "hm", "thought": True}
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    session = session_of(ASKED, {"role": "model", "parts": [thought, code, {"text": "hi", "thoughtSignature": "eA=="}]})
    envelope = char_builder(WIDE).build(session)

    def dropped(provider: str) -> list[str | None]:
        return [finding.field for finding in dropped_fields(envelope, provider)]

    assert dropped("openai-chat") == ["parts[0] (thinking)", "parts[1] (executable_code)", "parts[2].thoughtSignature"]
    assert dropped("gemini") == []


def test_openai_messages_and_gemini_contents_stand_in_one_request() -> None:
    session = session_of(ASKED, call("c1"), result("c1", "8 h"), {"role": "model", "parts": [{"text": "Sunny."}]})
    assert [content["role"] for content in sent_to("gemini", session)["contents"]] == ["user", "model", "user", "model"]


def test_a_request_with_gemini_contents_is_what_its_envelope_says() -> None:
    calls = {"role": "model", "parts": [called("sun")]}
    session = session_of(ASKED, calls, {"parts": [answered("sun", {"hours": 8})]})
    envelope = char_builder(WIDE).build(session)
    request = deepcopy(envelope.render("gemini"))
    assert audit(envelope, request) == ()

    request["contents"][2]["parts"][0]["functionResponse"]["response"] = {"output": {"hours": 9}}
    assert audit(envelope, request) != ()


def test_fields_of_an_operator_in_a_part_are_not_sent_back() -> None:
    session = session_of({"role": "user", "parts": [{"text": "hi", "trust": "operator"}]})
    assert sent_to("gemini", session)["contents"] == [{"role": "user", "parts": [{"text": "hi"}]}]


def test_a_history_of_gemini_contents_is_followed() -> None:
    session = session_of()
    history = [ASKED, {"role": "model", "parts": [called("sun")]}, {"role": "user", "parts": [answered("sun", "8 h")]}]
    for end in (1, 3, 3):
        followed = session.follow(history[:end])
    assert (followed.id, len(followed), followed.findings) == (session.id, 3, [])


@pytest.mark.parametrize(
    ("wire", "names"),
    [
        ({"role": "assistant", "content": "hi", "parts": [{"text": "hi"}]}, "`parts`: found Gemini parts beside"),
        ({"role": "assistant", "parts": [{"text": "hi"}]}, "`role`: found 'assistant' with Gemini parts"),
        ({"role": "assistant", "parts": [{"type": "text", "text": "hi"}]}, "`parts`: found no `content` beside them"),
        ({"role": "user", "parts": [{"type": "text", "text": "hi"}]}, "`parts[0].type`: found 'text'"),
        ({"role": "user", "parts": []}, "`parts`: found an empty list"),
        ({"role": "user", "parts": [{}]}, "`parts[0]`: found {}"),
        ({"role": "model", "parts": [{"functionCall": {}}]}, "`parts[0].functionCall.name`: found nothing"),
    ],
)
def test_parts_that_would_be_lost_are_refused(wire: Wire, names: str) -> None:
    with pytest.raises(InvalidMessage) as refused:
        session_of(wire)
    assert names in str(refused.value)


def test_content_with_the_parts_of_a_user_interface_is_taken_as_before() -> None:
    wire = {"id": "m1", "role": "user", "content": "hi", "parts": [{"type": "text", "text": "hi"}]}
    assert Message.from_wire(wire).text == "hi"
