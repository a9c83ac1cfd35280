"""What the room offers."""

from __future__ import annotations

import ctxsteward.summarizers as room


def test_public_names() -> None:
    assert room.__all__ == [
        "Reader",
        "extractive",
        "read_parts",
        "structured",
        "unsupported",
    ]
    assert callable(room.extractive)
