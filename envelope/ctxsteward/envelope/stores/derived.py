"""What every journal derives from the records it is given: address, size, and whether they may stand there."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ctxsteward.schemas import Backpressure, StoreError

from .port import Record, SessionKey


def compaction_address(record: Record) -> str | None:
    """The address a compaction is found by; None for other records.

    >>> compaction_address(Record("compaction", '{"report": {"id": "ab12"}}'))
    'ab12'
    """
    if record.kind != "compaction":
        return None
    try:
        return str(json.loads(record.body)["report"]["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError("a compaction record holds no report with an id; nothing was written") from error


def size_bytes(record: Record) -> int:
    """Of body and wire, as UTF-8."""
    return text_bytes(record.body) + (text_bytes(record.wire) if record.wire is not None else 0)


def text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def check_queue(waiting_bytes: int, added_bytes: int, cap_bytes: int | None) -> None:
    """Raise `Backpressure` where what is added does not fit beside what waits; alone, everything fits."""
    if cap_bytes is not None and waiting_bytes and waiting_bytes + added_bytes > cap_bytes:
        raise Backpressure(waiting_bytes, cap_bytes)


def check_replaced(key: SessionKey, length: int, positions: Iterable[int]) -> None:
    """Raise `StoreError` where no record stands to be replaced."""
    for position in positions:
        if not 0 <= position < length:
            raise StoreError(
                f"session {key.session!r}: no record at position {position} to replace, it holds {length}; "
                "nothing was written"
            )
