"""``ctxsteward serve`` as a process: where it listens, what it prints, and how it stops."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.envelope import open_store

from ...load import cpu_seconds

COMMAND = [sys.executable, "-c", "from ctxsteward.console.cli import main; main()", "serve", "--port", "0", "--json"]
SECONDS = 60
START_FRAMEWORKS = 5
"""CPU of a start and an append at most, in loadings of the web framework; it takes about 3.4."""


class Running(NamedTuple):
    """A service of its own process."""

    process: subprocess.Popen[str]
    told: dict[str, Any]
    port: int
    log: Path
    """What it has written to stderr: a file, because a pipe that nobody reads stops the service when it is full."""

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"content-type": "application/json", **headers} if text else headers)
        answer = connection.getresponse()
        read = answer.read()
        connection.close()
        is_json = "json" in answer.headers.get("content-type", "")
        return answer.status, json.loads(read) if is_json else read.decode()

    def stop(self) -> tuple[int, list[dict[str, Any]]]:
        """End it as a supervisor does; exit code and log."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=SECONDS)
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return self.process.returncode, [json.loads(line) for line in lines if line.startswith("{")]


@contextmanager
def running(folder: Path, *options: str, **environment: str) -> Iterator[Running]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CTXSTEWARD_")}
    log = folder / "serve.log"
    with log.open("w", encoding="utf-8") as stderr:
        process = subprocess.Popen(
            [*COMMAND, "--store", f"file:{folder / 'store'}", *options],
            cwd=folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**kept, **environment},
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, log.read_text(encoding="utf-8")
        told = json.loads(line)
        yield Running(process, told, urlsplit(told["url"]).port or 0, log)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate(timeout=SECONDS)


MESSAGE = {"messages": [{"message": {"role": "user", "content": "Hi"}, "id": "one"}]}


def test_a_signal_in_the_middle_of_a_request_lets_it_finish_and_the_exit_code_is_0(tmp_path: Path) -> None:
    with running(tmp_path) as service, listening(service.port) as stream:
        assert service.ask("POST", "/api/sessions/t/messages", MESSAGE)[0] == 200
        assert stream.readline() == b"id: 1\n"
        text = json.dumps(MESSAGE).encode()
        with socket.create_connection(("127.0.0.1", service.port), timeout=SECONDS) as half:
            head = f"POST /api/sessions/s/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(text)}\r\n"
            half.sendall(head.encode() + b"content-type: application/json\r\n\r\n" + text[:10])
            while service.ask("GET", "/metrics")[1].count("requests_under_way 2") != 1:
                pass  # both requests: this one and the half one
            stopped: list[Any] = []
            stopping = threading.Thread(target=lambda: stopped.append(service.stop()))
            stopping.start()
            while not refuses(service.port):
                pass
            half.sendall(text[10:])
            answer = half.makefile("rb").read()
        stopping.join(SECONDS)
        stream.read()  # it ends: a listener keeps no service from stopping
        assert b"200 OK" in answer.splitlines()[0]
        ((code, log),) = stopped
        assert code == 0
        assert [row["status"] for row in log if row["path"] == "/api/sessions/s/messages"] == [200]
    with open_store(f"file:{tmp_path / 'store'}") as store:
        assert store.at("default", "s").resolve("1").text == "Hi"


def test_a_service_that_starts_again_takes_an_append_at_once(tmp_path: Path) -> None:
    """In CPU, beside what loading the web framework alone takes now: a busy machine stretches both."""
    framework = cpu_of_loading_the_framework()
    assert framework > 0
    for number in range(2):
        with running(tmp_path) as service:
            answer = service.ask("POST", "/api/sessions/t/messages", MESSAGE)
            assert (answer[0], answer[1]["messages"][0]["is_new"]) == (200, number == 0)
            assert 0 < cpu_seconds(service.process.pid) < START_FRAMEWORKS * framework
            service.process.kill()  # it does not end in order


