"""One furnished store for all tests of this folder; what they damage are copies of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .furnished import Original


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    made = Original(tmp_path_factory.mktemp("furnished"))
    yield made
    made.close()
