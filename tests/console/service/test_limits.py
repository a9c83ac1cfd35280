"""What one client, or all together, may take: size, number, rate, time, and what stays open."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from hypothesis import given, settings, strategies as st
from uvicorn.server import ServerState

from ctxsteward.console.service.access import RateLimiter, Refusal
from ctxsteward.console.service.app import PatientProtocol
from ctxsteward.console.service.desk import Service, ServiceLimits, ServiceSettings
from ctxsteward.envelope.testing import memory_store

from ...examples import examples
from ...load import load
from .serving import FREE, Served, served, tenants

JSON = {"content-type": "application/json"}
MESSAGE = {"messages": [{"message": {"role": "user", "content": "Hi"}}]}


def limited(**limits: Any) -> Served:
    return served(limits=ServiceLimits(**{"requests_per_second": None, **limits}))


# -- size -------------------------------------------------------------------------------------------------------------


def test_a_body_over_the_limit_is_refused_before_it_is_read() -> None:
    on = limited(body_bytes=1_000)
    problem = on.post(
        "/api/sessions/s/messages", {"messages": [{"message": {"role": "user", "content": "x" * 999}}]}, 413
    )
    assert problem["detail"] == "a body may have 1,000 bytes"
    assert not on.store.exists("s")


def test_a_body_that_does_not_say_its_size_is_refused_once_it_is_over() -> None:
    on, read = limited(body_bytes=1_000), []

    def pieces() -> Iterator[bytes]:
        for at in range(100):
            read.append(at)
            yield b" " * 100

    answer = on.client.post("/api/sessions/s/messages", content=pieces(), headers=JSON)
    assert (answer.status_code, answer.headers["content-type"]) == (413, "application/problem+json")


@pytest.mark.parametrize("length", ["-1", "1e3", "abc", "９"])
def test_a_size_that_is_no_number_is_refused(length: str) -> None:
    on = limited()
    headers = {**JSON, "content-length": length.encode()}
    answer = on.client.post("/api/sessions/s/messages", content=b"{}", headers=headers)  # type: ignore[arg-type]
    assert answer.status_code == 413


def test_a_request_may_have_so_many_messages() -> None:
    on = limited(messages=2)
    rows = MESSAGE["messages"] * 3
    assert "2 messages" in on.post("/api/sessions/s/messages", {"messages": rows}, 413)["detail"]
    assert len(on.post("/api/sessions/s/messages", {"messages": rows[:2]})["messages"]) == 2
    on.post("/api/sessions/s/messages", {"messages": []}, 422)


# -- rate -------------------------------------------------------------------------------------------------------------


def test_a_tenant_that_asks_too_often_waits_and_no_other_does(tmp_path: Path) -> None:
    clock = [0.0]
    limits = ServiceLimits(requests_per_second=2, burst=3)
    two = tenants(tmp_path, limits=limits, clock=lambda: clock[0])
    acme, other = two.as_(two.acme), two.as_(two.other)
    get = two.served.client.get
    codes = [get("/api/sessions", headers=acme).status_code for _ in range(5)]
    assert codes == [200, 200, 200, 429, 429]
    refused = get("/api/sessions", headers=two.as_(two.reader))  # of the same tenant
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert get("/api/sessions", headers=other).status_code == 200
    clock[0] += float(refused.headers["retry-after"])
    codes = [get("/api/sessions", headers=acme).status_code for _ in range(3)]
    assert codes == [200, 200, 429]


@given(st.floats(0.1, 1_000), st.integers(1, 50), st.lists(st.floats(0, 5), max_size=200))
@settings(max_examples=examples(200))
def test_within_any_time_no_more_pass_than_burst_and_rate_allow(rate: float, burst: int, gaps: list[float]) -> None:
    now, passed, waits = [0.0], [], []
    limiter = RateLimiter(rate, burst, clock=lambda: now[0])
    for gap in gaps:
        now[0] += gap
        try:
            limiter.take("acme")
        except Refusal as refusal:
            waits.append(int((refusal.headers or {})["Retry-After"]))
        else:
            passed.append(now[0])
    assert all(wait >= 1 for wait in waits)
    for at, first in enumerate(passed):
        for count, last in enumerate(passed[at:], 1):
            assert count <= burst + rate * (last - first) + 1e-6


# -- at once ----------------------------------------------------------------------------------------------------------


class HeldStore:
    """A store whose lists wait until they are let go."""

    def __init__(self) -> None:
        self.own, self.go, self.waiting = memory_store(), threading.Event(), threading.Semaphore(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    def sessions(self, *, tenant: str) -> list[str]:
        self.waiting.release()
        assert self.go.wait(30)
        return []


def test_one_request_too_many_at_once_is_asked_to_come_again() -> None:
    store = HeldStore()
    on = served(store, limits=ServiceLimits(requests_per_second=None, requests=2, threads=4))  # type: ignore[arg-type]
    codes: list[int] = []
    held = [threading.Thread(target=lambda: codes.append(on.client.get("/api/sessions").status_code)) for _ in range(2)]
    for thread in held:
        thread.start()
    for _ in held:
        assert store.waiting.acquire(timeout=30)
    refused = on.client.get("/api/evals")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert "2 requests are under way" in refused.json()["detail"]
    assert on.client.get("/healthz").status_code == 200, "whoever watches the service still can"
    store.go.set()
    for thread in held:
        thread.join(30)
    assert codes == [200, 200]
    assert on.client.get("/api/evals").status_code == 200


def test_work_on_the_store_takes_so_many_threads_and_no_more() -> None:
    store = HeldStore()
    service = Service(ServiceSettings(store=store, limits=ServiceLimits(threads=2)))  # type: ignore[arg-type]

    async def five() -> None:
        asked = [asyncio.create_task(service.run("default", store.sessions, tenant="default")) for _ in range(5)]
        for _ in range(2):
            await asyncio.to_thread(store.waiting.acquire)
        await asyncio.sleep(0.05)
        assert not store.waiting.acquire(blocking=False)
        store.go.set()
        await asyncio.gather(*asked)

    asyncio.run(five())


def test_requests_for_one_session_take_one_thread_among_them() -> None:
    service = Service(ServiceSettings(store=memory_store(), limits=FREE))
    order: list[int] = []

    async def turn(number: int) -> None:
        async with service.writing("default", "s", create=True):
            order.append(number)
            await asyncio.sleep(0)
            order.append(number)

    async def all_turns() -> None:
        await asyncio.gather(*(turn(number) for number in range(20)))

    asyncio.run(all_turns())
    assert order == [number for number in range(20) for _ in range(2)]


# -- what stays open --------------------------------------------------------------------------------------------------


def test_so_many_sessions_stay_open_and_all_of_them_still_answer() -> None:
    on = limited(open_sessions=3)
    for number in range(10):
        on.say(f"s{number}", f"Text {number}")
    service: Service = on.app.state.service
    assert [key.session for key in service.open_keys("default")] == ["s7", "s8", "s9"]
    for number in (0, 9, 4):
        assert on.get(f"/api/sessions/s{number}/refs/1")["message"]["content"] == f"Text {number}"
    assert len(service.open_keys("default")) == 3


def test_sessions_that_are_not_there_do_not_stay_open() -> None:
    on = limited()
    for number in range(5):
        on.get(f"/api/sessions/none{number}/envelope", 404)
    assert on.app.state.service.open_keys("default") == []


def test_a_session_that_is_open_sees_what_others_append() -> None:
    on = limited()
    on.say("s", "One.")
    on.store.session("s").append({"role": "user", "content": "From elsewhere."})
    assert on.get("/api/sessions/s/refs/3")["message"]["content"] == "From elsewhere."
    assert on.say("s", "Two.")["length"] == 5


# -- request ids ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_id", "is_kept"),
    [
        ("trace-12345678", True),
        ("a" * 64, True),
        ("short", False),
        ("a" * 65, False),
        ("with space in", False),
        ("<script>alert(1)</script>", False),
        ("", False),
    ],
)
def test_a_request_id_is_taken_where_it_is_well_formed(given_id: str, is_kept: bool) -> None:
    on = limited()
    for path in ("/healthz", "/nothing"):
        answer = on.client.get(path, headers={"x-request-id": given_id})
        assert (answer.headers["x-request-id"] == given_id) == is_kept
        assert on.log[-1]["request_id"] == answer.headers["x-request-id"]
        assert len(answer.headers["x-request-id"]) >= 8


# -- slow clients -----------------------------------------------------------------------------------------------------


def scope(app: Any, method: str = "POST", path: str = "/api/sessions/s/messages") -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "state": {},
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"content-length", b"99")],
    }


def test_a_body_that_does_not_come_ends_the_request() -> None:
    on = limited(body_seconds=0.05)
    sent: list[Any] = []

    async def ask() -> None:
        pieces = iter([{"type": "http.request", "body": b"{", "more_body": True}])

        async def receive() -> Any:
            piece = next(pieces, None)
            return piece if piece is not None else await asyncio.Event().wait()

        async def send(message: Any) -> None:
            sent.append(message)

        await asyncio.wait_for(on.app(scope(on.app), receive, send), 20)

    asyncio.run(ask())
    assert (sent[0]["status"], dict(sent[0]["headers"])[b"connection"]) == (408, b"close")
    assert on.app.state.service.in_flight == 0


def test_an_answer_that_nobody_takes_ends_the_request() -> None:
    on = limited(send_seconds=0.05)

    async def ask() -> None:
        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            await asyncio.Event().wait()

        await asyncio.wait_for(on.app(scope(on.app, "GET", "/api/sessions"), receive, send), 20)

    asyncio.run(ask())
    assert on.app.state.service.in_flight == 0
    assert on.log[-1]["path"] == "/api/sessions"


def test_a_connection_that_sends_no_request_is_closed() -> None:
    class Impatient(PatientProtocol):
        header_seconds = 0.05

    async def connect(sent: bytes) -> bytes:
        config = uvicorn.Config(served(limits=FREE).app, http=Impatient, ws="none", lifespan="off", log_config=None)
        state = ServerState()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Impatient(config, state, {}), "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(sent)
            answer = await asyncio.wait_for(reader.read(), 20)
            writer.close()
            await writer.wait_closed()
        return answer

    for slow in (b"", b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n"):
        assert asyncio.run(connect(slow)) == b""
    whole = asyncio.run(connect(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"))
    assert whole.endswith(b'{"status":"ok"}'), "and behind an answer it waits no longer for the next request"


# -- many at once -----------------------------------------------------------------------------------------------------


def test_eight_clients_for_three_seconds_meet_no_error(tmp_path: Path) -> None:
    """The whole of it: python -m tests.load"""
    report = load(8, 3, f"file:{tmp_path}", turns=20)
    assert (report.errors, report.first_errors, report.exit_code) == (0, (), 0)
    assert report.requests > 16
    assert report.memory_end_mb < report.memory_start_mb + 150


# -- time -------------------------------------------------------------------------------------------------------------


def test_a_build_that_has_no_time_to_compact_shows_the_newest_part_of_a_history_beyond_the_model_s_window() -> None:
    on = served(limits=ServiceLimits(requests_per_second=None, build_seconds=1e-6), model="gpt-4")
    for turn in range(60):
        on.say("s", f"Question {turn}. " + "Some words of it. " * 40)
    on.post("/api/sessions/s/messages", {"messages": [{"message": {"role": "user", "content": "And now?"}}]})
    built = on.post("/api/sessions/s/build", {"provider": "openai-chat"})
    assert {"build_deadline", "history_left_out"} <= {one["kind"] for one in built["envelope"]["findings"]}
    messages = built["request"]["messages"]
    assert messages[0]["content"].startswith("Question 0.")
    assert messages[-1]["content"] == "And now?"
    assert 4 < len(messages) < 100
