"""Attacks over the network against a service of its own process: it stays small, and goes on answering everybody else.

Each attack is bounded in time and runs over the loopback. Memory is the process's peak resident set, as the kernel has
it (`VmHWM`), beside what was resident before the attack.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.console.service.access import add_token, revoke_token
from ctxsteward.console.service.desk import ServiceLimits

from .test_process import Running, running

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
MB = 1 << 20
MAX_MB = 64
"""Above what was resident before, of any single request."""
HEARTBEAT_SECONDS = ServiceLimits().heartbeat_seconds
HEALTHY_SECONDS = 2.0
"""In which `/healthz` answers during an attack; the machine of the tests is busy."""


def resident_mb(pid: int, field: str) -> float:
    found = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    assert found is not None
    return int(found[1]) / 1024


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def send(port: int, path: str, body: bytes, token: str | None = None) -> tuple[int, bytes]:
    """POST these bytes, and read the answer as it comes; a refusal may come before all was sent."""
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nconnection: close\r\n"
    head += "" if token is None else f"authorization: Bearer {token}\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return answer.status, answer.read()


def worked_seconds(pid: int) -> float:
    """Processor time that a process has taken, all its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Watch(threading.Thread):
    """Asks `/healthz` over and over, and keeps how long the service worked at most while one answer was waited for.

    Not how long it took: where the machine does other work, too, that says nothing about the service.
    """

    def __init__(self, service: Running) -> None:
        super().__init__(daemon=True)
        self._service, self._over = service, threading.Event()
        self.slowest, self.asked = 0.0, 0

    def run(self) -> None:
        while not self._over.is_set():
            began = worked_seconds(self._service.process.pid)
            assert self._service.ask("GET", "/healthz")[0] == 200
            worked = worked_seconds(self._service.process.pid) - began
            self.slowest, self.asked = max(self.slowest, worked), self.asked + 1
            time.sleep(0.05)

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join(60)


# -- bodies -----------------------------------------------------------------------------------------------------------

SIZE = 4 * MB - 1_000


