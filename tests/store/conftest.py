"""Buckets of a local S3 server, one a test, and a network before it that fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..fault_proxy import FaultProxy
from ..s3_servers import S3Server


@pytest.fixture
def server(moto: S3Server) -> S3Server:
    return moto.another_bucket()


@pytest.fixture
def proxy(server: S3Server) -> Iterator[FaultProxy]:
    with FaultProxy(server.url) as running:
        yield running
