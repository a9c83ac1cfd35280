"""A card as a value: what it refuses, and that its schema is the published one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple

import pytest
from pydantic import ValidationError

from ctxsteward.schemas import InputError
from ctxsteward.schemas.cards import ContextCard
from ctxsteward.schemas.publish import schema, validate


def card(ordinal: int, **more: Any) -> ContextCard:
    fields: dict[str, Any] = {
        "tenant": "default",
        "session": "s",
        "ref": f"§{ordinal}",
        "address": f"{ordinal:064x}",
        "summary": "a summary",
        "keywords": ("summary", "你好"),
        "estimated_tokens": 10,
        "role": "user",
        "phase_name": "research",
        "turn_number": 1,
        "generated_at": datetime(2026, 3, 1, 9, 30, tzinfo=UTC),
        "generator_model": "fast-path",
        "message_timestamp": "2026-03-01 09:00",
    }
    return ContextCard.model_validate(fields | more)


class Bad(NamedTuple):
    id: str
    fields: dict[str, Any]
    says: str
    in_schema: bool = True
    """Whether JSON Schema has words for it, too."""


BAD = [
    Bad("a summary over 300", {"summary": "x" * 301}, "summary"),
    Bad("a 21st keyword", {"keywords": tuple(map(str, range(21)))}, "keywords"),
    Bad("an empty keyword", {"keywords": ("",)}, "keywords"),
    Bad("a keyword over 64", {"keywords": ("x" * 65,)}, "keywords"),
    Bad("a ref into a message", {"ref": "§1.2"}, "ref"),
    Bad("a ref of nothing", {"ref": "§0"}, "ref"),
    Bad("an address that is none", {"address": "F" * 64}, "address"),
    Bad("a system card", {"role": "system"}, "role"),
    Bad("tokens below nothing", {"estimated_tokens": -1}, "estimated_tokens"),
    Bad("a turn before the first", {"turn_number": 0}, "turn_number"),
    Bad("an unknown field", {"content": "the original"}, "content"),
    Bad("a NUL", {"phase_name": "a\x00"}, "phase_name"),
    Bad("no tenant", {"tenant": ""}, "tenant"),
    Bad("an empty embedding", {"embedding": (), "embedding_model": "m"}, "embedding"),
    Bad("an embedding of no model", {"embedding": (1.0,)}, "come together", False),
    Bad("a model without an embedding", {"embedding_model": "m"}, "come together", False),
    Bad("a value that is no number", {"embedding": (float("nan"),), "embedding_model": "m"}, "finite", False),
    Bad("a value beyond 32 bits", {"embedding": (1e39,), "embedding_model": "m"}, "32-bit", False),
    Bad("an anchor that is no callout", {"is_anchor": True}, "is a callout", False),
    Bad("a name of no callout", {"callout_name": "plan"}, "is a callout", False),
    Bad("a time without a zone", {"generated_at": datetime(2026, 3, 1)}, "timezone", False),
    Bad("a lone surrogate", {"summary": "\ud800"}, "summary", False),
]


@pytest.mark.parametrize("case", BAD, ids=[case.id for case in BAD])
def test_bad_input_is_refused_by_name(case: Bad) -> None:
    with pytest.raises(ValidationError, match=case.says):
        card(1, **case.fields)
    if case.in_schema:
        with pytest.raises(InputError, match=f"context_card: at .*{case.says}|unknown field"):
            validate("context_card", card(1).model_dump(mode="json") | case.fields)


def test_the_published_schema_takes_real_cards() -> None:
    for one in (card(1), card(2, embedding=(0.1, 2), embedding_model="m"), card(3, is_callout=True, callout_name="x")):
        validate("context_card", one.model_dump(mode="json"))
    assert list(schema("context_card")["properties"])[:4] == ["tenant", "session", "ref", "address"]


def test_times_are_kept_in_utc_and_embeddings_as_32_bit_floats() -> None:
    one = card(
        1,
        generated_at=datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2))),
        embedding=(0.1,),
        embedding_model="m",
    )
    assert one.model_dump(mode="json")["generated_at"] == "2026-03-01T10:00:00Z"
    assert one.embedding == (0.10000000149011612,)