def filled(head: str, piece: str, tail: str) -> bytes:
    """A body of nearly 4 MB."""
    return (head + piece * ((SIZE - len(head) - len(tail)) // len(piece.encode())) + tail).encode()


def keys(head: str, tail: str) -> bytes:
    """An object of as many different keys as there is room for."""
    rows = ",".join(f'"{number:x}":0' for number in range(380_000))
    return (head + rows + tail).encode()


def wide(text: str) -> bytes:
    return json.dumps({"messages": [{"message": {"role": "user", "content": text}}]}, ensure_ascii=False).encode()


SHAPES: dict[str, tuple[Callable[[], bytes], tuple[int, ...]]] = {
    "a list of numbers": (lambda: filled('{"messages":[1', ",1", "]}"), (422,)),
    "a list of empty lists": (lambda: filled('{"messages":[[]', ",[]", "]}"), (422,)),
    "a list of empty objects": (lambda: filled('{"messages":[{}', ",{}", "]}"), (422,)),
    "a list of empty texts": (lambda: filled('{"messages":[""', ',""', "]}"), (422,)),
    "a list of fractions": (lambda: filled('{"messages":[1e9', ",1e9", "]}"), (422,)),
    "faults in as many messages as are read": (
        lambda: filled('{"messages":[{"a":1}', ',{"a":1}', "]}")[:600_000] + b"}]}",
        (422,),
    ),
    "deep lists": (lambda: b'{"messages":' + b"[" * (SIZE // 2) + b"]" * (SIZE // 2) + b"}", (422,)),
    "deep objects": (lambda: filled('{"messages":', '{"a":', "1"), (422,)),
    "unknown keys": (lambda: keys("{", "}"), (422,)),
    "fewer unknown keys than are counted": (
        lambda: ("{" + ",".join(f'"{n:x}":0' for n in range(99_000)) + "}").encode(),
        (422,),
    ),
    "keys of a message": (lambda: keys('{"messages":[{"message":{', "}}]}"), (422,)),
    "keys inside a part": (
        lambda: keys('{"messages":[{"message":{"role":"user","content":[{"type":"text","text":"a","x":{', "}}]}}]}"),
        (422,),
    ),
    "parts of a message": (
        lambda: filled(
            '{"messages":[{"message":{"role":"user","content":[{"type":"text","text":"a"}',
            ',{"type":"text","text":"a"}',
            "]}}]}",
        )[:SIZE],
        (422,),
    ),
    "one long text": (lambda: filled('{"messages":[{"message":{"role":"user","content":"', "word ", '"}}]}'), (422,)),
    "one long text within a part": (
        lambda: filled('{"messages":[{"message":{"role":"user","content":[{"type":"text","text":"', "word ", '"}]}}]}'),
        (422,),
    ),
    "a long text": (lambda: wide("word " * 399_000), (200,)),
    "a long text without a space": (lambda: wide("a" * 1_999_000), (200,)),
    "two long texts": (
        lambda: json.dumps({"messages": [{"message": {"role": "user", "content": "a b" * 660_000}}] * 2}).encode(),
        (200,),
    ),
    "a long text of wide letters": (lambda: wide("\U0001f600" * ((SIZE - 100) // 4)), (200,)),
    "one wide letter in a long text": (lambda: wide("b \U0001f600" + "ab, " * 499_000), (200,)),
    "a large image": (
        lambda: filled(
            '{"messages":[{"message":{"role":"user","content":[{"type":"image_url","image_url":{"url":'
            '"data:image/png;base64,',
            "iVBORw0K",
            '"}}]}}]}',
        ),
        (200,),
    ),
    "escaped quotes without an end": (lambda: b'{"messages":"' + b'\\"' * (SIZE // 2 - 10), (422,)),
    "one huge number": (lambda: b'{"messages":' + b"9" * (SIZE - 20) + b"}", (422,)),
    "many huge numbers": (lambda: filled('{"messages":[1', "," + "9" * 4_000, "]}"), (422,)),
    "a key twice": (lambda: filled('{"messages":[],"a":1', ',"a":1', "}"), (422,)),
    "no JSON": (lambda: b"\x00" * SIZE, (422,)),
    "bytes that are no UTF-8": (lambda: b'"' + b"\xff" * (SIZE - 2) + b'"', (422,)),
}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    # What is freed goes back to the system at once, so that no request is measured by what one before it has left.
    freed = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    with running(tmp_path_factory.mktemp("attacked"), "--rate", "0", **freed) as service:
        for number in range(3):  # what is loaded at the first request and build is no matter of an attack
            path = f"/api/sessions/warm-{number}"
            body = {"messages": [{"message": {"role": "user", "content": "Hello there. " * 2_000}}]}
            assert service.ask("POST", f"{path}/messages", body)[0] == 200
            assert service.ask("POST", f"{path}/build", {"provider": "openai-chat"})[0] == 200
        yield service


@pytest.mark.parametrize("shape", SHAPES)
def test_no_body_takes_much_memory_or_keeps_others_waiting(shape: str, attacked: Running) -> None:
    make, codes = SHAPES[shape]
    body = make()
    pid = attacked.process.pid
    forget_peak(pid)
    before = resident_mb(pid, "VmRSS")
    with Watch(attacked) as watch:
        status, answer = send(attacked.port, f"/api/sessions/{len(shape)}/messages", body)
    above = resident_mb(pid, "VmHWM") - before
    print(f"{shape}: {len(body) / MB:.1f} MB, {status}, {above:.0f} MB above, {watch.slowest:.2f} s")
    assert status in codes, answer[:500]
    assert len(answer) < 20_000
    assert above <= MAX_MB
    assert watch.asked > 0
    assert watch.slowest < HEALTHY_SECONDS


def measured(service: Running, path: str, body: bytes | None) -> tuple[int, bytes, float]:
    """Send it; status, answer, and MB above what was resident before."""
    pid = service.process.pid
    forget_peak(pid)
    before = resident_mb(pid, "VmRSS")
    status, answer = send(service.port, path, body or b"")
    return status, answer, resident_mb(pid, "VmHWM") - before


LEFT: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "a text of wide letters": lambda: [{"role": "user", "content": "\U0001f600" * 999_000}],
    "a text without a space": lambda: [{"role": "user", "content": "a" * 1_999_000}],
    "a text of words": lambda: [{"role": "user", "content": "the order is late. " * 105_000}],
    "a tool result": lambda: [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "row 1,2,3;\n" * 180_000},
        {"role": "user", "content": "Go on."},
    ],
    "a thousand messages": lambda: [
        {"role": "user", "content": f"{n}: " + "words of it, " * 300} for n in range(1_000)
    ],
    "as many parts as are taken": lambda: [
        {"role": "user", "content": [{"type": "text", "text": f"{n} {m} costs {m * 3} euros."} for m in range(256)]}
        for n in range(40)
    ],
}


@pytest.mark.parametrize("shape", LEFT)
def test_no_build_over_what_was_taken_takes_much_memory(shape: str, attacked: Running) -> None:
    session = f"/api/sessions/built-{len(shape)}"
    rows = json.dumps({"messages": [{"message": one} for one in LEFT[shape]()]}, ensure_ascii=False).encode()
    status, answer, above = measured(attacked, f"{session}/messages", rows)
    assert status == 200, answer[:300]
    began = time.monotonic()
    with Watch(attacked) as watch:
        code, told, more = measured(attacked, f"{session}/build", b'{"envelope": false}')
    print(
        f"{shape}: append {above:.0f} MB above, build {code} {more:.0f} MB above, "
        f"{time.monotonic() - began:.1f} s, {watch.slowest:.2f} s, {told[:150]!r}"
    )
    assert above <= MAX_MB
    assert more <= MAX_MB
    assert code in (200, 422), told[:300]
    assert watch.asked > 0
    assert watch.slowest < HEALTHY_SECONDS


HISTORIES: dict[str, list[dict[str, Any]]] = {
    "many messages": [{"role": "user", "content": "a"}] * 10_000,
    "many fields": [{"role": "user", "content": "a", **{f"k{n}": {} for n in range(60)}}] * 700,
}


@pytest.mark.parametrize("shape", HISTORIES)
def test_no_history_takes_much_memory(shape: str, attacked: Running) -> None:
    said = {"messages": [{"message": {"role": "user", "content": "Hi"}}]}
    # The first compaction of a process imports the summarizer and its data, which no history takes.
    orders = [{"role": "user", "content": f"The order {n} is late."} for n in range(2_000)]
    for session in ("warm", "history"):
        assert attacked.ask("POST", f"/api/sessions/{session}/messages", said)[0] == 200
    assert attacked.ask("POST", "/api/sessions/warm/build", {"history": orders})[0] == 200
    body = json.dumps({"history": HISTORIES[shape]}).encode()
    status, answer, above = measured(attacked, "/api/sessions/history/build", body)
    assert status == 200, answer[:300]
    assert above <= MAX_MB


# -- what one tenant takes from another -------------------------------------------------------------------------------


@contextmanager
def two_tenants(folder: Path, *options: str) -> Iterator[tuple[Running, str, str]]:
    """A service with a token of tenant acme and one of another tenant."""
    path = folder / "tokens.yaml"
    acme = add_token(path, "acme app", "acme", ("read", "write"))
    other = add_token(path, "other app", "other", ("read", "write"))
    with running(folder, "--rate", "0", "--tokens", str(path), *options) as service:
        yield service, acme, other


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, str, str]]:
    """One service with the default limits for all attacks that leave it running: a start takes seconds."""
    with two_tenants(tmp_path_factory.mktemp("tenants")) as started:
        yield started


def asked(service: Running, token: str, session: str) -> float:
    """Seconds that a turn of this tenant takes: append, and build."""
    began = time.monotonic()
    auth = {"authorization": f"Bearer {token}"}
    said = {"messages": [{"message": {"role": "user", "content": "Where is order 17?"}}]}
    assert service.ask("POST", f"/api/sessions/{session}/messages", said, **auth)[0] == 200
    assert service.ask("POST", f"/api/sessions/{session}/build", {}, **auth)[0] == 200
    return time.monotonic() - began


def wait_for_requests(service: Running, count: int, token: str) -> None:
    """Until so many are under way, the one that asks for it included."""
    until = time.monotonic() + 60
    while f"under_way {count}\n" not in service.ask("GET", "/metrics", authorization=f"Bearer {token}")[1]:
        assert time.monotonic() < until, f"{count} requests were not under way within 60 s"
        time.sleep(0.02)


def slow(port: int, head: str, held: ExitStack, first: bytes = b"") -> socket.socket:
    """A request whose body does not come."""
    connection = held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
    connection.sendall(f"{head}host: 127.0.0.1\r\ncontent-length: 4000\r\n".encode() + b"\r\n" + first)
    return connection


def test_slow_requests_without_a_token_take_nothing_from_who_has_one(tenants: tuple[Running, str, str]) -> None:
    service, acme, _ = tenants
    with ExitStack() as held:
        asked(service, acme, "before")
        form = "POST /login HTTP/1.1\r\ncontent-type: application/x-www-form-urlencoded\r\n"
        many = [slow(service.port, form, held, b"token=") for _ in range(200)]
        with Watch(service) as watch:
            for number in range(5):
                assert asked(service, acme, f"s{number}") < 10
            status, page = service.ask("GET", "/login")
            assert (status, "<form" in page) == (200, True), "whoever wants to log in still can"
        assert watch.asked > 0
        assert watch.slowest < HEALTHY_SECONDS
        assert many[0].makefile("rb").readline().startswith(b"HTTP/1.1 408"), "the oldest has left for the newer"
        many[-1].settimeout(30)
        assert many[-1].makefile("rb").readline().startswith(b"HTTP/1.1 408"), "and none waits for long"


def test_a_body_without_a_token_is_small(tenants: tuple[Running, str, str]) -> None:
    service, _, _ = tenants
    for path in ("/login", "/healthz"):
        status, _ = send(service.port, path, b"token=" + b"a" * 10_000)
        assert status in (405, 413), path
    status, _ = send(service.port, "/api/sessions/s/messages", b"{" + b" " * 1_000)
    assert status == 401, "without a token a body is not read"


def test_slow_requests_of_one_tenant_take_nothing_from_another(tenants: tuple[Running, str, str]) -> None:
    service, acme, other = tenants
    with ExitStack() as held:
        asked(service, other, "before")
        head = "POST /api/sessions/s/messages HTTP/1.1\r\ncontent-type: application/json\r\n"
        for _ in range(64):
            slow(service.port, f"{head}authorization: Bearer {acme}\r\n", held, b"{")
        wait_for_requests(service, 32 + 1, other)
        for number in range(5):
            assert asked(service, other, f"s{number}") < 10
        said = {"messages": [{"message": {"role": "user", "content": "Hi"}}]}
        status, problem = service.ask("POST", "/api/sessions/t/messages", said, authorization=f"Bearer {acme}")
        assert (status, problem["detail"]) == (503, "32 requests of this tenant are under way, its share; ask again")


def expensive(service: Running, token: str, session: str) -> None:
    """A session whose next build takes long."""
    parts = [
        {"type": "text", "text": f"{n}: the part {n * 7} costs {n * 3} euros and comes on Friday."} for n in range(250)
    ]
    rows = [
        {"message": {"role": role, "content": [{**part, "text": f"{turn} {part['text']}"} for part in parts]}}
        for turn in range(40)
        for role in ("user", "assistant")
    ]
    auth = {"authorization": f"Bearer {token}"}
    assert service.ask("POST", f"/api/sessions/{session}/messages", {"messages": rows}, **auth)[0] == 200


def test_expensive_builds_of_one_tenant_stall_no_other_and_end_at_their_deadline(tmp_path: Path) -> None:
    with two_tenants(tmp_path, "--build-seconds", "3") as (service, acme, other):
        asked(service, other, "before")
        for number in range(6):
            expensive(service, acme, f"slow{number}")
        built: list[tuple[int, Any, float]] = []

        def build(number: int) -> None:
            began = time.monotonic()
            status, answer = service.ask(
                "POST",
                f"/api/sessions/slow{number}/build",
                {"model": "gpt-4.1", "provider": "openai-chat"},
                authorization=f"Bearer {acme}",
            )
            built.append((status, answer, time.monotonic() - began))

        building = [threading.Thread(target=build, args=(number,)) for number in range(6)]
        for one in building:
            one.start()
        with Watch(service) as watch:
            turns = [asked(service, other, f"s{number}") for number in range(5)]
            for one in building:
                one.join(60)
        assert watch.asked > 0
        assert watch.slowest < HEALTHY_SECONDS
        assert max(turns) < 5
        assert [status for status, _, _ in built] == [200] * 6, built[0][1]
        kinds = [{one["kind"] for one in answer["envelope"]["findings"]} for _, answer, _ in built]
        assert all("build_deadline" in found for found in kinds)
        assert all(answer["request"]["messages"] for _, answer, _ in built)


def test_a_message_of_too_many_parts_is_refused_with_its_field_and_the_cap(attacked: Running) -> None:
    content = [{"type": "text", "text": "a"}] * 257
    said = {"messages": [{"message": {"role": "user", "content": content}}]}
    status, problem = attacked.ask("POST", "/api/sessions/parts/messages", said)
    assert (status, problem["errors"]) == (
        422,
        [{"where": "body.messages[0].message", "what": "`content` has 257 parts; a message may have 256"}],
    )
    said["messages"][0]["message"]["content"] = content[1:]
    assert attacked.ask("POST", "/api/sessions/parts/messages", said)[0] == 200


def test_a_signal_ends_the_process_in_time_whatever_runs(tmp_path: Path) -> None:
    with two_tenants(tmp_path, "--build-seconds", "600", "--stop-seconds", "1") as (service, acme, _):
        for number in range(4):  # all four together take several times what the stop waits, on any machine
            expensive(service, acme, f"slow{number}")
        auth = {"authorization": f"Bearer {acme}", "content-type": "application/json"}
        connections = [http.client.HTTPConnection("127.0.0.1", service.port, timeout=60) for _ in range(4)]
        for number, connection in enumerate(connections):
            connection.request("POST", f"/api/sessions/slow{number}/build", b'{"model": "gpt-4.1"}', auth)
        wait_for_requests(service, 4 + 1, acme)
        began = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        service.process.communicate(timeout=60)
        assert time.monotonic() - began < 1 + HEALTHY_SECONDS
        for connection in connections:
            connection.close()
        assert service.process.returncode == 1
        assert "not all ended within 1 s of the signal" in service.log.read_text(encoding="utf-8")


# -- event streams ----------------------------------------------------------------------------------------------------


def test_a_stream_of_events_ends_when_its_token_is_revoked(tmp_path: Path) -> None:
    with two_tenants(tmp_path) as (service, acme, other):
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        connection.request("GET", "/api/events", headers={"authorization": f"Bearer {other}"})
        stream = connection.getresponse()
        asked(service, other, "s")
        assert stream.readline() == b"id: 1\n"
        revoke_token(tmp_path / "tokens.yaml", "other app")
        began = time.monotonic()
        stream.read()
        assert time.monotonic() - began < HEARTBEAT_SECONDS + 5
        connection.close()
        asked(service, acme, "s")


def test_a_stream_of_events_ends_when_its_browser_logs_out(tmp_path: Path) -> None:
    with two_tenants(tmp_path) as (service, acme, _):
        form = {"content-type": "application/x-www-form-urlencoded"}
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        connection.request("POST", "/login", f"token={acme}", form)
        answer = connection.getresponse()
        answer.read()
        cookie = {"cookie": answer.headers["set-cookie"].partition(";")[0]}
        streaming = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        streaming.request("GET", "/api/events", headers=cookie)
        stream = streaming.getresponse()
        asked(service, acme, "s")
        assert stream.readline() == b"id: 1\n"
        connection.request("POST", "/logout", headers=cookie)
        assert connection.getresponse().status == 303
        asked(service, acme, "t")  # nothing of it is told any more
        assert b'"session": "t"' not in stream.read()
        for one in (connection, streaming):
            one.close()
