"""Card indexes of every kind, and cards to put into them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope.cards import CardIndex, open_cards
from ctxsteward.schemas.cards import ContextCard

START = datetime(2026, 3, 1, 9, 30, 0, 123456, tzinfo=UTC)
KINDS = ("memory", "sqlite", "postgres")

Opener = Callable[[], CardIndex]
"""Opens an index of this test; the same one again where it lasts."""


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def clock() -> datetime:
    return START


def card(ordinal: int, session: str = "s", *, tenant: str = "default", **more: Any) -> ContextCard:
    fields: dict[str, Any] = {
        "tenant": tenant,
        "session": session,
        "ref": f"§{ordinal}",
        "address": f"{ordinal:064x}",
        "summary": f"summary {ordinal} 你好 'quoted' \"twice\" %s ?1",
        "keywords": ("summary", f"n{ordinal}", "你好"),
        "estimated_tokens": 10 * ordinal,
        "role": ("user", "assistant", "tool")[ordinal % 3],
        "phase_name": ("research", "write")[ordinal % 2],
        "turn_number": ordinal,
        "generated_at": START,
        "generator_model": "fast-path",
        "message_timestamp": "2026-03-01 09:00",
    }
    return ContextCard.model_validate(fields | more)


@pytest.fixture(params=KINDS)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    opened: list[CardIndex] = []
    if request.param == "memory":
        uri = "memory:"
    elif request.param == "sqlite":
        uri = f"sqlite:{tmp_path / 'cards.sqlite'}"
    else:
        uri = request.getfixturevalue("postgres_dsn")

    def open_one() -> CardIndex:
        if request.param == "memory" and opened:
            return opened[0]
        opened.append(open_cards(uri))
        return opened[-1]

    yield open_one
    for index in opened:
        index.close()


@pytest.fixture
def index(opener: Opener) -> CardIndex:
    return opener()
