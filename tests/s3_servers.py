"""Real S3 servers for tests: moto in this process, ministack in its own, and, when asked, a bucket of yours.

    with moto_server() as server:                       # memory, quick
    with ministack_server(tmp_path) as server:          # on disk; server.kill(), server.restart() keep the data
        server.url, server.bucket, server.session
        server.uri("team")                              # s3://bucket/team?endpoint=…
        server.uri("team", url=proxy.url)               # the same through a fault proxy

Fixtures for other folders are in `conftest.py`: `moto`, `ministack` (one a test run, a fresh prefix is yours to take)
and `aws_environment` (credentials where boto3 looks for them). ministack lives in `.venv-ministack`, which `make
ministack` builds, because its pins exclude ours; tests that need it skip without it. `CTXSTEWARD_TEST_S3_URI` names a
real bucket; then the conformance suite runs there too, below a random prefix.

Everything binds 127.0.0.1 on a free port, is waited for, and is ended by its process id.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

import boto3
import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from .needs import MINISTACK

REAL_BUCKET = "CTXSTEWARD_TEST_S3_URI"
MINISTACK_PYTHON = Path(__file__).resolve().parents[1] / ".venv-ministack" / "bin" / "python"
START_SECONDS = 30.0
botocore.session.create_loader = cache(botocore.session.create_loader)
"""Descriptions of services are read once a process: tests open hundreds of sessions, each of which would read them."""
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "NO_PROXY": "127.0.0.1",
}
"""What `aws_environment` sets: enough for boto3 to sign, nothing of the machine's own."""


class S3Server:
    """A server that answers at `url`, with one empty bucket."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bucket = f"test-{secrets.token_hex(6)}"
        self.session = boto3.Session(
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            region_name=CREDENTIALS["AWS_DEFAULT_REGION"],
        )

    def uri(self, prefix: str = "", *, url: str | None = None, **query: str) -> str:
        """What `open_store` and `S3Objects.open` take; `url` puts a proxy in between."""
        path = f"{self.bucket}/{prefix}" if prefix else self.bucket
        return f"s3://{path}?{urlencode({'endpoint': url or self.url, 'region': 'us-east-1', **query})}"

    @contextmanager
    def client(self) -> Iterator[Any]:
        """A plain boto3 client, for looking behind the store's back."""
        config = Config(connect_timeout=2, read_timeout=10, s3={"addressing_style": "path"})
        client = self.session.client("s3", endpoint_url=self.url, config=config)
        try:
            yield client
        finally:
            client.close()

    def make_bucket(self, *, versioned: bool = False) -> None:
        with self.client() as client:
            try:
                client.create_bucket(Bucket=self.bucket)
            except ClientError as error:
                if error.response["Error"]["Code"] not in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
                    raise
            if versioned:
                client.put_bucket_versioning(Bucket=self.bucket, VersioningConfiguration={"Status": "Enabled"})

    def another_bucket(self, *, versioned: bool = False) -> S3Server:
        """The same server, another bucket."""
        other = S3Server(self.url)
        other.make_bucket(versioned=versioned)
        return other


# -- moto --------------------------------------------------------------------------------------------------


@contextmanager
def moto_server() -> Iterator[S3Server]:
    """moto on a free port of this process. Its state is the process's: take another bucket to be alone.

    Its S3 alone: what deals requests out to all services looks through its folder of services at each of them.
    """
    from moto.moto_server.werkzeug_app import create_backend_app  # seconds, which only its tests should wait for

    with _wsgi_server(_one_at_a_time(create_backend_app("s3"))) as url:
        server = S3Server(url)
        server.make_bucket()
        yield server


def _one_at_a_time(application: Any) -> Callable[..., list[bytes]]:
    """S3 looks and creates in one step; moto's threads do not, so it answers one request after the other."""
    lock = threading.Lock()

    def answer(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        with lock:
            return [b"".join(application(environ, start_response))]

    return answer


@contextmanager
def _wsgi_server(application: Any) -> Iterator[str]:
    from moto.moto_server.werkzeug_app import MotoRequestHandler
    from werkzeug.serving import make_server

    class Quiet(MotoRequestHandler):
        def log(self, type: str, message: str, *arguments: Any) -> None:
            """Silence."""

    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="wsgi server")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# -- ministack ---------------------------------------------------------------------------------------------


class Ministack(S3Server):
    """ministack as a process of its own, its objects below `data_dir`."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir, self.port = data_dir, _free_port()
        self.process: subprocess.Popen[bytes] | None = None
        super().__init__(f"http://127.0.0.1:{self.port}")

    def start(self) -> None:
        """Start, wait until it answers, and see that the bucket is there (an empty one does not outlive it)."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        with (self.data_dir / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [MINISTACK_PYTHON, "-m", "ministack"],
                cwd=self.data_dir,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._wait()
        self.make_bucket()

    def kill(self) -> None:
        """SIGKILL, by its own id."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)
            self.process = None

    def restart(self) -> None:
        self.kill()
        self.start()

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.data_dir),
            "TMPDIR": str(self.data_dir),
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "SERVICES": "s3",
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(self.data_dir / "s3"),
            "STATE_DIR": str(self.data_dir / "state"),
            "SFTP_ENABLED": "0",
            "IOT_MTLS_ENABLED": "0",
            "LOG_LEVEL": "ERROR",
            "DOCKER_HOST": f"unix://{self.data_dir / 'no-docker'}",
        }

    def _wait(self) -> None:
        assert self.process is not None
        until, direct = time.monotonic() + START_SECONDS, build_opener(ProxyHandler({}))
        while True:
            try:
                with direct.open(f"{self.url}/_ministack/health", timeout=2):
                    return
            except (URLError, OSError) as error:
                if self.process.poll() is not None or time.monotonic() > until:
                    self.kill()
                    log = (self.data_dir / "log").read_text(errors="replace")
                    raise AssertionError(f"ministack did not start: {error}\n{log[-2000:]}") from error
                time.sleep(0.05)


@contextmanager
def ministack_server(data_dir: Path) -> Iterator[Ministack]:
    """ministack on a free port, or a visible skip."""
    if not MINISTACK_PYTHON.exists():
        pytest.skip(MINISTACK)
    server = Ministack(data_dir)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
