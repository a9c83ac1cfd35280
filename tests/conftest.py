"""Fixtures that several folders share: S3 servers, one of each a test run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from .examples import examples
from .s3_servers import CREDENTIALS, Ministack, S3Server, ministack_server, moto_server

settings.register_profile("counted", settings.default, max_examples=examples(settings.default.max_examples))
settings.load_profile("counted")
"""Property tests that name no number of examples: a fifth of hypothesis's own on every run, as those that do."""

LONG = (
    "tests/flows/", "tests/steward/night/", "tests/store/crashes/", "tests/steward/ingest/", "tests/store/replication/",
    "tests/evals/", "tests/test_guide_", "tests/test_docs.py", "tests/store/",
)  # fmt: skip
"""Where few tests take long: they begin first, so that no process is left alone with one at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first; needs ``--no-loadscope-reorder`` where processes share the files out."""

    def rank(item: pytest.Item) -> int:
        return next((place for place, start in enumerate(LONG) if item.nodeid.startswith(start)), len(LONG))

    items.sort(key=rank)


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