def cpu_of_loading_the_framework() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "import fastapi, uvicorn, sse_starlette"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_service_starts_without_what_only_pages_of_the_steward_need() -> None:
    code = (
        "import sys, ctxsteward.console.service.app\nprint([name for name in sys.modules if 'steward.release' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@contextmanager
def listening(port: int) -> Iterator[http.client.HTTPResponse]:
    """A stream of events."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    connection.request("GET", "/api/events")
    with contextlib.closing(connection), connection.getresponse() as stream:
        yield stream


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS).close()
    except OSError:
        return True
    return False


def test_a_line_of_the_log_is_json_without_query_body_or_token(tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    add = ["serve", "token", "add", "app", "--tokens", str(file), "--tenant", "acme"]
    token = CliRunner().invoke(cli, add).stdout.strip()
    with running(tmp_path, "--tokens", str(file)) as service:
        auth = {"authorization": f"Bearer {token}", "x-request-id": "trace-0001"}
        assert service.ask("POST", "/api/sessions/s/messages", MESSAGE, **auth)[0] == 200
        assert service.ask("GET", "/api/sessions/s/preview?user_turn=hunter2", **auth)[0] == 200
        assert service.ask("GET", "/api/sessions", authorization="Bearer wrong")[0] == 401
        _, log = service.stop()
    assert [(row["method"], row["path"], row["status"], row["tenant"]) for row in log] == [
        ("POST", "/api/sessions/s/messages", 200, "acme"),
        ("GET", "/api/sessions/s/preview", 200, "acme"),
        ("GET", "/api/sessions", 401, None),
    ]
    assert log[0]["request_id"] == "trace-0001"
    assert list(log[0]) == ["time", "request_id", "method", "path", "route", "status", "ms", "bytes", "tenant"]
    text = json.dumps(log)
    assert not [word for word in (token, "hunter2", "wrong", '"Hi"') if word in text]


def test_figures_of_builds_stand_beside_those_of_requests(wild: Running) -> None:
    pytest.importorskip("opentelemetry.exporter.prometheus", reason="the extra `telemetry` is not installed")
    wild.ask("POST", "/api/sessions/built/messages", MESSAGE)
    wild.ask("POST", "/api/sessions/built/build")
    _, text = wild.ask("GET", "/metrics")
    assert "context_build_duration_seconds_count" in text
    assert 'ctxsteward_http_requests_total{method="POST",route="/api/sessions/{session}/build",status="200"} 1' in text


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"nonsense\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx: " + b"a" * 100_000, b"HTTP/1.1 400 Bad Request"),
        (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"GET /api/sessions HTTP/1.0\r\n\r\n", b"HTTP/1.1 421 Misdirected Request"),
    ],
)
def test_what_is_no_request_gets_a_problem_and_nothing_else_stops(sent: bytes, said: bytes, wild: Running) -> None:
    with socket.create_connection(("127.0.0.1", wild.port), timeout=SECONDS) as raw:
        raw.sendall(sent)
        answer = raw.makefile("rb").read()
    assert answer.splitlines()[0] == said
    assert b"application/problem+json" in answer
    assert wild.ask("GET", "/healthz")[0] == 200


@pytest.fixture(scope="module")
def wild(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One service for requests that are none."""
    with running(tmp_path_factory.mktemp("wild")) as service:
        yield service


def test_any_id_of_a_session_can_be_said_in_a_path_of_pages_too(wild: Running) -> None:
    for id, once in (("a%41", "a%2541"), ("a/b", "a%2Fb")):
        assert wild.ask("POST", f"/api/sessions/{once}/messages", MESSAGE)[0] == 200
        twice = once.replace("%", "%25")
        code, page = wild.ask("GET", f"/sessions/{twice}/messages")
        assert code == 200
        assert id in page


# -- what is refused before anything is served ------------------------------------------------------------------------


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["serve", *arguments])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org"])
def test_listening_beyond_the_loopback_needs_tokens(host: str, tmp_path: Path) -> None:
    line = refused("--host", host, "--store", f"file:{tmp_path}")
    assert f"--host {host}: without tokens it listens on the loopback alone" in line
    assert "serve token add" in line


def test_a_port_that_is_taken_is_said_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused("--port", str(port), "--store", "memory:")
    assert f"--host 127.0.0.1 --port {port}: cannot listen there: " in line


def test_a_missing_package_is_named_with_its_extra() -> None:
    hidden = "import sys; sys.modules['uvicorn'] = None; from ctxsteward.console.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", hidden, "serve"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == ("ctxsteward: serve needs the extra `console` (uvicorn); pip install 'ctxsteward[console]'\n")


def test_tokens_are_added_listed_and_revoked(tmp_path: Path) -> None:
    file = str(tmp_path / "tokens.yaml")

    def token(*arguments: str) -> Any:
        result = CliRunner().invoke(cli, ["serve", "token", *arguments, "--tokens", file])
        assert result.exit_code == 0, result.stderr
        return result.stdout

    made = json.loads(token("add", "app", "--tenant", "acme", "--scope", "read", "--json"))
    assert {name: made[name] for name in ("name", "tenant", "scopes")} == {
        "name": "app",
        "tenant": "acme",
        "scopes": ["read"],
    }
    token("add", "boss", "--scope", "steward", "--scope", "read")
    assert token("list") == "app  acme  read\nboss  default  read, steward\n"
    assert token("revoke", "app") == "revoked app\n"
    assert [row["name"] for row in json.loads(token("list", "--json"))] == ["boss"]
