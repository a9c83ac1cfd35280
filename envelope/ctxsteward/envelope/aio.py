"""For async callers: the same calls, off the event loop.

A build is milliseconds of CPU and, on a file store, an fsync; each function here runs its counterpart in a worker
thread. Tasks may share a session: one call runs at a time, and `SharedSession` keeps them in the order of asking. A
cancelled call is not undone: its thread goes on to the end behind the session's lock, so session and log stay in step,
and what was being written may be in the log. Append with an `id`, and append again: the same `id` is the same entry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from .building.builder import EnvelopeBuilder
from .envelope import Envelope
from .history.session import Session
from .history.tool_groups import LogEntry


async def append(session: Session, message: object, **meta: Any) -> LogEntry:
    """`Session.append`."""
    return await asyncio.to_thread(session.append, message, **meta)


async def extend(session: Session, messages: Iterable[object]) -> list[LogEntry]:
    """`Session.extend`."""
    return await asyncio.to_thread(session.extend, messages)


async def follow(session: Session, messages: Iterable[object], **who: Any) -> Session:
    """`Session.follow`."""
    return await asyncio.to_thread(session.follow, messages, **who)


async def build(builder: EnvelopeBuilder, session: Session, **more: Any) -> Envelope:
    """`EnvelopeBuilder.build`."""
    return await asyncio.to_thread(builder.build, session, **more)


async def preview(builder: EnvelopeBuilder, session: Session, user_turn: str | object | None = None) -> Envelope:
    """`EnvelopeBuilder.preview`."""
    return await asyncio.to_thread(builder.preview, session, user_turn)


class SharedSession:
    """A session that several tasks of one process share: one call at a time, in the order of asking."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._lock = asyncio.Lock()

    async def append(self, message: object, **meta: Any) -> LogEntry:
        """`Session.append`."""
        async with self._lock:
            return await append(self.session, message, **meta)

    async def build(self, builder: EnvelopeBuilder, **more: Any) -> Envelope:
        """`EnvelopeBuilder.build`."""
        async with self._lock:
            return await build(builder, self.session, **more)
