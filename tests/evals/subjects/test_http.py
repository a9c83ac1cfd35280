"""A strategy behind an address: a real server on this machine, well and unwell."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from ctxsteward.evals.subjects.http import MAX_ANSWER_BYTES, HttpDialogue
from ctxsteward.evals.subjects.port import Archive, Index
from ctxsteward.evals.subjects.registry import NamedSubject
from ctxsteward.evals.suites.kit.play import reaches
from ctxsteward.schemas import InputError

from .servers import serving
from .talks import ASK, TALK, Made, asked, last_call, moments

Respond = Callable[[BaseHTTPRequestHandler], None]


def handler(respond: Respond) -> type[BaseHTTPRequestHandler]:
    class Quiet(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            respond(self)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    return Quiet


def question(request: BaseHTTPRequestHandler) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
    return read


def give(request: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name, value)
    request.end_headers()
    try:
        request.wfile.write(body)
    except ConnectionError:
        """Whoever asked has gone."""


def answers(answer: object) -> Respond:
    def respond(request: BaseHTTPRequestHandler) -> None:
        question(request)
        give(request, json.dumps(answer).encode())

    return respond


# -- well ------------------------------------------------------------------------------------------------------------


def test_a_server_that_keeps_no_conversation_is_judged() -> None:
    def newest(request: BaseHTTPRequestHandler) -> None:
        give(request, json.dumps({"messages": question(request)["messages"][-20:]}).encode())

    with serving(handler(newest)) as address:
        found = moments(NamedSubject(address), TALK * 3, ASK)
    assert last_call(found).prompt.messages == list((TALK * 3)[15:35])
    assert asked(found).prompt.messages[-1] == {"role": "user", "content": ASK.question}


def test_a_server_is_told_all_that_there_is_and_may_resolve_and_search() -> None:
    heard: list[dict[str, Any]] = []

    def respond(request: BaseHTTPRequestHandler) -> None:
        told = question(request)
        heard.append(told)
        match told["op"]:
            case "prompt":
                answer: dict[str, Any] = {
                    "messages": [{"role": "user", "content": "the shelf: [3]"}],
                    "references": {"[3]": 3, "[4]": 4},
                    "lost": [1],
                    "summary": "see [3]",
                    "compacted": True,
                    "can": ["resolve", "search"],
                }
            case "resolve":
                answer = {"text": TALK[2]["content"] if told["reference"] == "[3]" else None}
            case _:
                answer = {"texts": [TALK[5]["content"]]}
        give(request, json.dumps(answer).encode())

    with serving(handler(respond)) as address:
        found = moments(NamedSubject(address), TALK, ASK)
        moment = asked(found)
        assert isinstance(moment.dialogue, Archive)
        assert isinstance(moment.dialogue, Index)
        assert [moment.leads(place) for place in (3, 4)] == [True, False]
        assert reaches(moment, 6, "item 5", "705") is True
    assert (moment.prompt.lost, moment.prompt.compacted, moment.prompt.summary) == ({1}, True, "see [3]")
    first, *_ = heard
    assert first.keys() == {"op", "id", "budget_tokens", "system", "tools", "messages", "question"}
    assert (first["messages"], first["question"], first["budget_tokens"]) == ([TALK[0]], None, 2_000)
    assert [each["question"] for each in heard if each["op"] == "prompt"][-1] == ASK.question


# -- unwell ----------------------------------------------------------------------------------------------------------


def slow(request: BaseHTTPRequestHandler) -> None:
    question(request)
    time.sleep(0.6)


def dripping(request: BaseHTTPRequestHandler) -> None:
    """Never silent for long, and never done."""
    question(request)
    request.send_response(200)
    request.end_headers()
    try:
        for _ in range(40):
            request.wfile.write(b" ")
            request.wfile.flush()
            time.sleep(0.05)
    except ConnectionError:
        """Whoever asked has gone."""


def hanging_up(request: BaseHTTPRequestHandler) -> None:
    question(request)
    request.wfile.write(b"no HTTP at all\r\n\r\n")


UNWELL: dict[str, tuple[Respond, str]] = {
    "an error": (lambda request: give(request, b"", 500), "answered 500 Internal Server Error; see the server's log"),
    "not found": (lambda request: give(request, b"", 404), "answered 404 Not Found"),
    "elsewhere": (
        lambda request: give(request, b"", 302, Location="http://192.0.2.1/context"),
        "answered 302 Found; see the",
    ),
    "elsewhere for good": (lambda request: give(request, b"", 308, Location="/other"), "answered 308"),
    "slow": (slow, "no answer within 0.3 s"),
    "never done": (dripping, "no answer within 0.3 s"),
    "no HTTP": (hanging_up, "no answer (no HTTP at all"),
    "nothing": (lambda request: give(request, b""), "its answer is not JSON: b''"),
    "a page": (lambda request: give(request, b"<html>"), "its answer is not JSON: b'<html>'"),
    "a list": (answers([]), "its answer is []; answer an object with `messages`"),
    "no messages": (answers({"message": "hi"}), "its answer has no `messages`: {'message': 'hi'}"),
    "messages null": (answers({"messages": None}), "it returned nothing (None); return a list of chat messages"),
    "a wrong message": (answers({"messages": [{"content": "hi"}]}), "message 1 of what it returned has role None"),
    "references as a list": (answers({"messages": [], "references": ["[1]"]}), "`references` of its Prompt is list"),
    "a place in words": (answers({"messages": [], "references": {"[1]": "1"}}), "`references` of its Prompt is dict"),
    "lost as text": (answers({"messages": [], "lost": "all"}), "`lost` of its Prompt is str 'all'"),
    "a summary of lines": (answers({"messages": [], "summary": ["a"]}), "`summary` of its Prompt is list ['a']"),
    "compacted as text": (answers({"messages": [], "compacted": "yes"}), "`compacted` of its Prompt is str 'yes'"),
    "what it can as a number": (answers({"messages": [], "can": 2}), "`can` is 2; answer a list of resolve, search"),
}


@pytest.mark.parametrize(("respond", "told"), UNWELL.values(), ids=UNWELL)
def test_what_a_server_does_instead_of_answering_is_told(respond: Respond, told: str) -> None:
    with serving(handler(respond)) as address:
        subject = Made(lambda task, tokens: HttpDialogue(address, task, 0.3))
        subject.name = address
        with pytest.raises(InputError) as refused:
            moments(subject)
    assert told in str(refused.value)
    assert address in str(refused.value)


def test_an_answer_without_end_is_cut_off() -> None:
    def respond(request: BaseHTTPRequestHandler) -> None:
        question(request)
        request.send_response(200)
        request.end_headers()
        try:
            for _ in range(MAX_ANSWER_BYTES // (1 << 20) + 64):
                request.wfile.write(bytes(1 << 20))
        except ConnectionError:
            """Whoever asked has gone."""

    with serving(handler(respond)) as address, pytest.raises(InputError, match="an answer of more than 64 MB"):
        moments(NamedSubject(address))


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9/context", "http://", "http://[bad", "http://127.0.0.1:none/", "http://a b/"]
)
def test_an_address_where_nobody_answers_is_told(address: str) -> None:
    with pytest.raises(InputError, match=r"no answer .+; start it first"):
        moments(Made(lambda task, tokens: HttpDialogue(address, task, 2)))


@pytest.mark.parametrize("texts", [None, "one", [1], {"a": "b"}])
def test_a_search_of_a_server_that_is_no_list_is_told(texts: object) -> None:
    def respond(request: BaseHTTPRequestHandler) -> None:
        told = question(request)
        sent = {"messages": told.get("messages", [])[-1:], "can": ["search"], "texts": texts}
        give(request, json.dumps(sent).encode())

    with serving(handler(respond)) as address:
        moment = last_call(moments(NamedSubject(address)))
        with pytest.raises(InputError, match=r"`search` gave .+; give a list of texts"):
            reaches(moment, 1, "item 0", "700")
