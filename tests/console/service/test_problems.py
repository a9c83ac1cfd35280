"""Every error is told as problem details, and tells nothing that is not the caller's business."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxsteward.console.service import access
from ctxsteward.console.service.access import Problem
from ctxsteward.console.service.desk import ServiceLimits
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import (
    BudgetExceeded,
    ContextError,
    Erased,
    InputError,
    InvalidMessage,
    ReferenceNotFound,
    StoreError,
    StoreLocked,
    StoreUnavailable,
    UnknownModel,
    WindowExceeded,
)
from ctxsteward.schemas.errors import (
    Backpressure,
    Conflict,
    Damaged,
    Fenced,
    InputTooLarge,
    ObjectMissing,
    OutcomeUnknown,
    TokenizerUnavailable,
    UnsupportedVersion,
    VersionTaken,
)
from ctxsteward.store.erasure.forget import forget

from .serving import FREE, NOON, Served, served

SECRET = "/srv/private/journal.sqlite postgresql://app:hunter2@db/ctx"
MESSAGE = {"messages": [{"message": {"role": "user", "content": "Hi"}}]}

OURS: list[tuple[Exception, int, str]] = [
    (InputError("bad"), 422, "invalid"),
    (InvalidMessage("role", "7", "a role"), 422, "invalid"),
    (UnknownModel("gpt-9", ("gpt-4o",)), 422, "invalid"),
    (BudgetExceeded("system", 9, 3, (("voice", 9),)), 422, "invalid"),
    (WindowExceeded(9, 8, 1), 422, "invalid"),
    (InputTooLarge("body", 9, 3), 413, "too_large"),
    (ReferenceNotFound("§9", "s", "it holds §1"), 404, "not_found"),
    (Erased(SECRET, who="ann", when=NOON, why="asked"), 410, "erased"),
    (Conflict("s", 3), 409, "conflict"),
    (VersionTaken(SECRET, 3), 409, "conflict"),
    (Fenced(SECRET, 1, 2), 409, "conflict"),
    (Backpressure(9, 3), 503, "unavailable"),
    (StoreLocked(SECRET), 503, "unavailable"),
    (StoreUnavailable(SECRET), 503, "unavailable"),
    (OutcomeUnknown(SECRET, "c1", 3.0), 503, "unavailable"),
    (TokenizerUnavailable(SECRET), 503, "unavailable"),
    (Damaged(SECRET), 500, "internal"),
    (ObjectMissing(SECRET), 500, "internal"),
    (UnsupportedVersion(SECRET, 9, 1), 500, "internal"),
    (StoreError(SECRET), 500, "internal"),
    (ContextError(SECRET), 500, "internal"),
    (RuntimeError(SECRET), 500, "internal"),
    (KeyError(SECRET), 500, "internal"),
    (AssertionError(SECRET), 500, "internal"),
    (RecursionError(SECRET), 500, "internal"),
    (MemoryError(SECRET), 500, "internal"),
]


class FailingStore:
    """A store of which every use raises."""

    def __init__(self, error: Exception) -> None:
        self._error, self._own = error, memory_store()
        self.appended, self.uri = self._own.appended, self._own.uri

    def __getattr__(self, name: str) -> Any:
        raise self._error


@pytest.mark.parametrize(("error", "status", "kind"), OURS, ids=lambda value: type(value).__name__)
def test_an_error_is_a_problem_of_its_kind_and_gives_away_nothing(error: Exception, status: int, kind: str) -> None:
    on = served(FailingStore(error), limits=FREE)  # type: ignore[arg-type]
    for method, path, body in (
        ("GET", "/api/sessions/s/envelope", None),
        ("POST", "/api/sessions/s/messages", MESSAGE),
        ("GET", "/api/sessions", None),
        ("POST", "/api/sessions/s/build", None),
    ):
        answer = on.client.request(method, path, json=body)
        problem = Problem.model_validate_json(answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        assert (answer.status_code, problem.status, problem.type) == (status, status, f"urn:ctxsteward:problem:{kind}")
        assert problem.title == access.KINDS[kind][1]
        assert problem.request_id == answer.headers["x-request-id"] == on.log[-1]["request_id"]
        for leak in ("hunter2", "/srv", "Traceback", "journal.sqlite", ".py"):
            assert leak not in answer.text
        if status == 503:
            assert answer.headers["retry-after"] == "1"


def test_an_error_of_ours_is_in_the_log_with_its_traceback_and_without_passwords() -> None:
    on = served(FailingStore(RuntimeError(SECRET)), limits=FREE)  # type: ignore[arg-type]
    answer = on.client.get("/api/sessions")
    (row,) = on.log
    assert row["request_id"] == answer.headers["x-request-id"]
    assert "Traceback" in row["error"]
    assert "RuntimeError" in row["error"]
    assert "hunter2" not in row["error"]


def test_a_store_that_does_not_answer_is_in_the_log_in_a_line() -> None:
    on = served(FailingStore(StoreUnavailable(SECRET)), limits=FREE)  # type: ignore[arg-type]
    on.client.get("/api/sessions")
    assert on.log[0]["error"].startswith("StoreUnavailable: /srv/private")
    assert "hunter2" not in on.log[0]["error"]


JSON = {"content-type": "application/json"}
FRAMEWORK: dict[str, tuple[str, str, dict[str, Any], int]] = {
    "no such path": ("GET", "/api/nothing", {}, 404),
    "no such page": ("GET", "/nothing", {}, 404),
    "a slash too many": ("GET", "/api/sessions/", {}, 404),
    "another method": ("DELETE", "/api/sessions", {}, 405),
    "a method of our own": ("BREW", "/api/sessions", {}, 405),
    "no JSON": ("POST", "/api/sessions/s/messages", {"content": b"{", "headers": JSON}, 422),
    "no body": ("POST", "/api/sessions/s/messages", {"headers": JSON}, 422),
    "a field too many": ("POST", "/api/sessions/s/messages", {"json": {**MESSAGE, "secret": "hunter2"}}, 422),
    "a text for a number": ("POST", "/api/sessions/s/compact", {"json": {"keep_tokens": "hunter2"}}, 422),
    "a number that is none": ("GET", "/api/sessions?limit=hunter2", {}, 422),
    "a page too large": ("GET", "/api/sessions?limit=201", {}, 422),
    "a status that is none": ("GET", "/api/recommendations?status=hunter2", {}, 422),
    "an address that is none": ("GET", "/api/sessions/s/envelope?address=hunter2", {}, 422),
}


@pytest.mark.parametrize(("method", "path", "more", "status"), FRAMEWORK.values(), ids=FRAMEWORK)
def test_what_the_framework_refuses_is_a_problem_too(method: str, path: str, more: dict[str, Any], status: int) -> None:
    on = served(limits=FREE)
    answer = on.client.request(method, path, **more)
    problem = Problem.model_validate_json(answer.text)
    assert (answer.status_code, problem.status) == (status, status)
    assert answer.headers["content-type"] == "application/problem+json"
    assert "hunter2" not in answer.text, "what was sent is not said again"
    assert (status == 405) == ("allow" in answer.headers)


def test_an_invalid_request_says_where() -> None:
    on = served(limits=FREE)
    body = {"messages": [{"message": {"role": "user", "content": "Hi"}, "id": 7}], "follow": "yes"}
    problem = on.post("/api/sessions/s/messages", body, 422)
    assert [one["where"] for one in problem["errors"]] == ["body.messages[0].id", "body.follow"]


def test_a_mistyped_parameter_is_refused_and_nothing_is_done() -> None:
    on = served(limits=FREE)
    on.say("s", "Hi")
    problem = on.post("/api/sessions/s/compact?dryrun=true", code=422)
    assert problem["errors"] == [{"where": "query.dryrun", "what": "no such parameter"}]


STRICT = {
    "a key twice": '{"messages": [], "messages": []}',
    "NaN": '{"messages": [{"message": {"role": "user", "content": NaN}}]}',
    "an infinite number": '{"messages": [{"message": {"role": "user", "content": "x", "n": 1e999}}]}',
    "a lone surrogate": '{"messages": [{"message": {"role": "user", "content": "\\ud800"}}]}',
    "very deep": '{"messages": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "no UTF-8": '{"messages": "\xff"}'.encode("latin-1"),
    "a very long number": '{"messages": ' + "9" * 5_000 + "}",
}


@pytest.mark.parametrize("body", STRICT.values(), ids=STRICT)
def test_json_is_read_strictly(body: str | bytes) -> None:
    on = served(limits=FREE)
    answer = on.client.post("/api/sessions/s/messages", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, Problem.model_validate_json(answer.text).status) == (422, 422)
    assert not on.store.exists("s")


def test_a_forgotten_session_is_gone_and_says_no_more() -> None:
    on = served(limits=FREE)
    on.say("s", "Hi")
    forget(on.store, session="s", who="ann", why="asked", when=NOON)
    for path in ("refs/1", "envelope"):
        problem = on.get(f"/api/sessions/s/{path}", 410)
        assert problem["detail"] == "this was erased on request"
    on.post("/api/sessions/s/messages", MESSAGE, 410)


HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def test_every_answer_has_the_security_headers_and_none_names_the_server() -> None:
    on: Served = served(limits=ServiceLimits(requests_per_second=None, requests=64))
    on.say("s", "Hi")
    for method, path in (
        ("GET", "/healthz"),
        ("GET", "/api/sessions"),
        ("GET", "/nothing"),
        ("DELETE", "/api/sessions"),
        ("GET", "/"),
        ("GET", "/assets/pages.css"),
        ("GET", "/metrics"),
        ("POST", "/api/sessions/s/build"),
    ):
        answer = on.client.request(method, path)
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS, path
        policy = dict(part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["object-src"] == policy["base-uri"] == "'none'"
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert "server" not in answer.headers
        assert answer.headers["cache-control"] == ("max-age=300" if path.startswith("/assets") else "no-store")


def test_pages_hold_nothing_that_the_policy_forbids() -> None:
    on = served(limits=FREE)
    on.say("s", "Hi")
    on.post("/api/sessions/s/build")
    for path in ("/", "/sessions/s", "/sessions/s/calls/1", "/sessions/s/messages", "/sessions/s/losses", "/evals"):
        text = on.client.get(path).text
        assert "<html" in text, path
        assert "<style" not in text
        assert " style=" not in text
        assert "<script>" not in text
    assert json.dumps(on.log).count('"status": 200') >= 6
