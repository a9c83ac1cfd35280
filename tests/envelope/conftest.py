"""Fixtures that several folders share: a store in memory and one in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxsteward.envelope import Store, open_store


@pytest.fixture(params=["memory:", "file:"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with open_store("memory:" if request.param == "memory:" else f"file:{tmp_path / 'store'}") as made:
        yield made
