"""Fixtures that several folders share: S3 servers, one of each a test run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .s3_servers import CREDENTIALS, Ministack, S3Server, ministack_server, moto_server


@pytest.fixture(scope="session")
def moto() -> Iterator[S3Server]:
    """moto in this process; `moto.another_bucket()` to be alone."""
    with moto_server() as server:
        yield server


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ministack]:
    """ministack in a process of its own, for tests that leave it running; skips where it is not installed."""
    with ministack_server(tmp_path_factory.mktemp("ministack")) as server:
        yield server


@pytest.fixture
def aws_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials of the test servers where boto3 looks for them, for code that makes its own session."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
